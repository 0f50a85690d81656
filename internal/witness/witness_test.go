package witness

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

func cell(t *testing.T, kind merge.TypeKind, text string) merge.Cell {
	t.Helper()
	v, err := merge.ParseValue(merge.Type{Kind: kind}, text)
	if err != nil {
		t.Fatal(err)
	}
	return merge.Cell{Set: true, Value: v}
}

// Each way of being wrong is found, on both engines.
func TestJudge(t *testing.T) {
	table := &sink.Table{Name: "thing", Table: merge.NewTable(merge.Table{
		Name: "thing", Key: []merge.KeyColumn{{Name: "id", Type: merge.Type{Kind: merge.Int}}},
		Columns: []merge.Column{
			{Name: "done", Type: merge.Type{Kind: merge.Bool}, Scope: merge.RowScope},
			{Name: "at", Type: merge.Type{Kind: merge.Timestamp}, Scope: merge.RowScope},
			{Name: "amount", Type: merge.Type{Kind: merge.Numeric}, Scope: merge.RowScope},
		},
	})}
	var want []*merge.Row
	for _, id := range []string{"1", "2", "3", "4"} {
		want = append(want, &merge.Row{Key: merge.NewKey(id), Cells: []merge.Cell{
			cell(t, merge.Bool, "true"), cell(t, merge.Timestamp, "2026-01-01T00:00:00Z"), cell(t, merge.Numeric, "1.5"),
		}})
	}
	for name, c := range map[string]struct{ url, create string }{
		"sqlite":   {"sqlite:" + filepath.Join(t.TempDir(), "x.db"), "create table thing (id integer, done integer, at text, amount text)"},
		"postgres": {testdb.Schema(t), "create table thing (id bigint, done boolean, at timestamptz, amount numeric)"},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := Open(c.url)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			for _, s := range []string{
				c.create,
				"insert into thing values (1, true, '2026-01-01 01:00:00+01', '1.50')", // right, written another way
				"insert into thing values (2, false, '2026-01-01T00:00:00Z', null)",    // wrong
				"insert into thing values (3, true, '2026-01-01T00:00:00Z', '1.5')",    // doubled
				"insert into thing values (3, true, '2026-01-01T00:00:00Z', '1.5')",
				"insert into thing values (5, true, '2026-01-01T00:00:00Z', '1.5')", // extra
			} {
				if _, err := db.Exec(s); err != nil {
					t.Fatal(err)
				}
			}
			v, err := db.Judge(t.Context(), table, want)
			if err != nil {
				t.Fatal(err)
			}
			got := []int{v.Want, v.Right, v.Wrong, v.Missing, v.Doubled, v.Extra}
			if d := cmp.Diff([]int{4, 1, 2, 1, 1, 1}, got); d != "" {
				t.Error(d)
			}
			diffs := map[merge.Key]string{
				"2": "done is false, not true; amount is NULL, not 1.5", "3": "2 rows of one key", "4": "no row", "5": "a row that no event made",
			}
			if !maps.Equal(diffs, v.Diffs) || v.OK() {
				t.Errorf("%v", v.Diffs)
			}
		})
	}
}

// What a delete marks is read and judged too.
func TestJudgeDeletes(t *testing.T) {
	table := &sink.Table{Name: "thing", Table: merge.NewTable(merge.Table{
		Name: "thing", OnDelete: merge.DeleteMark, Key: []merge.KeyColumn{{Name: "id", Type: merge.Type{Kind: merge.Int}}},
	})}
	at := cell(t, merge.Timestamp, "2026-01-01T00:00:00Z").Value
	want := []*merge.Row{
		{Key: merge.NewKey("1"), Seen: "1", Deleted: "2", DeletedAt: at}, {Key: merge.NewKey("2"), Seen: "3", Deleted: "2", DeletedAt: at}, {Key: merge.NewKey("3")},
	}
	db, err := Open("sqlite:" + filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("create table thing (id integer, deleted_at text); insert into thing values (1, null), (2, '2026-01-01T00:00:00Z'), (3, null)"); err != nil {
		t.Fatal(err)
	}
	v, err := db.Judge(t.Context(), table, want)
	if err != nil {
		t.Fatal(err)
	}
	const when = "2026-01-01T00:00:00.000000Z"
	diffs := map[merge.Key]string{"1": "deleted_at is NULL, not " + when, "2": "deleted_at is " + when + ", not NULL"}
	if d := cmp.Diff(diffs, v.Diffs); d != "" || v.Right != 1 {
		t.Errorf("%d right; %s", v.Right, d)
	}
	if d := cmp.Diff("thing\n  id  deleted_at\n  1   -\n  2   "+when+"\n  3   -\n", Text(table, v.Rows)); d != "" {
		t.Error(d)
	}
}
