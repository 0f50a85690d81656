package sqlsink

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
)

var timeType = merge.Type{Kind: merge.Timestamp}

// read reads what a batch concerns, under the locks.
func (w *holder) read() error {
	keys := map[merge.Key]bool{}
	for _, r := range w.g.Rows {
		keys[r.Key] = true
	}
	joined := map[string]bool{} // identities whose chain grows
	if w.s.Links != nil {
		var err error
		if keys, joined, err = w.readLinks(keys); err != nil {
			return err
		}
	}
	grown, err := w.readSets(keys)
	if err != nil {
		return err
	}
	if err := w.readRows(keys, grown); err != nil {
		return err
	}
	if err := w.readTombstones(keys); err != nil {
		return err
	}
	return w.readLedger(joined)
}

// readLinks reads the chains of the identities that a batch names, and gives the
// keys of the rows that it concerns, and the identities whose chain grows.
func (w *holder) readLinks(rows map[merge.Key]bool) (map[merge.Key]bool, map[string]bool, error) {
	ids := map[string]bool{}
	for k := range rows {
		ids[string(k)] = true
	}
	for _, l := range w.g.Links {
		ids[l.Old], ids[l.New] = true, true
	}
	root := map[string]string{}
	take := func(cols []cell) error {
		root[cols[0].text] = cols[1].text
		return nil
	}
	if err := w.sideRows(w.ctx, w.s.Aliases.Get, w.name(), texts(slices.Sorted(maps.Keys(ids))), take); err != nil {
		return nil, nil, err
	}
	roots := map[string]bool{}
	for _, r := range root {
		roots[r] = true
	}
	if err := w.sideRows(w.ctx, w.s.Members, w.name(), texts(slices.Sorted(maps.Keys(roots))), take); err != nil {
		return nil, nil, err
	}
	err := w.sideRows(w.ctx, w.s.After, w.name(), texts(slices.Sorted(maps.Keys(root))), func(cols []cell) error {
		w.links[merge.Link{Old: cols[0].text, New: cols[1].text}] = true
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	rootOf := func(id string) string {
		if r, ok := root[id]; ok {
			return r
		}
		return id
	}
	growing := map[string]bool{} // roots
	for _, l := range w.g.Links {
		if !w.links[l] {
			growing[rootOf(l.Old)], growing[rootOf(l.New)] = true, true
		}
	}
	keys, joined := map[merge.Key]bool{}, map[string]bool{}
	for id := range ids {
		root[id] = rootOf(id)
	}
	for id, r := range root {
		if growing[r] {
			joined[id] = true
		}
		switch {
		case w.table.Chained:
			keys[merge.NewKey(r)] = true
		case growing[r] || rows[merge.NewKey(id)]:
			keys[merge.NewKey(id)] = true
		}
	}
	w.chains = merge.NewChains(w.links)
	return keys, joined, nil
}

// readSets reads the complete lists of the groups that a batch concerns, and
// gives the groups of which it has newer ones.
func (w *holder) readSets(keys map[merge.Key]bool) ([]merge.Key, error) {
	if w.s.Sets == nil {
		return nil, nil
	}
	groups := map[merge.Key]bool{}
	for k := range keys {
		groups[w.table.GroupOf(k)] = true
	}
	for _, s := range w.g.Sets {
		groups[s.Group] = true
	}
	err := w.sideRows(w.ctx, w.s.Sets.Get, w.name(), keyTexts(slices.Sorted(maps.Keys(groups))), func(cols []cell) error {
		k, err := compile.ParseKeyText(cols[0].text)
		w.sets[k] = merge.Set{Group: k, Version: merge.Version(cols[1].text), At: valueOf(timeType, cols[2])}
		return err
	})
	var grown []merge.Key
	for _, s := range w.g.Sets {
		if was := w.sets[s.Group]; merge.JoinSets(s, was) != was {
			grown = append(grown, s.Group)
		}
	}
	return grown, err
}

// readRows reads and locks the rows of keys, and all rows of groups, whose keys
// it adds; on a table with occupants their records too.
func (w *holder) readRows(keys map[merge.Key]bool, groups []merge.Key) error {
	take := func(cols []cell) *merge.Row {
		r := rowOf(w.table, w.s.Fields, cols)
		if w.s.Hold != "" {
			complete(w.table, r, w.beside[r.Key])
		}
		w.complete(r)
		r.Written = true
		return r
	}
	takeRecord := func(cols []cell) *merge.Row {
		r := rowOf(w.table, w.s.RecordFields, cols)
		w.complete(r)
		r.Written = r.Seen != "" || r.Deleted == ""
		return r
	}
	list := itemsOfKeys(groups)
	if len(list) > 0 && w.s.Keys != "" {
		err := w.all(w.ctx, w.s.Keys, nil, func(cols []cell) error {
			parts := make([]string, len(cols))
			for i, c := range cols {
				parts[i] = valueOf(w.table.Key[i].Type, c).Text()
			}
			keys[merge.NewKey(parts...)] = true
			return nil
		})
		if err != nil {
			return err
		}
	} else if len(list) > 0 {
		err := w.query(w.ctx, w.s.Group, list, func(_ int, cols []cell) error {
			r := take(cols)
			keys[r.Key] = true
			return nil
		})
		if err == nil && w.table.Occupied {
			err = w.query(w.ctx, w.s.RecordGroup, list, func(_ int, cols []cell) error {
				keys[takeRecord(cols).Key] = true
				return nil
			})
		}
		if err != nil {
			return err
		}
	}
	list = itemsOfKeys(slices.Sorted(maps.Keys(keys)))
	if len(list) == 0 {
		return nil
	}
	if err := w.readBeside(keys); err != nil {
		return err
	}
	err := w.query(w.ctx, w.s.Rows, list, func(n int, cols []cell) error {
		r := take(cols)
		r.Key = list[n].row.Key
		w.rows[r.Key] = r
		return nil
	})
	if err != nil || !w.table.Occupied {
		return err
	}
	return w.query(w.ctx, w.s.Records, list, func(n int, cols []cell) error {
		r := takeRecord(cols)
		r.Key = list[n].row.Key
		w.records[recordOf(r)] = r
		return nil
	})
}

// readBeside reads the versions that lie beside the rows of keys.
func (w *holder) readBeside(keys map[merge.Key]bool) error {
	if w.s.Hold == "" {
		return nil
	}
	return w.sideRows(w.ctx, w.s.Hold, w.table.Name, keyTexts(slices.Sorted(maps.Keys(keys))), func(cols []cell) error {
		k, err := compile.ParseKeyText(cols[0].text)
		if err != nil || !cols[1].ok {
			return err
		}
		v := map[string]string{}
		w.beside[k] = v
		if err := json.Unmarshal([]byte(cols[1].text), &v); err != nil {
			return fmt.Errorf("versions of %s %s: %w", w.table.Name, cols[0].text, err)
		}
		return nil
	})
}

// complete says which cells of a stored row are set, and fills in how new the
// row is where nothing was stored of that.
func (w *holder) complete(r *merge.Row) {
	for s, v := range r.Scopes {
		if !w.table.Occupied || r.Occupant == nil || w.table.Scopes()[s] != merge.KeyScope {
			r.Seen = max(r.Seen, v)
		}
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		if s := w.table.ScopeOf(i); s >= 0 && r.Scopes[s] != "" || c.Version != "" {
			c.Set = true
		}
	}
}

func (w *holder) readTombstones(keys map[merge.Key]bool) error {
	if w.s.Tombstones == nil {
		return nil
	}
	var list []merge.Key
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if w.table.OnDelete == merge.DeleteRemove || w.rows[k] == nil { // a row remembers its own delete
			list = append(list, k)
		}
	}
	err := w.sideRows(w.ctx, w.s.Tombstones.Get, w.name(), keyTexts(list), func(cols []cell) error {
		k, err := compile.ParseKeyText(cols[0].text)
		x := tombstone{merge.Version(cols[1].text), valueOf(timeType, cols[2])}
		w.tombs[k] = x
		if r := w.rows[k]; r != nil {
			r.Deleted, r.DeletedAt = x.version, x.at
		}
		return err
	})
	if err != nil {
		return err
	}
	// Last: a tombstone that was not there any more is in what has been purged.
	return w.sideRows(w.ctx, w.s.Meta.Get, w.name(), nil, func(cols []cell) error {
		w.purged = merge.Version(cols[0].text)
		return nil
	})
}

// readLedger reads the entries of the events that a batch counts, and all
// entries of chains that grow.
func (w *holder) readLedger(joined map[string]bool) error {
	if w.s.Ledger == nil {
		return nil
	}
	all := map[merge.Key]bool{}
	for id := range joined {
		if w.table.Chained {
			all[merge.NewKey(w.chains.Root(id))] = true
		}
	}
	for _, k := range w.counting() {
		all[k] = true
	}
	if len(all) > 0 {
		if err := w.sideRows(w.ctx, w.s.LedgerOf, w.name(), keyTexts(slices.Sorted(maps.Keys(all))), w.takeEntry); err != nil {
			return err
		}
	}
	var key, column, identity []cell
	asked := map[entry]bool{}
	for _, r := range w.g.Rows {
		k := r.Key
		if w.table.Chained {
			k = merge.NewKey(w.chains.Root(string(k)))
		}
		for i := range r.Cells {
			for id := range r.Cells[i].Ledger {
				e := entry{k, i, id}
				if asked[e] || all[k] {
					continue
				}
				asked[e] = true
				key, column, identity = append(key, cell{compile.KeyText(k), true}), append(column, cell{w.table.Columns[i].Name, true}), append(identity, cell{id, true})
			}
		}
	}
	return w.sideRows(w.ctx, w.s.Ledger.Get, w.name(), [][]cell{key, column, identity}, w.takeEntry)
}

// takeEntry takes in one entry of the ledger.
func (w *holder) takeEntry(cols []cell) error {
	k, err := compile.ParseKeyText(cols[0].text)
	i := w.table.Column(cols[1].text)
	if err != nil || i < 0 {
		return err // a counter that the config does not have any more
	}
	w.ledger[entry{k, i, cols[2].text}] = merge.Amount{Version: merge.Version(cols[3].text), Value: valueOf(merge.Type{Kind: merge.Numeric}, cols[4])}
	return nil
}

// readLedgers reads all entries of keys.
func (w *holder) readLedgers(keys []merge.Key) error {
	if w.s.Ledger == nil {
		return nil
	}
	return w.sideRows(w.ctx, w.s.LedgerOf, w.name(), keyTexts(keys), w.takeEntry)
}

func (w *holder) name() string { return compile.TableName(w.table.Name) }

func itemsOfKeys(keys []merge.Key) []item {
	out := make([]item, len(keys))
	for i, k := range keys {
		out[i].row = &merge.Row{Key: k}
	}
	return out
}

// texts and keyTexts make one column of parameters.
func texts(list []string) [][]cell {
	column := make([]cell, len(list))
	for i, s := range list {
		column[i] = cell{s, true}
	}
	return [][]cell{column}
}

func keyTexts(keys []merge.Key) [][]cell {
	column := make([]cell, len(keys))
	for i, k := range keys {
		column[i] = cell{compile.KeyText(k), true}
	}
	return [][]cell{column}
}
