package pipeline

import (
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// folded is what one transaction writes, made of units.
type folded struct {
	units []unit
	batch *sink.Batch
	// met tells that two changes may have met in one row.
	met bool
}

// fold folds units into a batch: per table, and parents as rows of their own.
func (r *Runner) fold(units []unit) folded {
	f := folded{units: units, batch: &sink.Batch{}}
	folders := make([]*merge.Folder, len(r.o.Tables))
	changes := make([]int, len(r.o.Tables))
	into := func(t *merge.Table) *merge.Folder {
		i := r.rank[t]
		if folders[i] == nil {
			folders[i] = merge.NewFolder(t)
		}
		return folders[i]
	}
	for _, u := range units {
		for _, p := range u.change.Parents {
			into(p.Table).AddRow(stub(p, u.change))
		}
		into(u.change.Table).Add(u.change)
		changes[r.rank[u.change.Table]]++
	}
	for i, folder := range folders {
		if folder == nil {
			continue
		}
		rows := folder.Rows()
		// An occupant's change makes up to two rows, so there counting tells
		// nothing.
		f.met = f.met || changes[i] > len(rows) || changes[i] > 1 && r.o.Tables[i].Occupied
		f.batch.Groups = append(f.batch.Groups, sink.Group{Table: r.o.Tables[i], Rows: rows})
	}
	return f
}

// stub is the row of a parent as a child knows it: its key, and that it exists
// since the child's version.
func stub(p merge.Parent, child *merge.Change) *merge.Row {
	return merge.Lift(&merge.Change{
		Table: p.Table, From: child.From, Mapping: child.Mapping, Key: p.Key,
		Version: child.Version, Cells: make([]merge.Cell, len(p.Table.Columns)),
	})[0]
}

// tieKey is what two changes share that their version cannot tell apart.
type tieKey struct {
	table    *merge.Table
	key      merge.Key
	occupant string
	tuple    string
}

// ties counts and tells of changes of one row whose versions differ only in
// their hash while their values differ: the version is too coarse.
func (r *Runner) ties(w *work) {
	for _, f := range w.folded {
		if !f.met {
			continue
		}
		seen := make(map[tieKey]unit, len(f.units))
		for _, u := range f.units {
			c := u.change
			if c.Version == "" {
				continue
			}
			k := tieKey{table: c.Table, key: c.Key, tuple: c.Version.Tuple()}
			if c.Occupant != nil {
				k.occupant = c.Occupant.ID
			}
			first, ok := seen[k]
			if !ok {
				seen[k] = u
				continue
			}
			if differ(first.change, c) {
				w.stats.Ties++
				r.tellTie(w, first, u)
			}
		}
	}
}

// differ tells whether two changes of one tuple give a latest column different
// values.
func differ(a, b *merge.Change) bool {
	for i := range a.Cells {
		x, y := &a.Cells[i], &b.Cells[i]
		if x.Set && y.Set && a.Table.ScopeOf(i) >= 0 && x.Value != y.Value {
			return true
		}
	}
	return false
}
