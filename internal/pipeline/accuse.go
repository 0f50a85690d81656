package pipeline

import (
	"errors"
	"slices"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// accusation is the changes of one row that a sink found at fault.
type accusation struct {
	units []unit
	err   error
	stub  bool // the row is a parent's, of which only the key is known
}

// accuse splits units by what a sink says of their rows. An error that names no
// rows accuses nobody.
func accuse(units []unit, fault error) (accused []accusation, rest []unit) {
	var be *sink.BatchError
	if !errors.As(fault, &be) {
		return nil, units
	}
	rest = units
	for _, re := range be.Rows {
		if re.Table == nil || re.Row == nil || re.Err == nil {
			continue
		}
		a := accusation{err: re.Err, stub: isStub(re.Row)}
		var others []unit
		for _, u := range rest {
			if contributes(u.change, re.RowRef) {
				a.units = append(a.units, u)
			} else {
				others = append(others, u)
			}
		}
		if len(a.units) > 0 {
			accused, rest = append(accused, a), others
		}
	}
	return accused, rest
}

func isStub(r *merge.Row) bool {
	return !slices.ContainsFunc(r.Cells, func(c merge.Cell) bool { return c.Set })
}

// contributes tells whether a change is part of a folded row.
func contributes(c *merge.Change, ref sink.RowRef) bool {
	if !c.Replaces && c.Table == ref.Table.Table && c.Key == ref.Row.Key && c.IfMissing == ref.Row.IfMissing {
		return ref.Row.Occupant == nil || c.Occupant != nil && c.Occupant.ID == ref.Row.Occupant.ID
	}
	return slices.ContainsFunc(c.Parents, func(p merge.Parent) bool {
		return p.Table == ref.Table.Table && p.Key == ref.Row.Key
	})
}
