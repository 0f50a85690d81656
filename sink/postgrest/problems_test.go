package postgrest_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/postgrest"
	"github.com/hookfold/hookfold/sink/postgrest/postgresttest"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

func TestRefused(t *testing.T) {
	for _, f := range []struct {
		name  string
		table func(t testing.TB) *sink.Table
		modes []postgrest.Mode
		says  string
	}{
		{"deletes", func(t testing.TB) *sink.Table {
			m := shape(t, "x", "id text", "v text")
			m.OnDelete = merge.DeleteMark
			return &sink.Table{Name: "x", Table: merge.NewTable(m)}
		}, modes, "on_delete"},
		{"complete lists", func(t testing.TB) *sink.Table {
			m := shape(t, "x", "p text, id text", "v text")
			m.Group = []int{0}
			return &sink.Table{Name: "x", Table: merge.NewTable(m)}
		}, modes, "replaces"},
		{"chains", func(t testing.TB) *sink.Table {
			m := shape(t, "x", "id text", "v text")
			m.Occupied, m.Chained = true, true
			return &sink.Table{Name: "x", Table: merge.NewTable(m)}
		}, modes, "chain"},
		{"counters", func(t testing.TB) *sink.Table { return tableOf(t, "x", "id text", "n numeric sum") }, modes, "merge: sum"},
		{"beside", func(t testing.TB) *sink.Table {
			x := tableOf(t, "x", "id text", "v text")
			x.Versions = sink.Beside
			return x
		}, modes, "keep_versions"},
		{"occupants", booking, []postgrest.Mode{postgrest.REST}, "mode: rpc"},
		{"union", func(t testing.TB) *sink.Table { return tableOf(t, "x", "id text", "tags text[] union") }, []postgrest.Mode{postgrest.REST}, "union"},
		{"touch", func(t testing.TB) *sink.Table { return tableOf(t, "x", "id text", "v text", "at timestamp touch") }, []postgrest.Mode{postgrest.REST}, "touch"},
		{"max of text", func(t testing.TB) *sink.Table { return tableOf(t, "x", "id text", "v text max") }, []postgrest.Mode{postgrest.REST}, "collation"},
	} {
		for _, mode := range modes {
			_, err := postgrest.Open(t.Context(), "postgrest+http://127.0.0.1:1", []*sink.Table{f.table(t)}, postgrest.Options{Mode: mode})
			if refused := slices.Contains(f.modes, mode); refused != (err != nil) || refused && (!strings.Contains(err.Error(), f.says) || !strings.Contains(err.Error(), "table ")) {
				t.Errorf("%s in mode %s: %v", f.name, mode, err)
			}
		}
	}
	a, b := tableOf(t, "x", "id text", "v text"), tableOf(t, "x", "id text", "w text")
	if _, err := postgrest.Open(t.Context(), "postgrest+http://127.0.0.1:1", []*sink.Table{a, b}, postgrest.Options{}); err == nil {
		t.Error("two tables that share a version were taken")
	}
}

func TestURLs(t *testing.T) {
	for u, ok := range map[string]bool{
		"supabase+https://x.supabase.co": true, "postgrest+https://h/api": true, "postgrest+http://127.0.0.1:3000": true,
		"https://x.supabase.co": false, "supabase+ftp://x": false, "supabase+https://": false, "postgrest+https://user:pw@h": false, "postgrest+https://h?apikey=x": false,
	} {
		s, err := postgrest.Open(t.Context(), u, nil, postgrest.Options{})
		if (err == nil) != ok {
			t.Errorf("%s: %v", u, err)
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("the error holds the password: %v", err)
		}
		if s != nil {
			s.Close()
		}
	}
	if _, err := postgrest.Open(t.Context(), "supabase+https://x.supabase.co", nil, postgrest.Options{Mode: "upsert"}); err == nil {
		t.Error("a mode that is none")
	}
}

