package sqlsink

import (
	"slices"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
)

// parking are the columns of a table that can be parked: those of unique indexes
// other than the key's that may be NULL.
func parking(st *tableState) []string {
	var out []string
	for _, u := range st.live.Uniques {
		for _, name := range u.Columns {
			i := st.table.Column(name)
			c := st.live.Column(name)
			if i >= 0 && c != nil && !c.NotNull && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// park lets go of the unique values of rows that are going to have others, so
// that rows can take them from each other.
func (a *applier) park(st *tableState, was func(merge.Key) *merge.Row, becomes []item) error {
	columns := parking(st)
	if columns == nil {
		return nil
	}
	var list []item
	for _, it := range becomes {
		have := was(it.row.Key)
		if have != nil && slices.ContainsFunc(columns, func(name string) bool {
			i := st.table.Column(name)
			return !have.Cells[i].Value.IsNull() && have.Cells[i].Value != it.row.Cells[i].Value
		}) {
			list = append(list, it)
		}
	}
	if list == nil {
		return nil
	}
	_, err := a.exec(a.ctx, compile.Park(a.dialect, st.table, st.live, columns), list)
	return err
}

// park is the applier's for rows that a statement is going to join: it reads
// them, to know what they become.
func (w *writer) park(st *tableState, items []item) error {
	if w.table.Occupied || w.s.Beside != nil || len(items) == 0 || parking(st) == nil {
		return nil
	}
	if _, err := w.there(items); err != nil { // locks them
		return err
	}
	how, err := compile.Read(w.dialect, w.table, w.live)
	if err != nil {
		return err
	}
	was := map[merge.Key]*merge.Row{}
	err = w.query(w.ctx, how.ByKey, items, func(n int, cols []cell) error {
		r := rowOf(w.table, how.Fields, cols)
		r.Key = items[n].row.Key
		complete(w.table, r, nil)
		was[r.Key] = r
		return nil
	})
	if err != nil {
		return err
	}
	var becomes []item
	for _, it := range items {
		if have := was[it.row.Key]; have != nil {
			becomes = append(becomes, item{row: merge.Join(w.table.Table, have, it.row)})
		}
	}
	return w.applier.park(st, func(k merge.Key) *merge.Row { return was[k] }, becomes)
}
