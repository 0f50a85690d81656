package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/enrich"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
)

// sweepEvery is how often what waits is compared with the journal.
const sweepEvery = time.Minute

// again tries events that are due: when their time has come, when a row that
// they are about or need was written, by whomever, or when it is asked for a
// pass.
func (r *Runner) again() {
	poll := time.NewTicker(r.o.Poll)
	defer poll.Stop()
	swept := r.o.Now()
	r.probe()
	if r.persist(r.working, "read what waits", r.resume) != nil {
		return
	}
	r.due()
	for {
		var asked chan struct{}
		woken, all := false, false
		select {
		case <-r.stopping:
			return
		case <-poll.C:
			all = true
		case asked = <-r.passes:
		case <-r.waits.wake:
			woken = true
		}
		if all {
			r.probe()
			r.waits.tick()
			if now := r.o.Now(); now.Sub(swept) >= sweepEvery {
				swept = now
				r.sweep(now)
			}
		}
		r.inquire(r.working, all)
		r.rouse()
		r.due()
		if asked != nil {
			close(asked)
		}
		if woken && !r.pause(r.o.Rest) {
			return
		}
	}
}

// probe asks the target whether it is there, until it has answered once.
func (r *Runner) probe() {
	now := r.o.Now()
	if r.health.isProven() || now.Before(r.nextProbe) {
		return
	}
	if r.o.Sink != nil {
		if err := r.o.Sink.Ping(r.working); err != nil {
			r.probes++
			r.nextProbe = now.Add(r.o.Backoff.Ceiling(r.probes))
			if r.probes == 1 {
				r.log.Line(slog.LevelWarn, "down", func() string {
					return fmt.Sprintf("down  %s: %v. Deliveries are received and kept meanwhile.", r.o.Target, err)
				})
			}
			r.health.down(err)
			return
		}
	}
	r.up()
}

// resume makes the events due that waited before a restart, so that it is known
// again what they need.
func (r *Runner) resume(ctx context.Context) error {
	if _, err := r.o.Journal.Retry(ctx, journal.Filter{Consumer: r.o.Target, State: journal.Waiting}); err != nil {
		return err
	}
	dead, err := r.o.Journal.Entries(ctx, journal.Filter{Consumer: r.o.Target, State: journal.Dead, Limit: maxWaits})
	if err != nil {
		return err
	}
	var refs []event.Ref
	for _, e := range dead {
		if e.On != "" { // a change of it waits
			refs = append(refs, e.Ref)
		}
	}
	return r.wake(ctx, refs)
}

// sweep forgets the events that somebody has dropped, and what they wanted to
// be read.
func (r *Runner) sweep(now time.Time) {
	if r.waits.read().Events == 0 {
		return
	}
	entries, err := r.o.Journal.Entries(r.working, journal.Filter{Consumer: r.o.Target})
	if err != nil {
		return // the next time will do
	}
	there := make(map[event.Ref]bool, len(entries))
	for _, e := range entries {
		there[e.Ref] = true
	}
	for _, ref := range r.waits.keep(there, now) {
		r.o.Fetcher.Forget(r.o.Target, ref)
	}
}

// inquire asks the sink for the rows that events wait for and that somebody else
// may have written: all of them, or those it has not yet been asked for. What it
// does not answer is asked again the next time.
func (r *Runner) inquire(ctx context.Context, all bool) {
	type list struct {
		table int
		ask   asking
	}
	keys := map[list][]merge.Key{}
	for _, q := range r.waits.questions(all) {
		keys[list{q.row.table, q.ask}] = append(keys[list{q.row.table, q.ask}], q.row.key)
	}
	for l, of := range keys {
		for some := range slices.Chunk(of, askAtOnce) {
			ask := r.knows
			if l.ask == askRow {
				ask = r.there
			}
			is, err := ask(ctx, r.o.Tables[l.table], some)
			if err != nil {
				break
			}
			if l.ask == askKnown {
				r.learnt(l.table, some, is)
			}
			for i, yes := range is {
				if yes {
					r.waits.answered(question{rowID{l.table, some[i]}, l.ask})
				}
			}
		}
	}
}

// wakeAtOnce is how many events are made due in one commit.
const wakeAtOnce = 5000

// rouse makes the events due that were woken.
func (r *Runner) rouse() {
	for refs := range slices.Chunk(r.waits.take(), wakeAtOnce) {
		err := r.persist(r.working, "wake events", func(ctx context.Context) error { return r.wake(ctx, refs) })
		if err != nil {
			return
		}
	}
}

// wake makes events due.
func (r *Runner) wake(ctx context.Context, refs []event.Ref) error {
	if w, ok := r.o.Journal.(journal.Waker); ok {
		_, err := w.Wake(ctx, r.o.Target, refs)
		return err
	}
	for _, ref := range refs {
		f := journal.Filter{Consumer: r.o.Target, State: journal.Waiting, Position: ref.Position, Index: &ref.Index}
		if _, err := r.o.Journal.Retry(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// note takes down what events wait for that did not land.
func (r *Runner) note(left []unsettled, circles [][]event.Ref, seq int64) {
	var waiting []event.Ref
	var wants []enrich.Want
	for i := range left {
		x := &left[i]
		wants = append(wants, x.wants...)
		if len(x.needs) == 0 && len(x.wants) == 0 {
			r.waits.settled(x.entry.Ref)
			continue
		}
		r.waits.put(&x.entry, &x.verdict)
		waiting = append(waiting, x.entry.Ref)
	}
	if waiting != nil {
		r.waits.missed(seq, waiting)
	}
	for _, refs := range circles {
		r.waits.together(refs, r.o.Now())
	}
	if wants != nil { // only now, so that each is an entry when it is woken
		r.o.Fetcher.Want(r.o.Target, r.stir, wants)
	}
}

// Waits tells of the events of the target that wait.
func (r *Runner) Waits() Waits { return r.waits.read() }
