package postgresttest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookfold/hookfold/internal/testdb"
)

// Variables that point at a real PostgREST. Its URL is enough where its database
// is on the server that the other tests use; a key may be its password
// (http://:token@host:3000).
const (
	LiveVar = "HOOKFOLD_TEST_POSTGREST"
	// LiveKeyVar is a token of the role that writes; without one the server's role
	// for anonymous requests does.
	LiveKeyVar = "HOOKFOLD_TEST_POSTGREST_KEY"
	// LiveDatabaseVar is the URL of its database, in which the suite makes tables,
	// LiveSchemaVar the schema for them: it has to be exposed. Without them they
	// are looked for.
	LiveDatabaseVar = "HOOKFOLD_TEST_POSTGREST_DSN"
	LiveSchemaVar   = "HOOKFOLD_TEST_POSTGREST_SCHEMA"
)

// Project is an API with its database.
type Project struct {
	// API is the URL of the API, Key a token for it.
	API, Key string
	// Database is the URL of the PostgreSQL database, with Schema as its search
	// path; Schema is the one that is exposed.
	Database, Schema string
	// Role is the database's role of the key: public if there is no key. Anon is
	// that of requests without a token, "" if it is not known.
	Role, Anon string
	// Double is nil for a real server.
	Double *Server
}

// New makes a schema of its own with a double in front of it, and roles as a
// Supabase project has them; all of it is removed when the test ends.
func New(t testing.TB, opts Options) *Project {
	t.Helper()
	p := &Project{Database: testdb.Schema(t)}
	u, err := url.Parse(p.Database)
	if err != nil {
		t.Fatal("the URL of the database cannot be read")
	}
	p.Schema = u.Query().Get("search_path")
	own := unique()
	p.Role, p.Anon = "hookfold_test_service_"+own, "hookfold_test_anon_"+own
	testdb.Exec(t, p.Database,
		"create role "+p.Role+" bypassrls", "create role "+p.Anon,
		"grant usage on schema "+p.Schema+" to "+p.Role+", "+p.Anon)
	t.Cleanup(func() {
		testdb.Exec(t, p.Database, "drop owned by "+p.Role+", "+p.Anon, "drop role "+p.Role+", "+p.Anon)
	})
	opts.Schemas = append([]string{p.Schema}, opts.Schemas...)
	opts.Anon, opts.Secret = p.Anon, "a secret of at least thirty-two characters"
	p.Key = Token(opts.Secret, p.Role, 0)
	if opts.APIKey != "" {
		opts.APIKey = p.Key
	}
	p.Double = Start(t, p.Database, opts)
	p.API = p.Double.URL
	return p
}

// Live returns the real PostgREST that the variables name, nil if they name
// none. What the test makes in the schema is removed when it ends.
func Live(t testing.TB) *Project {
	t.Helper()
	p := &Project{API: os.Getenv(LiveVar), Key: os.Getenv(LiveKeyVar), Database: os.Getenv(LiveDatabaseVar), Schema: os.Getenv(LiveSchemaVar), Role: "public"}
	if p.API == "" {
		return nil
	}
	api, err := url.Parse(p.API)
	if err != nil {
		t.Fatalf("%s is not a URL", LiveVar) // without its text: it may hold a key
	}
	if key, ok := api.User.Password(); ok {
		p.Key, api.User = key, nil
	}
	p.API = strings.TrimSuffix(api.String(), "/")
	if p.Key != "" {
		p.Role = ""
	}
	p.settle(t)
	alone.hold(t, p.Database)
	before := map[string]bool{}
	for _, drop := range p.drops(t) {
		before[drop] = true
	}
	t.Cleanup(func() {
		for _, drop := range p.drops(t) {
			if !before[drop] {
				testdb.Exec(t, p.Database, drop)
			}
		}
		testdb.Exec(t, p.Database, "notify pgrst, 'reload schema'")
	})
	return p
}

// drops gives the statements that would empty the schema.
func (p *Project) drops(t testing.TB) []string {
	ctx := context.Background()
	c := testdb.Connect(t, ctx, p.Database)
	defer c.Close(ctx)
	rows, err := c.Query(ctx, `select 'drop function if exists ' || p.oid::regprocedure || ' cascade' from pg_proc p where p.pronamespace = $1::regnamespace and not starts_with(p.proname, $2)
union all select 'drop table if exists ' || c.oid::regclass || ' cascade' from pg_class c where c.relnamespace = $1::regnamespace and c.relkind = 'r'`, p.Schema, markName)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Exec runs statements on the database, and returns when the API knows of them.
func (p *Project) Exec(t testing.TB, statements ...string) {
	t.Helper()
	testdb.Exec(t, p.Database, statements...)
	if p.Double != nil {
		p.Double.Await(func() { testdb.Exec(t, p.Database, "notify pgrst, 'reload schema'") })
		return
	}
	mark := markName + unique()
	testdb.Exec(t, p.Database, "create function "+mark+"() returns int language sql as 'select 1'", "notify pgrst, 'reload schema'")
	for deadline := time.Now().Add(30 * time.Second); !p.knows(t, mark); {
		if time.Now().After(deadline) {
			t.Fatal("the API does not read its schema again: does it listen on the channel pgrst, and does it expose the schema?")
		}
		<-time.After(50 * time.Millisecond)
	}
	testdb.Exec(t, p.Database, "drop function "+mark+"()")
}

func unique() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Grant lets the key's role use a table.
func (p *Project) Grant(t testing.TB, tables ...string) {
	t.Helper()
	role := p.Role
	if role == "" {
		role = "public"
	}
	p.Exec(t, "grant select, insert, update, delete on "+strings.Join(tables, ", ")+" to "+role)
}
