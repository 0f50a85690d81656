package mapping

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/merge"
)

const (
	// MaxElements is the most elements of a list that each: goes through.
	MaxElements = 10_000

	maxElementFaults = 10 // that are told one by one
)

// list compiles what a mapping says of a list.
func (c *compiler) list(out *Mapping, m *config.Mapping) {
	out.Each = c.compileRef(out.Source, m.Each, out.whole())
	if e := out.Each; e != nil && e.Kind != expr.KindList && e.Kind != expr.KindAny && e.Kind != expr.KindNull {
		c.fail(e, "gives %s, and has to be a list", e.Kind)
	}
	if m.Replaces != nil {
		out.Replaces = []*Expr{}
	}
	for _, a := range m.Replaces {
		k := keyPlace(out.Table.Config, a.Column.Text)
		if k < 0 {
			continue
		}
		e := c.compile(out.Source, a.Expr, out.whole())
		c.never(e, "replaces")
		c.fits(out, e, out.Table.Config.Key[k].Type, nil)
		out.Replaces = append(out.Replaces, e)
	}
}

// whole are the names of what is not of one element.
func (m *Mapping) whole() expr.Names { return m.names &^ (expr.Item | expr.Index) }

// each maps the elements of a list.
func (v *evaluation) each(m *Mapping) {
	r := v.eval(m.Each)
	if r.err != nil {
		v.failed(m, "", fmt.Errorf("each: %w", r.err))
		return
	}
	if isNothing(r.val) {
		return // an absent list says nothing, not that it is empty
	}
	list, ok := r.val.(traits.Lister)
	if !ok {
		v.fault(m, "", "each: %s is %s, not a list", m.Each.Text, expr.Describe(r.val))
		return
	}
	n, _ := list.Size().(types.Int)
	if n > MaxElements {
		v.fault(m, "", "each: %s has %d elements, more than %d. Have the sender send it in parts.", m.Each.Text, n, MaxElements)
		return
	}
	digest := sha256.New()
	for _, part := range v.readable(m, nil) {
		_ = binary.Write(digest, binary.BigEndian, uint64(len(part))) // a hash takes all that is written
		digest.Write(part)
	}
	v.digest = digest.Sum(nil)
	if m.Replaces != nil {
		v.complete(m, list)
	} else {
		v.elements(m, list, func(changes []*merge.Change, _ bool) { v.out.Changes = append(v.out.Changes, changes...) })
	}
	v.digest, v.element = nil, -1
}

// elements maps one element after the other, and tells whether it is in order.
func (v *evaluation) elements(m *Mapping, list traits.Lister, done func(changes []*merge.Change, ok bool)) {
	faulty, written := 0, 0
	for i, it := 0, list.Iterator(); it.HasNext() == types.True; i++ {
		v.element, v.generation = i, v.generation+1
		item, size, err := itemOf(it.Next())
		if written += size; written > maxWritten {
			v.element = -1
			v.fault(m, "", "each: %s makes more than %d MiB of elements: have each hold less", m.Each.Text, maxWritten>>20)
			done(nil, false)
			return
		}
		before := len(v.out.Faults)
		var changes []*merge.Change
		switch wanted := true; {
		case err != nil:
			v.fault(m, "", "%v", err)
		default:
			v.input.Item, v.input.Index = item, i
			if readsElement(m.when) {
				wanted = v.wants(m)
			}
			if wanted {
				changes = v.changes(m, nil)
			}
		}
		ok := len(v.out.Faults) == before
		if !ok {
			if faulty++; faulty > maxElementFaults {
				v.out.Faults = v.out.Faults[:before]
			}
			changes = nil
		}
		done(changes, ok)
	}
	if v.element = -1; faulty > maxElementFaults {
		v.fault(m, "", "%d more elements of %s are at fault", faulty-maxElementFaults, m.Each.Text)
	}
}

// complete maps a list that is complete. It speaks as a whole or, if one of its
// elements is at fault, not at all: else the row of that element would be gone.
func (v *evaluation) complete(m *Mapping, list traits.Lister) {
	t := m.Table
	cols := make([]merge.KeyColumn, len(t.Group))
	for i, at := range t.Group {
		cols[i] = t.Key[at]
	}
	v.element = -1
	before, replaced := len(v.out.Faults), v.out.Replaced
	group, ok := v.key(m, m.Replaces, cols, "", "replaces")
	version := v.version(m, merge.Write)
	if !ok || len(v.out.Faults) > before {
		return
	}
	all := []*merge.Change{v.set(m, t, group, version)}
	last := map[rowOf]int{}
	v.elements(m, list, func(changes []*merge.Change, fine bool) {
		for _, c := range changes {
			if c.Table == t.Table.Table && !c.Replaces {
				if own := t.GroupOf(c.Key); own != group {
					at := v.element
					v.fault(m, "", "it is of another list: %s, and the list is complete for %s", showGroup(t, own), showGroup(t, group))
					v.element = at
					return
				}
				r := rowOf{key: c.Key}
				if c.Occupant != nil {
					r.occupant = c.Occupant.ID
				}
				if i, twice := last[r]; twice {
					all[i] = yield(t.Table.Table, all[i], c)
				}
				last[r] = len(all)
			}
			all = append(all, c)
		}
	})
	if len(v.out.Faults) > before {
		v.out.Replaced = replaced
		return
	}
	for _, c := range all {
		if c != nil {
			v.out.Changes = append(v.out.Changes, c)
		}
	}
}

// rowOf is what an element of a list is about.
type rowOf struct {
	key      merge.Key
	occupant string
}

// yield gives what is left of a change when a later element of the same list,
// which has the same version, is about the same row: the later one counts.
func yield(t *merge.Table, earlier, later *merge.Change) *merge.Change {
	if earlier == nil || earlier.Delete {
		return nil
	}
	for i := range earlier.Cells {
		if s := t.ScopeOf(i); s >= 0 && (later.Cells[i].Set || later.Delete) {
			earlier.Cells[i] = merge.Cell{}
		}
	}
	return earlier
}

func showGroup(t *Table, group merge.Key) string {
	if len(t.Group) == 0 {
		return "the whole table"
	}
	var out []string
	for i, part := range group.Parts() {
		out = append(out, t.Key[t.Group[i]].Name+"="+part)
	}
	return strings.Join(out, ", ")
}

// itemOf gives an element as JSON, which paths can walk. One of the event is as
// it was received; what an expression has made is written out, in so many bytes.
func itemOf(v ref.Val) (item event.JSON, written int, err error) {
	switch x := v.(type) {
	case *expr.Object:
		return x.JSON, 0, nil
	case *expr.List:
		return x.JSON, 0, nil
	}
	text, err := encodeJSON(v)
	if err != nil {
		return event.JSON{}, len(text), err
	}
	item, err = event.ParseJSON([]byte(text))
	return item, len(text), err
}

// Elements returns the elements that the mapping goes through for an event, nil
// if it has no list or the list says nothing.
func (m *Mapping) Elements(e *event.Event) []event.JSON {
	if m.Each == nil {
		return nil
	}
	val, err := m.Each.Eval(eventInput(e, m.Source.Config))
	list, ok := val.(traits.Lister)
	if err != nil || !ok {
		return nil
	}
	var out []event.JSON
	for it := list.Iterator(); it.HasNext() == types.True; {
		if item, _, err := itemOf(it.Next()); err == nil {
			out = append(out, item)
		}
	}
	return out
}
