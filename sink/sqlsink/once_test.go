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

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/internal/witness"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sinktest"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

func text(s string) sink.Arg {
	v, err := merge.ParseValue(merge.Type{Kind: merge.Text}, s)
	if err != nil {
		panic(err)
	}
	return sink.Arg{Value: v}
}

func typed(kind merge.TypeKind, s string) sink.Arg {
	v, err := merge.ParseValue(merge.Type{Kind: kind}, s)
	if err != nil {
		panic(err)
	}
	return sink.Arg{Kind: kind, Value: v}
}

func prepareOnce(t *testing.T, s sink.Sink, statements ...string) sink.Once {
	t.Helper()
	once := s.(sink.Once)
	plan, err := once.PlanOnce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Execute(t.Context(), append(plan, statements...)); err != nil {
		t.Fatal(err)
	}
	if plan, err := once.PlanOnce(t.Context()); len(plan) > 0 || err != nil {
		t.Fatalf("a second plan: %v, %v", plan, err)
	}
	return once
}

// A statement is read by the database before any event comes, and not run.
func TestAStatementIsRead(t *testing.T) {
	for name, url := range map[string]func(testing.TB) string{"postgres": testdb.Schema, "sqlite": testdb.SQLite, "mysql": testdb.MySQL} {
		t.Run(name, func(t *testing.T) {
			s := open(t, url(t), nil, sqlsink.Options{})
			once := prepareOnce(t, s)
			own := &sink.OwnStatement{Parts: []string{"insert into audit (id, n) values (", ", ", ")"}, Places: []int{1, 0}}
			var e *sink.Error
			if err := once.CheckOnce(t.Context(), own); !errors.As(err, &e) || e.Action != sink.Reject || !strings.Contains(e.Message, "the statement fails: ") || !strings.Contains(e.Message, "audit") {
				t.Errorf("without its table: %v", err)
			}
			if err := s.Execute(t.Context(), []string{"create table audit (id varchar(9) primary key, n integer not null)"}); err != nil {
				t.Fatal(err)
			}
			if err := once.CheckOnce(t.Context(), own); err != nil {
				t.Error(err)
			}
			wrong := &sink.OwnStatement{Parts: []string{"insert into audit (id, nn) values (", ", 1)"}, Places: []int{0}}
			if err := once.CheckOnce(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "nn") {
				t.Errorf("a column that is not there: %v", err)
			}
			all := &sink.OwnStatement{Parts: []string{"delete from audit"}}
			if _, err := once.RunOnce(t.Context(), own, sink.OnceEvent{Lane: "l", ID: "1", Key: "k"}, []sink.Arg{typed(merge.Int, "1"), text("a")}); err != nil {
				t.Fatal(err)
			}
			if err := once.CheckOnce(t.Context(), all); err != nil {
				t.Error(err)
			}
			only := &sink.OwnStatement{Parts: []string{"insert into audit (id, n) values (", ", 1)"}, Places: []int{0}}
			if _, err := once.RunOnce(t.Context(), only, sink.OnceEvent{Lane: "l", ID: "2", Key: "k"}, []sink.Arg{text("a")}); err == nil {
				t.Error("the row is gone: the check ran the statement")
			}
		})
	}
}

