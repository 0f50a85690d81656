package cases

import (
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
}

// engines are all of them. Another one is a line here.
var engines = []engine{
	{name: "sqlite", database: testdb.SQLite},
	{name: "postgres", database: testdb.Schema},
}

// later are the engines that some cases are about and that are not there yet:
// what their URLs begin with, and how they are called.
var later = map[string]struct{ scheme, name string }{
	"mariadb":   {"mysql://", "MariaDB and MySQL (issue 4)"},
	"sqlserver": {"sqlserver://", "SQL Server (issue 4)"},
}

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
