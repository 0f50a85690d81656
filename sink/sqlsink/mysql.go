package sqlsink

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/go-sql-driver/mysql"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// The most that one statement takes on MySQL, so that it stays below the usual
// limit of a packet.
const maxListBytes = 4 << 20

// mysqlEngine is MySQL's and MariaDB's.
type mysqlEngine struct {
	config *mysql.Config
	db     *sql.DB
	// patience ends a statement that waits for locks as long as is allowed.
	patience string
}

func openMySQL(url string, opts Options) (engine, error) {
	if opts.Pooler != "" {
		return nil, errors.New("mysql takes no pooler")
	}
	config, err := parseMySQL(url)
	if err != nil {
		return nil, err
	}
	config.Timeout = opts.ConnectTimeout
	return newMySQL(config, opts)
}

func newMySQL(config *mysql.Config, opts Options) (*mysqlEngine, error) {
	inner, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	seconds := max(1, int((opts.LockTimeout+time.Second-1)/time.Second))
	e := &mysqlEngine{config: config, patience: fmt.Sprintf("innodb_lock_wait_timeout = %d, lock_wait_timeout = %[1]d", seconds)}
	e.db = sql.OpenDB(&mysqlConnector{inner, []string{
		"set session " + mysqlSession + ", " + e.patience,
		// Whatever the server's default is: an upsert then decides by the row that it
		// has locked, and locks nothing beside it.
		"set session transaction isolation level read committed, read write",
	}})
	e.db.SetMaxOpenConns(opts.Connections)
	e.db.SetMaxIdleConns(opts.Connections)
	e.db.SetConnMaxIdleTime(5 * time.Minute)
	return e, nil
}

// mysqlSession is what makes a session ours, whatever the server's defaults are:
// what does not fit is refused, a backslash is one, and times are UTC.
const mysqlSession = "sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,NO_BACKSLASH_ESCAPES', time_zone = '+00:00', " +
	"group_concat_max_len = 1073741824, autocommit = 1, foreign_key_checks = 1, unique_checks = 1, sql_safe_updates = 0"

// mysqlConnector prepares each new session.
type mysqlConnector struct {
	driver.Connector
	statements []string
}

func (c *mysqlConnector) Connect(ctx context.Context) (driver.Conn, error) {
	made, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range c.statements {
		if _, err := made.(driver.ExecerContext).ExecContext(ctx, s, nil); err != nil {
			return nil, errors.Join(err, made.Close())
		}
	}
	return made, nil
}

func (e *mysqlEngine) dialect() compile.Dialect { return compile.MySQL }

func (e *mysqlEngine) transact(ctx context.Context, fn func(conn) error) error {
	return e.begin(ctx, nil, fn)
}

func (e *mysqlEngine) alone(ctx context.Context, fn func(conn) error) error {
	return fn(&mysqlConn{tx: e.db, e: e}) // a statement is a transaction
}

func (e *mysqlEngine) read(ctx context.Context, fn func(conn) error) error {
	return e.begin(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}, fn)
}