// From several connections at once, again and again, and with connections that
// are cut before and after the commit: each event counts once.
func TestAStatementRunsOnce(t *testing.T) {
	for name, url := range map[string]func(testing.TB) string{"postgres": testdb.Schema, "sqlite": testdb.SQLite, "mysql": testdb.MySQL} {
		t.Run(name, func(t *testing.T) {
			at := url(t)
			s := open(t, at, nil, sqlsink.Options{Connections: 8})
			once := prepareOnce(t, s, "create table counts (id varchar(9) primary key, n integer not null)", "insert into counts values ('a', 0), ('b', 0)")
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(1, 1))
			sqlsink.Cut(s, func() sinktest.Fault {
				mu.Lock()
				defer mu.Unlock()
				switch random.IntN(8) {
				case 0:
					return sinktest.BeforeCommit
				case 1:
					return sinktest.AfterCommit
				}
				return sinktest.NoFault
			})
			statement := &sink.OwnStatement{Parts: []string{"update counts set n = n + 1 where id = ", ""}, Places: []int{0}}
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for i := range 20 {
						e := sink.OnceEvent{Lane: "l", ID: fmt.Sprint("l/e", i/2), Key: "k", Position: int64(i)}
						for { // as a lane does, until it is told that it is so
							if _, err := once.RunOnce(t.Context(), statement, e, []sink.Arg{text("a")}); err == nil {
								break
							}
						}
					}
				})
			}
			all.Wait()
			if got := rowsOf(t, at, "select n from counts where id = 'a'"); len(got) != 1 || got[0] != "10" {
				t.Errorf("counted %v times, want 10", got)
			}
			if n, err := forgotten(once, t, time.UnixMicro(1)); n != 10 || err != nil {
				t.Errorf("forgot %d, %v", n, err)
			}
		})
	}
}

func forgotten(once sink.Once, t *testing.T, before time.Time) (n int64, err error) {
	for range 100 { // its connection may be cut too
		var k int64
		if k, err = once.ForgetOnce(t.Context(), "l", before); err == nil {
			return n + k, nil
		}
	}
	return n, err
}

