// Package refold takes what a journal retains through the pipeline once more,
// into whatever sink: to see what the rows must be, to write what is missing, or
// to fill a table anew. The journal is only read; what became of its events the
// first time stays as it is, and a server may be at work on it meanwhile.
package refold

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/sink"
)

// Options say what to take where.
type Options struct {
	// Journal is read, and Target the name under which its first receipts and
	// log lines go. Required.
	Journal journal.Journal
	Target  string
	// Sink, Sources, Map and Tables are those of a pipeline.Runner. Required.
	Sink    pipeline.Sink
	Sources map[string]pipeline.Source
	Map     func(*event.Event) mapping.Outcome
	Tables  []*sink.Table
	// Only are positions to be read first, sorted; those that the journal does not
	// hold are passed over.
	Only []event.Position
	// From and To bound, both included, what is read behind them. To 0 is the last
	// delivery there is at the beginning.
	From, To event.Position
	// Log gets the pipeline's lines; nil is silent.
	Log *slog.Logger
	// Progress is told how many deliveries have been read, and what the target's
	// fault is while it cannot be reached, "" else. Nil is nobody.
	Progress func(deliveries int64, down string)
}

// Result tells what became of what was taken.
type Result struct {
	pipeline.Stats
	// Unsettled are events that did not land, at most MaxUnsettled of them; More
	// counts the others.
	Unsettled []journal.Entry
	More      int
}

// MaxUnsettled is how many events that did not land are kept and tried again.
const MaxUnsettled = 10_000

const look = 20 * time.Millisecond // between two looks at how far it is

// Run takes all there is, and returns when no event can be landed by trying it
// again. A target that is down holds it up until ctx ends.
func Run(ctx context.Context, o Options) (Result, error) {
	if o.To == 0 {
		stats, err := o.Journal.Stats(ctx)
		if err != nil {
			return Result{}, err
		}
		o.To = stats.Last
	}
	p := newPast(o)
	r := pipeline.New(pipeline.Options{
		Target: o.Target, Journal: p, Sink: o.Sink, Sources: o.Sources, Map: o.Map, Tables: o.Tables, Log: o.Log,
	})
	if err := r.Start(ctx); err != nil {
		return Result{}, err
	}
	err := p.finish(ctx, r)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = errors.Join(err, p.failure(), r.Stop(stop))
	res := p.result()
	res.Stats = r.Stats()
	return res, err
}

// finish waits until everything was read and tried as often as it helps.
func (p *past) finish(ctx context.Context, r *pipeline.Runner) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		n, _, err := r.Lag(ctx)
		if err != nil {
			return err
		}
		if p.o.Progress != nil {
			h := r.Health()
			p.o.Progress(p.seen(), h.Error)
		}
		if p.failure() != nil {
			return nil // which Run returns
		}
		if n == 0 {
			before := r.Stats().Settled
			if err := r.Pass(ctx); err != nil {
				return err
			}
			if r.Stats().Settled == before {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
