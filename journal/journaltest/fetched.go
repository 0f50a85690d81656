package journaltest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// answer makes what was fetched for an event.
func answer(p event.Position, index int, name, body string) journal.Fetched {
	return journal.Fetched{Position: p, Fetched: event.Fetched{
		Index: index, Name: name, Status: 200, At: start.Add(time.Minute).Add(time.Nanosecond),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body),
	}}
}

func testFetched(t *testing.T, s *suite) {
	first := func(reads ...journal.Fetched) []journal.Fetched {
		t.Helper()
		got, err := s.j.FirstFetched(s.ctx(), reads)
		if err != nil {
			t.Fatal("first fetched:", err)
		}
		return got
	}
	ds := s.append(3)
	c := s.consumer("rows")
	s.settle(c, 3, waiting("rows", ds[0], 1, start))
	same(t, "of none", len(first()), 0)
	a := answer(ds[0].Position, 1, "invitee", `{"v":1}`)
	later := answer(ds[0].Position, 1, "invitee", `{"v":2}`)
	other := answer(ds[0].Position, 1, "event", `{"v":3}`)
	shared := answer(ds[2].Position, 0, "invitee", "")
	shared.Body = a.Body // the same answer for two events
	gone := answer(ds[1].Position, 0, "invitee", "")
	gone.Status, gone.Header, gone.Body = 404, nil, nil
	same(t, "the first", first(a), []journal.Fetched{a})
	same(t, "the first of several", first(later, gone, other, shared), []journal.Fetched{a, gone, other, shared})
	want := [][]event.Fetched{{other.Fetched, a.Fetched}, {gone.Fetched}, {shared.Fetched}}
	check := func(when string, ds []*event.Delivery) {
		t.Helper()
		var got [][]event.Fetched
		for _, d := range ds {
			got = append(got, d.Fetched)
		}
		same(t, when, got, want)
	}
	check("scanned", s.scan(0))
	same(t, "due", s.due(c, start, 10).Deliveries[0].Fetched, want[0])
	same(t, "got", s.get(ds[1].Position).Fetched, want[1])
	same(t, "leased by another", s.next(s.consumer("other"), 3).Deliveries[0].Fetched, want[0])
	s.reopen()
	check("scanned after reopening", s.scan(0))
	same(t, "the first after reopening", first(later), []journal.Fetched{a})
}

func testFetchedAppended(t *testing.T, s *suite) {
	d := delivery(0)
	d.Fetched = []event.Fetched{answer(0, 0, "invitee", `{"v":1}`).Fetched, answer(0, 1, "invitee", `{"v":2}`).Fetched}
	if err := s.j.Append(s.ctx(), d); err != nil {
		t.Fatal(err)
	}
	same(t, "leased", s.next(s.consumer("rows"), 1).Deliveries[0].Fetched, d.Fetched)
	got, err := s.j.FirstFetched(s.ctx(), []journal.Fetched{answer(d.Position, 1, "invitee", `{"v":3}`)})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the first", got[0].Fetched, d.Fetched[1])
	s.reopen()
	same(t, "got after reopening", s.get(d.Position).Fetched, d.Fetched)
}

// testFetchedLimit: the bytes of a lease are also those of what was fetched.
func testFetchedLimit(t *testing.T, s *suite) {
	const n, most = 8, 250_000
	ds := s.append(n)
	var reads []journal.Fetched
	var es []journal.Entry
	for _, d := range ds {
		r := answer(d.Position, 0, "invitee", "")
		r.Body = make([]byte, 100_000)
		reads, es = append(reads, r), append(es, waiting("rows", d, 0, start))
	}
	if _, err := s.j.FirstFetched(s.ctx(), reads); err != nil {
		t.Fatal(err)
	}
	c, other := s.consumer("rows"), s.consumer("other")
	for name, lease := range map[string]func(journal.Limit) (*journal.Batch, error){
		"next": func(l journal.Limit) (*journal.Batch, error) { return other.Next(s.ctx(), l) },
		"due":  func(l journal.Limit) (*journal.Batch, error) { return c.Due(s.ctx(), start, l) },
	} {
		if name == "due" {
			s.settle(c, n, es...)
		}
		var got []event.Position
		for len(got) < n {
			b, err := lease(journal.Limit{Deliveries: n, Bytes: most})
			if err != nil {
				t.Fatal(err)
			}
			if len(b.Deliveries) < 1 || len(b.Deliveries) > 2 {
				t.Fatalf("%s leased %d deliveries", name, len(b.Deliveries))
			}
			for _, d := range b.Deliveries {
				same(t, name+" with what was fetched", len(d.Fetched), 1)
			}
			got = append(got, positions(b.Deliveries)...)
		}
		same(t, name, got, positions(ds))
	}
}

func testRetainFetched(t *testing.T, s *suite) {
	body := make([]byte, 100_000)
	rnd := rand.NewChaCha8([32]byte{})
	rnd.Read(body)
	ds := s.append(4)
	var reads []journal.Fetched
	for _, d := range ds {
		r := answer(d.Position, 0, "invitee", "")
		r.Body = body
		if d == ds[0] {
			r.Body = bytes.Clone(body)
		}
		reads = append(reads, r)
	}
	if _, err := s.j.FirstFetched(s.ctx(), reads); err != nil {
		t.Fatal(err)
	}
	s.settle(s.consumer("rows"), 4, dead("rows", ds[2], 0))
	before := s.stats().Bytes
	s.retain(journal.Retention{Age: time.Hour}, ds[3].Received.Add(2*time.Hour))
	if _, err := s.j.Get(s.ctx(), ds[1].Position); !errors.Is(err, journal.ErrNotFound) {
		t.Fatalf("get of what was removed: %v", err)
	}
	same(t, "of the one that is dead", s.get(ds[2].Position).Fetched, []event.Fetched{reads[2].Fetched})
	if after := s.stats().Bytes; after > before-90_000 {
		t.Errorf("%d bytes before, %d after: what was fetched for removed deliveries is still there", before, after)
	}
	if _, err := s.j.Drop(s.ctx(), journal.Filter{}); err != nil {
		t.Fatal(err)
	}
	s.retain(journal.Retention{Age: time.Hour}, ds[3].Received.Add(2*time.Hour))
	if after := s.stats().Bytes; after > before-190_000 {
		t.Errorf("%d bytes before, %d after: what was fetched for removed deliveries is still there", before, after)
	}
}

func (s *suite) get(p event.Position) *event.Delivery {
	s.t.Helper()
	d, err := s.j.Get(s.ctx(), p)
	if err != nil {
		s.t.Fatal("get:", err)
	}
	return d
}

func (s *suite) stats() journal.Stats {
	s.t.Helper()
	st, err := s.j.Stats(s.ctx())
	if err != nil {
		s.t.Fatal("stats:", err)
	}
	return st
}
