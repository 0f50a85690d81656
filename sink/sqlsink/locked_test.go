package sqlsink_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// A row that another session holds locked is named, so that all others land.
func TestALockedRowHoldsUpNobodyElse(t *testing.T) {
	plain := func(t *testing.T) *sink.Table { return tableOf(t, "item", "id text", "v text") }
	for _, c := range []struct {
		name, schema, hold string
		table              func(t *testing.T) *sink.Table
		opts               sqlsink.Options
		all                bool // of the table is locked
	}{
		{name: "a row", hold: "select from item where id = 'k7' for update"},
		{name: "a row that is changed", hold: "update item set v = 'mine' where id = 'k7'"},
		{name: "a row that is removed", hold: "delete from item where id = 'k7'"},
		{name: "a row that only this session sees", hold: "insert into item (id, v) values ('new', 'mine')"},
		{name: "pooler", hold: "select from item where id = 'k7' for update", opts: sqlsink.Options{Pooler: "transaction"}},
		{name: "versions beside", hold: "select from item where id = 'k7' for update", table: func(t *testing.T) *sink.Table {
			x := plain(t)
			x.Versions = sink.Beside
			return x
		}},
		{name: "occupants", hold: "select from item where id = 'k7' for update", table: func(t *testing.T) *sink.Table {
			m := shape(t, "item", "id text", "v text scope key", "w text")
			m.Occupied = true
			return &sink.Table{Name: "item", Table: merge.NewTable(m)}
		}},
		{name: "deletes", hold: "select from item where id = 'k7' for update", table: func(t *testing.T) *sink.Table {
			m := shape(t, "item", "id text", "v text")
			m.OnDelete = merge.DeleteRemove
			return &sink.Table{Name: "item", Table: merge.NewTable(m)}
		}},
		{name: "a parent", schema: "create table place (id text primary key); insert into place values ('a'), ('b')", hold: "select from place where id = 'b' for update"},
		{name: "all of the table", hold: "lock table item in share mode", all: true, table: func(t *testing.T) *sink.Table {
			x := plain(t)
			x.Versions = sink.Beside
			return x
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := plain(t)
			if c.table != nil {
				table = c.table(t)
			}
			url := testdb.Schema(t)
			c.opts.LockTimeout = 100 * time.Millisecond
			s := open(t, url, nil, c.opts)
			if c.schema != "" {
				table = tableOf(t, "item", "id text", "v text", "place text")
				testdb.Exec(t, url, c.schema, "create table item (id text primary key, v text, place text references place)")
			}
			bring(t, s, table)
			batch := func(version int64, keys ...string) *sink.Batch {
				var changes []*merge.Change
				for _, k := range keys {
					set := map[string]any{"v": fmt.Sprint(version)}
					if c.schema != "" {
						set["place"] = map[bool]string{true: "b", false: "a"}[k == "k7"]
					}
					changes = append(changes, say(t, table, k, version, set))
				}
				return &sink.Batch{Groups: []sink.Group{group(table, changes...)}}
			}
			var keys []string
			for i := range 50 {
				keys = append(keys, fmt.Sprintf("k%d", i))
			}
			if c.schema == "" {
				if _, err := s.Apply(t.Context(), batch(1, keys...)); err != nil {
					t.Fatal(err)
				}
			}
			keys = append(keys, "new")
			held := "k7"
			if strings.Contains(c.hold, "'new'") {
				held = "new"
			}
			ctx := context.Background()
			other := testdb.Connect(t, ctx, url)
			defer other.Close(ctx)
			for _, sql := range []string{"begin", c.hold} {
				if _, err := other.Exec(ctx, sql); err != nil {
					t.Fatal(err)
				}
			}
			for _, keys := range [][]string{keys, {held}} {
				_, err := s.Apply(t.Context(), batch(2, keys...))
				var rows *sink.BatchError
				if c.all {
					if errors.As(err, &rows) || sink.ActionOf(err) != sink.Retry || err == nil {
						t.Errorf("got %v", err)
					}
					continue
				}
				if !errors.As(err, &rows) || len(rows.Rows) != 1 {
					t.Fatalf("%d rows: %v", len(keys), err)
				}
				if x := rows.Rows[0]; x.Row.Key != merge.NewKey(held) || x.Err.Action != sink.Wait || x.Err.Why != sink.Locked || !strings.Contains(x.Err.Message, "another session") {
					t.Errorf("got %s: %v, action %d", x.Row.Key, x.Err, x.Err.Action)
				}
			}
			if c.all {
				return
			}
			var rest []string
			for _, k := range keys {
				if k != held {
					rest = append(rest, k)
				}
			}
			if _, err := s.Apply(t.Context(), batch(2, rest...)); err != nil {
				t.Error(err)
			}
			if _, err := other.Exec(ctx, "rollback"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Apply(t.Context(), batch(2, held)); err != nil {
				t.Error(err)
			}
			if got := one(t, url, "select count(*) from item where v = '2'"); got != "51" {
				t.Errorf("%s of 51 rows", got)
			}
		})
	}
}

// Migrations write whatever the database's default is, all or nothing.
func TestExecuteIsOneTransaction(t *testing.T) {
	url := testdb.Postgres(t)
	testdb.Exec(t, url, "do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$")
	s := open(t, url, nil, sqlsink.Options{})
	err := s.Execute(t.Context(), []string{"create table a (id text)", "create table b (id nonsense)"})
	if err == nil || !strings.Contains(err.Error(), "create table b (id nonsense)") || !strings.Contains(err.Error(), `type "nonsense" does not exist`) {
		t.Errorf("got %v", err)
	}
	if got := one(t, url, "select to_regclass('a')"); got != "NULL" {
		t.Errorf("%s was made", got)
	}
	table := tableOf(t, "item", "id text", "v text")
	bring(t, s, table)
	write(t, s, table, say(t, table, "k", 1, map[string]any{"v": "x"}))
	mustShow(t, s, table, "k", "v=x")
}

// What cannot be altered is said, and no statement tries.
func TestPlanOfAView(t *testing.T) {
	url := testdb.Schema(t)
	testdb.Exec(t, url, "create table behind (id text primary key)", "create view item as select * from behind")
	table := tableOf(t, "item", "id text", "v text")
	if statements, err := open(t, url, nil, sqlsink.Options{}).Plan(t.Context(), []*sink.Table{table}); err == nil || !strings.Contains(err.Error(), "it is a view") || statements != nil {
		t.Errorf("%q, %v", statements, err)
	}
}
