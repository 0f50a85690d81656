package sqlsink_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/merge/mergetest"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// functionOf makes a table and the function that joins rows into it.
func functionOf(t *testing.T, table *sink.Table, before ...string) (url string, s sink.Sink) {
	t.Helper()
	url = testdb.Schema(t)
	testdb.Exec(t, url, before...)
	s = open(t, url, nil, sqlsink.Options{})
	bring(t, s, table)
	have, err := compile.Look(compile.Postgres, table, func(name string) (*sink.Live, error) {
		return s.Inspect(t.Context(), &sink.Table{Table: table.Table, Name: name})
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := compile.ProcedureScript(compile.Postgres, table, have)
	if err != nil {
		t.Fatal(err)
	}
	c := testdb.Connect(t, t.Context(), url)
	defer c.Close(t.Context())
	if _, err := c.PgConn().Exec(t.Context(), text).ReadAll(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return url, s
}

// callOf is a call of the function with what a row says.
func callOf(t *sink.Table, live *sink.Live, row *merge.Row) (string, []any) {
	var named []string
	var args []any
	for _, c := range plainColumns(t, row) {
		if c.value != nil {
			args = append(args, *c.value)
			named = append(named, fmt.Sprintf("%s => $%d::text::%s", pgx.Identifier{c.name}.Sanitize(), len(args), typeOf(live, c.name)))
		}
	}
	return "select hookfold_" + t.Name + "(" + strings.Join(named, ", ") + ")", args
}

// TestFunctionWithConcurrentWriters lets eight writers call the function of a
// table in orders of their own, each event twice.
func TestFunctionWithConcurrentWriters(t *testing.T) {
	for _, shape := range []mergetest.Shape{{}, {Occupied: true}} {
		t.Run(shape.Name(), func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 0))
			table := &sink.Table{Name: "every", Table: mergetest.EveryRule(shape)}
			url, s := functionOf(t, table)
			live, err := s.Inspect(t.Context(), table)
			if err != nil {
				t.Fatal(err)
			}
			var changes []*merge.Change
			for h := range 15 {
				for _, c := range mergetest.Changes(rnd, table.Table, 8) {
					c.Key = merge.NewKey(fmt.Sprint(h, ".", c.Key))
					changes = append(changes, c)
				}
			}
			var wg sync.WaitGroup
			errs := make([]error, 8)
			for w := range errs {
				wg.Go(func() { errs[w] = callAll(t, url, table, live, changes, w, rand.New(rand.NewPCG(seed, uint64(w)+1))) })
			}
			wg.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			got, err := s.Read(t.Context(), table, nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(plainRows(table, merge.Rows(table.Table, changes)), plainRows(table, got)); d != "" {
				t.Errorf("rows are not those of merge (-want +got):\n%s", d)
			}
		})
	}
}

func callAll(t *testing.T, url string, table *sink.Table, live *sink.Live, all []*merge.Change, w int, rnd *rand.Rand) error {
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		return err
	}
	defer c.Close(t.Context())
	var mine []*merge.Row
	for i, x := range all {
		if i%4 == w%4 {
			mine = append(mine, merge.Fold(table.Table, []*merge.Change{x})...)
		}
	}
	rnd.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
	for _, row := range mine {
		sql, args := callOf(table, live, row)
		for {
			_, err := c.Exec(t.Context(), sql, args...)
			var e *pgconn.PgError
			if errors.As(err, &e) && strings.HasPrefix(e.Code, "40") {
				continue
			}
			if err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// TestFunctionRefuses tries what cannot be right, and a row that lacks what only
// a new one needs.
func TestFunctionRefuses(t *testing.T) {
	table := tableOf(t, "item", "id text", "status text ladder new,done", "note text scope note", "must text", "n int", "tags text[] union", "origin text first")
	url, s := functionOf(t, table, "create table item (id text primary key, status text, note text, must text not null, n int, tags text[], origin text)")
	const v = "2026-01-01T00:00:00.000000000Z/0/0123456789abcdef"
	c := testdb.Connect(t, t.Context(), url)
	defer c.Close(t.Context())
	for sql, want := range map[string]string{
		"select hookfold_item(id => 'k', status => 'old')":                          "old is not a step of the ladder",
		"select hookfold_item(id => 'k', note => 'x')":                              "note_version is NULL",
		"select hookfold_item(id => 'k', origin => 'x')":                            "origin__first is NULL",
		"select hookfold_item(id => 'k', must => 'x', row_version => '2026')":       "2026 has not the form of a version",
		"select hookfold_item(id => 'k', note => 'x', note_version => '" + v + "')": "violates not-null constraint",
		"select hookfold_item(id => null, status => 'new')":                         "violates not-null constraint",
	} {
		if _, err := c.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", sql, err, want)
		}
	}
	for _, x := range []struct {
		sql  string
		want bool
	}{
		{"select hookfold_item(id => 'k', must => 'm', n => 1, tags => '{b,a,b}', row_version => '" + v + "')", true},
		{"select hookfold_item(id => 'k', must => 'm', n => 1, tags => '{b,a,b}', row_version => '" + v + "')", false},
		{"select hookfold_item(id => 'k', note => 'x', note_version => '" + v + "')", true},
		{"select hookfold_item(id => 'k', status => 'done')", true},
		{"select hookfold_item(id => 'k', status => 'new')", false},
	} {
		var got bool
		if err := c.QueryRow(t.Context(), x.sql).Scan(&got); err != nil || got != x.want {
			t.Errorf("%s: %v, %v, want %v", x.sql, got, err, x.want)
		}
	}
	if got, want := shown(t, s, table, "k"), `status=done note=x must=m n=1 tags=["a","b"] origin=NULL`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var stored string
	if err := c.QueryRow(t.Context(), "select array_to_string(tags, ' ') from item").Scan(&stored); err != nil || stored != "a b" {
		t.Errorf("a list is stored as %s, %v", stored, err)
	}
}
