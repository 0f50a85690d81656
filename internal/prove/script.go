package prove

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// Receipts remembers where each identity was received first. It is safe for
// concurrent use.
type Receipts struct {
	mu    sync.Mutex
	first map[identity]journal.Receipt
	// known are those of before, which do not change.
	known map[identity]journal.Receipt
}

type identity struct{ source, id string }

// NewReceipts returns receipts of nothing.
func NewReceipts() *Receipts { return &Receipts{first: map[identity]journal.Receipt{}} }

// More returns receipts that know all that these know so far, and keep to
// themselves what they learn.
func (r *Receipts) More() *Receipts {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := maps.Clone(r.first)
	for id, x := range r.known {
		known[id] = x
	}
	return &Receipts{first: map[identity]journal.Receipt{}, known: known}
}

func (r *Receipts) look(ids []journal.Receipt) []journal.Receipt {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]journal.Receipt, len(ids))
	for i, x := range ids {
		id := identity{x.Source, x.ID}
		have, ok := r.known[id]
		if !ok {
			have, ok = r.first[id]
		}
		if !ok {
			r.first[id], have = x, x
		}
		out[i] = have
	}
	return out
}

// script is a journal in memory for one writer: it hands out a batch when the
// one before it is done, and keeps what is waiting or dead.
type script struct {
	name     string
	receipts *Receipts
	finished chan struct{} // closed when every batch is done

	mu      sync.Mutex
	queue   []Batch
	next    chan struct{} // has a token when the first batch may be taken
	crashed chan struct{} // closed when the writer is to end
	dead    bool          // nothing is recorded any more until the next life
	// Deliveries are kept to be tried again.
	deliveries map[event.Position]*event.Delivery
	entries    map[event.Ref]journal.Entry
	due        map[event.Ref]bool
}

func newScript(name string, batches []Batch, receipts *Receipts) *script {
	s := &script{
		name: name, receipts: receipts, queue: batches, finished: make(chan struct{}), next: make(chan struct{}, 1), crashed: make(chan struct{}),
		deliveries: map[event.Position]*event.Delivery{}, entries: map[event.Ref]journal.Entry{}, due: map[event.Ref]bool{},
	}
	if len(batches) == 0 {
		close(s.finished)
	} else {
		s.next <- struct{}{}
	}
	return s
}

// revive begins the next life of the writer, with the batch that was not done.
func (s *script) revive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead, s.crashed = false, make(chan struct{})
	s.next = make(chan struct{}, 1)
	s.next <- struct{}{}
	for ref := range s.entries { // a runner that starts tries again what waits
		s.due[ref] = true
	}
}

// left are the entries there are.
func (s *script) left() []journal.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.entries))
}

// Consumer is the journal itself: it has one.
func (s *script) Consumer(context.Context, string) (journal.Consumer, error) { return s, nil }

func (s *script) Entries(_ context.Context, f journal.Filter) ([]journal.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []journal.Entry
	for _, e := range s.entries {
		if f.State == "" || f.State == e.State {
			out = append(out, e)
		}
	}
	return out, nil
}

func (s *script) Retry(_ context.Context, f journal.Filter) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for ref, e := range s.entries {
		if (f.State == "" || f.State == e.State) && (f.Position == 0 || f.Position == ref.Position) && (f.Index == nil || *f.Index == ref.Index) {
			s.due[ref] = true
			n++
		}
	}
	return n, nil
}

// Wake is journal.Waker's.
func (s *script) Wake(_ context.Context, _ string, refs []event.Ref) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, ref := range refs {
		if _, ok := s.entries[ref]; ok {
			s.due[ref] = true
			n++
		}
	}
	return n, nil
}

func (s *script) FirstReceipts(_ context.Context, ids []journal.Receipt) ([]journal.Receipt, error) {
	return s.receipts.look(ids), nil
}

// FirstFetched gives the answers as they are: nothing is fetched in a trial but
// what its deliveries have brought along.
func (s *script) FirstFetched(_ context.Context, reads []journal.Fetched) ([]journal.Fetched, error) {
	return reads, nil
}

func (s *script) Next(ctx context.Context, _ journal.Limit) (*journal.Batch, error) {
	s.mu.Lock()
	next := s.next
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-next:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &journal.Batch{Deliveries: s.queue[0].Deliveries, Lease: s}
	for _, d := range b.Deliveries {
		s.deliveries[d.Position] = d
	}
	return b, nil
}

func (s *script) Due(context.Context, time.Time, journal.Limit) (*journal.Batch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &journal.Batch{}
	if s.dead {
		return b, nil
	}
	refs := slices.SortedFunc(maps.Keys(s.due), event.Ref.Compare)
	clear(s.due)
	seen := map[event.Position]bool{}
	for _, ref := range refs {
		b.Entries = append(b.Entries, s.entries[ref])
		if !seen[ref.Position] {
			seen[ref.Position] = true
			b.Deliveries = append(b.Deliveries, s.deliveries[ref.Position])
		}
	}
	return b, nil
}

func (s *script) Done(_ context.Context, b *journal.Batch, unsettled []journal.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := b.Lease != nil
	switch {
	case s.dead:
		return nil
	case first && len(s.queue) == 0:
		return errOfScript
	case first && s.queue[0].Crash:
		s.queue = slices.Clone(s.queue)
		s.queue[0].Crash, s.dead = false, true
		close(s.crashed)
		return nil
	}
	for _, e := range b.Entries {
		delete(s.entries, e.Ref)
	}
	for _, e := range unsettled {
		s.entries[e.Ref] = e
	}
	if !first {
		return nil
	}
	if s.queue = s.queue[1:]; len(s.queue) > 0 {
		s.next <- struct{}{}
	} else {
		close(s.finished)
	}
	return nil
}

func (s *script) Lag(context.Context) (int64, time.Time, error) { return 0, time.Time{}, nil }
func (s *script) Release(*journal.Batch)                        {}
func (s *script) Close() error                                  { return nil }
