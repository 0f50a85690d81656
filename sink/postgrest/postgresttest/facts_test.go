package postgresttest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/sink/postgrest/postgresttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const itemTable = `create table item (
    id text primary key, qty int default 7, note text default 'dflt', t timestamptz, big bigint,
    code text unique, must text not null default 'm', pos int check (pos > 0), tag text)`

// project is a double, or the real server that is named, with the table item.
func project(t *testing.T) *postgresttest.Project {
	t.Helper()
	p := postgresttest.Live(t)
	if p == nil {
		p = postgresttest.New(t, postgresttest.Options{})
	}
	p.Exec(t, itemTable)
	p.Grant(t, "item")
	return p
}

type answer struct {
	status             int
	body, ranges, auth string
}

func do(t *testing.T, p *postgresttest.Project, method, path, prefer, body string, header ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, p.API+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if p.Key != "" {
		r.Header.Set("Authorization", "Bearer "+p.Key)
	}
	profile := "Content-Profile"
	if method == "GET" || method == "HEAD" {
		profile = "Accept-Profile"
	}
	r.Header.Set(profile, p.Schema)
	if prefer != "" {
		r.Header.Set("Prefer", prefer)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] == "" {
			r.Header.Del(header[i])
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, string(text), res.Header.Get("Content-Range"), res.Header.Get("WWW-Authenticate")}
}

// value reads one value from the database.
func value(t *testing.T, p *postgresttest.Project, sql string) string {
	t.Helper()
	c := testdb.Connect(t, t.Context(), p.Database)
	defer c.Close(context.Background())
	var v *string
	if err := c.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatal(err)
	}
	if v == nil {
		return "NULL"
	}
	return *v
}

const (
	repr   = "return=representation"
	merged = "resolution=merge-duplicates"
	ignore = "resolution=ignore-duplicates"
	exact  = "count=exact"
)

