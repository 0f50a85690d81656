package pipeline

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/journal"
)

// meaning is what an event means.
type meaning struct {
	out   mapping.Outcome
	fault string
	// waits are what becomes of it for want of what has to be read first.
	waits []verdict
}

// mapAll maps events, as many as a batch may hold of what they mean: the result
// is of the first ones.
func (r *Runner) mapAll(ctx context.Context, events []eventOf) ([]meaning, error) {
	all := make([]meaning, 0, len(events))
	reads := false
	made := 0
	for _, x := range events {
		if made >= r.o.Made {
			break
		}
		m := meaningOf(r.o.Map, x.event)
		made += sizeOf(m.out.Changes)
		for _, read := range m.out.Reads {
			reads = true
			if a := r.o.Fetcher.Look(r.o.Target, x.event.Ref(), read.Fetch.Name).Answer; a != nil {
				made += len(a.Body)
			}
		}
		all = append(all, m)
	}
	if reads {
		if err := r.answers(ctx, events, all); err != nil {
			return nil, err
		}
	}
	return all, r.persist(ctx, "look up identities", func(ctx context.Context) error {
		return refuseConflicts(ctx, r.o.Journal, r.o.Sources, events[:len(all)], all)
	})
}

// meaningOf maps an event. A panic makes this event dead and no other.
func meaningOf(mapEvent func(*event.Event) mapping.Outcome, e *event.Event) (m meaning) {
	defer func() {
		if p := recover(); p != nil {
			m = meaning{fault: fmt.Sprintf("mapping it panicked: %v. This is a fault of Hookfold: please report it with the event", p)}
		}
	}()
	return meaning{out: mapEvent(e)}
}

// refuseConflicts finds the events whose identity has said something else
// before. That is a fault, and nothing that such an event means lands: nothing
// would tell which of the two counts.
func refuseConflicts(ctx context.Context, j receiver, sources map[string]Source, events []eventOf, all []meaning) error {
	var places []int
	var ids []journal.Receipt
	for i := range all {
		e, m := events[i].event, &all[i]
		s := sources[e.Delivery.Source]
		if m.fault != "" || s.Content == nil {
			continue
		}
		if content := s.Content(e, m.out.Changes); content != nil {
			places, ids = append(places, i), append(ids, receipts(e, content)...)
		}
	}
	first, err := firstReceipts(ctx, j, ids)
	if err != nil || len(first) == 0 {
		return err
	}
	for i, at := range places {
		of, same := first[2*i].Ref, first[2*i+1].Ref
		if e := events[at].event; of.Compare(same) < 0 {
			all[at] = meaning{fault: sources[e.Delivery.Source].Conflict(e, of)}
		}
	}
	return nil
}

// receipts are two identities, made so that no source has them: the event's, and
// the event's with these contents. If the former was received before the latter,
// it had other contents then.
func receipts(e *event.Event, content []byte) []journal.Receipt {
	at := journal.Receipt{Source: e.Delivery.Source, Received: e.Delivery.Received, Ref: e.Ref()}
	of, same := at, at
	of.ID = "\x01of " + e.ID
	same.ID = "\x01with " + hex.EncodeToString(content) + " " + e.ID
	return []journal.Receipt{of, same}
}