// Parameters are read as the types they have in the statement.
func TestParametersOfAStatement(t *testing.T) {
	for name, c := range map[string]struct {
		url       func(testing.TB) string
		pooler    string
		table     string
		cast, row string
	}{
		"postgres": {testdb.Schema, "", "i bigint, n numeric, b bool, at timestamptz, j jsonb, x text, y bytea, u uuid", "::uuid",
			`9007199254740993|129.9|true|2026-01-01 00:00:00+00|{"a": [1]}|NULL|\x0102|00000000-0000-0000-0000-000000000001`},
		"pooler mode": {testdb.Schema, "transaction", "i bigint, n numeric, b bool, at timestamptz, j jsonb, x text, y bytea, u uuid", "",
			`9007199254740993|129.9|true|2026-01-01 00:00:00+00|{"a": [1]}|NULL|\x0102|00000000-0000-0000-0000-000000000001`},
		"mysql": {testdb.MySQL, "", "i bigint, n numeric(9,1), b bool, at datetime(6), j json, x text, y blob, u char(36)", "",
			`9007199254740993|129.9|1|2026-01-01 00:00:00.000000|{"a":[1]}|NULL|0102|00000000-0000-0000-0000-000000000001`},
		"sqlite": {testdb.SQLite, "", "i integer, n text, b integer, at text, j text, x text, y blob, u text", "",
			`9007199254740993|129.9|1|2026-01-01T00:00:00.000000Z|{"a":[1]}|NULL|0102|00000000-0000-0000-0000-000000000001`},
	} {
		t.Run(name, func(t *testing.T) {
			at := c.url(t)
			s := open(t, at, nil, sqlsink.Options{Pooler: c.pooler})
			once := prepareOnce(t, s, "create table t ("+c.table+")")
			parts := []string{"insert into t values (", ", ", ", ", ", ", ", ", ", ", ", ", ", ", c.cast + ")"}
			args := []sink.Arg{
				typed(merge.Int, "9007199254740993"), typed(merge.Numeric, "129.90"), typed(merge.Bool, "true"), typed(merge.Timestamp, "2026-01-01T00:00:00Z"),
				typed(merge.JSON, `{"a":[1]}`), {Value: merge.NullValue}, typed(merge.Bytes, `\x0102`), text("00000000-0000-0000-0000-000000000001"),
			}
			places := []int{0, 1, 2, 3, 4, 5, 6, 7}
			run := func(id string, parts []string, places []int) (bool, error) {
				return once.RunOnce(t.Context(), &sink.OwnStatement{Parts: parts, Places: places}, sink.OnceEvent{Lane: "l", ID: id, Key: "k"}, args)
			}
			if ran, err := run("1", parts, places); !ran || err != nil {
				t.Fatal(ran, err)
			}
			if ran, err := run("1", parts, places); ran || err != nil {
				t.Fatal("a second time:", ran, err)
			}
			show := "select cast(i as text), cast(n as text), cast(b as text), cast(at as text), cast(j as text), x, cast(y as text), cast(u as text) from t"
			switch name {
			case "sqlite":
				show = strings.Replace(show, "cast(y as text)", "hex(y)", 1)
			case "mysql":
				show = "select i, n, b, at, j, x, hex(y), u from t"
			}
			if got := rowsOf(t, at, show); len(got) != 1 || got[0] != c.row {
				t.Errorf("got  %v\nwant %s", got, c.row)
			}
			// A parameter in two places, and one that gives rows.
			if ran, err := run("2", []string{"select 1 from (select 1) x where cast(", " as char(36)) = ", ""}, []int{7, 7}); !ran || err != nil {
				t.Error(ran, err)
			}
			// The statement's own fault is told, and nothing is remembered of it.
			for range 2 {
				_, err := run("3", []string{"insert into nothing values (", ")"}, []int{0})
				var e *sink.Error
				if !errors.As(err, &e) || e.Action != sink.Reject || !strings.HasPrefix(e.Message, "the statement fails: ") || !strings.Contains(e.Message, "nothing") {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// A statement that takes too long is at fault itself: the database is there, and
// other keys go on.
func TestAStatementThatTakesTooLong(t *testing.T) {
	s := open(t, testdb.Schema(t)+"&statement_timeout=200", nil, sqlsink.Options{Connections: 2})
	once := prepareOnce(t, s)
	e := sink.OnceEvent{Lane: "l", ID: "l/e", Key: "k"}
	_, err := once.RunOnce(t.Context(), &sink.OwnStatement{Parts: []string{"select pg_sleep(20)"}}, e, nil)
	var fault *sink.Error
	if !errors.As(err, &fault) || fault.Action != sink.Reject {
		t.Fatalf("%v", err)
	}
	if ran, err := once.RunOnce(t.Context(), &sink.OwnStatement{Parts: []string{"select 1"}}, e, nil); !ran || err != nil {
		t.Errorf("it was not undone: %t, %v", ran, err)
	}
}

// Without the table nothing is run, and a person is told what to do.
func TestAStatementWithoutItsMemory(t *testing.T) {
	for name, url := range map[string]func(testing.TB) string{"postgres": testdb.Schema, "sqlite": testdb.SQLite, "mysql": testdb.MySQL} {
		t.Run(name, func(t *testing.T) {
			once := open(t, url(t), nil, sqlsink.Options{}).(sink.Once)
			_, err := once.RunOnce(t.Context(), &sink.OwnStatement{Parts: []string{"select 1"}}, sink.OnceEvent{Lane: "l", ID: "1"}, nil)
			var e *sink.Error
			if !errors.As(err, &e) || e.Action != sink.Retry || !strings.Contains(e.Message, "hookfold migrate") {
				t.Errorf("%v", err)
			}
		})
	}
}

// rowsOf reads rows of texts by a connection of its own.
func rowsOf(t *testing.T, url, query string) (out []string) {
	t.Helper()
	var db *sql.DB
	if strings.HasPrefix(url, "mysql:") {
		db = testdb.ConnectMySQL(t, url)
		defer db.Close()
	} else {
		w, err := witness.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		db = w.DB
	}
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		cells, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		texts := make([]string, len(cells))
		for i, c := range cells {
			if texts[i] = c.String; !c.Valid {
				texts[i] = "NULL"
			}
		}
		out = append(out, strings.Join(texts, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
