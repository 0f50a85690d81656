package postgresttest

import (
	"net/url"
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
)

// A real PostgREST needs nothing but its URL: what it exposes and where its
// database is, is found out, and nothing is left behind.
func TestLiveIsFound(t *testing.T) {
	there, elsewhere := testdb.Postgres(t), testdb.Postgres(t)
	u, err := url.Parse(there)
	if err != nil {
		t.Fatal(err)
	}
	testdb.Exec(t, there, "create schema shown", "grant usage on schema shown to public")
	server := Start(t, there, Options{Schemas: []string{"shown", "other"}, Anon: u.User.Username()})
	p := &Project{API: server.URL}
	p.Schema = p.exposed(t)
	p.locate(t, []string{elsewhere, there})
	if found, err := url.Parse(p.Database); err != nil || found.Path != u.Path || p.Schema != "shown" {
		t.Errorf("found %s %s", p.Database, p.Schema)
	}
	for _, database := range []string{there, elsewhere} {
		c := testdb.Connect(t, t.Context(), database)
		var left int
		err := c.QueryRow(t.Context(), "select count(*) from pg_proc where starts_with(proname, 'hookfold')").Scan(&left)
		c.Close(t.Context())
		if err != nil || left != 0 {
			t.Errorf("%d functions are left, %v", left, err)
		}
	}
	t.Setenv(LiveVar, server.URL)
	t.Setenv(LiveDatabaseVar, there)
	live := Live(t)
	live.Exec(t, "create table item (id text primary key)")
	live.Grant(t, "item")
	if live.Schema != "shown" || live.Double != nil || live.Key != "" {
		t.Errorf("%+v", live)
	}
}
