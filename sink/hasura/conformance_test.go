package hasura_test

import (
	"strings"
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

// The suite against the double, as it is run against a real Hasura; and it leaves
// nothing behind.
func TestHasura(t *testing.T) { double(t, sinktest.Engine{}) }

// With the guard trigger one field takes all rows as they are.
func TestHasuraGuarded(t *testing.T) { double(t, guarded) }

func double(t *testing.T, e sinktest.Engine) {
	url := testdb.Postgres(t)
	server := hasuratest.New(t, url, hasuratest.Options{AdminSecret: "s3cret", Untracked: true})
	endpoint, opts := found(t, strings.Replace(server.URL, "http://", "http://:s3cret@", 1), "")
	live(t, endpoint, opts, e)
	r := &rig{database: url}
	if got := r.one(t, "select count(*) from pg_namespace where nspname like 'hookfold%'"); got != "0" {
		t.Errorf("%s schemas are left", got)
	}
	if got := r.one(t, "select count(*) from pg_class where relnamespace = 'public'::regnamespace"); got != "0" {
		t.Errorf("%s tables are left", got)
	}
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
