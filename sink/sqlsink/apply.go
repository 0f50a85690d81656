package sqlsink

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// applier writes one batch in one transaction.
type applier struct {
	conn
	ctx    context.Context
	result sink.Result
	faults []sink.RowError
	// broken is a fault that no row of the batch can be blamed for.
	broken *sink.Error
	anyAge bool
	// parks says that rows may take unique values from each other.
	parks   bool
	dialect compile.Dialect
}

// write writes groups in their order, of those that are not Local first what
// goes, last group first, so that a row that is gone is in nobody's way.
func (a *applier) write(groups []sink.Group, states []*tableState) error {
	held := make([]*holder, len(groups))
	if list := locks(groups, states); len(list) > 0 {
		if err := a.lock(a.ctx, list); err != nil {
			return err
		}
	}
	if a.parks {
		if err := a.defers(a.ctx, true); err != nil {
			return err
		}
	}
	for i, g := range groups {
		if states[i].statements.Held == nil {
			continue
		}
		held[i] = a.holder(g, states[i])
		if err := held[i].join(); err != nil {
			return located(err, g.Table.Name)
		}
	}
	if len(a.faults) > 0 {
		return nil
	}
	if a.broken != nil {
		return a.broken
	}
	for i := len(groups) - 1; i >= 0; i-- {
		if held[i] != nil {
			if err := held[i].remove(); err != nil {
				return located(err, groups[i].Table.Name)
			}
		}
	}
	for i, g := range groups {
		var err error
		if held[i] != nil {
			err = held[i].store()
		} else {
			err = a.group(g, states[i])
		}
		if err != nil {
			return located(err, g.Table.Name)
		}
	}
	return nil
}

// group writes the rows of one table.
func (a *applier) group(g sink.Group, st *tableState) error {
	w := &writer{applier: a, table: g.Table, live: st.live, s: st.statements}
	var parts, own []item
	for _, r := range g.Rows {
		if g.Table.Occupied && r.Occupant != nil {
			parts = append(parts, item{row: r})
		} else {
			own = append(own, item{row: r})
		}
	}
	if w.s.Beside != nil {
		if err := w.holdVersions(g.Rows); err != nil {
			return err
		}
	}
	if len(parts) > 0 {
		if err := w.occupants(parts, own); err != nil {
			return err
		}
	}
	if len(own) > 0 {
		if a.parks {
			if err := w.park(st, own); err != nil {
				return err
			}
		}
		if err := w.own(own); err != nil {
			return err
		}
	}
	if w.s.Beside != nil {
		return w.saveVersions()
	}
	return nil
}

// writer writes the rows of one table.
type writer struct {
	*applier
	table *sink.Table
	live  *sink.Live
	s     *compile.Statements

	// versions are what lies beside, by key.
	versions map[merge.Key]*besideVersions
}

// own joins what belongs to rows themselves.
func (w *writer) own(items []item) error {
	var full, partial, guests []item
	for _, it := range items {
		switch {
		case it.row.IfMissing != merge.Insert:
			guests = append(guests, it)
		case len(w.lacks(it.row)) > 0:
			partial = append(partial, it)
		default:
			full = append(full, it)
		}
	}
	if w.s.Beside != nil {
		return w.ownBeside(full, partial, guests)
	}
	if err := w.upsert(full); err != nil {
		return err
	}
	there, err := w.there(partial)
	if err != nil {
		return err
	}
	if err := w.update(there.present); err != nil {
		return err
	}
	if w.live.FillsRows {
		err = w.upsert(there.absent)
	} else {
		w.refuse(there.absent)
	}
	if err != nil {
		return err
	}
	if there, err = w.there(guests); err != nil {
		return err
	}
	w.missing(there.absent)
	return w.update(w.together(there.present))
}

// together joins rows that differ only in what they do when there is no row:
// no key may come twice in a statement.
func (w *writer) together(items []item) []item {
	var out []item
	for _, it := range items {
		if n := len(out); n > 0 && sameRow(out[n-1].row, it.row) {
			out[n-1] = item{row: merge.Join(w.table.Table, out[n-1].row, it.row)}
			w.result.Unchanged++
			continue
		}
		out = append(out, it)
	}
	return out
}

func sameRow(a, b *merge.Row) bool {
	return a.Key == b.Key && (a.Occupant == nil) == (b.Occupant == nil) && (a.Occupant == nil || a.Occupant.ID == b.Occupant.ID)
}

// upsert writes rows that have all that a new row needs.
func (w *writer) upsert(items []item) error {
	if len(items) == 0 {
		return nil
	}
	s := w.s.Upsert
	if !slices.ContainsFunc(items, func(it item) bool { return says(it.row) }) {
		s = w.s.Stub // parents: nothing is set but the key
	}
	return w.count(s, items)
}

func says(r *merge.Row) bool {
	return slices.ContainsFunc(r.Cells, func(c merge.Cell) bool { return c.Set })
}

// update writes rows that are there.
func (w *writer) update(items []item) error {
	if w.s.Update.SQL == "" {
		w.result.Unchanged += len(items)
		return nil
	}
	return w.count(w.s.Update, items)
}

