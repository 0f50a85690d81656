package hasura_test

import (
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/hasura"
	"github.com/hookfold/hookfold/sink/hasura/hasuratest"
)

// What a sink cannot do it says when it is opened, with what to do instead.
func TestRefusedAtOpen(t *testing.T) {
	base := func() merge.Table {
		return merge.Table{Name: "t", Key: []merge.KeyColumn{{Name: "id"}, {Name: "no"}}, Columns: columns(t, "a text")}
	}
	for want, change := range map[string]func(*merge.Table, *sink.Table){
		"on_delete":   func(m *merge.Table, _ *sink.Table) { m.OnDelete = merge.DeleteMark },
		"replaces":    func(m *merge.Table, _ *sink.Table) { m.Group = []int{0} },
		"chain needs": func(m *merge.Table, _ *sink.Table) { m.Chained, m.Occupied = true, true },
		"column n: merge: sum": func(m *merge.Table, _ *sink.Table) {
			m.Columns = append(m.Columns, merge.Column{Name: "n", Rule: merge.Sum})
		},
		"merge: chain":      func(m *merge.Table, _ *sink.Table) { m.Columns[0] = merge.Column{Name: "root", Rule: merge.Chain} },
		"keep_versions":     func(_ *merge.Table, s *sink.Table) { s.Versions = sink.Beside },
		"no column of such": func(m *merge.Table, _ *sink.Table) { m.Columns[0].Name = "first name" },
		"cannot be a key":   func(m *merge.Table, _ *sink.Table) { m.Key[0].Type.Kind = merge.JSON },
	} {
		m, s := base(), &sink.Table{Name: "t"}
		change(&m, s)
		s.Table = merge.NewTable(m)
		_, err := hasura.Open(t.Context(), "hasura+https://example.invalid/v1/graphql", []*sink.Table{s}, hasura.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "table t") {
			t.Errorf("%s: %v", want, err)
		}
	}
	for url, want := range map[string]string{
		"https://x/v1/graphql": "hasura+https", "hasura+ftp://x/": "hasura+https", "hasura+https://": "hasura+https://host", "hasura+https://user:pw@x/": "a user",
		"hasura+https://x/?a=b": "a query", "hasura+https://[": "hasura+https://host",
	} {
		if _, err := hasura.Open(t.Context(), url, nil, hasura.Options{}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v", url, err)
		}
	}
	a, b := tableOf(t, "same", "id text", "a text"), tableOf(t, "public.same", "id text", "b text")
	b.Name = "same"
	if _, err := hasura.Open(t.Context(), "hasura+https://x/v1/graphql", []*sink.Table{a, b}, hasura.Options{}); err == nil || !strings.Contains(err.Error(), "row_version") {
		t.Errorf("two tables that share a version: %v", err)
	}
}

// What is not as the config needs it is told with what to do, and mended by
// Plan.
func TestLiveSchema(t *testing.T) {
	table := tableOf(t, "item", "id text", "a text", "tags text[] union")
	for _, c := range []struct{ statement, want string }{
		{`create table item (id text primary key)`, "shows no column"},
		{`create table item (id text primary key, a text, tags text[])`, "row_version"},
		{`create table item (id text not null, a text, tags text[], row_version text)`, "alter table item add unique (id)"},
		{`create table item (id text, a text, tags text[], row_version text)`, "no unique constraint on (id), only none"},
		{`create table item (id text primary key, a text generated always as ('x') stored, tags text[], row_version text)`, "may not be written"},
		{`create table item (id text primary key, a text, tags json, row_version text)`, "Make it jsonb"},
		{`create view item as select 1`, "shows no table item"},
		{`select 1`, "shows no table item"},
	} {
		url := testdb.Schema(t)
		testdb.Exec(t, url, c.statement)
		s := open(t, hasuratest.New(t, url, hasuratest.Options{}), []*sink.Table{table}, hasura.Options{})
		if e := failed(t, s, table, say(t, table, "k", 1, set{"a": "x"})); e.Action != sink.Retry || !strings.Contains(e.Message, c.want) || !strings.Contains(e.Message, "item") {
			t.Errorf("%s: %v", c.statement, e)
		}
	}
	// A unique index has no name that a mutation could give: Plan makes a
	// constraint.
	r := start(t, hasuratest.Options{}, hasura.Options{}, []string{`create table item (id text not null, a text)`, `create unique index on item (id)`}, table)
	if got := r.one(t, "select string_agg(conname, ' ' order by conname) from pg_constraint where conrelid = 'item'::regclass"); got != "item_id_key" {
		t.Errorf("constraints %s", got)
	}
	write(t, r, table, say(t, table, "k", 1, set{"a": "x", "tags": `["a"]`}))
	mustShow(t, r, table, "k", `a=x tags=["a"]`)
	// The schema changes while it is in use.
	testdb.Exec(t, r.database, `alter table item rename constraint item_id_key to other`)
	r.server.Reload(t)
	write(t, r, table, say(t, table, "k", 2, set{"a": "y"}))
	mustShow(t, r, table, "k", `a=y tags=["a"]`)
}

