package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

func testPositions(t *testing.T, s *suite) {
	ds := s.append(5)
	if ds[0].Position <= 0 {
		t.Errorf("the first position is %d, want more than 0", ds[0].Position)
	}
	for i := range ds[1:] {
		if ds[i].Position >= ds[i+1].Position {
			t.Errorf("positions %v do not grow", positions(ds))
		}
	}
}

// odd are deliveries at the edges of what a delivery may be.
func odd() map[string]*event.Delivery {
	received := time.Date(2026, 10, 25, 1, 30, 0, 999999999, time.UTC)
	random := bytes.Repeat([]byte("\x00\xff\xfe\x01\x7f\r\n\x1f\x8b"), 50)
	return map[string]*event.Delivery{
		"nil body and header":   {Source: "a", Received: received},
		"empty body and header": {Source: "a", Received: received, Body: []byte{}, Header: http.Header{}},
		"nil and empty values":  {Source: "a", Received: received, Header: http.Header{"A": nil, "B": {}, "C": {""}}},
		"several values":        {Source: "a", Received: received, Header: http.Header{"Accept": {"x", "", "y"}, "": {"no name"}}},
		"bytes, not text":       {Source: "a", Path: "/\xff%00", Query: "q=\x80&;=%zz", Header: http.Header{"X": {"\xc3\x28"}}, Body: random, Received: received},
		"null byte":             {Source: "a\x00b", Path: "/\x00", Received: received, Body: []byte{0}},
		"big body":              {Source: "a", Received: received, Body: bytes.Repeat([]byte("0123456789abcdef"), 10<<20/16)},
		"long header":           {Source: "a", Received: received, Header: http.Header{"X": {strings.Repeat("v", 100_000)}}},
		"long ago":              {Source: "a", Received: time.Date(1, 2, 3, 4, 5, 6, 7, time.UTC)},
		"far ahead":             {Source: "a", Received: time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)},
		"zero time":             {Source: "a"},
	}
}

// exactly compares bytes as a whole, which is faster for large ones.
var exactly = cmp.Comparer(func(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) })

func testExactness(t *testing.T, s *suite) {
	want := odd()
	for name, d := range want {
		if err := s.j.Append(s.ctx(), d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for range 2 { // from memory, and from the disk
		for name, d := range want {
			got, err := s.j.Get(s.ctx(), d.Position)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if diff := cmp.Diff(d, got, exactly); diff != "" {
				t.Errorf("%s (-want +got):\n%.2000s", name, diff)
			}
		}
		got := s.scan(0)
		if len(got) != len(want) {
			t.Errorf("scan saw %d deliveries, want %d", len(got), len(want))
		}
		s.reopen()
	}
	c := s.consumer("rows")
	for _, b := range s.nextAll(c, len(want)) {
		for _, got := range b.Deliveries {
			for name, d := range want {
				if d.Position == got.Position && !cmp.Equal(d, got, exactly) {
					t.Errorf("%s: leased with a difference", name)
				}
			}
		}
	}
}

func testReopen(t *testing.T, s *suite) {
	want := s.append(3)
	s.reopen()
	want = append(want, s.append(3)...)
	s.reopen()
	same(t, "deliveries", s.scan(0), want)
}

func testConcurrentAppends(t *testing.T, s *suite) {
	const writers, each = 16, 25
	c := s.consumer("rows")
	all := make([][]*event.Delivery, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				d := delivery(w*each + i)
				if err := s.j.Append(s.ctx(), d); err != nil {
					t.Error("append:", err)
					return
				}
				all[w] = append(all[w], d)
			}
		})
	}
	want := make(map[event.Position]*event.Delivery)
	bs := s.nextAll(c, writers*each) // while they are appended
	wg.Wait()
	for w, ds := range all {
		for i, d := range ds {
			if want[d.Position] != nil {
				t.Errorf("two deliveries have position %d", d.Position)
			}
			want[d.Position] = d
			if i > 0 && ds[i-1].Position >= d.Position {
				t.Errorf("writer %d: positions %v do not grow", w, positions(ds))
			}
		}
	}
	last := event.Position(0)
	for _, b := range bs {
		for _, d := range b.Deliveries {
			if d.Position <= last {
				t.Errorf("leased #%d after #%d", d.Position, last)
			}
			last = d.Position
			if diff := cmp.Diff(want[d.Position], d); diff != "" {
				t.Errorf("#%d (-want +got):\n%s", d.Position, diff)
			}
		}
	}
	s.nothing(c)
}

