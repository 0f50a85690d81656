package merge

import (
	"maps"
	"slices"
)

// Batch is what changes of one table say together.
type Batch struct {
	// Rows are folded, sorted by key. On a chained table the key is still the
	// identity that the changes are about.
	Rows []*Row
	// Sets are joined per group, sorted by group; Links are each there once,
	// sorted.
	Sets  []Set
	Links []Link
}

// FoldAll folds changes of one table.
func FoldAll(t *Table, changes []*Change) Batch {
	f := NewFolder(t)
	for _, c := range changes {
		f.Add(c)
	}
	return f.Batch()
}

// Held is what a sink keeps of the keys that a batch concerns, of a table whose
// changes cannot be told from one row alone. A sink locks and reads it, lets
// Write join the batch into it, and stores what has been touched; it need not
// hold what the batch does not concern. See Concerns.
type Held struct {
	table *Table
	// parts holds per key the row as it is stored: one, or on a table with
	// occupants one per occupant and one that belongs to the row itself.
	parts  map[Key][]*Row
	sets   map[Key]Set
	links  Links
	chains *Chains
}

// NewHeld makes a Held of what is stored: rows with their deletes (on a table
// with occupants their records, and not the rows that show them), the sets of
// groups, and links. A row's counters carry the ledger entries of the events
// that the batch counts, or if links may join its chain to another, all entries.
func NewHeld(t *Table, parts []*Row, sets []Set, links Links) *Held {
	h := &Held{table: t, parts: map[Key][]*Row{}, sets: map[Key]Set{}, links: Links{}}
	for _, r := range parts {
		h.parts[r.Key] = append(h.parts[r.Key], r)
	}
	for _, s := range sets {
		h.sets[s.Group] = s
	}
	maps.Copy(h.links, links)
	h.chains = NewChains(h.links)
	return h
}

// Written is what Write did.
type Written struct {
	// Touched are the keys whose parts may have changed, sorted, those among
	// them that are no key of a chain any more.
	Touched []Key
	// Sets are the sets that grew, and Links the links that are new.
	Sets  []Set
	Links []Link
	// Absent are the batch's own rows of IfMissing Wait for which there is no
	// row.
	Absent []*Row
}

// Write joins a batch.
func (h *Held) Write(b Batch) Written {
	var w Written
	touched := map[Key]bool{}
	for _, l := range b.Links {
		if !h.links[l] {
			h.links[l] = true
			w.Links = append(w.Links, l)
		}
	}
	if w.Links != nil {
		h.rechain(touched)
	}
	members := h.groups(b.Sets)
	for _, s := range b.Sets {
		was := h.sets[s.Group]
		if s = JoinSets(s, was); s == was {
			continue
		}
		h.sets[s.Group] = s
		w.Sets = append(w.Sets, s)
		for _, k := range members[s.Group] {
			touched[k] = true
		}
	}
	for _, mode := range []Missing{Insert, Wait, Skip} {
		for _, r := range b.Rows {
			if r.IfMissing != mode {
				continue
			}
			given := r
			r = h.resolved(r)
			if mode != Insert && h.Shown(r.Key) == nil {
				if mode == Wait {
					w.Absent = append(w.Absent, given)
				}
				continue
			}
			h.join(r)
			touched[r.Key] = true
		}
	}
	for k := range touched {
		h.settle(k)
	}
	w.Touched = slices.Sorted(maps.Keys(touched))
	return w
}

// groups gives what is held by group, if there are sets.
func (h *Held) groups(sets []Set) map[Key][]Key {
	out := map[Key][]Key{}
	if len(sets) == 0 {
		return out
	}
	for k := range h.parts {
		g := h.table.GroupOf(k)
		out[g] = append(out[g], k)
	}
	return out
}

// resolved gives a row of a chained table under the key of its chain.
func (h *Held) resolved(r *Row) *Row {
	if !h.table.Chained {
		return r
	}
	out := *r
	out.Key = NewKey(h.chains.Root(string(r.Key)))
	return &out
}

