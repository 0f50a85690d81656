package sqlsink_test

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sinktest"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// plainMySQL is plainSink on MySQL: a row at a time, by an INSERT that overwrites
// what is there.
type plainMySQL struct {
	sink.Sink
	db    *sql.DB
	fault func() sinktest.Fault
}

func plainWriterMySQL(t testing.TB, fault func() sinktest.Fault) sink.Sink {
	t.Helper()
	url := testdb.MySQL(t)
	db := testdb.ConnectMySQL(t, url)
	db.SetMaxOpenConns(8)
	t.Cleanup(func() { db.Close() })
	return &plainMySQL{open(t, url, nil, sqlsink.Options{}), db, fault}
}

// Known is sink.Knower's.
func (p *plainMySQL) Known(ctx context.Context, t *sink.Table, keys []merge.Key) ([]bool, error) {
	return p.Sink.(sink.Knower).Known(ctx, t, keys)
}

// Apply is sink.Sink's.
func (p *plainMySQL) Apply(ctx context.Context, b *sink.Batch) (*sink.Result, error) {
	res := &sink.Result{}
	err := p.within(ctx, func(tx *sql.Conn) error {
		for _, g := range b.Groups {
			live, err := p.Sink.Inspect(ctx, g.Table)
			if err != nil {
				return err
			}
			if !live.Exists {
				return &sink.Error{Action: sink.Retry, Message: "there is no table " + g.Table.Name}
			}
			for _, r := range g.Rows {
				if err := p.row(ctx, tx, g.Table, live, r, res); err != nil {
					return err
				}
			}
		}
		return nil
	})
	var e *mysql.MySQLError
	switch {
	case err == nil:
		return res, nil
	case errors.As(err, &e) && e.Number != 1213 && e.Number != 1205:
		return nil, &sink.Error{Action: sink.Reject, Message: e.Message, Err: err}
	}
	return nil, err
}

// within runs a transaction in a session whose zone is UTC.
func (p *plainMySQL) within(ctx context.Context, do func(*sql.Conn) error) error {
	c, err := p.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	run := func(s string) {
		if err == nil {
			_, err = c.ExecContext(ctx, s)
		}
	}
	run("set time_zone = '+00:00', @hookfold_guard = null")
	run("begin")
	if err != nil {
		return err
	}
	at := sinktest.NoFault
	if err = do(c); err == nil && p.fault != nil {
		if at = p.fault(); at == sinktest.BeforeCommit {
			err = errors.New("the connection was cut")
		}
	}
	if err != nil {
		_, back := c.ExecContext(ctx, "rollback")
		return errors.Join(err, back)
	}
	if run("commit"); err == nil && at == sinktest.AfterCommit {
		err = errors.New("the connection was cut")
	}
	return err
}

func (p *plainMySQL) row(ctx context.Context, tx *sql.Conn, t *sink.Table, live *sink.Live, r *merge.Row, res *sink.Result) error {
	if strings.HasSuffix(string(r.Key), " ") {
		return &sink.Error{Action: sink.Reject, Message: "the collation does not see a space at the end"}
	}
	var names, marks, sets, on, same []string
	var args []any
	for i, c := range plainColumns(t, r) {
		name := "`" + c.name + "`"
		names, marks, sets, same = append(names, name), append(marks, "?"), append(sets, fmt.Sprintf("%s = values(%[1]s)", name)), append(same, name+" = ?")
		args = append(args, mysqlValue(t, live, c))
		if i < len(t.Key) {
			on = append(on, name+" = ?")
		}
	}
	table := compile.MySQL.QuoteTable(t.Name)
	statement := fmt.Sprintf("insert into %s (%s) values (%s) on duplicate key update %s", table, strings.Join(names, ", "), strings.Join(marks, ", "), strings.Join(sets, ", "))
	if r.IfMissing != merge.Insert {
		var n int
		where := strings.Join(on, " and ")
		if err := tx.QueryRowContext(ctx, "select count(*) from "+table+" where "+where, args[:len(on)]...).Scan(&n); err != nil {
			return err
		}
		if n == 0 {
			if r.IfMissing == merge.Wait {
				res.Absent = append(res.Absent, sink.RowRef{Table: t, Row: r})
			} else {
				res.Unchanged++
			}
			return nil
		}
		if _, err := tx.ExecContext(ctx, "set @hookfold_guard = 'on'"); err != nil {
			return err
		}
		statement = "update " + table + " set " + strings.Join(same, ", ") + " where " + where
		args = append(args, args[:len(on)]...)
	}
	out, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	if n, err := out.RowsAffected(); err != nil {
		return err
	} else if n > 0 {
		res.Written++
	} else {
		res.Unchanged++
	}
	return nil
}

// mysqlValue is a value as an own writer sends it.
func mysqlValue(t *sink.Table, live *sink.Live, c plainColumn) any {
	if c.value == nil {
		return nil
	}
	s, kind := *c.value, merge.Text
	if i := t.Column(c.name); i >= 0 {
		kind = t.Columns[i].Type.Kind
	}
	for _, k := range t.Key {
		if k.Name == c.name {
			kind = k.Type.Kind
		}
	}
	switch kind {
	case merge.Bool:
		return s == "true"
	case merge.Timestamp:
		return strings.TrimSuffix(strings.Replace(s, "T", " ", 1), "Z")
	case merge.TextArray:
		return c.list
	case merge.Bytes:
		b, _ := hex.DecodeString(strings.TrimPrefix(s, `\x`))
		return b
	}
	return s
}

// TestGuardTriggerMySQL is TestGuardTrigger on MySQL or MariaDB.
func TestGuardTriggerMySQL(t *testing.T) {
	sinktest.Run(t, sinktest.Engine{
		NotBeside: true, LocalOnly: true, Guard: sink.ByTrigger, Brief: true, RefusesKey: func(typ merge.Type, text string) bool { return typ.Kind == merge.Text && strings.HasSuffix(text, " ") },
		Keeps: func(c merge.Column) bool {
			return c.Rule != merge.Sum && c.Rule != merge.Count && c.Rule != merge.Union
		},
		Holds: func(t *sink.Table) bool { return held(compile.MySQL, t) },
		Open:  func(t testing.TB, _ []*sink.Table) sink.Sink { return plainWriterMySQL(t, nil) },
		Faulty: func(t testing.TB, _ []*sink.Table, fault func() sinktest.Fault) sink.Sink {
			return plainWriterMySQL(t, fault)
		},
	})
}
