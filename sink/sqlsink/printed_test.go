package sqlsink_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
)

// printedFiles are what compile shows of its examples.
const printedFiles = "../../internal/compile/testdata/"

// printed gives what is printed for one dialect, by example.
func printed(t testing.TB, kind, dialect string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(printedFiles + "*." + kind + ".sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of %s: %v", kind, err)
	}
	out := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		_, section, ok := strings.Cut(string(text), "==== "+dialect+"\n")
		if !ok {
			t.Fatalf("%s shows nothing for %s", f, dialect)
		}
		section, _, _ = strings.Cut(section, "\n==== ")
		out[strings.TrimSuffix(filepath.Base(f), "."+kind+".sql")] = section
	}
	return out
}

// statements gives the statements of a printed script: those that make what has
// to be there, and those that take parameters.
func statements(script string) (ddl, rest []string) {
	for _, s := range strings.SplitAfter(script, ";\n") {
		var lines []string
		for _, l := range strings.Split(s, "\n") {
			if l != "" && !strings.HasPrefix(l, "--") {
				lines = append(lines, l)
			}
		}
		text := strings.TrimSuffix(strings.Join(lines, "\n"), ";")
		switch {
		case text == "":
		case strings.HasPrefix(text, "create "):
			ddl = append(ddl, text)
		default:
			rest = append(rest, text)
		}
	}
	return ddl, rest
}

// TestPrintedOnPostgres has the server accept all that hookfold sql prints.
func TestPrintedOnPostgres(t *testing.T) {
	guards, procedures := printed(t, "guard", "postgres"), printed(t, "procedure", "postgres")
	for name, script := range printed(t, "golden", "postgres") {
		t.Run(name, func(t *testing.T) {
			url := testdb.Schema(t)
			ddl, rest := statements(script)
			testdb.Exec(t, url, ddl...)
			c := testdb.Connect(t, t.Context(), url)
			defer c.Close(t.Context())
			for _, s := range rest {
				if _, err := c.Prepare(t.Context(), "", s); err != nil {
					t.Errorf("%v\n%s", err, s)
				}
			}
			for _, script := range []string{guards[name], procedures[name]} {
				for range 2 { // it may be run again
					if _, err := c.PgConn().Exec(t.Context(), script).ReadAll(); err != nil {
						t.Errorf("%v\n%s", err, script)
					}
				}
			}
			for _, line := range strings.Split(guards[name]+procedures[name], "\n") {
				if s, ok := strings.CutPrefix(line, "--   drop "); ok {
					testdb.Exec(t, url, "drop "+strings.TrimSuffix(s, ";"))
				}
			}
			var left int
			if err := c.QueryRow(t.Context(), "select count(*) from pg_trigger g join pg_class c on c.oid = g.tgrelid where c.relnamespace = current_schema()::regnamespace and not g.tgisinternal").Scan(&left); err != nil || left > 0 {
				t.Errorf("%d triggers are left after what the script says removes them, %v", left, err)
			}
		})
	}
}

// TestPrintedOnSQLite has SQLite accept what hookfold sql prints.
func TestPrintedOnSQLite(t *testing.T) {
	for name, script := range printed(t, "golden", "sqlite") {
		t.Run(name, func(t *testing.T) {
			db, err := sql.Open("sqlite", strings.TrimPrefix(testdb.SQLite(t), "sqlite:"))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			ddl, rest := statements(script)
			for _, s := range ddl {
				if _, err := db.Exec(s); err != nil {
					t.Errorf("%v\n%s", err, s)
				}
			}
			for _, s := range slices.DeleteFunc(rest, func(s string) bool { return strings.Contains(s, "hookfold_decimal(") }) {
				p, err := db.Prepare(s)
				if err != nil {
					t.Errorf("%v\n%s", err, s)
					continue
				}
				p.Close()
			}
		})
	}
}

// TestPrintedOnMySQL has MySQL or MariaDB accept what hookfold sql prints.
func TestPrintedOnMySQL(t *testing.T) {
	guards := printed(t, "guard", "mysql")
	for name, script := range printed(t, "golden", "mysql") {
		t.Run(name, func(t *testing.T) {
			url := testdb.MySQL(t)
			ddl, rest := statements(script)
			testdb.ExecMySQL(t, url, ddl...)
			db := testdb.ConnectMySQL(t, url)
			defer db.Close()
			var version string
			if err := db.QueryRow("select version()").Scan(&version); err != nil {
				t.Fatal(err)
			}
			for _, s := range rest {
				if strings.Contains(version, "MariaDB") && strings.Contains(s, " as json)") {
					continue // it is for MySQL: MariaDB has no type json, as --connect sees
				}
				p, err := db.Prepare(s)
				if err != nil {
					t.Errorf("%v\n%s", err, s)
					continue
				}
				p.Close()
			}
			_, guard, ok := strings.Cut(guards[name], "\ndelimiter //\n")
			if !ok {
				return // the table has none
			}
			guard, _, _ = strings.Cut(guard, "delimiter ;\n")
			for range 2 {
				testdb.ExecMySQL(t, url, slices.DeleteFunc(strings.Split(guard, "//\n"), func(s string) bool { return s == "" })...)
			}
			for _, line := range strings.Split(guards[name], "\n") {
				if s, ok := strings.CutPrefix(line, "--   drop "); ok {
					testdb.ExecMySQL(t, url, "drop "+strings.TrimSuffix(s, ";"))
				}
			}
			var left int
			if err := db.QueryRow("select count(*) from information_schema.triggers where trigger_schema = database()").Scan(&left); err != nil || left > 0 {
				t.Errorf("%d triggers are left after what the script says removes them, %v", left, err)
			}
		})
	}
}
