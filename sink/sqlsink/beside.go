package sqlsink

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// besideVersions are the versions of one row that lie beside it, by the name of
// the column that would hold them in the row.
type besideVersions struct {
	was, is map[string]string
}

// holdVersions locks the entries of all keys, in one order, and reads them.
// From here on no other writer decides about these rows.
func (w *writer) holdVersions(rows []*merge.Row) error {
	w.versions = map[merge.Key]*besideVersions{}
	byText := map[string]*besideVersions{}
	for _, r := range rows {
		if w.versions[r.Key] == nil {
			v := &besideVersions{was: map[string]string{}}
			w.versions[r.Key] = v
			byText[compile.KeyText(r.Key)] = v
		}
	}
	keys := slices.Sorted(maps.Keys(byText))
	if _, err := w.side(w.ctx, w.s.Beside.Claim, w.table.Name, texts(keys)); err != nil {
		return err
	}
	err := w.sideRows(w.ctx, w.s.Beside.Hold, w.table.Name, texts(keys), func(cols []cell) error {
		key, versions := cols[0].text, cols[1].text
		if versions == "" {
			return nil
		}
		if err := json.Unmarshal([]byte(versions), &byText[key].was); err != nil {
			return fmt.Errorf("versions of %s %s: %w", w.table.Name, key, err)
		}
		return nil
	})
	for _, v := range byText {
		v.is = maps.Clone(v.was)
	}
	return err
}

func (w *writer) saveVersions() error {
	moved := newColumns(2)
	for _, k := range slices.Sorted(maps.Keys(w.versions)) {
		v := w.versions[k]
		if maps.Equal(v.was, v.is) {
			continue
		}
		b, err := json.Marshal(v.is)
		if err != nil {
			return err
		}
		moved.add(cell{compile.KeyText(k), true}, cell{string(b), true})
	}
	_, err := w.side(w.ctx, w.s.Beside.Save, w.table.Name, moved)
	return err
}

// ownBeside joins rows under the lock on their versions: rows that are not
// there are inserted, and all others joined with what the versions say.
func (w *writer) ownBeside(full, partial, guests []item) error {
	there, err := w.there(full)
	if err != nil {
		return err
	}
	if err := w.insertBeside(there.absent); err != nil {
		return err
	}
	if err := w.joinBeside(there); err != nil {
		return err
	}
	if there, err = w.there(partial); err != nil {
		return err
	}
	if w.live.FillsRows {
		err = w.insertBeside(there.absent)
	} else {
		w.refuse(there.absent)
	}
	if err != nil {
		return err
	}
	if err := w.joinBeside(there); err != nil {
		return err
	}
	if there, err = w.there(guests); err != nil {
		return err
	}
	w.missing(there.absent)
	for _, missing := range []merge.Missing{merge.Wait, merge.Skip} { // no key comes twice in one
		some := &presence{}
		for i, it := range there.present {
			if it.row.IfMissing == missing {
				some.present, some.empty = append(some.present, it), append(some.empty, there.empty[i])
			}
		}
		if err := w.joinBeside(some); err != nil {
			return err
		}
	}
	return nil
}

// insertBeside inserts rows that were not there a moment ago. Their versions
// are their own: what a row that is gone has left says nothing about them.
func (w *writer) insertBeside(items []item) error {
	if len(items) == 0 {
		return nil
	}
	n, err := w.exec(w.ctx, w.s.Stub, items)
	if err != nil {
		return err
	}
	if n < len(items) {
		return &sink.Error{Action: sink.Retry, Message: "table " + w.table.Name + ": somebody else inserted a row at the same moment"}
	}
	w.result.Written += n
	for _, it := range items {
		v := w.versions[it.row.Key].is
		for _, p := range slices.Concat(w.s.Beside.Scopes, w.s.Beside.Firsts) {
			delete(v, p.Name)
			if s, ok := p.Of(it.row); ok {
				v[p.Name] = s
			}
		}
	}
	return nil
}

func (w *writer) joinBeside(p *presence) error {
	if len(p.present) == 0 {
		return nil
	}
	items := slices.Clone(p.present)
	moved := map[merge.Key]bool{}
	for i, it := range items {
		v := w.versions[it.row.Key]
		items[i].stored = maps.Clone(v.is)
		for _, s := range w.s.Beside.Scopes {
			if in, ok := s.Of(it.row); ok && in > v.is[s.Name] {
				v.is[s.Name] = in
				moved[it.row.Key] = true
			}
		}
		for j, f := range w.s.Beside.Firsts {
			in, ok := f.Of(it.row)
			have, stored := v.is[f.Name]
			if ok && (stored && in < have || !stored && p.empty[i][j]) {
				v.is[f.Name] = in
				moved[it.row.Key] = true
			}
		}
	}
	n, err := 0, error(nil)
	if w.s.Beside.Join.SQL != "" {
		n, err = w.exec(w.ctx, w.s.Beside.Join, items)
	}
	n = min(max(n, len(moved)), len(items))
	w.result.Written += n
	w.result.Unchanged += len(items) - n
	return err
}

// showBeside shows the records of occupants that are not older than what their
// rows show, which the versions tell.
func (w *writer) showBeside(joined, guests, own []item) error {
	o := w.s.Occupants
	for _, list := range []struct {
		items  []item
		insert bool
	}{{withOwn(joined, own), true}, {guests, false}} {
		if len(list.items) == 0 {
			continue
		}
		var show []item
		err := w.query(w.ctx, o.Records, list.items, func(n int, cols []cell) error {
			it := list.items[n]
			v := w.versions[it.row.Key].is
			since, id := cols[0].text, cols[1].text
			if held, ok := v[compile.OccupantColumn]; ok && !notOlder(since, id, v[compile.SinceColumn], held) {
				return nil
			}
			delete(v, compile.SinceColumn)
			if cols[0].ok {
				v[compile.SinceColumn] = since
			}
			v[compile.OccupantColumn] = id
			for i, p := range o.Versions {
				delete(v, p.Name)
				if c := cols[2+i]; c.ok {
					v[p.Name] = c.text
				}
			}
			show = append(show, it)
			return nil
		})
		if err != nil {
			return err
		}
		show = newestOnly(show, w.versions)
		there, err := w.there(show)
		if err != nil {
			return err
		}
		if err := w.show(o.Reproject, there.present); err != nil {
			return err
		}
		if !list.insert {
			continue
		}
		if err := w.show(o.Project, there.absent); err != nil {
			return err
		}
		if there, err = w.there(there.absent); err != nil {
			return err
		}
		w.refuse(there.absent)
		for _, it := range there.present {
			v := w.versions[it.row.Key].is
			for _, p := range slices.Concat(w.s.Beside.Scopes, w.s.Beside.Firsts) {
				if s, ok := p.Of(it.row); ok {
					v[p.Name] = s
				}
			}
		}
	}
	return nil
}

func notOlder(since, id, heldSince, held string) bool {
	if since != heldSince {
		return since > heldSince
	}
	return id >= held
}

// newestOnly keeps of the items of one key the one that the versions name.
func newestOnly(items []item, versions map[merge.Key]*besideVersions) []item {
	return slices.DeleteFunc(items, func(it item) bool {
		return versions[it.row.Key].is[compile.OccupantColumn] != it.row.Occupant.ID
	})
}
