package pipeline

import (
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// folded is what one transaction writes, made of units.
type folded struct {
	units []unit
	batch *sink.Batch
}

// fold folds units into a batch: per table, and parents as rows of their own.
func (r *Runner) fold(units []unit) folded {
	f := folded{units: units, batch: &sink.Batch{}}
	folders := make([]*merge.Folder, len(r.o.Tables))
	into := func(t *merge.Table) *merge.Folder {
		i := r.rank[t]
		if folders[i] == nil {
			folders[i] = merge.NewFolder(t)
		}
		return folders[i]
	}
	for _, u := range units {
		for _, p := range u.change.Parents {
			if !p.Wait {
				into(p.Table).AddRow(stub(p, u.change))
			}
		}
		into(u.change.Table).Add(u.change)
	}
	for i, folder := range folders {
		if folder == nil {
			continue
		}
		b := folder.Batch()
		f.batch.Groups = append(f.batch.Groups, sink.Group{Table: r.o.Tables[i], Rows: b.Rows, Sets: b.Sets, Links: b.Links})
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
