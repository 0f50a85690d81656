package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/journal/journaltest"
)

func openDir(dir string) (journal.Journal, error) {
	j, err := Open(filepath.Join(dir, "journal.db"), Options{})
	if err != nil {
		return nil, err
	}
	return j, nil
}

func TestMain(m *testing.M) { journaltest.Main(m, openDir) }

func TestJournal(t *testing.T) { journaltest.Run(t, openDir) }
