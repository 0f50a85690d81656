package sqlsink

import (
	"context"
	"slices"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

var _ sink.Replacer = (*sqlSink)(nil)

// Replaces is sink.Replacer's. On a table with links a row's key depends on other
// rows, with occupants on their records, and versions beside are not in the row.
func (s *sqlSink) Replaces(t *sink.Table) bool {
	return t.Versions == sink.InRow && !compile.Linked(t.Table) && !t.Occupied
}

// Replace is sink.Replacer's.
func (s *sqlSink) Replace(ctx context.Context, t *sink.Table, said *merge.Held, keys []merge.Key) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.BatchTimeout)
	defer cancel()
	for try := 1; ; try++ {
		err := s.replace(ctx, t, said, keys)
		if err == nil {
			return nil
		}
		f := s.fault(located(err, t.Name))
		if f == nil {
			return err
		}
		if !f.again || try >= tries || wait(ctx, try) != nil {
			return f.Error
		}
	}
}

func (s *sqlSink) replace(ctx context.Context, t *sink.Table, said *merge.Held, keys []merge.Key) error {
	st, err := s.state(ctx, t)
	if err != nil {
		return err
	}
	var held []lock
	g := sink.Group{Table: t}
	for _, it := range itemsOfKeys(keys) {
		g.Rows = append(g.Rows, it.row)
	}
	if st.statements.Held != nil {
		held = locks([]sink.Group{g}, []*tableState{st})
	} else { // rows that are decided by themselves alone are locked by themselves
		statements, err := compile.Replacing(s.dialect(), t, st.live)
		if err != nil {
			return operator("%w", err)
		}
		st = &tableState{table: t, statements: statements, live: st.live}
	}
	return s.transact(ctx, func(c conn) error {
		a := &applier{conn: c, ctx: ctx, dialect: s.dialect(), anyAge: true}
		if len(held) > 0 {
			if err := c.lock(ctx, held); err != nil {
				return err
			}
		}
		w := a.holder(g, st)
		if err := w.read(); err != nil {
			return err
		}
		if err := w.readLedgers(keys); err != nil {
			return err
		}
		w.held = said
		w.wrote = merge.Written{Touched: slices.Clone(keys)}
		slices.Sort(w.wrote.Touched)
		for _, k := range keys {
			w.renew(k)
		}
		w.decide()
		if len(a.faults) > 0 {
			return &sink.BatchError{Rows: a.faults}
		}
		if err := w.remove(); err != nil {
			return err
		}
		return w.store()
	})
}

// renew prepares one key: counters keep what they had before Hookfold came and
// what events beyond those said have added.
func (w *holder) renew(k merge.Key) {
	for _, p := range w.held.Parts(k) {
		for i := range w.table.Columns {
			if rule := w.table.Columns[i].Rule; rule == merge.Sum || rule == merge.Count {
				p.Cells[i] = merge.Recounted(w.storedCounter(k, i), p.Cells[i])
			}
		}
	}
	if w.table.Group != nil {
		g := w.table.GroupOf(k)
		set := w.held.Set(g)
		if set.Version != "" && set != w.sets[g] && !slices.Contains(w.wrote.Sets, set) {
			w.wrote.Sets = append(w.wrote.Sets, set)
		}
	}
}

// storedCounter is a counter as it is stored, with all of its ledger.
func (w *holder) storedCounter(k merge.Key, column int) merge.Cell {
	var c merge.Cell
	if r := w.rows[k]; r != nil {
		c = r.Cells[column]
	}
	for e, a := range w.ledger {
		if e.key == k && e.column == column {
			if c.Ledger == nil {
				c.Ledger = map[string]merge.Amount{}
			}
			c.Ledger[e.identity] = a
		}
	}
	if w.rows[k] == nil {
		c.Value = merge.Total(c.Ledger)
	}
	return c
}
