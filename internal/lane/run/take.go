package run

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/lane"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal"
)

// maxIdleBatch bounds a lease after leases in which there was nothing for the
// lane.
const maxIdleBatch = 256

// take leases deliveries while there is room, until the runner stops.
func (r *Runner) take() {
	limit := r.o.Batch
	for {
		if !r.waitForRoom() {
			return
		}
		var lease *journal.Batch
		err := r.persist(r.taking, "read the journal", func(ctx context.Context) (err error) {
			lease, err = r.consumer.Next(ctx, limit)
			return err
		})
		if err != nil {
			return
		}
		b, err := r.order(r.taking, lease)
		if err != nil {
			r.consumer.Release(lease)
			return
		}
		if limit.Deliveries = min(4*limit.Deliveries, max(maxIdleBatch, r.o.Batch.Deliveries)); len(b.items) > 0 {
			limit.Deliveries = r.o.Batch.Deliveries
		}
		r.add(b)
	}
}

// waitForRoom waits until more may be leased; false means that the runner stops.
func (r *Runner) waitForRoom() bool {
	for {
		r.mu.Lock()
		ok := r.hasRoom()
		r.mu.Unlock()
		if ok {
			return r.taking.Err() == nil
		}
		select {
		case <-r.room:
		case <-r.stopping:
			return false
		}
	}
}

// hasRoom tells whether more may be leased; r.mu is held.
func (r *Runner) hasRoom() bool {
	return !r.isFull() && r.unrecorded < r.o.Ahead.Deliveries && r.s.StoredLines() < r.o.Keys
}

// isFull tells whether as much is leased as may be; r.mu is held.
func (r *Runner) isFull() bool {
	return !(r.held.Deliveries < r.o.Ahead.Deliveries && r.held.Bytes < r.o.Ahead.Bytes)
}

func (r *Runner) add(b *batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.window = append(r.window, b)
	r.held.Deliveries += b.size.Deliveries
	r.held.Bytes += b.size.Bytes
	r.s.Add(r.o.Now(), b.items...)
	r.finish(b)
	signal(r.dispatch)
}

// order finds the items of a lease.
func (r *Runner) order(ctx context.Context, lease *journal.Batch) (*batch, error) {
	b := &batch{lease: lease, since: r.o.Now()}
	b.size.Deliveries = len(lease.Deliveries)
	var found []*lane.Item
	skipped := 0
	for _, d := range lease.Deliveries {
		b.size.Bytes += len(d.Body)
		items, entries, n := r.read(d)
		found, b.entries, skipped = append(found, items...), append(b.entries, entries...), skipped+n
	}
	err := r.persist(ctx, "record the first receipts", func(ctx context.Context) (err error) {
		b.items, err = r.firsts(ctx, found)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, it := range b.items {
		it.Data = &fresh{event: it.Data.(*event.Event), batch: b}
	}
	for _, e := range b.entries {
		r.log.Line(slog.LevelWarn, "dead", func() string { return pipeline.Line(e, e.Since) })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended("skipped", skipped)
	r.ended("repeated", len(found)-len(b.items))
	r.ended("dead", len(b.entries))
	return b, nil
}

// read finds the items of a delivery, whose data are their events, and the
// entries of those that are dead: of what would be the lane's, and cannot be told.
func (r *Runner) read(d *event.Delivery) (items []*lane.Item, entries []journal.Entry, skipped int) {
	if d.Source != r.o.Source || d.Position <= r.from {
		return nil, nil, 0
	}
	now := r.o.Now()
	dead := func(e journal.Entry, reason string) {
		e.Consumer, e.Source, e.State, e.Reason, e.Since, e.Attempts = r.o.Consumer, d.Source, journal.Dead, reason, now, 1
		entries = append(entries, e)
	}
	split, err := safely(func() (*mapping.Split, error) { return r.o.Events(d) })
	if err != nil {
		dead(journal.Entry{Ref: event.Ref{Position: d.Position, Index: event.WholeDelivery}}, err.Error())
		return nil, entries, 0
	}
	for _, f := range split.Faults {
		dead(journal.Entry{Ref: f.Event.Ref(), ID: f.Event.ID, Type: f.Event.Type}, f.Reason)
	}
	skipped = split.Skipped
	for _, e := range split.Events {
		var o mapping.Ordered
		var wanted bool
		var reason string
		if _, err := safely(func() (*mapping.Split, error) { o, wanted, reason = r.o.Order(e); return nil, nil }); err != nil {
			wanted, reason = true, err.Error()
		}
		switch {
		case reason != "":
			dead(journal.Entry{Ref: e.Ref(), ID: e.ID, Type: e.Type}, reason)
		case wanted:
			items = append(items, &lane.Item{
				Ref: e.Ref(), Key: o.Key, Version: string(o.Version), Received: d.Received,
				Source: d.Source, ID: e.ID, Type: e.Type, Data: e,
			})
		default:
			skipped++
		}
	}
	return items, entries, skipped
}

// safely calls f; a panic is an error, so that one delivery cannot end the
// process.
func safely(f func() (*mapping.Split, error)) (s *mapping.Split, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading it panicked: %v. This is a fault of Hookfold: please report it with the delivery", p)
		}
	}()
	return f()
}

// firsts leaves out the items whose identity has come before, in another
// delivery: what is done for it is done once.
func (r *Runner) firsts(ctx context.Context, items []*lane.Item) ([]*lane.Item, error) {
	if len(items) == 0 {
		return nil, nil
	}
	ids := make([]journal.Receipt, len(items))
	for i, it := range items {
		ids[i] = journal.Receipt{Source: it.Source, ID: it.ID, Received: it.Received, Ref: it.Ref}
	}
	firsts, err := r.o.Journal.FirstReceipts(ctx, ids)
	if err != nil {
		return nil, err
	}
	type twin struct {
		of event.Position
		id string
	}
	seen := map[twin]bool{} // its place in the delivery may have changed, with split:
	kept := make([]*lane.Item, 0, len(items))
	for i, it := range items {
		t := twin{it.Ref.Position, it.ID}
		if firsts[i].Ref.Position != it.Ref.Position || seen[t] {
			continue
		}
		seen[t] = true
		it.Data.(*event.Event).FirstReceived = firsts[i].Received
		kept = append(kept, it)
	}
	return kept, nil
}

// ended counts events that have ended; r.mu is held.
func (r *Runner) ended(state string, n int) {
	if n == 0 {
		return
	}
	switch state {
	case "settled":
		r.stats.Settled += int64(n)
	case "dead":
		r.stats.Died += int64(n)
	default:
		r.stats.Skipped += int64(n)
	}
	if r.o.Observer != nil {
		r.o.Observer.Ended(r.o.Name, state, n)
	}
}
