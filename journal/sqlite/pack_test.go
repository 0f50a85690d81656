package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// Deliveries that came one at a time take less room after packing, and are
// what they were, also for a consumer in the middle of them.
func TestPack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, Options{CacheBytes: -1})
	const n = 500
	want := realisticMany(n)
	start := time.Unix(1_800_000_000, 0).UTC()
	for i, d := range want {
		d.Received = start.Add(time.Duration(i) * 30 * time.Second) // 120 to the hour
		if err := j.Append(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	half, err := j.Consumer(t.Context(), "half")
	if err != nil {
		t.Fatal(err)
	}
	b, err := half.Next(t.Context(), journal.Limit{Deliveries: n/2 - 7})
	if err != nil {
		t.Fatal(err)
	}
	if err := half.Done(t.Context(), b, []journal.Entry{{Ref: event.Ref{Position: want[3].Position}, State: journal.Dead}}); err != nil {
		t.Fatal(err)
	}
	before, err := j.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := j.pack(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	after, err := j.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes a delivery before, %d after", before.Bytes/n, after.Bytes/n)
	if after.Bytes > before.Bytes*6/10 {
		t.Errorf("%d bytes are packed to %d", before.Bytes, after.Bytes)
	}
	before.Bytes, after.Bytes = 0, 0
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("stats (-before +after):\n%s", diff)
	}
	var got []*event.Delivery
	if err := j.Scan(t.Context(), 0, func(d *event.Delivery) error {
		got = append(got, d)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, exactly); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
	for _, limit := range []int{1, n} {
		b, err := half.Next(t.Context(), journal.Limit{Deliveries: limit})
		if err != nil {
			t.Fatal(err)
		}
		if b.Deliveries[0].Position != want[n/2-7].Position {
			t.Errorf("leased #%d, want #%d", b.Deliveries[0].Position, want[n/2-7].Position)
		}
		half.Release(b)
	}
	settleAll(t, half)
	// The age of a block is that of its newest: what is removed is at most an
	// hour short of what is old, and never more.
	now := want[n-1].Received.Add(time.Minute)
	removed, err := j.Retain(t.Context(), journal.Retention{Age: time.Hour}, now)
	if err != nil {
		t.Fatal(err)
	}
	old := int64(0)
	for _, d := range want {
		if d.Received.Before(now.Add(-time.Hour)) {
			old++
		}
	}
	if removed.Deliveries > old-1 || removed.Deliveries < old-1-121 {
		t.Errorf("%d deliveries of %d old ones were removed", removed.Deliveries, old)
	}
	if _, err := j.Get(t.Context(), want[3].Position); err != nil {
		t.Errorf("the dead one: %v", err)
	}
}

// What was removed from the middle of a block counts as done for a consumer
// that comes later, also after opening the journal again.
func TestHolesInABlock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, Options{CacheBytes: -1})
	const n = 10
	ds := realisticMany(n)
	for _, d := range ds {
		if err := j.Append(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	// A last one, from much later, closes the group of those before.
	late := realisticMany(1)[0]
	late.Received = ds[0].Received.Add(24 * time.Hour)
	if err := j.Append(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if err := j.pack(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, err := j.Consumer(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	settleAll(t, first,
		journal.Entry{Ref: event.Ref{Position: ds[2].Position}, State: journal.Dead},
		journal.Entry{Ref: event.Ref{Position: ds[5].Position}, State: journal.Dead})
	removed, err := j.Retain(t.Context(), journal.Retention{Age: time.Hour}, late.Received)
	if err != nil || removed.Deliveries != n-2 {
		t.Fatalf("%+v was removed, %v; want %d deliveries", removed, err, n-2)
	}
	b, err := j.file.readBlock(t.Context(), "oldest-block")
	if err != nil || len(b.frames) != n {
		t.Fatalf("the oldest block has %d places, %v; want one block with %d", len(b.frames), err, n)
	}
	second, err := j.Consumer(t.Context(), "second")
	if err != nil {
		t.Fatal(err)
	}
	var got []event.Position
	for range 3 {
		batch, err := second.Next(t.Context(), journal.Limit{Deliveries: 1})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, batch.Deliveries[0].Position)
		if err := second.Done(t.Context(), batch, nil); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]event.Position{ds[2].Position, ds[5].Position, late.Position}, got); diff != "" {
		t.Errorf("leased (-want +got):\n%s", diff)
	}
	for range 2 {
		if lag, _, err := second.Lag(t.Context()); lag != 0 || err != nil {
			t.Errorf("lag is %d, %v", lag, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j = openAt(t, path, Options{})
		if second, err = j.Consumer(t.Context(), "second"); err != nil {
			t.Fatal(err)
		}
	}
	if st, err := j.State(t.Context(), "second", event.Ref{Position: ds[7].Position}); st != journal.Settled || err != nil {
		t.Errorf("a removed delivery is %s, %v", st, err)
	}
}