// A function that the config has outgrown is not called: it is told.
func TestStaleFunction(t *testing.T) {
	before := tableOf(t, "item", "id text", "n int max")
	p, s := ready(t, postgrest.RPC, postgrest.Options{}, before)
	write(t, s, before, say(t, before, "k", 1, map[string]any{"n": "1"}))
	after := tableOf(t, "item", "id text", "n int min")
	next := open(t, p, []*sink.Table{after}, postgrest.Options{})
	e := refused(t, next, after, say(t, after, "k", 2, map[string]any{"n": "0"}))
	if e.Action != sink.Retry || !strings.Contains(e.Message, "hookfold_rows_item_") || !strings.Contains(e.Message, "another config") {
		t.Errorf("%+v", e)
	}
	bring(t, next, after)
	write(t, next, after, say(t, after, "k", 2, map[string]any{"n": "0"}))
	mustShow(t, next, after, "k", "n=0")
	write(t, s, before, say(t, before, "k", 3, map[string]any{"n": "5"})) // the older one still has its own
	p.Exec(t, "do $$ declare f text; begin for f in select oid::regprocedure::text from pg_proc where pronamespace = '"+p.Schema+"'::regnamespace and proname like 'hookfold_rows%' loop execute 'drop function ' || f; end loop; end $$")
	e = refused(t, next, after, say(t, after, "k", 4, map[string]any{"n": "-1"}))
	if e.Action != sink.Retry || !strings.Contains(e.Message, "Run the migration") {
		t.Errorf("a function that is gone: %+v", e)
	}
}

const userTable = `create type mood as enum ('ok', 'bad');
create domain positive as int check (value > 0);
create table thing (
    id text primary key, mood mood, pos positive, short varchar(5), money numeric(10,2), tags text[], data jsonb, gen int generated always as (1) stored,
    no int generated by default as identity, must text not null, kept text default 'theirs', flag boolean not null default false)`

func thing(t *testing.T) *sink.Table {
	return tableOf(t, "thing", "id text", "mood text scope mood", "pos int max", "short text scope short", "money numeric scope money", "tags text[] scope tags", "data json scope data", "must text scope must", "flag bool scope flag")
}

// A table that was there before, with what users' tables have.
func TestExistingTable(t *testing.T) {
	inEachMode(t, func(t *testing.T, mode postgrest.Mode) {
		p := postgresttest.New(t, postgresttest.Options{})
		p.Exec(t, userTable)
		table := thing(t)
		s := open(t, p, []*sink.Table{table}, postgrest.Options{Mode: mode})
		bring(t, s, table)
		p.Grant(t, "thing")
		e := refused(t, s, table, say(t, table, "k", 1, map[string]any{"mood": "ok"}))
		if e.Action != sink.Wait || e.Why != sink.NotNull || !strings.Contains(e.Message, "must") {
			t.Errorf("a new row that lacks a NOT NULL column: %+v", e)
		}
		write(t, s, table, say(t, table, "k", 2, map[string]any{"must": "x", "pos": "3", "money": "1.50", "tags": `["a,b","\"c\""]`, "data": `{"a":9007199254740993}`}))
		write(t, s, table, say(t, table, "k", 3, map[string]any{"mood": "bad", "pos": "2", "short": "five5"})) // lacks it, but the row is there
		mustShow(t, s, table, "k", `mood=bad pos=3 short=five5 money=1.5 tags=["a,b","\"c\""] data={"a":9007199254740993} must=x flag=false`)
		for set, says := range map[string]string{"short=sixsix": "varchar(5)", "mood=glad": "not one of the values"} {
			name, v, _ := strings.Cut(set, "=")
			if mode == postgrest.REST && name == "short" {
				says = "5"
			}
			e := refused(t, s, table, say(t, table, "k", 9, map[string]any{name: v}))
			if e.Action != sink.Reject || !strings.Contains(e.Message, says) {
				t.Errorf("%s: %+v", set, e)
			}
		}
		e = refused(t, s, table, say(t, table, "other", 9, map[string]any{"must": "x", "pos": "-1"}))
		if e.Action != sink.Reject || !strings.Contains(e.Message, "positive") {
			t.Errorf("a domain's check: %+v", e)
		}
	})
}