// A user who only has the endpoint: no SQL can be run, and it is said what to
// run.
func TestGraphQLAlone(t *testing.T) {
	table := tableOf(t, "item", "id text", "a text")
	url := testdb.Schema(t)
	s := open(t, hasuratest.New(t, url, hasuratest.Options{NoAdminAPI: true}), []*sink.Table{table}, hasura.Options{})
	plan, err := s.Plan(t.Context(), []*sink.Table{table})
	if err != nil || len(plan) != 2 || !strings.HasPrefix(plan[0], "create table item") || !strings.Contains(plan[1], "pg_track_table") {
		t.Fatalf("%q, %v", plan, err)
	}
	e := errorOf(t, s.Execute(t.Context(), plan))
	if !strings.Contains(e.Message, "create table item") || !strings.Contains(e.Message, "console") {
		t.Errorf("%v", e)
	}
	// An event that comes before says the same, and waits.
	for _, c := range []struct{ statement, want string }{
		{`create table other (id text)`, `create table item ( id text collate "C" not null`},
		{`create table item (id text primary key, a text)`, `alter table item add column row_version text collate "C";`},
	} {
		url := testdb.Schema(t)
		testdb.Exec(t, url, c.statement)
		s := open(t, hasuratest.New(t, url, hasuratest.Options{NoAdminAPI: true}), []*sink.Table{table}, hasura.Options{})
		e := failed(t, s, table, say(t, table, "k", 1, set{"a": "x"}))
		if e.Action != sink.Retry || !strings.Contains(e.Message, "Hasura's console") || !strings.Contains(e.Message, c.want) {
			t.Errorf("%s: %v", c.statement, e)
		}
	}
	testdb.Exec(t, url, plan[0])
	server := hasuratest.New(t, url, hasuratest.Options{NoAdminAPI: true})
	s = open(t, server, []*sink.Table{table}, hasura.Options{})
	if plan, err = s.Plan(t.Context(), []*sink.Table{table}); err != nil || len(plan) != 0 {
		t.Errorf("%q, %v", plan, err)
	}
	write(t, s, table, say(t, table, "k", 1, set{"a": "x"}))
	live, err := s.Inspect(t.Context(), table)
	if err != nil || !live.Exists || live.ReadOnly != "" || !live.HasUnique([]string{"id"}) || live.Column("a").Base != "text" || !live.Column("id").NotNull || live.Column("a").NotNull {
		t.Errorf("%+v, %v", live, err)
	}
	known, err := s.(sink.Knower).Known(t.Context(), table, []merge.Key{"k", "none", "k"})
	if err != nil || len(known) != 3 || !known[0] || known[1] || !known[2] {
		t.Errorf("%v, %v", known, err)
	}
}

// An old version does not tell which columns a constraint is on: then PostgreSQL's
// own names count, and any other has to be said.
func TestConstraintsOfOldVersions(t *testing.T) {
	table := tableOf(t, "item", "id text", "a text")
	for statement, want := range map[string]string{
		`create table item (id text primary key, other text unique, a text, row_version text)`:                                    "",
		`create table item (no int primary key default 7, id text unique, a text, row_version text)`:                              "",
		`create table item (no int primary key default 7, id text constraint mine unique, a text, row_version text)`:              "Say which of them is on (id)",
		`create table item (no int default 7, id text not null, a text, row_version text, constraint item_pkey primary key (no))`: "Say which of them is on (id)",
	} {
		url := testdb.Schema(t)
		testdb.Exec(t, url, statement)
		server := hasuratest.New(t, url, hasuratest.Options{OldConstraints: true, NoAdminAPI: true})
		s := open(t, server, nil, hasura.Options{})
		if want == "" {
			write(t, s, table, say(t, table, "k", 1, set{"a": "x"}))
			write(t, s, table, say(t, table, "k", 2, set{"a": "y"}))
			mustShow(t, s, table, "k", "a=y")
			continue
		}
		if e := failed(t, s, table, say(t, table, "k", 1, set{"a": "x"})); e.Action != sink.Retry || !strings.Contains(e.Message, want) {
			t.Errorf("%s: %v", statement, e)
		}
		if strings.Contains(statement, "mine") {
			s = open(t, server, nil, hasura.Options{Constraints: map[string]string{"item": "mine"}})
			write(t, s, table, say(t, table, "k", 1, set{"a": "x"}))
		}
	}
	r := start(t, hasuratest.Options{}, hasura.Options{}, nil, table)
	blind := open(t, hasuratest.New(t, r.database, hasuratest.Options{NoIntrospection: true}), nil, hasura.Options{})
	if e := failed(t, blind, table, say(t, table, "k", 1, set{"a": "x"})); e.Action != sink.Retry || !strings.Contains(e.Message, "introspection is off") {
		t.Error(e)
	}
}

