package mapping

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/merge"
)

// version makes the version of a mapping's change.
func (v *evaluation) version(m *Mapping, kind merge.ChangeKind) merge.Version {
	var room [4]merge.Component
	tuple := room[:0]
	for i, p := range m.Version {
		if p.position {
			tuple = append(tuple, merge.IntOf(int64(v.event.Delivery.Position)), merge.IntOf(int64(v.event.Index)))
			continue
		}
		r := v.eval(p.Expr)
		err := r.err
		var c merge.Component
		if err == nil {
			c, err = component(r.val, p.Kind, v.valuer.zone)
		}
		if err != nil {
			v.failed(m, "", fmt.Errorf("version[%d]: %w", i, err))
			return ""
		}
		tuple = append(tuple, c)
	}
	switch {
	case v.digest == nil:
		var parts [16][]byte
		return merge.NewVersion(tuple, kind, v.readable(m, parts[:0])...)
	case m.Replaces != nil: // the whole list has one version
		return merge.NewVersion(tuple, kind, v.digest)
	}
	return merge.NewVersion(tuple, kind, v.digest, strconv.AppendInt(nil, int64(v.element), 10))
}

// component encodes an element of a version, or an occupant's since. A kind of 0
// goes by the value.
func component(val ref.Val, kind merge.ComponentKind, zone *time.Location) (merge.Component, error) {
	if isNothing(val) {
		if kind == 0 {
			return "", errors.New("is null, and nothing tells whether it would be a time or a number. Write timestamp(…) or int(…) around it.")
		}
		return merge.NullOf(kind), nil
	}
	switch x := val.(type) {
	case types.Timestamp:
		if kind == merge.IntComponent {
			return "", mixed(val, "a number")
		}
		return merge.TimeOf(x.Time)
	case types.String:
		if kind == merge.IntComponent {
			return "", mixed(val, "a number")
		}
		if digits(string(x)) {
			return "", fmt.Errorf("%s: a text in a version must be a time. Write timestamp(…) or int(…) around it.", expr.Describe(val))
		}
		at, err := event.ParseTime(string(x), zone)
		if err != nil {
			return "", err
		}
		return merge.TimeOf(at)
	case types.Int, *expr.Number:
		if kind == merge.TimeComponent {
			return "", mixed(val, "a time")
		}
		n, err := whole(x)
		if err != nil {
			return "", err
		}
		return merge.IntOf(n), nil
	}
	return "", fmt.Errorf("%s is neither a time nor a whole number", expr.Describe(val))
}

func mixed(val ref.Val, other string) error {
	return fmt.Errorf("%s stands where other versions of this scope have %s. Write timestamp(…) or int(…) around it.", expr.Describe(val), other)
}

func whole(v ref.Val) (int64, error) {
	if n, ok := v.(types.Int); ok {
		return int64(n), nil
	}
	text, err := expr.Text(v)
	if err != nil {
		return 0, err
	}
	val, err := merge.ParseValue(merge.Type{Kind: merge.Int}, text)
	if err != nil {
		return 0, fmt.Errorf("%s is not a whole number of 64 bits", expr.Describe(v))
	}
	var n int64
	_, err = fmt.Sscan(val.Text(), &n)
	return n, err
}

// readable returns what the mapping can read of an event, as part of the hash in
// its versions: with equal parts it says the same. What an event always has is in
// it whether or not an expression reads it now, so that a column more does not
// change the versions of events that are mapped again. What may differ from one
// delivery of an event to the next is in it only if it is read.
func (v *evaluation) readable(m *Mapping, parts [][]byte) [][]byte {
	e := v.event
	parts = append(parts, m.name, []byte(e.Type), []byte(e.ID), timeText(e.Time), e.Body.Raw())
	if f := v.input.Fetched; f != nil {
		parts = append(parts, strconv.AppendInt(nil, int64(f.Status), 10), f.Body)
	}
	if m.reads == 0 {
		return parts
	}
	add := func(name expr.Names, text func() []byte) {
		if m.reads&name != 0 {
			parts = append(parts, text())
		}
	}
	add(expr.FetchedAt, func() []byte { return timeText(v.input.Fetched.At) })
	add(expr.Received, func() []byte { return timeText(e.FirstReceived) })
	add(expr.Position, func() []byte { return fmt.Appendf(nil, "%d.%d", e.Delivery.Position, e.Index) })
	add(expr.Envelope, func() []byte { return v.digestOf(expr.Envelope, e.Envelope.Raw) })
	add(expr.Body|expr.Raw, func() []byte { return v.digestOf(expr.Body, func() []byte { return e.Delivery.Body }) })
	add(expr.Headers, func() []byte { return v.digestOf(expr.Headers, func() []byte { return headerText(e) }) })
	add(expr.Query, func() []byte { return v.digestOf(expr.Query, func() []byte { return []byte(e.Delivery.Query) }) })
	add(expr.Path, func() []byte { return v.digestOf(expr.Path, func() []byte { return []byte(e.Delivery.Path) }) })
	return parts
}

// digestOf stands for something of the delivery in a version's hash. It is made
// once per delivery: else a delivery of many events would be hashed as often.
func (v *evaluation) digestOf(name expr.Names, text func() []byte) []byte {
	return v.kept(name).digest(name, text)
}