// In mode rest a row lacks what it lacks before anything of its batch is written.
func TestLackingRowsWriteNothing(t *testing.T) {
	inEachMode(t, func(t *testing.T, mode postgrest.Mode) {
		p := postgresttest.New(t, postgresttest.Options{})
		p.Exec(t, userTable)
		table := thing(t)
		s := open(t, p, []*sink.Table{table}, postgrest.Options{Mode: mode})
		bring(t, s, table)
		p.Grant(t, "thing")
		good, bad := say(t, table, "a", 1, map[string]any{"must": "x"}), say(t, table, "b", 1, map[string]any{"mood": "ok"})
		_, err := s.Apply(t.Context(), batch(table, good, bad))
		var rows *sink.BatchError
		if !errors.As(err, &rows) || len(rows.Rows) != 1 || rows.Rows[0].Row.Key != "b" {
			t.Fatalf("%v, want the row b at fault", err)
		}
		mustShow(t, s, table, "a", "no row")
	})
}

func TestTriggerFillsRows(t *testing.T) {
	p := postgresttest.New(t, postgresttest.Options{})
	p.Exec(t, "create table filled (id text primary key, must text not null, n bigint)",
		"create function fill() returns trigger language plpgsql as $$ begin new.must := coalesce(new.must, 'filled'); return new; end $$",
		"create trigger fill before insert on filled for each row execute function fill()")
	table := tableOf(t, "filled", "id text", "must text scope must", "n int max")
	s := open(t, p, []*sink.Table{table}, postgrest.Options{})
	bring(t, s, table)
	write(t, s, table, say(t, table, "k", 1, map[string]any{"n": "1"}))
	mustShow(t, s, table, "k", "must=filled n=1")
	write(t, s, table, say(t, table, "k", 1, map[string]any{"n": "2"}))
	mustShow(t, s, table, "k", "must=filled n=2")
}

// What occupants show when their records lack a column: the same as everywhere.
func TestOccupantLacksColumn(t *testing.T) {
	p := postgresttest.New(t, postgresttest.Options{})
	p.Exec(t, "create table booking (ref text primary key, status text not null, no_show boolean, channel text, changed_at timestamptz)")
	table := booking(t)
	s := open(t, p, []*sink.Table{table}, postgrest.Options{})
	bring(t, s, table)
	by := func(id string, version int64, set map[string]any) *merge.Change {
		c := say(t, table, "r", version, set)
		c.Occupant = &merge.Occupant{ID: id, Since: merge.IntOf(version)}
		return c
	}
	e := refused(t, s, table, by("A", 1, map[string]any{"no_show": "true", "channel": "web"}))
	if e.Action != sink.Wait || !strings.Contains(e.Message, "status") {
		t.Errorf("%+v", e)
	}
	mustShow(t, s, table, "r", "no row")
	write(t, s, table, by("A", 1, map[string]any{"no_show": "true", "channel": "web"}), by("A", 2, map[string]any{"status": "active"}))
	mustShow(t, s, table, "r", "status=active no_show=true channel=web")
	late := by("B", 3, map[string]any{"status": "moved"})
	late.IfMissing = merge.Wait
	if r := write(t, s, table, late); len(r.Absent) != 0 {
		t.Errorf("%+v", r)
	}
	mustShow(t, s, table, "r", "status=moved no_show=NULL channel=web")
	nowhere := by("B", 3, map[string]any{"status": "moved"})
	nowhere.Key, nowhere.IfMissing = "other", merge.Wait
	if r := write(t, s, table, nowhere); len(r.Absent) != 1 {
		t.Errorf("a row that waits for another to insert it: %+v", r)
	}
}

