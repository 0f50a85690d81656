package verify

import (
	"context"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/refold"
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
	r, err := c.foldInto(ctx, c.done, func(ref event.Ref) bool {
		_, open := c.open[ref]
		return open
	})
	if err != nil {
		return r, err
	}
	return r, c.notes.clear(ctx, drift)
}
