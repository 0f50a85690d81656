package journaltest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

func testNextOrder(t *testing.T, s *suite) {
	ds := s.append(10)
	c := s.consumer("rows")
	var got []event.Position
	for len(got) < len(ds) {
		b := s.next(c, 3)
		if n := len(b.Deliveries); n < 1 || n > 3 {
			t.Fatalf("next leased %d deliveries, want 1 to 3", n)
		}
		got = append(got, positions(b.Deliveries)...)
	}
	same(t, "order", got, positions(ds))
	s.nothing(c)

	few := s.consumer("few bytes")
	for _, d := range ds {
		b, err := few.Next(s.ctx(), journal.Limit{Deliveries: 10, Bytes: 1}) // each exceeds it alone
		if err != nil {
			t.Fatal(err)
		}
		same(t, "leased with a limit of one byte", positions(b.Deliveries), []event.Position{d.Position})
	}
}

func testNextWaits(t *testing.T, s *suite) {
	c := s.consumer("rows")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Next(ctx, journal.Limit{Deliveries: 1}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("next of an empty journal: %v, want %v", err, context.DeadlineExceeded)
	}
	leased := make(chan *journal.Batch)
	go func() {
		b, err := c.Next(s.ctx(), journal.Limit{Deliveries: 1})
		if err != nil {
			t.Error("next:", err)
		}
		leased <- b
	}()
	d := s.append(1)[0]
	if b := <-leased; b != nil {
		same(t, "leased", positions(b.Deliveries), positions([]*event.Delivery{d}))
	}
}

func testExclusive(t *testing.T, s *suite) {
	const n = 200
	s.append(n)
	c := s.consumer("rows")
	var mu sync.Mutex
	held := make(map[event.Position]bool)
	settled := make(map[event.Position]bool)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for round := 0; ; round++ {
				mu.Lock()
				all := len(settled) == n
				mu.Unlock()
				if all {
					return
				}
				ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
				b, err := c.Next(ctx, journal.Limit{Deliveries: 7, Bytes: 1 << 20})
				cancel()
				if errors.Is(err, context.DeadlineExceeded) {
					continue
				}
				if err != nil {
					t.Error("next:", err)
					return
				}
				giveBack := (round+w)%3 == 0
				mu.Lock()
				for _, d := range b.Deliveries {
					if held[d.Position] || settled[d.Position] {
						t.Errorf("#%d is leased though it is held or settled", d.Position)
					}
					held[d.Position] = true
				}
				mu.Unlock()
				mu.Lock()
				for _, d := range b.Deliveries {
					delete(held, d.Position)
					settled[d.Position] = !giveBack
					if giveBack {
						delete(settled, d.Position)
					}
				}
				mu.Unlock()
				if giveBack {
					c.Release(b)
				} else if err := c.Done(s.ctx(), b, nil); err != nil {
					t.Error("done:", err)
					return
				}
			}
		})
	}
	wg.Wait()
	s.nothing(c)
}

func testOutOfOrder(t *testing.T, s *suite) {
	ds := s.append(4)
	c := s.consumer("rows")
	var bs []*journal.Batch
	for range ds {
		bs = append(bs, s.next(c, 1))
	}
	s.done(c, bs[2])
	s.done(c, bs[1])
	s.state("rows", event.Ref{Position: ds[0].Position}, journal.Pending)
	s.state("rows", event.Ref{Position: ds[2].Position}, journal.Settled)
	s.reopen()
	// The first and the last are leased again; those between may be, by a store
	// that keeps no more than a position.
	c = s.consumer("rows")
	again := make(map[event.Position]bool)
	for !again[ds[3].Position] {
		for _, d := range s.next(c, 4).Deliveries {
			again[d.Position] = true
		}
	}
	if !again[ds[0].Position] {
		t.Error("what was not done is not leased again")
	}
	s.nothing(c)
}

