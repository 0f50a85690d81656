package sqlsink

import (
	"context"
	"fmt"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// mostHeld bounds the rows that are found one by one to be held, since each
// costs waits.
const mostHeld = 20

// heldRows finds the rows of a batch that another session holds at this moment;
// nil is none. It waits for nobody.
func (s *sqlSink) heldRows(ctx context.Context, b *sink.Batch, f *fault) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.BatchTimeout)
	defer cancel()
	out := &sink.BatchError{}
	err := s.transact(ctx, func(c conn) error {
		for _, g := range b.Groups {
			st, err := s.state(ctx, g.Table)
			if err != nil {
				return err
			}
			lock := st.statements.Lock
			if h := st.statements.Held; h != nil {
				lock = h.Rows
			}
			lock.SQL = s.dialect().SkipLocked(lock.SQL)
			items := itemsOf(g.Rows)
			there, free := make([]bool, len(items)), make([]bool, len(items))
			for _, q := range []struct {
				compile.Statement
				found []bool
			}{{lock, free}, {st.statements.Known, there}} {
				if err := c.query(ctx, q.Statement, items, func(n int, _ []cell) error {
					q.found[n] = true
					return nil
				}); err != nil {
					return err
				}
			}
			for i, it := range items {
				if there[i] && !free[i] {
					out.Rows = append(out.Rows, sink.RowError{RowRef: sink.RowRef{Table: g.Table, Row: it.row}, Err: lockedRow(g.Table, it.row, f)})
				}
			}
		}
		return errFound // nothing is to be kept, the locks least of all
	})
	if err != errFound || len(out.Rows) == 0 {
		return nil
	}
	return out
}

// lockedRow says that a row waits for another session.
func lockedRow(t *sink.Table, r *merge.Row, f *fault) *sink.Error {
	return &sink.Error{Action: sink.Wait, Why: sink.Locked, Code: f.Code, On: "another session of the database", Err: f.Err,
		Message: fmt.Sprintf("%s %s: another session of the database holds a lock on the row, or on one that it needs", t.Table.Name, t.Show(r.Key))}
}
