package mapping

import (
	"fmt"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/merge"
)

// chain compiles which identity follows which.
func (c *compiler) chain(out *Mapping, m *config.Mapping) {
	if m.Chain == nil {
		return
	}
	out.Previous = c.compileRef(out.Source, m.Chain.Previous, out.names)
	out.Next = c.compileRef(out.Source, m.Chain.Next, out.names)
	for _, e := range []*Expr{out.Previous, out.Next} {
		if e == nil || len(out.Table.Config.Key) == 0 {
			continue
		}
		c.fits(out, e, out.Table.Config.Key[0].Type, nil)
	}
}

// links gives the links of an event; null, what is absent or unset, and an empty
// text are no identity.
func (v *evaluation) links(m *Mapping, key merge.Key) []merge.Link {
	var out []merge.Link
	for i, e := range []*Expr{m.Previous, m.Next} {
		if e == nil {
			continue
		}
		other, ok := v.neighbour(m, e, [...]string{"previous", "next"}[i])
		if !ok || other == string(key) {
			continue
		}
		l := merge.Link{Old: other, New: string(key)}
		if i == 1 {
			l = merge.Link{Old: string(key), New: other}
		}
		out = append(out, l)
	}
	return out
}

func (v *evaluation) neighbour(m *Mapping, e *Expr, what string) (string, bool) {
	r := v.eval(e)
	if r.err != nil {
		v.failed(m, "", fmt.Errorf("chain.%s: %w", what, r.err))
		return "", false
	}
	if isNothing(r.val) {
		return "", false
	}
	val, replaced, err := v.value(e, "", m.Table.Key[0].Type, r.val, r.bad)
	if err != nil {
		v.fault(m, "", "chain.%s: %v", what, err)
		return "", false
	}
	v.out.Replaced += replaced
	return val.Text(), val.Text() != ""
}
