package hasura

import (
	"slices"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
)

// occupied writes rows of a table with occupants.
//
// First the occupants' records are joined, in the mutation of the batch. Then
// the newest record of each key is shown, by a mutation of its own: a mutation
// cannot use what it has just joined. So what is shown may be stale by the time
// that it is written. So records and row are read again until the row is what
// the records say, or what was written last is what they still say.
//
// That is enough: look at the last write of a row by anybody. Its writer then
// read the records again and found them as it had written them, or it would have
// written once more. And whoever joined a record after that read looks at the
// row afterwards, and either finds it to agree too or writes, and then that was
// not the last write. A writer that fails on the way has not applied its batch,
// and begins anew.
func (a *applier) occupied(st *tableState, inserts, guests []*merge.Row) error {
	split := func(rows []*merge.Row) (parts, own []*merge.Row) {
		for _, r := range rows {
			if r.Occupant != nil {
				parts = append(parts, r)
			} else {
				own = append(own, r)
			}
		}
		return parts, own
	}
	parts, own := split(inserts)
	guestParts, guestOwn := split(guests)
	w := &writer{applier: a, r: st.own}
	careful := a.isCareful(st)
	// A key may come twice: to be inserted, and as a guest. No key may come
	// twice in one field.
	records := &writer{applier: a, r: st.records}
	if err := records.write(parts, nil, false); err != nil {
		return err
	}
	if err := records.write(guestParts, nil, false); err != nil {
		return err
	}
	all := append(slices.Clone(parts), guestParts...)
	if len(all) == 0 {
		return w.write(own, guestOwn, careful)
	}
	if err := a.flush(); err != nil {
		return err
	}
	// What belongs to the rows themselves goes with what is shown first.
	return w.show(st.records, keysOf(all, rowKey), own, careful, func() error { return w.write(own, guestOwn, careful) })
}

// show makes the rows of keys show the newest of their records. It calls with
// once, to add to the mutation that shows them.
func (w *writer) show(records *relation, keys []merge.Key, own []*merge.Row, careful bool, with func() error) error {
	mine := map[merge.Key]*merge.Row{}
	for _, r := range own {
		mine[r.Key] = r
	}
	w.shows = map[merge.Key]*merge.Row{} // what was written last
	for round := range maxRounds {
		newest, rows, err := w.newest(records, keys)
		if err != nil {
			return err
		}
		keys = slices.DeleteFunc(keys, func(k merge.Key) bool {
			rec, row, last := newest[k], rows[k], w.shows[k]
			return rec == nil || row != nil && w.r.agrees(row, rec) || last != nil && w.r.agrees(last, rec)
		})
		if round > 0 && len(keys) == 0 {
			return nil
		}
		if round > 0 {
			if err := pause(w.ctx, min(round/4, 4)); err != nil {
				return err
			}
		}
		for _, k := range keys {
			w.shows[k] = newest[k]
		}
		if err := w.project(keys, newest, rows, mine, careful); err != nil {
			return err
		}
		if round == 0 {
			if err := with(); err != nil || len(keys) == 0 {
				return err
			}
		}
		if err := w.flush(); err != nil {
			return err
		}
	}
	return operator("table %s: other writers were in the way %d times", w.r.name, maxRounds)
}

// newest reads the records of keys and takes the newest of each, and reads what
// their rows show.
func (w *writer) newest(records *relation, keys []merge.Key) (newest, rows map[merge.Key]*merge.Row, err error) {
	newest, rows = map[merge.Key]*merge.Row{}, map[merge.Key]*merge.Row{}
	of, shown := records.readColumns(), w.r.readColumns()
	for chunk := range slices.Chunk(keys, keysPerQuery) {
		found, err := w.selectAll(w.ctx,
			selection{records, records.among(chunk), columnNames(of), ""},
			selection{w.r, w.r.among(chunk), columnNames(shown), ""})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range found[0] {
			r := records.row(of, x)
			if n := newest[r.Key]; n == nil || merge.Newer(r.Occupant, n.Occupant, nil) {
				newest[r.Key] = r
			}
		}
		for _, x := range found[1] {
			r := w.r.row(shown, x)
			rows[r.Key] = r
		}
	}
	return newest, rows, nil
}

// agrees tells whether a row shows a record.
func (r *relation) agrees(row, rec *merge.Row) bool {
	for _, c := range append(slices.Clone(r.shown), r.identity...) {
		a, ok := c.Of(row)
		b, known := c.Of(rec)
		if ok != known || a != b {
			return false
		}
	}
	return true
}

// project adds to the mutation what shows the records of keys.
func (w *writer) project(keys []merge.Key, newest, rows, mine map[merge.Key]*merge.Row, careful bool) error {
	// What changes a value moves touch, and what changes but a version does not.
	var quiet, loud, updates []merge.Key
	for _, k := range keys {
		switch {
		case careful && rows[k] != nil:
			updates = append(updates, k)
		case len(w.r.touch) > 0 && rows[k] != nil && w.r.sameValues(rows[k], newest[k]):
			quiet = append(quiet, k)
		default:
			loud = append(loud, k)
		}
	}
	columns := append(slices.Clone(w.r.shown), w.r.identity...)
	for _, group := range []struct {
		keys  []merge.Key
		touch []*column
	}{{loud, w.r.touch}, {quiet, nil}} {
		names := columnNames(append(slices.Clone(columns), group.touch...))
		var push func(keys []merge.Key) error
		push = func(keys []merge.Key) error {
			d := &document{}
			var objects [][]byte
			var arms []exp
			for _, k := range keys {
				row := mine[k]
				if row == nil {
					row = &merge.Row{Key: k, Cells: make([]merge.Cell, len(w.r.table.Columns)), Scopes: make([]merge.Version, len(w.r.table.Scopes()))}
				}
				objects = append(objects, w.r.object(row, nil, newest[k]))
				arms = append(arms, allOf(w.r.sameKey(row), w.r.newer(newest[k])))
			}
			d.upsert(w.r, d.objects(w.r, objects), names, anyOf(arms...), false, func(answer) {})
			if half := len(keys) / 2; half > 0 && d.bytes() > w.limit() {
				if err := push(keys[:half]); err != nil {
					return err
				}
				return push(keys[half:])
			}
			return w.push(d)
		}
		for chunk := range slices.Chunk(group.keys, maxRows) {
			if err := push(chunk); err != nil {
				return err
			}
		}
	}
	for _, k := range updates {
		touch := w.r.touch
		if w.r.sameValues(rows[k], newest[k]) {
			touch = nil
		}
		d := &document{}
		g := register{columns: columns}
		d.update(w.r, newest[k], g.set(newest[k], nil, touch), w.r.newer(newest[k]), func(answer) {})
		if err := w.push(d); err != nil {
			return err
		}
	}
	return nil
}

// sameValues tells whether a row shows the values of a record, whatever their
// versions.
func (r *relation) sameValues(row, rec *merge.Row) bool {
	return !slices.ContainsFunc(r.shown, func(c *column) bool {
		return c.Kind == compile.CellParam && row.Cells[c.Index].Value != rec.Cells[c.Index].Value
	})
}