// Names of tables in other schemas, and such as were customised.
func TestNames(t *testing.T) {
	url := testdb.Schema(t)
	schema := url[strings.LastIndex(url, "=")+1:]
	other := schema + "_b"
	testdb.Exec(t, url, "create schema "+other, "create table "+other+".item (id text primary key, a text, row_version text)")
	t.Cleanup(func() { testdb.Exec(t, url, "drop schema "+other+" cascade") })
	table := tableOf(t, other+".item", "id text", "a text")
	custom := tableOf(t, "whatever", "id text", "a text")
	server := hasuratest.New(t, url, hasuratest.Options{Schemas: []string{other}})
	s := open(t, server, []*sink.Table{table}, hasura.Options{Names: map[string]string{"whatever": other + "_item"}, Constraints: map[string]string{"whatever": "item_pkey"}})
	write(t, s, table, say(t, table, "k", 1, set{"a": "x"}))
	write(t, s, custom, say(t, custom, "k", 2, set{"a": "y"}))
	mustShow(t, s, table, "k", "a=y")
	if e := failed(t, s, tableOf(t, other+".none", "id text"), say(t, tableOf(t, "none", "id text"), "k", 1, nil)); !strings.Contains(e.Message, other+".none (as "+other+"_none)") {
		t.Error(e)
	}
}

// Root fields that were customised are found by the types that they take.
func TestCustomRootFields(t *testing.T) {
	table := tableOf(t, "item", "id text", "a text", "code text")
	url := testdb.Schema(t)
	testdb.Exec(t, url, "create table item (id text primary key, a text, code text unique, row_version text)")
	server := hasuratest.New(t, url, hasuratest.Options{RootFields: map[string]hasuratest.RootFields{"item": {Select: "allItems", Insert: "addItems", Update: "changeItems"}}})
	s := open(t, server, []*sink.Table{table}, hasura.Options{})
	write(t, s, table, say(t, table, "k", 1, set{"a": "x", "code": "c"}))
	write(t, s, table, say(t, table, "k", 2, set{"a": "y", "code": "c"}))
	mustShow(t, s, table, "k", "a=y code=c")
	guest := say(t, table, "k", 3, set{"a": "z", "code": "c"})
	guest.IfMissing = merge.Wait
	write(t, s, table, guest)
	mustShow(t, s, table, "k", "a=z code=c")
	if e := failed(t, s, table, say(t, table, "l", 1, set{"a": "x", "code": "c"})); e.Why != sink.UniqueValue || !strings.Contains(e.Message, "table item:") {
		t.Errorf("%+v", e)
	}
}

// Arrays as scalars and numbers as strings, as older and otherwise configured
// versions show them.
func TestOtherConfigurations(t *testing.T) {
	table := tableOf(t, "item", "id int", "big int", "n numeric max", "f float", "tags text[] union", "day date min", "at timestamp", "doc json", "ok bool")
	for _, o := range []hasuratest.Options{{OldArrays: true, StringifyNumbers: true}, {HideInternal: true, Concurrent: true}} {
		r := start(t, o, hasura.Options{}, []string{`create table item (id bigint primary key, at timestamp, n numeric(30,10))`}, table)
		values := set{"big": "9007199254740993", "n": "12345678901234567890.5", "f": "0.1", "tags": `["b","a"]`, "day": "2026-02-28", "at": "2026-03-29T02:30:00.5Z", "doc": `{"a":[1,null]}`, "ok": "true"}
		write(t, r, table, say(t, table, "9007199254740993", 1, values))
		values["tags"], values["n"], values["day"] = `["c"]`, "3", "2026-03-01"
		write(t, r, table, say(t, table, "9007199254740993", 2, values))
		mustShow(t, r, table, "9007199254740993", `big=9007199254740993 n=12345678901234567890.5 f=0.1 tags=["a","b","c"] day=2026-02-28 at=2026-03-29T02:30:00.500000Z doc={"a":[1,null]} ok=true`)
		if got := write(t, r, table, say(t, table, "9007199254740993", 2, values)); got.Written != 0 {
			t.Errorf("again: %+v", got)
		}
	}
}
