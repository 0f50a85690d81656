package pipeline

import (
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// forgetter is a Fetcher that notes what is wanted no more.
type forgetter struct {
	noFetcher
	forgotten []event.Ref
}

func (f *forgetter) Forget(_ string, ref event.Ref, _ ...string) {
	f.forgotten = append(f.forgotten, ref)
}

// An event that a person drops while it waits for a read wants that read no
// more: else it would be made again and again, for nobody.
func TestWhatIsDroppedWantsNoRead(t *testing.T) {
	r := newRig(t)
	f := &forgetter{}
	r.options.Fetcher = f
	r.start()
	r.send(`{"id":"e1"}`, `{"id":"e2"}`)
	r.stop()
	c, err := r.journal.Consumer(t.Context(), "db")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	now := time.Now()
	entry := func(p event.Position) journal.Entry {
		return journal.Entry{Consumer: "db", Ref: event.Ref{Position: p}, Source: "shop", State: journal.Waiting, Since: now.Add(-time.Hour), Next: now.Add(time.Hour), Attempts: 1}
	}
	stays := entry(1)
	if err := c.(journal.Amender).Amend(t.Context(), journal.Amendment{New: []journal.Entry{stays}}); err != nil {
		t.Fatal(err)
	}
	run := New(r.options)
	dropped := entry(2)
	run.waits.put(&stays, &verdict{})
	run.waits.put(&dropped, &verdict{})
	f.forgotten = nil
	run.sweep(now)
	if len(f.forgotten) != 1 || f.forgotten[0] != dropped.Ref {
		t.Errorf("forgotten: %v, want %v", f.forgotten, dropped.Ref)
	}
}
