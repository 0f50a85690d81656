// Package mergetest makes tables and changes by chance, for the property tests
// of everything that must agree with package merge.
package mergetest

import (
	"fmt"
	"math/rand/v2"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/merge"
)

// EveryRule returns a table with a column of every rule and of every kind of
// scope.
func EveryRule(occupied bool) *merge.Table {
	text, num := merge.Type{Kind: merge.Text}, merge.Type{Kind: merge.Numeric}
	columns := []merge.Column{
		{Name: "a", Type: text, Scope: merge.RowScope}, {Name: "b", Type: num, Scope: merge.RowScope},
		{Name: "p", Type: text, Scope: "p"}, {Name: "own", Type: text, Scope: merge.KeyScope},
		{Name: "f", Type: text, Rule: merge.First}, {Name: "m", Type: num, Rule: merge.Max}, {Name: "n", Type: num, Rule: merge.Min},
		{Name: "x", Type: text, Rule: merge.Max},
		{Name: "l", Type: text, Rule: merge.Ladder, Rungs: []string{"sent", "failed", "delivered", "read"}},
		{Name: "u", Type: merge.Type{Kind: merge.TextArray}, Rule: merge.Union}, {Name: "topmost", Type: num, Rule: merge.Max, Scope: merge.KeyScope},
		{Name: "touched", Type: merge.Type{Kind: merge.Timestamp}, Rule: merge.Touch},
	}
	if !occupied { // the scope key is for tables with occupants
		columns[3].Scope, columns[10].Scope = "own", ""
	}
	return merge.NewTable(merge.Table{Name: "every_rule", Occupied: occupied, Key: []merge.KeyColumn{{Name: "k", Type: text}}, Columns: columns})
}

// Changes makes n changes to a few rows of a table of EveryRule, with versions
// that tie, NULLs, unset columns and occupants of unknown since.
func Changes(rnd *rand.Rand, t *merge.Table, n int) []*merge.Change {
	out := make([]*merge.Change, n)
	for i := range out {
		c := &merge.Change{Table: t, From: event.Ref{Position: event.Position(i + 1)}, Key: merge.NewKey(fmt.Sprint("k", rnd.IntN(2)))}
		tuple := []merge.Component{merge.IntOf(int64(rnd.IntN(4)) - 1), merge.IntOf(int64(rnd.IntN(2)))}
		c.Version = merge.NewVersion(tuple, merge.Write, fmt.Append(nil, i))
		if t.Occupied && rnd.IntN(8) > 0 {
			c.Occupant = &merge.Occupant{ID: string(rune('A' + rnd.IntN(3)))}
			if rnd.IntN(3) > 0 {
				c.Occupant.Since = merge.IntOf(int64(rnd.IntN(3)))
			}
		}
		c.Cells = cells(rnd, t, c.Occupant != nil)
		out[i] = c
	}
	return out
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
		if silent || col.Rule == merge.Touch || !occupant && !t.OfKey(i) {
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
	case col.Type.Kind == merge.Numeric:
		texts = []string{"9", "10", "-3", "0.10", "12345678901234567890.000000001"}
	case col.Type.Kind == merge.TextArray:
		texts = []string{`["b","a"]`, `["c"]`, `[]`, `["a,\"b","{}"]`}
	}
	v, err := merge.ParseValue(col.Type, texts[rnd.IntN(len(texts))])
	if err != nil {
		panic(err)
	}
	return v
}
