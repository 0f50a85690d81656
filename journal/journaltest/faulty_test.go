package journaltest_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/journal/journaltest"
	"github.com/hookfold/hookfold/journal/sqlite"
)

func open(dir string) (journal.Journal, error) {
	j, err := sqlite.Open(filepath.Join(dir, "journal.db"), sqlite.Options{})
	if err != nil {
		return nil, err
	}
	return journaltest.Faulty(j, &journaltest.Faults{}), nil
}

func TestMain(m *testing.M) { journaltest.Main(m, open) }

// Without faults the wrapper is a journal like any other.
func TestFaultyWithoutFaults(t *testing.T) { journaltest.Run(t, open) }

func faulty(t *testing.T) (journal.Journal, *journaltest.Faults) {
	t.Helper()
	inner, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := inner.Close(); err != nil {
			t.Error(err)
		}
	})
	faults := &journaltest.Faults{}
	return journaltest.Faulty(inner, faults), faults
}

func count(t *testing.T, j journal.Journal) (n int) {
	t.Helper()
	if err := j.Scan(t.Context(), 0, func(*event.Delivery) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestFaultOfNthAppend(t *testing.T) {
	j, faults := faulty(t)
	faults.Add(journaltest.Fault{Op: journaltest.OpAppend, Nth: 2, Err: journal.ErrFull})
	faults.Add(journaltest.Fault{Op: journaltest.OpAppend, Nth: 3, Err: journal.ErrBroken, After: true})
	for i, want := range []error{nil, journal.ErrFull, journal.ErrBroken, nil} {
		d := &event.Delivery{Source: "a"}
		if err := j.Append(t.Context(), d); !errors.Is(err, want) {
			t.Errorf("append %d: %v, want %v", i+1, err, want)
		}
		if (d.Position != 0) != (want == nil) {
			t.Errorf("append %d: position %d with error %v", i+1, d.Position, want)
		}
	}
	if n := count(t, j); n != 3 {
		t.Errorf("%d deliveries are there, want 3: the second was not written, the third was", n)
	}
	if n := faults.Calls(journaltest.OpAppend); n != 4 {
		t.Errorf("%d appends were counted, want 4", n)
	}
	faults.Add(journaltest.Fault{Op: journaltest.OpAppend, Err: journal.ErrOverloaded})
	if err := j.Append(t.Context(), &event.Delivery{}); !errors.Is(err, journal.ErrOverloaded) {
		t.Errorf("append: %v, want %v", err, journal.ErrOverloaded)
	}
	faults.Clear()
	if err := j.Append(t.Context(), &event.Delivery{}); err != nil {
		t.Error(err)
	}
}

// A batch that a failed Next leased is not lost.
func TestFaultOfNextAndDone(t *testing.T) {
	j, faults := faulty(t)
	if err := j.Append(t.Context(), &event.Delivery{Source: "a"}); err != nil {
		t.Fatal(err)
	}
	c, err := j.Consumer(t.Context(), "rows")
	if err != nil {
		t.Fatal(err)
	}
	oops := errors.New("oops")
	faults.Add(journaltest.Fault{Op: journaltest.OpNext, Nth: 1, Err: oops, After: true})
	faults.Add(journaltest.Fault{Op: journaltest.OpDone, Nth: 1, Err: oops})
	if b, err := c.Next(t.Context(), journal.Limit{}); b != nil || !errors.Is(err, oops) {
		t.Errorf("next: %v, %v, want %v", b, err, oops)
	}
	b, err := c.Next(t.Context(), journal.Limit{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Done(t.Context(), b, nil); !errors.Is(err, oops) {
		t.Errorf("done: %v, want %v", err, oops)
	}
	if err := c.Done(t.Context(), b, nil); err != nil {
		t.Errorf("done again: %v", err)
	}
}

func TestFaultGate(t *testing.T) {
	j, faults := faulty(t)
	gate := make(chan struct{})
	faults.Add(journaltest.Fault{Op: journaltest.OpStats, Gate: gate})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Stats(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("stats: %v, want %v", err, context.Canceled)
	}
	close(gate)
	if _, err := j.Stats(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestFaultDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := &journaltest.Faults{}
		faults.Add(journaltest.Fault{Op: journaltest.OpHealthy, Delay: time.Hour, Err: journal.ErrBroken})
		j := journaltest.Faulty(nil, faults) // is not reached
		begin := time.Now()
		if err := j.Healthy(); !errors.Is(err, journal.ErrBroken) || time.Since(begin) != time.Hour {
			t.Errorf("healthy: %v after %v, want %v after an hour", err, time.Since(begin), journal.ErrBroken)
		}
	})
}
