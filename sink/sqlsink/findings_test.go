package sqlsink_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// told is a table of a test: how it is made, and how changes of it are written
// down.
type told struct {
	t     testing.TB
	table *sink.Table
	// history stands before all keys and identities, so that many histories can
	// live in one table.
	history string
}

// tell makes a table; edit changes its rules.
func tell(t testing.TB, name, key string, edit func(*merge.Table), columns ...string) told {
	t.Helper()
	m := shape(t, name, key, columns...)
	if edit != nil {
		edit(&m)
	}
	return told{t: t, table: &sink.Table{Name: name, Table: merge.NewTable(m)}}
}

func marks(m *merge.Table)   { m.OnDelete = merge.DeleteMark }
func removes(m *merge.Table) { m.OnDelete = merge.DeleteRemove }
func chained(m *merge.Table) { m.Occupied, m.Chained = true, true }

// parse reads changes, as in "k a=x,b=y @3": a key, columns, and a version whose
// parts are joined by points. "k del @3" is a delete, "g list @3" a complete
// list, "k stub @3" a parent's, "A>B" a link; "/o:2" behind the key is an
// occupant since 2, and "#e" an event's identity.
func (x told) parse(story string) []*merge.Change {
	x.t.Helper()
	var out []*merge.Change
	for _, s := range strings.Split(story, ";") {
		out = append(out, x.change(strings.TrimSpace(s)))
	}
	return out
}

func (x told) change(s string) *merge.Change {
	x.t.Helper()
	t := x.table
	c := &merge.Change{Table: t.Table, Cells: make([]merge.Cell, len(t.Columns)), Identity: s}
	kind := merge.Write
	var tuple []merge.Component
	for i, w := range strings.Fields(s) {
		switch {
		case strings.Contains(w, ">"):
			old, with, _ := strings.Cut(w, ">")
			c.Links = []merge.Link{{Old: x.history + old, New: x.history + with}}
			if i == 0 {
				c.Key = merge.NewKey(x.history + with)
			}
		case i == 0:
			key, occupant, occupied := strings.Cut(w, "/")
			c.Key = merge.NewKey(strings.Split(x.history+key, "|")...)
			if occupied {
				id, since, known := strings.Cut(occupant, ":")
				c.Occupant = &merge.Occupant{ID: id}
				if known {
					c.Occupant.Since = merge.IntOf(int64(len(since)*1000) + int64(since[0]))
				}
			}
		case w == "del":
			c.Delete, kind = true, merge.Delete
		case w == "list":
			c.Replaces = true
		case w == "stub":
		case w[0] == '#':
			c.Identity = w[1:]
		case w[0] == '@':
			for _, part := range strings.Split(w[1:], ".") {
				var n int64
				fmt.Sscan(part, &n)
				tuple = append(tuple, merge.IntOf(n))
			}
		default:
			for _, pair := range strings.Split(w, ",") {
				name, v, _ := strings.Cut(pair, "=")
				i := t.Column(name)
				if i < 0 {
					x.t.Fatalf("no column %q", name)
				}
				c.Cells[i] = merge.Cell{Set: true, Value: value(x.t, t.Columns[i].Type, v)}
			}
		}
	}
	if t.Chained {
		c.Occupant = &merge.Occupant{ID: string(c.Key)}
	}
	if t.Versioned() {
		c.Version = merge.NewVersion(tuple, kind, []byte(s))
	}
	c.DeletedAt = value(x.t, merge.Type{Kind: merge.Timestamp}, fmt.Sprintf("2026-01-01T00:00:%02dZ", len(tuple)))
	return c
}

