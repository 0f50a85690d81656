package sqlsink_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sinktest"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// The tests of this file need a T-SQL engine, which testdb.SQLServerVar names, and
// nothing else; they leave nothing behind. SQL Server 2016 and later, Azure SQL
// and Babelfish are such.

// TestSQLServerLive runs the conformance suite with every form of an upsert.
func TestSQLServerLive(t *testing.T) {
	url := testdb.SQLServer(t)
	for _, form := range []string{"insert", "updlock", "merge"} {
		t.Run(form, func(t *testing.T) {
			if form == "merge" && !hasMerge(t, url) {
				t.Skip("the engine that HOOKFOLD_TEST_SQLSERVER names has no MERGE: upsert: merge is not run")
			}
			plain := func(t testing.TB, tables []*sink.Table) sink.Sink {
				testdb.EmptySQLServer(t, url)
				opts := eight("sqlserver")
				opts.Upsert = form
				return open(t, url, tables, opts)
			}
			sinktest.Run(t, sinktest.Engine{
				Open: plain,
				Faulty: func(t testing.TB, tables []*sink.Table, fault func() sinktest.Fault) sink.Sink {
					s := plain(t, tables)
					sqlsink.Cut(s, fault)
					return s
				},
				Refuses: func(typ merge.Type, text string) bool { // beyond decimal(38,18)
					return typ.Kind == merge.Numeric && typ.Precision == 0 && len(text) > 40
				},
				RefusesKey: func(typ merge.Type, text string) bool {
					return typ.Kind == merge.Text && strings.HasSuffix(text, " ")
				},
			})
		})
	}
}

// hasMerge tells whether an engine has MERGE.
func hasMerge(t *testing.T, url string) bool {
	t.Helper()
	testdb.EmptySQLServer(t, url)
	testdb.ExecTSQL(t, url, "create table one (id int not null primary key)")
	db := dial(t, url)
	_, err := db.ExecContext(t.Context(), "merge into one with (holdlock) as t using (select 1 as id) as s on t.id = s.id when not matched then insert (id) values (s.id);")
	if err != nil {
		t.Logf("MERGE: %v", err)
	}
	return err == nil
}