func testDoneTwice(t *testing.T, s *suite) {
	ds := s.append(2)
	c, other := s.consumer("rows"), s.consumer("other")
	b := s.next(c, 1)
	if err := other.Done(s.ctx(), b, nil); err == nil {
		t.Error("a consumer is done with the batch of another")
	}
	s.done(c, b)
	if err := c.Done(s.ctx(), b, []journal.Entry{dead("rows", ds[0], 0)}); err == nil {
		t.Error("a batch is done twice")
	}
	c.Release(b)
	same(t, "leased after a release of what is done", positions(s.next(c, 1).Deliveries), positions(ds[1:]))
	same(t, "entries", len(s.entries(journal.Filter{})), 0)
}

func testDoneForeign(t *testing.T, s *suite) {
	ds := s.append(2)
	c := s.consumer("rows")
	b := s.next(c, 1)
	if err := c.Done(s.ctx(), b, []journal.Entry{dead("rows", ds[1], 0)}); err == nil {
		t.Error("an event of another batch is recorded")
	}
	settled := dead("rows", ds[0], 0)
	settled.State = journal.Settled
	if err := c.Done(s.ctx(), b, []journal.Entry{settled}); err == nil {
		t.Error("an unsettled event is recorded as settled")
	}
	s.done(c, b) // the lease goes on after an error
	s.state("rows", event.Ref{Position: ds[0].Position}, journal.Settled)
}

func testRelease(t *testing.T, s *suite) {
	ds := s.append(3)
	c := s.consumer("rows")
	first, second := s.next(c, 1), s.next(c, 1)
	c.Release(second)
	c.Release(first)
	c.Release(first)
	var got []event.Position
	for len(got) < 3 {
		got = append(got, positions(s.next(c, 3).Deliveries)...)
	}
	same(t, "leased after releases", got, positions(ds))

	// A release wakes one who waits.
	s.reopen()
	c = s.consumer("rows")
	bs := s.nextAll(c, 3)
	leased := make(chan *journal.Batch)
	go func() {
		b, err := c.Next(s.ctx(), journal.Limit{Deliveries: 3})
		if err != nil {
			t.Error("next:", err)
		}
		leased <- b
	}()
	for _, b := range bs {
		c.Release(b)
	}
	<-leased
}

func testLeaseAfterReopen(t *testing.T, s *suite) {
	ds := s.append(3)
	c := s.consumer("rows")
	s.done(c, s.next(c, 1))
	s.next(c, 1)
	s.reopen()
	c = s.consumer("rows")
	if _, err := s.j.Consumer(s.ctx(), "rows"); err == nil {
		t.Error("a consumer is opened twice")
	}
	s.next(c, 1)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Next(s.ctx(), journal.Limit{}); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("next of a closed consumer: %v, want %v", err, journal.ErrClosed)
	}
	c = s.consumer("rows")
	var got []event.Position
	for len(got) < 2 {
		got = append(got, positions(s.next(c, 3).Deliveries)...)
	}
	same(t, "leased again", got, positions(ds[1:]))
}

func testConsumers(t *testing.T, s *suite) {
	ds := s.append(3)
	a := s.consumer("a")
	s.settle(a, 3, dead("a", ds[0], 0))
	b := s.consumer("b") // begins at the beginning
	s.settle(b, 3)
	s.state("a", event.Ref{Position: ds[0].Position}, journal.Dead)
	s.state("b", event.Ref{Position: ds[0].Position}, journal.Settled)
	same(t, "due for b", len(s.due(b, start.Add(time.Hour), 10).Entries), 0)
}

func testLag(t *testing.T, s *suite) {
	c := s.consumer("rows")
	check := func(n int64, oldest time.Time) {
		t.Helper()
		gotN, got, err := c.Lag(s.ctx())
		if err != nil {
			t.Fatal(err)
		}
		if gotN != n || !got.Equal(oldest) {
			t.Errorf("lag is %d deliveries, oldest %v, want %d, %v", gotN, got, n, oldest)
		}
	}
	check(0, time.Time{})
	ds := s.append(3)
	check(3, ds[0].Received)
	a, b := s.next(c, 1), s.next(c, 1)
	s.done(c, b)
	check(2, ds[0].Received)
	s.done(c, a)
	check(1, ds[2].Received)
	s.done(c, s.next(c, 1))
	check(0, time.Time{})
}
