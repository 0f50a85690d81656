// Package mergetest makes tables and changes by chance, for the property tests
// of everything that must agree with package merge.
package mergetest

import (
	"fmt"
	"math/rand/v2"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/merge"
)

// Shape is what a table can be beside its columns.
type Shape struct {
	Occupied, Chained bool
	// Grouped rows are replaced together by the first part of their key, Whole ones
	// all at once.
	Grouped, Whole bool
	OnDelete       merge.DeleteRule
	// Counted adds counters; tables with deletes or chains have them anyway.
	Counted bool
	// Beside keeps the versions of the table's rows beside it.
	Beside bool
}

// Shapes are all shapes that a table can have.
func Shapes() []Shape {
	out := []Shape{{}, {Occupied: true}}
	for _, d := range []merge.DeleteRule{merge.DeleteMark, merge.DeleteRemove, merge.DeleteSet} {
		out = append(out, Shape{OnDelete: d}, Shape{OnDelete: d, Occupied: true}, Shape{OnDelete: d, Occupied: true, Chained: true}, Shape{OnDelete: d, Grouped: true})
	}
	return append(out, Shape{OnDelete: merge.DeleteRemove, Whole: true}, Shape{Occupied: true, Chained: true}, Shape{Counted: true}, Shape{Counted: true, Occupied: true})
}

// Name names a shape, fit for a table.
func (s Shape) Name() string {
	name := []string{"plain", "mark", "remove", "set"}[s.OnDelete]
	for _, x := range []struct {
		has  bool
		name string
	}{{s.Chained, "chained"}, {s.Occupied && !s.Chained, "occupied"}, {s.Grouped, "grouped"}, {s.Whole, "whole"}, {s.Counted, "counted"}, {s.Beside, "beside"}} {
		if x.has {
			name += "_" + x.name
		}
	}
	return name
}

// EveryRule returns a table with a column of every rule and of every kind of
// scope that its shape allows.
func EveryRule(shape Shape) *merge.Table {
	text, num := merge.Type{Kind: merge.Text}, merge.Type{Kind: merge.Numeric}
	own, topmost := "own", "" // the scope key is for tables with occupants
	if shape.Occupied {
		own, topmost = merge.KeyScope, merge.KeyScope
	}
	columns := []merge.Column{
		{Name: "a", Type: text, Scope: merge.RowScope}, {Name: "b", Type: num, Scope: merge.RowScope},
		{Name: "p", Type: text, Scope: "p"}, {Name: "own", Type: text, Scope: own},
		{Name: "touched", Type: merge.Type{Kind: merge.Timestamp}, Rule: merge.Touch},
	}
	if shape.OnDelete == merge.DeleteSet {
		gone, yes := canonical(text, "gone"), canonical(merge.Type{Kind: merge.Bool}, "true")
		columns[0].OnDelete = &gone
		columns = append(columns, merge.Column{Name: "deleted", Type: merge.Type{Kind: merge.Bool}, Rule: merge.Flag, OnDelete: &yes})
	}
	if shape.OnDelete != merge.DeleteRemove { // the other rules keep no version to compare with a delete
		columns = append(columns,
			merge.Column{Name: "f", Type: text, Rule: merge.First}, merge.Column{Name: "m", Type: num, Rule: merge.Max}, merge.Column{Name: "n", Type: num, Rule: merge.Min},
			merge.Column{Name: "x", Type: text, Rule: merge.Max},
			merge.Column{Name: "l", Type: text, Rule: merge.Ladder, Rungs: []string{"sent", "failed", "delivered", "read"}},
			merge.Column{Name: "u", Type: merge.Type{Kind: merge.TextArray}, Rule: merge.Union}, merge.Column{Name: "topmost", Type: num, Rule: merge.Max, Scope: topmost})
		if shape.OnDelete != merge.DeleteNone || shape.Chained || shape.Counted {
			columns = append(columns, merge.Column{Name: "s", Type: num, Rule: merge.Sum, Scope: topmost}, merge.Column{Name: "c", Type: merge.Type{Kind: merge.Int}, Rule: merge.Count, Scope: topmost})
		}
	}
	t := merge.Table{Name: shape.Name(), Occupied: shape.Occupied, Chained: shape.Chained, OnDelete: shape.OnDelete,
		Key: []merge.KeyColumn{{Name: "k", Type: text}}, Columns: columns}
	if shape.Grouped {
		t.Key = []merge.KeyColumn{{Name: "g", Type: text}, {Name: "k", Type: text}}
		t.Group = []int{0}
	}
	if shape.Whole {
		t.Group = []int{}
	}
	return merge.NewTable(t)
}

func canonical(t merge.Type, text string) merge.Value {
	v, err := merge.ParseValue(t, text)
	if err != nil {
		panic(err)
	}
	return v
}

