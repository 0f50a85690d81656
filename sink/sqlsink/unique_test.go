package sqlsink_test

import (
	"testing"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// TestF20ValuesThatRowsSwap swaps a unique value, which no order of two
// statements can do.
func TestF20ValuesThatRowsSwap(t *testing.T) {
	for _, rule := range []merge.DeleteRule{merge.DeleteNone, merge.DeleteMark, merge.DeleteRemove} {
		onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
			m := shape(t, "item", "id text", "email text", "note text scope note", "at timestamp touch")
			m.OnDelete = rule
			table := &sink.Table{Name: "item", Table: merge.NewTable(m), UnsafeUnique: []string{"item_email"}}
			s := open(table)
			on := "email"
			if sqlsink.DialectOf(s) == compile.MySQL {
				on = "email(100)"
			}
			run(t, s, "create unique index item_email on item ("+on+")")
			email := func(key string, version int64, to string) *merge.Change {
				return say(t, table, key, version, map[string]any{"email": to})
			}
			note := func(key string, version int64) *merge.Change {
				return say(t, table, key, version, map[string]any{"note": "n"})
			}
			write(t, s, table, email("a", 1, "x"), email("b", 1, "y"), email("c", 5, "z"))
			before, err := s.Read(t.Context(), table, []merge.Key{"c"})
			if err != nil {
				t.Fatal(err)
			}
			// c only hears of something older, and of another scope.
			b := &sink.Batch{Groups: []sink.Group{group(table, email("a", 2, "y"), email("b", 2, "x"), email("c", 4, "older"))}}
			if _, err := s.Apply(t.Context(), b); err == nil {
				t.Fatal("the swap went in without parking: the test shows nothing")
			}
			b.Park = true
			if _, err := s.Apply(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			mustShow(t, s, table, "a", "email=y note=NULL")
			mustShow(t, s, table, "b", "email=x note=NULL")
			mustShow(t, s, table, "c", "email=z note=NULL")
			after, err := s.Read(t.Context(), table, []merge.Key{"c"})
			if err != nil {
				t.Fatal(err)
			}
			if i := table.Column("at"); before[0].Cells[i].Value != after[0].Cells[i].Value {
				t.Error("the time of the last change moved where nothing did")
			}
			b = &sink.Batch{Park: true, Groups: []sink.Group{group(table, note("c", 9))}}
			if _, err := s.Apply(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			mustShow(t, s, table, "c", "email=z note=n")
		})
	}
}
