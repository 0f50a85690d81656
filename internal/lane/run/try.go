package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/lane"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal"
)

// errGone says that an event is not in its delivery any more.
var errGone = errors.New("its delivery does not hold it any more: has split: or when: of the source changed?")

// try gives an item to the other side once, and records what came of it.
func (r *Runner) try(it *lane.Item) {
	defer signal(r.dispatch)
	ctx := r.working
	e, err := r.event(ctx, it)
	if errors.Is(err, errGone) {
		r.ends(it, lane.Outcome{Kind: lane.Park, Reason: err.Error()})
		return
	}
	if err == nil && r.o.Settled != nil {
		if wait, err := r.unsettled(ctx, it); err != nil || wait != nil {
			if err != nil {
				wait = &lane.Outcome{Kind: lane.Hold, At: r.o.Now(), Reason: err.Error()}
			}
			r.ends(it, *wait)
			return
		}
	}
	if err == nil && r.o.Guard {
		err = r.guard.extend(ctx, r)
	}
	if err != nil { // the runner stops, or the journal cannot be read just now
		r.ends(it, lane.Outcome{Kind: lane.Hold, At: r.o.Now().Add(time.Second), Reason: err.Error()})
		return
	}
	began := r.o.Now()
	a := r.deliver(ctx, &lane.Message{Lane: r.o.Name, Key: it.Key, Attempt: it.Attempts + 1, Event: e})
	if !a.OK && ctx.Err() != nil { // cut off: what came of it is not known
		r.ends(it, lane.Outcome{Kind: lane.Hold, At: r.o.Now(), Reason: "the server was stopped while it was under way"})
		return
	}
	if r.o.Observer != nil {
		r.o.Observer.Tried(r.o.Name, result(a), r.o.Now().Sub(began))
	}
	if a.Gone {
		r.pause(ctx, a.Reason)
	}
	r.answered(it, a)
}

func (r *Runner) deliver(ctx context.Context, m *lane.Message) (a lane.Answer) {
	defer func() {
		if p := recover(); p != nil {
			a = lane.Answer{Reason: fmt.Sprintf("it panicked: %v. This is a fault of Hookfold: please report it with the delivery", p)}
		}
	}()
	return r.o.Deliver.Deliver(ctx, m)
}

func result(a lane.Answer) string {
	switch {
	case a.OK:
		return "done"
	case a.Gone:
		return "gone"
	case a.Down:
		return "down"
	case a.Busy:
		return "busy"
	}
	return "failed"
}

// event gives the event of an item; of a stored one it is read again.
func (r *Runner) event(ctx context.Context, it *lane.Item) (*event.Event, error) {
	r.mu.Lock()
	f, ok := it.Data.(*fresh)
	r.mu.Unlock()
	if ok {
		return f.event, nil
	}
	d, err := r.o.Journal.Get(ctx, it.Ref.Position)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, errGone
	}
	if err != nil {
		return nil, err
	}
	split, err := safely(func() (*mapping.Split, error) { return r.o.Events(d) })
	if err != nil {
		return nil, fmt.Errorf("%w (%v)", errGone, err)
	}
	for _, e := range split.Events {
		if e.Index == it.Ref.Index && e.ID != "" {
			return e, nil
		}
	}
	return nil, errGone
}

// unsettled tells what an item waits for, nil if its rows are settled.
func (r *Runner) unsettled(ctx context.Context, it *lane.Item) (*lane.Outcome, error) {
	ok, waits, err := r.o.Settled(ctx, it.Ref)
	if err != nil || ok {
		return nil, err
	}
	now := r.o.Now()
	pause := 5 * time.Millisecond
	if !it.HeldSince.IsZero() {
		pause = min(max(pause, now.Sub(it.HeldSince)/2), time.Second)
	}
	return &lane.Outcome{Kind: lane.Hold, At: now.Add(pause), Reason: waits}, nil
}

// answered records an answer.
func (r *Runner) answered(it *lane.Item, a lane.Answer) {
	now := r.o.Now()
	o, until := r.o.Policy.Judge(it, a, now, r.o.Random())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.HoldAll(until)
	switch {
	case a.Down:
		r.downs++
		if r.health.Tries == 0 {
			r.health.Since = now
		}
		r.health.Tries++
		r.health.Error = a.Reason
		r.s.HoldAll(now.Add(r.o.Down.Later(r.downs, r.o.Random())))
		r.log.Line(slog.LevelWarn, "down", func() string {
			return fmt.Sprintf("down  %s: %s; its events are kept (try %d)", r.o.Consumer, a.Reason, r.downs)
		})
	default:
		r.downs, r.health, r.proven = 0, pipeline.Health{}, true
	}
	r.end1(it, o, now)
	if o.Kind == lane.Again && it.Attempts == 1 {
		r.log.Line(slog.LevelInfo, "wait", func() string { return pipeline.Line(r.entry(it, now), now) })
	}
}

// ends tells the scheduler what became of an item.
func (r *Runner) ends(it *lane.Item, o lane.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end1(it, o, r.o.Now())
}

// end1 tells the scheduler what became of an item, and lets it be recorded; r.mu
// is held.
func (r *Runner) end1(it *lane.Item, o lane.Outcome, now time.Time) {
	before := it.Reason
	r.s.End(it, o, now)
	switch o.Kind {
	case lane.Done:
		r.ended("settled", 1)
	case lane.Die, lane.Park:
		r.ended("dead", 1)
		r.log.Line(slog.LevelWarn, "dead", func() string { return pipeline.Line(r.parked(it, now), now) })
	}
	f, leased := it.Data.(*fresh)
	switch {
	case !it.Stored && leased && (o.Kind == lane.Done || o.Kind == lane.Park):
		if o.Kind == lane.Park {
			f.batch.entries = append(f.batch.entries, r.parked(it, now))
		}
		f.batch.remove(it)
		r.finish(f.batch)
	case !it.Stored:
	case o.Kind == lane.Done:
		r.queue(job{amend: journal.Amendment{Settled: []event.Ref{it.Ref}}})
	case it.Skipped(), o.Kind == lane.Hold && it.Reason == before:
	case o.Kind == lane.Park:
		r.queue(job{amend: journal.Amendment{Changed: []journal.Entry{r.parked(it, now)}}})
	default:
		r.queue(job{amend: journal.Amendment{Changed: []journal.Entry{r.entry(it, now)}}})
	}
	signal(r.room)
}