// What the function tells of a table is what a connection tells.
func TestInspect(t *testing.T) {
	p := postgresttest.New(t, postgresttest.Options{})
	p.Exec(t, userTable, "create unique index on thing (short, money)")
	table := thing(t)
	s := open(t, p, []*sink.Table{table}, postgrest.Options{})
	bring(t, s, table)
	direct, err := sqlsink.Open(t.Context(), p.Database, nil, sqlsink.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	want, err := direct.Inspect(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Inspect(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-connection +function):\n%s", d)
	}
}

// Without a connection a person runs what Plan says: after a round or two nothing
// is left, and rows land.
func TestPlanWithoutConnection(t *testing.T) {
	inEachMode(t, func(t *testing.T, mode postgrest.Mode) {
		p := postgresttest.New(t, postgresttest.Options{})
		p.Exec(t, userTable)
		p.Grant(t, "thing")
		table, fresh := thing(t), tableOf(t, "fresh", "id text", "n int max")
		tables := []*sink.Table{table, fresh}
		s, err := postgrest.Open(t.Context(), "postgrest+"+p.API, tables, postgrest.Options{Key: p.Key, Schema: p.Schema, Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		rounds := 0
		for {
			statements, err := s.Plan(t.Context(), tables)
			if err != nil {
				t.Fatal(err)
			}
			if len(statements) == 0 {
				break
			}
			if rounds++; rounds > 2 {
				t.Fatalf("after two rounds there is left: %s", strings.Join(statements, "\n"))
			}
			e := sinkError(t, s.Execute(t.Context(), statements))
			if e.Action != sink.Retry || !strings.Contains(e.Message, "SQL editor") {
				t.Errorf("%+v", e)
			}
			p.Exec(t, "begin; "+strings.Join(statements, ";\n")+"; commit")
		}
		write(t, s, table, say(t, table, "k", 2, map[string]any{"must": "x", "pos": "3"}))
		write(t, s, fresh, say(t, fresh, "k", 2, map[string]any{"n": "3"}))
		mustShow(t, s, fresh, "k", "n=3")
	})
}

func TestNoDescription(t *testing.T) {
	p := postgresttest.New(t, postgresttest.Options{NoOpenAPI: true})
	table := tableOf(t, "item", "id text", "n int max")
	s := open(t, p, []*sink.Table{table}, postgrest.Options{Mode: postgrest.REST})
	e := refused(t, s, table, say(t, table, "k", 1, map[string]any{"n": "1"}))
	if e.Action != sink.Retry || !strings.Contains(e.Message, "openapi-mode") {
		t.Errorf("%+v", e)
	}
}

// A table of another schema that is exposed, and one of a schema that is not.
func TestSchemas(t *testing.T) {
	other := testdb.Schema(t)
	u, err := url.Parse(other)
	if err != nil {
		t.Fatal(err)
	}
	name := u.Query().Get("search_path")
	p := postgresttest.New(t, postgresttest.Options{Schemas: []string{name}})
	testdb.Exec(t, other, "grant usage on schema "+name+" to "+p.Role)
	inEachMode(t, func(t *testing.T, mode postgrest.Mode) {
		table := tableOf(t, fmt.Sprintf("%s.item_%s", name, mode), "id text", "n int max")
		s := open(t, p, []*sink.Table{table}, postgrest.Options{Mode: mode})
		bring(t, s, table)
		write(t, s, table, say(t, table, "k", 1, map[string]any{"n": "1"}))
		write(t, s, table, say(t, table, "k", 1, map[string]any{"n": "2"}))
		mustShow(t, s, table, "k", "n=2")
	})
	hidden := tableOf(t, "pg_catalog.item", "id text", "n int max")
	s := open(t, p, []*sink.Table{hidden}, postgrest.Options{Mode: postgrest.REST})
	if e := refused(t, s, hidden, say(t, hidden, "k", 1, map[string]any{"n": "1"})); !strings.Contains(e.Message, "Expose the schema") {
		t.Errorf("%+v", e)
	}
}

// Names and values with the characters that a query string or a function could
// trip over.
func TestOddNames(t *testing.T) {
	inEachMode(t, func(t *testing.T, mode postgrest.Mode) {
		table := tableOf(t, "Odd_order", "Key.1 text", "group text scope g", "x,y numeric max", "hookfold_rows text scope h", "é_ text ladder a,b),c")
		table.Columns[0].Name = "group"
		table.Columns[3].Rungs = []string{"a+1", `b"),\`, "c d"}
		p, s := ready(t, mode, postgrest.Options{}, table)
		_ = p
		key := `k,.:()"\ +%&=é`
		write(t, s, table, say(t, table, key, 1, map[string]any{"é_": "a+1", "x,y": "1", "group": "g", "hookfold_rows": "h"}))
		write(t, s, table, say(t, table, key, 2, map[string]any{"é_": `b"),\`, "x,y": "2"}))
		write(t, s, table, say(t, table, key, 0, map[string]any{"é_": "a+1", "x,y": "0", "group": "older"}))
		mustShow(t, s, table, key, `group=g x,y=2 hookfold_rows=h é_=b"),\`)
	})
}

// More rows than one page, with keys that only a composite order tells apart.
func TestReadsEveryPage(t *testing.T) {
	p := postgresttest.New(t, postgresttest.Options{MaxRows: 7})
	table := tableOf(t, "item", "tenant text, no int", "v text")
	s := open(t, p, []*sink.Table{table}, postgrest.Options{})
	bring(t, s, table)
	var changes []*merge.Change
	for i := range 60 {
		changes = append(changes, say(t, table, fmt.Sprintf("t%d|%d", i%3, i), 1, map[string]any{"v": fmt.Sprint(i)}))
	}
	write(t, s, table, changes...)
	same(t, s, table, changes)
	var keys []merge.Key
	for _, c := range changes {
		keys = append(keys, c.Key)
	}
	rows, err := s.Read(t.Context(), table, append(keys, merge.NewKey("t9", "9")))
	if err != nil || slices.Index(rows, nil) != len(keys) {
		t.Errorf("of %d rows that were asked for, the first that is missing is %d: %v", len(keys), slices.Index(rows, nil), err)
	}
	known, err := s.(sink.Knower).Known(t.Context(), table, []merge.Key{merge.NewKey("t0", "0"), merge.NewKey("t9", "0")})
	if err != nil || !known[0] || known[1] {
		t.Errorf("%v, %v", known, err)
	}
}

// What a row waits for is named, so that it is woken by it.
func TestWaitsForNamed(t *testing.T) {
	inEachMode(t, func(t *testing.T, mode postgrest.Mode) {
		parent, table := tableOf(t, "account", "id text"), tableOf(t, "item", "id text", "account_id text", "code text scope code")
		p, s := ready(t, mode, postgrest.Options{}, parent, table)
		p.Exec(t, "alter table item add foreign key (account_id) references account", "alter table item add constraint one_code unique (code)")
		e := refused(t, s, table, say(t, table, "k", 1, map[string]any{"account_id": "a,1"}))
		if e.Action != sink.Wait || e.Why != sink.NeedsParent || e.On != "account id=a,1" {
			t.Errorf("a parent that is not there: %+v", e)
		}
		write(t, s, table, say(t, table, "k", 1, map[string]any{"code": "c"}))
		e = refused(t, s, table, say(t, table, "l", 1, map[string]any{"code": "c"}))
		if e.Action != sink.Wait || e.Why != sink.UniqueValue || e.On != "item" {
			t.Errorf("a value that another row has: %+v", e)
		}
	})
}

func TestKeysThatAreOneToTheDatabase(t *testing.T) {
	p := postgresttest.New(t, postgresttest.Options{})
	p.Exec(t, "create table padded (id character(5) primary key, n bigint)")
	p.Grant(t, "padded")
	table := tableOf(t, "padded", "id text", "n int max")
	s := open(t, p, []*sink.Table{table}, postgrest.Options{Mode: postgrest.REST})
	if e := refused(t, s, table, say(t, table, "k", 1, map[string]any{"n": "1"})); e.Action != sink.Retry || !strings.Contains(e.Message, "mode: rpc") {
		t.Errorf("%+v", e)
	}
}

func TestPing(t *testing.T) {
	inEachMode(t, func(t *testing.T, mode postgrest.Mode) {
		p := postgresttest.New(t, postgresttest.Options{})
		s := open(t, p, nil, postgrest.Options{Mode: mode})
		if err := s.Ping(t.Context()); err != nil {
			t.Errorf("before the migration: %v", err)
		}
		p.Double.Inject(func(*http.Request) postgresttest.Fault { return postgresttest.DatabaseDown })
		if err := s.Ping(t.Context()); sinkError(t, err).Action != sink.Retry {
			t.Error(err)
		}
	})
}

// The live suite's way, with a double in the place of a real server: it needs
// nothing but the variables, and leaves nothing behind.
func TestLiveLeavesNothing(t *testing.T) {
	p := postgresttest.New(t, postgresttest.Options{})
	for _, key := range []string{p.Key, ""} {
		api := p.API
		if key == "" { // whoever asks without a key may write
			api = postgresttest.Start(t, p.Database, postgresttest.Options{Schemas: []string{p.Schema}, Anon: p.Anon}).URL
		}
		testdb.Exec(t, p.Database, "create table if not exists theirs (id int)")
		t.Setenv(postgresttest.LiveVar, api)
		t.Setenv(postgresttest.LiveKeyVar, key)
		t.Setenv(postgresttest.LiveDatabaseVar, p.Database)
		t.Setenv(postgresttest.LiveSchemaVar, p.Schema)
		inEachMode(t, func(t *testing.T, mode postgrest.Mode) {
			live := postgresttest.Live(t)
			live.Exec(t, "create table before (id text primary key)")
			live.Grant(t, "before")
			table := tableOf(t, "item", "id text", "n int max")
			s := open(t, live, []*sink.Table{table}, postgrest.Options{Mode: mode})
			bring(t, s, table)
			write(t, s, table, say(t, table, "k", 1, map[string]any{"n": "1"}))
			mustShow(t, s, table, "k", "n=1")
		})
		c := testdb.Connect(t, t.Context(), p.Database)
		var left string
		err := c.QueryRow(t.Context(), `select (select string_agg(relname, ' ') from pg_class where relnamespace = $1::regnamespace and relkind = 'r') ||
			(select count(*) from pg_proc where pronamespace = $1::regnamespace)`, p.Schema).Scan(&left)
		c.Close(t.Context())
		if err != nil || left != "theirs0" {
			t.Errorf("there is left: %s, %v", left, err)
		}
	}
}

// Columns of users' types are read as a connection reads them.
func TestReadsAsAConnectionDoes(t *testing.T) {
	inEachMode(t, func(t *testing.T, mode postgrest.Mode) {
		p := postgresttest.New(t, postgresttest.Options{})
		p.Exec(t, "create table odd (id text primary key, plain timestamp, zoned timestamptz(3), padded character(8), words text, n numeric(20,4), f real, b bytea)")
		table := tableOf(t, "odd", "id text", "plain timestamp max", "zoned timestamp", "padded text", "words json", "n numeric min", "f float", "b bytes")
		s := open(t, p, []*sink.Table{table}, postgrest.Options{Mode: mode})
		bring(t, s, table)
		p.Grant(t, "odd")
		direct, err := sqlsink.Open(t.Context(), p.Database, nil, sqlsink.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer direct.Close()
		c := say(t, table, "k", 1, map[string]any{"plain": "2026-05-06T09:00:00.25+02:00", "zoned": "1900-01-01T00:00:00Z", "padded": "a", "words": "[1]", "n": "1.5", "f": "0.25", "b": `\x00ff`})
		for range 2 {
			write(t, s, table, c)
			want, got := shown(t, direct, table, "k"), shown(t, s, table, "k")
			if want != got {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		}
		if r := write(t, s, table, c); r.Written != 0 {
			t.Errorf("again: %+v", r)
		}
	})
}
