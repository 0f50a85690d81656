package sinktest

import (
	"slices"
	"testing"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/merge/mergetest"
	"github.com/hookfold/hookfold/sink"
)

// replace sets rows of one history to what another says, and writes on.
func replace(t *testing.T, e Engine) {
	for _, table := range e.variants() {
		counts := slices.ContainsFunc(table.Columns, func(c merge.Column) bool { return c.Rule == merge.Sum || c.Rule == merge.Count })
		t.Run(table.Name, func(t *testing.T) {
			rnd, _ := newRand(t)
			s := e.open(t, table)
			r, ok := s.(sink.Replacer)
			if !ok || !r.Replaces(table) || counts { // what counters have counted stays
				return
			}
			var was, is, later []*merge.Change
			for h := range 60 {
				all := rekey(mergetest.Changes(rnd, table.Table, 8), h)
				was, is, later = append(was, all[:4]...), append(is, all[2:6]...), append(later, all[6:]...)
			}
			if table.Group != nil {
				later = nil // a list that only the former history had is still remembered
			}
			if _, err := apply(t.Context(), s, table, was); err != nil {
				t.Fatal(err)
			}
			said := merge.NewHeld(table.Table, nil, nil, nil)
			keys := said.Write(merge.FoldAll(table.Table, is)).Touched
			for _, c := range was {
				if !c.Replaces && !slices.Contains(keys, c.Key) {
					keys = append(keys, c.Key)
				}
			}
			for range 2 {
				if err := r.Replace(t.Context(), table, said, keys); err != nil {
					t.Fatal(err)
				}
				mustHold(t, s, table, is, "after rows were replaced")
			}
			if _, err := apply(t.Context(), s, table, later); err != nil {
				t.Fatal(err)
			}
			mustHold(t, s, table, append(is, later...), "after more was written")
		})
	}
}
