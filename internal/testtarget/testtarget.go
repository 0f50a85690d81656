// Package testtarget gives tests a target of every kind, empty and of their own:
// what a config says of it, and where its rows are to be seen.
package testtarget

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/sink/hasura/hasuratest"
	"github.com/hookfold/hookfold/sink/postgrest/postgresttest"
)

// Target is a target of a test.
type Target struct {
	// Config is what stands behind the target's name in a config: a flow map.
	Config string
	// Rows is the URL of the database that holds the rows, as witness opens it.
	Rows string
	// Ready, if not nil, is to be called when tables were made or altered by hand:
	// it does what a person does then, as tracking and granting them.
	Ready func(testing.TB)
}

// Here is the URL of a target in the text of a config that In is to replace.
const Here = "TARGET"

// In puts the target into a config, in place of {url: "TARGET"}.
func (t Target) In(config string) string {
	return strings.Replace(config, `{url: "`+Here+`"}`, t.Config, 1)
}

// Kind is a kind of target.
type Kind struct {
	Name string
	// SQL says that it is written by SQL, and so keeps every table.
	SQL bool
	// Refuses are the tables of package e2e's problems that it cannot keep.
	Refuses []string
	// Open makes one, until the test ends. A server that is missing fails the test.
	Open func(testing.TB) Target
}

// Kinds are all of them. Another one is a line here. SQL Server is one where a
// server is named; elsewhere none can be had.
var Kinds = kinds()

func kinds() []Kind {
	if os.Getenv(testdb.SQLServerVar) == "" {
		return everywhere
	}
	return append(everywhere[:len(everywhere):len(everywhere)],
		Kind{"sqlserver", true, nil, func(t testing.TB) Target { return plain(testdb.SQLServer(t)) }})
}

var everywhere = []Kind{
	{"sqlite", true, nil, func(t testing.TB) Target { return plain(testdb.SQLite(t)) }},
	{"postgres", true, nil, func(t testing.TB) Target { return plain(testdb.Postgres(t)) }},
	{"mysql", true, nil, func(t testing.TB) Target { return plain(testdb.MySQL(t)) }},
	{"pgbouncer", true, nil, pgbouncer},
	{"hasura", false, nil, hasura},
	{"supabase-rpc", false, nil, func(t testing.TB) Target { return supabase(t, "rpc") }},
	{"supabase-rest", false, []string{"booking", "label"}, func(t testing.TB) Target { return supabase(t, "rest") }},
}

// Named makes a target of a kind.
func Named(t testing.TB, name string) Target {
	t.Helper()
	for _, k := range Kinds {
		if k.Name == name {
			return k.Open(t)
		}
	}
	t.Fatalf("there is no kind of target %s", name)
	return Target{}
}

func plain(url string) Target { return Target{Config: fmt.Sprintf("{url: %q}", url), Rows: url} }

func pgbouncer(t testing.TB) Target {
	t.Helper()
	url := testdb.Postgres(t)
	return Target{Config: fmt.Sprintf("{url: %q, pooler: transaction}", testdb.PgBouncer(t, url).Through(url)), Rows: url}
}

func hasura(t testing.TB) Target {
	t.Helper()
	url := testdb.Schema(t)
	server := hasuratest.New(t, url, hasuratest.Options{AdminSecret: "s3cret", Untracked: true})
	return Target{Config: fmt.Sprintf("{url: %q, admin_secret: s3cret}", "hasura+"+server.URL), Rows: url, Ready: server.TrackAll}
}

// supabase is a project as Supabase has them: a gateway that asks for a key, and
// at most 1000 rows of an answer.
func supabase(t testing.TB, mode string) Target {
	t.Helper()
	p := postgresttest.New(t, postgresttest.Options{MaxRows: 1000, APIKey: "it becomes the key"})
	return Target{
		Config: fmt.Sprintf("{url: %q, key: %q, schema: %q, mode: %s, direct_url: %q}", "supabase+"+p.API, p.Key, p.Schema, mode, p.Database),
		Rows:   p.Database,
		// A Supabase project grants all tables to its service_role.
		Ready: func(t testing.TB) {
			p.Exec(t, "grant all on all tables in schema "+p.Schema+" to "+p.Role, "grant usage on all sequences in schema "+p.Schema+" to "+p.Role)
		},
	}
}