func testAppendContext(t *testing.T, s *suite) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	d := delivery(0)
	if err := s.j.Append(ctx, d); !errors.Is(err, context.Canceled) {
		t.Errorf("append with an ended context: %v, want %v", err, context.Canceled)
	}
	if d.Position != 0 {
		t.Errorf("the delivery has position %d though it is not promised", d.Position)
	}
	s.append(1)
}

func testAppendCopies(t *testing.T, s *suite) {
	d, want := delivery(0), delivery(0)
	if err := s.j.Append(s.ctx(), d); err != nil {
		t.Fatal(err)
	}
	want.Position = d.Position
	clear(d.Body)
	d.Header.Set("Content-Type", "text/plain")
	d.Header.Del("X-Request")
	same(t, "delivery after the caller's was changed", s.scan(0), []*event.Delivery{want})
}

func testScan(t *testing.T, s *suite) {
	ds := s.append(4)
	same(t, "from the third", positions(s.scan(ds[2].Position)), positions(ds[2:]))
	same(t, "from behind the last", len(s.scan(ds[3].Position+1)), 0)
	enough := errors.New("enough")
	n := 0
	err := s.j.Scan(s.ctx(), 0, func(*event.Delivery) error {
		n++
		return enough
	})
	if !errors.Is(err, enough) || n != 1 {
		t.Errorf("scan saw %d deliveries and returned %v, want the error of its function after 1", n, err)
	}
}

func testGetNotFound(t *testing.T, s *suite) {
	last := s.append(1)[0].Position
	for _, p := range []event.Position{-1, 0, last + 1, 1 << 40} {
		if d, err := s.j.Get(s.ctx(), p); !errors.Is(err, journal.ErrNotFound) {
			t.Errorf("get #%d: %v, %v, want %v", p, d, err, journal.ErrNotFound)
		}
	}
}

func testStats(t *testing.T, s *suite) {
	st, err := s.j.Stats(s.ctx())
	if err != nil {
		t.Fatal(err)
	}
	st.Bytes = 0
	same(t, "of an empty journal", st, journal.Stats{})
	ds := s.append(5)
	c := s.consumer("rows")
	s.settle(c, 5, dead("rows", ds[1], 0), waiting("rows", ds[2], 0, start), waiting("rows", ds[2], 1, start))
	if st, err = s.j.Stats(s.ctx()); err != nil {
		t.Fatal(err)
	}
	if st.Bytes <= 0 {
		t.Errorf("the journal takes %d bytes", st.Bytes)
	}
	st.Bytes = 0
	same(t, "stats", st, journal.Stats{Deliveries: 5, First: ds[0].Position, Last: ds[4].Position, Waiting: 2, Dead: 1})
}

