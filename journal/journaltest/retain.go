package journaltest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

func testReceipts(t *testing.T, s *suite) {
	ref := func(p event.Position) event.Ref { return event.Ref{Position: p, Index: 1} }
	ask := func(ids ...journal.Receipt) []journal.Receipt {
		t.Helper()
		got, err := s.j.FirstReceipts(s.ctx(), ids)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	same(t, "of none", len(ask()), 0)
	a := journal.Receipt{Source: "shop", ID: "evt_1", Received: start, Ref: ref(1)}
	b := journal.Receipt{Source: "shop", ID: "evt_2", Received: start.Add(time.Nanosecond), Ref: ref(2)}
	other := journal.Receipt{Source: "calendly", ID: "evt_1", Received: start.Add(time.Hour), Ref: ref(3)}
	glued := journal.Receipt{Source: "shope", ID: "vt_1", Received: start.Add(time.Minute), Ref: ref(9)}
	same(t, "first", ask(a), []journal.Receipt{a})
	again := journal.Receipt{Source: "shop", ID: "evt_1", Received: start.Add(-time.Hour), Ref: ref(7)}
	twice := journal.Receipt{Source: "shop", ID: "evt_2", Received: start.Add(time.Second), Ref: ref(8)}
	same(t, "mixed", ask(again, b, other, twice, glued), []journal.Receipt{a, b, other, b, glued})
	s.reopen()
	same(t, "after reopening", ask(twice, again), []journal.Receipt{b, a})
}

func (s *suite) retain(keep journal.Retention, now time.Time) journal.Removed {
	s.t.Helper()
	removed, err := s.j.Retain(s.ctx(), keep, now)
	if err != nil {
		s.t.Fatal("retain:", err)
	}
	return removed
}

func testRetainAge(t *testing.T, s *suite) {
	ds := s.append(10) // a second apart
	s.settle(s.consumer("rows"), 10)
	now := ds[6].Received.Add(time.Hour)
	same(t, "removed without limits", s.retain(journal.Retention{}, now).Deliveries, int64(0))
	removed := s.retain(journal.Retention{Age: time.Hour}, now)
	same(t, "removed", removed.Deliveries, int64(6))
	same(t, "left", positions(s.scan(0)), positions(ds[6:]))
	if _, err := s.j.Get(s.ctx(), ds[0].Position); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("get of what was removed: %v, want %v", err, journal.ErrNotFound)
	}
	s.state("rows", event.Ref{Position: ds[0].Position}, journal.Settled)
	st, err := s.j.Stats(s.ctx())
	if err != nil {
		t.Fatal(err)
	}
	st.Bytes = 0
	same(t, "stats", st, journal.Stats{Deliveries: 4, First: ds[6].Position, Last: ds[9].Position})
}

func testRetainSize(t *testing.T, s *suite) {
	const n, size = 40, 100_000
	random := rand.NewChaCha8([32]byte{1})
	for i := range n {
		d := delivery(i)
		d.Body = make([]byte, size)
		_, _ = random.Read(d.Body)
		if err := s.j.Append(s.ctx(), d); err != nil {
			t.Fatal(err)
		}
	}
	s.settle(s.consumer("rows"), n)
	removed := s.retain(journal.Retention{Bytes: n * size / 2}, start)
	if removed.Deliveries < n/2 || removed.Deliveries > n*3/4 {
		t.Errorf("%d of %d deliveries were removed to leave half the size", removed.Deliveries, n)
	}
	if removed.Bytes < size*n/4 {
		t.Errorf("%d bytes were removed, want about %d", removed.Bytes, size*n/2)
	}
	left := s.scan(0)
	same(t, "left", int64(len(left)), n-removed.Deliveries)
	if len(left) > 0 && !bytes.Contains([]byte(left[len(left)-1].Query), []byte("n=39")) {
		t.Error("the newest delivery was removed")
	}
	st, err := s.j.Stats(s.ctx())
	if err != nil {
		t.Fatal(err)
	}
	if st.Bytes > n*size/2 {
		t.Errorf("%d bytes are left, want at most %d", st.Bytes, n*size/2)
	}
}

func testRetainUnsettled(t *testing.T, s *suite) {
	ds := s.append(10)
	a, b := s.consumer("a"), s.consumer("b")
	s.settle(a, 10, dead("a", ds[1], 0), waiting("a", ds[4], 2, start))
	for range 6 {
		s.done(b, s.next(b, 1))
	}
	s.next(b, 1) // leased, not done
	later := start.AddDate(1, 0, 0)
	for range 2 {
		s.retain(journal.Retention{Age: time.Hour, Bytes: 1}, later)
		want := append([]event.Position{ds[1].Position, ds[4].Position}, positions(ds[6:])...)
		same(t, "left", positions(s.scan(0)), want)
	}
	got, err := s.j.Get(s.ctx(), ds[4].Position)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "a delivery with a waiting event", got, ds[4])
	s.reopen()
	a, b = s.consumer("a"), s.consumer("b")
	s.settle(b, 4)
	s.done(a, s.due(a, start, 10))
	if _, err := s.j.Drop(s.ctx(), journal.Filter{}); err != nil {
		t.Fatal(err)
	}
	s.retain(journal.Retention{Age: time.Hour}, later)
	same(t, "left in the end", len(s.scan(0)), 0)
}

func testRetainPositions(t *testing.T, s *suite) {
	ds := s.append(3)
	s.settle(s.consumer("rows"), 3)
	s.retain(journal.Retention{Age: time.Hour}, start.AddDate(1, 0, 0))
	st, err := s.j.Stats(s.ctx())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "deliveries", st.Deliveries, int64(0))
	s.reopen()
	d := s.append(1)[0]
	if d.Position <= ds[2].Position {
		t.Errorf("position %d was given again after #%d", d.Position, ds[2].Position)
	}
	c := s.consumer("rows")
	same(t, "leased", positions(s.next(c, 5).Deliveries), []event.Position{d.Position})
}

func testRetainNewConsumer(t *testing.T, s *suite) {
	ds := s.append(6)
	s.settle(s.consumer("a"), 6, dead("a", ds[0], 0), dead("a", ds[2], 0))
	s.retain(journal.Retention{Age: time.Hour}, ds[5].Received.Add(time.Hour))
	want := []event.Position{ds[0].Position, ds[2].Position, ds[5].Position}
	same(t, "left", positions(s.scan(0)), want)
	b := s.consumer("b")
	var got []event.Position
	for _, batch := range s.nextAll(b, 3) {
		got = append(got, positions(batch.Deliveries)...)
		s.done(b, batch)
	}
	same(t, "leased by a new consumer", got, want)
	n, _, err := b.Lag(s.ctx())
	if n != 0 || err != nil {
		t.Errorf("lag: %d, %v, want 0", n, err)
	}
}
