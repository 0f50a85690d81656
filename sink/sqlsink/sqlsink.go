// Package sqlsink is the sink of SQL databases: PostgreSQL, MySQL, MariaDB, SQL Server and SQLite. Package
// compile writes its statements; this package runs them.
package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Options say how a sink uses its database.
type Options struct {
	// Pooler is "transaction" if the database is behind a pooler that gives a
	// connection for one transaction at a time (PgBouncer, Supavisor): then no
	// prepared statement and no other state outlives a statement. "" is none.
	Pooler string
	// Connections is the most connections; default 4. SQLite has one writer,
	// whatever it says.
	Connections int
	// ConnectTimeout bounds the making of a connection; default 5 s.
	ConnectTimeout time.Duration
	// BatchTimeout bounds one try of a batch or any other call, so that a server
	// that does not answer does not hold its caller; default 60 s.
	BatchTimeout time.Duration
	// LockTimeout bounds the wait for a lock that another session holds; default
	// 1 s. After it the rest of a batch goes on without the rows that are held.
	// SQLite has one lock for all, and waits for it as long as for anything else.
	LockTimeout time.Duration
	// Rewrite changes the statements of a table before they are used; nil leaves
	// them. It is for statements of one's own, to be proven: nothing else here
	// looks after what they do. In a Scratch of PostgreSQL a table's name without
	// a schema means the copy.
	Rewrite func(t *sink.Table, s *compile.Statements)
	// Upsert is the form of an upsert on SQL Server: insert ("" too), merge or
	// updlock. All of them are right; merge and updlock lock more.
	Upsert string
	// AnyAge lets changes land that are so old that deletes newer than they are
	// may have been purged.
	AnyAge bool
	// Volatile says that what is written need not outlive the process, so that
	// nothing waits for the disk: for scratch databases. SQLite only.
	Volatile bool
}

func (o Options) withDefaults() Options {
	if o.Connections <= 0 {
		o.Connections = 4
	}
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = 5 * time.Second
	}
	if o.BatchTimeout <= 0 {
		o.BatchTimeout = 60 * time.Second
	}
	if o.LockTimeout <= 0 {
		o.LockTimeout = time.Second
	}
	return o
}

// Open opens the sink of a URL, postgres://…, mysql://…, sqlserver://… or sqlite:FILE, for the tables that
// it is to write; nil is any. It does not connect: a database that is down is
// met by the first call that needs it. An error is a URL, an option or a pair
// of tables that cannot be right.
func Open(ctx context.Context, url string, tables []*sink.Table, opts Options) (sink.Sink, error) {
	opts = opts.withDefaults()
	for i, a := range tables {
		if err := sink.Refused(a, compile.Refuses(a)); err != nil {
			return nil, fmt.Errorf("open sink: %w", err)
		}
		for _, b := range tables[:i] {
			if column := compile.Shared(a, b); column != "" {
				return nil, fmt.Errorf("open sink: %s and %s are both table %s and both write %s, so each would take the other's version for its own. Make them one table with several events, or give them scopes of their own", b.Table.Name, a.Table.Name, a.Name, column)
			}
		}
	}
	var e engine
	var err error
	scheme, _, _ := strings.Cut(url, ":")
	switch scheme {
	case "postgres", "postgresql":
		e, err = openPostgres(ctx, url, opts)
	case "sqlite":
		e, err = openSQLite(url, opts)
	case "mysql", "mariadb":
		e, err = openMySQL(url, opts)
	case "sqlserver":
		e, err = openSQLServer(url, opts)
	default:
		return nil, fmt.Errorf("open sink: %q is not a database of this sink; there are postgres://…, mysql://…, sqlserver://… and sqlite:FILE", scheme)
	}
	if err != nil {
		return nil, fmt.Errorf("open sink: %w", err)
	}
	return &sqlSink{engine: e, opts: opts, all: tables, tables: map[tableKey]*tableState{}}, nil
}

// engine is what databases differ in.
type engine interface {
	dialect() compile.Dialect
	// transact runs fn in a transaction that is committed if fn returns nil.
	transact(ctx context.Context, fn func(conn) error) error
	// alone runs fn, which runs one statement, and spares it the round trips of
	// BEGIN and COMMIT where they cost.
	alone(ctx context.Context, fn func(conn) error) error
	// atOnce tells whether one run of a statement takes so many items.
	atOnce(items []item) bool
	// read runs fn where it can read, with one view for all reads.
	read(ctx context.Context, fn func(conn) error) error
	// inspect reads the live schema of a table by its name in the config.
	inspect(ctx context.Context, name string) (*sink.Live, error)
	execute(ctx context.Context, statements []string) error
	ping(ctx context.Context) error
	// place makes a place for trials, with copies of tables as they live; sweep
	// removes those that nobody holds any more.
	place(ctx context.Context, tables []copied, opts Options) (*place, error)
	sweep(ctx context.Context) (int, error)
	// judge says what to do about an error of the database.
	judge(err error, table string) *fault
	close() error
}

