package verify

import (
	"context"
	"fmt"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/internal/refold"
	"github.com/hookfold/hookfold/merge"
)

// Repair folds the events of rows that drift into the live tables once more,
// through the pipeline, and returns what became of them. What a merge rule lets
// an event do again is done: a row that is missing is inserted, a column that is
// behind gets the newer value, one that was changed under an unchanged version
// gets the value of that version's event, a max, min, ladder or union gets what
// it lacks. Nothing else is touched: no column that the config does not map, no
// row that no event is about, no value that is beyond what events say (a max that
// was raised by hand), no version that is greater than the journal's. Compare
// tells afterwards what is left.
func (c *Check) Repair(ctx context.Context) (refold.Result, error) {
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
	if len(place) == 0 {
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
		Sources: pipeline.Sources(c.o.Plan), To: c.done,
		Map: func(e *event.Event) mapping.Outcome {
			out := mapping.Outcome{Wanted: true}
			if _, open := c.open[e.Ref()]; open {
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
			c.o.Progress(Progress{Step: "repair", Done: n, Total: int64(c.done), Down: down})
		},
	})
	if err != nil {
		return r, fmt.Errorf("repair target %s: %w", c.o.Target, err)
	}
	return r, c.notes.clear(ctx, drift)
}
