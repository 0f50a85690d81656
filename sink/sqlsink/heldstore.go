package sqlsink

import (
	"encoding/json"
	"slices"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// remove removes the rows that are not to show any more.
func (w *holder) remove() error {
	if len(w.deletes) == 0 {
		return nil
	}
	_, err := w.exec(w.ctx, w.s.Delete, w.deletes)
	return err
}

// store stores all else.
func (w *holder) store() error {
	if w.parks {
		if err := w.park(w.st, func(k merge.Key) *merge.Row { return w.rows[k] }, w.updates); err != nil {
			return err
		}
	}
	for _, x := range []struct {
		s     compile.Statement
		items []item
	}{{w.s.Rekey, w.rekeys}, {w.s.Update, w.updates}} {
		if len(x.items) == 0 || x.s.SQL == "" {
			continue
		}
		if _, err := w.exec(w.ctx, x.s, x.items); err != nil {
			return err
		}
	}
	if len(w.inserts) > 0 {
		n, err := w.exec(w.ctx, w.s.Insert, w.inserts)
		if err != nil {
			return err
		}
		if n < len(w.inserts) && !w.st.live.FillsRows { // a trigger may put rows elsewhere
			return &sink.Error{Action: sink.Retry, Message: "table " + w.table.Name + ": somebody else inserted a row at the same moment"}
		}
	}
	if w.table.Occupied {
		if len(w.dropped) > 0 {
			if _, err := w.exec(w.ctx, w.s.DropRecords, itemsOfKeys(w.dropped)); err != nil {
				return err
			}
		}
		if len(w.puts) > 0 {
			if _, err := w.exec(w.ctx, w.s.PutRecord, w.puts); err != nil {
				return err
			}
		}
	}
	return w.storeBeside()
}

// versionsOf are the versions of a row by the names of the columns that would
// hold them.
func versionsOf(t *sink.Table, r *merge.Row) map[string]string {
	v := map[string]string{}
	for s, name := range t.Scopes() {
		if r.Scopes[s] != "" {
			v[compile.ScopeColumn(name)] = string(r.Scopes[s])
		}
	}
	for i, c := range t.Columns {
		if r.Cells[i].Version != "" {
			v[compile.FirstColumn(c.Name)] = string(r.Cells[i].Version)
		}
	}
	if o := r.Occupant; o != nil {
		v[compile.OccupantColumn] = o.ID
		if o.Since != "" {
			v[compile.SinceColumn] = string(o.Since)
		}
	}
	return v
}

// storeVersions stores the versions that lie beside rows.
func (w *holder) storeVersions() error {
	if w.s.Save == "" {
		return nil
	}
	keys, saved := newColumns(1), newColumns(2)
	for _, k := range w.moved {
		b, err := json.Marshal(versionsOf(w.table, w.held.Shown(k)))
		if err != nil {
			return err
		}
		keys.add(cell{compile.KeyText(k), true})
		saved.add(cell{compile.KeyText(k), true}, cell{string(b), true})
	}
	for _, x := range []struct {
		sql     string
		columns columns
	}{{w.s.Claim, keys}, {w.s.Save, saved}} {
		if len(w.moved) == 0 {
			break
		}
		if _, err := w.side(w.ctx, x.sql, w.table.Name, x.columns); err != nil {
			return err
		}
	}
	return nil
}

// storeBeside stores what tables beside remember.
func (w *holder) storeBeside() error {
	if err := w.storeVersions(); err != nil {
		return err
	}
	if s := w.s.Tombstones; s != nil {
		c := newColumns(3)
		for _, k := range w.bury {
			x := w.tombs[k]
			c.add(cell{compile.KeyText(k), true}, cell{string(x.version), true}, timeCell(x.at))
		}
		if err := w.put(s.Put, c); err != nil {
			return err
		}
		if err := w.put(s.Drop, keyTexts(w.unbury)); err != nil {
			return err
		}
	}
	if s := w.s.Sets; s != nil {
		c := newColumns(3)
		for _, x := range w.wrote.Sets {
			c.add(cell{compile.KeyText(x.Group), true}, cell{string(x.Version), true}, timeCell(x.At))
		}
		if err := w.put(s.Put, c); err != nil {
			return err
		}
	}
	if err := w.storeLinks(); err != nil {
		return err
	}
	if s := w.s.Ledger; s != nil {
		if err := w.put(w.s.DropLedger, keyTexts(w.dropped)); err != nil {
			return err
		}
		c := newColumns(5)
		for _, e := range w.post {
			a := w.ledger[e]
			c.add(cell{compile.KeyText(e.key), true}, cell{w.table.Columns[e.column].Name, true}, cell{e.identity, true}, cell{string(a.Version), true}, cell{a.Value.Text(), true})
		}
		return w.put(s.Put, c)
	}
	return nil
}

// storeLinks stores new links, and points every identity of their chains to its
// key.
func (w *holder) storeLinks() error {
	if w.s.Links == nil || w.wrote.Links == nil {
		return nil
	}
	links, aliases := newColumns(2), newColumns(2)
	done := map[string]bool{}
	chains := w.held.Chains()
	for _, l := range w.wrote.Links {
		links.add(cell{l.Old, true}, cell{l.New, true})
		root := chains.Root(l.Old)
		if done[root] || l.Old == l.New {
			continue
		}
		done[root] = true
		for _, id := range chains.Members(root) {
			aliases.add(cell{id, true}, cell{root, true})
		}
	}
	if err := w.put(w.s.Links.Put, links); err != nil {
		return err
	}
	return w.put(w.s.Aliases.Put, aliases)
}

func (w *holder) put(sql string, columns [][]cell) error {
	if len(columns[0]) == 0 {
		return nil
	}
	_, err := w.side(w.ctx, sql, w.name(), columns)
	return err
}

// columns are parameters of a statement on a table beside.
type columns [][]cell

func newColumns(n int) columns { return make(columns, n) }

func (c columns) add(cells ...cell) {
	for i, x := range cells {
		c[i] = append(c[i], x)
	}
}

// part cuts rows out of the columns.
func (c columns) part(from, to int) columns {
	out := slices.Clone(c)
	for i := range out {
		out[i] = out[i][from:to]
	}
	return out
}

func timeCell(v merge.Value) cell { return cell{v.Text(), !v.IsNull()} }
