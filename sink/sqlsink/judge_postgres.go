package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hookfold/hookfold/sink"
)

// judge goes by the SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html
func (p *postgresEngine) judge(err error, table string) *fault {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return &fault{Error: &sink.Error{Action: sink.Retry, Message: p.unreachable(err), Err: err}}
	}
	f := &fault{Error: &sink.Error{Code: "PostgreSQL " + e.Code, Err: err}, constraint: e.ConstraintName}
	if table == "" {
		table = e.TableName
	}
	say := func(a sink.Action, format string, args ...any) *fault {
		f.Action, f.Message = a, fmt.Sprintf(format, args...)
		return f
	}
	detail := e.Message
	if e.Detail != "" {
		detail += ": " + e.Detail
	}
	class := e.Code
	if len(class) > 2 {
		class = class[:2]
	}
	switch e.Code {
	case "40P01", "40001", "55P03":
		f.again, f.locked = true, e.Code == "55P03"
		return say(sink.Retry, "other writers were in the way: %s", e.Message)
	case "23503":
		f.On, f.Why = e.ConstraintName, sink.NeedsParent
		return say(sink.Wait, "table %s: foreign key %s: %s", table, e.ConstraintName, detail)
	case "23505":
		f.On, f.Why = e.ConstraintName, sink.UniqueValue
		return say(sink.Wait, "table %s: unique %s: another row has the value: %s", table, e.ConstraintName, detail)
	case "23P01":
		f.On = e.ConstraintName
		return say(sink.Wait, "table %s: exclusion %s: another row is in the way: %s", table, e.ConstraintName, detail)
	case "23502":
		f.schema = true // perhaps it allowed NULL when it was looked at
		f.On, f.Why = table+"."+e.ColumnName, sink.NotNull
		return say(sink.Wait, "table %s: column %s is NOT NULL and has no value yet", table, e.ColumnName)
	case "23514":
		return say(sink.Reject, "table %s: check %s refuses the row: %s", table, e.ConstraintName, e.Message)
	case "42P01", "42703", "42P10", "42704", "42883", "42804", "42P18":
		f.schema = true
		if e.Code == "42P10" {
			return say(sink.Retry, "table %s: no unique index on the key. Create one (hookfold migrate shows how); until then events wait", table)
		}
		return say(sink.Retry, "table %s: the database does not have what the config says: %s. Bring it in line (hookfold migrate shows how); until then events wait", table, e.Message)
	case "0A000": // also a plan that a change of the schema has made unusable
		f.schema = true
		return say(sink.Retry, "table %s: the database does not take the statement: %s", table, e.Message)
	case "42501":
		if e.Routine == "ExecWithCheckOptions" {
			return say(sink.Reject, "table %s: row-level security refuses the row: %s", table, e.Message)
		}
		return say(sink.Retry, "table %s: %s. Grant select, insert, update and delete to the user of the target's url; until then events wait", table, e.Message)
	case "25006":
		f.alone = true // a transaction asks to write, whatever the default
		return say(sink.Retry, "the database takes no writes now: %s", e.Message)
	case "21000":
		return say(sink.Reject, "table %s: two keys of one batch are one key to the database (a collation, or a type that is not the config's): %s", table, e.Message)
	case "42P05", "26000":
		return say(sink.Retry, "a prepared statement is not as it was left: the database is behind a pooler; say pooler: transaction at the target")
	}
	switch class {
	case "3D":
		return say(sink.Retry, noDatabase, e.Message)
	case "28":
		return say(sink.Retry, notLetIn, e.Message)
	case "08", "53", "57", "55", "58", "XX", "3F", "25", "F0":
		f.After = 0
		if e.Code == "53300" {
			f.After = time.Second
		}
		return say(sink.Retry, "the database cannot take the batch now: %s", e.Message)
	case "40":
		f.again = true
		return say(sink.Retry, "other writers were in the way: %s", e.Message)
	case "22":
		return say(sink.Reject, "table %s: a value does not fit: %s", table, withColumn(e))
	case "23":
		return say(sink.Reject, "table %s: %s refuses the row: %s", table, e.ConstraintName, detail)
	case "42":
		if e.Where == "" {
			return say(sink.Retry, "table %s: the database does not take the statement: %s", table, e.Message)
		}
		return say(sink.Reject, "table %s: a trigger or function refuses the row: %s (%s)", table, e.Message, e.Where)
	case "P0":
		return say(sink.Reject, "table %s: a trigger or function refuses the row: %s", table, e.Message)
	}
	return say(sink.Reject, "table %s: %s", table, detail)
}

func withColumn(e *pgconn.PgError) string {
	if e.ColumnName != "" {
		return e.ColumnName + ": " + e.Message
	}
	return e.Message
}

// unreachable describes an error that did not come from the server.
func (p *postgresEngine) unreachable(err error) string {
	at := fmt.Sprintf("%s:%d", p.config.ConnConfig.Host, p.config.ConnConfig.Port)
	switch {
	case errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err):
		return "the database at " + at + " did not answer in time"
	case errors.Is(err, context.Canceled):
		return "the work on the database was broken off"
	}
	return "the database at " + at + " cannot be reached: " + brief(err)
}

// What both servers say of a target's URL that is wrong.
const (
	noDatabase = "the server has no such database: %s. Create it, or correct the target's url; until then events wait"
	notLetIn   = "the database does not let the user of the target's url in: %s"
)

// brief is what an error says of a connection, on one line and each of its own
// lines once: the driver tries with and without TLS, and tells of both.
func brief(err error) string {
	var connect *pgconn.ConnectError
	var dial *net.OpError
	switch { // without the work that it was for
	case errors.As(err, &connect):
		err = connect
	case errors.As(err, &dial):
		err = dial
	}
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.Join(strings.Fields(line), " "); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}
