package prove

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Batch is deliveries that are taken from the journal together.
type Batch struct {
	Deliveries []*event.Delivery
	// Crash ends the writer when the batch is in the database and the journal does
	// not know of it yet. The next life of the writer takes it again.
	Crash bool
}

// Feed is deliveries on their way to a target: real mapping, real pipeline, real
// sink, and a journal that hands out exactly these batches.
type Feed struct {
	Plan   *mapping.Plan
	Target string
	Sink   pipeline.Sink
	// Tables are the target's, parents first, under the names that the sink knows.
	Tables []*sink.Table
	// Writers holds the batches of each writer, in their order. Writers work at
	// the same time; no position may come twice among all their deliveries.
	Writers [][]Batch
	// First knows identities of the events that were received before; nil is none.
	First *Receipts
	// Mapped and Landed are told of what an event means, and of the changes of a
	// transaction that is in. They must be safe for concurrent use; nil is nobody.
	Mapped func(e *event.Event, changes []*merge.Change)
	Landed func([]*merge.Change)
}

// lookPause is how often a feed looks whether a target that is at fault has
// recovered.
const lookPause = 20 * time.Millisecond

// Run feeds the deliveries, tries again what waits until nothing more lands, and
// returns the events that are waiting or dead. It fails when ctx ends, or when
// the target itself is at fault for longer than patience.
func (f *Feed) Run(ctx context.Context, patience time.Duration) ([]journal.Entry, error) {
	if f.First == nil {
		f.First = NewReceipts()
	}
	lives := make([]*life, len(f.Writers))
	for i, batches := range f.Writers {
		lives[i] = &life{feed: f, script: newScript(fmt.Sprint("writer ", i+1), batches, f.First)}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var writing sync.WaitGroup
	for _, l := range lives {
		writing.Go(func() {
			if err := l.write(ctx, patience); err != nil {
				cancel(err)
			}
		})
	}
	writing.Wait()
	err := context.Cause(ctx)
	if err == nil {
		err = settle(ctx, lives)
	}
	var left []journal.Entry
	for _, l := range lives {
		if l.runner != nil {
			stop, end := context.WithTimeout(context.WithoutCancel(ctx), patience)
			if err != nil {
				end()
			}
			if e := l.runner.Stop(stop); err == nil {
				err = e
			}
			end()
		}
		left = append(left, l.script.left()...)
	}
	return left, err
}

// life is one writer, through its crashes.
type life struct {
	feed   *Feed
	script *script
	runner *pipeline.Runner
}

func (l *life) start(ctx context.Context) error {
	f := l.feed
	l.runner = pipeline.New(pipeline.Options{
		Target: l.script.name, Journal: l.script, Sink: f.Sink, Sources: pipeline.Sources(f.Plan), Tables: f.Tables, Landed: f.Landed,
		Map: func(e *event.Event) mapping.Outcome {
			out := f.Plan.Map(e, f.Target)
			if f.Mapped != nil {
				f.Mapped(e, out.Changes)
			}
			return out
		},
		Rest: time.Millisecond,
	})
	return l.runner.Start(ctx)
}

// write lands all batches of the writer.
func (l *life) write(ctx context.Context, patience time.Duration) error {
	if err := l.start(ctx); err != nil {
		return err
	}
	look := time.NewTicker(lookPause)
	defer look.Stop()
	for {
		select {
		case <-l.script.finished:
			return nil
		case <-l.script.crashed:
			if err := l.runner.Stop(ctx); err != nil {
				return err
			}
			l.script.revive()
			if err := l.start(ctx); err != nil {
				return err
			}
		case <-look.C:
			if h := l.runner.Health(); !h.Up && h.Error != "" && !h.Since.IsZero() && time.Since(h.Since) > patience {
				return fmt.Errorf("the target cannot be written: %s", h.Error)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settle tries again what waits, until a round over all writers lands nothing.
func settle(ctx context.Context, lives []*life) error {
	for {
		moved := false
		for _, l := range lives {
			before := l.runner.Stats()
			if err := l.runner.Pass(ctx); err != nil {
				return err
			}
			after := l.runner.Stats()
			moved = moved || after.Settled > before.Settled || after.Written > before.Written
		}
		if !moved {
			return nil
		}
	}
}

// errOfScript says that a consumer was used in a way that no pipeline does.
var errOfScript = errors.New("a batch is done that was not leased")