// fault is an error of the database, judged.
type fault struct {
	*sink.Error
	// again: the same transaction may succeed at once (deadlock).
	again bool
	// locked: another session holds a lock that the batch needs.
	locked bool
	// alone: it may succeed in a transaction of its own.
	alone bool
	// schema: the live schema is not what was known of it.
	schema bool
	// constraint is the name of the constraint that is violated, columns those of
	// a unique index where the database names no constraint.
	constraint string
	columns    []string
}

// conn runs statements in a transaction.
type conn interface {
	// exec runs a statement for items, and tells how many rows it wrote.
	exec(ctx context.Context, s compile.Statement, items []item) (int, error)
	// query runs a statement for items, and gives each row it returns with the
	// place of its item.
	query(ctx context.Context, s compile.Statement, items []item, row func(n int, cols []cell) error) error
	// all runs a query without items; an argument may be a time.
	all(ctx context.Context, sql string, args []any, row func(cols []cell) error) error
	// run runs a statement that takes nothing and gives nothing.
	run(ctx context.Context, sql string) error
	// lock takes locks until the transaction ends, in the order given.
	lock(ctx context.Context, locks []lock) error
	// savepoint marks what the transaction has done; release forgets the mark, and
	// rollback takes back what was done since.
	savepoint(ctx context.Context) error
	release(ctx context.Context) error
	rollback(ctx context.Context) error
	// defers says whether constraints that can be are checked at the commit, or
	// with each statement. A database that has none such leaves it.
	defers(ctx context.Context, later bool) error
	// hasten lets the transaction wait for hardly any lock, and fails if one of the
	// tables is locked as a whole: then no row is at fault.
	hasten(ctx context.Context, tables []*sink.Table) error
	// side runs a statement on a table beside, for entries given by column, and
	// sideRows one that gives rows. Without columns it runs once.
	side(ctx context.Context, sql, table string, columns columns) (int, error)
	sideRows(ctx context.Context, sql, table string, columns columns, row func(cols []cell) error) error
}

// item is a row to be written.
type item struct {
	row *merge.Row
	// stored are the versions that lie beside the row, by name.
	stored map[string]string
	// part is the row of the batch, where row is one made of it.
	part *merge.Row
}

func (it item) value(p compile.Param) (string, bool) {
	if p.Kind == compile.StoredScope || p.Kind == compile.StoredFirst {
		v, ok := it.stored[strings.TrimPrefix(p.Name, "stored_")]
		return v, ok && v != ""
	}
	return p.Of(it.row)
}

// cell is a value that was read.
type cell struct {
	text string
	ok   bool // false is NULL
}

type sqlSink struct {
	engine
	opts Options
	all  []*sink.Table // of the config, if it is known

	mu     sync.Mutex
	tables map[tableKey]*tableState
}

// operator is an error that a person mends at the database: no event is at
// fault, so the batch is kept and tried again.
func operator(format string, args ...any) *sink.Error {
	err := fmt.Errorf(format, args...)
	return &sink.Error{Action: sink.Retry, Message: err.Error(), Err: errors.Unwrap(err)}
}

const (
	tries       = 8 // of one batch inside Apply, when writers got into each other's way
	lockedTries = 3 // of one that cannot get its locks, though no row of it seems to be held
)

// Apply is sink.Sink's.
func (s *sqlSink) Apply(ctx context.Context, b *sink.Batch) (*sink.Result, error) {
	refreshed := false
	for try := 1; ; try++ {
		res, err := s.try(ctx, b, try == 1)
		if err == nil {
			return res, nil
		}
		f := s.fault(err)
		switch {
		case f == nil && !refreshed: // perhaps the table has changed since it was looked at
			refreshed = true
			s.forget()
			continue
		case f == nil:
			return nil, err
		case ctx.Err() != nil:
			return nil, f.Error
		case f.schema && !refreshed:
			refreshed = true
			s.forget()
			continue
		case f.alone && try == 1:
			continue
		case f.locked && try > 1:
			if held := s.heldRows(ctx, b, f); held != nil {
				return nil, held
			}
			if try < lockedTries {
				continue
			}
			return s.culprits(ctx, b, f)
		case f.again && try < tries:
			if wait(ctx, try) != nil {
				return nil, f.Error
			}
			continue
		}
		if f.schema {
			s.forget()
		}
		if f.Action != sink.Retry {
			return s.culprits(ctx, b, f)
		}
		return nil, f.Error
	}
}

