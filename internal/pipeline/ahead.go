package pipeline

import (
	"context"
	"fmt"
	"sync"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// ahead remembers the identities of events whose time lay too far ahead of their
// receipt. When such an event is received once more, perhaps when its time has
// come, it is judged by its first receipt, so that every order has one end.
type ahead struct {
	mu  sync.Mutex
	ids map[identity]struct{}
}

type identity struct{ source, id string }

// maxAhead bounds what ahead remembers.
const maxAhead = 50_000

func newAhead() *ahead { return &ahead{ids: map[identity]struct{}{}} }

// suspect tells whether an event is to be judged by its first receipt because of
// its time, and remembers it if so.
func (a *ahead) suspect(s *Source, e *event.Event) bool {
	if s.Ahead == nil || e.Time.IsZero() {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	id := identity{e.Delivery.Source, e.ID}
	if _, ok := a.ids[id]; ok {
		return true
	}
	if s.Ahead(e) == "" {
		return false
	}
	a.put(id)
	return true
}

func (a *ahead) put(id identity) {
	for old := range a.ids {
		if len(a.ids) < maxAhead {
			break
		}
		delete(a.ids, old)
	}
	a.ids[id] = struct{}{}
}

// recall learns the identities of before a restart: those of dead events.
func (a *ahead) recall(dead []journal.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range dead {
		if e.ID != "" {
			a.put(identity{e.Source, e.ID})
		}
	}
}

// firstReceipts sets the first receipt of the events that need it.
func (r *Runner) firstReceipts(ctx context.Context, events []eventOf) error {
	return r.persist(ctx, "look up first receipts", func(ctx context.Context) error {
		return setFirstReceipts(ctx, r.o.Journal, events)
	})
}

// receiver is what is asked for first receipts.
type receiver interface {
	FirstReceipts(ctx context.Context, ids []journal.Receipt) ([]journal.Receipt, error)
}

func setFirstReceipts(ctx context.Context, j receiver, events []eventOf) error {
	var ids []journal.Receipt
	var of []*event.Event
	for _, x := range events {
		if x.needs {
			e := x.event
			ids = append(ids, journal.Receipt{Source: e.Delivery.Source, ID: e.ID, Received: e.Delivery.Received, Ref: e.Ref()})
			of = append(of, e)
		}
	}
	first, err := firstReceipts(ctx, j, ids)
	for i, f := range first {
		of[i].FirstReceived = f.Received
	}
	return err
}

// firstReceipts asks for first receipts, if there are any to ask for.
func firstReceipts(ctx context.Context, j receiver, ids []journal.Receipt) ([]journal.Receipt, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	first, err := j.FirstReceipts(ctx, ids)
	if err == nil && len(first) != len(ids) {
		return nil, fmt.Errorf("the journal gave %d first receipts for %d identities", len(first), len(ids))
	}
	return first, err
}
