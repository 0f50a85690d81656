// Package verify tells whether the rows of a database are those that the journal
// says: it folds the whole retained journal into a scratch database of its own,
// through the real mapping, pipeline and sink, and compares row by row. Memory is
// bounded however many rows there are.
//
// What is not settled (waiting, dead, dropped or not yet written) is not folded;
// of a row that such an event is about it is not said that somebody has changed
// it. What live rows have beyond what the journal holds can only be judged while
// the journal is whole; a row with a version that is greater than the fold's was
// written by an event that is not in the journal, and cannot be checked.
//
// It may run while a server writes: a row that differs is looked at again after
// the server has written everything received until then, until neither the row
// nor what the journal says of it changes any more.
package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/sink"
)

// Options say what to compare with what.
type Options struct {
	// Journal is read. Plan, Target and Sink are what the rows live in. Required.
	Journal journal.Journal
	Plan    *mapping.Plan
	Target  string
	Sink    sink.Sink
	// Tables are those of the target to be compared.
	Tables []*mapping.Table
	// Findings is the most findings kept of a table; the others are counted.
	// Default 100.
	Findings int
	// IgnoreExtra says that rows which no event is about are none of Hookfold's:
	// they are counted, and are no drift.
	IgnoreExtra bool
	// ToRebuild says that the tables are to be rebuilt: events that wait for that
	// have not landed, and are folded all the same.
	ToRebuild bool
	// Patience is how long to wait for a server to go on writing what it has yet
	// to write, before that is taken as not written. Default 3 s.
	Patience time.Duration
	// Progress is told of each step; nil is nobody.
	Progress func(Progress)
}

// Progress tells how far it is.
type Progress struct {
	// Step is what is done: "fold", "compare" or "look again", Table of which
	// table, "" for all.
	Step, Table string
	// Done counts deliveries or rows, Total how many there are, -1 if that is not
	// known.
	Done, Total int64
	// Down tells why the database cannot be reached, "" while it can.
	Down string
}

func (o Options) withDefaults() Options {
	o.Findings = cmp.Or(o.Findings, 100)
	o.Patience = cmp.Or(o.Patience, 3*time.Second)
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	return o
}

// pageRows is how many rows are read and compared at once.
const pageRows = 1000

// Check is a comparison. It holds a scratch database until it is closed.
type Check struct {
	o     Options
	dir   string
	fold  *fold
	notes *notes
	// whole says that the journal has kept every delivery it ever took.
	whole bool
	// rebuild says that rows which cannot be checked are to be rebuilt too.
	rebuild bool
	// done and open are up to where the target had written at the last look, and
	// which events up to there had not landed.
	done, last event.Position
	// waits counts those of open that a person has not dropped.
	waits int
	open  map[event.Ref]journal.State
}

// Begin folds the journal into a scratch database. The caller closes the Check.
func Begin(ctx context.Context, o Options) (_ *Check, err error) {
	c := &Check{o: o.withDefaults()}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("verify target %s: %w", o.Target, err), c.Close())
		}
	}()
	if c.dir, err = os.MkdirTemp("", "hookfold-verify-"); err != nil {
		return nil, err
	}
	if c.notes, err = openNotes(ctx, c.dir); err != nil {
		return nil, err
	}
	if c.fold, err = openFold(ctx, c); err != nil {
		return nil, err
	}
	return c, c.catchUp(ctx)
}

// Close removes the scratch database.
func (c *Check) Close() error {
	var errs []error
	if c.fold != nil {
		errs = append(errs, c.fold.sink.Close())
	}
	if c.notes != nil {
		errs = append(errs, c.notes.close())
	}
	if c.dir != "" {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	return errors.Join(errs...)
}

// catchUp folds what the target has written since it was last asked: everything
// received until now, if a server goes on writing.
func (c *Check) catchUp(ctx context.Context) error {
	stats, err := c.o.Journal.Stats(ctx)
	if err != nil {
		return err
	}
	c.whole = stats.Deliveries == int64(stats.Last)
	done, err := c.written(ctx, stats.Last)
	if err != nil {
		return err
	}
	entries, err := c.o.Journal.Entries(ctx, journal.Filter{Consumer: c.o.Target})
	if err != nil {
		return err
	}
	open := make(map[event.Ref]journal.State, len(entries))
	for _, e := range entries {
		if !c.lands(e) {
			open[e.Ref] = e.State
		}
	}
	dropped, err := c.o.Journal.Dropped(ctx, c.o.Target)
	if err != nil {
		return err
	}
	c.waits = len(open)
	for _, ref := range dropped {
		open[ref] = journal.Dead // nobody wants it to land
	}
	before, from := c.open, c.done+1
	c.open, c.done, c.last = open, done, stats.Last
	return c.fold.take(ctx, before, from)
}

// lands tells of an event that waits for nothing but that its table is rebuilt.
func (c *Check) lands(e journal.Entry) bool {
	return c.o.ToRebuild && e.State == journal.Waiting && strings.Contains(e.Reason, mapping.RebuildHint)
}

// written waits until the target has written everything up to a position, or
// until it does not go on, and tells how far it is.
func (c *Check) written(ctx context.Context, upTo event.Position) (event.Position, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	moved := time.Now()
	for before := event.Position(-1); ; {
		done, err := c.o.Journal.Progress(ctx, c.o.Target)
		if err != nil || done >= upTo {
			return min(done, upTo), err
		}
		if done != before {
			before, moved = done, time.Now()
		}
		if time.Since(moved) > c.o.Patience {
			return done, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
