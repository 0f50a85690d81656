package hasura_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/hasura"
	"github.com/hookfold/hookfold/sink/hasura/hasuratest"
	"github.com/hookfold/hookfold/sink/sinktest"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHasura(t *testing.T) {
	sinktest.Run(t, sinktest.Engine{NotBeside: true, LocalOnly: true, Refuses: noJSONNull, Open: func(t testing.TB, tables []*sink.Table) sink.Sink {
		server := hasuratest.New(t, testdb.Schema(t), hasuratest.Options{AdminSecret: "s3cret", Untracked: true})
		return open(t, server, tables, hasura.Options{AdminSecret: "s3cret"})
	}})
}

// noJSONNull: Hasura reads the JSON value null as NULL, so the sink refuses it.
func noJSONNull(t merge.Type, text string) bool { return t.Kind == merge.JSON && text == "null" }

func open(t testing.TB, server *hasuratest.Server, tables []*sink.Table, opts hasura.Options) sink.Sink {
	t.Helper()
	s, err := hasura.Open(t.Context(), "hasura+"+server.URL, tables, opts)
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
