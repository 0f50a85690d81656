package verify

import (
	"context"
	"fmt"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/internal/refold"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Rebuilt is what a rebuild did.
type Rebuilt struct {
	// Inserted rows were not there, Replaced ones were set to what the journal
	// says. Joined ones could not be replaced, so that the journal was folded into
	// them.
	Inserted, Replaced, Joined int64
	// Events tells what became of the events that were folded in again.
	Events refold.Result
}

// Rebuild makes the rows of every table what the journal says under the config as
// it is now, whatever they were: a row that is missing is inserted, and one that
// differs has its mapped columns replaced, each under its lock, if the journal is
// whole and so holds the row's first event. Where it is not, or the sink cannot
// replace rows, or an event about the row has not landed, the journal is folded
// into the row. Rows that no event is about stay, and so do columns that the
// config does not map; what counters have counted is kept.
//
// Live events may go on arriving: what came while rows were replaced is folded in
// afterwards. Compare tells then which rows could not be rebuilt whole.
func (c *Check) Rebuild(ctx context.Context) (*Rebuilt, error) {
	out := &Rebuilt{}
	c.rebuild = true
	defer func() { c.rebuild = false }()
	if _, err := c.Compare(ctx); err != nil {
		return nil, err
	}
	for i, t := range c.o.Tables {
		if err := c.replaceAll(ctx, i, out); err != nil {
			return nil, fmt.Errorf("rebuild table %s: %w", t.Config.Text, err)
		}
	}
	var err error
	if out.Events, err = c.foldAgain(ctx); err != nil {
		return nil, err
	}
	return out, c.notes.clear(ctx, drift)
}

// replaceAll replaces the rows of a table that differ.
func (c *Check) replaceAll(ctx context.Context, i int, out *Rebuilt) error {
	live := &c.o.Tables[i].Table
	r, ok := c.o.Sink.(sink.Replacer)
	can := ok && r.Replaces(live) && c.whole
	var after *merge.Key
	for {
		list, err := c.notes.page(ctx, drift, i, after, pageRows)
		if err != nil || len(list) == 0 {
			return err
		}
		keys := make([]merge.Key, len(list))
		for j, x := range list {
			keys[j] = x.key
		}
		after = &keys[len(keys)-1]
		have, err := c.o.Sink.Read(ctx, live, keys)
		if err != nil {
			return err
		}
		said, err := c.fold.sink.Read(ctx, c.fold.tables[i], keys)
		if err != nil {
			return err
		}
		// A row that is newer than the fold may have been written just now: then the
		// fold is as new as it was, once it has caught up.
		for j := range keys {
			if can && have[j] != nil && said[j] != nil && beyond(have[j], said[j]) {
				if err := c.catchUp(ctx); err != nil {
					return err
				}
				if said, err = c.fold.sink.Read(ctx, c.fold.tables[i], keys); err != nil {
					return err
				}
				break
			}
		}
		var replace []merge.Key
		var rows []*merge.Row
		for j, k := range keys {
			ref, err := c.loose(ctx, i, k)
			switch {
			case err != nil:
				return err
			case said[j] == nil: // no event is about it, or its delete is
			case have[j] == nil:
				out.Inserted++
			case !can || ref != "" || beyond(have[j], said[j]):
				out.Joined++
			default:
				out.Replaced++
				replace, rows = append(replace, k), append(rows, said[j])
			}
		}
		if len(replace) == 0 {
			continue
		}
		held := merge.NewHeld(live.Table, rows, nil, nil)
		if !live.Local() {
			if held, err = c.fold.sink.(sink.Rememberer).Held(ctx, c.fold.tables[i], replace); err != nil {
				return err
			}
		}
		if err := r.Replace(ctx, live, held, replace); err != nil {
			return err
		}
		c.o.Progress(Progress{Step: "replace", Table: c.o.Tables[i].Config.Text, Done: out.Replaced, Total: -1})
	}
}

// beyond tells of a row that carries a version which is greater than what the
// journal says, and of the same shape: its event is in another journal.
func beyond(live, said *merge.Row) bool {
	greater := func(v, w merge.Version) bool { return len(v) == len(w) && v > w }
	for s := range live.Scopes {
		if greater(live.Scopes[s], said.Scopes[s]) {
			return true
		}
	}
	return greater(live.Seen, said.Seen) || greater(live.Deleted, said.Deleted)
}

// foldAgain folds all that the journal holds by now into the tables, but for
// what has not landed: rows that were replaced lack what was written since they
// were compared.
func (c *Check) foldAgain(ctx context.Context) (refold.Result, error) {
	stats, err := c.o.Journal.Stats(ctx)
	if err != nil {
		return refold.Result{}, err
	}
	entries, err := c.o.Journal.Entries(ctx, journal.Filter{Consumer: c.o.Target})
	if err != nil {
		return refold.Result{}, err
	}
	open := map[event.Ref]bool{}
	for _, e := range entries {
		if !c.lands(e) {
			open[e.Ref] = true
		}
	}
	dropped, err := c.o.Journal.Dropped(ctx, c.o.Target)
	if err != nil {
		return refold.Result{}, err
	}
	for _, ref := range dropped {
		open[ref] = true
	}
	return c.foldInto(ctx, stats.Last, func(ref event.Ref) bool { return open[ref] })
}

// foldInto folds the events up to a position into the live tables, for the rows
// that drift.
func (c *Check) foldInto(ctx context.Context, to event.Position, open func(event.Ref) bool) (refold.Result, error) {
	filter := map[*merge.Table]bool{} // whether only changes of some keys are wanted
	place := map[*merge.Table]int{}
	for i, t := range c.o.Tables {
		some, err := c.notes.page(ctx, drift, i, nil, 1)
		if err != nil {
			return refold.Result{}, err
		}
		if len(some) > 0 {
			filter[t.Table.Table], place[t.Table.Table] = t.Local(), i
		}
	}
	if len(place) == 0 || to == 0 {
		return refold.Result{}, nil
	}
	wanted := func(t *merge.Table, k merge.Key) (bool, error) {
		byKey, drifts := filter[t]
		if !drifts || !byKey {
			return drifts, nil
		}
		return c.notes.has(ctx, drift, place[t], k)
	}
	r, err := refold.Run(ctx, refold.Options{
		Journal: c.o.Journal, Target: c.o.Target, Sink: c.o.Sink, Tables: pipeline.Tables(c.o.Plan, c.o.Target),
		Sources: pipeline.Sources(c.o.Plan), To: to,
		Map: func(e *event.Event) mapping.Outcome {
			out := mapping.Outcome{Wanted: true}
			if open(e.Ref()) {
				return out
			}
			for _, x := range c.o.Plan.Map(e, c.o.Target).Changes {
				if keep, err := wanted(x.Table, x.Key); keep || err != nil {
					out.Changes = append(out.Changes, x)
					continue
				}
				for _, p := range x.Parents { // a stub of a parent that drifts
					if keep, err := wanted(p.Table, p.Key); !p.Wait && (keep || err != nil) {
						out.Changes = append(out.Changes, merge.Stub(p, x))
					}
				}
			}
			return out
		},
		Progress: func(n int64, down string) {
			c.o.Progress(Progress{Step: "write", Done: n, Total: int64(to), Down: down})
		},
	})
	if err != nil {
		return r, fmt.Errorf("fold into target %s: %w", c.o.Target, err)
	}
	return r, nil
}
