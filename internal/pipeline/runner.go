package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/calm"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
)

// Runner takes the deliveries of a journal to one target. One goroutine leases
// deliveries, one maps the next batch while another writes the batch before it,
// and one records what became of them; apart from these, one tries events again
// that are due.
type Runner struct {
	o     Options
	rank  map[*merge.Table]int // place in o.Tables
	lives lives
	log   *calm.Logger

	health   health
	backlog  *backlog
	waits    *waits
	known    *knowns
	ties     *ties
	ahead    *ahead
	presence *presence
	skipped  skipped
	// How often the target was asked in vain whether it is there, and when it is
	// asked next.
	probes    int
	nextProbe time.Time
	// stubbornUntil is set when a batch failed though the target answered.
	stubbornUntil atomic.Int64
	inHand        atomic.Int64 // deliveries leased by Next and not yet counted

	mu    sync.Mutex
	stats Stats

	begin, end sync.Once
	started    error
	consumer   journal.Consumer
	stopping   chan struct{} // closed when Stop begins
	taking     context.Context
	stopTaking context.CancelFunc
	working    context.Context
	abandon    context.CancelFunc
	loops      sync.WaitGroup
	passes     chan chan struct{} // asks for a pass over what waits
}

// New returns a runner; Start sets it going.
func New(o Options) *Runner {
	o = o.withDefaults()
	r := &Runner{
		o: o, rank: make(map[*merge.Table]int, len(o.Tables)), log: calm.New(o.Log, o.Now),
		health: health{now: o.Now}, backlog: newBacklog(o.Ahead), waits: newWaits(), known: newKnowns(),
		ties: newTies(), ahead: newAhead(), presence: newPresence(),
		stopping: make(chan struct{}), passes: make(chan chan struct{}),
	}
	for i, t := range o.Tables {
		r.rank[t.Table] = i
	}
	r.lives.of = make([]known, len(o.Tables))
	r.taking, r.stopTaking = context.WithCancel(context.Background())
	r.working, r.abandon = context.WithCancel(context.Background())
	return r
}

// Start opens the consumer and begins to work; ctx bounds only the opening.
// Calling it again gives the first call's result.
func (r *Runner) Start(ctx context.Context) error {
	r.begin.Do(func() { r.started = r.start(ctx) })
	return r.started
}

func (r *Runner) start(ctx context.Context) error {
	select {
	case <-r.stopping:
		return ErrStopped
	default:
	}
	dead, err := r.o.Journal.Entries(ctx, journal.Filter{Consumer: r.o.Target, State: journal.Dead, Limit: maxWaits})
	if err != nil {
		return fmt.Errorf("start target %s: %w", r.o.Target, err)
	}
	r.ahead.recall(dead)
	if r.consumer, err = r.o.Journal.Consumer(ctx, r.o.Target); err != nil {
		return fmt.Errorf("start target %s: %w", r.o.Target, err)
	}
	mapped, done := make(chan *work), make(chan *leased, 16)
	r.loops.Go(r.lease)
	r.loops.Go(func() { r.take(mapped) })
	r.loops.Go(func() {
		defer close(done)
		for w := range mapped {
			r.landTaken(w, done)
		}
	})
	r.loops.Go(func() {
		for l := range done {
			r.record(l)
		}
	})
	r.loops.Go(r.again)
	return nil
}

// Stop ends taking, finishes the batches in hand, and closes the consumer. A
// batch whose target is down is given back to the journal. When ctx ends, what
// is in hand is given back too. It may be called again, and before Start.
func (r *Runner) Stop(ctx context.Context) error {
	r.begin.Do(func() { r.started = ErrStopped })
	var err error
	r.end.Do(func() {
		close(r.stopping)
		r.stopTaking()
		release := context.AfterFunc(ctx, r.abandon)
		r.loops.Wait()
		release()
		r.abandon()
		if r.consumer != nil {
			err = r.consumer.Close()
		}
	})
	return err
}