// Each fact is one line of what was measured on PostgREST 12.0.3.
func TestFacts(t *testing.T) {
	for _, f := range []struct {
		name                       string
		setup                      string
		method, path, prefer, body string
		status                     int
		has                        string // what the body holds
		ranges                     string
		sql, want                  string // what the database holds then
	}{
		{name: "bulk POST with representation", method: "POST", path: "/item?select=id,qty", prefer: repr, body: `[{"id":"a","qty":1},{"id":"b","qty":2}]`, status: 201, has: `"id":"b","qty":2`},
		{name: "duplicate without Prefer", setup: "insert into item (id) values ('a')", method: "POST", path: "/item", body: `{"id":"a"}`, status: 409,
			has: `"code":"23505","details":"Key (id)=(a) already exists.","hint":null,"message":"duplicate key value`},
		{name: "merge: 201 if any is inserted", setup: "insert into item (id) values ('a')", method: "POST", path: "/item", prefer: merged, body: `[{"id":"a","qty":1},{"id":"b","qty":1}]`, status: 201},
		{name: "merge: 200 if none is", setup: "insert into item (id, note) values ('a', 'kept')", method: "POST", path: "/item", prefer: merged + "," + exact, body: `[{"id":"a","qty":1}]`, status: 200, ranges: "*/1",
			sql: "select qty || note from item", want: "1kept"},
		{name: "ignore: only what is inserted", setup: "insert into item (id) values ('a')", method: "POST", path: "/item?select=id", prefer: ignore + "," + repr + "," + exact, body: `[{"id":"a"},{"id":"b"}]`, status: 201, has: `[{"id":"b"}]`, ranges: "*/1"},
		{name: "ignore: all are there", setup: "insert into item (id) values ('a')", method: "POST", path: "/item", prefer: ignore + "," + repr, body: `[{"id":"a"}]`, status: 201, has: `[]`},
		{name: "on_conflict of another unique", setup: "insert into item (id, code) values ('a', 'c')", method: "POST", path: "/item?on_conflict=code", prefer: merged, body: `{"id":"z","code":"c","qty":3}`, status: 200,
			sql: "select id || qty from item", want: "z3"},
		{name: "on_conflict of no unique", method: "POST", path: "/item?on_conflict=note", prefer: merged, body: `{"id":"a","note":"n"}`, status: 400, has: `"42P10"`},
		{name: "merge: conflict of another unique", setup: "insert into item (id, code) values ('a', 'c')", method: "POST", path: "/item", prefer: merged, body: `{"id":"b","code":"c"}`, status: 409, has: `"23505"`},
		{name: "ignore: conflict of another unique", setup: "insert into item (id, code) values ('a', 'c')", method: "POST", path: "/item", prefer: ignore, body: `{"id":"b","code":"c"}`, status: 409, has: `"23505"`},
		{name: "merge: a key twice", method: "POST", path: "/item", prefer: merged, body: `[{"id":"a","qty":1},{"id":"a","qty":2}]`, status: 500, has: `"21000"`},
		{name: "ignore: a key twice", method: "POST", path: "/item", prefer: ignore, body: `[{"id":"a","qty":1},{"id":"a","qty":2}]`, status: 201, sql: "select qty::text from item", want: "1"},
		{name: "ragged objects", method: "POST", path: "/item", body: `[{"id":"a","qty":1},{"id":"b"}]`, status: 400, has: `"code":"PGRST102"`},
		{name: "ragged objects, the words", method: "POST", path: "/item", body: `[{"id":"a"},{"id":"b","qty":1}]`, status: 400, has: `All object keys must match`},
		{name: "columns: a missing key is NULL", method: "POST", path: "/item?columns=id,qty", body: `[{"id":"a"}]`, status: 201, sql: "select qty::text from item", want: "NULL"},
		{name: "columns, missing=default", method: "POST", path: "/item?columns=id,qty,note", prefer: "missing=default", body: `[{"id":"a"}]`, status: 201, sql: "select qty || note from item", want: "7dflt"},
		{name: "merge, columns: NULL over what is there", setup: "insert into item (id, qty) values ('a', 99)", method: "POST", path: "/item?columns=id,qty", prefer: merged, body: `[{"id":"a"}]`, status: 200, sql: "select qty::text from item", want: "NULL"},
		{name: "merge, columns: NULL over NOT NULL", setup: "insert into item (id) values ('a')", method: "POST", path: "/item?columns=id,must", prefer: merged, body: `[{"id":"a"}]`, status: 400, has: `"23502"`},
		{name: "merge, missing=default: the default over what is there", setup: "insert into item (id, qty, note) values ('a', 99, 'custom')", method: "POST", path: "/item?columns=id,qty,note", prefer: merged + ",missing=default", body: `[{"id":"a"}]`, status: 200,
			sql: "select qty || note from item", want: "7dflt"},
		{name: "PATCH with or=", setup: "insert into item (id) values ('a')", method: "PATCH", path: "/item?id=eq.a&or=(t.is.null,t.lt.2026-01-01T00:00:00Z)", prefer: exact, body: `{"t":"2026-01-01T00:00:00Z"}`, status: 204, ranges: "0-0/1",
			sql: "select (t at time zone 'UTC')::text from item", want: "2026-01-01 00:00:00"},
		{name: "PATCH with or=, headers-only", setup: "insert into item (id) values ('a')", method: "PATCH", path: "/item?id=eq.a&or=(t.is.null,t.lt.2026-01-01T00:00:00Z)", prefer: "return=headers-only," + exact, body: `{"t":"2026-01-01T00:00:00Z"}`, status: 204, ranges: "0-0/1"},
		{name: "PATCH with or=, representation shows nothing though it is written", setup: "insert into item (id, t) values ('a', '2025-01-01Z')", method: "PATCH", path: "/item?id=eq.a&or=(t.is.null,t.lt.2026-01-01T00:00:00Z)", prefer: repr + "," + exact,
			body: `{"t":"2026-01-01T00:00:00Z"}`, status: 200, has: "[]", ranges: "*/0", sql: "select extract(year from t at time zone 'UTC')::text from item", want: "2026"},
		{name: "PATCH with a plain filter, representation", setup: "insert into item (id, t) values ('a', '2025-01-01Z')", method: "PATCH", path: "/item?id=eq.a&t=lt.2026-01-01T00:00:00Z&select=id", prefer: repr + "," + exact, body: `{"t":"2026-01-01T00:00:00Z"}`, status: 200, has: `[{"id":"a"}]`, ranges: "0-0/1"},
		{name: "PATCH without a match", method: "PATCH", path: "/item?id=eq.a", prefer: exact, body: `{"qty":1}`, status: 204, ranges: "*/0"},
		{name: "PATCH without a match, representation", method: "PATCH", path: "/item?id=eq.a", prefer: repr, body: `{"qty":1}`, status: 200, has: "[]"},
		{name: "merge with count", method: "POST", path: "/item", prefer: merged + "," + exact, body: `[{"id":"a"},{"id":"b"}]`, status: 201, ranges: "*/2"},
		{name: "max-affected is not known", method: "PATCH", path: "/item?id=eq.a", prefer: "handling=strict,max-affected=1", body: `{"qty":1}`, status: 400, has: "PGRST122"},
		{name: "tx=rollback is not allowed", method: "POST", path: "/item", prefer: "tx=rollback", body: `{"id":"a"}`, status: 201, sql: "select count(*)::text from item", want: "1"},
		{name: "PUT of one row", method: "PUT", path: "/item?id=eq.a", body: `{"id":"a","qty":1,"note":"n","t":null,"big":null,"code":null,"must":"m","pos":null,"tag":null}`, status: 201},
		{name: "check", method: "POST", path: "/item", body: `[{"id":"a","pos":1},{"id":"b","pos":-1}]`, status: 400, has: `"23514"`, sql: "select count(*)::text from item", want: "0"},
		{name: "not null", method: "POST", path: "/item", body: `[{"id":"a","must":null}]`, status: 400, has: `"23502"`},
		{name: "bad type", method: "POST", path: "/item", body: `[{"id":"a","qty":"many"}]`, status: 400, has: `"22P02"`},
		{name: "unknown column", method: "POST", path: "/item", body: `[{"id":"a","nope":1}]`, status: 400, has: `"PGRST204"`},
		{name: "unknown table", method: "POST", path: "/nope", body: `[{"id":"a"}]`, status: 404, has: "{}"},
		{name: "bad JSON", method: "POST", path: "/item", body: `[{"id":`, status: 400, has: `"PGRST102"`},
		{name: "bigint is exact", method: "POST", path: "/item?select=big", prefer: repr, body: `{"id":"a","big":9007199254740993}`, status: 201, has: "9007199254740993"},
		{name: "merge: the key has to be in the body", method: "POST", path: "/item", prefer: merged, body: `[{"qty":1}]`, status: 400, has: `"23502"`},
		{name: "a row filter does not guard an upsert", setup: "insert into item (id, qty) values ('a', 5)", method: "POST", path: "/item?qty=lt.3", prefer: merged, body: `{"id":"a","qty":1}`, status: 200, sql: "select qty::text from item", want: "1"},
		{name: "unknown schema", method: "GET", path: "/item", status: 406, has: "PGRST106"},
		// How filters are read.
		{name: "in, quoted", setup: "insert into item (id, tag) values ('1', 'a,b'), ('2', 'c)'), ('3', 'd\"\\e'), ('4', 'f')", method: "GET", path: `/item?select=id&order=id.asc&tag=in.(%22a,b%22,%22c)%22,%22d\%22\\e%22)`, status: 200, has: `[{"id":"1"}, ` + "\n" + ` {"id":"2"}, ` + "\n" + ` {"id":"3"}]`},
		{name: "in a tree, quoted", setup: "insert into item (id, tag) values ('1', 'a,b'), ('2', 'x')", method: "GET", path: `/item?select=id&or=(tag.eq.%22a,b%22,and(id.eq.9,tag.is.null))`, status: 200, has: `[{"id":"1"}]`},
		{name: "outside a tree quotes are text", setup: `insert into item (id, tag) values ('1', '"a"'), ('2', 'a')`, method: "GET", path: `/item?select=id&tag=eq.%22a%22`, status: 200, has: `[{"id":"1"}]`},
		{name: "a plus is a space", setup: "insert into item (id, tag) values ('1', 'a b'), ('2', 'a+b')", method: "GET", path: `/item?select=id&tag=eq.a+b`, status: 200, has: `[{"id":"1"}]`},
		{name: "an encoded plus is a plus", setup: "insert into item (id, tag) values ('1', 'a b'), ('2', 'a+b')", method: "GET", path: `/item?select=id&tag=eq.a%2Bb`, status: 200, has: `[{"id":"2"}]`},
		{name: "not.in and is.null", setup: "insert into item (id, tag) values ('1', 'read'), ('2', 'sent'), ('3', null)", method: "GET", path: `/item?select=id&order=id.asc&or=(tag.is.null,tag.not.in.(%22read%22))`, status: 200, has: `{"id":"2"}, ` + "\n" + ` {"id":"3"}`},
		{name: "and, gt, gte, lte", setup: "insert into item (id, qty) values ('1', 1), ('2', 2), ('3', 3)", method: "GET", path: `/item?select=id&and=(qty.gt.1,qty.lte.2)&qty=gte.2`, status: 200, has: `[{"id":"2"}]`},
		{name: "a tree that is not one", method: "GET", path: `/item?or=(tag.eq.a`, status: 400, has: "PGRST100"},
		{name: "an operator that is none", method: "GET", path: `/item?tag=is_like.a`, status: 400, has: "PGRST100"},
	} {
		t.Run(f.name, func(t *testing.T) {
			p := project(t)
			if f.setup != "" {
				testdb.Exec(t, p.Database, f.setup)
			}
			var header []string
			if f.has == "PGRST106" {
				header = []string{"Accept-Profile", "not_exposed"}
			}
			got := do(t, p, f.method, f.path, f.prefer, f.body, header...)
			if got.status != f.status || !strings.Contains(got.body, f.has) {
				t.Errorf("%d %s\nwant %d with %s", got.status, got.body, f.status, f.has)
			}
			if f.ranges != "" && got.ranges != f.ranges {
				t.Errorf("Content-Range %s, want %s", got.ranges, f.ranges)
			}
			if f.sql != "" {
				if v := value(t, p, f.sql); v != f.want {
					t.Errorf("%s: %s, want %s", f.sql, v, f.want)
				}
			}
		})
	}
}

