package merge_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

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
	Deleted  string
}

func reference(t *Table, changes []*Change) map[Key]shown {
	var links []Link
	for _, c := range changes {
		links = append(links, c.Links...)
	}
	sets := map[Key]*Change{}
	byKey := map[Key][]*Change{}
	for _, c := range changes {
		switch {
		case c.Replaces:
			if s := sets[c.Key]; s == nil || s.Version < c.Version {
				sets[c.Key] = c
			}
		case t.Chained:
			root := NewKey(referenceRoot(string(c.Key), links))
			byKey[root] = append(byKey[root], c)
		default:
			byKey[c.Key] = append(byKey[c.Key], c)
		}
	}
	out := map[Key]shown{}
	for k, cs := range byKey {
		if t.Group != nil {
			if set := sets[t.GroupOf(k)]; set != nil {
				cs = append(cs, &Change{Table: t, Delete: true, Version: set.Version, DeletedAt: set.DeletedAt})
			}
		}
		if row, ok := referenceRow(t, cs, links); ok {
			out[k] = row
		}
	}
	return out
}

// referenceRoot walks the links from an identity in both directions.
func referenceRoot(id string, links []Link) string {
	chain := []string{id}
	preceded := map[string]bool{}
	for i := 0; i < len(chain); i++ {
		for _, l := range links {
			if l.Old == l.New {
				continue
			}
			preceded[l.New] = true
			for _, x := range []string{l.Old, l.New} {
				if (l.Old == chain[i] || l.New == chain[i]) && !slices.Contains(chain, x) {
					chain = append(chain, x)
				}
			}
		}
	}
	slices.Sort(chain)
	for _, x := range chain {
		if !preceded[x] {
			return x
		}
	}
	return chain[0]
}

// newestOccupant gives the id of the occupant that holds a row, "" if there is
// none.
func newestOccupant(t *Table, all []*Change, links []Link) string {
	followed := func(id string) bool {
		return slices.ContainsFunc(links, func(l Link) bool { return l.Old == id && l.New != id })
	}
	since := map[string]Component{}
	for _, c := range all {
		if o := c.Occupant; o != nil {
			since[o.ID] = max(since[o.ID], o.Since)
		}
	}
	ids := slices.Sorted(maps.Keys(since))
	if len(ids) == 0 {
		return ""
	}
	return slices.MaxFunc(ids, func(a, b string) int {
		return cmp.Or(bool2int(!followed(a))-bool2int(!followed(b)), strings.Compare(string(since[a]), string(since[b])), strings.Compare(a, b))
	})
}

func bool2int(b bool) int {
	if b {
		return 1
	}
	return 0
}