func testClose(t *testing.T, s *suite) {
	d := s.append(1)[0]
	c := s.consumer("rows")
	b := s.next(c, 1)
	blocked := make(chan error, 1)
	go func() {
		_, err := c.Next(context.Background(), journal.Limit{Deliveries: 1})
		blocked <- err
	}()
	if err := s.j.Healthy(); err != nil {
		t.Error("healthy:", err)
	}
	for i := range 2 {
		if err := s.j.Close(); err != nil {
			t.Errorf("close, time %d: %v", i+1, err)
		}
	}
	select {
	case err := <-blocked:
		if !errors.Is(err, journal.ErrClosed) {
			t.Errorf("a waiting next returns %v, want %v", err, journal.ErrClosed)
		}
	case <-time.After(patience):
		t.Error("next goes on waiting in a closed journal")
	}
	ctx := s.ctx()
	c.Release(b)
	for name, call := range map[string]func() error{
		"append":         func() error { return s.j.Append(ctx, delivery(1)) },
		"consumer":       func() error { return second(s.j.Consumer(ctx, "rows")) },
		"get":            func() error { return second(s.j.Get(ctx, d.Position)) },
		"scan":           func() error { return s.j.Scan(ctx, 0, func(*event.Delivery) error { return nil }) },
		"entries":        func() error { return second(s.j.Entries(ctx, journal.Filter{})) },
		"retry":          func() error { return second(s.j.Retry(ctx, journal.Filter{})) },
		"drop":           func() error { return second(s.j.Drop(ctx, journal.Filter{})) },
		"state":          func() error { return second(s.j.State(ctx, "rows", event.Ref{Position: d.Position})) },
		"first receipts": func() error { return second(s.j.FirstReceipts(ctx, []journal.Receipt{{Source: "a", ID: "b"}})) },
		"first fetched": func() error {
			return second(s.j.FirstFetched(ctx, []journal.Fetched{answer(d.Position, 0, "invitee", "{}")}))
		},
		"retain":  func() error { return second(s.j.Retain(ctx, journal.Retention{Age: 1}, start)) },
		"stats":   func() error { return second(s.j.Stats(ctx)) },
		"healthy": s.j.Healthy,
		"next":    func() error { return second(c.Next(ctx, journal.Limit{})) },
		"due":     func() error { return second(c.Due(ctx, start, journal.Limit{})) },
		"done":    func() error { return c.Done(ctx, b, nil) },
		"lag":     func() error { _, _, err := c.Lag(ctx); return err },
	} {
		if err := call(); !errors.Is(err, journal.ErrClosed) {
			t.Errorf("%s in a closed journal: %v, want %v", name, err, journal.ErrClosed)
		}
	}
	s.j = nil
	s.reopen()
	same(t, "after reopening", fmt.Sprint(positions(s.scan(0))), fmt.Sprint([]event.Position{d.Position}))
}

func second[T any](_ T, err error) error { return err }

// testAppendAll appends deliveries in their order, also beside others.
func testAppendAll(t *testing.T, s *suite) {
	a, ok := s.j.(journal.Appender)
	if !ok {
		return // it may be asked one by one
	}
	if err := a.AppendAll(s.ctx(), nil); err != nil {
		t.Fatal(err)
	}
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for range 20 {
				if err := s.j.Append(s.ctx(), &event.Delivery{Source: "other", Body: []byte("{}"), Received: start}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var list []*event.Delivery
	for i := range 500 {
		list = append(list, &event.Delivery{Source: "shop", Body: fmt.Append(nil, i), Received: start})
	}
	for len(list) > 0 {
		if err := a.AppendAll(s.ctx(), list[:50]); err != nil {
			t.Fatal(err)
		}
		for i, d := range list[:50] {
			if d.Position == 0 || i > 0 && d.Position <= list[i-1].Position {
				t.Fatalf("delivery %d is at %d", i, d.Position)
			}
			if got, err := s.j.Get(s.ctx(), d.Position); err != nil || string(got.Body) != string(d.Body) {
				t.Fatalf("%d: %v, %v", d.Position, got, err)
			}
		}
		list = list[50:]
	}
	others.Wait()
	n := 0
	if err := s.j.Scan(s.ctx(), 0, func(d *event.Delivery) error {
		if d.Source == "shop" {
			if string(d.Body) != fmt.Sprint(n) {
				t.Errorf("%s comes where %d should", d.Body, n)
			}
			n++
		}
		return nil
	}); err != nil || n != 500 {
		t.Errorf("%d deliveries, %v", n, err)
	}
}

// testProgress follows what a consumer is done with.
func testProgress(t *testing.T, s *suite) {
	progress := func(name string, want event.Position) {
		t.Helper()
		if got, err := s.j.Progress(s.ctx(), name); err != nil || got != want {
			t.Errorf("%s is at %d, want %d (%v)", name, got, want, err)
		}
	}
	list := s.append(3)
	progress("nobody", 0)
	c := s.consumer("rows")
	first, second := s.next(c, 1), s.next(c, 1)
	progress("rows", list[0].Position-1)
	s.done(c, second)
	progress("rows", list[0].Position-1)
	s.done(c, first)
	progress("rows", list[1].Position)
}