const functions = `create function one(a int, b text default 'x') returns text language sql as $$ select a || b $$;
create function two() returns int language sql as $$ select 2 $$;
create function many(n int) returns table (applied boolean) language sql as $$ select true from generate_series(1, n) $$;
create function takes(j json) returns json language sql as $$ select j -> 'x' $$;
create function stops() returns void language plpgsql as $$ begin raise sqlstate 'PT409' using message = 'no', detail = 'why'; end $$;
create function plain() returns void language plpgsql as $$ begin raise exception 'no'; end $$;
create function locked() returns void language plpgsql as $$ begin raise sqlstate '40P01'; end $$;
create function again() returns void language plpgsql as $$ begin raise sqlstate '40001'; end $$;
create function inner_writes() returns void language sql as $$ insert into item (id) values ('w') $$;
create function writes() returns void language plpgsql stable as $$ begin perform inner_writes(); end $$;
create function level() returns text language sql set default_transaction_isolation = 'serializable' as $$ select current_setting('transaction_isolation') $$;
create function own() returns text language sql as $$ select current_setting('transaction_isolation') $$`

func TestFunctions(t *testing.T) {
	p := project(t)
	p.Exec(t, strings.Split(functions, ";\ncreate")[0])
	for _, f := range strings.Split(functions, ";\ncreate")[1:] {
		testdb.Exec(t, p.Database, "create"+f)
	}
	p.Exec(t)
	for _, f := range []struct {
		name, body string
		status     int
		has        string
	}{
		{"one", `{"a":1}`, 200, `"1x"`},
		{"one", `{"a":1,"b":"y"}`, 200, `"1y"`},
		{"two", `{}`, 200, `2`},
		{"many", `{"n":1}`, 200, `[{"applied":true}]`},
		{"takes", `{"j":{"x":{"y":[9007199254740993]}}}`, 200, `{"y":[9007199254740993]}`},
		{"nope", `{"a":1}`, 404, `"PGRST202"`},
		{"one", `{"wrong":1}`, 404, `"42883"`},
		{"stops", `{}`, 409, `"PT409"`},
		{"plain", `{}`, 400, `"P0001"`},
		{"locked", `{}`, 500, `"40P01"`},
		{"writes", `{}`, 405, `"25006"`},
		{"level", `{}`, 200, `"serializable"`},
		{"own", `{}`, 200, `"read committed"`},
	} {
		got := do(t, p, "POST", "/rpc/"+f.name, "", f.body)
		if got.status != f.status || !strings.Contains(got.body, f.has) {
			t.Errorf("%s(%s): %d %s\nwant %d with %s", f.name, f.body, got.status, got.body, f.status, f.has)
		}
	}
	t.Run("40001 is tried again for ever", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, "POST", p.API+"/rpc/again", strings.NewReader("{}"))
		r.Header.Set("Content-Profile", p.Schema)
		if p.Key != "" {
			r.Header.Set("Authorization", "Bearer "+p.Key)
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		if res, err := client.Do(r); err == nil {
			res.Body.Close()
			t.Errorf("it was answered: %d", res.StatusCode)
		}
	})
}

