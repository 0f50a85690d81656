package hasura_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/hasura"
	"github.com/hookfold/hookfold/sink/hasura/hasuratest"
)

// columns describes columns as a config does: "price numeric", "note text scope
// note", "step text ladder sent,read".
func columns(t testing.TB, list ...string) []merge.Column {
	t.Helper()
	var out []merge.Column
	for _, s := range list {
		w := append(strings.Fields(s), "", "")
		typ, err := merge.ParseType(w[1])
		if err != nil {
			t.Fatal(err)
		}
		c := merge.Column{Name: w[0], Type: typ, Scope: merge.RowScope}
		switch w[2] {
		case "":
		case "scope":
			c.Scope = w[3]
		case "ladder":
			c.Rule, c.Rungs, c.Scope = merge.Ladder, strings.Split(w[3], ","), ""
		default:
			rule, ok := merge.ParseRule(w[2])
			if !ok {
				t.Fatalf("no rule %s", w[2])
			}
			c.Rule, c.Scope = rule, w[3]
		}
		out = append(out, c)
	}
	return out
}

// tableOf makes a table with a key, "id text", and columns.
func tableOf(t testing.TB, name, key string, list ...string) *sink.Table {
	t.Helper()
	parts := strings.Split(name, ".")
	m := merge.Table{Name: parts[len(parts)-1], Columns: columns(t, list...)}
	for _, c := range columns(t, strings.Split(key, ", ")...) {
		m.Key = append(m.Key, merge.KeyColumn{Name: c.Name, Type: c.Type})
	}
	return &sink.Table{Name: name, Table: merge.NewTable(m)}
}

// booking is a table with occupants.
func booking(t testing.TB) *sink.Table {
	t.Helper()
	return &sink.Table{Name: "booking", Table: merge.NewTable(merge.Table{Name: "booking", Occupied: true,
		Key:     []merge.KeyColumn{{Name: "ref", Type: merge.Type{Kind: merge.Text}}},
		Columns: columns(t, "status text", "invitee text", "no_show bool scope no_show", "seats numeric max", "channel text scope key")})}
}

type set map[string]any

// say makes a change: columns by name, nil is NULL, those not named are unset.
func say(t testing.TB, table *sink.Table, key string, version int64, values set) *merge.Change {
	t.Helper()
	c := &merge.Change{Table: table.Table, Key: merge.NewKey(strings.Split(key, "|")...), Cells: make([]merge.Cell, len(table.Columns))}
	c.Version = merge.NewVersion([]merge.Component{merge.IntOf(version)}, merge.Write, []byte(key), []byte(fmt.Sprint(values)))
	for name, v := range values {
		i := table.Column(name)
		if i < 0 {
			t.Fatalf("no column %s", name)
		}
		c.Cells[i].Set = true
		if v == nil {
			continue
		}
		var err error
		if c.Cells[i].Value, err = merge.ParseValue(table.Columns[i].Type, v.(string)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return c
}

func occupant(c *merge.Change, id string, since int64) *merge.Change {
	c.Occupant = &merge.Occupant{ID: id, Since: merge.IntOf(since)}
	return c
}

func batch(table *sink.Table, changes ...*merge.Change) *sink.Batch {
	return &sink.Batch{Groups: []sink.Group{{Table: table, Rows: merge.Fold(table.Table, changes)}}}
}

func write(t testing.TB, s sink.Sink, table *sink.Table, changes ...*merge.Change) *sink.Result {
	t.Helper()
	r, err := s.Apply(t.Context(), batch(table, changes...))
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	return r
}

// failed applies changes that cannot land, and returns the error.
func failed(t testing.TB, s sink.Sink, table *sink.Table, changes ...*merge.Change) *sink.Error {
	t.Helper()
	_, err := s.Apply(t.Context(), batch(table, changes...))
	return errorOf(t, err)
}

func errorOf(t testing.TB, err error) *sink.Error {
	t.Helper()
	var rows *sink.BatchError
	if errors.As(err, &rows) {
		return rows.Rows[0].Err
	}
	var e *sink.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is not an error of package sink", err)
	}
	return e
}

// mustShow compares one row's columns as text, in the order of the table's.
func mustShow(t testing.TB, s sink.Sink, table *sink.Table, key, want string) {
	t.Helper()
	rows, err := s.Read(t.Context(), table, []merge.Key{merge.NewKey(strings.Split(key, "|")...)})
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	got := "no row"
	if r := rows[0]; r != nil {
		var out []string
		for i, c := range table.Columns {
			if c.Rule != merge.Touch {
				out = append(out, c.Name+"="+r.Cells[i].Value.String())
			}
		}
		got = strings.Join(out, " ")
	}
	if got != want {
		t.Errorf("%s %s shows\n%s, want\n%s", table.Name, key, got, want)
	}
}

// rig is a sink on a double on a database of its own.
type rig struct {
	sink.Sink
	server   *hasuratest.Server
	database string
}

// start runs statements, and then brings what the tables need.
func start(t testing.TB, server hasuratest.Options, opts hasura.Options, statements []string, tables ...*sink.Table) *rig {
	t.Helper()
	url := testdb.Schema(t)
	testdb.Exec(t, url, statements...)
	double := hasuratest.New(t, url, server)
	opts.AdminSecret = server.AdminSecret
	r := &rig{open(t, double, tables, opts), double, url}
	r.bring(t, tables...)
	return r
}

func (r *rig) bring(t testing.TB, tables ...*sink.Table) {
	t.Helper()
	statements, err := r.Plan(t.Context(), tables)
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	if err := r.Execute(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

// one gives one value of the database as text.
func (r *rig) one(t testing.TB, query string) string {
	t.Helper()
	ctx := context.Background()
	c := testdb.Connect(t, ctx, r.database)
	defer c.Close(ctx)
	var out *string
	if err := c.QueryRow(ctx, "select ("+query+")::text").Scan(&out); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if out == nil {
		return "NULL"
	}
	return *out
}
