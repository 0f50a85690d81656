package mapping

import (
	"fmt"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/merge"
)

func (v *evaluation) cells(m *Mapping) []merge.Cell {
	t := m.Table.Table.Table
	cells := make([]merge.Cell, len(t.Columns))
	for i, a := range m.Columns {
		if a == nil {
			continue
		}
		r := v.eval(a.Expr)
		val, err := r.val, r.err
		bad := r.bad
		if err == nil && a.Rest {
			val, bad, err = v.member(m, a.Expr, r.val, t.Columns[i].Name)
		}
		if err != nil {
			v.failed(m, t.Columns[i].Name, err)
			continue
		}
		cell, err := v.cell(m, i, val, bad)
		if err != nil {
			v.fault(m, t.Columns[i].Name, "%v", err)
			continue
		}
		cells[i] = cell
	}
	return cells
}

// member takes one column from the object of "*". In scope row it has to be
// there; elsewhere one that is lacking says nothing.
func (v *evaluation) member(m *Mapping, e *Expr, of ref.Val, name string) (ref.Val, int, error) {
	object, ok := of.(traits.Mapper)
	if !ok {
		return nil, 0, fmt.Errorf("\"*\": %s is %s, not an object", e.Text, expr.Describe(of))
	}
	in := &v.input
	if v.ofWhole(e) {
		in = &v.kept(e.Reads).input
	}
	before := in.BadText()
	val, ok := object.Find(types.String(name))
	if !ok {
		return expr.Absent, 0, nil
	}
	return val, in.BadText() - before, nil
}

func (v *evaluation) cell(m *Mapping, i int, val ref.Val, bad int) (merge.Cell, error) {
	t := m.Table.Table.Table
	col := &t.Columns[i]
	inRow := col.Rule == merge.Latest && col.Scope == merge.RowScope
	switch {
	case val == expr.Unset && inRow:
		return merge.Cell{}, fmt.Errorf("unset is not allowed in scope row")
	case val == expr.Unset:
		return merge.Cell{}, nil
	case val == expr.Absent && inRow:
		if m.Columns[i].Rest {
			return merge.Cell{}, fmt.Errorf("no such field: %s has no %s", m.Columns[i].Expr.Text, col.Name)
		}
		return merge.Cell{Set: true}, nil
	case val == expr.Absent:
		return merge.Cell{}, nil
	}
	if col.Rule == merge.Count {
		return counted(val), nil
	}
	member := ""
	if m.Columns[i].Rest {
		member = col.Name
	}
	value, replaced, err := v.value(m.Columns[i].Expr, member, col.Type, val, bad)
	if err != nil {
		return merge.Cell{}, err
	}
	if col.Rule == merge.Ladder && !value.IsNull() && !hasRung(col, value) {
		if m.Table.ignores[i] {
			v.out.Ignored++
			return merge.Cell{}, nil
		}
		return merge.Cell{}, fmt.Errorf("%q is not a rung of the ladder %v. Add it where it belongs, or say unknown: ignore.", value.Text(), col.Rungs)
	}
	v.out.Replaced += replaced
	return merge.Cell{Set: true, Value: value}, nil
}

// one is what an event adds to a count.
var one, _ = merge.ParseValue(merge.Type{Kind: merge.Int}, "1")

// counted makes the cell of a count, which takes any value: null and false count
// nothing.
func counted(val ref.Val) merge.Cell {
	if val == types.NullValue || val == types.False {
		return merge.Cell{Set: true}
	}
	return merge.Cell{Set: true, Value: one}
}

func hasRung(c *merge.Column, v merge.Value) bool {
	for _, r := range c.Rungs {
		if r == v.Text() {
			return true
		}
	}
	return false
}
