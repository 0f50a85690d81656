package sqlsink_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sinktest"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// TestGuardTrigger runs the suite of sinks with plain, unguarded upserts as the
// writer: the guard trigger alone makes the rows right.
func TestGuardTrigger(t *testing.T) {
	sinktest.Run(t, sinktest.Engine{
		NotBeside: true, Guard: sink.ByTrigger, Brief: testing.Short(),
		Keeps: func(c merge.Column) bool { return c.Rule != merge.Sum && c.Rule != merge.Count },
		Holds: func(t *sink.Table) bool { return held(compile.Postgres, t) },
		Open: func(t testing.TB, _ []*sink.Table) sink.Sink {
			return plainWriter(t, testdb.Schema(t), nil)
		},
		Faulty: func(t testing.TB, _ []*sink.Table, fault func() sinktest.Fault) sink.Sink {
			return plainWriter(t, testdb.Schema(t), fault)
		},
	})
}

// held tells whether a guard trigger holds a table; without counters, counted
// tables are as others.
func held(d compile.Dialect, t *sink.Table) bool {
	return len(compile.GuardRefuses(d, t)) == 0 && !strings.HasSuffix(t.Name, "counted")
}

// guardedTable is a table of a user's own, with types of its own, and its guard
// trigger.
func guardedTable(t *testing.T, extra ...string) (*pgx.Conn, *sink.Table) {
	t.Helper()
	url := testdb.Postgres(t)
	table := tableOf(t, "shop.Order", "id text", "status text ladder new,paid,sent", "note text", "amount numeric(10,2)", "owner text scope owner", "email text max", "tags text[] union",
		"origin text first", "low int min", "changed timestamp touch")
	table.Guard = sink.ByTrigger
	testdb.Exec(t, url, append([]string{
		"create extension citext",
		`create schema shop`, `create type shop.step as enum ('draft', 'new', 'paid', 'sent')`, `create domain shop.short as text check (length(value) < 30)`,
		`create table shop."Order" (n bigint generated always as identity, id text collate "C" primary key, status shop.step, note shop.short not null default 'none', amount numeric(10,2),
			owner varchar(20), email citext, tags shop.step[], origin text, low int, changed timestamptz, twice numeric generated always as (amount * 2) stored, extra text default 'x')`,
	}, extra...)...)
	s := open(t, url, nil, sqlsink.Options{})
	bring(t, s, table)
	if left, err := s.Plan(t.Context(), []*sink.Table{table}); err != nil || len(left) > 0 {
		t.Fatalf("after migrating, %v is left, %v", left, err)
	}
	have, err := compile.Look(compile.Postgres, table, func(name string) (*sink.Live, error) {
		return s.Inspect(t.Context(), &sink.Table{Table: table.Table, Name: name})
	})
	if err != nil {
		t.Fatal(err)
	}
	if list := compile.Problems(compile.Postgres, table, have, compile.Usage{}); slices.ContainsFunc(list, func(p compile.Problem) bool { return !p.Warning }) {
		t.Errorf("problems: %+v", list)
	}
	c := testdb.Connect(t, t.Context(), url)
	t.Cleanup(func() { c.Close(context.Background()) })
	return c, table
}

// script runs statements in one transaction each, and gives the row as text.
func script(t *testing.T, c *pgx.Conn, statements ...string) string {
	t.Helper()
	for _, s := range statements {
		if _, err := c.PgConn().Exec(t.Context(), s).ReadAll(); err != nil {
			t.Fatalf("%v\n%s", err, s)
		}
	}
	return oneRow(t, c)
}

func oneRow(t *testing.T, c *pgx.Conn) string {
	t.Helper()
	var row string
	if err := c.QueryRow(t.Context(), `select concat_ws(' ', status, note, amount, owner, email, tags, origin, low, row_version, owner_version, twice, extra) from shop."Order" where id = 'k'`).Scan(&row); err != nil {
		t.Fatal(err)
	}
	return row
}

const plainOrder = `insert into shop."Order" (id, status, note, amount, owner, email, tags, origin, low, row_version, owner_version, origin__first) values (%s)
	on conflict (id) do update set status = excluded.status, note = excluded.note, amount = excluded.amount, owner = excluded.owner, email = excluded.email, tags = excluded.tags,
	origin = excluded.origin, low = excluded.low, row_version = excluded.row_version, owner_version = excluded.owner_version, origin__first = excluded.origin__first`

