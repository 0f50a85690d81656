package compile_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

var update = flag.Bool("update", false, "write the golden files anew")

func typ(t *testing.T, s string) merge.Type {
	t.Helper()
	x, err := merge.ParseType(s)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// examples are the tables whose statements the golden files show.
func examples(t *testing.T) map[string]*sink.Table {
	text, when := typ(t, "text"), typ(t, "timestamp")
	latest := func(name, scope, of string) merge.Column {
		return merge.Column{Name: name, Type: typ(t, of), Rule: merge.Latest, Scope: scope}
	}
	key := func(name, of string) []merge.KeyColumn { return []merge.KeyColumn{{Name: name, Type: typ(t, of)}} }
	table := func(name string, m merge.Table) *sink.Table {
		m.Name = name
		return &sink.Table{Table: merge.NewTable(m), Name: name}
	}
	every := table("every_rule", merge.Table{Key: append(key("tenant", "text"), key("no", "int")...), Columns: []merge.Column{
		latest("status", "row", "text"), latest("amount", "row", "numeric(10,2)"), latest("note", "note", "text(20)"),
		{Name: "origin", Type: text, Rule: merge.First},
		{Name: "top", Type: typ(t, "numeric"), Rule: merge.Max},
		{Name: "name", Type: text, Rule: merge.Max},
		{Name: "since", Type: when, Rule: merge.Min},
		{Name: "step", Type: text, Rule: merge.Ladder, Rungs: []string{"sent", "failed", "delivered", "read"}},
		{Name: "tags", Type: typ(t, "text[]"), Rule: merge.Union},
		{Name: "changed_at", Type: when, Rule: merge.Touch},
	}})
	beside := *every
	beside.Versions = sink.Beside
	return map[string]*sink.Table{
		"snapshot": table("payment", merge.Table{Key: key("id", "text"), Columns: []merge.Column{
			latest("user_id", "row", "uuid"), latest("amount", "row", "numeric"), latest("paid_at", "row", "timestamp")}}),
		"status": table("message_status", merge.Table{Key: key("message_id", "text"), Columns: []merge.Column{
			{Name: "status", Type: text, Rule: merge.Ladder, Rungs: []string{"sent", "failed", "delivered", "read", "played"}},
			{Name: "sent_at", Type: when, Rule: merge.Min}, latest("error", "error", "int")}}),
		"key_only": table("user", merge.Table{Key: key("id", "uuid")}),
		"occupant": table("booking", merge.Table{Key: key("ref", "text"), Occupied: true, Columns: []merge.Column{
			latest("status", "row", "text"), latest("invitee", "row", "text"), latest("no_show", "no_show", "bool"),
			latest("channel", "key", "text"), {Name: "changed_at", Type: when, Rule: merge.Touch}}}),
		"mark": table("customer", merge.Table{Key: key("id", "text"), OnDelete: merge.DeleteMark, Columns: []merge.Column{
			latest("email", "row", "text"), {Name: "plan", Type: text, Rule: merge.First}, {Name: "changed_at", Type: when, Rule: merge.Touch}}}),
		"complete_list": table("line", merge.Table{Key: append(key("order_id", "text"), key("line", "int")...), OnDelete: merge.DeleteRemove, Group: []int{0}, Columns: []merge.Column{
			latest("qty", "row", "int")}}),
		"chain": table("booking", merge.Table{Key: key("id", "text"), OnDelete: merge.DeleteSet, Occupied: true, Chained: true, Columns: []merge.Column{
			latestUntil(t, "status", "gone"), {Name: "moves", Type: typ(t, "int"), Rule: merge.Count, Scope: merge.KeyScope}}}),
		"chain_column": table("ticket", merge.Table{Key: key("id", "text"), Columns: []merge.Column{
			latest("status", "row", "text"), {Name: "first_id", Type: text, Rule: merge.Chain}}}),
		"every_rule": every,
		"beside":     &beside,
	}
}

// latestUntil is a column that shows a text once the row is deleted.
func latestUntil(t *testing.T, name, gone string) merge.Column {
	t.Helper()
	v, err := merge.ParseValue(typ(t, "text"), gone)
	if err != nil {
		t.Fatal(err)
	}
	return merge.Column{Name: name, Type: typ(t, "text"), Scope: merge.RowScope, OnDelete: &v}
}

// TestGolden shows the statements of each example, the dialects side by side.
func TestGolden(t *testing.T) {
	for name, table := range examples(t) {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for _, d := range compile.Dialects {
				script, err := compile.Script(d, table, compile.Schemas{})
				if err != nil {
					t.Fatal(err)
				}
				b.WriteString("==== " + string(d) + "\n\n" + script + "\n")
			}
			golden(t, name+".golden.sql", b.String())
		})
	}
}

// TestGuardGolden shows the guard triggers of each example, the dialects side by
// side, or why there is none.
func TestGuardGolden(t *testing.T) {
	for name, table := range examples(t) {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".guard.sql", shownBy(t, table, compile.GuardScript))
		})
	}
}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("run go test ./internal/compile -update if this is meant:\n%s", diff)
	}
}

// TestProcedureGolden shows the procedures of each example, or why there is none.
func TestProcedureGolden(t *testing.T) {
	for name, table := range examples(t) {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".procedure.sql", shownBy(t, table, compile.ProcedureScript))
		})
	}
}

// shownBy shows what a script is in every dialect.
func shownBy(t *testing.T, table *sink.Table, script func(compile.Dialect, *sink.Table, compile.Schemas) (string, error)) string {
	t.Helper()
	var b strings.Builder
	for _, d := range compile.Dialects {
		text, err := script(d, table, compile.Schemas{})
		if err != nil {
			text = "-- " + strings.ReplaceAll(err.Error(), "\n", "\n-- ") + "\n"
		}
		b.WriteString("==== " + string(d) + "\n\n" + text + "\n")
	}
	return b.String()
}
