package sqlsink_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hookfold/hookfold/sink/sqlsink"
)

// The file of a target is its owner's alone, as the journal's is.
func TestASQLiteFileIsReadableByItsOwnerAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.db")
	s, err := sqlsink.Open(t.Context(), "sqlite:"+file, nil, sqlsink.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Execute(t.Context(), []string{"create table x (k text)"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, file + "-wal"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}
