package sqlsink

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

var _ sink.Once = (*sqlSink)(nil)

// onceTable remembers which events of a lane a statement was run for.
const onceTable = "hookfold_lanes"

// onceSQL is how a database keeps onceTable.
type onceSQL struct {
	create         []string
	insert, forget string
	// place writes the n-th parameter, from 0. Where it is nil each place is a ?,
	// and has its own value.
	place func(n int) string
}

var onces = map[compile.Dialect]onceSQL{
	compile.Postgres: {
		create: []string{
			"create table if not exists hookfold_lanes (lane text not null, event text not null, lane_key text not null, position bigint not null, received bigint not null, run_at timestamptz not null default now(), primary key (lane, event))",
			"create index if not exists hookfold_lanes_received on hookfold_lanes (lane, received)",
		},
		insert: "insert into hookfold_lanes (lane, event, lane_key, position, received) values ($1, $2, $3, $4, $5) on conflict (lane, event) do nothing",
		forget: "delete from hookfold_lanes where lane = $1 and received < $2",
		place:  func(n int) string { return "$" + strconv.Itoa(n+1) },
	},
	compile.SQLite: {
		create: []string{
			"create table if not exists hookfold_lanes (lane text not null, event text not null, lane_key text not null, position integer not null, received integer not null, run_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')), primary key (lane, event)) without rowid",
			"create index if not exists hookfold_lanes_received on hookfold_lanes (lane, received)",
		},
		insert: "insert into hookfold_lanes (lane, event, lane_key, position, received) values (?1, ?2, ?3, ?4, ?5) on conflict (lane, event) do nothing",
		forget: "delete from hookfold_lanes where lane = ?1 and received < ?2",
		place:  func(n int) string { return "?" + strconv.Itoa(n+1) },
	},
	compile.MySQL: {
		create: []string{
			"create table if not exists hookfold_lanes (lane varchar(63) character set utf8mb4 collate utf8mb4_bin not null, event varchar(300) character set utf8mb4 collate utf8mb4_bin not null, lane_key longtext character set utf8mb4 not null, position bigint not null, received bigint not null, run_at datetime(6) not null default current_timestamp(6), primary key (lane, event), key hookfold_lanes_received (lane, received)) engine = InnoDB",
		},
		insert: "insert into hookfold_lanes (lane, event, lane_key, position, received) values (?, ?, ?, ?, ?)", // a second time it is a duplicate
		forget: "delete from hookfold_lanes where lane = ? and received < ?",
	},
}

// text writes a statement as the database wants it, with the values of the
// parameters in the order of their numbers there.
func (o onceSQL) text(own *sink.OwnStatement, args []sink.Arg) (sql string, values []sink.Arg) {
	var b strings.Builder
	numbers := map[int]int{}
	for i, part := range own.Parts {
		b.WriteString(part)
		if i == len(own.Places) {
			break
		}
		if o.place == nil {
			values = append(values, args[own.Places[i]])
			b.WriteByte('?')
			continue
		}
		n, ok := numbers[own.Places[i]]
		if !ok {
			n = len(values)
			numbers[own.Places[i]], values = n, append(values, args[own.Places[i]])
		}
		b.WriteString(o.place(n))
	}
	return b.String(), values
}

// ownConn is a conn that runs statements of the user's own.
type ownConn interface {
	own(ctx context.Context, sql string, args []sink.Arg) error
	// read has the database read a statement with a number of parameters, without
	// running it.
	read(ctx context.Context, sql string, params int) error
	// count runs a statement on onceTable, and counts the rows it writes.
	count(ctx context.Context, sql string, args ...any) (int64, error)
}

// own binds texts, which the server reads as the types it finds in the statement.
func (c postgresConn) own(ctx context.Context, sql string, args []sink.Arg) error {
	values := []any{pgx.QueryExecModeDescribeExec} // no named statement, also behind a pooler
	for _, a := range args {
		if a.Value.IsNull() {
			values = append(values, nil)
		} else {
			values = append(values, a.Value.Text())
		}
	}
	_, err := c.tx.Exec(ctx, sql, values...)
	return err
}

func (c postgresConn) read(ctx context.Context, sql string, _ int) error {
	tx, ok := c.tx.(pgx.Tx)
	if !ok {
		return errors.New("a statement is read in a transaction")
	}
	_, err := tx.Prepare(ctx, "", sql) // without a name, also behind a pooler
	return err
}

