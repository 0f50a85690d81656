package sinktest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/merge/mergetest"
	"github.com/hookfold/hookfold/sink"
)

// faults lets a third of all transactions fail, before their commit or after it,
// and writes each batch again until it is told that it is in.
func faults(t *testing.T, e Engine) {
	for _, table := range e.variants() {
		t.Run(table.Name, func(t *testing.T) {
			rnd, _ := newRand(t)
			var mu sync.Mutex
			fails := 0
			on := false
			s := e.Faulty(t, []*sink.Table{table}, func() Fault {
				mu.Lock()
				defer mu.Unlock()
				f := Fault(rnd.IntN(6))
				if on && fails < 2 { // one of each at least
					f = []Fault{BeforeCommit, AfterCommit}[fails]
				}
				if !on || f > AfterCommit || f == NoFault {
					return NoFault
				}
				fails++
				return f
			})
			bring(t, s, table)
			on = true
			var all []*merge.Change
			for h := range 4 * e.Rounds {
				all = append(all, rekey(mergetest.Changes(rnd, table.Table, 10), h)...)
			}
			left := slices.Clone(all)
			rnd.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
			for len(left) > 0 {
				n := min(len(left), 1+rnd.IntN(5))
				if err := persist(t, s, table, left[:n]); err != nil {
					t.Fatal(err)
				}
				left = left[n:]
			}
			if fails == 0 {
				t.Error("no transaction failed: the test shows nothing")
			}
			on = false
			mustHold(t, s, table, all, "after faults")
		})
	}
}

// chainColumn keeps a row per identity, and in each the first identity of its
// chain.
func chainColumn(t *testing.T, e Engine) {
	text0 := merge.Type{Kind: merge.Text}
	table := &sink.Table{Name: "ticket", Table: merge.NewTable(merge.Table{Name: "ticket", Key: []merge.KeyColumn{{Name: "id", Type: text0}},
		Columns: []merge.Column{{Name: "v", Type: text0, Scope: merge.RowScope}, {Name: "chain", Type: text0, Rule: merge.Chain}}})}
	if !e.holds(table) {
		return
	}
	s := e.open(t, table)
	rnd, _ := newRand(t)
	var all []*merge.Change
	for h := range 30 * e.Rounds {
		all = append(all, linked(rnd, table, h)...)
	}
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for left := all; len(left) > 0; {
		n := min(len(left), 1+rnd.IntN(9))
		if err := persist(t, s, table, left[:n]); err != nil {
			t.Fatal(err)
		}
		left = left[n:]
	}
	mustHold(t, s, table, all, "a column that shows the chain")
}

// linked makes changes of a few identities that follow each other, or not.
func linked(rnd *rand.Rand, table *sink.Table, history int) []*merge.Change {
	id := func() string {
		return string(rune('a'+history%20)) + string(rune('A'+history/20)) + string(rune('1'+rnd.IntN(4)))
	}
	var out []*merge.Change
	for i := range 1 + rnd.IntN(5) {
		key := id()
		c := &merge.Change{Table: table.Table, From: event.Ref{Position: event.Position(i)}, Key: merge.NewKey(key), Cells: make([]merge.Cell, len(table.Columns)),
			Version: merge.NewVersion([]merge.Component{merge.IntOf(int64(rnd.IntN(3)))}, merge.Write, []byte{byte(history), byte(i)})}
		v, _ := merge.ParseValue(merge.Type{Kind: merge.Text}, string(rune('a'+i)))
		c.Cells[0] = merge.Cell{Set: true, Value: v}
		if rnd.IntN(2) == 0 {
			c.Links = []merge.Link{{Old: id(), New: key}}
		}
		out = append(out, c)
	}
	return out
}

// known asks a sink that can be asked which rows it knows: all that were ever
// written or deleted, but for those that a complete list has made go.
func known(t *testing.T, e Engine) {
	for _, table := range e.variants() {
		t.Run(table.Name, func(t *testing.T) {
			s := e.open(t, table)
			k, ok := s.(sink.Knower)
			if !ok {
				t.Fatal("this sink cannot be asked which rows it knows: it is no sink.Knower")
			}
			rnd, _ := newRand(t)
			want := map[merge.Key]bool{"nobody": false}
			if table.Group != nil {
				want = map[merge.Key]bool{merge.NewKey("nobody", "x"): false}
			}
			var all []*merge.Change
			for h := range 12 * e.Rounds {
				all = append(all, rekey(mergetest.Changes(rnd, table.Table, 4), h)...)
			}
			for _, c := range all {
				if !c.Replaces && table.Group == nil {
					want[c.Key] = true
				}
			}
			for _, r := range merge.Rows(table.Table, all) {
				want[r.Key] = true
			}
			if _, err := apply(t.Context(), s, table, all); err != nil {
				t.Fatal(err)
			}
			keys := slices.Sorted(maps.Keys(want))
			got, err := k.Known(t.Context(), table, keys)
			if err != nil || len(got) != len(keys) {
				t.Fatalf("%d answers to %d keys, %v", len(got), len(keys), err)
			}
			for i, key := range keys {
				if got[i] != want[key] {
					t.Errorf("%q is known: %v, want %v", key, got[i], want[key])
				}
			}
		})
	}
}
