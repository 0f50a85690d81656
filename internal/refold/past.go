package refold

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// past is a journal of what another one retains, with one consumer that begins
// at its beginning. It keeps in memory what did not land.
type past struct {
	o Options

	mu     sync.Mutex
	only   []event.Position
	next   event.Position
	read   int64 // deliveries handed out
	leased int64 // of them, not yet done
	ended  bool  // everything was handed out
	failed error

	open map[event.Ref]*left
	more int
}

// left is an event that did not land.
type left struct {
	entry    journal.Entry
	delivery *event.Delivery
	leased   bool
}

func newPast(o Options) *past {
	return &past{o: o, only: o.Only, next: max(o.From, 1), open: map[event.Ref]*left{}}
}

func (p *past) failure() error { p.mu.Lock(); defer p.mu.Unlock(); return p.failed }
func (p *past) seen() int64    { p.mu.Lock(); defer p.mu.Unlock(); return p.read }

func (p *past) result() Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := Result{More: p.more}
	for _, x := range p.open {
		r.Unsettled = append(r.Unsettled, x.entry)
	}
	slices.SortFunc(r.Unsettled, func(a, b journal.Entry) int { return a.Ref.Compare(b.Ref) })
	return r
}

// Consumer is pipeline.Journal's.
func (p *past) Consumer(context.Context, string) (journal.Consumer, error) { return p, nil }

// FirstReceipts is pipeline.Journal's.
func (p *past) FirstReceipts(ctx context.Context, ids []journal.Receipt) ([]journal.Receipt, error) {
	return p.o.Journal.FirstReceipts(ctx, ids)
}

// FirstFetched is pipeline.Journal's. Nothing is fetched for the past: what was
// comes with its deliveries.
func (p *past) FirstFetched(_ context.Context, reads []journal.Fetched) ([]journal.Fetched, error) {
	return reads, nil
}

// Entries is pipeline.Journal's.
func (p *past) Entries(_ context.Context, f journal.Filter) ([]journal.Entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []journal.Entry
	for _, x := range p.open {
		if f.State == "" || f.State == x.entry.State {
			out = append(out, x.entry)
		}
	}
	return out, nil
}

// Retry is pipeline.Journal's.
func (p *past) Retry(_ context.Context, f journal.Filter) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for ref, x := range p.open {
		if (f.State == "" || f.State == x.entry.State) && (f.Position == 0 || f.Position == ref.Position) && (f.Index == nil || *f.Index == ref.Index) {
			x.entry.Next = time.Time{}
			x.entry.State = journal.Waiting
			n++
		}
	}
	return n, nil
}

// Wake is journal.Waker's.
func (p *past) Wake(_ context.Context, _ string, refs []event.Ref) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, ref := range refs {
		if x := p.open[ref]; x != nil {
			x.entry.Next = time.Time{}
			n++
		}
	}
	return n, nil
}

var errEnough = errors.New("enough")

// Next is journal.Consumer's. An error of the journal ends all: it is no use to
// try it again for ever where somebody waits for the end.
func (p *past) Next(ctx context.Context, limit journal.Limit) (*journal.Batch, error) {
	b, err := p.take(ctx, limit)
	if err != nil && ctx.Err() == nil {
		p.mu.Lock()
		p.failed = err
		p.mu.Unlock()
	}
	if err == nil && len(b.Deliveries) > 0 {
		return b, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (p *past) take(ctx context.Context, limit journal.Limit) (*journal.Batch, error) {
	b := &journal.Batch{}
	bytes := 0
	add := func(d *event.Delivery) (full bool) {
		b.Deliveries = append(b.Deliveries, d)
		bytes += len(d.Body)
		return len(b.Deliveries) >= limit.Deliveries || limit.Bytes > 0 && bytes >= limit.Bytes
	}
	full := false
	for len(p.only) > 0 && !full {
		d, err := p.o.Journal.Get(ctx, p.only[0])
		if err != nil && !errors.Is(err, journal.ErrNotFound) {
			return nil, err
		}
		p.only = p.only[1:]
		full = err == nil && add(d)
	}
	next := p.next
	if !full {
		err := p.o.Journal.Scan(ctx, p.next, func(d *event.Delivery) error {
			if d.Position > p.o.To {
				next = p.o.To + 1
				return errEnough
			}
			next = d.Position + 1
			if add(d) {
				return errEnough
			}
			return nil
		})
		switch {
		case err == nil:
			next = p.o.To + 1
		case !errors.Is(err, errEnough):
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = next
	p.ended = len(p.only) == 0 && next > p.o.To
	p.read += int64(len(b.Deliveries))
	p.leased += int64(len(b.Deliveries))
	return b, nil
}

// Due is journal.Consumer's.
func (p *past) Due(_ context.Context, now time.Time, limit journal.Limit) (*journal.Batch, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &journal.Batch{}
	for _, x := range p.open {
		if !x.leased && x.entry.State == journal.Waiting && !x.entry.Next.After(now) {
			x.leased = true
			b.Entries = append(b.Entries, x.entry)
		}
		if limit.Deliveries > 0 && len(b.Entries) >= limit.Deliveries {
			break
		}
	}
	slices.SortFunc(b.Entries, func(x, y journal.Entry) int { return x.Ref.Compare(y.Ref) })
	for _, e := range b.Entries {
		if n := len(b.Deliveries); n == 0 || b.Deliveries[n-1].Position != e.Ref.Position {
			b.Deliveries = append(b.Deliveries, p.open[e.Ref].delivery)
		}
	}
	return b, nil
}

// Done is journal.Consumer's.
func (p *past) Done(_ context.Context, b *journal.Batch, unsettled []journal.Entry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := map[event.Position]*event.Delivery{}
	for _, d := range b.Deliveries {
		of[d.Position] = d
	}
	for _, e := range b.Entries {
		delete(p.open, e.Ref)
	}
	for _, e := range unsettled {
		if len(p.open) >= MaxUnsettled {
			p.more++
			continue
		}
		p.open[e.Ref] = &left{entry: e, delivery: of[e.Ref.Position]}
	}
	if b.Entries == nil {
		p.leased -= int64(len(b.Deliveries))
	}
	return nil
}

// Release is journal.Consumer's. What is given back when the runner stops is not
// asked for again.
func (p *past) Release(b *journal.Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range b.Entries {
		if x := p.open[e.Ref]; x != nil {
			x.leased = false
		}
	}
}

// Lag is journal.Consumer's: what is in hand, and one more while there may be
// more to read.
func (p *past) Lag(context.Context) (int64, time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.leased
	if !p.ended {
		n++
	}
	return n, time.Time{}, nil
}

// Close is journal.Consumer's.
func (p *past) Close() error { return nil }
