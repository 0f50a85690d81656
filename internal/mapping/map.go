package mapping

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/merge"
)

// evaluation holds the results of one event: each expression is evaluated at
// most once.
type evaluation struct {
	input   expr.Input
	results []evaluated
	valuer  valuer
	event   *event.Event
	source  *Source
	out     *Outcome

	// element is the place of the element of a list that is being mapped, -1
	// outside of one; generation counts elements, and digest stands for what
	// the list's mapping can read of the event.
	element, generation int
	digest              []byte
	// counted is the place of the mapping among those of its table that count
	// the event.
	counted int
	// pending are the mappings that wait for a read.
	pending []*Mapping
}

type evaluated struct {
	done bool
	// generation is that of the element that the result is for, if it is for
	// one.
	generation int
	val        ref.Val
	err        error
	bad        int // texts read that hold NUL or were not UTF-8
}

func (v *evaluation) eval(e *Expr) *evaluated {
	if v.ofWhole(e) {
		return v.kept(e.Reads).eval(e)
	}
	r := &v.results[e.slot]
	if !r.done || r.generation != v.generation && readsElement(e) {
		before := v.input.BadText()
		r.val, r.err = e.Eval(&v.input)
		r.done, r.generation, r.bad = true, v.generation, v.input.BadText()-before
	}
	return r
}

// Map gives the changes of one event for one target. It depends on nothing but
// its arguments.
func (p *Plan) Map(e *event.Event, target string) Outcome {
	var out Outcome
	s := p.bySource[e.Delivery.Source]
	if s == nil {
		return out
	}
	v, _ := s.pool.Get().(*evaluation)
	if v == nil {
		v = &evaluation{results: make([]evaluated, s.slots)}
	}
	v.begin(s, e, &out)
	ahead := s.Ahead(e)
	var table *Table
	counting := 0
	for _, m := range s.mappings[target] {
		if !m.Takes(e.Type) {
			continue
		}
		if m.Table != table {
			table, counting = m.Table, 0
		}
		if v.counted = counting; v.mapping(m, ahead) && m.counts {
			counting++
		}
	}
	out.hold(v.pending)
	if reason := s.untyped(e, target); reason != "" {
		out.Wanted, out.Faults = true, []Fault{{Reason: reason}}
	}
	v.end()
	s.pool.Put(v)
	return out
}

// untyped tells why an event that nothing takes is at fault: it lacks the type
// that the config looks for, so that nobody knows whether it is wanted.
func (s *Source) untyped(e *event.Event, target string) string {
	ms := s.mappings[target]
	if e.Type != "" || !s.typed || len(ms) == 0 || slices.ContainsFunc(ms, func(m *Mapping) bool { return m.Takes("") }) {
		return ""
	}
	return fmt.Sprintf("it has no type (%s), and only by its type could a mapping take it. If some events have none, write a ? before the step that may be missing, as in event.?type.", s.Config.Type.Text)
}

// Try maps one event by one mapping whose types take it. It tells what is at
// fault, and whether the mapping's condition lets the event through.
func (m *Mapping) Try(e *event.Event) (faults []Fault, wanted bool) {
	var out Outcome
	v := &evaluation{results: make([]evaluated, m.Source.slots)}
	v.begin(m.Source, e, &out)
	v.mapping(m, "")
	return out.Faults, out.Wanted
}

func (v *evaluation) begin(s *Source, e *event.Event, out *Outcome) {
	v.input.Reset(e, s.Config.Zone)
	v.input.ReadBody = s.readBody
	v.source, v.pending = s, nil
	v.valuer = valuer{zone: s.Config.Zone, dead: s.Config.BadText == "dead"}
	v.event, v.out, v.element, v.generation = e, out, -1, 0
}

func (v *evaluation) end() {
	clear(v.results)
	v.input = expr.Input{}
	v.event, v.source, v.out, v.pending = nil, nil, nil, nil
}