func TestTokens(t *testing.T) {
	p := postgresttest.New(t, postgresttest.Options{})
	p.Exec(t, itemTable)
	p.Grant(t, "item")
	s := p.Double
	for _, f := range []struct {
		name, token string
		status      int
		code, auth  string
	}{
		{"the key's role", p.Key, 200, "", ""},
		{"expired", s.Token(p.Role, -time.Minute), 401, "PGRST301", "JWT expired"},
		{"still good", s.Token(p.Role, time.Minute), 200, "", ""},
		{"bad signature", postgresttest.Token("another secret, as long as the first one is", p.Role, 0), 401, "PGRST301", "Bearer"},
		{"no token at all", "nonsense", 401, "PGRST301", "Bearer"},
		{"anonymous without privilege", "", 401, "42501", "Bearer"},
		{"a role without privilege", s.Token(p.Anon, 0), 403, "42501", ""},
	} {
		t.Run(f.name, func(t *testing.T) {
			header := []string{"Authorization", ""}
			if f.token != "" {
				header[1] = "Bearer " + f.token
			}
			got := do(t, p, "GET", "/item", "", "", header...)
			if got.status != f.status || f.code != "" && !strings.Contains(got.body, `"`+f.code+`"`) || !strings.Contains(got.auth, f.auth) {
				t.Errorf("%d %s, WWW-Authenticate %q; want %+v", got.status, got.body, got.auth, f)
			}
		})
	}
	t.Run("no anonymous access", func(t *testing.T) {
		q := postgresttest.Start(t, p.Database, postgresttest.Options{Schemas: []string{p.Schema}, Secret: "x"})
		got := do(t, &postgresttest.Project{API: q.URL, Schema: p.Schema}, "GET", "/item", "", "")
		if got.status != 401 || !strings.Contains(got.body, "PGRST302") {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}

// Statuses of SQLSTATEs that are hard to bring about.
func TestStatuses(t *testing.T) {
	p := project(t)
	p.Exec(t, "create function fails(state text) returns void language plpgsql as $$ begin raise exception using errcode = state, message = 'm'; end $$")
	denied := 403
	if p.Key == "" { // a role that has said who it is, is told otherwise
		denied = 401
	}
	for state, status := range map[string]int{
		"42501": denied, "23503": 409, "23505": 409, "40P01": 500, "53300": 503, "08006": 503, "57014": 500, "P0001": 400, "PT418": 418, "22003": 400, "21000": 500, "XX000": 500,
	} {
		if got := do(t, p, "POST", "/rpc/fails", "", fmt.Sprintf(`{"state":%q}`, state)); got.status != status || !strings.Contains(got.body, `"`+state+`"`) {
			t.Errorf("%s: %d %s, want %d", state, got.status, got.body, status)
		}
	}
}

func TestSchemaCache(t *testing.T) {
	p := project(t)
	if p.Double == nil {
		return // its own reload cannot be awaited
	}
	testdb.Exec(t, p.Database, "alter table item add column later int", "create function later() returns int language sql as 'select 1'")
	if got := do(t, p, "POST", "/item", "", `{"id":"a","later":1}`); !strings.Contains(got.body, "PGRST204") {
		t.Errorf("a column that the cache cannot know: %+v", got)
	}
	if got := do(t, p, "POST", "/rpc/later", "", `{}`); !strings.Contains(got.body, "PGRST202") {
		t.Errorf("a function that the cache cannot know: %+v", got)
	}
	p.Exec(t)
	if got := do(t, p, "POST", "/item", "", `{"id":"a","later":1}`); got.status != 201 {
		t.Errorf("after NOTIFY pgrst: %+v", got)
	}
}

func TestLimitsAndFaults(t *testing.T) {
	p := postgresttest.New(t, postgresttest.Options{MaxRows: 2, MaxBody: 2000})
	p.Exec(t, itemTable, "insert into item (id) values ('1'), ('2'), ('3')")
	p.Grant(t, "item")
	if got := do(t, p, "GET", "/item?select=id", "", ""); strings.Count(got.body, "id") != 2 || got.ranges != "0-1/*" {
		t.Errorf("rows of a read: %+v", got)
	}
	if got := do(t, p, "GET", "/item?select=id&limit=1&offset=1&order=id.asc", exact, ""); got.status != 206 || got.ranges != "1-1/3" {
		t.Errorf("part of a read: %+v", got)
	}
	if got := do(t, p, "POST", "/item?select=id", repr, `[{"id":"4"},{"id":"5"},{"id":"6"}]`); strings.Count(got.body, "id") != 3 {
		t.Errorf("the limit of reads is none of writes: %+v", got)
	}
	if got := do(t, p, "DELETE", "/item?id=in.(4,5,6)", "", ""); got.status != 204 {
		t.Errorf("DELETE of several: %+v", got)
	}
	if got := do(t, p, "HEAD", "/item", exact, ""); got.ranges != "0-1/3" || got.body != "" {
		t.Errorf("HEAD: %+v", got)
	}
	if got := do(t, p, "POST", "/item", "", `{"id":"`+strings.Repeat("x", 2000)+`"}`); got.status != 413 {
		t.Errorf("a body that is too long: %+v", got)
	}
	if got := do(t, p, "DELETE", "/item?id=eq.1", repr, ""); got.status != 200 || !strings.Contains(got.body, `"id":"1"`) {
		t.Errorf("DELETE: %+v", got)
	}
	send := func(f postgresttest.Fault) (answer, error) {
		p.Double.Inject(func(*http.Request) postgresttest.Fault { return f })
		defer p.Double.Inject(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, "POST", p.API+"/item", strings.NewReader(`{"id":"lost"}`))
		r.Header.Set("Authorization", "Bearer "+p.Key)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Do(r)
		if err != nil {
			return answer{}, err
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return answer{status: res.StatusCode, body: string(text)}, nil
	}
	if _, err := send(postgresttest.Down); err == nil {
		t.Error("down, and it answered")
	}
	if _, err := send(postgresttest.Slow); err == nil {
		t.Error("slow, and it answered")
	}
	if got, err := send(postgresttest.PoolTimeout); err != nil || got.status != 504 || !strings.Contains(got.body, "PGRST003") {
		t.Errorf("no connection left: %+v, %v", got, err)
	}
	if got, err := send(postgresttest.DatabaseDown); err != nil || got.status != 503 || !strings.Contains(got.body, "PGRST000") {
		t.Errorf("no database: %+v, %v", got, err)
	}
	if _, err := send(postgresttest.LostAfterCommit); err == nil {
		t.Error("the connection was not lost")
	}
	if v := value(t, p, "select count(*)::text from item where id = 'lost'"); v != "1" {
		t.Errorf("it was not committed: %s", v)
	}
}

func TestOpenAPI(t *testing.T) {
	p := project(t)
	got := do(t, p, "GET", "/", "", "", "Accept", "application/openapi+json")
	for _, has := range []string{`"item"`, `"format":"timestamp with time zone"`, `This is a Primary Key.`, `"default":"dflt"`, `"default":7`} {
		if !strings.Contains(got.body, has) {
			t.Errorf("the description lacks %s: %d %s", has, got.status, got.body)
		}
	}
}