// TestF18GuardTrigger tries what SEMANTICS says of the trigger, on a table with
// an enum, a domain, citext, an array of an enum, an identity and a generated
// column, whose schema is not on the search path.
func TestF18GuardTrigger(t *testing.T) {
	c, _ := guardedTable(t)
	order := func(values string) string { return strings.Replace(plainOrder, "%s", values, 1) }
	steps := []struct{ name, sql, want string }{
		{"a new row", order(`'k', 'paid', 'five', 5.5, null, 'b@x', '{sent,new}', 'web', 7, 'v5', null, 'v5'`),
			"paid five 5.50 b@x {new,sent} web 7 v5 11.00 x"},
		{"an older event: NULL says nothing, the rest joins", order(`'k', 'new', 'three', 3, 'ann', 'c@x', '{draft}', 'app', null, 'v3', 'v3', 'v3'`),
			"paid five 5.50 ann c@x {draft,new,sent} app 7 v5 v3 11.00 x"},
		{"the same again changes nothing", order(`'k', 'paid', 'five', 5.5, null, 'b@x', '{sent,new}', 'web', 7, 'v5', null, 'v5'`),
			"paid five 5.50 ann c@x {draft,new,sent} app 7 v5 v3 11.00 x"},
		{"a scope alone", `insert into shop."Order" (id, owner, owner_version) values ('k', 'bob', 'v4') on conflict (id) do update set owner = excluded.owner, owner_version = excluded.owner_version`,
			"paid five 5.50 bob c@x {draft,new,sent} app 7 v5 v4 11.00 x"},
		{"a person's UPDATE passes, also down a ladder and below a max", `update shop."Order" set note = 'by hand', status = 'draft', email = 'a@x', extra = 'y' where id = 'k'`,
			"draft by hand 5.50 bob a@x {draft,new,sent} app 7 v5 v4 11.00 y"},
		{"an UPDATE that moves a version is joined", `update shop."Order" set note = 'old', row_version = 'v2', status = 'new', low = 9 where id = 'k'`,
			"new by hand 5.50 bob a@x {draft,new,sent} app 7 v5 v4 11.00 y"},
		{"an UPDATE that repeats an event is joined if it says so", `begin; set local hookfold.guard = 'on'; update shop."Order" set low = 8, row_version = 'v5', note = 'by hand' where id = 'k'; commit`,
			"new by hand 5.50 bob a@x {draft,new,sent} app 7 v5 v4 11.00 y"},
		{"hookfold.set names what is meant", `begin; set local hookfold.set = 'note, amount, low'; ` + order(`'k', 'sent', 'six', 6, 'eve', 'z@x', '{paid}', 'no', 1, 'v6', 'v9', 'v0'`) + `; commit`,
			"new six 6.00 bob a@x {draft,new,sent} app 1 v6 v4 12.00 y"},
		{"it ends with the transaction", order(`'k', 'paid', 'seven', 7, null, null, null, null, null, 'v7', null, null`),
			"paid seven 7.00 bob a@x {draft,new,sent} app 1 v7 v4 14.00 y"},
		{"hookfold.set may be a list, of nothing", `begin; set local hookfold.set = '{}'; ` + order(`'k', 'sent', 'x', 1, 'x', 'zz', '{paid}', 'x', 0, 'v9', 'v9', 'v0'`) + `; commit`,
			"paid seven 7.00 bob a@x {draft,new,sent} app 1 v7 v4 14.00 y"},
		{"off lets everything pass", `begin; set local hookfold.guard = 'off'; ` + order(`'k', 'new', 'one', 1, null, null, null, null, null, 'v1', null, null`) + `; commit`,
			"new one 1.00 v1 2.00 y"},
	}
	for _, s := range steps {
		if got := script(t, c, s.sql); got != s.want {
			t.Errorf("%s:\n got %s\nwant %s", s.name, got, s.want)
		}
	}
	var loops int64
	for _, sql := range []string{order(`'k', 'new', 'one', 1, null, null, null, null, null, 'v1', null, null`), order(`'k', 'new', 'old', 0, null, null, null, null, null, 'v0', null, null`)} {
		tag, err := c.Exec(t.Context(), sql)
		loops += tag.RowsAffected()
		if err != nil {
			t.Error(err)
		}
	}
	if loops != 0 {
		t.Errorf("what changes nothing wrote %d rows", loops)
	}
	for sql, want := range map[string]string{
		order(`'k', 'draft', 'two', 2, null, null, null, null, null, 'v2', null, null`):                                                                                "draft is not a step of the ladder",
		order(`'new', 'draft', 'two', 2, null, null, null, null, null, 'v2', null, null`):                                                                              "draft is not a step of the ladder",
		`begin; set local hookfold.set = 'note'; ` + order(`'k', 'new', 'two', 2, null, null, null, null, null, 'v2', null, null`) + `; commit`:                        "names only some of note, amount",
		`insert into shop."Order" (id, note, row_version) values ('k', repeat('x', 40), 'v9') on conflict (id) do update set note = excluded.note, row_version = 'v9'`: "violates check constraint",
	} {
		if _, err := c.PgConn().Exec(t.Context(), sql).ReadAll(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q\n%s", err, want, sql)
		}
		_, _ = c.Exec(t.Context(), "rollback")
	}
	if got := script(t, c, `insert into shop."Order" (id, status) values ('person', 'draft')`); got != "new one 1.00 v1 2.00 y" {
		t.Errorf("a person's row: %s", got)
	}
}

