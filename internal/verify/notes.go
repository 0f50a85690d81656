package verify

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver of the notes' own file

	"github.com/hookfold/hookfold/merge"
)

// notes are sets of keys, in a file, because there may be millions.
type notes struct{ db *sql.DB }

// set names a set of keys of a table.
type set string

const (
	// loose are rows that an event is about which has not landed.
	loose set = "loose"
	// inserted are rows that an event inserts, in a table in which others wait
	// for rows of somebody else.
	inserted set = "inserted"
	// suspects are rows that differed when they were looked at last.
	suspects set = "suspect"
	// drift are rows that are not as they must be.
	drift set = "drift"
)

func openNotes(ctx context.Context, dir string) (*notes, error) {
	file := "file:" + (&url.URL{Path: filepath.Join(dir, "notes.db")}).EscapedPath()
	db, err := sql.Open("sqlite", file+"?"+url.Values{"_pragma": {"journal_mode(off)", "synchronous(off)"}}.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	n := &notes{db}
	if _, err = db.ExecContext(ctx, "create table note (kind text, tbl integer, key text, about text not null default '', primary key (kind, tbl, key)) without rowid"); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

func (n *notes) close() error { return n.db.Close() }

// note is a key with what is noted about it.
type note struct {
	key   merge.Key
	about string
}

// put adds keys of a table to a set.
func (n *notes) put(ctx context.Context, s set, table int, list ...note) error {
	if len(list) == 0 {
		return nil
	}
	return n.in(ctx, func(tx *sql.Tx) error {
		st, err := tx.PrepareContext(ctx, "insert or replace into note (kind, tbl, key, about) values (?, ?, ?, ?)")
		if err != nil {
			return err
		}
		defer st.Close()
		for _, x := range list {
			if _, err := st.ExecContext(ctx, string(s), table, string(x.key), x.about); err != nil {
				return err
			}
		}
		return nil
	})
}

// drop takes keys out of a set.
func (n *notes) drop(ctx context.Context, s set, table int, keys ...merge.Key) error {
	return n.in(ctx, func(tx *sql.Tx) error {
		for _, k := range keys {
			if _, err := tx.ExecContext(ctx, "delete from note where kind = ? and tbl = ? and key = ?", string(s), table, string(k)); err != nil {
				return err
			}
		}
		return nil
	})
}

// clear empties a set.
func (n *notes) clear(ctx context.Context, s set) error {
	_, err := n.db.ExecContext(ctx, "delete from note where kind = ?", string(s))
	return err
}

func (n *notes) in(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := n.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// has tells whether a key is in a set.
func (n *notes) has(ctx context.Context, s set, table int, k merge.Key) (bool, error) {
	_, there, err := n.get(ctx, s, table, k)
	return there, err
}

// about tells what is noted about a key, "" if it is not in the set.
func (n *notes) about(ctx context.Context, s set, table int, k merge.Key) (string, error) {
	about, _, err := n.get(ctx, s, table, k)
	return about, err
}

func (n *notes) get(ctx context.Context, s set, table int, k merge.Key) (about string, there bool, err error) {
	err = n.db.QueryRowContext(ctx, "select about from note where kind = ? and tbl = ? and key = ?", string(s), table, string(k)).Scan(&about)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return about, err == nil, err
}

// page gives keys of a set behind a key, in their order; first is the one to
// begin with.
func (n *notes) page(ctx context.Context, s set, table int, after *merge.Key, limit int) ([]note, error) {
	query, args := "select key, about from note where kind = ? and tbl = ?", []any{string(s), table}
	if after != nil {
		query, args = query+" and key > ?", append(args, string(*after))
	}
	rows, err := n.db.QueryContext(ctx, query+" order by key limit ?", append(args, limit)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []note
	for rows.Next() {
		var x note
		if err := rows.Scan(&x.key, &x.about); err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, rows.Err()
}
