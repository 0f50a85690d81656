package merge_test

import (
	"fmt"
	"testing"

	. "github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/merge/mergetest"
)

// Counterexamples of what one row alone cannot decide.

func remove(t *Table, v int64, at string) *Change {
	c := say(t, v)
	c.Delete = true
	c.Version = NewVersion([]Component{IntOf(v)}, Delete, []byte(at))
	if at != "" {
		c.DeletedAt, _ = ParseValue(Type{Kind: Timestamp}, at)
	}
	return c
}

// gone checks that no row shows, in every order.
func gone(t *testing.T, table *Table, changes ...*Change) {
	t.Helper()
	absent(t, table, "k", changes...)
}

func absent(t *testing.T, table *Table, key Key, changes ...*Change) {
	t.Helper()
	inEveryOrder(t, table, changes, func(rows map[Key]shown) string {
		if r, ok := rows[key]; ok {
			return fmt.Sprintf("the row is there: %v", r.Cells)
		}
		return ""
	})
}

func TestF2TheDeleteVersionIsStored(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{OnDelete: DeleteMark})
	// A delete between two writes: the row lives, in every order.
	u1, d2, u3 := say(table, 1, "a", "1", "b", "1"), remove(table, 2, "2026-01-01T00:00:00Z"), say(table, 3, "a", "3", "b", "3")
	everyOrder(t, table, map[string]string{"a": "3"}, u1, d2, u3)
	inEveryOrder(t, table, []*Change{u1, d2, u3}, func(rows map[Key]shown) string {
		return rows["k"].Deleted
	})
	// deleted_at is the time of the delete that counts, and a late update does
	// not bring the row back.
	d5, u4 := remove(table, 5, "2026-01-05T00:00:00Z"), say(table, 4, "a", "4", "b", "4")
	inEveryOrder(t, table, []*Change{u1, d2, d5, u4}, func(rows map[Key]shown) string {
		if got := rows["k"]; got.Deleted != "2026-01-05T00:00:00.000000Z" || got.Cells["a"] != "4" {
			return fmt.Sprint(got)
		}
		return ""
	})
}

func TestADeleteInsertsNothing(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{OnDelete: DeleteMark})
	waits := say(table, 3, "a", "x", "b", "0")
	waits.IfMissing = Wait
	if rows := Rows(table, []*Change{remove(table, 2, ""), waits}); len(rows) != 0 {
		t.Errorf("a delete and a change that may not insert made a row: %+v", rows[0])
	}
}

func TestF4eADeletedOccupantLeavesNoWayBack(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{Occupied: true, OnDelete: DeleteRemove})
	gone(t, table,
		by(say(table, 1, "a", "x", "b", "0"), "A", 1), by(say(table, 2, "a", "y", "b", "0"), "B", 2),
		by(remove(table, 3, ""), "B", 0), by(say(table, 1, "a", "w", "b", "0"), "A", 1))
	everyOrder(t, table, map[string]string{"a": "again"},
		by(say(table, 1, "a", "x", "b", "0"), "A", 1), by(remove(table, 3, ""), "A", 1), by(say(table, 4, "a", "again", "b", "0"), "A", 1))
}

func linked(c *Change, links ...Link) *Change {
	c.Links = links
	return c
}

func identity(c *Change, id string) *Change {
	c.Key, c.Occupant = NewKey(id), &Occupant{ID: id}
	return c
}

func TestF5AChainHasOneKeyInEveryOrder(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{Occupied: true, Chained: true, OnDelete: DeleteRemove})
	tip := func(changes []*Change, key Key, a string) {
		t.Helper()
		inEveryOrder(t, table, changes, func(rows map[Key]shown) string {
			if len(rows) != 1 || rows[key].Cells["a"] != a {
				return fmt.Sprint(rows)
			}
			return ""
		})
	}
	a, b, c := identity(say(table, 9, "a", "first", "b", "0"), "A"), identity(say(table, 8, "a", "second", "b", "0"), "B"), identity(say(table, 1, "a", "third", "b", "0"), "C")
	// The last of the chain shows, though it has the smallest version.
	tip([]*Change{linked(a, Link{"A", "B"}), linked(b, Link{"B", "C"}), c}, "A", "third")
	// Branches and rings have a key that does not depend on arrival.
	tip([]*Change{linked(identity(say(table, 1, "a", "x", "b", "0"), "A"), Link{"A", "B"}, Link{"A", "C"}), identity(say(table, 2, "a", "y", "b", "0"), "B")}, "A", "y")
	tip([]*Change{linked(identity(say(table, 1, "a", "x", "b", "0"), "A"), Link{"A", "B"}), linked(identity(say(table, 2, "a", "y", "b", "0"), "B"), Link{"B", "A"})}, "A", "y")
	// A delete moves with its chain: B was deleted before A was known to precede it.
	del := remove(table, 5, "")
	del.Key, del.Occupant = "B", &Occupant{ID: "B"}
	absent(t, table, "A", linked(identity(say(table, 3, "a", "x", "b", "0"), "A"), Link{"A", "B"}), identity(say(table, 4, "a", "y", "b", "0"), "B"), del)
}

