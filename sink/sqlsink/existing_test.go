package sqlsink_test

import (
	"context"
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// existing opens a sink on a PostgreSQL database in which these statements were
// run, and adds what the tables still need.
func existing(t *testing.T, statements []string, tables ...*sink.Table) (sink.Sink, string) {
	t.Helper()
	url := testdb.Postgres(t)
	testdb.Exec(t, url, statements...)
	s := open(t, url, tables, sqlsink.Options{})
	bring(t, s, tables...)
	return s, url
}

// one returns one value of a PostgreSQL database as text.
func one(t testing.TB, url, query string) string {
	t.Helper()
	ctx := context.Background()
	c := testdb.Connect(t, ctx, url)
	defer c.Close(ctx)
	var out *string
	if err := c.QueryRow(ctx, "select ("+strings.TrimSuffix(query, ";")+")::text").Scan(&out); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if out == nil {
		return "NULL"
	}
	return *out
}

func TestExistingTypes(t *testing.T) {
	table := tableOf(t, "public.thing", "id text",
		"mood text", "email text", "short text", "code text", "qty int", "small int", "price numeric", "ratio float",
		"at timestamp", "local timestamp", "day date", "ref uuid", "doc json", "raw json", "bin bytes", "tags text[]", "labels text[] union",
		"low text max", "rank text ladder sad,ok,happy", "ok bool")
	s, url := existing(t, []string{
		`create extension citext`,
		`create type mood as enum ('sad', 'ok', 'happy')`,
		`create domain code as varchar(5) check (value ~ '^[A-Z]+$')`,
		`create table thing (id varchar(40) collate "en-x-icu" primary key, mood mood, email citext, short varchar(9), code code, qty int8, small int2,
			price numeric(10,2), ratio float8, at timestamptz, local timestamp, day date, ref uuid, doc jsonb, raw json, bin bytea,
			tags text[], labels varchar(10)[], low citext, rank mood, ok bool, other text default 'mine')`,
	}, table)
	set := map[string]any{
		"mood": "ok", "email": "Ann@example.com", "short": "123456789", "code": "ABC", "qty": "9007199254740993", "small": "-32768",
		"price": "129.90", "ratio": "0.1", "at": "2026-03-29T01:30:00.123456Z", "local": "2026-03-29T02:30:00Z", "day": "2026-02-28",
		"ref": "00000000-0000-4000-8000-00000000000A", "doc": `{"b":1.00,"a":[9007199254740993]}`, "raw": `{"a":1e3}`, "bin": `\x00ff`,
		"tags": `["b","a","b","","x\"y\\z{}"]`, "labels": `["b","a"]`, "low": "b", "rank": "ok", "ok": "true",
	}
	write(t, s, table, say(t, table, "k", 5, set))
	want := `mood=ok email=Ann@example.com short=123456789 code=ABC qty=9007199254740993 small=-32768 price=129.9 ratio=0.1 ` +
		`at=2026-03-29T01:30:00.123456Z local=2026-03-29T02:30:00.000000Z day=2026-02-28 ref=00000000-0000-4000-8000-00000000000a ` +
		`doc={"a":[9007199254740993],"b":1.00} raw={"a":1e3} bin=\x00ff tags=["b","a","b","","x\"y\\z{}"] labels=["a","b"] low=b rank=ok ok=true`
	mustShow(t, s, table, "k", want)
	if got := one(t, url, "select other from thing"); got != "mine" {
		t.Errorf("an unmapped column has %s", got)
	}
	if r := write(t, s, table, say(t, table, "k", 5, set)); r.Written != 0 {
		t.Errorf("the same again wrote %d rows", r.Written)
	}

	// The case of a citext is a change, and max and ladder go by bytes and rungs.
	set["email"], set["low"], set["rank"], set["labels"] = "ann@example.com", "B", "happy", `["c","b"]`
	write(t, s, table, say(t, table, "k", 6, set))
	want = strings.Replace(want, "email=Ann", "email=ann", 1)
	want = strings.Replace(want, "rank=ok", "rank=happy", 1)
	want = strings.Replace(want, `labels=["a","b"]`, `labels=["a","b","c"]`, 1)
	mustShow(t, s, table, "k", want)

	for name, value := range map[string]string{"short": "1234567890", "small": "40000", "price": "1.234", "mood": "glad", "code": "TOOLONG", "qty": ""} {
		if value == "" {
			continue
		}
		bad := say(t, table, "x", 1, map[string]any{name: value})
		e := refused(t, s, table, bad)
		if e.Action != sink.Reject || !strings.Contains(e.Message, name) {
			t.Errorf("%s = %s: %v, action %d", name, value, e, e.Action)
		}
		mustShow(t, s, table, "x", "no row")
	}
	e := refused(t, s, table, say(t, table, "x", 1, map[string]any{"code": "abc"}))
	if e.Action != sink.Reject || !strings.Contains(e.Message, "code") {
		t.Errorf("a domain's check: %v, action %d", e, e.Action)
	}
}

func TestExistingDefaultsAndTriggers(t *testing.T) {
	table := tableOf(t, "task", "id int", "title text", "status text scope status", "qty int max", "seen text first")
	s, url := existing(t, []string{
		`create table task (no int generated always as identity, id int primary key, title text not null default 'untitled', status text default upper('new'),
			qty int default 0, seen text default 'never', twice int generated always as (id * 2) stored, updated int not null default 0)`,
		`create function moved() returns trigger language plpgsql as 'begin new.updated = old.updated + 1; return new; end'`,
		`create trigger moved before update on task for each row execute function moved()`,
	}, table)
	// F13: the defaults of max and first stay out; latest columns take theirs.
	write(t, s, table, say(t, table, "1", 1, map[string]any{"status": "open"}))
	mustShow(t, s, table, "1", "title=untitled status=open qty=NULL seen=NULL")
	write(t, s, table, say(t, table, "2", 1, map[string]any{"qty": "-5"}))
	mustShow(t, s, table, "2", "title=untitled status=NEW qty=-5 seen=NULL")
	// A partial update of a row never brings the default back.
	write(t, s, table, say(t, table, "2", 2, map[string]any{"title": "milk", "qty": "-7"}))
	write(t, s, table, say(t, table, "2", 3, map[string]any{"status": "done"}))
	write(t, s, table, say(t, table, "2", 2, map[string]any{"title": "milk", "qty": "-7"}))
	mustShow(t, s, table, "2", "title=milk status=done qty=-5 seen=NULL")
	if got := one(t, url, "select updated || '/' || twice from task where id = 2"); got != "2/4" {
		t.Errorf("the user's trigger ran %s", got)
	}
}

// A row that is there can be updated in part, although a new one would need
// more; where there is none, the change waits.
func TestPartialUpdateOfNotNull(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		table := tableOf(t, "invoice", "id text", "total numeric scope total", "paid text scope paid", "best int max")
		s := open()
		run(t, s, `create table invoice (id text primary key, total numeric not null, paid text not null, best int, stamp text)`)
		bring(t, s, table)
		part := say(t, table, "a", 2, map[string]any{"paid": "yes", "best": "9"})
		e := refused(t, s, table, part, say(t, table, "b", 1, map[string]any{"total": "1", "paid": "no"}))
		if e.Action != sink.Wait || e.On != "invoice.total" || !strings.Contains(e.Message, "total") {
			t.Errorf("got %v, action %d, on %q", e, e.Action, e.On)
		}
		mustShow(t, s, table, "b", "no row")
		write(t, s, table, say(t, table, "a", 1, map[string]any{"total": "10", "paid": "no"}))
		r := write(t, s, table, part, say(t, table, "b", 1, map[string]any{"total": "1", "paid": "no"}))
		if r.Written != 2 {
			t.Errorf("%+v", r)
		}
		mustShow(t, s, table, "a", "total=10 paid=yes best=9")
		if r := write(t, s, table, part); r.Written != 0 || r.Unchanged != 1 {
			t.Errorf("again: %+v", r)
		}
	})
}

