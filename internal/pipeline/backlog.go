package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// leased is a batch of the journal, of which parts are landed apart.
type leased struct {
	batch *journal.Batch
	seq   int64 // of waits, when it was leased
	// left counts the deliveries that are not yet landed; what became of the
	// others is in unsettled and circles.
	left      int
	unsettled []unsettled
	circles   [][]event.Ref
	touches   []journal.Touch
}

// unsettled is an event that did not land, and what it needs.
type unsettled struct {
	entry journal.Entry
	verdict
}

// taken is a delivery of a lease.
type taken struct {
	delivery *event.Delivery
	of       *leased
}

// backlog holds leased deliveries until it is their turn: one of each source
// after the other, so that the flood of one source does not hold up what
// another one sends meanwhile. It sees as far as its bounds go.
type backlog struct {
	limit journal.Limit
	work  chan struct{} // has a token when there may be deliveries
	room  chan struct{} // has a token when there may be room for more

	mu     sync.Mutex
	queues map[string][]taken
	turns  []string // the sources that have deliveries, the next one first
	// What is leased and not yet done.
	deliveries, bytes int
}

func newBacklog(limit journal.Limit) *backlog {
	return &backlog{limit: limit, work: make(chan struct{}, 1), room: make(chan struct{}, 1), queues: map[string][]taken{}}
}

func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// add takes in a lease.
func (b *backlog) add(l *leased) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range l.batch.Deliveries {
		q := b.queues[d.Source]
		if len(q) == 0 {
			b.turns = append(b.turns, d.Source)
		}
		b.queues[d.Source] = append(q, taken{d, l})
		b.deliveries++
		b.bytes += len(d.Body)
	}
	token(b.work)
}

// next gives the next delivery.
func (b *backlog) next() (taken, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.turns) == 0 {
		token(b.room)
		return taken{}, false
	}
	source := b.turns[0]
	q := b.queues[source]
	t := q[0]
	q[0] = taken{}
	b.turns = b.turns[1:]
	if q = q[1:]; len(q) > 0 {
		b.queues[source] = q
		b.turns = append(b.turns, source)
	} else {
		delete(b.queues, source)
	}
	return t, true
}

// done lets go of a lease.
func (b *backlog) done(l *leased) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range l.batch.Deliveries {
		b.deliveries--
		b.bytes -= len(d.Body)
	}
	token(b.room)
}

// space tells how much more may be leased, and whether none waits for its turn.
func (b *backlog) space() (deliveries int, full, idle bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	deliveries = b.limit.Deliveries - b.deliveries
	return deliveries, deliveries <= 0 || b.bytes >= b.limit.Bytes, len(b.turns) == 0
}

// leaseAtMost bounds one lease: it is done as a whole, so that an event that
// waits is tried again no sooner than the rest of its lease has landed.
var leaseAtMost = journal.Limit{Deliveries: 1000, Bytes: 1 << 20}

// leasePause is how long deliveries may gather while others wait for their turn.
const leasePause = 10 * time.Millisecond

// lease fills the backlog until the runner stops.
func (r *Runner) lease() {
	for {
		space, full, idle := r.backlog.space()
		if full || !idle {
			pause := time.NewTimer(leasePause)
			select {
			case <-r.stopping:
				pause.Stop()
				return
			case <-r.backlog.room:
				pause.Stop()
				continue
			case <-pause.C:
			}
			if full {
				continue
			}
		}
		limit := journal.Limit{Deliveries: min(space, r.o.Limit.Deliveries, leaseAtMost.Deliveries), Bytes: min(r.o.Limit.Bytes, leaseAtMost.Bytes)}
		var b *journal.Batch
		err := r.persist(r.working, "read the journal", func(context.Context) error {
			var err error
			b, err = r.consumer.Next(r.taking, limit)
			if r.taking.Err() != nil {
				err = ErrStopped
			}
			return err
		})
		if err != nil {
			return // closing the consumer ends the lease that there may be
		}
		r.inHand.Add(int64(len(b.Deliveries)))
		r.backlog.add(&leased{batch: b, seq: r.waits.begin(), left: len(b.Deliveries)})
	}
}

// take maps batches, one ahead of the writing.
func (r *Runner) take(out chan<- *work) {
	defer close(out)
	for {
		first, ok := r.backlog.next()
		if !ok {
			select {
			case <-r.stopping:
				return
			case <-r.backlog.work:
			}
			continue
		}
		w, err := r.gather(r.working, first)
		if err != nil {
			return
		}
		select {
		case <-r.stopping:
			return
		case out <- w:
		}
	}
}

// gather maps deliveries that are there, as many as a batch may hold.
func (r *Runner) gather(ctx context.Context, t taken) (*work, error) {
	w := &work{started: r.o.Now(), skips: map[Skip]int64{}}
	var events []eventOf
	bytes := 0
	for ok := true; ok; {
		w.taken = append(w.taken, t)
		n := len(events)
		events = r.split(w, events, t.delivery, nil)
		bytes += unpacked(t.delivery, events[n:])
		if len(w.taken) >= r.o.Limit.Deliveries || bytes >= r.o.Limit.Bytes || len(events) >= r.o.Events {
			break
		}
		t, ok = r.backlog.next()
	}
	w.stats.Deliveries, w.stats.Events, w.rest = int64(len(w.taken)), int64(len(events)), events
	return w, r.complete(ctx, w)
}

// unpacked is about how many bytes a delivery and its events take: its body may
// have been packed.
func unpacked(d *event.Delivery, events []eventOf) int {
	whole, parts := len(d.Body), 0
	for _, x := range events {
		whole = max(whole, len(x.event.Envelope.Raw()))
		parts += len(x.event.Body.Raw())
	}
	return max(whole, parts)
}

// landTaken writes a batch of the backlog, and gives each lease of which it was
// the last part to be recorded.
func (r *Runner) landTaken(w *work, done chan<- *leased) {
	if err := r.landAll(r.working, w); err != nil {
		return // closing the consumer ends the leases
	}
	circles := r.circles(w)
	entries := r.entries(w, r.o.Now(), random)
	of := make(map[event.Position]*leased, len(w.taken))
	for _, t := range w.taken {
		of[t.delivery.Position] = t.of
	}
	for i, e := range entries {
		l := of[e.Ref.Position]
		l.unsettled = append(l.unsettled, unsettled{e, w.items[w.unsettled[i]].verdict})
	}
	for _, refs := range circles {
		l := of[refs[len(refs)-1].Position]
		l.circles = append(l.circles, refs)
	}
	for _, t := range w.touches {
		l := of[t.Position]
		l.touches = append(l.touches, t)
	}
	r.tell(w, entries)
	for _, t := range w.taken {
		if t.of.left--; t.of.left == 0 {
			done <- t.of
		}
	}
}

// record records what became of a lease.
func (r *Runner) record(l *leased) {
	entries := make([]journal.Entry, len(l.unsettled))
	for i := range l.unsettled {
		entries[i] = l.unsettled[i].entry
	}
	l.batch.Touches = r.touches(l.touches)
	err := r.persist(r.working, "record what became of a batch", func(ctx context.Context) error {
		return r.consumer.Done(ctx, l.batch, entries)
	})
	if err == nil {
		r.note(l.unsettled, l.circles, l.seq)
	}
	r.waits.end(l.seq)
	r.backlog.done(l)
	r.inHand.Add(-int64(len(l.batch.Deliveries)))
}
