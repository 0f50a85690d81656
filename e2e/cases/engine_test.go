package cases

import (
	"os"
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/internal/witness"
)

// engine is a database that the cases run on.
type engine struct {
	name string
	// database makes an empty one and returns its URL.
	database func(testing.TB) string
	// through, if not nil, returns the URL by which Hookfold is led to it.
	through func(url string) string
	// api, if not nil, is in the place of both: a target behind an API, whose
	// rows are PostgreSQL's.
	api *api
}

// named are engines that run where a variable names a server, and how such a case
// is looked at elsewhere.
var named = map[string]struct{ variable, elsewhere string }{
	"sqlserver": {testdb.SQLServerVar, "a grammar of T-SQL reads its statements, and the wire is tested in `sink/sqlsink`"},
}

// engines are all of them. Another one is a line here.
var engines = append(everywhere[:len(everywhere):len(everywhere)], servers()...)

func servers() []engine {
	if os.Getenv(testdb.SQLServerVar) == "" {
		return nil
	}
	return []engine{{name: "sqlserver", database: testdb.SQLServer}}
}

var everywhere = []engine{
	{name: "sqlite", database: testdb.SQLite},
	{name: "postgres", database: testdb.Schema},
	{name: "mariadb", database: testdb.MySQL},
	{name: "hasura", api: &api{kind: "hasura", like: `{url: "hasura+http://127.0.0.1"}`}},
	{name: "supabase-rpc", api: &api{kind: "supabase-rpc", like: `{url: "supabase+http://127.0.0.1", mode: rpc}`}},
	{name: "supabase-rest", api: &api{kind: "supabase-rest", like: `{url: "supabase+http://127.0.0.1", mode: rest}`}},
}

// onlyNamed are engines on which a case runs that names them: the schemas of the
// others are not in their words.
var onlyNamed = map[string]bool{"mariadb": true}

// later are the engines that some cases are about and that are not there yet:
// what their URLs begin with, and how they are called.
var later = map[string]struct{ scheme, name string }{}

// execute runs statements, which are separated by a line break after a
// semicolon.
func execute(t testing.TB, url, script string) error {
	t.Helper()
	db, err := witness.Open(url)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, s := range strings.Split(script+"\n", ";\n") {
		if strings.TrimSpace(s) == "" {
			continue
		}
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			return err
		}
	}
	return nil
}
