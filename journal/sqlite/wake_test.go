package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// Wake makes what it is told due, and nothing else; a dead entry stays dead.
func TestWake(t *testing.T) {
	j, err := Open(filepath.Join(t.TempDir(), "j.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	ctx, now := t.Context(), time.Now()
	for range 3 {
		if err := j.Append(ctx, &event.Delivery{Source: "a", Received: now}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := j.Consumer(ctx, "db")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b, err := c.Next(ctx, journal.Limit{})
	if err != nil {
		t.Fatal(err)
	}
	entries := []journal.Entry{
		{Ref: event.Ref{Position: 1}, State: journal.Waiting, Next: now.Add(time.Hour)},
		{Ref: event.Ref{Position: 2}, State: journal.Dead},
		{Ref: event.Ref{Position: 3}, State: journal.Waiting, Next: now.Add(time.Hour)},
	}
	if err := c.Done(ctx, b, entries); err != nil {
		t.Fatal(err)
	}
	for consumer, want := range map[string]int{"other": 0, "db": 2} {
		refs := []event.Ref{{Position: 1}, {Position: 2}, {Position: 3, Index: 1}}
		if n, err := j.Wake(ctx, consumer, refs); n != want || err != nil {
			t.Errorf("%s: %d woken, %v; want %d", consumer, n, err, want)
		}
	}
	due, err := c.Due(ctx, now, journal.Limit{})
	if err != nil || len(due.Entries) != 2 || due.Entries[0].State != journal.Waiting || due.Entries[1].State != journal.Dead {
		t.Errorf("due: %+v, %v", due, err)
	}
	if n, err := j.Wake(ctx, "db", nil); n != 0 || err != nil {
		t.Errorf("nothing: %d, %v", n, err)
	}
}
