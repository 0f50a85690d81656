package mapping

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/merge"
)

// counter checks that a column that takes each event once can know it again.
func (c *compiler) counter(out *Mapping, col *merge.Column, a *Assignment) {
	if col.Rule != merge.Sum && col.Rule != merge.Count {
		return
	}
	out.counts = true
	if s := out.Source; !s.HasID() && s.Preset.Name != "http" { // of http the loader has told it
		c.problems.Add(config.Error, a.At.Pos, a.At.Path,
			"%s takes each event once, and events of %s have no identity to know a second delivery by. Give sources.%s an id:, what tells one event from every other.", col.Rule, s.Preset.Name, s.Name)
	}
}

const maxIdentity = 200 // bytes of an event's id that a ledger keeps as it is

// identity names what an event adds to counters: its source and id; if several
// mappings of the table count it, the place among them; and the place in the
// list. It does not hold the mapping's name, so that a mapping may change without
// counting everything again.
func (v *evaluation) identity(m *Mapping) string {
	e := v.event
	if e.ID == "" {
		for i, a := range m.Columns {
			if rule := m.Table.Columns[i].Rule; a != nil && (rule == merge.Sum || rule == merge.Count) {
				v.fault(m, m.Table.Columns[i].Name, "%s takes each event once, and this one has no identity (sources.%s.id) to know a second delivery by", rule, m.Source.Name)
			}
		}
		return ""
	}
	id := e.ID
	if len(id) > maxIdentity || strings.Contains(id, "\x00") || !utf8.ValidString(id) {
		sum := sha256.Sum256([]byte(id))
		id = "sha256:" + hex.EncodeToString(sum[:])
	}
	id = m.Source.Name + "/" + idParts.Replace(id)
	if v.counted > 0 || m.Each != nil {
		id += fmt.Sprintf("/%d", v.counted)
	}
	if m.Each != nil {
		id += fmt.Sprintf("/%d", v.element)
	}
	return id
}

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
	if isNothing(r.val) || r.val == expr.Unset {
		return "", false
	}
	val, replaced, err := v.valuer.value(m.Table.Key[0].Type, r.val, r.bad)
	if err != nil {
		v.fault(m, "", "chain.%s: %v", what, err)
		return "", false
	}
	v.out.Replaced += replaced
	return val.Text(), val.Text() != ""
}
