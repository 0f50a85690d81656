package pipeline

import (
	"context"
	"fmt"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/journal"
)

// History tells what deliveries of a journal mean for a target, as a Runner
// takes them, but writes nothing.
type History struct {
	// Journal is asked for first receipts. One that is opened for reading records
	// nothing.
	Journal interface {
		FirstReceipts(ctx context.Context, ids []journal.Receipt) ([]journal.Receipt, error)
	}
	Sources map[string]Source
	Map     func(e *event.Event) mapping.Outcome
}

// Said is what one event says.
type Said struct {
	// Event is nil for a delivery that cannot be split.
	Event   *event.Event
	Outcome mapping.Outcome
	// Fault tells why nothing of it can land, "" if it can.
	Fault string
}

// Read gives what the events of a delivery say, in their order.
func (h *History) Read(ctx context.Context, d *event.Delivery) ([]Said, error) {
	s, ok := h.Sources[d.Source]
	if !ok {
		return []Said{{Fault: fmt.Sprintf("the config has no source %s", d.Source)}}, nil
	}
	split, err := events1(s, d)
	if err != nil {
		return []Said{{Fault: err.Error()}}, nil
	}
	var events []eventOf
	for _, e := range split.Events {
		events = append(events, eventOf{event: e, needs: e.ID != "" && (s.NeedsFirstReceipt || s.Ahead != nil)})
	}
	if err := setFirstReceipts(ctx, h.Journal, events); err != nil {
		return nil, err
	}
	all := make([]meaning, len(events))
	for i, x := range events {
		all[i] = meaningOf(h.Map, x.event)
	}
	if err := refuseConflicts(ctx, h.Journal, h.Sources, events, all); err != nil {
		return nil, err
	}
	out := make([]Said, len(events))
	for i, m := range all {
		out[i] = Said{Event: events[i].event, Outcome: m.out, Fault: m.fault}
	}
	for _, f := range split.Faults {
		out = append(out, Said{Event: f.Event, Fault: f.Reason})
	}
	return out, nil
}
