package sqlsink_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

func scratchOf(t testing.TB, s sink.Sink, tables ...*sink.Table) sink.Scratch {
	t.Helper()
	x, err := s.(sink.Scratcher).Scratch(t.Context(), tables)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// A place for trials has the tables as they live, and what is written there is
// nowhere else.
func TestScratchOfPostgres(t *testing.T) {
	parent := tableOf(t, "app.customer", "id text", "email text", "mood text")
	child := tableOf(t, "invoice", "id text", "customer_id text", "amount numeric")
	s, url := existing(t, []string{
		`create schema app`,
		`create type app.mood as enum ('sad', 'ok')`,
		`create domain app.mail as text check (value like '%@%')`,
		`create table app.customer (id text primary key, email app.mail unique, mood app.mood, "mine" int not null default 7)`,
		`create table region (id text primary key)`,
		`create table invoice (id text primary key, customer_id text references app.customer on update cascade deferrable initially deferred,
			region text references region, amount numeric(10,2) check (amount > 0), no bigserial)`,
		`create function touch() returns trigger language plpgsql as 'begin raise exception ''no''; end'`,
		`create trigger touched before insert on invoice for each row when (new.id = 'never') execute function touch()`,
		`insert into app.customer values ('there', 'a@b')`,
	}, parent, child)
	x := scratchOf(t, s, parent, child)
	want := []string{"the triggers of invoice do not run", "the foreign keys of invoice to region do not hold: Hookfold does not write there"}
	if got := x.Notes(); !slices.Equal(got, want) {
		t.Errorf("notes are %q", got)
	}
	customers, invoices := x.Tables()[0], x.Tables()[1]
	if customers.Table != parent.Table || !strings.HasPrefix(customers.Name, "hookfold_prove_") {
		t.Errorf("the first table is %+v", customers)
	}
	write(t, x, customers, say(t, customers, "c", 1, map[string]any{"email": "c@d", "mood": "ok"}))
	write(t, x, invoices, say(t, invoices, "i", 1, map[string]any{"customer_id": "c", "amount": "1.50"}))
	for _, bad := range []map[string]any{
		{"customer_id": "nobody", "amount": "1"}, // the foreign key
		{"customer_id": "c", "amount": "-1"},     // the check
	} {
		refused(t, x, invoices, say(t, invoices, "j", 1, bad))
	}
	refused(t, x, customers, say(t, customers, "d", 1, map[string]any{"email": "c@d", "mood": "ok"}))
	if got := one(t, url, `select string_agg(id, ',') || (select count(*) from invoice) || (select last_value || is_called::text from invoice_no_seq) from app.customer`); got != "there01false" {
		t.Errorf("the user's own tables have %s", got)
	}
	if err := x.Empty(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, table := range x.Tables() {
		if rows, err := x.Read(t.Context(), table, nil); err != nil || len(rows) > 0 {
			t.Errorf("%s has %d rows after it was emptied: %v", table.Name, len(rows), err)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if got := one(t, url, places); got != "0" {
		t.Errorf("%s schemas are left", got)
	}
}

const places = `select count(*) from pg_namespace where nspname like 'hookfold\_prove\_%'`

// Names that two schemas share, and tables that are not there yet.
func TestScratchOfTablesOfOneName(t *testing.T) {
	a, b := tableOf(t, "one.thing", "id text", "v text"), tableOf(t, `two."thing"`, "id text", "v text")
	s, _ := existing(t, []string{`create schema one`, `create schema two`, `create table one.thing (id text primary key, v text)`}, a, b)
	x := scratchOf(t, s, a, b)
	for i, table := range x.Tables() {
		write(t, x, table, say(t, table, "k", int64(i+1), map[string]any{"v": fmt.Sprint(i)}))
	}
	for i, table := range x.Tables() {
		mustShow(t, x, table, "k", fmt.Sprintf("v=%d", i))
	}
}

func TestScratchOfSQLite(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	table := tableOf(t, "invoice", "id text", "customer_id text", "amount numeric")
	url := testdb.SQLite(t)
	s := open(t, url, nil, sqlsink.Options{})
	err := s.Execute(t.Context(), []string{`create table region (id text primary key)`,
		`create table invoice (id text primary key, customer_id text unique, region text references region, amount text check (amount <> '-1'))`,
		`create trigger touched before insert on invoice begin select raise(abort, 'no'); end`})
	if err != nil {
		t.Fatal(err)
	}
	x := scratchOf(t, s, table)
	want := []string{"the triggers of invoice do not run", "no foreign key holds, because invoice names rows of region, which Hookfold does not write"}
	if got := x.Notes(); !slices.Equal(got, want) {
		t.Errorf("notes are %q", got)
	}
	write(t, x, table, say(t, table, "i", 1, map[string]any{"customer_id": "c", "amount": "1.50"}))
	for _, bad := range []map[string]any{{"customer_id": "d", "amount": "-1"}, {"customer_id": "c", "amount": "1"}} {
		refused(t, x, table, say(t, table, "j", 1, bad))
	}
	if err := x.Empty(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rows, err := x.Read(t.Context(), table, nil); err != nil || len(rows) > 0 {
		t.Errorf("there are %d rows after it was emptied: %v", len(rows), err)
	}
	if rows, err := s.Read(t.Context(), table, nil); err == nil && len(rows) > 0 {
		t.Errorf("the user's own table has %d rows", len(rows))
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "hookfold_prove_*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// What a process that was killed has left is removed, and what another one works
// on stays.
func TestSweepOfPostgres(t *testing.T) {
	table := tableOf(t, "thing", "id text", "v text")
	s, url := existing(t, nil, table)
	scratchOf(t, s, table)
	old := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	testdb.Exec(t, url, "create schema hookfold_prove_old", "create table hookfold_prove_old.x (id int)",
		"comment on schema hookfold_prove_old is 'hookfold prove works here and removes it. In use at "+old+"'",
		"create schema hookfold_prove_mine", "comment on schema hookfold_prove_mine is 'the user''s own'")
	for _, want := range []int{1, 0} {
		if n, err := s.(sink.Scratcher).Sweep(t.Context()); n != want || err != nil {
			t.Errorf("%d places were removed, not %d: %v", n, want, err)
		}
	}
	if got := one(t, url, places); got != "2" {
		t.Errorf("%s schemas are left, not the one in use and the user's own", got)
	}
}

// What another user has left is that user's to remove.
func TestSweepBesideAnotherUser(t *testing.T) {
	url := testdb.Postgres(t)
	role := url[strings.LastIndex(url, "/")+1:] + "_role"
	old := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	testdb.Exec(t, url, "create role "+role+" login", "create schema hookfold_prove_theirs",
		"comment on schema hookfold_prove_theirs is 'hookfold prove works here and removes it. In use at "+old+"'")
	t.Cleanup(func() { testdb.Exec(t, url, "drop role "+role) })
	s := open(t, strings.Replace(url, "postgres@", role+"@", 1), nil, sqlsink.Options{})
	if n, err := s.(sink.Scratcher).Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("%d places were removed: %v", n, err)
	}
}

func TestSweepOfSQLite(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	table := tableOf(t, "thing", "id text", "v text")
	s := open(t, testdb.SQLite(t), nil, sqlsink.Options{})
	scratchOf(t, s, table)
	old := filepath.Join(os.TempDir(), "hookfold_prove_old")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	alive := filepath.Join(old, "alive")
	if err := os.WriteFile(alive, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-time.Hour)
	if err := os.Chtimes(alive, at, at); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		if n, err := s.(sink.Scratcher).Sweep(t.Context()); n != want || err != nil {
			t.Errorf("%d places were removed, not %d: %v", n, want, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "hookfold_prove_*")); len(left) != 1 {
		t.Errorf("%v are left, not the one in use", left)
	}
}

// Nobody who writes the tables themselves waits for a trial, or it for them.
func TestScratchHasLocksOfItsOwn(t *testing.T) {
	table := &sink.Table{Name: "thing", Table: merge.NewTable(merge.Table{
		Name: "thing", Key: tableOf(t, "thing", "id text").Key, OnDelete: merge.DeleteRemove, Columns: []merge.Column{col(t, "v text")},
	})}
	url := testdb.Postgres(t)
	s := open(t, url, nil, sqlsink.Options{LockTimeout: 50 * time.Millisecond})
	bring(t, s, table)
	ctx := t.Context()
	c := testdb.Connect(t, ctx, url)
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, "select pg_advisory_lock($1::int4, n) from generate_series(0, $2::int4 * 2) n", compile.LockClass, compile.Buckets); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(ctx, &sink.Batch{Groups: []sink.Group{group(table, say(t, table, "k", 1, map[string]any{"v": "x"}))}}); err == nil {
		t.Fatal("the table itself is not locked")
	}
	x := scratchOf(t, s, table)
	write(t, x, x.Tables()[0], say(t, x.Tables()[0], "k", 1, map[string]any{"v": "x"}))
}
