package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal/sqlite"
)

// run is one run of one subject.
type run struct {
	// rate is deliveries received and settled in a second.
	rate     float64
	sent     *sent
	server   usage
	journal  int64 // bytes of our journal per delivery, once the server has ended
	visible  []time.Duration
	duration time.Duration
}

// sustained sends for some time, waits until all is settled, and judges the rows.
func (b *bench) sustained(ctx context.Context, kind string, w *workload, s shape) (r run, err error) {
	p, err := b.newPlace(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	x, err := b.start(ctx, kind, p)
	if err != nil {
		return r, err
	}
	begin := time.Now()
	if r.sent, err = load(x.addr, w, s); err != nil {
		_, stopped := x.stop()
		return r, errors.Join(err, stopped)
	}
	if err = x.settle(ctx); err == nil {
		r.duration = time.Since(begin)
		r.rate = float64(len(r.sent.deliveries)) / r.duration.Seconds()
	}
	var stopped error
	if r.server, stopped = x.stop(); err != nil || stopped != nil {
		return r, errors.Join(err, stopped)
	}
	if info, err := os.Stat(filepath.Join(p.dir, "journal.db")); err == nil {
		r.journal = info.Size() / int64(max(1, len(r.sent.deliveries)))
	}
	if kind == "null" || kind == "intake" {
		return r, nil // they write no rows
	}
	return r, p.judge(ctx, want(r.sent.deliveries))
}

// untilVisible sends at a rate and asks the database for every fifth row until
// it is there.
func (b *bench) untilVisible(ctx context.Context, kind string, w *workload, s shape) (r run, err error) {
	p, err := b.newPlace(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	x, err := b.start(ctx, kind, p)
	if err != nil {
		return r, err
	}
	pool, err := pgxpool.New(ctx, p.dsn)
	if err != nil {
		return r, err
	}
	defer pool.Close()
	if err := pool.Ping(ctx); err != nil {
		return r, err
	}
	var mu sync.Mutex
	var failed error
	begin := time.Now()
	s.after = func(i int) {
		if i%5 > 0 {
			return
		}
		due := begin.Add(time.Duration(float64(i) / s.rate * float64(time.Second)))
		err := waitFor(ctx, pool, w.deliveries[i].said)
		mu.Lock()
		defer mu.Unlock()
		r.visible, failed = append(r.visible, time.Since(due)), errors.Join(failed, err)
	}
	r.sent, err = load(x.addr, w, s)
	slices.Sort(r.visible)
	_, stopped := x.stop()
	return r, errors.Join(err, failed, stopped)
}

func waitFor(ctx context.Context, pool *pgxpool.Pool, said row) error {
	c := columns[said.table]
	for {
		var there bool
		err := pool.QueryRow(ctx, fmt.Sprintf("select exists (select from %s where %s = $1 and %s >= to_timestamp($2))", said.table, c[0], c[3]), said.key, said.at).Scan(&there)
		if there || err != nil {
			return err
		}
		time.Sleep(500 * time.Microsecond) // between two looks
	}
}

// fill writes deliveries into a journal as our server would, but does not settle them.
func fill(ctx context.Context, file string, w *workload) error {
	j, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		return err
	}
	const writers = 256
	errs := make([]error, writers)
	var all sync.WaitGroup
	for n := range writers {
		all.Go(func() {
			for i := n; i < len(w.deliveries) && errs[n] == nil; i += writers {
				d := w.deliveries[i]
				source := "whatsapp"
				if d.said.table == tables[1] {
					source = "calendly"
				}
				errs[n] = j.Append(ctx, &event.Delivery{Source: source, Body: d.body, Received: time.Now().UTC()})
			}
		})
	}
	all.Wait()
	return errors.Join(append(errs, j.Close())...)
}

// drain lets our server settle a backlog.
func (b *bench) drain(ctx context.Context, kind string, w *workload) (r run, err error) {
	p, err := b.newPlace(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	if kind == "ceiling" {
		if err := p.exec(ctx, schema); err != nil {
			return r, err
		}
		begin := time.Now()
		if err := ceiling(ctx, p.dsn, w); err != nil {
			return r, err
		}
		r.duration = time.Since(begin)
	} else {
		if err := b.configure(p, kind == "ours", p.dsn); err != nil {
			return r, err
		}
		if err := fill(ctx, filepath.Join(p.dir, "journal.db"), w); err != nil {
			return r, err
		}
		begin := time.Now()
		x, err := b.start(ctx, kind, p)
		if err != nil {
			return r, err
		}
		if err := x.settle(ctx); err != nil {
			return r, err
		}
		r.duration = time.Since(begin)
		if r.server, err = x.stop(); err != nil {
			return r, err
		}
	}
	r.rate = float64(len(w.deliveries)) / r.duration.Seconds()
	return r, p.judge(ctx, want(w.deliveries))
}
