package sqlsink_test

import (
	"strings"
	"testing"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// Where versions live beside, columns may have the names of versions, and of
// anything else in statements.
func TestColumnsNamedAsInStatements(t *testing.T) {
	for _, name := range []string{"row_version", "stored_row_version", "own_version", "f__first", "stored_f__first", "hookfold_n", "p1", "p5", "p12", "v", "t"} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
				table := tableOf(t, "item", "id text", name+" text", "own text scope own", "f text first")
				table.Versions = sink.Beside
				s := open(table)
				for _, v := range []struct {
					version int64
					value   string
				}{{2, "r2"}, {3, "r3"}, {1, "r1"}} {
					write(t, s, table, say(t, table, "k", v.version, map[string]any{name: v.value, "own": v.value, "f": v.value}))
				}
				mustShow(t, s, table, "k", name+"=r3 own=r3 f=r1")
			})
		})
	}
}

// The same with occupants, where records keep versions under their names.
func TestOccupantsColumnsNamedAsInStatements(t *testing.T) {
	for _, name := range []string{"hookfold_n", "hookfold_n_", "stored_row_version", "p1", "p2", "p", "o"} {
		for place, versions := range placements {
			t.Run(name+" "+place, func(t *testing.T) {
				onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
					m := shape(t, "item", "id text", name+" text", "c text scope key", "hookfold_n_1 text")
					m.Occupied = true
					table := &sink.Table{Name: "item", Table: merge.NewTable(m), Versions: versions}
					s := open(table)
					for _, v := range []struct {
						version, since int64
						id, value      string
					}{{2, 1, "A", "r2"}, {1, 2, "B", "r3"}, {5, 1, "A", "r1"}} {
						write(t, s, table, occupant(t, say(t, table, "k", v.version, map[string]any{name: v.value, "c": v.value}), v.id, v.since))
					}
					mustShow(t, s, table, "k", name+"=r3 c=r1 hookfold_n_1=NULL")
				})
			})
		}
	}
}

// Records have columns of their own, wherever versions live.
func TestRecordColumnsAreRefused(t *testing.T) {
	for _, name := range []string{"occupant_id", "occupant_since", "row_version", "Row_Version"} {
		m := shape(t, "item", "id text", name+" text", "c text")
		m.Occupied = true
		table := &sink.Table{Name: "item", Table: merge.NewTable(m), Versions: sink.Beside}
		if _, err := sqlsink.Open(t.Context(), "sqlite::memory:", []*sink.Table{table}, sqlsink.Options{}); err == nil || !strings.Contains(err.Error(), "Rename it") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The version of a first column that belongs to the row itself is kept when the
// row comes with its occupant.
func TestBesideFirstOfScopeKey(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		m := shape(t, "item", "id text", "a text", "f text first")
		m.Columns[1].Scope = merge.KeyScope
		m.Occupied = true
		table := &sink.Table{Name: "item", Table: merge.NewTable(m), Versions: sink.Beside}
		s := open(table)
		write(t, s, table, occupant(t, say(t, table, "k", 2, map[string]any{"a": "a2", "f": "second"}), "A", 1))
		write(t, s, table, occupant(t, say(t, table, "k", 1, map[string]any{"a": "a1", "f": "first"}), "A", 1))
		mustShow(t, s, table, "k", "a=a2 f=first")
	})
}
