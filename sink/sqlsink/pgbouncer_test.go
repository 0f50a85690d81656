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
