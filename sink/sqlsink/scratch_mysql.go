package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/sink"
)

// aliveTable is a table in a place whose one row tells when the place was last in
// use, by the server's clock.
const aliveTable = "hookfold_alive"

// place makes a database of its own on the server.
func (e *mysqlEngine) place(ctx context.Context, tables []copied, opts Options) (*place, error) {
	name := placeName()
	quote := compile.MySQL.Quote
	made := &place{}
	made.remove = func(ctx context.Context) error {
		_, err := e.db.ExecContext(ctx, "drop database if exists "+quote(name))
		return err
	}
	alive := quote(name) + "." + quote(aliveTable)
	made.beat = func(ctx context.Context) error {
		_, err := e.db.ExecContext(ctx, "replace into "+alive+" values (1, utc_timestamp())")
		return err
	}
	statements := []string{"create database " + quote(name), "create table " + alive + " (n int primary key, at datetime not null)",
		"insert into " + alive + " values (1, utc_timestamp())"}
	names := map[string]bool{}
	for _, t := range tables {
		last := compile.TableName(t.Name)
		copied := last
		for n := 2; names[copied]; n++ { // one of the same name from another schema
			copied = fmt.Sprintf("%s_%d", last, n)
		}
		names[copied] = true
		x := *t.Table
		x.Name = compile.InSchema(name, `"`+strings.ReplaceAll(copied, `"`, `""`)+`"`)
		made.tables = append(made.tables, &x)
		if !t.live.Exists {
			continue
		}
		statements = append(statements, fmt.Sprintf("create table %s like %s", compile.MySQL.QuoteTable(x.Name), compile.MySQL.QuoteTable(t.Name)))
		if len(t.live.References) > 0 {
			made.notes = append(made.notes, fmt.Sprintf("the foreign keys of %s do not hold", t.Name))
		}
		if t.live.FillsRows {
			made.notes = append(made.notes, fmt.Sprintf("the triggers of %s do not run", t.Name))
		}
	}
	if err := e.execute(ctx, statements); err != nil {
		var m *mysql.MySQLError
		if errors.As(err, &m) && m.Number == 1044 {
			return nil, &sink.Error{Action: sink.Reject, Code: fmt.Sprintf("MySQL %d", m.Number), Err: err,
				Message: "a trial needs a database of its own, and this user may not make one: grant all on `hookfold\\_prove\\_%`.* to …, or name another server for it (--sink URL)"}
		}
		return nil, errors.Join(err, made.remove(ctx))
	}
	own, err := newMySQL(e.config, opts)
	if err != nil {
		return nil, errors.Join(err, made.remove(ctx))
	}
	made.engine = own
	made.empty = func(ctx context.Context, tables []string) error {
		return own.transact(ctx, func(c conn) error { // each commit is a write to the disk
			for _, t := range tables {
				if err := c.run(ctx, "delete from "+compile.MySQL.QuoteTable(t)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return made, nil
}

// sweep removes the databases that nobody marks any more.
func (e *mysqlEngine) sweep(ctx context.Context) (int, error) {
	var names []string
	err := queryRows(ctx, e.db, `select schema_name from information_schema.schemata where schema_name like ? escape '!'`, []any{strings.ReplaceAll(placePrefix, "_", "!_") + "%"},
		func(scan func(...any) error) error {
			var name string
			err := scan(&name)
			names = append(names, name)
			return err
		})
	if err != nil {
		return 0, err
	}
	n := 0
	for _, name := range names {
		age := sql.NullInt64{}
		err := e.db.QueryRowContext(ctx, "select timestampdiff(second, max(at), utc_timestamp()) from "+compile.MySQL.Quote(name)+"."+compile.MySQL.Quote(aliveTable)).Scan(&age)
		var m *mysql.MySQLError
		if errors.As(err, &m) && (m.Number == 1146 || m.Number == 1142) { // it is being made, or somebody else's
			continue
		}
		if err != nil {
			return n, err
		}
		if !age.Valid || time.Duration(age.Int64)*time.Second < deadAfter {
			continue
		}
		_, err = e.db.ExecContext(ctx, "drop database if exists "+compile.MySQL.Quote(name))
		if errors.As(err, &m) && m.Number == 1044 { // another user's, who sweeps too
			continue
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
