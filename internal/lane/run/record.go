package run

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hookfold/hookfold/internal/lane"
	"github.com/hookfold/hookfold/journal"
)

// job is something to be recorded: a batch that is done, or an amendment.
type job struct {
	batch *batch
	amend journal.Amendment
}

// remove takes an item out of a batch: it is through.
func (b *batch) remove(it *lane.Item) {
	b.items = slices.DeleteFunc(b.items, func(x *lane.Item) bool { return x == it })
}

// finish lets a batch be recorded if nothing of it is left; r.mu is held.
func (r *Runner) finish(b *batch) {
	if len(b.items) > 0 {
		return
	}
	r.window = slices.DeleteFunc(r.window, func(x *batch) bool { return x == b })
	r.held.Deliveries -= b.size.Deliveries
	r.held.Bytes -= b.size.Bytes
	r.unrecorded += b.size.Deliveries
	r.queue(job{batch: b})
}

// queue adds a job; r.mu is held.
func (r *Runner) queue(j job) {
	r.jobs = append(r.jobs, j)
	signal(r.record)
}

// spill makes entries of what is left of the oldest batch, if all of that stands
// still behind stuck heads for some time, or while much is leased; or if the batch keeps others from going on: the lane
// has room for tries, and none for deliveries. Batches are spilled in order, so
// that what is stored of a key always comes before what is leased. r.mu is held.
func (r *Runner) spill(now time.Time) {
	for len(r.window) > 0 && r.s.StoredLines() < r.o.Keys {
		b := r.window[0]
		old := now.Sub(b.since) >= r.o.Visible || 2*r.held.Deliveries >= r.o.Ahead.Deliveries || 2*r.held.Bytes >= r.o.Ahead.Bytes
		stuck := old && !slices.ContainsFunc(b.items, func(it *lane.Item) bool { return !r.s.Stuck(it) })
		starved := r.paused == "" && r.isFull() && r.s.Idle(now)
		if !stuck && !starved {
			return
		}
		for _, it := range b.items {
			b.entries = append(b.entries, r.entry(it, now))
		}
		r.stats.Waited += int64(len(b.items))
		r.s.Store(now, b.items...)
		b.items = nil
		r.finish(b)
	}
}

// entry is an item as the journal keeps it.
func (r *Runner) entry(it *lane.Item, now time.Time) journal.Entry {
	e := journal.Entry{
		Consumer: r.o.Consumer, Ref: it.Ref, Source: it.Source, ID: it.ID, Type: it.Type, Key: it.Key,
		State: journal.Waiting, Reason: it.Reason, Since: it.Since, Attempts: it.Attempts, Next: it.Next,
	}
	if e.Since.IsZero() {
		e.Since = now
	}
	switch {
	case it.Dead:
		e.State, e.Next, e.On = journal.Dead, time.Time{}, r.on(it.Key)
	case it.Attempts == 0 && !it.Held && r.s.UnderWay(it):
		e.Reason, e.Next, e.On = "it is under way", time.Time{}, r.on(it.Key)
	case it.Attempts == 0 && !it.Held:
		e.Reason, e.Next, e.On = "its turn has not come in "+r.on(it.Key), time.Time{}, r.on(it.Key)
	}
	return e
}

// parked is the entry of an item that was set aside.
func (r *Runner) parked(it *lane.Item, now time.Time) journal.Entry {
	e := r.entry(it, now)
	e.State, e.Next, e.On = journal.Dead, time.Time{}, ""
	return e
}

// on names the line of a key.
func (r *Runner) on(key string) string { return fmt.Sprintf("lane %s key %s", r.o.Name, key) }

// keep records jobs until the runner has stopped and none is left, and reads
// what the scheduler needs of the journal.
func (r *Runner) keep() {
	ended := make(chan struct{})
	go func() {
		r.loops.Wait()
		r.tries.Wait()
		close(ended)
	}()
	for last := false; ; {
		select {
		case <-r.record:
		case <-ended:
			last = true
		}
		for {
			r.mu.Lock()
			jobs := r.jobs
			r.jobs = nil
			if len(jobs) == 0 && !last {
				r.refresh()
			}
			r.mu.Unlock()
			if len(jobs) == 0 {
				break
			}
			if err := r.apply(jobs); err != nil {
				return // nothing can be recorded any more: it comes again after the next start
			}
		}
		if last {
			return
		}
	}
}

// recorders is how many batches are recorded at a time: they share a commit.
const recorders = 16

// apply records jobs: first what is done with whole batches, then what became of
// entries, among them the new ones.
func (r *Runner) apply(jobs []job) error {
	var all journal.Amendment
	var batches []*batch
	for _, j := range jobs {
		if j.batch != nil {
			batches = append(batches, j.batch)
			continue
		}
		all.Settled = append(all.Settled, j.amend.Settled...)
		all.Changed = append(all.Changed, j.amend.Changed...)
		all.New = append(all.New, j.amend.New...)
	}
	var failed error
	var mu sync.Mutex
	for group := range slices.Chunk(batches, recorders) {
		var done sync.WaitGroup
		for _, b := range group {
			done.Go(func() {
				err := r.persist(r.recording, "record what became of a batch", func(ctx context.Context) error {
					return r.consumer.Done(ctx, b.lease, b.entries)
				})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					failed = err
				}
			})
		}
		done.Wait()
	}
	if failed == nil && len(all.Settled)+len(all.Changed)+len(all.New) > 0 {
		failed = r.persist(r.recording, "record what became of events", func(ctx context.Context) error {
			return r.amender.Amend(ctx, all)
		})
	}
	r.mu.Lock()
	for _, b := range batches {
		r.unrecorded -= b.size.Deliveries
		r.stats.Deliveries += int64(b.size.Deliveries)
	}
	r.mu.Unlock()
	signal(r.room)
	return failed
}
