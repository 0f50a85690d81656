package compile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/internal/compile"
)

// TestForms shows the other forms of SQL Server's upsert.
func TestForms(t *testing.T) {
	table := examples(t)["status"]
	got := ""
	for _, d := range []compile.Dialect{compile.SQLServerMerge, compile.SQLServerLocks} {
		live, _ := compile.Ideal(d, table)
		s, err := compile.Compile(d, table, live, nil)
		if err != nil {
			t.Fatal(err)
		}
		got += "==== " + string(d) + "\n\n" + s.Upsert.SQL + "\n\n"
	}
	file := filepath.Join("testdata", "status.forms.sql")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("run go test ./internal/compile -update if this is meant:\n%s", d)
	}
}
