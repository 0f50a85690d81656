package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/calm"
	"github.com/hookfold/hookfold/internal/lane"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal"
)

// Runner takes the events of a journal through one lane. One goroutine leases
// deliveries, one begins tries, each of which has a goroutine of its own, one
// records what became of them, and one looks for what a person has changed.
type Runner struct {
	o   Options
	log *calm.Logger

	mu     sync.Mutex
	s      *lane.Scheduler
	window []*batch // leased and not recorded, in order
	held   journal.Limit
	// unrecorded deliveries are through, and the journal does not know it yet.
	unrecorded int
	jobs       []job
	stats      pipeline.Stats
	health     pipeline.Health
	proven     bool
	downs      int // in a row
	// Of the marks: why the lane is paused, and the last edit that was seen.
	paused string
	edits  string
	reload bool // entries were changed by a person

	marks sync.Mutex // held while marks are read or written, and applied
	guard guard
	from  event.Position // up to which events are passed over

	begin, end sync.Once
	started    error
	consumer   journal.Consumer
	amender    journal.Amender
	stopping   chan struct{}
	taking     context.Context
	stopTaking context.CancelFunc
	working    context.Context // ends when tries are to be cut off
	abandon    context.CancelFunc
	recording  context.Context // ends when nothing can be recorded any more
	giveUp     context.CancelFunc
	loops      sync.WaitGroup
	tries      sync.WaitGroup
	// Each is signalled when there may be something to do.
	dispatch, room, record chan struct{}
	recorded               chan struct{} // closed when the recorder has ended
}

// batch is a lease on deliveries.
type batch struct {
	lease *journal.Batch
	items []*lane.Item // that are not through
	// entries are recorded with it: of events that are dead.
	entries []journal.Entry
	size    journal.Limit
	since   time.Time
}

// fresh is the data of an item whose delivery is leased.
type fresh struct {
	event *event.Event
	batch *batch
}

// New returns a runner; Start sets it going.
func New(o Options) *Runner {
	o = o.withDefaults()
	if o.Random == nil {
		o.Random = rand.Float64
	}
	r := &Runner{
		o: o, log: calm.New(o.Log, o.Now), s: lane.New(o.Lines), stopping: make(chan struct{}),
		dispatch: make(chan struct{}, 1), room: make(chan struct{}, 1), record: make(chan struct{}, 1), recorded: make(chan struct{}),
	}
	r.taking, r.stopTaking = context.WithCancel(context.Background())
	r.working, r.abandon = context.WithCancel(context.Background())
	r.recording, r.giveUp = context.WithCancel(context.Background())
	return r
}

// Start reads what was left, opens the consumer and begins to work; ctx bounds
// only the beginning. Calling it again gives the first call's result.
func (r *Runner) Start(ctx context.Context) error {
	r.begin.Do(func() {
		if r.started = r.start(ctx); r.started != nil {
			r.started = fmt.Errorf("start lane %s: %w", r.o.Name, r.started)
		}
	})
	return r.started
}

func (r *Runner) start(ctx context.Context) error {
	select {
	case <-r.stopping:
		return pipeline.ErrStopped
	default:
	}
	if err := r.recall(ctx); err != nil {
		return err
	}
	c, err := r.o.Journal.Consumer(ctx, r.o.Consumer)
	if err != nil {
		return err
	}
	var ok bool
	if r.amender, ok = c.(journal.Amender); !ok {
		return errors.Join(errors.New("this journal keeps no lanes"), c.Close())
	}
	r.consumer = c
	if err := r.restore(ctx); err != nil {
		r.consumer = nil
		return errors.Join(err, c.Close())
	}
	r.loops.Go(r.take)
	r.loops.Go(r.run)
	r.loops.Go(r.watch)
	go func() {
		defer close(r.recorded)
		r.keep()
	}()
	return nil
}

// Stop ends taking, finishes the tries under way, records them and closes the
// consumer. When ctx ends, what is under way is cut off: it is tried again after
// the next start, once it cannot be at work any more. It may be called again, and
// before Start.
func (r *Runner) Stop(ctx context.Context) error {
	r.begin.Do(func() { r.started = pipeline.ErrStopped })
	var err error
	r.end.Do(func() {
		close(r.stopping)
		r.stopTaking()
		defer context.AfterFunc(ctx, r.abandon)()
		defer context.AfterFunc(ctx, r.giveUp)()
		r.loops.Wait()
		r.tries.Wait()
		if r.consumer == nil {
			return
		}
		<-r.recorded
		clean := r.working.Err() == nil
		r.abandon()
		if clean {
			err = r.guard.clear(ctx, r)
		}
		r.giveUp()
		err = errors.Join(err, r.consumer.Close())
	})
	return err
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// longest is how long the runner sleeps at most: batches age without a signal.
const longest = time.Second / 4

// run begins tries as they may, until the runner stops.
func (r *Runner) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.dispatch:
		case <-timer.C:
		case <-r.stopping:
			return
		}
		now := r.o.Now()
		r.mu.Lock()
		for r.paused == "" && !r.reload {
			it := r.s.Begin(now)
			if it == nil {
				break
			}
			r.tries.Go(func() { r.try(it) })
		}
		r.spill(now)
		if len(r.s.Missing(1)) > 0 {
			signal(r.record)
		}
		wait := longest
		if at := r.s.Wake(now); !at.IsZero() {
			wait = min(max(at.Sub(now), 0), longest)
		}
		r.mu.Unlock()
		timer.Reset(wait)
	}
}

// persist calls f until it succeeds, with pauses that grow; it fails only when
// ctx ends or the journal is closed.
func (r *Runner) persist(ctx context.Context, what string, f func(context.Context) error) error {
	for n := 1; ; n++ {
		err := f(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil, errors.Is(err, journal.ErrClosed):
			return pipeline.ErrStopped
		}
		pause := r.o.Down.Later(n, r.o.Random())
		r.log.Line(slog.LevelWarn, "persist", func() string {
			return fmt.Sprintf("down  %s: cannot %s: %v. Try %d; the next in %s.", r.o.Consumer, what, err, n, pause.Round(time.Millisecond))
		})
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return pipeline.ErrStopped
		}
	}
}

// Lag tells how many deliveries are not done, and since when the oldest one
// waits.
func (r *Runner) Lag(ctx context.Context) (int64, time.Time, error) {
	if r.consumer == nil {
		return 0, time.Time{}, pipeline.ErrStopped
	}
	return r.consumer.Lag(ctx)
}

// Stats returns what became of events since Start.
func (r *Runner) Stats() pipeline.Stats { r.mu.Lock(); defer r.mu.Unlock(); return r.stats }

// Consumer is the name of the lane's consumer.
func (r *Runner) Consumer() string { return r.o.Consumer }

// Health tells how the other side is. A lane that is paused is not up.
func (r *Runner) Health() pipeline.Health {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.health
	if r.paused != "" && h.Error == "" {
		h.Error = "paused: " + r.paused
	}
	h.Up = r.proven && h.Error == ""
	return h
}

// State describes a lane.
type State struct {
	// Busy tries are under way. Stuck keys stand still because of their first
	// event; of these Dead wait for a person.
	Busy, Stuck, Dead int
	// Paused tells why nothing begins until a person resumes the lane.
	Paused string
}

// State describes the lane now.
func (r *Runner) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := State{Busy: r.s.Busy(), Paused: r.paused}
	st.Stuck, st.Dead = r.s.Count()
	return st
}
