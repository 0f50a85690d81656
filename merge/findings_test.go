package merge_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/converge"
	. "github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/merge/mergetest"
)

// The tests here are counterexamples: each shows, by its number, events that
// come out wrong under a rule that seems good enough.

// say makes a change at version v; columns come as name, text pairs, and the
// text NULL is NULL.
func say(t *Table, v int64, columns ...string) *Change {
	c := &Change{Table: t, Key: NewKey("k"), Cells: make([]Cell, len(t.Columns))}
	c.Version = NewVersion([]Component{IntOf(v)}, Write, []byte(strings.Join(columns, "|")))
	for i := 0; i < len(columns); i += 2 {
		col := t.Column(columns[i])
		cell := Cell{Set: true}
		if columns[i+1] != "NULL" {
			v, err := ParseValue(t.Columns[col].Type, columns[i+1])
			if err != nil {
				panic(err)
			}
			cell.Value = v
		}
		c.Cells[col] = cell
	}
	return c
}

func by(c *Change, id string, since int64) *Change {
	c.Occupant = &Occupant{ID: id}
	if since > 0 {
		c.Occupant.Since = IntOf(since)
	}
	return c
}

// everyOrder checks that the changes give the wanted cells in every order, with
// each of them doubled, in every grouping.
func everyOrder(t *testing.T, table *Table, want map[string]string, changes ...*Change) {
	t.Helper()
	inEveryOrder(t, table, changes, func(rows map[Key]shown) string {
		for name, text := range want {
			if got := rows[NewKey("k")].Cells[name]; got != text {
				return fmt.Sprintf("%s = %q, want %q", name, got, text)
			}
		}
		return ""
	})
}

// inEveryOrder asks wrong of the rows that the changes give in every order, with
// each of them doubled, in every grouping. Where there are many orders it takes
// some.
func inEveryOrder(t *testing.T, table *Table, changes []*Change, wrong func(rows map[Key]shown) string) {
	t.Helper()
	for order := range converge.Orders(len(changes), 120, 1) {
		for doubled := range converge.Double(order) {
			for s := range converge.Splits(doubled) {
				if w := wrong(incremental(table, changes, s)); w != "" {
					t.Fatalf("arrivals %v: %s", s, w)
				}
			}
		}
	}
	if w := wrong(show(table, Rows(table, changes))); w != "" {
		t.Fatalf("all at once: %s", w)
	}
}

func TestF3DeleteWinsItsOwnInstant(t *testing.T) {
	at := []Component{IntOf(5)}
	for i := range 200 {
		write := NewVersion(at, Write, []byte{byte(i)})
		del := NewVersion(at, Delete, []byte{byte(i), 1})
		if write >= del {
			t.Fatalf("write %s is not older than delete %s of the same instant", write, del)
		}
	}
}

func TestF4RowBelongsToItsNewestOccupant(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{Occupied: true})
	// The old invitee's cancel is stamped later than the new booking.
	everyOrder(t, table, map[string]string{"a": "active"},
		by(say(table, 10, "a", "canceled", "b", "0"), "A", 1),
		by(say(table, 9, "a", "active", "b", "0"), "B", 2))
	// Since joins by max: A's earlier since must not make B the newest.
	everyOrder(t, table, map[string]string{"a": "y"},
		by(say(table, 1, "a", "x", "b", "0"), "A", 5),
		by(say(table, 2, "a", "y", "b", "0"), "A", 3),
		by(say(table, 9, "a", "z", "b", "0"), "B", 4))
	// The row is replaced, not joined: A's greater maximum does not show.
	everyOrder(t, table, map[string]string{"m": "3"},
		by(say(table, 1, "m", "9"), "A", 1),
		by(say(table, 2, "m", "3"), "B", 2))
	// What shows is the joined record, not the last change.
	everyOrder(t, table, map[string]string{"a": "y", "b": "2", "m": "9"},
		by(say(table, 1, "m", "9"), "A", 1),
		by(say(table, 2, "a", "y", "b", "2"), "A", 1))
	// An event that does not know since when: older than any that does; both
	// unknown: the greater id.
	everyOrder(t, table, map[string]string{"a": "x"},
		by(say(table, 1, "a", "x", "b", "0"), "A", 1),
		by(say(table, 9, "a", "z", "b", "0"), "B", 0))
	everyOrder(t, table, map[string]string{"a": "z"},
		by(say(table, 9, "a", "x", "b", "0"), "A", 0),
		by(say(table, 1, "a", "z", "b", "0"), "B", 0))
	// A column of scope key is the row's own, whoever speaks of it.
	everyOrder(t, table, map[string]string{"a": "new", "own": "kept", "topmost": "7"},
		by(say(table, 5, "a", "old", "b", "0", "own", "kept", "topmost", "7"), "A", 1),
		by(say(table, 1, "a", "new", "b", "0", "topmost", "2"), "B", 2))
}

