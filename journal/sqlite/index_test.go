package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// An old delivery that is kept, since an event of it is dead, does not keep what
// is known of those after it, which are gone.
func TestTheIndexForgetsBehindAnOldEntry(t *testing.T) {
	j, err := Open(filepath.Join(t.TempDir(), "j.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	c, err := j.Consumer(t.Context(), "rows")
	if err != nil {
		t.Fatal(err)
	}
	const n = 20
	start := time.Unix(1_800_000_000, 0).UTC()
	for i := range n {
		d := &event.Delivery{Source: "shop", Body: []byte("{}"), Received: start.Add(time.Duration(i) * time.Hour)}
		if err := j.Append(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		b, err := c.Next(t.Context(), journal.Limit{Deliveries: 1})
		if err != nil {
			t.Fatal(err)
		}
		var dead []journal.Entry
		if i == 0 || i == 5 {
			dead = []journal.Entry{{Ref: event.Ref{Position: d.Position}, State: journal.Dead}}
		}
		b.Touches = &journal.Touches{Plan: 7, Rows: []journal.Touch{{Row: 5, Position: d.Position}}}
		if err := c.Done(t.Context(), b, dead); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := j.Drop(t.Context(), journal.Filter{Position: 6}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := j.Retain(t.Context(), journal.Retention{Age: 5 * time.Hour}, start.Add(n*time.Hour)); err != nil {
		t.Fatal(err)
	}
	found, err := j.Find(t.Context(), "rows", 7, []uint32{5})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]event.Position{1, 16, 17, 18, 19, 20}, found.Positions); d != "" {
		t.Errorf("positions (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]journal.Range{{First: 1, Last: 1}, {First: 16, Last: 20}}, found.Indexed); d != "" {
		t.Errorf("indexed (-want +got):\n%s", d)
	}
	if refs, err := j.Dropped(t.Context(), "rows"); err != nil || len(refs) > 0 {
		t.Errorf("dropped of deliveries that are gone: %v, %v", refs, err)
	}
}