func TestF5LineTellsBranchesAndRings(t *testing.T) {
	for _, c := range []struct {
		links Links
		root  string
		line  bool
	}{
		{Links{{"A", "B"}: true, {"B", "C"}: true}, "A", true},
		{Links{{"A", "B"}: true, {"A", "C"}: true}, "A", false},
		{Links{{"B", "C"}: true, {"A", "C"}: true}, "A", false},
		{Links{{"B", "A"}: true, {"A", "B"}: true}, "A", false},
		{Links{{"C", "B"}: true}, "C", true},
		{Links{{"A", "A"}: true}, "A", true},
	} {
		chains := NewChains(c.links)
		for l := range c.links {
			if got := chains.Root(l.New); got != c.root {
				t.Errorf("%v: the key is %s, want %s", c.links, got, c.root)
			}
		}
		if got := chains.Line(c.root); got != c.line {
			t.Errorf("%v: a line is %v, want %v", c.links, got, c.line)
		}
	}
}

// child makes a change of a row of a group, set the list of a group.
func child(c *Change, group, key string) *Change {
	c.Key = NewKey(group, key)
	return c
}

func set(t *Table, v int64, kind ChangeKind, group, hash string) *Change {
	return &Change{Table: t, Key: NewKey(group), Replaces: true, Version: NewVersion([]Component{IntOf(v)}, kind, []byte(hash)), Cells: make([]Cell, len(t.Columns))}
}

func TestF10ACompleteListRemembersItsVersion(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{Grouped: true, OnDelete: DeleteRemove})
	one := func(v int64, group, key, a string) *Change { return child(say(table, v, "a", a, "b", "0"), group, key) }
	of := func(list, c *Change) *Change { // a child of a list bears the list's own version
		c.Version = list.Version
		return c
	}
	// (a) a late single child does not come into a newer empty list.
	absent(t, table, NewKey("P", "x"), set(table, 6, Write, "P", "empty"), one(5, "P", "x", "late"))
	// (b) two lists of one instant: the rows of one of them, not a mixture.
	l1, l2 := set(table, 4, Write, "P", "1"), set(table, 4, Write, "P", "2")
	inEveryOrder(t, table, []*Change{
		l1, of(l1, one(4, "P", "a", "1")), of(l1, one(4, "P", "b", "1")),
		l2, of(l2, one(4, "P", "b", "2")), of(l2, one(4, "P", "c", "2")),
	}, func(rows map[Key]shown) string {
		first, last := rows[NewKey("P", "a")], rows[NewKey("P", "c")]
		if len(rows) != 2 || (first.Cells == nil) == (last.Cells == nil) {
			return fmt.Sprint(rows)
		}
		return ""
	})
	// (d) the parent was deleted: its children do not come back.
	l4 := set(table, 4, Write, "P", "1")
	absent(t, table, NewKey("P", "x"), l4, of(l4, one(4, "P", "x", "1")), set(table, 5, Delete, "P", ""))
	// A newer single child lives, and another group is not touched.
	inEveryOrder(t, table, []*Change{set(table, 6, Write, "P", ""), one(7, "P", "x", "new"), one(1, "Q", "x", "other")}, func(rows map[Key]shown) string {
		if len(rows) != 2 {
			return fmt.Sprint(rows)
		}
		return ""
	})
}

func TestF12AStubDoesNotBeatADelete(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{OnDelete: DeleteMark})
	parent, del := say(table, 1, "a", "x", "b", "0"), remove(table, 5, "2026-01-05T00:00:00Z")
	stub := say(table, 4) // what a child at version 4 knows of it
	inEveryOrder(t, table, []*Change{parent, del, stub}, func(rows map[Key]shown) string {
		if rows["k"].Deleted == "" {
			return "the stub brought it back"
		}
		return ""
	})
	inEveryOrder(t, table, []*Change{parent, del, say(table, 6)}, func(rows map[Key]shown) string { return rows["k"].Deleted })
}

func counts(c *Change, event string) *Change {
	c.Identity = event
	return c
}

func TestF14AnEventCountsOnce(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{Counted: true})
	// (a) of two amounts of one event the one with the greater version counts.
	everyOrder(t, table, map[string]string{"s": "19", "c": "2"},
		counts(say(table, 1, "s", "5", "c", "1"), "E"), counts(say(table, 2, "s", "7", "c", "1"), "E"), counts(say(table, 1, "s", "12", "c", "1"), "F"))
	// (d) what was there before stays below what is counted.
	base := &Row{Key: "k", Written: true, Scopes: make([]Version, len(table.Scopes())), Cells: make([]Cell, len(table.Columns))}
	hundred, _ := ParseValue(Type{Kind: Numeric}, "100")
	base.Cells[table.Column("s")] = Cell{Set: true, Value: hundred}
	h := NewHeld(table, []*Row{base}, nil, nil)
	for range 3 {
		h.Write(FoldAll(table, []*Change{counts(say(table, 1, "s", "5"), "E")}))
	}
	if got := h.Shown("k").Cells[table.Column("s")].Value.Text(); got != "105" {
		t.Errorf("100 and an event of 5, three times: %s", got)
	}
}

func TestF24RulesWithoutVersionsRunOnAcrossLives(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{OnDelete: DeleteMark})
	everyOrder(t, table, map[string]string{"a": "again", "m": "9", "f": "first"},
		say(table, 1, "a", "x", "b", "0", "m", "9", "f", "first"), remove(table, 2, ""), say(table, 3, "a", "again", "b", "0", "m", "3", "f", "second"))
}
