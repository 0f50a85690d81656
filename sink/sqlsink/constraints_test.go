package sqlsink_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

func TestConstraints(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		table, owners := tableOf(t, "item", "id text", "owner text", "email text", "qty int", "note text"), tableOf(t, "owner", "id text")
		table.UnsafeUnique = []string{"email"}
		s := open(table, owners)
		for _, statement := range []string{"drop table item", "drop table owner", "create table owner (id text primary key)",
			`create table item (id text primary key, owner text references owner (id), email text unique, qty int check (qty > 0), note text not null)`} {
			run(t, s, statement)
		}
		bring(t, s, table, owners)
		set := func(owner, email, qty any) map[string]any {
			return map[string]any{"owner": owner, "email": email, "qty": qty, "note": "n"}
		}
		write(t, s, table, say(t, table, "a", 1, set(nil, "a@x", "1")))
		changes := []*merge.Change{say(t, table, "c", 1, set(nil, "c@x", nil))}
		want := map[string]sink.Error{}
		for _, x := range []struct {
			key    string
			says   map[string]any
			action sink.Action
			why    sink.Why
			on     string
		}{
			{"fk", set("nobody", nil, nil), sink.Wait, sink.NeedsParent, "owner id=nobody"},
			{"unique", set(nil, "a@x", nil), sink.Wait, sink.UniqueValue, "item id=a"},
			{"unique in the batch", set(nil, "c@x", nil), sink.Wait, sink.UniqueValue, "item"},
			{"check", set(nil, nil, "-1"), sink.Reject, "", ""},
			{"not null", map[string]any{"owner": nil, "email": nil, "qty": nil}, sink.Wait, sink.NotNull, "item.note"},
		} {
			c := say(t, table, x.key, 1, x.says)
			changes = append(changes, c)
			want[x.key] = sink.Error{Action: x.action, Why: x.why, On: x.on}
			if x.key == "unique in the batch" {
				continue // alone it is right
			}
			e := refused(t, s, table, c)
			if got := (sink.Error{Action: e.Action, Why: e.Why, On: e.On}); got != want[x.key] {
				t.Errorf("%s: %+v, want %+v", x.key, got, want[x.key])
			}
		}
		e := refused(t, s, table, say(t, table, "a", 2, map[string]any{"owner": nil, "email": "a@x", "qty": "1", "note": nil}))
		if e.Action != sink.Reject || !strings.Contains(e.Message, "note: NULL into a column that is NOT NULL") {
			t.Errorf("NULL: %v", e)
		}

		// All of them at once are all found, and nothing is written.
		_, err := s.Apply(t.Context(), &sink.Batch{Groups: []sink.Group{group(table, changes...)}})
		var rows *sink.BatchError
		if !errors.As(err, &rows) {
			t.Fatalf("apply: %v, want the rows at fault", err)
		}
		got := map[string]sink.Error{}
		for _, r := range rows.Rows {
			got[string(r.Row.Key)] = sink.Error{Action: r.Err.Action, Why: r.Err.Why, On: r.Err.On}
			changes = slices.DeleteFunc(changes, func(c *merge.Change) bool { return c.Key == r.Row.Key })
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("at fault (-want +got):\n%s", d)
		}
		mustShow(t, s, table, "c", "no row")
		write(t, s, table, changes...)
		mustShow(t, s, table, "c", "owner=NULL email=c@x qty=NULL note=n")
		mustShow(t, s, table, "a", "owner=NULL email=a@x qty=1 note=n")
		mustShow(t, s, table, "fk", "no row")
	})
}

// TestDeferredConstraints are told with their rows too, though the database
// finds them at the commit.
func TestDeferredConstraints(t *testing.T) {
	url := testdb.Schema(t)
	testdb.Exec(t, url, "create table owner (id text primary key)",
		"create table item (id text primary key, owner text references owner (id) deferrable initially deferred)")
	owners := tableOf(t, "owner", "id text")
	for _, rule := range []merge.DeleteRule{merge.DeleteNone, merge.DeleteMark} {
		m := shape(t, "item", "id text", "owner text")
		m.OnDelete = rule
		table := &sink.Table{Name: "item", Table: merge.NewTable(m)}
		s := open(t, url, []*sink.Table{table, owners}, sqlsink.Options{})
		bring(t, s, table, owners)
		var changes []*merge.Change
		for i := range 9 {
			c := say(t, table, fmt.Sprint("k", i, rule), 1, map[string]any{"owner": nil})
			if i%4 == 3 {
				c = say(t, table, fmt.Sprint("k", i, rule), 1, map[string]any{"owner": fmt.Sprint("o", i)})
			}
			changes = append(changes, c)
		}
		_, err := s.Apply(t.Context(), &sink.Batch{Groups: []sink.Group{group(table, changes...)}})
		var rows *sink.BatchError
		if !errors.As(err, &rows) || len(rows.Rows) != 2 || rows.Rows[0].Err.On != "owner id=o3" || rows.Rows[1].Err.On != "owner id=o7" {
			t.Errorf("%v", err)
		}
		if e := refused(t, s, table, changes[3]); e.On != "owner id=o3" {
			t.Errorf("alone: %+v", e)
		}
	}
}