// A column that an event leaves unset in a new row gets its DEFAULT if its scope
// has a version, and never where the rule has none (F13).
func TestF13GuardTrigger(t *testing.T) {
	c, _ := guardedTable(t)
	if got, want := script(t, c, `insert into shop."Order" (id, note, owner, owner_version) values ('k', null, 'ann', 'v1') on conflict (id) do update set note = excluded.note, owner = excluded.owner, owner_version = excluded.owner_version`),
		"none ann v1 x"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestGuardTriggerAmongOthers has it run after a user's own trigger, so that what
// that one makes of a row is joined, on a partitioned table, under row-level
// security and another role.
func TestGuardTriggerAmongOthers(t *testing.T) {
	url := testdb.Postgres(t)
	role := fmt.Sprintf("hookfold_test_writer_%d", rand.Uint64()) // roles are the server's, not the database's
	table := tableOf(t, "mail", "id text, part int", "address text max", "note text")
	table.Guard = sink.ByTrigger
	testdb.Exec(t, url,
		`create table mail (id text collate "C", part int, address text, note text, primary key (id, part)) partition by list (part)`,
		`create table mail_1 partition of mail for values in (1)`, `create table mail_2 partition of mail for values in (2)`,
		`create function lowered() returns trigger language plpgsql as 'begin new.address := lower(new.address); return new; end'`,
		`create trigger normalize before insert or update on mail for each row execute function lowered()`)
	s := open(t, url, nil, sqlsink.Options{})
	bring(t, s, table)
	testdb.Exec(t, url, "drop role if exists "+role, "create role "+role, "grant select, insert, update on mail to "+role,
		"alter table mail enable row level security", "create policy mine on mail to "+role+" using (part = 1) with check (part = 1)")
	t.Cleanup(func() { testdb.Exec(t, url, "drop owned by "+role, "drop role "+role) })
	c := testdb.Connect(t, t.Context(), url)
	defer c.Close(t.Context())
	for _, sql := range []string{
		`set role ` + role,
		`set search_path = pg_catalog, public`,
		`insert into mail values ('k', 1, 'B', 'two', 'v2') on conflict (id, part) do update set address = excluded.address, note = excluded.note, row_version = excluded.row_version`,
		`insert into mail values ('k', 1, 'a', 'one', 'v1') on conflict (id, part) do update set address = excluded.address, note = excluded.note, row_version = excluded.row_version`,
		`insert into mail_1 values ('k', 1, 'A', 'none', 'v0') on conflict (id, part) do update set address = excluded.address, note = excluded.note, row_version = excluded.row_version`,
		`reset role`,
	} {
		if _, err := c.Exec(t.Context(), sql); err != nil {
			if strings.Contains(sql, "mail_1") && strings.Contains(err.Error(), "permission") {
				continue // the partition has grants of its own
			}
			t.Fatalf("%v\n%s", err, sql)
		}
	}
	mustShow(t, s, table, "k|1", "address=b note=two")
	late := `create trigger zzz_late before update on mail for each row execute function lowered()`
	testdb.Exec(t, url, late, `alter table mail disable trigger zz_hookfold_guard`)
	have, err := compile.Look(compile.Postgres, table, func(string) (*sink.Live, error) { return s.Inspect(t.Context(), table) })
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(compile.Problems(compile.Postgres, table, have, compile.Usage{}))
	for _, want := range []string{"guard trigger is switched off", "trigger zzz_late runs after the guard trigger"} {
		if !strings.Contains(text, want) {
			t.Errorf("problems do not say %q: %s", want, text)
		}
	}
}

// TestGuardProblems tells a guard trigger that is not there, and one that the
// config has outgrown, also where the config does not speak of it.
func TestGuardProblems(t *testing.T) {
	url := testdb.Schema(t)
	s := open(t, url, nil, sqlsink.Options{})
	said := func(table *sink.Table) string {
		live, err := s.Inspect(t.Context(), table)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(compile.Problems(compile.Postgres, table, compile.Schemas{Table: live}, compile.Usage{}))
	}
	table := tableOf(t, "task", "id text", "status text ladder open,done")
	bring(t, s, table)
	guarded := *table
	guarded.Guard = sink.ByTrigger
	if got := said(&guarded); !strings.Contains(got, "the guard trigger is not there") {
		t.Error(got)
	}
	bring(t, s, &guarded)
	if got := said(&guarded) + said(table); got != "[][]" {
		t.Error(got)
	}
	grown := tableOf(t, "task", "id text", "status text ladder open,held,done")
	if got := said(grown); !strings.Contains(got, "is not that of this config and table") || !strings.Contains(got, "or remove it") {
		t.Error(got)
	}
	grown.Guard = sink.ByTrigger
	bring(t, s, grown)
	if got := said(grown); got != "[]" {
		t.Error(got)
	}
}
