package postgrest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/postgrest"
	"github.com/hookfold/hookfold/sink/postgrest/postgresttest"
	"github.com/hookfold/hookfold/sink/sinktest"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRPC(t *testing.T) {
	sinktest.Run(t, sinktest.Engine{NotBeside: true, LocalOnly: true, Open: func(t testing.TB, tables []*sink.Table) sink.Sink {
		return open(t, project(t), tables, postgrest.Options{})
	}})
}

func TestREST(t *testing.T) {
	sinktest.Run(t, sinktest.Engine{NotBeside: true, LocalOnly: true, NotOccupied: true, Keeps: kept, Refuses: noJSONNull, Open: func(t testing.TB, tables []*sink.Table) sink.Sink {
		return open(t, project(t), tables, postgrest.Options{Mode: postgrest.REST})
	}})
}

// kept are the columns that mode rest does not refuse.
func kept(c merge.Column) bool {
	t := &sink.Table{Name: "t", Table: merge.NewTable(merge.Table{Name: "t", Columns: []merge.Column{c}})}
	return len(postgrest.Refuses(t, postgrest.REST)) == 0
}

// noJSONNull: in mode rest the JSON value null would arrive as NULL, so the sink
// refuses it.
func noJSONNull(t merge.Type, text string) bool { return t.Kind == merge.JSON && text == "null" }

// project is a double, or the real server that HOOKFOLD_TEST_POSTGREST names.
func project(t testing.TB) *postgresttest.Project {
	t.Helper()
	if p := postgresttest.Live(t); p != nil {
		return p
	}
	return postgresttest.New(t, postgresttest.Options{MaxRows: 1000})
}

func open(t testing.TB, p *postgresttest.Project, tables []*sink.Table, opts postgrest.Options) sink.Sink {
	t.Helper()
	opts.Key, opts.Schema, opts.Direct = p.Key, p.Schema, p.Database
	if opts.Role == "" && p.Key == "" {
		opts.Role = "public"
	}
	s, err := postgrest.Open(t.Context(), "postgrest+"+p.API, tables, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// With the guard trigger mode rest sends rows as they are.
func TestRESTGuarded(t *testing.T) {
	sinktest.Run(t, sinktest.Engine{NotBeside: true, LocalOnly: true, NotOccupied: true, Guard: sink.ByTrigger, Brief: true, Refuses: noJSONNull, Open: func(t testing.TB, tables []*sink.Table) sink.Sink {
		return open(t, project(t), tables, postgrest.Options{Mode: postgrest.REST})
	}})
}