// The trigger gives the NOT NULL column its value, so the insert is tried.
func TestTriggerFillsNotNull(t *testing.T) {
	table := tableOf(t, "invoice", "id text", "paid text")
	s, url := existing(t, []string{
		`create table invoice (id text primary key, paid text, tenant text not null)`,
		`create function fill() returns trigger language plpgsql as 'begin new.tenant = coalesce(new.tenant, ''t1''); return new; end'`,
		`create trigger fill before insert on invoice for each row execute function fill()`,
	}, table)
	write(t, s, table, say(t, table, "a", 1, map[string]any{"paid": "yes"}))
	if got := one(t, url, "select tenant || paid from invoice"); got != "t1yes" {
		t.Errorf("got %s", got)
	}
}

func TestParentsWithTheKeyAlone(t *testing.T) {
	user := tableOf(t, "app_user", "id uuid", "name text", "visits int max")
	s, _ := existing(t, []string{`create table app_user (id uuid primary key, name text default 'unknown', visits int default 0)`}, user)
	const id = "00000000-0000-4000-8000-000000000001"
	stub := &merge.Row{Key: id, Scopes: make([]merge.Version, 1), Cells: make([]merge.Cell, 2), Seen: "v"}
	apply := func(want int) {
		t.Helper()
		r, err := s.Apply(t.Context(), &sink.Batch{Groups: []sink.Group{{Table: user, Rows: []*merge.Row{stub}}}})
		if err != nil || r.Written != want {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	apply(1)
	mustShow(t, s, user, id, "name=unknown visits=NULL")
	write(t, s, user, say(t, user, id, 1, map[string]any{"name": "ann", "visits": "3"}))
	apply(0)
	mustShow(t, s, user, id, "name=ann visits=3")

	strict := tableOf(t, "strict_user", "id text", "email text")
	s, _ = existing(t, []string{`create table strict_user (id text primary key, email text not null)`}, strict)
	e := refused(t, s, strict, say(t, strict, "u", 1, nil))
	if e.Action != sink.Wait || !strings.Contains(e.Message, "email is NOT NULL and has no default") || !strings.Contains(e.Message, "parent") {
		t.Errorf("got %v", e)
	}
}

func TestRowLevelSecurity(t *testing.T) {
	table := tableOf(t, "doc", "id text", "tenant text", "body text")
	url := testdb.Postgres(t)
	role := url[strings.LastIndex(url, "/")+1:] + "_role"
	testdb.Exec(t, url,
		`create table doc (id text primary key, tenant text, body text, row_version text)`,
		`create role `+role+` login`, `grant select, insert, update on doc to `+role,
		`alter table doc enable row level security`,
		`create policy mine on doc using (true) with check (tenant = 'a')`)
	t.Cleanup(func() { testdb.Exec(t, url, "drop owned by "+role, "drop role "+role) })
	s := open(t, strings.Replace(url, "postgres@", role+"@", 1), []*sink.Table{table}, sqlsink.Options{})
	write(t, s, table, say(t, table, "1", 1, map[string]any{"tenant": "a", "body": "x"}))
	write(t, s, table, say(t, table, "1", 2, map[string]any{"tenant": "a", "body": "y"}))
	mustShow(t, s, table, "1", "tenant=a body=y")
	if e := refused(t, s, table, say(t, table, "2", 1, map[string]any{"tenant": "b", "body": "x"})); e.Action != sink.Reject || !strings.Contains(e.Message, "row-level security") {
		t.Errorf("got %v, action %d", e, e.Action)
	}
	testdb.Exec(t, url, `revoke insert on doc from `+role)
	if e := refused(t, s, table, say(t, table, "3", 1, map[string]any{"tenant": "a", "body": "x"})); e.Action != sink.Retry || !strings.Contains(e.Message, "Grant") {
		t.Errorf("got %v, action %d", e, e.Action)
	}
}

// F13: a value that was there before any version is the oldest.
func TestF13FirstKeepsWhatWasThere(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		for _, place := range []sink.Placement{sink.InRow, sink.Beside} {
			table := tableOf(t, "deal", "id text", "origin text first", "owner text first", "stage text")
			table.Name = []string{"deal", "deal_beside"}[place]
			table.Versions = place
			s := open()
			run(t, s, "create table "+table.Name+" (id text primary key, origin text, owner text, stage text)",
				"insert into "+table.Name+" (id, origin, stage) values ('a', 'import', 'won')")
			bring(t, s, table)
			write(t, s, table, say(t, table, "a", 5, map[string]any{"origin": "ad", "owner": "bob", "stage": "open"}))
			write(t, s, table, say(t, table, "a", 3, map[string]any{"origin": "mail", "owner": "ann", "stage": "new"}))
			mustShow(t, s, table, "a", "origin=import owner=ann stage=open")
			if r := write(t, s, table, say(t, table, "a", 3, map[string]any{"origin": "mail", "owner": "ann", "stage": "new"})); r.Written != 0 {
				t.Errorf("again: %+v", r)
			}
		}
	})
}

