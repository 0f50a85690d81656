package sqlsink_test

import (
	"strings"
	"testing"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// TestRowFollowsItsChain gives a row another key, with all that the config does
// not know of it and the rows of others that name it.
func TestRowFollowsItsChain(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		made := tell(t, "booking", "id text", chained, "v text", "n int sum scope key")
		note := tell(t, "note", "id text", nil, "booking text", "colour text")
		s := open()
		run(t, s, "create table booking (id text primary key, v text, n bigint, colour text default 'grey')",
			"create table note (id text primary key, booking text references booking (id) on update cascade, colour text)")
		bring(t, s, made.table, note.table)
		made.write(s, made.parse("B>C v=c n=2 @2 #a")...)
		run(t, s, "update booking set colour = 'blue'")
		note.write(s, note.parse("1 booking=B,colour=x @1")...)
		made.write(s, made.parse("A>B v=b n=3 @9 #b")...)
		if got, want := made.rows(s), "A v=c n=5"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, want := note.rows(s), "1 booking=A colour=x"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		colours := tell(t, "booking", "id text", nil, "colour text")
		if got, want := colours.rows(s), "A colour=blue"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, want := tell(t, "booking_occupants", "id text, occupant_id text", nil).rows(s), "A|; A|B; A|C"; got != want {
			t.Errorf("records: got %s, want %s", got, want)
		}
		if got, want := tell(t, "hookfold_ledger", "key text, identity text", nil).rows(s), `["A"]|a; ["A"]|b`; got != want {
			t.Errorf("ledger: got %s, want %s", got, want)
		}
		known, err := s.(sink.Knower).Known(t.Context(), made.table, []merge.Key{"A", "B", "C", "D"})
		if err != nil || !known[0] || !known[1] || !known[2] || known[3] {
			t.Errorf("known: %v, %v", known, err)
		}
		// Both ends have a row, and somebody names the one that goes.
		made.write(s, made.parse("Z v=z @1")...)
		note.write(s, note.parse("2 booking=A,colour=y @1")...)
		e := refused2(t, s, made, "0>A @1; Z>0 @1")
		if e.Action != sink.Wait || e.Why != sink.NeedsParent || !strings.Contains(e.Message, "note") {
			t.Errorf("a row that goes and is named: %v, %+v", e, e)
		}
	})
}

func refused2(t *testing.T, s sink.Sink, made told, story string) *sink.Error {
	t.Helper()
	_, err := s.Apply(t.Context(), &sink.Batch{Groups: []sink.Group{made.group(made.parse(story)...)}})
	return asError(t, err)
}

// TestParentThatIsRemoved waits while rows name it, and goes when they are gone.
func TestParentThatIsRemoved(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		parent := tell(t, "parent", "id text", removes, "v text")
		child := tell(t, "child", "id text", removes, "parent text")
		s := open(parent.table, child.table)
		run(t, s, "drop table child", "create table child (id text primary key, parent text references parent (id))")
		bring(t, s, parent.table, child.table)
		e := refused2(t, s, child, "c parent=p @1")
		if e.Action != sink.Wait || e.Why != sink.NeedsParent || e.On != "parent id=p" || !strings.Contains(e.Message, "refers to parent id=p by parent") {
			t.Errorf("a child without its parent: %v, %+v", e, e)
		}
		parent.write(s, parent.parse("p v=a @1; q v=b @1")...)
		child.write(s, child.parse("c parent=p @1")...)
		e = refused2(t, s, parent, "p del @2; q del @2")
		if e.Action != sink.Wait || e.Why != sink.NeedsParent || e.On != "child" || !strings.Contains(e.Message, "rows of child still refer to it by parent") {
			t.Errorf("a parent that is named: %v, %+v", e, e)
		}
		if got, want := parent.rows(s), "p v=a; q v=b"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		// Both go at once, whatever the order of the groups.
		_, err := s.Apply(t.Context(), &sink.Batch{Groups: []sink.Group{parent.group(parent.parse("p del @2; q del @2")...), child.group(child.parse("c del @2")...)}})
		if err != nil {
			t.Fatal(err)
		}
		if got := parent.rows(s) + child.rows(s); got != "" {
			t.Errorf("left: %s", got)
		}
	})
}

