package run

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/lane"
	"github.com/hookfold/hookfold/journal"
)

// entriesAtOnce is how many entries are read at a time.
const entriesAtOnce = 1000

// restore reads all entries into the scheduler: at the start, and when a person
// has changed some. Nothing may wait to be recorded.
func (r *Runner) restore(ctx context.Context) error {
	var failed error
	var loose []journal.Entry // of no key, to be tried again
	r.s.Reload(r.o.Now(), func(yield func(*lane.Item) bool) {
		filter := journal.Filter{Consumer: r.o.Consumer, Limit: entriesAtOnce}
		for {
			entries, err := r.o.Journal.Entries(ctx, filter)
			if err != nil {
				failed = err
				return
			}
			for _, e := range entries {
				switch it := r.item(ctx, e); {
				case it != nil && !yield(it):
					return
				case it == nil && e.Key == "" && e.State == journal.Waiting:
					loose = append(loose, e)
				}
			}
			if len(entries) < entriesAtOnce {
				return
			}
			filter.After = entries[len(entries)-1].Ref
		}
	})
	for _, e := range loose {
		if failed == nil {
			failed = r.again(ctx, e)
		}
	}
	return failed
}

// item is an entry as the scheduler knows it; nil if it is in no line.
func (r *Runner) item(ctx context.Context, e journal.Entry) *lane.Item {
	if e.Key == "" || e.State == journal.Dead && e.On == "" {
		return nil
	}
	it := &lane.Item{
		Ref: e.Ref, Key: e.Key, Source: e.Source, ID: e.ID, Type: e.Type, Stored: true,
		Attempts: e.Attempts, Next: e.Next, Reason: e.Reason, Dead: e.State == journal.Dead,
	}
	if e.Attempts > 0 && (!e.Next.IsZero() || it.Dead) {
		it.Since = e.Since
	} // else a person has asked for it: its time begins anew
	if r.o.Lines.ByVersion {
		if d, err := r.o.Journal.Get(ctx, e.Ref.Position); err == nil {
			items, _, _ := r.read(d)
			for _, x := range items {
				if x.Ref == e.Ref {
					it.Version, it.Received = x.Version, x.Received
				}
			}
		}
	}
	return it
}

// again reads the events of an entry that had no key: of a delivery that could
// not be split, or of an event whose key could not be told.
func (r *Runner) again(ctx context.Context, e journal.Entry) error {
	d, err := r.o.Journal.Get(ctx, e.Ref.Position)
	if err != nil {
		return err
	}
	found, dead, _ := r.read(d)
	whole := e.Ref.Index == event.WholeDelivery
	items, err := r.firsts(ctx, found)
	if err != nil {
		return err
	}
	now, a := r.o.Now(), journal.Amendment{}
	old := map[event.Ref]bool{e.Ref: true}
	put := func(x journal.Entry) {
		x.Attempts, x.Since = e.Attempts+1, e.Since
		if old[x.Ref] {
			a.Changed = append(a.Changed, x)
			delete(old, x.Ref)
		} else {
			a.New = append(a.New, x)
		}
	}
	for _, x := range dead {
		if whole || x.Ref == e.Ref {
			put(x)
		}
	}
	for _, it := range items {
		if it.Data = nil; whole || it.Ref == e.Ref {
			x := r.entry(it, now)
			put(x)
			r.s.Insert(now, it)
		}
	}
	for ref := range old {
		a.Settled = append(a.Settled, ref)
	}
	return r.amender.Amend(ctx, a)
}

// refresh reads what the scheduler needs; r.mu is held, and nothing waits to be
// recorded. What fails is tried again soon.
func (r *Runner) refresh() {
	var err error
	if r.reload {
		if err = r.restore(r.recording); err == nil {
			r.reload = false
		}
	}
	for _, key := range r.s.Missing(recorders) {
		if err == nil {
			err = r.load(r.recording, key)
		}
	}
	if err != nil && r.recording.Err() == nil {
		r.log.Line(slog.LevelWarn, "persist", func() string { return fmt.Sprintf("down  %s: cannot read its entries: %v", r.o.Consumer, err) })
		time.AfterFunc(time.Second, func() { signal(r.record) })
		return
	}
	signal(r.dispatch)
	signal(r.room)
}

// load reads the next page of a key.
func (r *Runner) load(ctx context.Context, key string) error {
	filter := journal.Filter{Consumer: r.o.Consumer, Key: key, Limit: r.s.PageSize()}
	var items []*lane.Item
	for {
		entries, err := r.o.Journal.Entries(ctx, filter)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if it := r.item(ctx, e); it != nil && len(items) < r.s.PageSize() {
				items = append(items, it)
			}
		}
		if len(entries) < filter.Limit || len(items) == r.s.PageSize() {
			r.s.Loaded(r.o.Now(), key, items)
			return nil
		}
		filter.After = entries[len(entries)-1].Ref
	}
}