func value(t testing.TB, typ merge.Type, text string) merge.Value {
	t.Helper()
	v, err := merge.ParseValue(typ, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// rows shows all rows of the history: "k a=x b=NULL; l …", "deleted" behind one
// that is.
func (x told) rows(s sink.Sink) string {
	x.t.Helper()
	return x.show(x.read(s))
}

func (x told) read(s sink.Sink) []*merge.Row {
	x.t.Helper()
	list, err := s.Read(x.t.Context(), x.table, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	return list
}

func (x told) show(list []*merge.Row) string {
	var out []string
	for _, r := range list {
		line, mine := strings.CutPrefix(strings.Join(r.Key.Parts(), "|"), x.history)
		if !mine {
			continue
		}
		for i, c := range x.table.Columns {
			if c.Rule != merge.Touch {
				line += " " + c.Name + "=" + strings.TrimPrefix(r.Cells[i].Value.String(), x.history)
			}
		}
		if r.Gone() && x.table.OnDelete == merge.DeleteMark {
			line += " deleted"
			if r.DeletedAt.IsNull() {
				line += " nowhen"
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

func (x told) write(s sink.Sink, changes ...*merge.Change) *sink.Result {
	x.t.Helper()
	res, err := s.Apply(x.t.Context(), &sink.Batch{Groups: []sink.Group{x.group(changes...)}})
	if err != nil {
		x.t.Fatalf("apply: %v", err)
	}
	return res
}

func (x told) group(changes ...*merge.Change) sink.Group {
	b := merge.FoldAll(x.table.Table, changes)
	return sink.Group{Table: x.table, Rows: b.Rows, Sets: b.Sets, Links: b.Links}
}

// TestFindings writes small histories in every order, one by one, in pairs and
// all at once, with each change twice: the rows are always the same.
func TestFindings(t *testing.T) {
	for _, x := range []struct {
		name, key string
		edit      func(*merge.Table)
		columns   []string
		story     string
		want      string
	}{
		{name: "F2 a delete has a version of its own", key: "id text", edit: marks, columns: []string{"v text"},
			story: "k v=a @1.1; k del @1.2; k v=b @1.3", want: "k v=b"},
		{name: "F2 a later delete", key: "id text", edit: marks, columns: []string{"v text"},
			story: "k v=a @1; k v=b @3; k del @5", want: "k v=b deleted"},
		{name: "F2 a delete of a row that nobody knows", key: "id text", edit: marks, columns: []string{"v text"},
			story: "k del @5; l v=x @1", want: "l v=x"},
		{name: "F2 a delete does not move the row's version", key: "id text", edit: marks, columns: []string{"v text", "m int max"},
			story: "k del @5; k v=b,m=1 @3; k v=a,m=7 @2", want: "k v=b m=7 deleted"},
		{name: "F3 a delete wins its own instant", key: "id text", edit: marks, columns: []string{"v text"},
			story: "k v=a @4; k del @4", want: "k v=a deleted"},
		{name: "F3 a delete wins its own instant, removed", key: "id text", edit: removes, columns: []string{"v text"},
			story: "k v=a @4; k del @4; k v=b @3", want: ""},
		{name: "F4 a delete stays with its occupant", key: "id text", edit: func(m *merge.Table) { m.Occupied = true; removes(m) }, columns: []string{"v text"},
			story: "k/A:1 v=a @1; k/B:2 v=b @2; k/B del @3; k/A:1 v=again @4", want: ""},
		{name: "F5 who is last", key: "id text", edit: chained, columns: []string{"v text"},
			story: "A v=a @9; A>B v=b @2; B>C v=c @1", want: "A v=c"},
		{name: "F5 branches", key: "id text", edit: chained, columns: []string{"v text"},
			story: "A>B v=b @2; A>C v=c @1; A v=a @3", want: "A v=c"},
		{name: "F5 a ring", key: "id text", edit: chained, columns: []string{"v text"},
			story: "A>B v=b @2; B>A v=a @1", want: "A v=b"},
		{name: "F5 chains that meet", key: "id text", edit: chained, columns: []string{"v text"},
			story: "A>C v=c @2; B>C @1; C>D v=d @0; B v=x @7", want: "A v=d"},
		{name: "F5 a delete is joined too", key: "id text", edit: func(m *merge.Table) { chained(m); removes(m) }, columns: []string{"v text"},
			story: "A v=a @3; B del @5; A>B @2", want: ""},
		{name: "F5 an event that both fragments counted", key: "id text", edit: chained, columns: []string{"v text", "n int sum scope key"},
			story: "A n=5 @1 #e1; B n=5 @1 #e1; B n=7 @2 #e2; A>B @3", want: "A v=NULL n=12"},
		{name: "F5 a column that shows the chain", key: "id text", columns: []string{"v text", "first text chain"},
			story: "C v=c @1; B>C v=d @2; A>B v=b @3", want: "B v=b first=A; C v=d first=A"},
		{name: "F8 a row of which only its key is mapped", key: "id text", edit: marks,
			story: "k stub @1; k del @2; k stub @3", want: "k"},
		{name: "F8 scopes that are older than the delete", key: "id text", edit: removes, columns: []string{"v text", "p text scope p"},
			story: "k v=a @3; k p=y @5; k del @4", want: "k v=NULL p=y"},
		{name: "F8 own scope, removed whole", key: "id text", edit: removes, columns: []string{"v text", "p text scope p"},
			story: "k v=a @3; k p=y @2; k del @4", want: ""},
		{name: "F10 a child that a newer list lacks", key: "g text, id text", edit: listed, columns: []string{"v text"},
			story: "P list @6; P|x v=late @5; P|y v=new @7", want: "P|y v=new"},
		{name: "F10 two lists of one instant", key: "g text, id text", edit: listed, columns: []string{"v text"},
			story: "P list @4; P|a v=1 @5; P|b v=1 @3; P list @6", want: ""},
		{name: "F10 the other parent's children", key: "g text, id text", edit: listed, columns: []string{"v text"},
			story: "P list @6; Q|x v=1 @3; P|x v=2 @4", want: "Q|x v=1"},
		{name: "F10 a list that marks", key: "g text, id text", edit: func(m *merge.Table) { listed(m); marks(m) }, columns: []string{"v text"},
			story: "P|x v=1 @3; P list @4; P|y v=2 @5", want: "P|x v=1 deleted; P|y v=2"},
		{name: "F12 a child's parent that was deleted", key: "id text", edit: marks, columns: []string{"v text"},
			story: "U v=u @1; U del @5; U stub @4", want: "U v=u deleted"},
		{name: "F12 a child that is newer than its parent's delete", key: "id text", edit: marks, columns: []string{"v text"},
			story: "U v=u @1; U del @5; U stub @6", want: "U v=u"},
		{name: "F12 a parent of which only the delete is known", key: "id text", edit: removes, columns: []string{"v text"},
			story: "U del @5; U stub @4", want: ""},
		{name: "F14 one event with two amounts", key: "id text", columns: []string{"n int sum"},
			story: "k n=5 @1 #E; k n=7 @2 #E; k n=1 @1 #F", want: "k n=8"},
		{name: "F14 two items of one event", key: "id text", columns: []string{"n numeric sum", "c int count"},
			story: "k n=0.10,c=1 @1 #E.0; k n=0.20,c=1 @1 #E.1", want: "k n=0.3 c=2"},
		{name: "F14 counts and deletes", key: "id text", edit: marks, columns: []string{"c int count"},
			story: "k c=1 @1 #a; k del @2; k c=1 @3 #b", want: "k c=2"},
	} {
		t.Run(x.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
				made := tell(t, "told", x.key, x.edit, x.columns...)
				s := open(made.table)
				n := len(made.parse(x.story))
				var histories []told
				steps := map[int][]*merge.Change{} // what all histories write at once
				for _, size := range []int{1, 2, n} {
					for _, order := range orders(n) {
						made.history = fmt.Sprint(order, size, " ")
						histories = append(histories, made)
						for i, at := range order {
							steps[i/size] = append(steps[i/size], made.parse(x.story)[at])
						}
					}
				}
				for i := range n {
					for range min(2, len(steps[i])) {
						made.write(s, steps[i]...)
					}
				}
				list := made.read(s)
				for _, h := range histories {
					if got := h.show(list); got != x.want {
						t.Errorf("order %s:\n got %s\nwant %s", h.history, got, x.want)
					}
				}
			})
		})
	}
}

func listed(m *merge.Table) { m.OnDelete, m.Group = merge.DeleteRemove, []int{0} }

// orders are all orders of n things.
func orders(n int) [][]int {
	if n == 0 {
		return [][]int{{}}
	}
	var out [][]int
	for _, rest := range orders(n - 1) {
		for at := range n {
			o := append(append(append([]int{}, rest[:at]...), n-1), rest[at:]...)
			out = append(out, o)
		}
	}
	return out
}
