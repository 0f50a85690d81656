package sqlsink_test

import (
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sinktest"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

func TestPostgres(t *testing.T) {
	sinktest.Run(t, sinktest.Engine{Open: func(t testing.TB, tables []*sink.Table) sink.Sink {
		return open(t, testdb.Schema(t), tables, sqlsink.Options{Connections: 8})
	}})
}

func TestSQLite(t *testing.T) {
	sinktest.Run(t, sinktest.Engine{Open: func(t testing.TB, tables []*sink.Table) sink.Sink {
		return open(t, testdb.SQLite(t), tables, sqlsink.Options{Connections: 8})
	}})
}

func open(t testing.TB, url string, tables []*sink.Table, opts sqlsink.Options) sink.Sink {
	t.Helper()
	s, err := sqlsink.Open(t.Context(), url, tables, opts)
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