func TestF6OneEventUnderAGrownMappingIsTheSameVersion(t *testing.T) {
	body := []byte(`{"t":1,"a":"A","b":2}`)
	v := NewVersion([]Component{IntOf(1)}, Write, []byte("booking[0]"), body)
	if w := NewVersion([]Component{IntOf(1)}, Write, []byte("booking[0]"), body); v != w {
		t.Fatal("one event gave two versions")
	}
	table := mergetest.EveryRule(mergetest.Shape{})
	before, after := say(table, 1, "a", "A"), say(table, 1, "a", "A", "b", "2")
	after.Version = before.Version
	everyOrder(t, table, map[string]string{"a": "A", "b": "2"}, before, after)
}

func TestF7AnUnchangedValueStillRaisesTheVersion(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{})
	everyOrder(t, table, map[string]string{"a": "A"},
		say(table, 1, "a", "A", "b", "0"), say(table, 3, "a", "A", "b", "0"), say(table, 2, "a", "B", "b", "0"))
}

func TestF8EachRegisterHasItsOwnVersion(t *testing.T) {
	table := NewTable(Table{Name: "t", Key: []KeyColumn{{Name: "k"}}, Columns: []Column{
		{Name: "a", Scope: RowScope}, {Name: "f", Rule: First}, {Name: "g", Rule: First},
		{Name: "c1", Scope: "c1"}, {Name: "c2", Scope: "c2"},
	}})
	everyOrder(t, table, map[string]string{"f": "X"}, say(table, 2, "f", "Y"), say(table, 1, "f", "X"))
	everyOrder(t, table, map[string]string{"f": "X", "g": "5"}, say(table, 1, "f", "X"), say(table, 2, "f", "Y", "g", "5"))
	everyOrder(t, table, map[string]string{"c1": "1", "c2": "2"}, say(table, 1, "c1", "1"), say(table, 2, "c2", "2"))
}

func TestF9VersionsCompareAsBytes(t *testing.T) {
	at := func(s string) Component {
		x, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		c, err := TimeOf(x)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	sorted := []Component{
		NullOf(TimeComponent), at("0001-01-01T00:00:00Z"), at("2026-01-01T00:00:00+02:00"), at("2026-01-01T00:00:00Z"),
		at("2026-01-01T00:00:00.000000001Z"), at("2026-01-01T00:00:00.1Z"), at("2026-01-01T00:00:01Z"),
	}
	if !slices.IsSorted(sorted) {
		t.Errorf("times out of order: %q", sorted)
	}
	ints := []Component{NullOf(IntComponent)}
	for _, n := range []int64{-1 << 63, -1000, -99, -1, 0, 1, 9, 10, 1<<63 - 1} {
		ints = append(ints, IntOf(n))
	}
	if !slices.IsSorted(ints[1:]) || ints[0] > ints[1] {
		t.Errorf("integers out of order: %q", ints)
	}
	for range 1000 {
		a, b := rand.Int64()-1<<62, rand.Int64()-1<<62
		if (a < b) != (IntOf(a) < IntOf(b)) {
			t.Fatalf("%d and %d", a, b)
		}
	}
	v := NewVersion([]Component{at("2026-01-01T00:00:00.5Z"), IntOf(-3), NullOf(IntComponent)}, Write)
	if got := v.Show(); got != "2026-01-01T00:00:00.5Z/-3/null" {
		t.Errorf("shown as %s", got)
	}
	if at, ok := v.Time(); !ok || !at.Equal(time.Date(2026, 1, 1, 0, 0, 0, 5e8, time.UTC)) {
		t.Errorf("its time is %v, %v", at, ok)
	}
	if _, ok := NewVersion([]Component{IntOf(1)}, Write).Time(); ok {
		t.Error("a version without a time has one")
	}
	if Version("") >= v {
		t.Error("no version is not older than every version")
	}
}

func TestF21ValueOffTheLadderIsBelowAll(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{})
	off, on := say(table, 9, "l", "warning"), say(table, 1, "l", "sent")
	everyOrder(t, table, map[string]string{"l": "sent"}, off, on)
}

