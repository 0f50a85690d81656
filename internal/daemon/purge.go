package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// purge lets the sinks forget the deletes that no event can be older than any
// more: older than what the journal keeps, and than every event that is not
// settled.
func (d *Daemon) purge(ctx context.Context, now time.Time) error {
	if d.cfg.Journal.Keep <= 0 {
		return nil
	}
	var errs []error
	for _, r := range d.runners {
		p, ok := d.sinks[r.Target()].(sink.Purger)
		if !ok {
			continue
		}
		before, err := d.settledBefore(ctx, r, now.Add(-d.cfg.Journal.Keep))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, t := range pipeline.Tables(d.plan, r.Target()) {
			if t.OnDelete == merge.DeleteNone && t.Group == nil {
				continue
			}
			n, err := p.Purge(ctx, t, before)
			if err != nil {
				errs = append(errs, err)
				break // the target is down, most likely
			}
			if n > 0 {
				d.o.Log.Info("forgot deletes older than the journal", "target", r.Target(), "table", t.Table.Name, "deletes", n, "before", before.UTC())
			}
		}
	}
	return errors.Join(errs...)
}

// settledBefore gives the time, at most limit, before which every event of a
// target that was received is settled.
func (d *Daemon) settledBefore(ctx context.Context, r *pipeline.Runner, limit time.Time) (time.Time, error) {
	before := limit
	sooner := func(t time.Time) {
		if !t.IsZero() && t.Before(before) {
			before = t
		}
	}
	pending, oldest, err := r.Lag(ctx)
	if err != nil {
		return before, err
	}
	if pending > 0 {
		sooner(oldest)
	}
	entries, err := d.journal.Entries(ctx, journal.Filter{Consumer: r.Target()})
	if err != nil {
		return before, err
	}
	for i, e := range entries {
		sooner(e.Since)
		if i > 0 { // entries are in order of acceptance
			continue
		}
		x, err := d.journal.Get(ctx, e.Ref.Position)
		if err != nil {
			return before, err
		}
		sooner(x.Received)
	}
	return before, nil
}