// F22: texts are compared as bytes, whatever the collation of their column.
func TestF22CollationsDoNotDecide(t *testing.T) {
	table := tableOf(t, "item", "id text", "top text max", "low text min", "tags text[] union", "step text ladder sent,read", "name text")
	s, _ := existing(t, []string{
		`create extension citext`,
		`create collation ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`,
		`create table item (id text collate "en-x-icu" primary key, top text collate "en-x-icu", low citext, tags text[] collate "en-x-icu", step text collate ci,
			name text collate ci, row_version text collate "en-x-icu")`,
	}, table)
	at := func(version int64, set map[string]any) func(string) *merge.Change {
		return func(key string) *merge.Change { return say(t, table, key, version, set) }
	}
	inEveryOrder(t, s, table, `top=a low=B tags=["B","a","b"] step=sent name=Ann`,
		at(1, map[string]any{"top": "a", "low": "a", "tags": `["b"]`, "step": "sent", "name": "ann"}),
		at(2, map[string]any{"top": "B", "low": "B", "tags": `["a"]`, "step": "SENT", "name": "ANN"}),
		at(3, map[string]any{"top": "A", "low": "b", "tags": `["B"]`, "step": "READ", "name": "Ann"}))

	email := tableOf(t, "mail", "id text", "email text")
	s, _ = existing(t, []string{`create extension citext`, `create table mail (id text primary key, email citext)`}, email)
	first := say(t, email, "k", 1, map[string]any{"email": "ann@x"})
	write(t, s, email, first)
	corrected := say(t, email, "k", 1, map[string]any{"email": "Ann@x"}) // the same event, under a corrected expression
	corrected.Version = first.Version
	write(t, s, email, corrected)
	mustShow(t, s, email, "k", "email=Ann@x")
}

// A touch column moves when a value does, and not with a version alone.
func TestTouchOfExistingColumnTypes(t *testing.T) {
	table := tableOf(t, "item", "id text", "a text", "changed timestamp touch", "stamp text touch")
	s, url := existing(t, []string{`create table item (id text primary key, a text, changed timestamp, stamp text)`}, table)
	write(t, s, table, say(t, table, "k", 1, map[string]any{"a": "x"}))
	if got := one(t, url, `select abs(extract(epoch from changed - (now() at time zone 'UTC'))) < 60 and stamp ~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$' from item`); got != "true" {
		t.Errorf("touch: %s", one(t, url, "select changed || ' ' || stamp from item"))
	}
	before := one(t, url, "select changed || stamp from item")
	write(t, s, table, say(t, table, "k", 2, map[string]any{"a": "x"}))
	if got := one(t, url, "select changed || stamp from item"); got != before {
		t.Errorf("a version alone moved touch from %s to %s", before, got)
	}
	write(t, s, table, say(t, table, "k", 3, map[string]any{"a": "y"}))
	if got := one(t, url, "select changed || stamp from item"); got == before {
		t.Error("a new value did not move touch")
	}
}