func (w *writer) count(s compile.Statement, items []item) error {
	if len(items) == 0 {
		return nil
	}
	n, err := w.exec(w.ctx, s, items)
	n = min(n, len(items))
	w.result.Written += n
	w.result.Unchanged += len(items) - n
	return err
}

// presence tells which rows are there. They are locked, so they stay.
type presence struct {
	present, absent []item
	// empty tells, per present row, which first columns hold no value.
	empty [][]bool
}

func (w *writer) there(items []item) (*presence, error) {
	p := &presence{}
	if len(items) == 0 {
		return p, nil
	}
	found := make([][]bool, len(items))
	err := w.query(w.ctx, w.s.Lock, items, func(n int, cols []cell) error {
		found[n] = make([]bool, len(cols))
		for i, c := range cols {
			found[n][i] = c.text == "true" || c.text == "1"
		}
		return nil
	})
	for i, f := range found {
		if f == nil {
			p.absent = append(p.absent, items[i])
		} else {
			p.present = append(p.present, items[i])
			p.empty = append(p.empty, f)
		}
	}
	return p, err
}

// missing deals with rows that may not insert and are not there.
func (w *writer) missing(items []item) {
	for _, it := range items {
		if it.row.IfMissing == merge.Wait {
			w.result.Absent = append(w.result.Absent, sink.RowRef{Table: w.table, Row: it.row})
		} else {
			w.result.Unchanged++
		}
	}
}

// lacks names the columns without which the database refuses a new row.
func (w *writer) lacks(r *merge.Row) []string {
	var out []string
	for _, q := range w.s.Required {
		if q.Column >= 0 && r.Cells[q.Column].Set && !r.Cells[q.Column].Value.IsNull() {
			continue
		}
		out = append(out, q.Name)
	}
	return out
}

// refuse reports rows that cannot be inserted yet.
func (w *writer) refuse(items []item) {
	for _, it := range items {
		r := it.row
		columns := w.lacks(r)
		if it.part != nil {
			r = it.part
			columns = slices.DeleteFunc(columns, func(name string) bool {
				i := w.table.Column(name)
				return i >= 0 && r.Cells[i].Set && !r.Cells[i].Value.IsNull()
			})
		}
		if len(columns) == 0 {
			continue // an occupant that is not the newest; the newest is at fault
		}
		w.faults = append(w.faults, sink.RowError{RowRef: sink.RowRef{Table: w.table, Row: r}, Err: w.lacking(r, columns)})
	}
}

// lacking says that a row cannot be inserted yet, for want of columns.
func (w *writer) lacking(r *merge.Row, columns []string) *sink.Error {
	list := strings.Join(columns, ", ")
	message := fmt.Sprintf("%s %s: there is no such row yet, and a new one needs a value for %s (NOT NULL)", w.table.Table.Name, w.table.Show(r.Key), list)
	if !says(r) && r.Occupant == nil {
		message = fmt.Sprintf("%s %s cannot be inserted as a parent with its key alone: %s is NOT NULL and has no default that counts", w.table.Table.Name, w.table.Show(r.Key), list)
	}
	return &sink.Error{Action: sink.Wait, Message: message, On: w.table.Name + "." + columns[0], Why: sink.NotNull}
}

// occupants joins the records of occupants and shows them.
func (w *writer) occupants(items, own []item) error {
	o := w.s.Occupants
	var guests, joined []item
	for _, it := range items {
		if it.row.IfMissing != merge.Insert {
			guests = append(guests, it)
		} else {
			joined = append(joined, it)
		}
	}
	there, err := w.there(guests)
	if err != nil {
		return err
	}
	w.missing(there.absent)
	guests = w.together(there.present)
	for _, list := range [][]item{joined, guests} {
		if err := w.count(o.Join, list); err != nil {
			return err
		}
	}
	if w.s.Beside != nil {
		return w.showBeside(joined, guests, own)
	}
	shown := withOwn(joined, own)
	if len(w.s.Required) > 0 && len(shown) > 0 {
		if err := w.show(o.Reproject, shown); err != nil {
			return err
		}
	}
	if err := w.show(o.Project, shown); err != nil {
		return err
	}
	if len(w.s.Required) > 0 && len(shown) > 0 {
		there, err := w.there(shown)
		if err != nil {
			return err
		}
		w.refuse(there.absent)
	}
	return w.show(o.Reproject, guests)
}

func (w *writer) show(s compile.Statement, items []item) error {
	if len(items) == 0 || s.SQL == "" {
		return nil
	}
	_, err := w.exec(w.ctx, s, items)
	return err
}

// withOwn gives each occupant's row the cells of what belongs to the row
// itself, so that a row that is new has them at once.
func withOwn(items, own []item) []item {
	byKey := map[merge.Key]*merge.Row{}
	for _, it := range own {
		if it.row.IfMissing == merge.Insert {
			byKey[it.row.Key] = it.row
		}
	}
	out := make([]item, len(items))
	for i, it := range items {
		r := &merge.Row{Key: it.row.Key, Occupant: it.row.Occupant, Cells: make([]merge.Cell, len(it.row.Cells)), Scopes: make([]merge.Version, len(it.row.Scopes))}
		if mine := byKey[r.Key]; mine != nil {
			r.Cells, r.Scopes = mine.Cells, mine.Scopes
		}
		out[i] = item{row: r, part: it.row}
	}
	return out
}
