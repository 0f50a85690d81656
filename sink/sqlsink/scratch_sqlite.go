package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookfold/hookfold/internal/compile"
)

// The files of a place: its database, and one whose time of change tells when it
// was last in use.
const (
	placeFile = "rows.db"
	aliveFile = "alive"
)

const sqliteCopy = `select type, sql from sqlite_schema
where tbl_name = ?1 collate nocase and sql is not null and type in ('table', 'index', 'trigger')
order by type = 'index', type = 'trigger', name`

// place makes a database of its own in the folder for temporary files.
func (e *sqliteEngine) place(ctx context.Context, tables []copied, opts Options) (*place, error) {
	dir, err := os.MkdirTemp("", placePrefix)
	if err != nil {
		return nil, err
	}
	p := &place{remove: func(context.Context) error { return os.RemoveAll(dir) }}
	alive := filepath.Join(dir, aliveFile)
	p.beat = func(context.Context) error {
		now := time.Now()
		return os.Chtimes(alive, now, now)
	}
	fail := func(err error) (*place, error) { return nil, errors.Join(err, os.RemoveAll(dir)) }
	if err := os.WriteFile(alive, nil, 0o600); err != nil {
		return fail(err)
	}
	pragmas := []string{"synchronous(off)", "foreign_keys(on)"}
	var statements []string
	for _, t := range tables {
		p.tables = append(p.tables, t.Table)
		if !t.live.Exists {
			continue
		}
		parts := compile.SplitTable(t.Name)
		triggers := 0
		err := queryRows(ctx, e.reads, sqliteCopy, []any{parts[len(parts)-1]}, func(scan func(...any) error) error {
			var kind, text string
			err := scan(&kind, &text)
			if kind == "trigger" {
				triggers++
				return err
			}
			statements = append(statements, text)
			return err
		})
		if err != nil {
			return fail(err)
		}
		if triggers > 0 {
			p.notes = append(p.notes, fmt.Sprintf("the triggers of %s do not run", t.Name))
		}
		if out := t.outside(tables); len(out) > 0 {
			pragmas[1] = "foreign_keys(off)"
			p.notes = append(p.notes, fmt.Sprintf("no foreign key holds, because %s names rows of %s, which Hookfold does not write", t.Name, strings.Join(out, ", ")))
		}
	}
	made, err := newSQLite(filepath.Join(dir, placeFile), opts, pragmas...)
	if err != nil {
		return fail(err)
	}
	p.engine = made
	if err := made.execute(ctx, statements); err != nil {
		return fail(errors.Join(err, made.close()))
	}
	p.empty = made.empty
	return p, nil
}

func (e *sqliteEngine) empty(ctx context.Context, tables []string) error {
	return e.transact(ctx, func(c conn) error {
		if err := c.run(ctx, "pragma defer_foreign_keys = on"); err != nil {
			return err
		}
		for _, t := range tables {
			if err := c.run(ctx, "delete from "+compile.QuoteTable(t)); err != nil {
				return err
			}
		}
		return nil
	})
}

// sweep removes the folders of databases that nobody marks any more. Those of
// other users are theirs to remove.
func (e *sqliteEngine) sweep(context.Context) (int, error) {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), placePrefix+"*"))
	if err != nil {
		return 0, err
	}
	n := 0
	for _, dir := range dirs {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue
		}
		info, err := os.Lstat(filepath.Join(dir, aliveFile))
		if errors.Is(err, fs.ErrNotExist) {
			info, err = os.Lstat(dir) // it was ended before it could make the file
		}
		if err != nil || time.Since(info.ModTime()) < deadAfter {
			continue
		}
		if err := os.RemoveAll(dir); err != nil && !errors.Is(err, fs.ErrPermission) {
			return n, err
		} else if err == nil {
			n++
		}
	}
	return n, nil
}
