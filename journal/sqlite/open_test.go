package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

func openAt(t *testing.T, path string, options Options) *Journal {
	t.Helper()
	j, err := Open(path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// script changes a file with plain SQL.
func script(t *testing.T, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, test := range []struct {
		name   string
		access Access
		make   func(t *testing.T, path string)
		want   []string
	}{
		{"another database", Owner, func(t *testing.T, path string) { script(t, path, "CREATE TABLE t (a)") },
			[]string{"journal.db", "not a journal of Hookfold", "a file of its own"}},
		{"another file", Owner, func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("not a database at all\n", 100)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, []string{"journal.db", "not a journal of Hookfold", "a file of its own"}},
		{"a newer journal", Owner, func(t *testing.T, path string) {
			if err := openAt(t, path, Options{}).Close(); err != nil {
				t.Fatal(err)
			}
			script(t, path, "PRAGMA user_version = 99")
		}, []string{"schema 99", "newer Hookfold", "run the newer version"}},
		{"an older journal, to read", Reader, func(t *testing.T, path string) {
			script(t, path, fmt.Sprintf("PRAGMA application_id = %d; CREATE TABLE t (a)", applicationID))
		}, []string{"schema 0", "start the server"}},
		{"no journal to read", Reader, func(t *testing.T, path string) {}, []string{"no journal to read", "journal.db", "check the path"}},
		{"no journal to change", Operator, func(t *testing.T, path string) {}, []string{"no journal to read", "journal.db"}},
		{"no folder", Owner, func(t *testing.T, path string) {
			if err := os.Remove(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
		}, []string{"journal.db", "no such file"}},
		{"a folder", Owner, func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, []string{"journal.db", "unable to open"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sub", "journal.db")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			test.make(t, path)
			before, _ := os.ReadFile(path)
			j, err := Open(path, Options{Access: test.access})
			if err == nil {
				_ = j.Close()
				t.Fatal("it was opened")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("the file was changed")
			}
			if _, err := os.Stat(path); test.access != Owner && before == nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error("a file was made")
			}
		})
	}
}

func TestOpenAnyName(t *testing.T) {
	for _, name := range []string{"a b.db", "100%?x=1#y&z.db", "ü;'\".db", "file:x.db"} {
		path := filepath.Join(t.TempDir(), name)
		j := openAt(t, path, Options{})
		mustAppend(t, j, 1)
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Errorf("the file is not at its name: %v", err)
		} else if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want it private", name, info.Mode())
		}
	}
}

func TestOneOwner(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "journal.db")
	j := openAt(t, path, Options{})
	link := filepath.Join(dir, "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		_, err := Open(name, Options{})
		if err == nil {
			t.Fatal("two owners")
		}
		for _, want := range []string{"in use", fmt.Sprintf("process %d", os.Getpid()), "stop that first"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q does not say %q", err, want)
			}
		}
	}
	mustAppend(t, j, 1)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	openAt(t, link, Options{})
}

// Others look at and change entries while the owner is at work.
func TestOperatorAndReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, Options{})
	d := mustAppend(t, j, 1)
	c, err := j.Consumer(t.Context(), "rows")
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Next(t.Context(), journal.Limit{})
	if err != nil {
		t.Fatal(err)
	}
	entry := journal.Entry{Consumer: "rows", Ref: event.Ref{Position: d.Position}, State: journal.Dead, Reason: "why"}
	if err := c.Done(t.Context(), b, []journal.Entry{entry}); err != nil {
		t.Fatal(err)
	}
	operator := openAt(t, path, Options{Access: Operator})
	reader := openAt(t, path, Options{Access: Reader})
	for name, other := range map[string]*Journal{"operator": operator, "reader": reader} {
		if es, err := other.Entries(t.Context(), journal.Filter{}); err != nil || !cmp.Equal(es, []journal.Entry{entry}) {
			t.Errorf("%s: entries %v, %v", name, es, err)
		}
		if got, err := other.Get(t.Context(), d.Position); err != nil || !cmp.Equal(got, d) {
			t.Errorf("%s: get %v, %v", name, got, err)
		}
		if st, err := other.State(t.Context(), "rows", entry.Ref); err != nil || st != journal.Dead {
			t.Errorf("%s: state %v, %v", name, st, err)
		}
		if err := other.Append(t.Context(), small(2)); err == nil {
			t.Errorf("%s appends", name)
		}
		if _, err := other.Consumer(t.Context(), "x"); err == nil {
			t.Errorf("%s consumes", name)
		}
		if err := other.Healthy(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := reader.Retry(t.Context(), journal.Filter{}); err == nil {
		t.Error("a reader retries")
	}
	if n, err := operator.Retry(t.Context(), journal.Filter{}); n != 1 || err != nil {
		t.Errorf("retry: %d, %v", n, err)
	}
	due, err := c.Due(t.Context(), time.Now(), journal.Limit{})
	if err != nil || len(due.Entries) != 1 {
		t.Errorf("the owner does not see the retry: %v, %v", due, err)
	}
	if n, err := operator.Drop(t.Context(), journal.Filter{}); n != 1 || err != nil {
		t.Errorf("drop: %d, %v", n, err)
	}
	mustAppend(t, j, 2)
	if n := 0; reader.Scan(t.Context(), 0, func(*event.Delivery) error { n++; return nil }) != nil || n != 2 {
		t.Errorf("the reader sees %d deliveries", n)
	}
	for _, other := range []*Journal{operator, reader} {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}
	mustAppend(t, j, 3) // the owner's locks are untouched
}

// A full queue refuses more instead of growing.
func TestOverload(t *testing.T) {
	for name, options := range map[string]Options{"count": {QueueDeliveries: 4}, "bytes": {QueueBytes: 100}} {
		t.Run(name, func(t *testing.T) {
			disk := newFaultyDisk(t)
			j := openOn(t, disk, options)
			gate, stuck := make(chan struct{}), make(chan struct{}, 100)
			disk.fail(func(op, path string) int32 {
				if op == "sync" {
					stuck <- struct{}{}
					<-gate
				}
				return 0
			})
			results := make(chan error, 100)
			add := func() { results <- j.Append(context.Background(), small(1)) }
			go add()
			<-stuck // the writer is at the disk; what comes now waits
			full := false
			for range 50 {
				a := &appending{frame: encodeFrame(small(1)), done: make(chan error, 1)}
				if err := j.queue.append(a); errors.Is(err, journal.ErrOverloaded) {
					full = true
					break
				}
			}
			if !full {
				t.Error("50 deliveries wait")
			}
			if err := j.Append(t.Context(), small(2)); !errors.Is(err, journal.ErrOverloaded) {
				t.Errorf("append to a full queue: %v, want %v", err, journal.ErrOverloaded)
			}
			close(gate)
			if err := <-results; err != nil {
				t.Error(err)
			}
		})
	}
}

// One delivery may always wait, however large.
func TestLargerThanTheQueue(t *testing.T) {
	j := openAt(t, filepath.Join(t.TempDir(), "journal.db"), Options{QueueBytes: 10, CacheBytes: 10})
	d := mustAppend(t, j, 1)
	if got, err := j.Get(t.Context(), d.Position); err != nil || !cmp.Equal(got, d) {
		t.Errorf("get: %v, %v", got, err)
	}
}

// While its transaction lasts, another program's lock is not this journal's end.
func TestLockedByAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, Options{busy: 50 * time.Millisecond})
	mustAppend(t, j, 1)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(t.Context(), small(2)); !errors.Is(err, journal.ErrOverloaded) {
		t.Errorf("append: %v, want %v", err, journal.ErrOverloaded)
	}
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, j, 3)
}
