package merge_test

import (
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
