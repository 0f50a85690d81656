package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// writeLines writes deliveries as lines that replay takes.
func writeLines(file string, w *workload) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	for _, d := range w.deliveries {
		source := map[string]string{tables[0]: "whatsapp", tables[1]: "calendly"}[d.said.table]
		fmt.Fprintf(out, `{"source":%q,"body":%s}`+"\n", source, d.body)
	}
	return errors.Join(out.Flush(), f.Close())
}

// replay lets our program replay a file.
func (b *bench) replay(ctx context.Context, w *workload, file string, lite bool) (r run, err error) {
	p, err := b.newPlace(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	database := p.dsn
	if lite {
		database = "sqlite:" + filepath.Join(p.dir, "rows.db")
	}
	if err := b.configure(p, true, database); err != nil {
		return r, err
	}
	begin := time.Now()
	if err := b.hookfold(p, "replay", file); err != nil {
		return r, err
	}
	r.duration = time.Since(begin)
	r.rate = float64(len(w.deliveries)) / r.duration.Seconds()
	if lite {
		return r, judgeSQLite(ctx, filepath.Join(p.dir, "rows.db"), want(w.deliveries))
	}
	return r, p.judge(ctx, want(w.deliveries))
}

// ceilingSQLite is the ceiling on SQLite: a prepared upsert for each folded row,
// 5,000 deliveries to a transaction, a sync with each.
func (b *bench) ceilingSQLite(ctx context.Context, w *workload) (r run, err error) {
	dir, err := os.MkdirTemp(b.dir, "run-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "rows.db")
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	if err != nil {
		return r, err
	}
	db.SetMaxOpenConns(1)
	for _, t := range tables {
		c := columns[t]
		if _, err := db.ExecContext(ctx, fmt.Sprintf("create table %s (%s text primary key, %s text, %s text, %s text)", t, c[0], c[1], c[2], c[3])); err != nil {
			return r, err
		}
	}
	begin := time.Now()
	for from := 0; from < len(w.deliveries); from += 5000 {
		newest := map[string]row{}
		for _, d := range w.deliveries[from:min(from+5000, len(w.deliveries))] {
			x, err := parse(d.said.table, d.body)
			if err != nil {
				return r, err
			}
			k := x.table + " " + x.key
			if have, ok := newest[k]; !ok || x.at > have.at {
				newest[k] = x
			}
		}
		if err := writeSQLite(ctx, db, newest); err != nil {
			return r, err
		}
	}
	r.duration = time.Since(begin)
	r.rate = float64(len(w.deliveries)) / r.duration.Seconds()
	return r, errors.Join(db.Close(), judgeSQLite(ctx, file, want(w.deliveries)))
}

func writeSQLite(ctx context.Context, db *sql.DB, rows map[string]row) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	stmts := map[string]*sql.Stmt{}
	for _, t := range tables {
		c := columns[t]
		if stmts[t], err = tx.PrepareContext(ctx, fmt.Sprintf(`insert into %[1]s as t (%[2]s, %[3]s, %[4]s, %[5]s) values (?, ?, ?, ?)
			on conflict (%[2]s) do update set %[3]s = excluded.%[3]s, %[4]s = excluded.%[4]s, %[5]s = excluded.%[5]s where t.%[5]s < excluded.%[5]s`, t, c[0], c[1], c[2], c[3])); err != nil {
			return err
		}
	}
	for _, r := range rows {
		if _, err := stmts[r.table].ExecContext(ctx, r.key, r.state, r.who, liteTime(r.at)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func liteTime(at int64) string { return time.Unix(at, 0).UTC().Format("2006-01-02T15:04:05.000000Z") }

func judgeSQLite(ctx context.Context, file string, want map[string]row) error {
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		return err
	}
	defer db.Close()
	found := 0
	for _, t := range tables {
		c := columns[t]
		rows, err := db.QueryContext(ctx, fmt.Sprintf("select %s, %s, %s, %s from %s", c[0], c[1], c[2], c[3], t))
		if err != nil {
			return err
		}
		for rows.Next() {
			r := row{table: t}
			var at string
			if err := rows.Scan(&r.key, &r.state, &r.who, &at); err != nil {
				return errors.Join(err, rows.Close())
			}
			w := want[t+" "+r.key]
			if r.at = w.at; r != w || at != liteTime(w.at) {
				return errors.Join(fmt.Errorf("a row is wrong: %+v at %s, want %+v", r, at, w), rows.Close())
			}
			found++
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
	}
	if found != len(want) {
		return fmt.Errorf("there are %d rows, want %d", found, len(want))
	}
	return nil
}

// fillPlace makes a place with rows and with settled deliveries in the journal.
func (b *bench) fillPlace(ctx context.Context, p *place, rows, deliveries int) error {
	if err := b.configure(p, true, p.dsn); err != nil {
		return err
	}
	for _, t := range tables {
		c := columns[t]
		err := p.exec(ctx, fmt.Sprintf("insert into %s (%s, %s, %s, %s) select 'full' || i, 'x', 'y', now() from generate_series(1, %d) i", t, c[0], c[1], c[2], c[3], rows/2))
		if err != nil {
			return err
		}
	}
	for done := 0; done < deliveries; done += 500_000 {
		if err := fill(ctx, filepath.Join(p.dir, "journal.db"), newWorkload(500_000, 1, uint64(done))); err != nil {
			return err
		}
	}
	x, err := b.startOurs(ctx, p, true)
	if err != nil {
		return err
	}
	err = x.settle(ctx)
	_, stopped := x.stop()
	return errors.Join(err, stopped)
}

// sustainedIn is sustained in a place that holds something already. Its rows are
// not judged: the same deliveries come again.
func (b *bench) sustainedIn(ctx context.Context, p *place, w *workload, s shape) (r run, err error) {
	x, err := b.startOurs(ctx, p, true)
	if err != nil {
		return r, err
	}
	begin := time.Now()
	if r.sent, err = load(x.addr, w, s); err == nil {
		err = x.settle(ctx)
	}
	r.duration = time.Since(begin)
	r.rate = float64(len(r.sent.deliveries)) / r.duration.Seconds()
	var stopped error
	r.server, stopped = x.stop()
	return r, errors.Join(err, stopped)
}