func headerText(e *event.Event) []byte {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(e.Delivery.Header)) {
		fmt.Fprintf(&b, "%s: %q\n", name, e.Delivery.Header[name])
	}
	return []byte(b.String())
}

// learnKinds finds out the kinds of version elements that the expressions do not
// tell: from the other mappings of the register, and from the presets' samples.
func (c *compiler) learnKinds() {
	for _, t := range c.plan.Tables {
		for _, m := range t.Mappings {
			if m.broken {
				continue
			}
			for _, p := range m.Version {
				if p.Kind == 0 {
					p.Kind = sampledKind(m, p.Expr)
				}
			}
		}
		t.since = sinceKind(t)
	}
	for _, t := range c.plan.Tables {
		for r := range t.Registers() {
			share(t, r)
		}
	}
}

// Register is a thing that versions are compared for.
type Register struct {
	Name, Scope string // Scope is "" for a first column
	// Columns are those it is of, none for the row's existence, of which deletes
	// are compared with everything that is said of the row.
	Columns   []int
	Existence bool
}

// Registers yields what versions of the table are compared for: each scope, each
// first column and, where deletes are remembered, the existence of its rows.
func (t *Table) Registers() func(func(Register) bool) {
	return func(yield func(Register) bool) {
		for s, name := range t.Scopes() {
			if !yield(Register{Name: "scope " + name, Scope: name, Columns: t.ScopeColumns(s)}) {
				return
			}
		}
		for i, col := range t.Columns {
			if col.Rule == merge.First && !yield(Register{Name: "column " + col.Name, Columns: []int{i}}) {
				return
			}
		}
		if t.Remembers() {
			yield(Register{Name: "the existence of its rows", Existence: true})
		}
	}
}

// Feeders returns the mappings whose versions are compared in a register: those
// of the table and, for the existence of its rows, those of other tables that
// insert its rows or empty its groups.
func (t *Table) Feeders(r Register) []*Mapping {
	var out []*Mapping
	add := func(all []*Mapping) {
		for _, m := range all {
			if !m.broken && !slices.Contains(out, m) && (r.Existence || m.Feeds(r)) {
				out = append(out, m)
			}
		}
	}
	add(t.Mappings)
	if r.Existence {
		add(t.Stubs)
		add(t.Emptying)
	}
	return out
}

// Feeds tells whether a mapping may set any column of a register of its table,
// or says anything of the existence of its rows.
func (m *Mapping) Feeds(r Register) bool {
	return r.Existence || slices.ContainsFunc(r.Columns, func(i int) bool { return m.Columns[i] != nil })
}

// share gives an element of unknown kind the kind that it has in the other
// mappings of the register.
func share(t *Table, r Register) {
	var known []merge.ComponentKind
	feeders := t.Feeders(r)
	for _, m := range feeders {
		for i, p := range m.Version {
			for len(known) <= i {
				known = append(known, 0)
			}
			if known[i] == 0 {
				known[i] = p.Kind
			}
		}
	}
	for _, m := range feeders {
		for i, p := range m.Version {
			if p.Kind == 0 {
				p.Kind = known[i]
			}
		}
	}
}

func sinceKind(t *Table) merge.ComponentKind {
	for _, m := range t.Mappings {
		if m.broken || m.Since == nil {
			continue
		}
		switch m.Since.Kind {
		case expr.KindNumber:
			return merge.IntComponent
		case expr.KindTime, expr.KindText:
			return merge.TimeComponent
		}
		if k := sampledKind(m, m.Since); k != 0 {
			return k
		}
	}
	return 0
}

func sampledKind(m *Mapping, e *Expr) merge.ComponentKind {
	for _, s := range m.Samples() {
		in := eventInput(s.Event, m.Source.Config)
		if m.when != nil {
			if ok, err := truth(m.when.Eval(in)); !ok || err != nil {
				continue
			}
		}
		switch v, _ := e.Eval(in); v.(type) {
		case types.Timestamp, types.String:
			return merge.TimeComponent
		case types.Int:
			return merge.IntComponent
		}
	}
	return 0
}

// Sampled is an event of a preset's sample.
type Sampled struct {
	Name  string // of the sample
	Event *event.Event
}

// Samples returns the events of the preset's samples that the mapping's types
// take.
func (m *Mapping) Samples() []Sampled {
	var out []Sampled
	for _, s := range m.Source.Samples() {
		if m.Takes(s.Event.Type) {
			out = append(out, s)
		}
	}
	return out
}

// Samples returns the events of the preset's samples, as the source splits them.
// They are made anew for each call.
func (s *Source) Samples() []Sampled {
	if s.Preset == nil || s.Source == nil {
		return nil
	}
	var out []Sampled
	for i := range s.Preset.Samples {
		sample := &s.Preset.Samples[i]
		events, err := s.Split(&event.Delivery{Source: s.Name, Body: sample.Body, Header: sample.Header})
		if err != nil {
			continue // a sample of another shape than this source's split
		}
		for _, e := range events {
			out = append(out, Sampled{Name: sample.Name, Event: e})
		}
	}
	return out
}
