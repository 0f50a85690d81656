package mapping

import (
	"slices"

	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/merge"
)

// into lists the types of columns that take a kind of value. A text fits all, as
// far as is known before it is read.
var into = map[expr.Kind][]merge.TypeKind{
	expr.KindBool:   {merge.Bool, merge.Text, merge.JSON},
	expr.KindNumber: {merge.Int, merge.Numeric, merge.Float, merge.Text, merge.JSON},
	expr.KindTime:   {merge.Timestamp, merge.Text, merge.JSON},
	expr.KindList:   {merge.JSON, merge.TextArray},
	expr.KindObject: {merge.JSON},
}

// fits refuses an expression whose value cannot fit its column, as far as that
// is known without an event. col is nil for a part of a key.
func (c *compiler) fits(m *Mapping, e *Expr, t merge.Type, col *merge.Column) {
	if e == nil {
		return
	}
	if kinds, ok := into[e.Kind]; ok && !slices.Contains(kinds, t.Kind) {
		hint := ""
		switch {
		case t.Kind == merge.Timestamp && e.Kind == expr.KindNumber:
			hint = " Write timestamp(…) around it."
		case t.Kind == merge.Date && e.Kind == expr.KindTime:
			hint = " Say which day, as in string(time).substring(0, 10)."
		}
		c.fail(e, "gives %s, which does not fit %s.%s", e.Kind, t, hint)
		return
	}
	if !e.Constant || e.MaybeUnset {
		return
	}
	s := m.Source.Config
	val, err := e.Eval(&expr.Input{Zone: s.Zone})
	if err != nil {
		c.fail(e, "%v", err)
		return
	}
	if isNothing(val) {
		return
	}
	v, _, err := valuer{zone: s.Zone, dead: s.BadText == "dead"}.value(t, val, 0)
	switch {
	case err != nil:
		c.fail(e, "%v", err)
	case col != nil && col.Rule == merge.Ladder && !v.IsNull() && !hasRung(col, v):
		c.fail(e, "%q is not a rung of the ladder %v.", v.Text(), col.Rungs)
	}
}
