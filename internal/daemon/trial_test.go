package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/testdb"
)

// What a trial has left that was killed is removed when serve starts.
func TestStartRemovesWhatTrialsLeft(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	old := filepath.Join(os.TempDir(), "hookfold_prove_old")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	alive := filepath.Join(old, "alive")
	if err := os.WriteFile(alive, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(alive, long, long); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, testdb.SQLite(t))
	r.start()
	r.stop() // waits for what was begun
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	if !strings.Contains(r.log.String(), "trials that were killed") {
		t.Errorf("it is not told: %s", r.log)
	}
}
