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
}

// mapAll maps events, as many as a batch may hold of what they mean: the result
// is of the first ones. What one says whose identity has said something else
// before is a fault, and none of it lands: nothing would tell which of the two
// counts.
func (r *Runner) mapAll(ctx context.Context, events []eventOf) ([]meaning, error) {
	all := make([]meaning, 0, len(events))
	var compared []*event.Event
	var places []int
	var ids []journal.Receipt
	made := 0
	for i, x := range events {
		if made >= r.o.Made {
			break
		}
		all = append(all, meaning{})
		m := &all[i]
		m.out, m.fault = r.outcome(x.event)
		made += sizeOf(m.out.Changes)
		s := r.o.Sources[x.event.Delivery.Source]
		if m.fault != "" || s.Content == nil {
			continue
		}
		content := s.Content(x.event, m.out.Changes)
		if content == nil {
			continue
		}
		compared, places = append(compared, x.event), append(places, i)
		ids = append(ids, receipts(x.event, content)...)
	}
	if len(ids) == 0 {
		return all, nil
	}
	return all, r.persist(ctx, "look up identities", func(ctx context.Context) error {
		first, err := r.o.Journal.FirstReceipts(ctx, ids)
		if err != nil {
			return err
		}
		if len(first) != len(ids) {
			return fmt.Errorf("the journal gave %d first receipts for %d identities", len(first), len(ids))
		}
		for i, e := range compared {
			of, same := first[2*i].Ref, first[2*i+1].Ref
			if of.Compare(same) < 0 {
				all[places[i]] = meaning{fault: r.o.Sources[e.Delivery.Source].Conflict(e, of)}
			}
		}
		return nil
	})
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