func (c postgresConn) count(ctx context.Context, sql string, args ...any) (int64, error) {
	tag, err := c.tx.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

func (c *sqliteConn) own(ctx context.Context, sql string, args []sink.Arg) error {
	values := make([]any, len(args))
	for i, a := range args {
		if a.Value.IsNull() {
			continue
		}
		v, err := sqliteValue(a.Kind, a.Value.Text())
		if err != nil {
			return err
		}
		values[i] = v
	}
	_, err := c.tx.ExecContext(ctx, sql, values...)
	return err
}

// read asks for the plan: the driver reads a statement only when it is run.
func (c *sqliteConn) read(ctx context.Context, sql string, params int) error {
	rows, err := c.tx.QueryContext(ctx, "explain "+sql, make([]any, params)...)
	if err != nil {
		return err
	}
	return rows.Close()
}

func (c *sqliteConn) count(ctx context.Context, sql string, args ...any) (int64, error) {
	r, err := c.tx.ExecContext(ctx, sql, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// own binds texts, and times without a zone, which is UTC in the session.
func (c *mysqlConn) own(ctx context.Context, sql string, args []sink.Arg) error {
	values := make([]any, len(args))
	for i, a := range args {
		if a.Value.IsNull() {
			continue
		}
		v, err := sqliteValue(a.Kind, a.Value.Text())
		if err != nil {
			return err
		}
		if a.Kind == merge.Timestamp {
			v = strings.NewReplacer("T", " ", "Z", "").Replace(a.Value.Text())
		}
		values[i] = v
	}
	_, err := c.tx.ExecContext(ctx, sql, values...)
	return err
}

func (c *mysqlConn) read(ctx context.Context, sql string, _ int) error {
	s, err := c.tx.PrepareContext(ctx, sql)
	if err != nil {
		return err
	}
	return s.Close()
}

func (c *mysqlConn) count(ctx context.Context, sql string, args ...any) (int64, error) {
	n, err := c.affected(ctx, sql, args...)
	var m *mysql.MySQLError
	if errors.As(err, &m) && m.Number == 1062 { // the transaction goes on
		return 0, nil
	}
	return int64(n), err
}

// ledgerError is an error of onceTable, and not of the user's statement.
type ledgerError struct{ err error }

func (e *ledgerError) Error() string { return e.err.Error() }
func (e *ledgerError) Unwrap() error { return e.err }

// RunOnce is sink.Once's.
func (s *sqlSink) RunOnce(ctx context.Context, own *sink.OwnStatement, e sink.OnceEvent, args []sink.Arg) (ran bool, err error) {
	o, ok := onces[s.dialect()]
	if !ok {
		return false, &sink.Error{Action: sink.Reject, Message: "this database runs no statements of lanes"}
	}
	sql, values := o.text(own, args)
	ctx, cancel := context.WithTimeout(ctx, s.opts.BatchTimeout)
	defer cancel()
	for try := 1; ; try++ {
		err := s.transact(ctx, func(c conn) error {
			own := c.(ownConn)
			n, err := own.count(ctx, o.insert, e.Lane, e.ID, e.Key, e.Position, e.Received)
			if err != nil {
				return &ledgerError{err}
			}
			if ran = n > 0; !ran {
				return nil
			}
			return own.own(ctx, sql, values)
		})
		if err == nil {
			return ran, nil
		}
		f := s.judge(err, "")
		if f.again && try < tries && wait(ctx, try) == nil {
			continue
		}
		return false, onceError(f, err)
	}
}

// tookTooLong are the codes of what a statement does to itself, or to others that
// are at the same rows: the database is there, and what else is to be run can be.
var tookTooLong = []string{
	"PostgreSQL 57014", "PostgreSQL 55P03", "PostgreSQL 40P01", "PostgreSQL 40001",
	"MySQL 1205", "MySQL 1213", "MySQL 1317", "MySQL 1969", "MySQL 3024",
}

// onceError tells whether the statement is at fault, or the database.
func onceError(f *fault, err error) *sink.Error {
	var ledger *ledgerError
	if errors.As(err, &ledger) && f.schema {
		return operator("there is no table %s. Bring the database in line (hookfold migrate shows how); until then events wait", onceTable)
	}
	if f.Action == sink.Retry && !f.schema && !slices.Contains(tookTooLong, f.Code) {
		return f.Error
	}
	said := err.Error()
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	var lite *sqlite.Error
	switch {
	case errors.As(err, &pg):
		if said = pg.Message; pg.Detail != "" {
			said += ": " + pg.Detail
		}
	case errors.As(err, &my):
		said = my.Message
	case errors.As(err, &lite):
		said = plainText(lite.Error())
	}
	return &sink.Error{Action: sink.Reject, Code: f.Code, Message: "the statement fails: " + said, Err: err}
}

// CheckOnce is sink.Once's.
func (s *sqlSink) CheckOnce(ctx context.Context, own *sink.OwnStatement) error {
	o, ok := onces[s.dialect()]
	if !ok {
		return &sink.Error{Action: sink.Reject, Message: "this database runs no statements of lanes"}
	}
	n := 0
	for _, p := range own.Places {
		n = max(n, p+1)
	}
	sql, values := o.text(own, make([]sink.Arg, n))
	ctx, cancel := context.WithTimeout(ctx, s.opts.BatchTimeout)
	defer cancel()
	if err := s.transact(ctx, func(c conn) error { return c.(ownConn).read(ctx, sql, len(values)) }); err != nil {
		return onceError(s.judge(err, ""), err)
	}
	return nil
}

// PlanOnce is sink.Once's.
func (s *sqlSink) PlanOnce(ctx context.Context) ([]string, error) {
	live, err := s.inspect(ctx, onceTable)
	if err != nil {
		return nil, s.judged(err, onceTable)
	}
	if live.Exists {
		return nil, nil
	}
	return onces[s.dialect()].create, nil
}

// ForgetOnce is sink.Once's.
func (s *sqlSink) ForgetOnce(ctx context.Context, lane string, before time.Time) (n int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.BatchTimeout)
	defer cancel()
	err = s.transact(ctx, func(c conn) (err error) {
		n, err = c.(ownConn).count(ctx, onces[s.dialect()].forget, lane, before.UnixMicro())
		return err
	})
	if err != nil {
		return 0, s.judged(err, onceTable)
	}
	return n, nil
}