// landDue writes a batch of events that are tried again, and records what became
// of it.
func (r *Runner) landDue(w *work) {
	seq := r.waits.begin()
	defer r.waits.end(seq)
	if err := r.landAll(r.working, w); err != nil {
		r.consumer.Release(w.batch)
		return
	}
	circles := r.circles(w)
	entries := r.entries(w, r.o.Now(), random)
	w.batch.Touches = r.touches(w.touches)
	err := r.persist(r.working, "record what became of a batch", func(ctx context.Context) error {
		return r.consumer.Done(ctx, w.batch, entries)
	})
	if err != nil {
		r.consumer.Release(w.batch)
		return
	}
	left := make([]unsettled, len(entries))
	still := make(map[event.Ref]bool, len(entries))
	for i, e := range entries {
		left[i] = unsettled{e, w.items[w.unsettled[i]].verdict}
		still[e.Ref] = true
	}
	for _, e := range w.batch.Entries {
		if !still[e.Ref] {
			r.waits.settled(e.Ref)
			r.o.Fetcher.Forget(r.o.Target, e.Ref)
		}
	}
	r.note(left, circles, seq)
	r.tell(w, entries)
}

func random() float64 { return rand.Float64() }

// tell counts and logs a batch that is done.
func (r *Runner) tell(w *work, entries []journal.Entry) {
	now := r.o.Now()
	for i, e := range entries {
		level, kind := slog.LevelWarn, "dead"
		if e.State == journal.Waiting {
			level, kind = slog.LevelInfo, "wait"
		}
		if w.items[w.unsettled[i]].prior != nil && e.State == journal.Waiting {
			continue // told when it began to wait
		}
		r.log.Line(level, kind, func() string { return line(e, now, r.waits.crowd(&e)) })
	}
	r.mu.Lock()
	r.stats = r.stats.Plus(w.stats)
	r.mu.Unlock()
	if r.o.Observer != nil {
		r.o.Observer.Batch(r.o.Target, Report{Stats: w.stats, Skips: w.skips, Took: now.Sub(w.started)})
	}
}

// due tries what is due until nothing is.
func (r *Runner) due() {
	for r.taking.Err() == nil {
		var b *journal.Batch
		err := r.persist(r.working, "read the journal", func(ctx context.Context) error {
			var err error
			b, err = r.consumer.Due(ctx, r.o.Now(), r.o.Limit)
			return err
		})
		if err != nil || len(b.Entries) == 0 {
			return
		}
		w, err := r.prepareDue(r.working, b)
		if err != nil {
			r.consumer.Release(b)
			return
		}
		r.landDue(w)
	}
}

// Pass tries all waiting events of the target once, and returns when it is
// done.
func (r *Runner) Pass(ctx context.Context) error {
	n, err := r.o.Journal.Retry(ctx, journal.Filter{Consumer: r.o.Target, State: journal.Waiting})
	if err != nil || n == 0 {
		return err
	}
	done := make(chan struct{})
	select {
	case r.passes <- done:
	case <-r.stopping:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-r.stopping:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Lag tells how many deliveries are not yet done and counted in Stats, and since
// when the oldest one waits.
func (r *Runner) Lag(ctx context.Context) (int64, time.Time, error) {
	if r.consumer == nil {
		return 0, time.Time{}, ErrStopped
	}
	n, oldest, err := r.consumer.Lag(ctx)
	if n == 0 {
		n = r.inHand.Load() // done, but not yet counted
	}
	return n, oldest, err
}

// Stats returns what became of events since Start.
func (r *Runner) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

// Health tells how the target is.
func (r *Runner) Health() Health { return r.health.read() }

// Target is the name of the target.
func (r *Runner) Target() string { return r.o.Target }

// persist calls f until it succeeds, with pauses that grow; it fails only when
// the runner stops or the journal is closed.
func (r *Runner) persist(ctx context.Context, what string, f func(context.Context) error) error {
	for n := 1; ; n++ {
		err := f(ctx)
		switch {
		case err == nil:
			if n > 1 {
				r.up()
			}
			return nil
		case ctx.Err() != nil, errors.Is(err, ErrStopped), errors.Is(err, journal.ErrClosed):
			return ErrStopped
		}
		r.health.down(fmt.Errorf("cannot %s: %w", what, err))
		pause := r.o.Backoff.Pause(n, rand.Float64())
		r.log.Line(slog.LevelWarn, "persist", func() string {
			return fmt.Sprintf("down  %s: cannot %s: %v. Try %d; the next in %s.", r.o.Target, what, err, n, pause.Round(time.Millisecond))
		})
		if !r.pause(pause) {
			return ErrStopped
		}
	}
}

// pause waits; false means that the runner stops.
func (r *Runner) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.stopping:
		return false
	}
}
