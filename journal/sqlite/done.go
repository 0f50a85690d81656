package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// Done implements journal.Consumer. On an error the lease goes on: call Done
// again, or Release. Once the write is on its way Done waits for its outcome
// even if the context ends.
func (c *consumer) Done(ctx context.Context, b *journal.Batch, unsettled []journal.Entry) error {
	l, err := c.finish(b)
	if err != nil || l == nil {
		return err
	}
	if err := l.check(unsettled, b.Touches); err != nil {
		c.unfinish(l)
		return err
	}
	err = c.j.do(ctx, func(ctx context.Context, s *store) error {
		if err := s.saveTouches(ctx, c.name, l, b.Touches); err != nil {
			return err
		}
		if l.items == nil {
			return c.saveRetried(ctx, s, l, unsettled)
		}
		return c.saveDone(ctx, s, l, unsettled)
	})
	if err != nil {
		c.unfinish(l)
		return fmt.Errorf("consumer %s: record what became of a batch: %w", c.name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.items != nil {
		for _, sp := range spansOf(l.positions) {
			c.done.add(sp)
		}
	}
	c.endLease(l)
	return nil
}

// finish takes a lease that is to be ended by Done; nil for an empty batch.
func (c *consumer) finish(b *journal.Batch) (*lease, error) {
	l, ok := b.Lease.(*lease)
	if !ok || l.of != c {
		return nil, fmt.Errorf("consumer %s: the batch is not one of its own", c.name)
	}
	if l.items == nil && l.entries == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, journal.ErrClosed
	}
	if _, held := c.leases[l]; !held || l.finishing {
		return nil, fmt.Errorf("consumer %s: the lease of the batch has ended", c.name)
	}
	l.finishing = true
	l.known = c.done.clone()
	return l, nil
}

func (c *consumer) unfinish(l *lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.finishing = false
}

// check refuses entries and touches that are not of the batch.
func (l *lease) check(unsettled []journal.Entry, touches *journal.Touches) error {
	if touches != nil {
		for _, t := range touches.Rows {
			if _, ok := slices.BinarySearch(l.positions, t.Position); !ok {
				return fmt.Errorf("consumer %s: delivery #%d is not in the batch", l.of.name, t.Position)
			}
		}
	}
	for _, e := range unsettled {
		if _, ok := slices.BinarySearch(l.positions, e.Ref.Position); !ok {
			return fmt.Errorf("consumer %s: event %s is not in the batch", l.of.name, e.Ref)
		}
		if e.State != journal.Waiting && e.State != journal.Dead {
			return fmt.Errorf("consumer %s: event %s is unsettled, so it must be %s or %s, not %q", l.of.name, e.Ref, journal.Waiting, journal.Dead, e.State)
		}
	}
	return nil
}

// saveDone adds a batch to the stored progress, which may already hold others
// of the same transaction.
func (c *consumer) saveDone(ctx context.Context, s *store, l *lease, unsettled []journal.Entry) error {
	done, err := s.progressOf(ctx, c.name)
	if err != nil {
		return err
	}
	done.join(l.known)
	for _, sp := range spansOf(l.positions) {
		done.add(sp)
		if _, err := s.exec(ctx, "clear-entries", c.name, int64(sp.first), int64(sp.last)); err != nil {
			return err
		}
	}
	for _, e := range unsettled {
		if err := s.putEntry(ctx, c.name, e); err != nil {
			return err
		}
	}
	_, err = s.exec(ctx, "set-progress", c.name, int64(done.done), done.encodeAbove())
	return err
}

func (c *consumer) saveRetried(ctx context.Context, s *store, l *lease, unsettled []journal.Entry) error {
	at := make(map[event.Ref]int, len(unsettled))
	for i, e := range unsettled {
		at[e.Ref] = i
	}
	for i, e := range l.entries {
		u, still := at[e.Ref]
		if !still {
			if _, err := s.exec(ctx, "delete-entry", int64(e.Ref.Position), e.Ref.Index, c.name); err != nil {
				return err
			}
			continue
		}
		if _, err := s.exec(ctx, "renew-entry", append(entryArgs(c.name, unsettled[u]), l.asked[i])...); err != nil {
			return err
		}
		delete(at, e.Ref)
	}
	// What is left is new: a delivery that could not be split has been.
	for _, e := range unsettled {
		if _, isNew := at[e.Ref]; isNew {
			if err := s.putEntry(ctx, c.name, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// endLease forgets a lease.
func (c *consumer) endLease(l *lease) {
	delete(c.leases, l)
	if l.items == nil {
		for _, p := range l.positions {
			delete(c.retried, p)
		}
	}
}

// Release implements journal.Consumer.
func (c *consumer) Release(b *journal.Batch) {
	l, ok := b.Lease.(*lease)
	if !ok || l.of != c {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, held := c.leases[l]; !held || l.finishing {
		return
	}
	c.endLease(l)
	c.giveBack(l)
}

// giveBack puts the items of a lease where Next finds them first.
func (c *consumer) giveBack(l *lease) {
	if len(l.items) == 0 || c.ended {
		return
	}
	c.released = append(slices.Clone(c.released), l.items...)
	slices.SortFunc(c.released, func(a, b item) int { return cmp.Compare(a.delivery.Position, b.delivery.Position) })
	c.wake.set()
}
