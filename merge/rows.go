package merge

import (
	"maps"
	"slices"
)

// Rows gives the rows that all the changes of one table together make, as a
// user sees them, one per key, sorted by key. Changes that may not insert count
// only where another change inserts the row.
//
// It is what everything else must agree with: links are resolved, then changes
// are joined per key and occupant, the newest occupant is taken, complete lists
// and deletes are applied.
func Rows(t *Table, changes []*Change) []*Row {
	links := Links{}
	for _, c := range changes {
		for _, l := range c.Links {
			links[l] = true
		}
	}
	chains := NewChains(links)
	sets := map[Key]Set{}
	inserted := map[Key]bool{}
	f := NewFolder(t)
	for _, c := range changes {
		if c.Replaces {
			s := Set{Group: c.Key, Version: c.Version, At: c.DeletedAt}
			sets[c.Key] = JoinSets(s, sets[c.Key])
			continue
		}
		for _, r := range Lift(Resolved(c, chains)) {
			inserted[r.Key] = inserted[r.Key] || r.IfMissing == Insert && r.Written
			r.IfMissing = Insert
			f.AddRow(r)
		}
	}
	parts := map[Key][]*Row{}
	for _, r := range f.Rows() {
		parts[r.Key] = append(parts[r.Key], r)
	}
	var out []*Row
	for _, k := range slices.Sorted(maps.Keys(parts)) {
		if !inserted[k] {
			continue
		}
		r := Project(t, parts[k], chains)
		if t.Group != nil {
			r = sets[t.GroupOf(k)].Under(r)
		}
		if r = t.Shown(r); r != nil {
			out = append(out, withRoot(t, r, chains))
		}
	}
	return out
}

// Resolved gives a change of a chained table under the key of its chain, about
// its own identity. Any other change it returns as it is.
func Resolved(c *Change, chains *Chains) *Change {
	if !c.Table.Chained {
		return c
	}
	out := *c
	id := string(c.Key)
	out.Occupant = &Occupant{ID: id}
	if c.Occupant != nil {
		out.Occupant.Since = c.Occupant.Since
	}
	out.Key = NewKey(chains.Root(id))
	return &out
}

// withRoot fills the columns that show the first identity of the key's chain.
func withRoot(t *Table, r *Row, chains *Chains) *Row {
	for i := range t.Columns {
		if t.Columns[i].Rule != Chain {
			continue
		}
		out := *r
		out.Cells = slices.Clone(r.Cells)
		out.Cells[i] = Cell{Set: true, Value: Value{text: chains.Root(string(r.Key)), ok: true}}
		r = &out
	}
	return r
}