func (e *mysqlEngine) begin(ctx context.Context, opts *sql.TxOptions, fn func(conn) error) error {
	tx, err := e.db.BeginTx(ctx, opts)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	c := &mysqlConn{tx: tx, e: e}
	err = fn(c)
	if c.hurried { // the session lives on
		if back := c.run(ctx, "set session "+e.patience); err == nil {
			err = back
		}
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

// execute runs statements one by one: MySQL commits with each that changes the
// schema.
func (e *mysqlEngine) execute(ctx context.Context, statements []string) error {
	for _, s := range statements {
		if _, err := e.db.ExecContext(ctx, s); err != nil {
			return &statementError{s, err}
		}
	}
	return nil
}

func (e *mysqlEngine) ping(ctx context.Context) error { return e.db.PingContext(ctx) }

func (e *mysqlEngine) close() error { return e.db.Close() }

func (e *mysqlEngine) atOnce(items []item) bool { return len(split(items, maxListBytes)) == 1 }

// mysqlConn gives a statement its rows as a JSON list of lists.
type mysqlConn struct {
	tx interface {
		ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
		QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
		PrepareContext(ctx context.Context, text string) (*sql.Stmt, error)
	}
	e *mysqlEngine
	// hurried says that the session waits for hardly any lock.
	hurried bool
}

// lists makes the parameter of a statement.
func lists(params []compile.Param, items []item) (string, error) {
	b := []byte{'['}
	for i, it := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		for j, p := range params {
			if j > 0 {
				b = append(b, ',')
			}
			s, ok := it.value(p)
			if !ok {
				b = append(b, "null"...)
				continue
			}
			var err error
			if b, err = jsontext.AppendQuote(b, mysqlText(p, s)); err != nil {
				return "", fmt.Errorf("%s: %w", p.Name, err)
			}
		}
		b = append(b, ']')
	}
	return string(append(b, ']')), nil
}

// mysqlText writes a canonical text as the database reads it for a live column.
func mysqlText(p compile.Param, s string) string {
	if p.Live == nil {
		return s
	}
	switch base := p.Live.Base; p.Type.Kind {
	case merge.Bool:
		if base == "tinyint" {
			if s == "true" {
				return "1"
			}
			return "0"
		}
	case merge.Timestamp:
		if base == "datetime" || base == "timestamp" {
			return strings.TrimSuffix(strings.Replace(s, "T", " ", 1), "Z")
		}
	case merge.Bytes:
		return strings.TrimPrefix(s, `\x`)
	}
	return s
}

func (c *mysqlConn) exec(ctx context.Context, s compile.Statement, items []item) (int, error) {
	n := 0
	for _, part := range split(items, maxListBytes) {
		list, err := lists(s.Params, part)
		if err != nil {
			return n, err
		}
		wrote := 0
		for _, text := range s.All() {
			k, err := c.affected(ctx, text, list)
			if err != nil {
				return n, err
			}
			wrote += k
		}
		n += min(wrote, len(part)) // ON DUPLICATE KEY UPDATE counts a row that it changes twice
	}
	return n, nil
}

func (c *mysqlConn) affected(ctx context.Context, text string, args ...any) (int, error) {
	r, err := c.tx.ExecContext(ctx, text, args...)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}

func (c *mysqlConn) query(ctx context.Context, s compile.Statement, items []item, row func(int, []cell) error) error {
	base := 0
	for _, part := range split(items, maxListBytes) {
		list, err := lists(s.Params, part)
		if err != nil {
			return err
		}
		err = c.all(ctx, s.SQL, []any{list}, func(cols []cell) error {
			n, err := strconv.Atoi(cols[0].text)
			if err != nil {
				return errors.New("a row came without its place")
			}
			return row(base+n-1, cols[1:])
		})
		if err != nil {
			return err
		}
		base += len(part)
	}
	return nil
}

func (c *mysqlConn) all(ctx context.Context, text string, args []any, row func([]cell) error) error {
	for i, a := range args {
		if at, ok := a.(time.Time); ok {
			args[i] = at.UTC().Format("2006-01-02 15:04:05.000000")
		}
	}
	text, args = positional(text, args)
	rows, err := c.tx.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	return eachText(rows, row)
}

// numbered matches ?n, and what may hold such a text: a name or a literal.
var numbered = regexp.MustCompile("`[^`]*`|'[^']*'|\\?[0-9]+")

// positional gives each ?n of a query its argument: the database knows ? alone.
func positional(text string, args []any) (string, []any) {
	var in []any
	text = numbered.ReplaceAllStringFunc(text, func(mark string) string {
		if mark[0] != '?' {
			return mark
		}
		n, _ := strconv.Atoi(mark[1:])
		in = append(in, args[n-1])
		return "?"
	})
	if in == nil {
		return text, args
	}
	return text, in
}

// eachText reads rows whose columns are texts and small numbers.
func eachText(rows *sql.Rows, row func([]cell) error) error {
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	values := make([]sql.NullString, len(names))
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
			cols[i] = cell{v.String, v.Valid}
		}
		if err := row(cols); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (c *mysqlConn) run(ctx context.Context, text string) error {
	_, err := c.tx.ExecContext(ctx, text)
	return err
}

func (c *mysqlConn) lock(ctx context.Context, locks []lock) error {
	for len(locks) > 0 {
		n := 1
		for n < len(locks) && locks[n].table == locks[0].table {
			n++
		}
		list := []byte{'['}
		for i, l := range locks[:n] {
			if i > 0 {
				list = append(list, ',')
			}
			list = fmt.Appendf(list, "[%d]", l.n)
		}
		if _, err := c.tx.ExecContext(ctx, compile.LockRows(locks[0].table), string(append(list, ']'))); err != nil {
			return err
		}
		locks = locks[n:]
	}
	return nil
}

func (c *mysqlConn) savepoint(ctx context.Context) error { return c.run(ctx, "savepoint hookfold") }

func (c *mysqlConn) release(ctx context.Context) error {
	return c.run(ctx, "release savepoint hookfold")
}

func (c *mysqlConn) rollback(ctx context.Context) error {
	return c.run(ctx, "rollback to savepoint hookfold")
}

// defers has nothing to do: MySQL checks constraints with each row.
func (c *mysqlConn) defers(context.Context, bool) error { return nil }

// hasten lets MariaDB not wait at all; MySQL waits a second at least.
func (c *mysqlConn) hasten(ctx context.Context, tables []*sink.Table) error {
	c.hurried = true
	if err := c.run(ctx, "set session lock_wait_timeout = 1, innodb_lock_wait_timeout = 1 /*M!100300 , innodb_lock_wait_timeout = 0 */"); err != nil {
		return err
	}
	for _, t := range tables {
		if err := c.run(ctx, "select 1 from "+compile.MySQL.QuoteTable(t.Name)+" limit 0 for update"); err != nil {
			return err
		}
	}
	return nil
}

func (c *mysqlConn) side(ctx context.Context, text, table string, columns columns) (int, error) {
	n := 0
	err := entries(table, columns, func(list string) error {
		k, err := c.affected(ctx, text, list)
		n += k
		return err
	})
	return n, err
}

func (c *mysqlConn) sideRows(ctx context.Context, text, table string, columns columns, row func([]cell) error) error {
	return entries(table, columns, func(list string) error { return c.all(ctx, text, []any{list}, row) })
}

// entries makes the parameter of a statement on a table beside, as often as it
// takes: the table's name stands first in each entry.
func entries(table string, columns columns, run func(list string) error) error {
	name, err := jsontext.AppendQuote(nil, table)
	if err != nil {
		return err
	}
	if columns == nil {
		return run("[[" + string(name) + "]]")
	}
	for at := 0; at < len(columns[0]); {
		b := []byte{'['}
		for n := 0; at < len(columns[0]) && n < maxRows && len(b) < maxListBytes; n++ {
			if n > 0 {
				b = append(b, ',')
			}
			b = append(append(b, '['), name...)
			for _, column := range columns {
				b = append(b, ',')
				if x := column[at]; !x.ok {
					b = append(b, "null"...)
				} else if b, err = jsontext.AppendQuote(b, x.text); err != nil {
					return err
				}
			}
			b = append(b, ']')
			at++
		}
		if err := run(string(append(b, ']'))); err != nil {
			return err
		}
	}
	return nil
}
