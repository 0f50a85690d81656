package journaltest

import (
	"slices"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

func testWaiting(t *testing.T, s *suite) {
	d := s.append(1)[0]
	c := s.consumer("rows")
	first, second := waiting("rows", d, 0, start.Add(time.Minute)), waiting("rows", d, 3, start.Add(time.Hour))
	s.settle(c, 1, second, first)
	same(t, "entries", s.entries(journal.Filter{}), []journal.Entry{first, second})
	s.state("rows", first.Ref, journal.Waiting)
	s.state("rows", event.Ref{Position: d.Position, Index: 1}, journal.Settled)
	s.nothing(c)
	same(t, "due too early", len(s.due(c, start, 10).Entries), 0)

	b := s.due(c, start.Add(time.Minute), 10)
	same(t, "due", b.Entries, []journal.Entry{first})
	same(t, "its delivery", b.Deliveries, []*event.Delivery{d})
	same(t, "due while leased", len(s.due(c, start.Add(time.Minute), 10).Entries), 0)
	first.Attempts, first.Next, first.Reason = 2, start.Add(2*time.Minute), "still not there"
	s.done(c, b, first)
	same(t, "entries after a try", s.entries(journal.Filter{}), []journal.Entry{first, second})

	b = s.due(c, start.Add(2*time.Minute), 10)
	same(t, "due again", b.Entries, []journal.Entry{first})
	c.Release(b)
	b = s.due(c, start.Add(2*time.Hour), 10)
	same(t, "all due", b.Entries, []journal.Entry{first, second})
	s.done(c, b)
	same(t, "entries at the end", len(s.entries(journal.Filter{})), 0)
	s.state("rows", first.Ref, journal.Settled)
	b = s.due(c, start.Add(2*time.Hour), 10)
	s.done(c, b) // an empty batch
	c.Release(b)
}

func testDead(t *testing.T, s *suite) {
	ds := s.append(2)
	c := s.consumer("rows")
	e := dead("rows", ds[0], 0)
	s.settle(c, 2, e)
	s.state("rows", e.Ref, journal.Dead)
	same(t, "a dead entry is never due", len(s.due(c, start.AddDate(100, 0, 0), 10).Entries), 0)
	if n, err := s.j.Retry(s.ctx(), journal.Filter{State: journal.Dead}); n != 1 || err != nil {
		t.Fatalf("retry: %d, %v, want 1", n, err)
	}
	b := s.due(c, start, 10)
	same(t, "due after retry", len(b.Entries), 1)
	s.done(c, b, e) // dead again
	s.state("rows", e.Ref, journal.Dead)
	same(t, "due", len(s.due(c, start, 10).Entries), 0)
	if _, err := s.j.Retry(s.ctx(), journal.Filter{}); err != nil {
		t.Fatal(err)
	}
	s.done(c, s.due(c, start, 10))
	s.state("rows", e.Ref, journal.Settled)
	if n, err := s.j.Retry(s.ctx(), journal.Filter{}); n != 0 || err != nil {
		t.Errorf("retry of nothing: %d, %v, want 0", n, err)
	}
}

func testDrop(t *testing.T, s *suite) {
	ds := s.append(2)
	c := s.consumer("rows")
	a, b := dead("rows", ds[0], 0), waiting("rows", ds[1], 0, start)
	s.settle(c, 2, a, b)
	if n, err := s.j.Drop(s.ctx(), journal.Filter{Position: ds[0].Position}); n != 1 || err != nil {
		t.Fatalf("drop: %d, %v, want 1", n, err)
	}
	same(t, "entries", s.entries(journal.Filter{}), []journal.Entry{b})
	s.state("rows", a.Ref, journal.Settled)
	for consumer, want := range map[string][]event.Ref{"rows": {a.Ref}, "other": nil} {
		if got, err := s.j.Dropped(s.ctx(), consumer); err != nil || !slices.Equal(got, want) {
			t.Errorf("dropped of %s: %v, %v", consumer, got, err)
		}
	}
	s.reopen()
	c = s.consumer("rows")
	s.nothing(c)
	same(t, "due", s.due(c, start, 10).Entries, []journal.Entry{b})
}

func testLeasedEntryChanged(t *testing.T, s *suite) {
	ds := s.append(2)
	c := s.consumer("rows")
	dropped, retried := waiting("rows", ds[0], 0, start), waiting("rows", ds[1], 0, start)
	s.settle(c, 2, dropped, retried)
	b := s.due(c, start, 10)
	if _, err := s.j.Drop(s.ctx(), journal.Filter{Position: ds[0].Position}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.j.Retry(s.ctx(), journal.Filter{Position: ds[1].Position}); err != nil {
		t.Fatal(err)
	}
	dropped.Next, retried.Next = start.Add(time.Hour), start.Add(time.Hour)
	s.done(c, b, dropped, retried)
	b = s.due(c, start, 10)
	if len(b.Entries) != 1 || b.Entries[0].Ref != retried.Ref {
		t.Errorf("due is %v, want only %s: one was dropped while it was tried, and of the other a further try was asked for", b.Entries, retried.Ref)
	}
	same(t, "entries", len(s.entries(journal.Filter{})), 1)
}

func testWholeDelivery(t *testing.T, s *suite) {
	d := s.append(1)[0]
	c := s.consumer("rows")
	whole := dead("rows", d, event.WholeDelivery)
	s.settle(c, 1, whole)
	s.state("rows", whole.Ref, journal.Dead)
	s.state("rows", event.Ref{Position: d.Position, Index: 2}, journal.Dead)
	if _, err := s.j.Retry(s.ctx(), journal.Filter{}); err != nil {
		t.Fatal(err)
	}
	b := s.due(c, start, 10)
	part := waiting("rows", d, 1, start.Add(time.Minute))
	s.done(c, b, part)
	same(t, "entries", s.entries(journal.Filter{}), []journal.Entry{part})
}

func testDueLimit(t *testing.T, s *suite) {
	ds := s.append(5)
	c := s.consumer("rows")
	var es []journal.Entry
	for _, d := range ds {
		es = append(es, waiting("rows", d, 0, start), waiting("rows", d, 1, start))
	}
	s.settle(c, 5, es...)
	got := 0
	for got < len(es) {
		b := s.due(c, start, 2)
		if n := len(b.Deliveries); n < 1 || n > 2 {
			t.Fatalf("due leased %d deliveries, want 1 or 2", n)
		}
		if len(b.Entries) != 2*len(b.Deliveries) {
			t.Fatalf("due leased %d entries of %d deliveries", len(b.Entries), len(b.Deliveries))
		}
		got += len(b.Entries)
	}
	same(t, "due when all is leased", len(s.due(c, start, 2).Entries), 0)
	other := s.consumer("other")
	s.settle(other, 5, waiting("other", ds[0], 0, start), waiting("other", ds[1], 0, start))
	b, err := other.Due(s.ctx(), start, journal.Limit{Deliveries: 5, Bytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "due with a limit of one byte", positions(b.Deliveries), positions(ds[:1]))
	same(t, "and its entries", len(b.Entries), 1)
}

func testFilter(t *testing.T, s *suite) {
	ds := s.append(3)
	a, b := s.consumer("a"), s.consumer("b")
	e1, e2, e3 := dead("a", ds[0], 0), waiting("a", ds[1], 0, start), waiting("a", ds[1], 2, start)
	e4 := dead("b", ds[2], event.WholeDelivery)
	e2.Source, e3.Table = "calendly", "booking"
	s.settle(a, 3, e1, e2, e3)
	s.settle(b, 3, e4)
	two := 2
	for _, test := range []struct {
		name   string
		filter journal.Filter
		want   []journal.Entry
	}{
		{"all", journal.Filter{}, []journal.Entry{e1, e2, e3, e4}},
		{"consumer", journal.Filter{Consumer: "b"}, []journal.Entry{e4}},
		{"state", journal.Filter{State: journal.Dead}, []journal.Entry{e1, e4}},
		{"source", journal.Filter{Source: "calendly"}, []journal.Entry{e2}},
		{"table", journal.Filter{Table: "booking"}, []journal.Entry{e3}},
		{"position", journal.Filter{Position: ds[1].Position}, []journal.Entry{e2, e3}},
		{"event", journal.Filter{Position: ds[1].Position, Index: &two}, []journal.Entry{e3}},
		{"several", journal.Filter{Consumer: "a", State: journal.Waiting, Source: "shop"}, []journal.Entry{e3}},
		{"limit", journal.Filter{Limit: 2}, []journal.Entry{e1, e2}},
		{"none", journal.Filter{Source: "none"}, nil},
	} {
		same(t, test.name, s.entries(test.filter), test.want)
	}
}

func testEntriesReopen(t *testing.T, s *suite) {
	ds := s.append(2)
	c := s.consumer("rows")
	es := []journal.Entry{dead("rows", ds[0], 0), waiting("rows", ds[1], 0, start.Add(time.Minute))}
	s.settle(c, 2, es...)
	s.due(c, start.Add(time.Minute), 10) // a lease that ends with the process
	s.reopen()
	same(t, "entries", s.entries(journal.Filter{}), es)
	c = s.consumer("rows")
	s.nothing(c)
	same(t, "due", s.due(c, start.Add(time.Minute), 10).Entries, es[1:])
}

func testState(t *testing.T, s *suite) {
	d := s.append(1)[0]
	r := event.Ref{Position: d.Position}
	s.state("nobody", r, journal.Pending)
	c := s.consumer("rows")
	s.state("rows", r, journal.Pending)
	b := s.next(c, 1)
	s.state("rows", r, journal.Pending)
	s.done(c, b)
	s.state("rows", r, journal.Settled)
	if st, err := s.j.State(s.ctx(), "rows", event.Ref{Position: d.Position + 1}); err == nil {
		t.Errorf("an event that was never received is %s", st)
	}
}
