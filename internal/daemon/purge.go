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
		before, err := d.settledBefore(ctx, r.Target(), r.Lag, now.Add(-d.cfg.Journal.Keep))
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
	return errors.Join(append(errs, d.forgetOnce(ctx, now))...)
}

// forgetOnce lets the sinks forget which events of a lane a statement was run
// for, where no such event can come again.
func (d *Daemon) forgetOnce(ctx context.Context, now time.Time) error {
	var errs []error
	for i, l := range d.plan.Lanes {
		if l.Config.SQL == nil {
			continue
		}
		once, ok := d.sinks[l.Config.SQL.Target.Text].(sink.Once)
		if !ok {
			continue
		}
		before, err := d.settledBefore(ctx, l.Consumer(), d.lanes[i].Lag, now.Add(-d.cfg.Journal.Keep))
		if err == nil {
			_, err = once.ForgetOnce(ctx, l.Name, before)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// settledBefore gives the time, at most limit, before which every event that was
// received is settled for a consumer.
func (d *Daemon) settledBefore(ctx context.Context, consumer string, lag func(context.Context) (int64, time.Time, error), limit time.Time) (time.Time, error) {
	before := limit
	sooner := func(t time.Time) {
		if !t.IsZero() && t.Before(before) {
			before = t
		}
	}
	pending, oldest, err := lag(ctx)
	if err != nil {
		return before, err
	}
	if pending > 0 {
		sooner(oldest)
	}
	entries, err := d.journal.Entries(ctx, journal.Filter{Consumer: consumer})
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
