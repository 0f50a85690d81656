package sqlsink_test

import (
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sinktest"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

func TestPostgres(t *testing.T) { sinktest.Run(t, suite(testdb.Schema)) }

func TestSQLite(t *testing.T) { sinktest.Run(t, suite(testdb.SQLite)) }

// Tables that statements could join are right under locks too: that is how
// databases write them whose SQL cannot decide them.
func TestHeld(t *testing.T) {
	for _, d := range databases {
		if d.name == "mysql" || testing.Short() && d.name != "sqlite" {
			continue // one engine shows the joins, the others more of their locks
		}
		t.Run(d.name, func(t *testing.T) {
			e := sinktest.Engine{Open: func(t testing.TB, tables []*sink.Table) sink.Sink {
				s := open(t, d.url(t), tables, sqlsink.Options{Connections: 8})
				sqlsink.HoldAll(s)
				return s
			}}
			sinktest.Run(t, e)
		})
	}
}

// TestMySQL runs on MySQL or MariaDB. A collation that both have pads, so a key
// that ends in a space is none.
func TestMySQL(t *testing.T) {
	e := suite(testdb.MySQL)
	e.RefusesKey = func(typ merge.Type, text string) bool { return typ.Kind == merge.Text && strings.HasSuffix(text, " ") }
	sinktest.Run(t, e)
}

func suite(url func(testing.TB) string) sinktest.Engine {
	plain := func(t testing.TB, tables []*sink.Table) sink.Sink {
		return open(t, url(t), tables, sqlsink.Options{Connections: 8})
	}
	return sinktest.Engine{Open: plain, Faulty: func(t testing.TB, tables []*sink.Table, fault func() sinktest.Fault) sink.Sink {
		s := plain(t, tables)
		sqlsink.Cut(s, fault)
		return s
	}}
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
