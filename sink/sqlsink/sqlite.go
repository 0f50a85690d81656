package sqlsink

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/apd/v3"
	sqlite "modernc.org/sqlite"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// sqliteEngine has one connection that writes, since a SQLite database takes
// one writer at a time, and some that read beside it.
type sqliteEngine struct {
	path          string
	writer, reads *sql.DB
}

func openSQLite(target string, opts Options) (engine, error) {
	if opts.Pooler != "" {
		return nil, errors.New("sqlite takes no pooler")
	}
	path := strings.TrimPrefix(target, "sqlite:")
	if abs, ok := strings.CutPrefix(path, "//"); ok {
		path = abs // sqlite:///file
	}
	if path == "" || path == ":memory:" {
		return nil, errors.New("sqlite: name a file: sqlite:rows.db")
	}
	if err := registerDecimal(); err != nil {
		return nil, err
	}
	// A commit is on disk before it is told: what the sink has, the journal may
	// forget.
	synchronous := "synchronous(full)"
	if opts.Volatile {
		synchronous = "synchronous(off)"
	}
	return newSQLite(path, opts, synchronous, "foreign_keys(on)")
}

func newSQLite(path string, opts Options, pragmas ...string) (*sqliteEngine, error) {
	e := &sqliteEngine{path: path}
	busy := fmt.Sprintf("busy_timeout(%d)", min(opts.BatchTimeout, 20*time.Second).Milliseconds())
	writer := url.Values{"_txlock": {"immediate"}, "_pragma": append([]string{busy, "journal_mode(wal)"}, pragmas...)}
	// Who only reads makes no file and leaves the journal mode as it is.
	reads := url.Values{"_txlock": {"deferred"}, "mode": {"rw"}, "_pragma": {busy, "query_only(on)"}}
	var err error
	file := "file:" + (&url.URL{Path: path}).EscapedPath() + "?"
	if e.writer, err = sql.Open("sqlite", file+writer.Encode()); err != nil {
		return nil, err
	}
	e.writer.SetMaxOpenConns(1)
	if e.reads, err = sql.Open("sqlite", file+reads.Encode()); err != nil {
		return nil, err
	}
	e.reads.SetMaxOpenConns(opts.Connections)
	return e, nil
}

// registerDecimal gives SQLite the function that compares decimals. The driver
// keeps functions for the whole process.
var registerDecimal = sync.OnceValue(func() error {
	return sqlite.RegisterDeterministicScalarFunction(compile.DecimalFunction, 2,
		func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			if args[0] == nil || args[1] == nil {
				return nil, nil
			}
			a, err := decimalOf(args[0])
			if err != nil {
				return nil, err
			}
			b, err := decimalOf(args[1])
			if err != nil {
				return nil, err
			}
			return int64(a.Cmp(b)), nil
		})
})

func decimalOf(v driver.Value) (*apd.Decimal, error) {
	d, _, err := apd.NewFromString(textOf(v))
	if err != nil {
		return nil, fmt.Errorf("%q is not a number", textOf(v))
	}
	return d, nil
}

func (e *sqliteEngine) dialect() compile.Dialect { return compile.SQLite }

func (e *sqliteEngine) transact(ctx context.Context, fn func(conn) error) error {
	if err := e.make(); err != nil {
		return err
	}
	return begin(ctx, e.writer, fn)
}

// make makes the file if it is not there, readable by its owner alone, since
// rows hold personal data.
func (e *sqliteEngine) make() error {
	f, err := os.OpenFile(e.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return f.Close()
}

func (e *sqliteEngine) alone(ctx context.Context, fn func(conn) error) error {
	return e.transact(ctx, fn) // a statement per row, and no round trips
}

func (e *sqliteEngine) atOnce([]item) bool { return true }

func (e *sqliteEngine) read(ctx context.Context, fn func(conn) error) error {
	return begin(ctx, e.reads, fn)
}

func begin(ctx context.Context, db *sql.DB, fn func(conn) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	if err := fn(&sqliteConn{tx, map[string]*sql.Stmt{}}); err != nil {
		return err
	}
	return tx.Commit()
}

func (e *sqliteEngine) execute(ctx context.Context, statements []string) error {
	if err := e.make(); err != nil {
		return err
	}
	for _, s := range statements {
		if _, err := e.writer.ExecContext(ctx, s); err != nil {
			return &statementError{s, err}
		}
	}
	return nil
}

func (e *sqliteEngine) ping(ctx context.Context) error {
	if !e.exists() {
		_, err := os.Stat(filepath.Dir(e.path)) // the first write makes the file
		return err
	}
	// Opening is not enough: SQLite reads the file with the first query.
	var n int
	return e.reads.QueryRowContext(ctx, "select count(*) from sqlite_schema").Scan(&n)
}

// exists tells whether the file is there.
func (e *sqliteEngine) exists() bool {
	_, err := os.Stat(e.path)
	return !errors.Is(err, fs.ErrNotExist)
}

func (e *sqliteEngine) close() error {
	return errors.Join(e.writer.Close(), e.reads.Close())
}

type sqliteConn struct {
	tx       *sql.Tx
	prepared map[string]*sql.Stmt
}

// prepare returns a statement of the transaction.
func (c *sqliteConn) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	if s := c.prepared[text]; s != nil {
		return s, nil
	}
	s, err := c.tx.PrepareContext(ctx, text) // closed with the transaction
	if err == nil {
		c.prepared[text] = s
	}
	return s, err
}

