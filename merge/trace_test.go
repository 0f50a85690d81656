package merge_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/merge/mergetest"
)

func fateOf(t *testing.T, s Step, column string) ColumnFate {
	t.Helper()
	for _, c := range s.Columns {
		if c.Column == column {
			return c
		}
	}
	t.Fatalf("no fate of %s in %+v", column, s)
	return ColumnFate{}
}

func TestTraceTellsWhyAChangeLost(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{})
	newer := say(table, 5, "a", "new", "b", "1", "l", "read", "m", "9", "n", "-3", "f", "second")
	older := say(table, 3, "a", "old", "b", "1", "l", "sent", "m", "2", "n", "4", "f", "first")
	steps := Trace(table, []*Change{newer, older, newer})

	for column, want := range map[string]struct {
		fate   Fate
		reason string
	}{
		"a": {Lost, "its version 3 is older than 5"},
		"b": {Same, ""},
		"l": {Lost, "sent is a lower rung than read"},
		"m": {Lost, "2 is less than 9"},
		"n": {Lost, "4 is more than -3"},
		"f": {Won, ""},
	} {
		got := fateOf(t, steps[1], column)
		if got.Fate != want.fate || got.Reason != want.reason {
			t.Errorf("%s: %s %q, want %s %q", column, got.Fate, got.Reason, want.fate, want.reason)
		}
		if got.Fate == Lost && got.Against != newer {
			t.Errorf("%s lost against %v, want the newer change", column, got.Against)
		}
	}
	if got := fateOf(t, steps[2], "f"); got.Fate != Lost || got.Against != older {
		t.Errorf("the second first: %+v", got)
	}
	if steps[0].Lost() || !steps[1].Lost() {
		t.Error("Lost does not tell a loser from a winner")
	}
}

func TestTraceTellsOfOtherOccupants(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{Occupied: true})
	created := by(say(table, 9, "a", "active", "b", "0"), "B", 2)
	cancel := by(say(table, 10, "a", "canceled", "b", "0"), "A", 1)
	steps := Trace(table, []*Change{created, cancel})
	got := fateOf(t, steps[1], "a")
	if got.Fate != Hidden || got.Against != created || !strings.Contains(got.Reason, "about A, and the row belongs to B since 2") {
		t.Errorf("%+v", got)
	}
}

func TestTraceNamesATie(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{})
	x, y := say(table, 1, "a", "x", "b", "0"), say(table, 1, "a", "y", "b", "0")
	if x.Version > y.Version {
		x, y = y, x
	}
	got := fateOf(t, Trace(table, []*Change{y, x})[1], "a")
	if got.Fate != Lost || !strings.HasPrefix(got.Reason, "two different events have the version 1") {
		t.Errorf("%+v", got)
	}
}

// whatShows is what the steps say shows in the end.
func whatShows(steps []Step) []Key {
	shows := map[Key]bool{}
	for _, s := range steps {
		for _, k := range s.Appeared {
			shows[k] = true
		}
		for _, k := range s.Gone {
			delete(shows, k)
		}
	}
	return slices.Sorted(maps.Keys(shows))
}

func TestTraceEndsWithTheRows(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, shape := range mergetest.Shapes() {
		table := mergetest.EveryRule(shape)
		for range 300 {
			changes := mergetest.Changes(rnd, table, 1+rnd.IntN(8))
			steps := Trace(table, changes)
			rows := Rows(table, changes)
			var keys []Key
			for _, r := range rows {
				keys = append(keys, r.Key)
			}
			if got := whatShows(steps); !slices.Equal(got, keys) {
				t.Fatalf("%s: the steps end with rows %q, want %q", shape.Name(), got, keys)
			}
			// What a row shows was won by a change.
			for _, r := range rows {
				for i, cell := range r.Cells {
					switch table.Columns[i].Rule {
					case Sum, Count, Union, Chain, Flag:
						continue
					}
					if cell.Set && !slices.ContainsFunc(steps, func(s Step) bool { return wins(s, table.Columns[i].Name, cell.Value) }) && !shownForADelete(table, i, cell) {
						t.Fatalf("%s: no step won %s=%s", shape.Name(), table.Columns[i].Name, cell.Value)
					}
				}
			}
		}
	}
}

func shownForADelete(table *Table, i int, cell Cell) bool {
	on := table.Columns[i].OnDelete
	return on != nil && *on == cell.Value
}

func wins(s Step, column string, v Value) bool {
	return slices.ContainsFunc(s.Columns, func(c ColumnFate) bool { return c.Column == column && c.Value == v && c.Fate != Lost })
}