func dial(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlserver", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// What Plan makes is what Plan expects, and a table that people made by hand is
// written as it is: varchar keys, a collation that ignores case, an identity, a
// computed column, a default, a trigger, a foreign key.
func TestSQLServerExistingTables(t *testing.T) {
	url := testdb.SQLServer(t)
	testdb.ExecTSQL(t, url,
		"create table dbo.sender (id varchar(40) not null primary key)",
		`create table dbo.message (
    no int identity(1,1) not null,
    id varchar(100) not null,
    body nvarchar(20) null,
    price decimal(10,2) null,
    seen datetime2(7) null,
    flag bit not null default 0,
    sender varchar(40) null,
    twice as (price * 2),
    row_version varchar(255) null,
    constraint pk_message primary key (id),
    constraint fk_sender foreign key (sender) references dbo.sender (id),
    constraint ck_price check (price >= 0)
)`,
		"create trigger dbo.message_changed on dbo.message after insert, update as set nocount on; update dbo.message set body = body where 1 = 0")
	table := tableOf(t, "dbo.message", "id text", "body text", "price numeric", "seen timestamp min", "flag bool", "sender text")
	s := open(t, url, nil, sqlsink.Options{})
	live, err := s.Inspect(t.Context(), table)
	if err != nil || !live.HasUnique([]string{"id"}) || len(live.References) != 1 || live.References[0].Name != "fk_sender" {
		t.Fatalf("%+v, %v", live, err)
	}
	for name, want := range map[string]string{"id": "varchar(100)", "body": "nvarchar(20)", "price": "decimal(10,2)", "seen": "datetime2(7)", "flag": "bit"} {
		if c := live.Column(name); c == nil || c.Type != want {
			t.Errorf("column %s: %+v, want %s", name, c, want)
		}
	}
	if c := live.Column("no"); c == nil || !c.Generated {
		t.Errorf("the identity: %+v", c)
	}
	if c := live.Column("twice"); c == nil || !c.Generated {
		t.Errorf("the computed column: %+v", c)
	}
	if p := problems(t, compile.SQLServer, s, table, compile.Usage{Inserts: true}); len(p) == 0 {
		t.Error("nothing is said of a key whose collation ignores case")
	}
	full := map[string]any{"body": "é😀", "price": "12345678.9", "seen": "2026-05-06T09:00:00.123456Z", "flag": "true", "sender": nil}
	for range 2 {
		write(t, s, table, say(t, table, "m1", 5, full))
		write(t, s, table, say(t, table, "m1", 3, map[string]any{"body": "old", "price": "1", "seen": "2026-05-06T08:00:00Z", "flag": "false", "sender": nil}))
		mustShow(t, s, table, "m1", "body=é😀 price=12345678.9 seen=2026-05-06T08:00:00.000000Z flag=true sender=NULL")
	}
	edit := func(name string, v any) map[string]any {
		m := map[string]any{}
		for k, x := range full {
			m[k] = x
		}
		m[name] = v
		return m
	}
	for _, x := range []struct {
		key    string
		set    map[string]any
		action sink.Action
		why    sink.Why
	}{
		{"m2", edit("sender", "nobody"), sink.Wait, sink.NeedsParent},
		{"m2", edit("price", "-1"), sink.Reject, ""},
		{"m2", edit("body", strings.Repeat("x", 21)), sink.Reject, ""},
		{"m2", edit("price", "123456789.01"), sink.Reject, ""},
		{"m2 ", full, sink.Reject, ""},
		{"Я", full, sink.Reject, ""},
	} {
		if c := live.Column("id"); x.key == "Я" && c != nil && (c.CodePage == 0 || c.CodePage == 65001) {
			continue // an engine whose varchar holds every character
		}
		if e := refused(t, s, table, say(t, table, x.key, 9, x.set)); e.Action != x.action || e.Why != x.why {
			t.Errorf("%q %v: %+v", x.key, x.set, e)
		}
	}
	testdb.ExecTSQL(t, url, "insert into dbo.sender (id) values ('s1')")
	write(t, s, table, say(t, table, "m2", 9, edit("sender", "s1")))
	if c := live.Column("id"); c != nil && !compile.BinaryCollation(c.Collate) {
		if e := refused(t, s, table, say(t, table, "M2", 9, full)); e.Action != sink.Wait || e.Why != sink.UniqueValue {
			t.Errorf("a key that the collation takes for another: %+v", e)
		}
	}
	mustShow(t, s, table, "m2", "body=é😀 price=12345678.9 seen=2026-05-06T09:00:00.123456Z flag=true sender=s1")
}

// A row that another session holds costs its own change a wait.
func TestSQLServerHeldRow(t *testing.T) {
	url := testdb.SQLServer(t)
	table := tableOf(t, "held", "id text", "v text")
	s := open(t, url, nil, sqlsink.Options{LockTimeout: 200 * time.Millisecond})
	bring(t, s, table)
	write(t, s, table, say(t, table, "a", 1, map[string]any{"v": "1"}), say(t, table, "b", 1, map[string]any{"v": "1"}))
	tx, err := dial(t, url).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(t.Context(), "update held set v = v where id = 'a'"); err != nil {
		t.Fatal(err)
	}
	e := refused(t, s, table, say(t, table, "a", 2, map[string]any{"v": "2"}), say(t, table, "b", 2, map[string]any{"v": "2"}))
	if e.Why != sink.Locked && e.Action != sink.Retry {
		t.Errorf("%+v", e)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	write(t, s, table, say(t, table, "a", 2, map[string]any{"v": "2"}))
	mustShow(t, s, table, "a", "v=2")
}

// The generated procedure, called by eight plain clients at once and with Hookfold
// beside them, in any order and more than once, leaves the rows that package
// merge says. The callers know nothing of retries.
func TestSQLServerProcedure(t *testing.T) {
	url := testdb.SQLServer(t)
	table := tableOf(t, "message_status", "message_id text", "status text ladder sent,delivered,read", "sent_at timestamp min", "amount numeric max", "error int scope error", "origin text first")
	s := open(t, url, nil, eight("sqlserver"))
	bring(t, s, table)
	script, err := compile.ProcedureScript(compile.SQLServer, table, compile.Schemas{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dial(t, url).ExecContext(t.Context(), script); err != nil { // not every engine has CREATE OR ALTER
		t.Logf("create or alter procedure: %v", err)
		testdb.ExecTSQL(t, url, strings.Replace(script, "create or alter procedure", "create procedure", 1))
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	var all []*merge.Change
	for i := range 240 {
		set := map[string]any{"status": []string{"sent", "delivered", "read"}[rnd.IntN(3)], "sent_at": fmt.Sprintf("2026-05-06T09:%02d:00Z", rnd.IntN(60))}
		if rnd.IntN(2) == 0 {
			set["amount"] = fmt.Sprint(rnd.IntN(1000))
		}
		if rnd.IntN(2) == 0 {
			set["error"] = fmt.Sprint(rnd.IntN(10))
		}
		if rnd.IntN(2) == 0 {
			set["origin"] = fmt.Sprint("o", rnd.IntN(10))
		}
		all = append(all, say(t, table, fmt.Sprint("m", i%12), int64(rnd.IntN(5)), set))
	}
	db := dial(t, url)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := w; i < 2*len(all); i += 8 {
				c := all[(i*7+3*w)%len(all)]
				if i%3 == 0 {
					if _, err := s.Apply(t.Context(), &sink.Batch{Groups: []sink.Group{group(table, c)}}); err != nil {
						t.Error(err)
					}
					continue
				}
				if err := call(t, db, table, c); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, c := range all { // what chance has left out
		if err := call(t, db, table, c); err != nil {
			t.Fatal(err)
		}
	}
	live, err := s.Read(t.Context(), table, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := merge.Rows(table.Table, all)
	if len(live) != len(want) {
		t.Fatalf("%d rows, want %d", len(live), len(want))
	}
	for i, r := range want {
		for j, c := range table.Columns {
			if live[i].Key != r.Key || live[i].Cells[j].Value != r.Cells[j].Value || live[i].Cells[j].Version != r.Cells[j].Version {
				t.Errorf("%s.%s: %v, want %v", r.Key, c.Name, live[i].Cells[j], r.Cells[j])
			}
		}
	}
	for want, args := range map[int32][]any{
		51001: {sql.Named("message_id", "blank ")},
		51002: {sql.Named("message_id", "m1"), sql.Named("status", "lost")},
		51003: {sql.Named("message_id", "m1"), sql.Named("error", 1)},
	} {
		var e mssql.Error
		if _, err := db.ExecContext(t.Context(), "hookfold_message_status", args...); !errors.As(err, &e) || e.Number != want {
			t.Errorf("want the error %d, got %v", want, err)
		}
	}
}

// call passes a change to the procedure, as own code does.
func call(t *testing.T, db *sql.DB, table *sink.Table, c *merge.Change) error {
	args := []any{sql.Named("message_id", c.Key.Parts()[0])}
	for i, x := range table.Columns {
		if !c.Cells[i].Set {
			continue
		}
		args = append(args, sql.Named(x.Name, c.Cells[i].Value.Text()))
		switch {
		case x.Rule == merge.First:
			args = append(args, sql.Named(compile.FirstColumn(x.Name), string(c.Version)))
		case x.Rule == merge.Latest:
			args = append(args, sql.Named(compile.ScopeColumn(x.Scope), string(c.Version)))
		}
	}
	_, err := db.ExecContext(t.Context(), "hookfold_message_status", args...)
	return err
}
