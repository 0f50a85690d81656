package sqlsink_test

import (
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sinktest"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// TestPgBouncer runs the suite through a PgBouncer in transaction mode;
// TestPoolerNeedsNoNamedStatements watches the same on the wire, without one.
func TestPgBouncer(t *testing.T) {
	bouncer := testdb.PgBouncer(t, testdb.Postgres(t))
	sinktest.Run(t, sinktest.Engine{Open: func(t testing.TB, tables []*sink.Table) sink.Sink {
		return open(t, bouncer.Through(testdb.Postgres(t)), tables, sqlsink.Options{Connections: 8, Pooler: "transaction"})
	}})
}

// A place for trials needs no session either.
func TestScratchThroughPgBouncer(t *testing.T) {
	url := testdb.Postgres(t)
	bouncer := testdb.PgBouncer(t, testdb.Postgres(t))
	table := tableOf(t, "thing", "id text", "v text", "n int sum")
	s := open(t, bouncer.Through(url), nil, sqlsink.Options{Connections: 8, Pooler: "transaction"})
	bring(t, s, table)
	x := scratchOf(t, s, table)
	for range 3 {
		write(t, x, x.Tables()[0], say(t, x.Tables()[0], "k", 1, map[string]any{"v": "x"}))
		if err := x.Empty(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if rows, err := x.Read(t.Context(), x.Tables()[0], nil); err != nil || len(rows) > 0 {
		t.Errorf("there are %d rows: %v", len(rows), err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if got := one(t, url, places); got != "0" {
		t.Errorf("%s schemas are left", got)
	}
}
