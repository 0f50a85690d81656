package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	mssql "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/azuread"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/sink"
)

// sqlserverEngine is SQL Server, Azure SQL, or what speaks their protocol.
type sqlserverEngine struct {
	db   *sql.DB
	at   string // the host, for messages
	as   compile.Dialect
	wait int64 // for a lock, in milliseconds
}

// openSQLServer opens sqlserver://user:password@host:1433?database=name. TLS is on
// unless the URL says otherwise.
func openSQLServer(raw string, opts Options) (engine, error) {
	dsn, at, err := sqlserverURL(raw, opts)
	if err != nil {
		return nil, err
	}
	e := &sqlserverEngine{at: at, wait: max(1, opts.LockTimeout.Milliseconds()), as: compile.SQLServer}
	switch opts.Upsert {
	case "", "insert":
	case "merge":
		e.as = compile.SQLServerMerge
	case "updlock":
		e.as = compile.SQLServerLocks
	default:
		return nil, fmt.Errorf("upsert %q is not known; there are insert, merge and updlock", opts.Upsert)
	}
	// azuread is the driver itself, with the logins of Microsoft Entra besides.
	connector, err := azuread.NewConnector(dsn)
	if err != nil {
		return nil, errors.New("the url of the database: " + strings.ReplaceAll(err.Error(), dsn, "…"))
	}
	e.db = sql.OpenDB(connector)
	e.db.SetMaxOpenConns(opts.Connections)
	e.db.SetMaxIdleConns(opts.Connections)
	e.db.SetConnMaxIdleTime(5 * time.Minute)
	return e, nil
}

// sqlserverURL completes a URL: TLS with a certificate that is checked, unless
// the URL speaks of it, and the name of the program.
func sqlserverURL(raw string, opts Options) (dsn, at string, err error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" { // without its text, which holds the password
		return "", "", errors.New("the url of the database is none: it is sqlserver://user:password@host:1433?database=name, with %2F for a / in the password")
	}
	q := u.Query()
	has := func(name string) bool {
		for k := range q {
			if strings.EqualFold(k, name) {
				return true
			}
		}
		return false
	}
	for name, value := range map[string]string{
		"encrypt": "true", "app name": "hookfold", "dial timeout": strconv.Itoa(int(max(1, opts.ConnectTimeout.Seconds()))),
	} {
		if !has(name) {
			q.Set(name, value)
		}
	}
	u.RawQuery = q.Encode()
	return u.String(), u.Host, nil
}

func (e *sqlserverEngine) dialect() compile.Dialect { return e.as }

func (e *sqlserverEngine) transact(ctx context.Context, fn func(conn) error) error {
	c, err := e.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close() // which forgets what was set
	// A statement that fails must not end the transaction, whatever the server's
	// default is: an insert may meet a row that somebody else has inserted.
	if _, err := c.ExecContext(ctx, fmt.Sprintf("set xact_abort off; set lock_timeout %d;", e.wait)); err != nil {
		var refused mssql.Error
		if !errors.As(err, &refused) {
			return err
		}
		// An engine that bounds no waits for locks: BatchTimeout does.
	}
	return beginTSQL(ctx, c, e, fn)
}

// alone is transact: a statement here is several to the server.
func (e *sqlserverEngine) alone(ctx context.Context, fn func(conn) error) error {
	return e.transact(ctx, fn)
}

func (e *sqlserverEngine) atOnce(items []item) bool { return len(split(items, maxBytes)) == 1 }

// read reads what is committed, and waits for writers as long as its caller does.
func (e *sqlserverEngine) read(ctx context.Context, fn func(conn) error) error {
	return beginTSQL(ctx, e.db, e, fn)
}

func beginTSQL(ctx context.Context, from interface {
	BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
}, e *sqlserverEngine, fn func(conn) error) error {
	tx, err := from.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	if err := fn(sqlserverConn{tx, e}); err != nil {
		return err
	}
	return tx.Commit()
}

func (e *sqlserverEngine) execute(ctx context.Context, statements []string) error {
	return beginTSQL(ctx, e.db, e, func(c conn) error {
		for _, s := range statements {
			if err := c.run(ctx, s); err != nil {
				return &statementError{s, err}
			}
		}
		return nil
	})
}

func (e *sqlserverEngine) ping(ctx context.Context) error { return e.db.PingContext(ctx) }

func (e *sqlserverEngine) close() error { return e.db.Close() }

func (e *sqlserverEngine) place(context.Context, []copied, Options) (*place, error) {
	return nil, &sink.Error{Action: sink.Reject, Message: "tables of SQL Server cannot be copied for a trial. Prove the config against a target on SQLite or PostgreSQL"}
}

func (e *sqlserverEngine) sweep(context.Context) (int, error) { return 0, nil }

type sqlserverConn struct {
	tx *sql.Tx
	e  *sqlserverEngine
}

// rowsOf writes items as a statement takes them: a JSON list of objects, all with
// all members. Each holds the number of the item.
func rowsOf(params []compile.Param, items []item) (mssql.NVarCharMax, error) {
	b := []byte{'['}
	for n, it := range items {
		if n > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"n":%d`, n)
		for i, p := range params {
			var err error
			s, ok := it.value(p)
			if b, err = appendMember(b, i+1, s, ok); err != nil {
				return "", fmt.Errorf("%s: %w", p.Name, err)
			}
		}
		b = append(b, '}')
	}
	return mssql.NVarCharMax(append(b, ']')), nil
}

func appendMember(b []byte, n int, s string, ok bool) ([]byte, error) {
	b = fmt.Appendf(b, `,"p%d":`, n)
	if !ok {
		return append(b, "null"...), nil
	}
	return jsontext.AppendQuote(b, s)
}

// entriesOf writes entries of a table beside; the parameters count from 2.
func entriesOf(columns columns) (mssql.NVarCharMax, error) {
	b := []byte{'['}
	for n := range columns[0] {
		if n > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"n":%d`, n)
		for i, column := range columns {
			var err error
			if b, err = appendMember(b, i+2, column[n].text, column[n].ok); err != nil {
				return "", err
			}
		}
		b = append(b, '}')
	}
	return mssql.NVarCharMax(append(b, ']')), nil
}

