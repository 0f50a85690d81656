package pipeline

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/enrich"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
)

// work is a leased batch and what its events mean.
type work struct {
	// batch is the lease of events that are tried again; deliveries of the
	// backlog are in taken.
	batch *journal.Batch
	taken []taken
	// rest are events that are not yet mapped.
	rest    []eventOf
	started time.Time
	items   []item
	// units are the changes that are ready to be written.
	units []unit
	stats Stats
	skips map[Skip]int64
	// touches are the rows that the changes are about.
	touches []journal.Touch
	// folded is what units fold to, a transaction each; nil if that is seen while
	// they land.
	folded []folded
	// retried tells that its events were tried before.
	retried bool
	// unsettled are the items that the entries stand for, set by entries.
	unsettled []int
}

// item is one event of a batch, or a delivery that could not be split.
type item struct {
	ref             event.Ref
	source, id, typ string
	// prior is the entry that is tried again, nil for a new event.
	prior *journal.Entry
	// What is known of its state so far: the worst of its changes'.
	verdict
	// more counts faults beyond those in the reason.
	more int
}

// verdict is what becomes of a change, and so of its event. The zero verdict is
// that it settles.
type verdict struct {
	state      journal.State
	reason, on string
	table, key string
	// needs are what may end a wait, of every change that waits; until is when
	// it ends in any case, if there is such a time.
	needs []need
	until time.Time
	// wants are reads that the event waits for, next is when something is to be
	// expected of them, and tries how often one has failed.
	wants []enrich.Want
	next  time.Time
	tries int
}

var severity = map[journal.State]int{journal.Waiting: 1, journal.Dead: 2}

// Of one event maxReasons are kept, and shownReasons are shown in a line.
const (
	maxReasons   = 20
	shownReasons = 3
)

// reasonSeparator stands between the reasons of one entry.
const reasonSeparator = "; "

// add joins a verdict into the item's: the worst state, with the reasons for
// it.
func (it *item) add(v verdict) {
	needs, until, on := append(it.needs, v.needs...), it.until, it.on
	wants, next, tries := append(it.wants, v.wants...), it.next, max(it.tries, v.tries)
	if next.IsZero() || !v.next.IsZero() && v.next.Before(next) {
		next = v.next
	}
	if until.IsZero() || !v.until.IsZero() && v.until.Before(until) {
		until = v.until
	}
	if on == "" && len(v.needs)+len(v.wants) > 0 {
		on = v.on
	}
	defer func() {
		it.needs, it.until = needs, until
		it.wants, it.next, it.tries = wants, next, tries
		if it.state == journal.Dead { // though a change of it may still land
			it.on = on
		}
	}()
	switch have, new := severity[it.state], severity[v.state]; {
	case new > have:
		it.verdict, it.more = v, 0
	case new < have || new == 0 || v.reason == it.reason:
	case it.more < maxReasons-1:
		it.reason += reasonSeparator + v.reason
		it.more++
	default:
		it.more++
	}
}

// unit is one change with the parents it names: the least that can be applied.
type unit struct {
	item   int // in work.items
	change *merge.Change
}

// eventOf is an event on its way to be mapped.
type eventOf struct {
	event *event.Event
	needs bool // its first receipt
	prior *journal.Entry
}

// prepareDue maps the events of a batch that are tried again. It fails only when
// the runner stops.
func (r *Runner) prepareDue(ctx context.Context, b *journal.Batch) (*work, error) {
	w := &work{batch: b, started: r.o.Now(), skips: map[Skip]int64{}, retried: true}
	w.rest = r.splitDue(w)
	return w, r.complete(ctx, w)
}

// complete maps, fits and folds the events of a batch, as many of the rest as
// may be held at once. It fails only when the runner stops.
func (r *Runner) complete(ctx context.Context, w *work) error {
	events := w.rest
	if err := r.firstReceipts(ctx, events); err != nil {
		return err
	}
	all, err := r.mapAll(ctx, events)
	if err != nil {
		return err
	}
	events, w.rest = events[:len(all)], events[len(all):]
	w.items = slices.Grow(w.items, len(events))
	w.units, w.folded = make([]unit, 0, len(events)), nil
	for i := range events {
		if err := r.addEvent(ctx, w, &events[i], &all[i]); err != nil {
			return err
		}
	}
	if !w.retried && !r.anyWaits(w.units) {
		w.folded = []folded{}
		for units := range slices.Chunk(w.units, r.o.Changes) {
			w.folded = append(w.folded, r.fold(units))
		}
	}
	r.seeTies(w)
	return nil
}

