package sqlsink

import (
	"fmt"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// parts are what is stored of the keys, as merge.NewHeld takes it.
func (w *holder) parts() []*merge.Row {
	entries := map[merge.Key]map[int]map[string]merge.Amount{}
	for e, a := range w.ledger {
		if entries[e.key] == nil {
			entries[e.key] = map[int]map[string]merge.Amount{}
		}
		if entries[e.key][e.column] == nil {
			entries[e.key][e.column] = map[string]merge.Amount{}
		}
		entries[e.key][e.column][e.identity] = a
	}
	var out []*merge.Row
	add := func(r *merge.Row) {
		for i, ledger := range entries[r.Key] {
			c := &r.Cells[i]
			if w.rows[r.Key] == nil && c.Ledger == nil && !c.Set { // its row was removed by hand
				c.Value = merge.Total(ledger)
			}
			c.Set, c.Ledger = true, ledger
		}
		out = append(out, r)
	}
	if !w.table.Occupied {
		for _, r := range w.rows {
			add(r)
		}
		for k, x := range w.tombs {
			if w.rows[k] == nil {
				add(w.blank(k, x))
			}
		}
		for k := range entries {
			if _, buried := w.tombs[k]; !buried && w.rows[k] == nil {
				add(w.blank(k, tombstone{}))
			}
		}
		return out
	}
	has := map[merge.Key]bool{}
	for _, r := range w.records {
		has[r.Key] = true
		if r.Occupant == nil {
			add(r)
		} else {
			out = append(out, r)
		}
	}
	for k, r := range w.rows {
		if w.records[record{k, ""}] != nil {
			continue
		}
		if own := w.ownOf(r); !has[k] || own != nil {
			if own == nil {
				own = w.blank(k, tombstone{})
				own.Written = true
			}
			add(own)
		}
	}
	return out
}

func (w *holder) blank(k merge.Key, x tombstone) *merge.Row {
	return &merge.Row{Key: k, Deleted: x.version, DeletedAt: x.at, Scopes: make([]merge.Version, len(w.table.Scopes())), Cells: make([]merge.Cell, len(w.table.Columns))}
}

// ownOf makes the record of what belongs to a row itself of a row that has none
// yet: it was there before Hookfold, or before its table had anything that is
// not decided by the row alone. It is nil if there is nothing.
func (w *holder) ownOf(r *merge.Row) *merge.Row {
	own := w.blank(r.Key, tombstone{})
	own.Written = true
	any := false
	for i, c := range w.table.Columns {
		if w.table.OfKey(i) && c.Rule != merge.Touch && c.Rule != merge.Flag && c.Rule != merge.Chain && r.Cells[i].Set {
			own.Cells[i] = r.Cells[i]
			if s := w.table.ScopeOf(i); s >= 0 {
				own.Scopes[s] = r.Scopes[s]
			}
			any = true
		}
	}
	if !any {
		return nil
	}
	return own
}

// withinHorizon leaves out deletes of rows that are not there and whose own
// deletes may have been purged, and reports writes of such rows.
func (w *holder) withinHorizon() []*merge.Row {
	if w.purged == "" || w.anyAge {
		return w.g.Rows
	}
	var out []*merge.Row
	for _, r := range w.g.Rows {
		_, buried := w.tombs[r.Key]
		switch {
		case buried || w.rows[r.Key] != nil || max(r.Seen, r.Deleted) > w.purged:
			out = append(out, r)
		case r.Written:
			w.faults = append(w.faults, sink.RowError{RowRef: sink.RowRef{Table: w.table, Row: r}, Err: &sink.Error{Action: sink.Reject,
				Message: fmt.Sprintf("%s %s: older than the purge horizon: deletes up to version %s have been purged, so it cannot be told any more whether this row was deleted after it",
					w.table.Table.Name, w.table.Show(r.Key), w.purged.Show())}})
		}
	}
	return out
}
