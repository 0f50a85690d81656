package cases

import (
	"slices"
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

// later are the engines that some cases are about and that are not there yet,
// by what their URLs begin with.
var later = map[string]string{"mariadb": "mysql://", "sqlserver": "sqlserver://"}

func engineNamed(name string) (engine, bool) {
	i := slices.IndexFunc(engines, func(e engine) bool { return e.name == name })
	if i < 0 {
		return engine{}, false
	}
	return engines[i], true
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
