package merge_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/converge"
	. "github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/merge/mergetest"
)

// The reference computes what a row shows from all of its changes at once, each
// column by the sentence that defines its rule, without Join. Join, Fold and
// Project must agree with it in every order and grouping.

type shown struct {
	Cells    map[string]string
	Versions map[string]Version
	Occupant string
}

func reference(t *Table, changes []*Change) map[Key]shown {
	byKey := map[Key][]*Change{}
	for _, c := range changes {
		byKey[c.Key] = append(byKey[c.Key], c)
	}
	out := map[Key]shown{}
	for k, cs := range byKey {
		out[k] = referenceRow(t, cs)
	}
	return out
}

func referenceRow(t *Table, all []*Change) shown {
	s := shown{Cells: map[string]string{}, Versions: map[string]Version{}}
	about := all // the changes that may speak of occupants' columns
	if t.Occupied {
		since := map[string]Component{}
		for _, c := range all {
			if o := c.Occupant; o != nil {
				since[o.ID] = max(since[o.ID], o.Since)
			}
		}
		for id, at := range since {
			if s.Occupant == "" || at > since[s.Occupant] || at == since[s.Occupant] && id > s.Occupant {
				s.Occupant = id
			}
		}
		about = slices.DeleteFunc(slices.Clone(all), func(c *Change) bool {
			return c.Occupant == nil || c.Occupant.ID != s.Occupant
		})
	}
	for i, col := range t.Columns {
		from := about
		if t.OfKey(i) {
			from = all
		}
		from = slices.DeleteFunc(slices.Clone(from), func(c *Change) bool { return !c.Cells[i].Set })
		if v, ok := referenceColumn(&col, i, from); ok {
			s.Cells[col.Name] = v.String()
		}
		if col.Rule == Latest {
			for _, c := range from {
				s.Versions[col.Scope] = max(s.Versions[col.Scope], c.Version)
			}
		}
	}
	return s
}

func referenceColumn(col *Column, i int, from []*Change) (Value, bool) {
	if len(from) == 0 {
		return Value{}, false
	}
	byVersion := func(a, b *Change) int { return strings.Compare(string(a.Version), string(b.Version)) }
	switch col.Rule {
	case Latest:
		return slices.MaxFunc(from, byVersion).Cells[i].Value, true
	case First:
		return slices.MinFunc(from, byVersion).Cells[i].Value, true
	}
	var values []Value
	for _, c := range from {
		if v := c.Cells[i].Value; !v.IsNull() {
			values = append(values, v)
		}
	}
	if len(values) == 0 || col.Rule == Touch {
		return Value{}, false
	}
	switch col.Rule {
	case Max:
		return slices.MaxFunc(values, func(a, b Value) int { return Compare(col.Type, a, b) }), true
	case Min:
		return slices.MinFunc(values, func(a, b Value) int { return Compare(col.Type, a, b) }), true
	case Ladder:
		return slices.MaxFunc(values, func(a, b Value) int { return slices.Index(col.Rungs, a.Text()) - slices.Index(col.Rungs, b.Text()) }), true
	}
	set := map[string]bool{}
	for _, v := range values {
		for _, x := range v.List() {
			set[x] = true
		}
	}
	var list []string
	for x := range set {
		list = append(list, x)
	}
	slices.Sort(list)
	v, _ := TextArrayValue(list)
	return v, true
}

func show(t *Table, rows []*Row) map[Key]shown {
	out := map[Key]shown{}
	for _, r := range rows {
		s := shown{Cells: map[string]string{}, Versions: map[string]Version{}}
		if r.Occupant != nil {
			s.Occupant = r.Occupant.ID
		}
		for i, c := range r.Cells {
			if c.Set {
				s.Cells[t.Columns[i].Name] = c.Value.String()
			}
		}
		for i, v := range r.Scopes {
			if v != "" {
				s.Versions[t.Scopes()[i]] = v
			}
		}
		out[r.Key] = s
	}
	return out
}

// incremental joins schedule's batches one after the other into stored rows, as
// a sink does, and projects at the end.
func incremental(t *Table, changes []*Change, s converge.Schedule) map[Key]shown {
	stored := NewFolder(t)
	for _, batch := range s {
		var in []*Change
		for _, i := range batch {
			in = append(in, changes[i])
		}
		for _, r := range Fold(t, in) {
			stored.AddRow(r)
		}
	}
	parts := map[Key][]*Row{}
	for _, r := range stored.Rows() {
		parts[r.Key] = append(parts[r.Key], r)
	}
	var rows []*Row
	for _, p := range parts {
		rows = append(rows, Project(t, p))
	}
	return show(t, rows)
}

func TestJoinAgreesWithTheReference(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	for round := range 3000 {
		table := mergetest.EveryRule(round%2 == 1)
		changes := mergetest.Changes(rnd, table, 1+rnd.IntN(6))
		want := reference(table, changes)
		if d := cmp.Diff(want, show(table, Rows(table, changes))); d != "" {
			t.Fatalf("seed %d: Rows differs from the reference (-want +got):\n%s", seed, d)
		}
		fails := func(s converge.Schedule) bool {
			var in []*Change
			for _, i := range s.Flat() {
				in = append(in, changes[i])
			}
			return !cmp.Equal(reference(table, in), incremental(table, changes, s))
		}
		for range 20 {
			if s := converge.Random(rnd, len(changes)); fails(s) {
				s = converge.Shrink(s, fails)
				t.Fatalf("seed %d: schedule %v differs from the reference:\n%s", seed, s, cmp.Diff(want, incremental(table, changes, s)))
			}
		}
	}
}

func TestJoinIsCommutativeAssociativeIdempotent(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		table := mergetest.EveryRule(false)
		var r []*Row
		for _, c := range mergetest.Changes(rnd, table, 3) {
			c.Key = NewKey("k")
			r = append(r, Lift(c)...)
		}
		a, b, c := r[0], r[1], r[2]
		join := func(x, y *Row) *Row { return Join(table, x, y) }
		eq := func(law string, x, y *Row) {
			if d := cmp.Diff(x, y, cmp.AllowUnexported(Value{})); d != "" {
				t.Fatalf("seed %d: not %s:\n%s", seed, law, d)
			}
		}
		eq("commutative", join(a, b), join(b, a))
		eq("associative", join(a, join(b, c)), join(join(a, b), c))
		eq("idempotent", join(a, a), a)
	}
}