// mapping adds the changes of one mapping, or its faults. It tells whether the
// mapping takes the event.
func (v *evaluation) mapping(m *Mapping, ahead string) bool {
	v.input.Fetched = v.fetched(m)
	lacks := m.Fetch != nil && v.input.Fetched == nil
	if m.when != nil && !readsElement(m.when) && !(lacks && m.when.Reads&expr.OfFetch != 0) {
		faults := len(v.out.Faults)
		if !v.wants(m) {
			v.out.Wanted = v.out.Wanted || len(v.out.Faults) > faults
			return false
		}
	}
	v.out.Wanted = true
	if ahead != "" {
		v.fault(m, "", "%s", ahead)
		return true
	}
	if lacks {
		v.pending = append(v.pending, m)
		v.read(m)
		return true
	}
	if m.Each != nil {
		v.each(m)
		return true
	}
	faults := len(v.out.Faults)
	if changes := v.changes(m, v.out.Changes); len(v.out.Faults) == faults {
		v.out.Changes = changes
	}
	return true
}

// wants evaluates the mapping's condition.
func (v *evaluation) wants(m *Mapping) bool {
	r := v.eval(m.when)
	wanted, err := truth(r.val, r.err)
	if err != nil {
		v.failed(m, "", fmt.Errorf("when: %w", err))
	}
	return wanted && err == nil
}

// failed adds the fault of an expression that gives no value.
func (v *evaluation) failed(m *Mapping, column string, err error) {
	var missing *expr.MissingError
	lacks := errors.As(err, &missing) && missing.Path != nil
	if lacks && m.Source.Preset.Name != "http" {
		v.fault(m, column, "%v. Has the provider changed its API version?", err)
	} else {
		v.fault(m, column, "%v", err)
	}
	v.out.Faults[len(v.out.Faults)-1].Missing = lacks
}

func (v *evaluation) fault(m *Mapping, column, format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	if v.element >= 0 {
		reason = fmt.Sprintf("element %d: %s", v.element, reason)
	}
	v.out.Faults = append(v.out.Faults, Fault{Table: m.Table.Config.Text, Column: column, Reason: reason, Mapping: m.Config.Path})
}

// changes appends what the mapping says: one change, and if it is a delete what
// it says of the lists of its row.
func (v *evaluation) changes(m *Mapping, all []*merge.Change) []*merge.Change {
	faults, replaced := len(v.out.Faults), v.out.Replaced
	c := v.change(m)
	all = append(all, c)
	if c.Delete && len(m.Table.Emptied) > 0 && len(v.out.Faults) == faults {
		all = append(all, v.empty(m, c)...)
	}
	if len(v.out.Faults) > faults {
		v.out.Replaced = replaced
	}
	return all
}

func (v *evaluation) change(m *Mapping) *merge.Change {
	t := m.Table.Table.Table
	c := &merge.Change{Table: t, From: v.event.Ref(), Mapping: m.Config.Path, IfMissing: m.Config.IfMissing}
	key, ok := v.key(m, m.Key, t.Key, "", "key")
	if ok {
		c.Key = key
	}
	if m.OccupantID != nil || t.Chained {
		c.Occupant = v.occupant(m, key, ok)
	}
	if ok && m.Config.Chain != nil {
		c.Links = v.links(m, key)
	}
	kind := merge.Write
	if m.Delete != nil && v.deletes(m) {
		c.Delete, kind = true, merge.Delete
	}
	if m.versioned || m.counts && (m.VersionGiven || !v.event.Time.IsZero()) {
		c.Version = v.version(m, kind)
	}
	if c.Delete {
		c.DeletedAt, c.Cells = v.deletedAt(m, m.Table, c.Version), make([]merge.Cell, len(t.Columns))
		return c
	}
	if m.counts {
		c.Identity = v.identity(m)
	}
	c.Cells = v.cells(m)
	for _, p := range m.parents {
		if parent, ok := v.parent(m, p, c); ok {
			c.Parents = append(c.Parents, parent)
		}
	}
	return c
}

// deletes tells whether the event deletes the row.
func (v *evaluation) deletes(m *Mapping) bool {
	r := v.eval(m.Delete)
	gone, err := truth(r.val, r.err)
	if err != nil {
		v.failed(m, "", fmt.Errorf("delete: %w", err))
	}
	return gone
}

