package sqlsink_test

import (
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

var placements = map[string]sink.Placement{"in row": sink.InRow, "beside": sink.Beside}

// A table of the user's own whose columns refuse NULL: records may lack what
// rows may not.
func TestOccupantsOfNotNullTable(t *testing.T) {
	for name, place := range placements {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
				table := booking(t, "booking")
				table.Versions = place
				s := open()
				run(t, s, `create table booking (ref text primary key, status text not null, invitee text not null default 'nobody', channel text not null)`)
				bring(t, s, table)
				whole := func(key, id string, since, version int64) *merge.Change {
					return occupant(t, say(t, table, key, version, map[string]any{"status": "active", "invitee": id, "channel": "web"}), id, since)
				}
				part := occupant(t, say(t, table, "k", 2, map[string]any{"no_show": "true"}), "A", 1)
				e := refused(t, s, table, part)
				if e.Action != sink.Wait || !strings.Contains(e.Message, "status") {
					t.Errorf("got %v, action %d", e, e.Action)
				}
				mustShow(t, s, table, "k", "no row")
				// Column by column: what is set in scope key comes with the row.
				write(t, s, table, part, whole("k", "A", 1, 1))
				mustShow(t, s, table, "k", "status=active invitee=A no_show=true peak=NULL channel=web")
				// An older occupant that lacks a column does not show, so it may.
				write(t, s, table, whole("k", "B", 5, 1))
				write(t, s, table, occupant(t, say(t, table, "k", 9, map[string]any{"no_show": "true"}), "C", 2))
				mustShow(t, s, table, "k", "status=active invitee=B no_show=NULL peak=NULL channel=web")
				// A newer one that lacks it waits.
				if e := refused(t, s, table, occupant(t, say(t, table, "k", 9, map[string]any{"no_show": "true"}), "D", 7)); e.Action != sink.Wait {
					t.Errorf("got %v, action %d", e, e.Action)
				}
				mustShow(t, s, table, "k", "status=active invitee=B no_show=NULL peak=NULL channel=web")
				if r := write(t, s, table, whole("k", "B", 5, 1)); r.Written != 0 {
					t.Errorf("again: %+v", r)
				}
			})
		})
	}
}

func TestOccupantsThatMayNotInsert(t *testing.T) {
	for name, place := range placements {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
				table := booking(t, "booking")
				table.Versions = place
				s := open(table)
				change := func(key string, version int64, missing merge.Missing) *merge.Change {
					c := occupant(t, say(t, table, key, version, map[string]any{"status": missing2text[missing], "invitee": "A", "channel": "web"}), "A", 1)
					c.IfMissing = missing
					return c
				}
				r := write(t, s, table, change("a", 1, merge.Wait), change("b", 2, merge.Skip), change("c", 1, merge.Wait), change("c", 2, merge.Skip))
				var absent []string
				for _, x := range r.Absent {
					absent = append(absent, string(x.Row.Key))
				}
				// Each change is two rows: the occupant's, and what belongs to the row.
				if got := strings.Join(absent, ","); got != "a,c,a,c" || r.Written != 0 {
					t.Errorf("absent %s, %+v", got, r)
				}
				write(t, s, table, change("c", 0, merge.Insert))
				write(t, s, table, change("c", 1, merge.Wait), change("c", 2, merge.Skip), change("a", 1, merge.Wait))
				mustShow(t, s, table, "c", "status=skip invitee=A no_show=NULL peak=NULL channel=web")
				mustShow(t, s, table, "a", "no row")
			})
		})
	}
}

var missing2text = map[merge.Missing]string{merge.Insert: "insert", merge.Wait: "wait", merge.Skip: "skip"}

// The same for plain tables.
func TestRowsThatMayNotInsert(t *testing.T) {
	for name, place := range placements {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
				table := tableOf(t, "item", "id text", "a text", "b text scope b", "f text first", "n int max")
				table.Versions = place
				s := open(table)
				change := func(key string, version int64, missing merge.Missing, set map[string]any) *merge.Change {
					c := say(t, table, key, version, set)
					c.IfMissing = missing
					return c
				}
				wait := change("k", 3, merge.Wait, map[string]any{"a": "wait", "f": "wait", "n": "1"})
				skip := change("k", 2, merge.Skip, map[string]any{"a": "skip", "b": "skip", "f": "skip", "n": "5"})
				if r := write(t, s, table, wait, skip); len(r.Absent) != 1 || r.Absent[0].Row.IfMissing != merge.Wait || r.Unchanged != 1 {
					t.Errorf("%+v", r)
				}
				write(t, s, table, change("k", 4, merge.Insert, map[string]any{"b": "new"}), wait, skip)
				mustShow(t, s, table, "k", "a=wait b=new f=skip n=5")
				if r := write(t, s, table, wait, skip); r.Written != 0 || r.Unchanged != 2 {
					t.Errorf("again: %+v", r)
				}
			})
		})
	}
}

// A row that somebody deletes comes back as its next event says, whole, and not
// shut out by versions of its former life that lie beside.
func TestBesideAfterADeleteByHand(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		table := tableOf(t, "item", "id text", "a text", "f text first")
		table.Versions = sink.Beside
		s := open(table)
		write(t, s, table, say(t, table, "k", 5, map[string]any{"a": "new", "f": "new"}))
		run(t, s, "delete from item")
		write(t, s, table, say(t, table, "k", 3, map[string]any{"a": "old", "f": "old"}))
		mustShow(t, s, table, "k", "a=old f=old")
	})
}

// A table of the user's own keeps only its own columns.
func TestBesideAltersNothing(t *testing.T) {
	table := tableOf(t, "item", "id text", "a text", "f text first")
	table.Versions = sink.Beside
	s, url := existing(t, []string{"create table item (id text primary key, a text, f text)", "insert into item values ('k', 'there', 'there')"}, table)
	write(t, s, table, say(t, table, "k", 1, map[string]any{"a": "x", "f": "y"}))
	mustShow(t, s, table, "k", "a=x f=there")
	if got := one(t, url, "select string_agg(attname, ' ' order by attnum) from pg_attribute where attrelid = 'item'::regclass and attnum > 0"); got != "id a f" {
		t.Errorf("columns %s", got)
	}
	if got := one(t, url, `select key || ' ' || (versions ? 'row_version') || ' ' || (versions ? 'f__first') from hookfold_versions`); got != `["k"] true false` {
		t.Errorf("versions %s", got)
	}
	keyOnly := tableOf(t, "seen", "id text", "n int max")
	keyOnly.Versions = sink.Beside
	other := open(t, testdb.Schema(t), nil, sqlsink.Options{})
	bring(t, other, keyOnly)
	write(t, other, keyOnly, say(t, keyOnly, "k", 1, map[string]any{"n": "3"}))
	mustShow(t, other, keyOnly, "k", "n=3")
}