// Changes makes n changes to a few rows of a table of EveryRule, with versions
// that tie, NULLs, unset columns, occupants of unknown since, deletes, complete
// lists, and links that branch and run in rings.
func Changes(rnd *rand.Rand, t *merge.Table, n int) []*merge.Change {
	out := make([]*merge.Change, n)
	for i := range out {
		out[i] = change(rnd, t, i)
	}
	return out
}

func change(rnd *rand.Rand, t *merge.Table, i int) *merge.Change {
	c := &merge.Change{Table: t, From: event.Ref{Position: event.Position(i + 1)}, Cells: make([]merge.Cell, len(t.Columns))}
	tuple := []merge.Component{merge.IntOf(int64(rnd.IntN(4)) - 1), merge.IntOf(int64(rnd.IntN(2)))}
	part := fmt.Sprint("k", rnd.IntN(2))
	c.Key = merge.NewKey(part)
	c.Identity = fmt.Sprint("e", rnd.IntN(4)) // some events come again with another amount
	kind := merge.Write
	switch {
	case t.Group != nil && rnd.IntN(4) == 0:
		c.Key, c.Replaces = merge.NewKey(), true
		if len(t.Group) > 0 {
			c.Key = merge.NewKey(fmt.Sprint("g", rnd.IntN(2)))
		}
		c.DeletedAt = canonical(merge.Type{Kind: merge.Timestamp}, fmt.Sprintf("2026-01-%02dT00:00:00Z", i%28+1))
		if rnd.IntN(3) == 0 { // the parent was deleted
			kind = merge.Delete
		}
	case t.OnDelete != merge.DeleteNone && rnd.IntN(4) == 0:
		c.Delete, kind = true, merge.Delete
		c.DeletedAt = canonical(merge.Type{Kind: merge.Timestamp}, fmt.Sprintf("2026-02-%02dT00:00:00Z", i%28+1))
	}
	if len(t.Group) > 0 && !c.Replaces {
		c.Key = merge.NewKey(fmt.Sprint("g", rnd.IntN(2)), part)
	}
	c.Version = merge.NewVersion(tuple, kind, fmt.Append(nil, i))
	if t.Chained {
		c.Key = merge.NewKey(string(rune('A' + rnd.IntN(4))))
		if rnd.IntN(2) == 0 {
			l := merge.Link{Old: string(c.Key), New: string(rune('A' + rnd.IntN(4)))}
			if rnd.IntN(2) == 0 {
				l.Old, l.New = l.New, l.Old
			}
			c.Links = []merge.Link{l}
		}
	}
	if t.Occupied && (rnd.IntN(8) > 0 || t.Chained || c.Delete) {
		c.Occupant = &merge.Occupant{ID: string(rune('A' + rnd.IntN(3)))}
		if t.Chained {
			c.Occupant.ID = string(c.Key)
		}
		if rnd.IntN(3) > 0 {
			c.Occupant.Since = merge.IntOf(int64(rnd.IntN(3)))
		}
	}
	if !c.Delete && !c.Replaces {
		c.Cells = cells(rnd, t, c.Occupant != nil)
	}
	return c
}

// cells says nothing or something of each column, but all or nothing of a
// scope.
func cells(rnd *rand.Rand, t *merge.Table, occupant bool) []merge.Cell {
	feeds := map[string]bool{}
	for _, s := range t.Scopes() {
		feeds[s] = rnd.IntN(10) < 6
	}
	out := make([]merge.Cell, len(t.Columns))
	for i := range t.Columns {
		col := &t.Columns[i]
		silent := rnd.IntN(2) == 0
		if col.Rule == merge.Latest {
			silent = !feeds[col.Scope]
		}
		if silent || col.Rule == merge.Touch || col.Rule == merge.Flag || !occupant && !t.OfKey(i) {
			continue
		}
		out[i] = merge.Cell{Set: true, Value: value(rnd, col)}
	}
	return out
}

func value(rnd *rand.Rand, col *merge.Column) merge.Value {
	if rnd.IntN(6) == 0 {
		return merge.NullValue
	}
	texts := []string{"x", "y", "Z", "é"}
	switch {
	case col.Rule == merge.Ladder:
		texts = col.Rungs
	case col.Rule == merge.Count:
		texts = []string{"1"}
	case col.Type.Kind == merge.Numeric:
		texts = []string{"9", "10", "-3", "0.10", "12345678901234567890.000000001"}
	case col.Type.Kind == merge.TextArray:
		texts = []string{`["b","a"]`, `["c"]`, `[]`, `["a,\"b","{}"]`}
	}
	return canonical(col.Type, texts[rnd.IntN(len(texts))])
}