// deletedAt gives the time of a delete: the event's, else the first time in its
// version. Where rows are marked, a delete without a time is a fault: its row
// would look alive.
func (v *evaluation) deletedAt(m *Mapping, t *Table, version merge.Version) merge.Value {
	at := v.event.Time
	if at.IsZero() {
		at, _ = version.Time()
	}
	if at.IsZero() {
		switch {
		case t.OnDelete != merge.DeleteMark:
		case v.event.TimeError != "":
			v.fault(m, "deleted_at", "the event's time cannot be read: %s", v.event.TimeError)
		default:
			v.fault(m, "deleted_at", "the event has no time, and its version has none, so that the row could not be marked. Give the source a time:, or say on_delete: {set: {…}}")
		}
		return merge.NullValue
	}
	val, err := merge.TimestampValue(at)
	if err != nil {
		v.fault(m, "deleted_at", "%v", err)
	}
	return val
}

// key makes a key from expressions, for the columns that it is of. of says whose
// it is, "" for the mapping's own; then what says which of its keys.
func (v *evaluation) key(m *Mapping, exprs []*Expr, cols []merge.KeyColumn, of, what string) (key merge.Key, ok bool) {
	var room [4]string
	parts := room[:0]
	ok = true
	for i, e := range exprs {
		col := cols[i]
		r := v.eval(e)
		switch {
		case r.err != nil:
			v.failed(m, of+col.Name, r.err)
			ok = false
			continue
		case isNothing(r.val):
			if of == "" {
				v.fault(m, "", "%s %s is null (%s). Events without a key belong in a when:.", what, col.Name, e.Text)
			}
			ok = false
			continue
		}
		val, replaced, err := v.value(e, "", col.Type, r.val, r.bad)
		if err != nil {
			v.fault(m, of+col.Name, "%v", err)
			ok = false
			continue
		}
		v.out.Replaced += replaced
		parts = append(parts, val.Text())
	}
	if !ok {
		return "", false
	}
	return merge.NewKey(parts...), true
}

// isNothing tells of null, an absent optional and unset.
func isNothing(v ref.Val) bool { return v == types.NullValue || v == expr.Absent || v == expr.Unset }

// occupant gives the identity that the event is about. On a table with chains it
// is the key.
func (v *evaluation) occupant(m *Mapping, key merge.Key, keyed bool) *merge.Occupant {
	o := &merge.Occupant{ID: string(key)}
	if m.OccupantID != nil {
		if o.ID, keyed = v.occupantID(m); !keyed {
			return nil
		}
	} else if keyed && key == "" {
		v.fault(m, m.Table.Key[0].Name, "an empty text is no identity")
	}
	if m.Since == nil {
		return o
	}
	r := v.eval(m.Since)
	if r.err == nil && isNothing(r.val) {
		return o // not known since when
	}
	err := r.err
	if err == nil {
		o.Since, err = component(r.val, m.Table.since, v.valuer.zone)
	}
	if err != nil {
		v.failed(m, "", fmt.Errorf("the occupant's since: %w", err))
	}
	return o
}

func (v *evaluation) occupantID(m *Mapping) (string, bool) {
	r := v.eval(m.OccupantID)
	switch {
	case r.err != nil:
		v.failed(m, "", fmt.Errorf("occupant: %w", r.err))
		return "", false
	case isNothing(r.val):
		v.fault(m, "", "the occupant's id is null (%s). Events without one belong in a when:.", m.OccupantID.Text)
		return "", false
	}
	val, replaced, err := v.value(m.OccupantID, "", merge.Type{Kind: merge.Text}, r.val, r.bad)
	if err != nil || val.Text() == "" {
		if err == nil {
			err = fmt.Errorf("an empty text is no identity")
		}
		v.fault(m, "", "the occupant's id: %v", err)
		return "", false
	}
	v.out.Replaced += replaced
	return val.Text(), true
}

func timeText(t time.Time) []byte { return t.UTC().AppendFormat(nil, time.RFC3339Nano) }