func TestTraceTellsOfDeletes(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{OnDelete: DeleteRemove})
	created, deleted, late, again := say(table, 1, "a", "x", "b", "1"), remove(table, 5, ""), say(table, 3, "a", "late", "b", "1"), say(table, 7, "a", "again", "b", "1")
	old := remove(table, 2, "")
	steps := Trace(table, []*Change{created, deleted, late, old, again, old})

	if s := steps[1]; s.Whole == nil || s.Whole.Fate != Won || !slices.Equal(s.Gone, []Key{"k"}) {
		t.Errorf("the delete: %+v", s)
	}
	if got := fateOf(t, steps[2], "a"); got.Fate != Hidden || got.Reason != "the row was deleted at 5" || got.Against != deleted {
		t.Errorf("the late write: %+v", got)
	}
	if w := steps[3].Whole; w.Fate != Lost || w.Reason != "its version 2 is older than 5" || w.Against != deleted {
		t.Errorf("the older delete: %+v", w)
	}
	if s := steps[4]; fateOf(t, s, "a").Fate != Won || !slices.Equal(s.Appeared, []Key{"k"}) {
		t.Errorf("the new life: %+v", s)
	}
	// What the row remembers of its deletes while it lives may be forgotten.
	if w := Trace(table, []*Change{again, old})[1].Whole; w.Fate != Lost || w.Reason != "the row was written at 7, which is not before 2" || w.Against != again {
		t.Errorf("a delete from before the row: %+v", w)
	}
}

func TestTraceTellsOfLists(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{OnDelete: DeleteRemove, Grouped: true})
	list := func(v int64) *Change {
		return &Change{Table: table, Key: "g", Replaces: true, Version: NewVersion([]Component{IntOf(v)}, Write, nil), Cells: make([]Cell, len(table.Columns))}
	}
	child := func(v int64, k string) *Change {
		c := say(table, v, "a", k, "b", "0")
		c.Key = NewKey("g", k)
		return c
	}
	first, second, late := child(1, "x"), list(4), child(2, "y")
	steps := Trace(table, []*Change{first, second, late, list(3)})
	if s := steps[1]; s.Whole.Fate != Won || !slices.Equal(s.Gone, []Key{NewKey("g", "x")}) {
		t.Errorf("the list: %+v", s)
	}
	if got := fateOf(t, steps[2], "a"); got.Fate != Hidden || got.Reason != "the complete list of 4 does not name the row" || got.Against != second {
		t.Errorf("the late child: %+v", got)
	}
	if w := steps[3].Whole; w.Fate != Lost || w.Reason != "its version 3 is older than 4" || w.Against != second {
		t.Errorf("the older list: %+v", w)
	}
}

func TestTraceFollowsChains(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{Occupied: true, Chained: true, OnDelete: DeleteRemove})
	b := identity(say(table, 2, "a", "second", "b", "0"), "B")
	a := linked(identity(say(table, 9, "a", "first", "b", "0"), "A"), Link{"A", "B"})
	steps := Trace(table, []*Change{b, a, b})
	if s := steps[1]; s.Key != "A" || !slices.Equal(s.Appeared, []Key{"A"}) || !slices.Equal(s.Gone, []Key{"B"}) {
		t.Errorf("joining the chain: %+v", s)
	}
	if got := fateOf(t, steps[1], "a"); got.Fate != Hidden || got.Against != b || got.Reason != "it is about A, and the row belongs to B" {
		t.Errorf("the older identity: %+v", got)
	}
	if s := steps[2]; s.Key != "A" || fateOf(t, s, "a").Fate != Same {
		t.Errorf("the newer identity again: %+v", s)
	}
}

func TestTraceTellsOfCounters(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{Counted: true})
	counts := func(v int64, id, amount string) *Change {
		c := say(table, v, "s", amount)
		c.Identity = id
		return c
	}
	paid, again, corrected := counts(1, "e1", "5"), counts(1, "e1", "5"), counts(2, "e1", "7")
	steps := Trace(table, []*Change{paid, again, corrected, paid})
	for i, want := range []Fate{Won, Same, Won, Lost} {
		if got := fateOf(t, steps[i], "s"); got.Fate != want {
			t.Errorf("step %d: %+v, want %s", i, got, want)
		}
	}
	if got := fateOf(t, steps[3], "s").Reason; got != "this event counts as 7 already: its version 1 is older than 2" {
		t.Error(got)
	}
}

func TestTraceLetsWhatWaitsLandWithItsRow(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{})
	waits, creates := say(table, 3, "a", "later", "b", "0"), say(table, 1, "a", "first", "b", "0")
	waits.IfMissing = Wait
	skips := say(table, 2, "a", "skipped", "b", "0")
	skips.IfMissing = Skip
	steps := Trace(table, []*Change{waits, skips, creates})
	if got := fateOf(t, steps[0], "a"); got.Fate != Won {
		t.Errorf("what waited: %+v", got)
	}
	if w := steps[1].Whole; w == nil || w.Fate != Lost || len(steps[1].Columns) > 0 {
		t.Errorf("what was skipped: %+v", steps[1])
	}
	if w := Trace(table, []*Change{waits})[0].Whole; w.Reason != "there is no row yet, and it waits for one" {
		t.Errorf("what waits: %+v", w)
	}
}