func bind(params []compile.Param, it item) ([]any, error) {
	args := make([]any, len(params))
	for i, p := range params {
		s, ok := it.value(p)
		if !ok {
			continue
		}
		v, err := sqliteValue(p.Type.Kind, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		args[i] = v
	}
	return args, nil
}

// sqliteValue gives a canonical text the storage class of its type.
func sqliteValue(k merge.TypeKind, s string) (any, error) {
	switch k {
	case merge.Bool:
		if s == "true" {
			return int64(1), nil
		}
		return int64(0), nil
	case merge.Int:
		return strconv.ParseInt(s, 10, 64)
	case merge.Float:
		return strconv.ParseFloat(s, 64)
	case merge.Bytes:
		return hex.DecodeString(strings.TrimPrefix(s, `\x`))
	}
	return s, nil
}

func (c *sqliteConn) exec(ctx context.Context, s compile.Statement, items []item) (int, error) {
	n := 0
	for _, text := range s.All() {
		stmt, err := c.prepare(ctx, text)
		if err != nil {
			return n, err
		}
		for _, it := range items {
			args, err := bind(s.Params, it)
			if err != nil {
				return n, err
			}
			r, err := stmt.ExecContext(ctx, args...)
			if err != nil {
				return n, err
			}
			k, err := r.RowsAffected()
			if err != nil {
				return n, err
			}
			n += int(k)
		}
	}
	return n, nil
}

func (c *sqliteConn) query(ctx context.Context, s compile.Statement, items []item, row func(int, []cell) error) error {
	stmt, err := c.prepare(ctx, s.SQL)
	if err != nil {
		return err
	}
	for i, it := range items {
		args, err := bind(s.Params, it)
		if err != nil {
			return err
		}
		rows, err := stmt.QueryContext(ctx, args...)
		if err != nil {
			return err
		}
		if err := eachRow(rows, func(cols []cell) error { return row(i, cols) }); err != nil {
			return err
		}
	}
	return nil
}

func (c *sqliteConn) all(ctx context.Context, text string, args []any, row func([]cell) error) error {
	for i, a := range args {
		if at, ok := a.(time.Time); ok {
			args[i] = at.UTC().Format("2006-01-02T15:04:05.000000Z")
		}
	}
	rows, err := c.tx.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	return eachRow(rows, row)
}

func (c *sqliteConn) run(ctx context.Context, text string) error {
	_, err := c.tx.ExecContext(ctx, text)
	return err
}

// lock has nothing to do: a transaction that writes is alone.
func (c *sqliteConn) lock(context.Context, []lock) error { return nil }

func (c *sqliteConn) savepoint(ctx context.Context) error { return c.run(ctx, "savepoint hookfold") }

func (c *sqliteConn) release(ctx context.Context) error {
	return c.run(ctx, "release savepoint hookfold")
}

func (c *sqliteConn) rollback(ctx context.Context) error {
	return c.run(ctx, "rollback to savepoint hookfold")
}

func (c *sqliteConn) defers(context.Context, bool) error { return nil }

// hasten has nothing to do: nobody is waited for once the transaction has begun.
func (c *sqliteConn) hasten(context.Context, []*sink.Table) error { return nil }

func (c *sqliteConn) side(ctx context.Context, text, table string, columns columns) (int, error) {
	stmt, err := c.prepare(ctx, text)
	if err != nil {
		return 0, err
	}
	n := 0
	err = sideArgs(table, columns, func(args []any) error {
		r, err := stmt.ExecContext(ctx, args...)
		if err != nil {
			return err
		}
		k, err := r.RowsAffected()
		n += int(k)
		return err
	})
	return n, err
}

func (c *sqliteConn) sideRows(ctx context.Context, text, table string, columns columns, row func([]cell) error) error {
	stmt, err := c.prepare(ctx, text)
	if err != nil {
		return err
	}
	return sideArgs(table, columns, func(args []any) error {
		rows, err := stmt.QueryContext(ctx, args...)
		if err != nil {
			return err
		}
		return eachRow(rows, row)
	})
}

// sideArgs makes the parameters of a statement on a table beside, entry by entry.
func sideArgs(table string, columns columns, run func(args []any) error) error {
	if columns == nil {
		return run([]any{table})
	}
	args := make([]any, 1+len(columns))
	args[0] = table
	for i := range columns[0] {
		for j, column := range columns {
			args[1+j] = nil
			if column[i].ok {
				args[1+j] = column[i].text
			}
		}
		if err := run(args); err != nil {
			return err
		}
	}
	return nil
}

func eachRow(rows *sql.Rows, row func([]cell) error) error {
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	values := make([]any, len(names))
	into := make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		cols := make([]cell, len(values))
		for i, v := range values {
			if v != nil {
				cols[i] = cell{textOf(v), true}
			}
		}
		if err := row(cols); err != nil {
			return err
		}
	}
	return rows.Err()
}

// textOf writes a value of the driver; bytes become hexadecimal digits.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []byte:
		return `\x` + hex.EncodeToString(v)
	case bool:
		return strconv.FormatBool(v)
	}
	return fmt.Sprint(v)
}