// rechain moves what is held under a key that has become part of another chain.
func (h *Held) rechain(touched map[Key]bool) {
	before := h.chains
	h.chains = NewChains(h.links)
	for _, k := range slices.Sorted(maps.Keys(h.parts)) {
		root := NewKey(h.chains.Root(string(k)))
		if !h.table.Chained {
			if before.Root(string(k)) != string(root) {
				touched[k] = true // its Chain columns show another identity
			}
			continue
		}
		touched[root] = true // an identity may have been followed
		if root == k {
			continue
		}
		moved := h.parts[k]
		delete(h.parts, k)
		touched[k] = true
		for _, r := range moved {
			out := *r
			out.Key = root
			h.join(&out)
		}
	}
}

// join joins one part into what is held.
func (h *Held) join(r *Row) {
	list := h.parts[r.Key]
	i := slices.IndexFunc(list, func(x *Row) bool { return samePart(x, r) })
	if i < 0 {
		h.parts[r.Key] = append(list, r)
		return
	}
	list[i] = renewed(h.table, Join(h.table, list[i], r), list[i], r)
}

// renewed lets what comes in count at an equal version: it is the same event, as
// the config says it now, while what is stored may be of an earlier config or
// edited by hand.
func renewed(t *Table, joined, stored, in *Row) *Row {
	for i := range joined.Cells {
		x, y := &stored.Cells[i], &in.Cells[i]
		if !x.Set || !y.Set || x.Value == y.Value {
			continue
		}
		if s := t.scopeOf[i]; s >= 0 && in.Scopes[s] != "" && in.Scopes[s] == stored.Scopes[s] || t.Columns[i].Rule == First && y.Version != "" && x.Version == y.Version {
			joined.Cells[i] = *y
		}
	}
	return joined
}

func samePart(a, b *Row) bool {
	if a.Occupant == nil || b.Occupant == nil {
		return a.Occupant == nil && b.Occupant == nil
	}
	return a.Occupant.ID == b.Occupant.ID
}

// settle forgets what can never show again. Records of occupants are kept as
// they are: another may hold the row tomorrow.
func (h *Held) settle(k Key) {
	if h.table.Occupied || len(h.parts[k]) == 0 {
		return
	}
	r := h.parts[k][0]
	set := h.setOf(k)
	under := set.Under(r)
	if shown := h.table.Shown(under); shown != nil {
		h.parts[k] = []*Row{shown}
		return
	}
	if r.Deleted <= set.Version {
		delete(h.parts, k) // the set remembers it
		return
	}
	h.parts[k] = []*Row{{Key: k, Deleted: r.Deleted, DeletedAt: r.DeletedAt, Scopes: make([]Version, len(r.Scopes)), Cells: make([]Cell, len(r.Cells))}}
}

func (h *Held) setOf(k Key) Set {
	if h.table.Group == nil {
		return Set{}
	}
	return h.sets[h.table.GroupOf(k)]
}

// Shown gives the row that a key shows, or nil.
func (h *Held) Shown(k Key) *Row {
	if len(h.parts[k]) == 0 {
		return nil
	}
	r := h.table.Shown(h.setOf(k).Under(Project(h.table, h.parts[k], h.chains)))
	if r == nil {
		return nil
	}
	return withRoot(h.table, r, h.chains)
}

// Set gives the set of a group, which has no version if there is none.
func (h *Held) Set(group Key) Set { return h.sets[group] }

// Parts gives what is held of a key: on a table with occupants their records
// and what belongs to the row itself, else the one row, which is not Written if
// only a delete of it is known. None means that nothing is to be kept.
func (h *Held) Parts(k Key) []*Row { return h.parts[k] }

// Chains gives the chains of what is held.
func (h *Held) Chains() *Chains { return h.chains }
