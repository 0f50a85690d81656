package pipeline

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/enrich"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/journal"
)

// Fetcher is what a runner needs of an enrich.Fetcher: it reads what events need
// before they can be mapped, apart from the landing of other events.
type Fetcher interface {
	Want(target string, wake func([]event.Ref), wants []enrich.Want)
	Look(target string, ref event.Ref, fetch string) enrich.Standing
	Refuse(target string, ref event.Ref, fetch, reason string)
	Forget(target string, ref event.Ref, fetches ...string)
}

// noFetcher makes no reads: what is not in the journal is waited for.
type noFetcher struct{}

func (noFetcher) Want(string, func([]event.Ref), []enrich.Want)        {}
func (noFetcher) Look(string, event.Ref, string) enrich.Standing       { return enrich.Standing{} }
func (noFetcher) Refuse(string, event.Ref, string, string)             {}
func (noFetcher) Forget(target string, _ event.Ref, fetches ...string) {}

// leastTries is how often a read fails at least until it is given up, however
// long its event has waited.
const leastTries = 5

// answers takes in what was read for events: it is journaled, and then their
// mappings can speak. What is still to be read is waited for.
func (r *Runner) answers(ctx context.Context, events []eventOf, all []meaning) error {
	var reads []journal.Fetched
	var places []int
	for i := range all {
		for _, read := range all[i].out.Reads {
			f, v := r.answer(&events[i], read)
			if f == nil {
				all[i].waits = append(all[i].waits, v)
				continue
			}
			reads = append(reads, journal.Fetched{Position: events[i].event.Delivery.Position, Fetched: *f})
			places = append(places, i)
		}
	}
	if len(reads) == 0 {
		return nil
	}
	err := r.persist(ctx, "keep what was fetched", func(ctx context.Context) error {
		first, err := r.o.Journal.FirstFetched(ctx, reads)
		if err == nil && len(first) != len(reads) {
			err = fmt.Errorf("the journal gave %d answers for %d", len(first), len(reads))
		}
		if err == nil {
			reads = first
		}
		return err
	})
	if err != nil {
		return err
	}
	for i, f := range reads {
		e := events[places[i]].event
		if d := e.Delivery; d.FetchedFor(f.Index, f.Name) == nil {
			d.Fetched = append(slices.Clip(d.Fetched), f.Fetched)
		}
		r.o.Fetcher.Forget(r.o.Target, e.Ref(), f.Name)
	}
	for _, i := range slices.Compact(places) {
		m := &all[i]
		*m = meaningOf(r.o.Map, events[i].event)
		for _, read := range m.out.Reads {
			if _, v := r.answer(&events[i], read); v.state != "" {
				m.waits = append(m.waits, v)
			}
		}
	}
	return nil
}

// answer gives what was read for an event, or what becomes of the event.
func (r *Runner) answer(x *eventOf, read *mapping.Read) (*event.Fetched, verdict) {
	e := x.event
	now := r.o.Now()
	st := r.o.Fetcher.Look(r.o.Target, e.Ref(), read.Fetch.Name)
	if st.Answer != nil {
		f := *st.Answer
		f.Index, f.Name = e.Index, read.Fetch.Name
		ok, err := read.Enough(&f)
		switch {
		case ok:
			return &f, verdict{}
		case err != nil:
			return nil, r.giveUp(e, read, fmt.Sprintf("%s answered, but %v", address(read.URL), err))
		}
		r.o.Fetcher.Refuse(r.o.Target, e.Ref(), read.Fetch.Name, address(read.URL)+" answers with an older state than the event (until: "+read.Fetch.Config.Until.Text+" does not hold)")
		st = r.o.Fetcher.Look(r.o.Target, e.Ref(), read.Fetch.Name)
	}
	since := now
	if x.prior != nil {
		since = x.prior.Since
	}
	bad := st.Failure
	if bad != nil && (bad.Final || bad.Counts && bad.Tries >= leastTries && now.Sub(since) >= read.Fetch.Config.For) {
		f, ok, err := read.Instead()
		switch {
		case err != nil:
			return nil, r.giveUp(e, read, fmt.Sprintf("%s; and %v", bad.Reason, err))
		case ok:
			return f, verdict{}
		}
		reason := bad.Reason
		if !bad.Final {
			reason += fmt.Sprintf("; it was tried for %s", short(now.Sub(since)))
		}
		return nil, r.giveUp(e, read, reason)
	}
	return nil, r.awaits(e, read, bad, now)
}

// giveUp says that a read is given up.
func (r *Runner) giveUp(e *event.Event, read *mapping.Read, reason string) verdict {
	r.o.Fetcher.Forget(r.o.Target, e.Ref(), read.Fetch.Name)
	return verdict{
		state: journal.Dead, table: read.Table,
		reason: fmt.Sprintf("%s: fetch %s: %s. When it is put right run: hookfold dead retry %d", read.Table, read.Fetch.Name, reason, e.Delivery.Position),
	}
}

// awaits says that an event waits for a read.
func (r *Runner) awaits(e *event.Event, read *mapping.Read, bad *enrich.Failure, now time.Time) verdict {
	v := verdict{
		state: journal.Waiting, table: read.Table, on: "fetch " + read.Fetch.Name + " " + address(read.URL), tries: 1,
		// It is woken when there is something new, unless too many wait.
		next:  now.Add(r.o.Patience.Later(math.MaxInt, random())),
		wants: []enrich.Want{{Ref: e.Ref(), Fetch: read.Fetch.Name, Request: enrich.Request{URL: read.URL, Header: read.Header}}},
	}
	switch {
	case bad == nil:
		v.reason = fmt.Sprintf("%s: waits for fetch %s of %s", read.Table, read.Fetch.Name, address(read.URL))
	case bad.Paused:
		v.reason = fmt.Sprintf("%s: fetch %s is paused: %s", read.Table, read.Fetch.Name, bad.Reason)
	default:
		v.reason = fmt.Sprintf("%s: fetch %s: %s", read.Table, read.Fetch.Name, bad.Reason)
		if bad.Tries > 0 {
			v.reason += fmt.Sprintf(" (try %d)", bad.Tries)
		}
	}
	if bad != nil {
		// About then there is something new; until then nothing is to be looked at.
		v.next, v.tries = bad.Next.Add(time.Second), max(1, bad.Tries)
	}
	return v
}

// address is a URL as it is shown: whole, unless it is very long.
func address(url string) string {
	const most = 400
	if len(url) > most {
		return strings.ToValidUTF8(url[:most], "") + "…"
	}
	return url
}

// stir wakes events of whose reads there is something new.
func (r *Runner) stir(refs []event.Ref) {
	r.waits.mu.Lock()
	defer r.waits.mu.Unlock()
	for _, ref := range refs {
		r.waits.woken[ref] = struct{}{}
	}
	r.waits.signal()
}