// TestHeldRowsThatWereThere lets Hookfold take over rows of a table of others.
func TestHeldRowsThatWereThere(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		made := tell(t, "item", "id text", marks, "v text", "w text", "f text first", "m int max", "n int sum", "c int count")
		s := open()
		run(t, s, "create table item (id text primary key, v text default 'new', w text not null default 'w', f text, m int, n bigint, c int not null default 0, other text default 'o')",
			"insert into item (id, v, w, f, m, n, c) values ('old', 'v', 'x', 'f', 9, 100, 7), ('gone', 'v', 'x', null, null, null, 0)")
		bring(t, s, made.table)
		made.write(s, made.parse("old f=late,m=3,n=5,c=1 @1 #a; gone del @1; fresh m=1 @1 #b; dead del @2; dead m=2 @1 #c")...)
		want := "dead v=new w=w f=NULL m=2 n=NULL c=0 deleted; fresh v=new w=w f=NULL m=1 n=NULL c=0; gone v=v w=x f=NULL m=NULL n=NULL c=0 deleted; old v=v w=x f=f m=9 n=105 c=8"
		for range 2 {
			if got := made.rows(s); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
			res := made.write(s, made.parse("old f=late,m=3,n=5,c=1 @1 #a; gone del @1; fresh m=1 @1 #b; dead del @2; dead m=2 @1 #c")...)
			if res.Written != 0 {
				t.Errorf("again: %d written", res.Written)
			}
		}
		e := refused2(t, s, made, "old n=9223372036854775807 @2 #z; fresh v=y @2")
		if e.Action != sink.Reject || !strings.Contains(e.Message, "item.n: 9223372036854775912 does not fit") {
			t.Errorf("a total that is too great: %v", e)
		}
	})
}

// TestHeldRowsThatLackAColumn wait for what a new row needs, unless nothing is
// to be inserted.
func TestHeldRowsThatLackAColumn(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		for _, edit := range []func(*merge.Table){marks, removes, func(m *merge.Table) { m.Occupied = true; marks(m) }} {
			name := "item"
			made := tell(t, name, "id text", edit, "v text", "w text scope w")
			s := open()
			run(t, s, "create table item (id text primary key, v text not null, w text)")
			bring(t, s, made.table)
			of := func(story string) string {
				if made.table.Occupied {
					return strings.NewReplacer("k1 ", "k1/A:1 ", "k2 ", "k2/A:1 ").Replace(story)
				}
				return story
			}
			made.write(s, made.parse(of("k1 del @3"))...) // no row is needed for that
			e := refused2(t, s, made, of("k1 w=x @4; k2 v=1 @1"))
			if e.Action != sink.Wait || e.Why != sink.NotNull || e.On != "item.v" {
				t.Errorf("%v: %+v", e, e)
			}
			made.write(s, made.parse(of("k1 v=y @5; k1 w=x @4; k2 v=1 @1"))...)
			made.write(s, made.parse(of("k2 w=2 @2"))...)
			if got, want := made.rows(s), "k1 v=y w=x; k2 v=1 w=2"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			s.Close()
		}
	})
}

// TestHeldIfMissing tells which of the batch's own rows have no row, on a chain
// too.
func TestHeldIfMissing(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		made := tell(t, "told", "id text", chained, "v text")
		s := open(made.table)
		made.write(s, made.parse("A>B @1")...)
		changes := made.parse("C v=c @2; E v=e @1")
		changes[0].IfMissing, changes[1].IfMissing = merge.Wait, merge.Skip
		g := made.group(append(changes, made.parse("D>C v=x @1")...)...)
		res, err := s.Apply(t.Context(), &sink.Batch{Groups: []sink.Group{g}})
		if err != nil || len(res.Absent) != 0 {
			t.Errorf("%+v, %v", res, err)
		}
		changes = made.parse("F v=f @2; F>G @0")
		changes[0].IfMissing, changes[1].IfMissing = merge.Wait, merge.Wait
		g = made.group(changes...)
		if res, err = s.Apply(t.Context(), &sink.Batch{Groups: []sink.Group{g}}); err != nil || len(res.Absent) != 2 || res.Absent[0].Row != g.Rows[0] {
			t.Errorf("%+v, %v", res, err)
		}
		if got, want := made.rows(s), "A v=NULL; D v=c"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestTombstonesGo when the row, or the list of its group, remembers the delete.
func TestTombstonesGo(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		marked, list := tell(t, "marked", "id text", marks, "v text"), tell(t, "listed", "g text, id text", listed, "v text")
		tombs := tell(t, "hookfold_tombstones", "table_name text, key text", nil)
		s := open(marked.table, list.table)
		marked.write(s, marked.parse("k del @2")...)
		list.write(s, list.parse("P|x v=1 @1; P|x del @2; P|y del @7")...)
		if got, want := tombs.rows(s), `listed|["P","x"]; listed|["P","y"]; marked|["k"]`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		marked.write(s, marked.parse("k v=x @1")...)
		list.write(s, list.parse("P list @5; P|x v=1 @1")...)
		if got, want := tombs.rows(s), `listed|["P","y"]`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, want := marked.rows(s)+list.rows(s), "k v=x deleted"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestOpenRefusesHeldTablesBeside(t *testing.T) {
	made := tell(t, "told", "id text", marks, "v text")
	made.table.Versions = sink.Beside
	_, err := sqlsink.Open(t.Context(), "postgres://127.0.0.1/x", []*sink.Table{made.table}, sqlsink.Options{})
	if err == nil || !strings.Contains(err.Error(), "leave keep_versions out") {
		t.Errorf("got %v", err)
	}
}