func (c sqlserverConn) exec(ctx context.Context, s compile.Statement, items []item) (int, error) {
	n := 0
	for _, part := range split(items, maxBytes) {
		rows, err := rowsOf(s.Params, part)
		if err != nil {
			return n, err
		}
		for _, text := range s.All() {
			k, err := c.write(ctx, text, sql.Named("rows", rows))
			if err != nil {
				return n, err
			}
			n += k
		}
	}
	return n, nil
}

// write runs a statement, and tells how many rows all of its parts wrote.
func (c sqlserverConn) write(ctx context.Context, text string, args ...any) (int, error) {
	r, err := c.tx.ExecContext(ctx, text, args...)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}

func (c sqlserverConn) query(ctx context.Context, s compile.Statement, items []item, row func(int, []cell) error) error {
	base := 0
	for _, part := range split(items, maxBytes) {
		rows, err := rowsOf(s.Params, part)
		if err != nil {
			return err
		}
		err = c.all(ctx, s.SQL, []any{sql.Named("rows", rows)}, func(cols []cell) error {
			n, err := strconv.Atoi(cols[0].text)
			if err != nil || n < 0 || n >= len(part) {
				return errors.New("a row came without the number of its item")
			}
			return row(base+n, cols[1:])
		})
		if err != nil {
			return err
		}
		base += len(part)
	}
	return nil
}

func (c sqlserverConn) all(ctx context.Context, text string, args []any, row func([]cell) error) error {
	rows, err := c.tx.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	return eachValue(rows, row)
}

// eachValue reads rows as texts. Times are written in UTC.
func eachValue(rows *sql.Rows, row func([]cell) error) error {
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return err
	}
	values, into := make([]any, len(types)), make([]any, len(types))
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
				cols[i] = cell{sqlserverText(v, types[i].DatabaseTypeName()), true}
			}
		}
		if err := row(cols); err != nil {
			return err
		}
	}
	return rows.Err()
}

func sqlserverText(v any, typ string) string {
	at, ok := v.(time.Time)
	switch f, real := v.(float64); {
	case real && typ == "REAL":
		return strconv.FormatFloat(f, 'g', -1, 32)
	case !ok:
		return textOf(v)
	case typ == "DATE":
		return at.Format(time.DateOnly)
	}
	return at.UTC().Format("2006-01-02T15:04:05.0000000Z")
}

func (c sqlserverConn) run(ctx context.Context, text string) error {
	_, err := c.tx.ExecContext(ctx, text)
	return err
}

// places is how many of SQL Server's locks the keys of all tables share, and as
// many again are for whole tables: each costs a call.
const places = 16

// lock takes the locks in one batch.
func (c sqlserverConn) lock(ctx context.Context, locks []lock) error {
	var numbers []int32
	for _, l := range locks {
		n := l.n % places
		if l.n >= buckets {
			n += places
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	var b strings.Builder
	b.WriteString("declare @got int;")
	for _, n := range slices.Compact(numbers) {
		fmt.Fprintf(&b, "\n%s;\nif @got < 0\nbegin\n    throw %d, N'the lock is held by another session', 1;\nend;", compile.ApplockSQL(fmt.Sprint(n), fmt.Sprint(c.e.wait)), lockHeld)
	}
	return c.run(ctx, b.String())
}

func (c sqlserverConn) savepoint(ctx context.Context) error {
	return c.run(ctx, "save transaction hookfold")
}

// release has nothing to do: the next savepoint of the name takes its place.
func (c sqlserverConn) release(context.Context) error { return nil }

func (c sqlserverConn) rollback(ctx context.Context) error {
	return c.run(ctx, "rollback transaction hookfold")
}

func (c sqlserverConn) defers(context.Context, bool) error { return nil }

func (c sqlserverConn) hasten(ctx context.Context, tables []*sink.Table) error {
	if err := c.run(ctx, "set lock_timeout 50"); err != nil {
		return err
	}
	for _, t := range tables { // waits for nothing but a lock on the whole table
		err := c.all(ctx, fmt.Sprintf("select top (1) 1 from %s as t with (updlock, rowlock, readpast)", c.e.as.QuoteTable(t.Name)), nil, func([]cell) error { return nil })
		if err != nil {
			return err
		}
	}
	return nil
}

func (c sqlserverConn) side(ctx context.Context, text, table string, columns columns) (int, error) {
	n := 0
	err := entryParts(table, columns, func(args []any) error {
		k, err := c.write(ctx, text, args...)
		n += k
		return err
	})
	return n, err
}

func (c sqlserverConn) sideRows(ctx context.Context, text, table string, columns columns, row func([]cell) error) error {
	return entryParts(table, columns, func(args []any) error { return c.all(ctx, text, args, row) })
}

// entryParts makes the parameters of a statement on a table beside, as often as
// it takes.
func entryParts(table string, columns columns, run func(args []any) error) error {
	name := sql.Named("table", table)
	if columns == nil {
		return run([]any{name})
	}
	for from := 0; from < len(columns[0]); from += maxRows {
		rows, err := entriesOf(columns.part(from, min(from+maxRows, len(columns[0]))))
		if err != nil {
			return err
		}
		if err := run([]any{name, sql.Named("rows", rows)}); err != nil {
			return err
		}
	}
	return nil
}