// split adds the events of a delivery; what cannot be an event becomes a dead
// item.
func (r *Runner) split(w *work, events []eventOf, d *event.Delivery, prior *journal.Entry) []eventOf {
	whole := func(reason string) {
		w.items = append(w.items, item{
			ref: event.Ref{Position: d.Position, Index: event.WholeDelivery}, source: d.Source, prior: prior,
			verdict: verdict{state: journal.Dead, reason: reason},
		})
	}
	s, ok := r.o.Sources[d.Source]
	if !ok {
		whole(fmt.Sprintf("the config has no source %s any more. Bring it back and run: hookfold dead retry %d", d.Source, d.Position))
		return events
	}
	split, err := events1(s, d)
	if err != nil {
		whole(err.Error())
		return events
	}
	if split.Skipped > 0 {
		w.stats.Skipped += int64(split.Skipped)
		w.skips[Skip{Source: d.Source}] += int64(split.Skipped)
	}
	for _, f := range split.Faults {
		it := itemOf(f.Event, prior)
		it.verdict = verdict{state: journal.Dead, reason: f.Reason}
		w.items = append(w.items, it)
	}
	for _, e := range split.Events {
		events = append(events, eventOf{event: e, needs: e.ID != "" && (s.NeedsFirstReceipt || r.ahead.suspect(&s, e)), prior: prior})
	}
	return events
}

// events1 splits a delivery; a panic is an error, so that one delivery cannot
// end the process.
func events1(s Source, d *event.Delivery) (split *mapping.Split, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("splitting it panicked: %v. This is a fault of Hookfold: please report it with the delivery", p)
		}
	}()
	return s.Events(d)
}

func itemOf(e *event.Event, prior *journal.Entry) item {
	return item{ref: e.Ref(), source: e.Delivery.Source, id: e.ID, typ: e.Type, prior: prior}
}

// splitDue picks the events of the entries of a batch that is tried again.
func (r *Runner) splitDue(w *work) []eventOf {
	entries := map[event.Position][]*journal.Entry{}
	for i := range w.batch.Entries {
		e := &w.batch.Entries[i]
		entries[e.Ref.Position] = append(entries[e.Ref.Position], e)
	}
	var events []eventOf
	for _, d := range w.batch.Deliveries {
		of := entries[d.Position]
		if i := slices.IndexFunc(of, func(e *journal.Entry) bool { return e.Ref.Index == event.WholeDelivery }); i >= 0 {
			events = r.split(w, events, d, of[i])
			continue
		}
		one := &work{skips: map[Skip]int64{}}
		at := map[int]eventOf{}
		for _, x := range r.split(one, nil, d, nil) {
			at[x.event.Index] = x
		}
		for _, e := range of {
			if x, ok := at[e.Ref.Index]; ok {
				events = append(events, eventOf{event: x.event, needs: x.needs, prior: e})
				continue
			}
			it := item{ref: e.Ref, source: e.Source, id: e.ID, typ: e.Type, prior: e}
			it.verdict = verdict{state: journal.Dead, reason: "its delivery does not hold it any more: has split: or when: of the source changed?"}
			for _, x := range one.items { // why, if it is known
				if x.ref == e.Ref || x.ref.Index == event.WholeDelivery {
					it.verdict = x.verdict
				}
			}
			w.items = append(w.items, it)
		}
	}
	return events
}

// addEvent adds the units of an event.
func (r *Runner) addEvent(ctx context.Context, w *work, x *eventOf, m *meaning) error {
	out, fault := m.out, m.fault
	if fault == "" && !out.Wanted && x.prior == nil {
		w.stats.Skipped++
		s := Skip{Source: x.event.Delivery.Source, Type: x.event.Type}
		w.skips[s]++
		r.tellSkip(s, x.event.Ref())
		return nil
	}
	it := itemOf(x.event, x.prior)
	n := len(w.items)
	w.stats.Replaced += int64(out.Replaced)
	w.stats.Ignored += int64(out.Ignored)
	if fault != "" {
		it.add(verdict{state: journal.Dead, reason: fault})
	}
	for _, f := range out.Faults {
		it.add(verdict{state: journal.Dead, table: f.Table, reason: r.presence.tell(faultReason(f), &f, x.event)})
	}
	for _, v := range m.waits {
		it.add(v)
	}
	r.presence.count(out.Changes, x.event)
	for _, c := range out.Changes {
		r.touch(w, it.ref.Position, c)
		v, err := r.fits(ctx, w, c)
		if err != nil {
			return err
		}
		if v.state != "" {
			it.add(v)
			continue
		}
		w.units = append(w.units, unit{item: n, change: c})
	}
	w.items = append(w.items, it)
	return nil
}
