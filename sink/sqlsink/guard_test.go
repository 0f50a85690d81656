package sqlsink_test

import (
	"testing"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sinktest"
)

// TestGuardTrigger runs the suite of sinks with plain, unguarded upserts as the
// writer: the guard trigger alone makes the rows right.
func TestGuardTrigger(t *testing.T) {
	sinktest.Run(t, sinktest.Engine{
		NotBeside: true,
		Keeps:     func(c merge.Column) bool { return c.Rule != merge.Sum && c.Rule != merge.Count },
		Holds:     func(t *sink.Table) bool { return compile.GuardRefuses(compile.Postgres, t) == nil },
		Open: func(t testing.TB, _ []*sink.Table) sink.Sink {
			return plainWriter(t, testdb.Schema(t), nil)
		},
		Faulty: func(t testing.TB, _ []*sink.Table, fault func() sinktest.Fault) sink.Sink {
			return plainWriter(t, testdb.Schema(t), fault)
		},
	})
}