// wait sleeps a short random time that grows with the tries.
func wait(ctx context.Context, try int) error {
	t := time.NewTimer(time.Duration(1+rand.IntN(10<<try)) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// try applies a batch once; hopeful without a transaction around it if it is one
// statement, whatever the database's defaults for transactions are.
func (s *sqlSink) try(ctx context.Context, b *sink.Batch, hopeful bool) (*sink.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.BatchTimeout)
	defer cancel()
	states := make([]*tableState, len(b.Groups))
	for i, g := range b.Groups {
		st, err := s.state(ctx, g.Table)
		if err != nil {
			return nil, err
		}
		states[i] = st
	}
	if err := misfits(b, states); err != nil {
		return nil, err
	}
	within := s.transact
	if hopeful && !b.Park && s.oneStatement(b, states) {
		within = s.alone
	}
	var res *sink.Result
	err := within(ctx, func(c conn) error {
		a := &applier{conn: c, ctx: ctx, anyAge: s.opts.AnyAge, parks: b.Park, dialect: s.dialect()}
		if err := a.write(b.Groups, states); err != nil {
			return err
		}
		if len(a.faults) > 0 {
			return &sink.BatchError{Rows: a.faults}
		}
		res = &a.result
		return nil
	})
	return res, err
}

// oneStatement tells whether a batch is written by a single statement.
func (s *sqlSink) oneStatement(b *sink.Batch, states []*tableState) bool {
	if len(b.Groups) != 1 || states[0].statements.Held != nil || states[0].statements.Beside != nil || states[0].statements.Occupants != nil {
		return false
	}
	rows := b.Groups[0].Rows
	w := &writer{s: states[0].statements}
	return len(rows) > 0 && w.s.Upsert.Then == nil && w.s.Stub.Then == nil && s.atOnce(itemsOf(rows)) && !slices.ContainsFunc(rows, func(r *merge.Row) bool {
		return r.IfMissing != merge.Insert || len(w.lacks(r)) > 0
	})
}

func itemsOf(rows []*merge.Row) []item {
	items := make([]item, len(rows))
	for i, r := range rows {
		items[i].row = r
	}
	return items
}

// misfits finds the values that the database would cut or round.
func misfits(b *sink.Batch, states []*tableState) error {
	var rows []sink.RowError
	for i, g := range b.Groups {
		for _, r := range g.Rows {
			if err := compile.FitRow(states[i].live, g.Table.Table, r); err != nil {
				rows = append(rows, sink.RowError{RowRef: sink.RowRef{Table: g.Table, Row: r},
					Err: &sink.Error{Action: sink.Reject, Message: g.Table.Table.Name + "." + err.Error(), Err: err}})
			}
		}
	}
	if rows != nil {
		return &sink.BatchError{Rows: rows}
	}
	return nil
}

// tableError is an error met while a table was written.
type tableError struct {
	table string
	err   error
}

func (e *tableError) Error() string { return e.table + ": " + e.err.Error() }
func (e *tableError) Unwrap() error { return e.err }

func located(err error, table string) error {
	if err == nil {
		return nil
	}
	return &tableError{table, err}
}

// fault judges an error; nil means that it is already judged.
func (s *sqlSink) fault(err error) *fault {
	var batch *sink.BatchError
	if errors.As(err, &batch) {
		return nil
	}
	var known *sink.Error
	if errors.As(err, &known) {
		return &fault{Error: known}
	}
	table := ""
	var at *tableError
	if errors.As(err, &at) {
		table = at.table
	}
	f := s.judge(err, table)
	if f.Why == sink.UniqueValue && s.ofKey(f, table) {
		f.again = true // somebody else has inserted the row: now it is there
	}
	return f
}

// ofKey tells whether a fault is of the unique index on the key of a table.
func (s *sqlSink) ofKey(f *fault, table string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, st := range s.tables {
		if k.name == table {
			return slices.ContainsFunc(st.live.Uniques, func(u sink.Unique) bool { return violated(u, f) && isKey(st.table, u.Columns) })
		}
	}
	return false
}

func isKey(t *sink.Table, columns []string) bool {
	return len(columns) == len(t.Key) && !slices.ContainsFunc(t.Key, func(k merge.KeyColumn) bool { return !slices.Contains(columns, k.Name) })
}

// Ping is sink.Sink's.
func (s *sqlSink) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.ConnectTimeout)
	defer cancel()
	if err := s.ping(ctx); err != nil {
		return s.judged(err, "")
	}
	return nil
}

// Close is sink.Sink's.
func (s *sqlSink) Close() error { return s.close() }