func TestF22EqualValuesAreEqualBytes(t *testing.T) {
	for _, c := range []struct{ typ, in, want string }{
		{"numeric", "1.00", "1"}, {"numeric", "1e3", "1000"}, {"numeric", "-0.0", "0"}, {"numeric", "0.10", "0.1"},
		{"numeric", "18446744073709551616", "18446744073709551616"}, {"numeric(5,2)", "100.5", "100.5"},
		{"int", "9007199254740993", "9007199254740993"}, {"int", "5.0", "5"}, {"int", "1e3", "1000"}, {"int", "-0", "0"},
		{"float", "-0.0", "0"}, {"float", "1.50", "1.5"},
		{"uuid", "0F7D2C1E-5B3A-4C9D-8E6F-2A1B3C4D5E6F", "0f7d2c1e-5b3a-4c9d-8e6f-2a1b3c4d5e6f"},
		{"timestamp", "2026-01-01T02:00:00.1234567+02:00", "2026-01-01T00:00:00.123456Z"},
		{"timestamp", "2026-01-01T00:00:00z", "2026-01-01T00:00:00.000000Z"},
		{"json", `{"b": 1.0, "a": 9007199254740993}`, `{"a":9007199254740993,"b":1.0}`},
		{"json", `[1E2, "1E100000", -2.50e-3]`, `[1E2,"1E100000",-2.50e-3]`},
		{"text[]", `[ "b", "a" ]`, `["b","a"]`}, {"bytes", `\xAB`, `\xab`}, {"date", "2026-02-28", "2026-02-28"},
		{"text", "é", "é"},
	} {
		typ, err := ParseType(c.typ)
		if err != nil {
			t.Fatal(err)
		}
		v, err := ParseValue(typ, c.in)
		if err != nil || v.Text() != c.want {
			t.Errorf("%s %s: %q, %v; want %q", c.typ, c.in, v.Text(), err, c.want)
		}
	}
}

func TestValuesThatDoNotFitAreRefusedWithTheReason(t *testing.T) {
	for _, c := range []struct{ typ, in, want string }{
		{"text(9)", "automatic_async", "15 characters into text(9)"},
		{"int", "9223372036854775808", "9223372036854775808 does not fit int"},
		{"int", "1.5", "1.5 does not fit int"},
		{"numeric(5,2)", "1000", "1000 does not fit numeric(5,2)"},
		{"numeric(5,2)", "1.005", "1.005 does not fit numeric(5,2)"},
		{"numeric", "1e100000", "more than 1000 digits"},
		{"numeric", "NaN", "NaN does not fit numeric"},
		{"timestamp", "1767400000", "write timestamp(x)"},
		{"timestamp", "2026-01-01T00:00:00", "has no offset"},
		{"bool", "yes", "yes does not fit bool"},
		{"date", "2026-02-30", "does not fit date"},
		{"uuid", "1234", "does not fit uuid"},
		{"json", "{", "does not fit json"},
		{"json", `{"a":[1E100000]}`, "it holds the number 1E100000, which would be written out in more than 1000 digits"},
		{"json", `-1e-2000`, "more than 1000 digits"},
		{"float", "Inf", "does not fit float"},
	} {
		typ, _ := ParseType(c.typ)
		if _, err := ParseValue(typ, c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.typ, c.in, err, c.want)
		}
	}
	for typ, in := range map[string]string{"text": "a\x00b", "json": `{"a":"\u0000"}`, "text(3)": "\xff"} {
		kind, _ := ParseType(typ)
		if _, err := ParseValue(kind, in); !errors.Is(err, ErrBadText) {
			t.Errorf("%s %q: %v, want ErrBadText", typ, in, err)
		}
	}
	if _, err := ParseValue(Type{Kind: JSON}, `{"a":"\\u0000"}`); err != nil {
		t.Errorf("a backslash before u0000 is text like any other: %v", err)
	}
}

func TestF23AChangeWithoutARowColumnMovesNoRowVersion(t *testing.T) {
	table := mergetest.EveryRule(mergetest.Shape{})
	late := say(table, 1, "a", "full", "b", "1")
	everyOrder(t, table, map[string]string{"a": "full", "p": "x"}, late, say(table, 9, "p", "x"))
}

func FuzzVersionOrder(f *testing.F) {
	f.Add(int64(-5), int64(7), int64(0), int64(1))
	f.Fuzz(func(t *testing.T, a, b, x, y int64) {
		v := NewVersion([]Component{IntOf(a), IntOf(x)}, Write)
		w := NewVersion([]Component{IntOf(b), IntOf(y)}, Write)
		if less := a < b || a == b && x < y; less != (v < w) {
			t.Fatalf("(%d,%d) < (%d,%d) is %v, encoded %v", a, x, b, y, less, v < w)
		}
		if len(v) != len(w) {
			t.Fatalf("%s and %s differ in width", v, w)
		}
	})
}

func FuzzParseValue(f *testing.F) {
	f.Add("numeric(9,2)", "1e-2")
	f.Add("json", `{"a":[1,"\ud800"]}`)
	f.Add("timestamp", "2026-01-01 00:00:00+01")
	f.Fuzz(func(t *testing.T, typ, in string) {
		kind, err := ParseType(typ)
		if err != nil {
			return
		}
		v, err := ParseValue(kind, in)
		if err != nil {
			return
		}
		again, err := ParseValue(kind, v.Text())
		if err != nil || again != v {
			t.Fatalf("%s %q gave %q, which gives %q, %v", typ, in, v.Text(), again.Text(), err)
		}
	})
}
