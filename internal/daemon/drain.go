package daemon

import (
	"context"
	"time"

	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal"
)

// Progress tells how far Drain is.
type Progress struct {
	// Pending counts the deliveries that are not yet done, over all targets.
	Pending int64
	// Stats counts what became of events since Start, over all targets.
	Stats pipeline.Stats
	// Down names the targets that cannot be reached, with the reason.
	Down map[string]string
}

// Summary tells what became of what was drained.
type Summary struct {
	// Targets holds the counts since Start by target, and by lane (lane:billing).
	Targets map[string]pipeline.Stats
	// Waiting and Dead are the entries there are in the journal, new and old.
	Waiting, Dead int64
}

// drainStep is how often Drain looks, and tells its progress.
const drainStep = 20 * time.Millisecond

// Drain waits until every delivery in the journal is done for every target, until
// nothing more is to be expected of fetches soon, and until no waiting event can
// be landed by trying again. A target that is down
// holds it up until ctx ends. progress may be nil.
func (d *Daemon) Drain(ctx context.Context, progress func(Progress)) (Summary, error) {
	tick := time.NewTicker(drainStep)
	defer tick.Stop()
	for {
		p, err := d.progress(ctx)
		if err != nil {
			return Summary{}, err
		}
		if progress != nil {
			progress(p)
		}
		if p.Pending == 0 && d.fetcher.Busy() == 0 {
			landed, err := d.passes(ctx)
			if err != nil {
				return Summary{}, err
			}
			if !landed && d.fetcher.Busy() == 0 {
				break
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return Summary{}, ctx.Err()
		}
	}
	return d.summary(ctx)
}

func (d *Daemon) progress(ctx context.Context) (Progress, error) {
	p := Progress{Down: map[string]string{}}
	for _, r := range d.runners {
		n, _, err := r.Lag(ctx)
		if err != nil {
			return p, err
		}
		p.Pending += n
		p.Stats = p.Stats.Plus(r.Stats())
		if h := r.Health(); !h.Up && h.Error != "" {
			p.Down[r.Target()] = h.Error
		}
	}
	for _, r := range d.lanes {
		n, _, err := r.Lag(ctx)
		if err != nil {
			return p, err
		}
		p.Pending += n
		if h := r.Health(); !h.Up && h.Error != "" {
			p.Down[r.Consumer()] = h.Error
		}
	}
	return p, nil
}

// passes tries the waiting events of every target once, and tells whether any
// landed.
func (d *Daemon) passes(ctx context.Context) (landed bool, err error) {
	for _, r := range d.runners {
		before := r.Stats().Settled
		if err := r.Pass(ctx); err != nil {
			return false, err
		}
		landed = landed || r.Stats().Settled > before
	}
	return landed, nil
}

func (d *Daemon) summary(ctx context.Context) (Summary, error) {
	s := Summary{Targets: map[string]pipeline.Stats{}}
	for _, r := range d.runners {
		s.Targets[r.Target()] = r.Stats()
	}
	for _, r := range d.lanes {
		s.Targets[r.Consumer()] = r.Stats()
	}
	var stats journal.Stats
	stats, err := d.journal.Stats(ctx)
	s.Waiting, s.Dead = stats.Waiting, stats.Dead
	return s, err
}