func referenceRow(t *Table, all []*Change, links []Link) (shown, bool) {
	s := shown{Cells: map[string]string{}, Versions: map[string]Version{}}
	about := all // the changes that may speak of occupants' columns
	if t.Occupied {
		if s.Occupant = newestOccupant(t, all, links); s.Occupant != "" {
			about = slices.DeleteFunc(slices.Clone(all), func(c *Change) bool { return c.Occupant == nil || c.Occupant.ID != s.Occupant })
		}
	}
	isDelete := func(c *Change) bool { return c.Delete }
	writes := slices.DeleteFunc(slices.Clone(about), isDelete)
	if len(writes) == 0 {
		return s, false
	}
	byVersion := func(a, b *Change) int { return strings.Compare(string(a.Version), string(b.Version)) }
	var gone *Change
	for _, c := range about {
		if c.Delete && (gone == nil || gone.Version < c.Version) {
			gone = c
		}
	}
	deleted := gone != nil && gone.Version > slices.MaxFunc(writes, byVersion).Version
	if deleted && t.OnDelete == DeleteRemove {
		return s, false
	}
	if deleted {
		s.Deleted = gone.DeletedAt.Text()
	}
	for i, col := range t.Columns {
		from := writes
		if t.Occupied && t.OfKey(i) {
			from = slices.DeleteFunc(slices.Clone(all), isDelete)
		}
		from = slices.DeleteFunc(slices.Clone(from), func(c *Change) bool { return !c.Cells[i].Set })
		if col.Rule == Flag {
			s.Cells[col.Name] = fmt.Sprint(deleted)
			continue
		}
		if v, ok := referenceColumn(&col, i, from); ok {
			s.Cells[col.Name] = v.String()
		}
		if col.Rule != Latest {
			continue
		}
		for _, c := range from {
			s.Versions[col.Scope] = max(s.Versions[col.Scope], c.Version)
		}
		if gone != nil && gone.Version > s.Versions[col.Scope] && !(t.Occupied && t.OfKey(i)) {
			if t.OnDelete == DeleteRemove {
				delete(s.Cells, col.Name)
				delete(s.Versions, col.Scope)
			}
			if col.OnDelete != nil {
				s.Cells[col.Name] = col.OnDelete.String()
			}
		}
	}
	return s, true
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
	case Sum, Count:
		return referenceTotal(col, i, from), true
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

// referenceTotal adds up the latest amount of each event, in units of 10^-9.
func referenceTotal(col *Column, i int, from []*Change) Value {
	latest := map[string]*Change{}
	for _, c := range from {
		if x := latest[c.Identity]; !c.Cells[i].Value.IsNull() && (x == nil || x.Version < c.Version) {
			latest[c.Identity] = c
		}
	}
	total := new(big.Rat)
	for _, c := range latest {
		amount, _ := new(big.Rat).SetString(c.Cells[i].Value.Text())
		if col.Rule == Count {
			amount = big.NewRat(1, 1)
		}
		total.Add(total, amount)
	}
	v, err := ParseValue(Type{Kind: Numeric}, total.FloatString(9))
	if err != nil {
		panic(err)
	}
	return v
}

func show(t *Table, rows []*Row) map[Key]shown {
	out := map[Key]shown{}
	for _, r := range rows {
		s := shown{Cells: map[string]string{}, Versions: map[string]Version{}}
		if r.Occupant != nil {
			s.Occupant = r.Occupant.ID
		}
		if r.Gone() {
			s.Deleted = r.DeletedAt.Text()
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

// incremental writes a schedule's batches one after the other into a store that
// keeps no more than a sink does.
func incremental(t *Table, changes []*Change, s converge.Schedule) map[Key]shown {
	store := newStore(t)
	for _, batch := range s {
		var in []*Change
		for _, i := range batch {
			in = append(in, changes[i])
		}
		store.write(in)
	}
	return show(t, store.shown())
}

func TestJoinAgreesWithTheReference(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	for round := range 6000 {
		shape := mergetest.Shapes()[round%len(mergetest.Shapes())]
		table := mergetest.EveryRule(shape)
		changes := mergetest.Changes(rnd, table, 1+rnd.IntN(6))
		want := reference(table, changes)
		if d := gocmp.Diff(want, show(table, Rows(table, changes))); d != "" {
			t.Fatalf("seed %d: %s: Rows differs from the reference (-want +got):\n%s", seed, shape.Name(), d)
		}
		fails := func(s converge.Schedule) bool {
			var in []*Change
			for _, i := range s.Flat() {
				in = append(in, changes[i])
			}
			return !gocmp.Equal(reference(table, in), incremental(table, changes, s))
		}
		for range 20 {
			if s := converge.Random(rnd, len(changes)); fails(s) {
				s = converge.Shrink(s, fails)
				t.Fatalf("seed %d: %s: schedule %v differs from the reference (-want +got):\n%s\n%s", seed, shape.Name(), s,
					gocmp.Diff(reference(table, pick(changes, s)), incremental(table, changes, s)), story(changes, s))
			}
		}
	}
}

func pick(changes []*Change, s converge.Schedule) []*Change {
	var out []*Change
	for _, i := range s.Flat() {
		out = append(out, changes[i])
	}
	return out
}

func story(changes []*Change, s converge.Schedule) string {
	var b strings.Builder
	for _, i := range s.Flat() {
		c := changes[i]
		fmt.Fprintf(&b, "%d: key %q version %s delete %v replaces %v links %v occupant %+v", i, c.Key, c.Version.Show(), c.Delete, c.Replaces, c.Links, c.Occupant)
		for j, cell := range c.Cells {
			if cell.Set {
				fmt.Fprintf(&b, " %s=%s", c.Table.Columns[j].Name, cell.Value)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestJoinIsCommutativeAssociativeIdempotent(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		table := mergetest.EveryRule(mergetest.Shape{})
		var r []*Row
		for _, c := range mergetest.Changes(rnd, table, 3) {
			c.Key = NewKey("k")
			r = append(r, Lift(c)...)
		}
		a, b, c := r[0], r[1], r[2]
		join := func(x, y *Row) *Row { return Join(table, x, y) }
		eq := func(law string, x, y *Row) {
			if d := gocmp.Diff(x, y, gocmp.AllowUnexported(Value{})); d != "" {
				t.Fatalf("seed %d: not %s:\n%s", seed, law, d)
			}
		}
		eq("commutative", join(a, b), join(b, a))
		eq("associative", join(a, join(b, c)), join(join(a, b), c))
		eq("idempotent", join(a, a), a)
	}
}
