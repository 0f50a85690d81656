package sinktest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/merge/mergetest"
	"github.com/hookfold/hookfold/sink"
)

// pages reads rows page by page: each once, and the same as Read gives them.
func pages(t *testing.T, e Engine) {
	keys := map[string][]string{
		"text": {"", "a", "A", "ä", "b", "a b", "B_", "10", "9", "z", "Z", "é"},
		"int":  {"-1", "0", "9", "10", "9007199254740993", "9223372036854775807", "-9223372036854775808"},
	}
	for _, name := range []string{"text", "int"} {
		t.Run(name, func(t *testing.T) {
			typ, err := merge.ParseType(name)
			if err != nil {
				t.Fatal(err)
			}
			table := &sink.Table{Name: "p", Table: merge.NewTable(merge.Table{
				Name: "p", Key: []merge.KeyColumn{{Name: "k", Type: typ}, {Name: "n", Type: merge.Type{Kind: merge.Int}}},
				Columns: []merge.Column{{Name: "v", Type: merge.Type{Kind: merge.Text}, Scope: merge.RowScope}},
			})}
			s := e.open(t, table)
			if rows, next, err := s.Page(t.Context(), table, "", 3); len(rows) != 0 || next != "" || err != nil {
				t.Fatalf("an empty table: %v, %q, %v", rows, next, err)
			}
			var all []*merge.Change
			for _, k := range keys[name] {
				for n := range 3 {
					all = append(all, change(t, table, merge.NewKey(k, fmt.Sprint(n-1)), int64(len(all)), map[string]*string{"v": text(k)}))
				}
			}
			if _, err := apply(t.Context(), s, table, all); err != nil {
				t.Fatal(err)
			}
			for _, limit := range []int{1, 2, 5, len(all), len(all) + 1} {
				paged(t, s, table, limit)
			}
			if _, _, err := s.Page(t.Context(), table, "no cursor", 1); err == nil {
				t.Error("what is no cursor was taken for one")
			}
		})
	}
	rnd, _ := newRand(t)
	for _, table := range e.variants() {
		t.Run(table.Name, func(t *testing.T) {
			s := e.open(t, table)
			var all []*merge.Change
			for h := range 30 {
				all = append(all, rekey(mergetest.Changes(rnd, table.Table, 1+rnd.IntN(4)), h)...)
			}
			if _, err := apply(t.Context(), s, table, all); err != nil {
				t.Fatal(err)
			}
			paged(t, s, table, 7)
		})
	}
}

func paged(t *testing.T, s sink.Sink, table *sink.Table, limit int) {
	t.Helper()
	want, err := s.Read(t.Context(), table, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []*merge.Row
	for after := sink.Cursor(""); len(got) <= len(want); {
		rows, next, err := s.Page(t.Context(), table, after, limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) > limit {
			t.Fatalf("a page of %d rows has %d", limit, len(rows))
		}
		if got = append(got, rows...); next == "" {
			break
		}
		after = next
	}
	if d := cmp.Diff(rows(table.Table, want), rows(table.Table, got)); d != "" {
		t.Fatalf("in pages of %d rows (-all +paged):\n%s", limit, shorten(d))
	}
}
