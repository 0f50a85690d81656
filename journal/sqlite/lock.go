package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookfold/hookfold/journal"
)

// lock is the right to append to a journal and to consume it, which one
// process has at a time. It is a lock on a file beside the journal: closing a
// second handle of the journal's own file would lose SQLite's locks on it.
type lock struct{ f *os.File }

func takeLock(path string) (*lock, error) {
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock journal: %w; let this user write there", err)
	}
	ok, err := lockFile(f)
	if err == nil && !ok {
		holder, readErr := io.ReadAll(io.LimitReader(f, 200))
		who := strings.TrimSpace(string(holder))
		if readErr != nil || who == "" {
			who = "another process"
		}
		err = &inUse{fmt.Sprintf("open journal: %s is in use by %s: stop that first; commands that only look at the journal work meanwhile", path, who)}
	} else if err != nil {
		err = fmt.Errorf("lock journal %s: %w", name, err)
	}
	if err == nil {
		who := fmt.Sprintf("process %d (%s), since %s\n", os.Getpid(), filepath.Base(os.Args[0]), time.Now().UTC().Format(time.RFC3339))
		if err = errors.Join(f.Truncate(0), writeAt(f, who)); err == nil {
			return &lock{f}, nil
		}
		err = fmt.Errorf("lock journal: %w", err)
	}
	return nil, errors.Join(err, f.Close())
}

// inUse is journal.ErrInUse with who it is.
type inUse struct{ text string }

func (e *inUse) Error() string { return e.text }
func (e *inUse) Unwrap() error { return journal.ErrInUse }

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

func (l *lock) release() error { return l.f.Close() }
