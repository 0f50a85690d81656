package pipeline

import (
	"context"
	"fmt"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
)

// fits tells whether a change fits the live columns of its table, read again
// before a change is turned away: a person may just have altered them. One that
// is tried again is judged by the table as it is since then.
func (r *Runner) fits(ctx context.Context, w *work, c *merge.Change) (verdict, error) {
	since := w.started
	if !w.retried {
		since = r.o.Now().Add(-liveFor)
	}
	for _, p := range c.Parents {
		if _, ok := r.rank[p.Table]; !ok {
			return r.strange(c, p.Table), nil
		}
	}
	i, ok := r.rank[c.Table]
	if !ok {
		return r.strange(c, c.Table), nil
	}
	for again := false; !c.Replaces; again = true {
		live, fresh, err := r.live(ctx, i, since, again)
		if err != nil {
			return verdict{}, err
		}
		if !live.Exists {
			return verdict{}, nil // the sink tells, and the change is kept until there is a table
		}
		misfit := compile.Fit(live, c)
		if misfit == nil {
			return verdict{}, nil
		}
		if fresh {
			return verdict{
				state: journal.Dead, table: c.Table.Name, key: c.Table.Show(c.Key),
				reason: fmt.Sprintf("%s.%v. Alter the column, or the mapping, and run: hookfold dead retry %d", c.Table.Name, misfit, c.From.Position),
			}, nil
		}
	}
	return verdict{}, nil
}

func (r *Runner) strange(c *merge.Change, t *merge.Table) verdict {
	return verdict{state: journal.Dead, table: c.Table.Name, key: c.Table.Show(c.Key),
		reason: fmt.Sprintf("%s: table %s is not one of target %s. This is a fault of Hookfold: please report it", c.Table.Name, t.Name, r.o.Target)}
}

// sizeOf is about how many bytes changes take.
func sizeOf(changes []*merge.Change) int {
	n := 0
	for _, c := range changes {
		n += 200 + len(c.Key)
		for i := range c.Cells {
			n += 40 + len(c.Cells[i].Value.Text())
		}
	}
	return n
}
