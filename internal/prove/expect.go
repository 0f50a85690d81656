package prove

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Difference is a row, or a column of one, that is not as it must be.
type Difference struct {
	Table string `json:"table"`
	Key   string `json:"key"`
	// Column is "" where the row as a whole is missing, or should not be there.
	Column string `json:"column,omitempty"`
	Have   string `json:"have"`
	Want   string `json:"want"`
	// Why tells more; of a difference that is none of rows it tells all.
	Why string `json:"why,omitempty"`
}

// String renders the difference as a line.
func (d Difference) String() string {
	name := d.Table
	if d.Key != "" {
		name += " " + d.Key
	}
	switch {
	case d.Have == "":
		return name + ": " + d.Why
	case d.Why != "":
		return fmt.Sprintf("%s: %s is %s, and must be %s: %s", name, d.Column, d.Have, d.Want, d.Why)
	case d.Column == "":
		return fmt.Sprintf("%s: there is %s, and must be %s", name, d.Have, d.Want)
	}
	return fmt.Sprintf("%s: %s is %s, and must be %s", name, d.Column, d.Have, d.Want)
}

const (
	noRow = "no row"
	aRow  = "a row"
)

// Differ compares rows of a table with those that there must be, as far as a
// user sees them; both are sorted by key. A touch column is the time of a write,
// and is not compared.
func Differ(t *merge.Table, have, want []*merge.Row) []Difference {
	var out []Difference
	add := func(k merge.Key, column, have, want string) {
		out = append(out, Difference{Table: t.Name, Key: t.Show(k), Column: column, Have: have, Want: want})
	}
	for len(have) > 0 || len(want) > 0 {
		switch {
		case len(want) == 0 || len(have) > 0 && have[0].Key < want[0].Key:
			add(have[0].Key, "", aRow, noRow)
			have = have[1:]
			continue
		case len(have) == 0 || want[0].Key < have[0].Key:
			add(want[0].Key, "", noRow, aRow)
			want = want[1:]
			continue
		}
		h, w := have[0], want[0]
		have, want = have[1:], want[1:]
		for i, c := range t.Columns {
			if a, b := seen(h, i), seen(w, i); c.Rule != merge.Touch && a != b {
				add(w.Key, c.Name, a.String(), b.String())
			}
		}
		if t.OnDelete == merge.DeleteMark {
			if a, b := since(h), since(w); a != b {
				add(w.Key, "deleted_at", a.String(), b.String())
			}
		}
	}
	return out
}

func seen(r *merge.Row, column int) merge.Value {
	if c := r.Cells[column]; c.Set {
		return c.Value
	}
	return merge.NullValue
}

func since(r *merge.Row) merge.Value {
	if r.Gone() {
		return r.DeletedAt
	}
	return merge.NullValue
}

// changeID names a change of a delivery, the same in every order.
type changeID string

// eventID names an event of a delivery, the same in every order.
type eventID struct{ delivery, index int }

func idOf(delivery int, c *merge.Change) changeID {
	who := ""
	if c.Occupant != nil {
		who = c.Occupant.ID
	}
	return changeID(fmt.Sprintf("%d\x00%d\x00%s\x00%s\x00%s\x00%s\x00%t%t", delivery, c.From.Index, c.Table.Name, c.Key, c.Mapping, who, c.Delete, c.Replaces))
}

// told is what became of deliveries that arrived in some way.
type told struct {
	// mapped are the changes that events meant, landed those of them that are in.
	mapped map[changeID]*merge.Change
	landed map[changeID]bool
	// changes are those that landed, each once for every arrival of its event.
	changes []*merge.Change
	left    map[eventID]journal.Entry
	// of says which delivery each arrival is.
	of map[event.Position]int
}

// rows are those that the changes that landed make.
func (x *told) rows(tables []*sink.Table) map[*merge.Table][]*merge.Row {
	changes := map[*merge.Table][]*merge.Change{}
	for _, c := range x.changes {
		for _, one := range append(c.Stubs(), c) {
			changes[one.Table] = append(changes[one.Table], one)
		}
	}
	out := map[*merge.Table][]*merge.Row{}
	for _, t := range tables {
		out[t.Table] = merge.Rows(t.Table, changes[t.Table])
	}
	return out
}

// lost finds the values that an event has given and that are not in the row,
// though no newer event speaks of their column: another column that shares its
// version with them was given alone.
func (x *told) lost(tables []*sink.Table) []Difference {
	var out []Difference
	for _, t := range tables {
		apart := columnsApart(t.Table)
		if apart == nil {
			continue
		}
		var whole, parts []*merge.Change
		for _, c := range x.changes {
			for _, one := range append(c.Stubs(), c) {
				if one.Table == t.Table {
					own := *one
					own.Table = apart
					whole, parts = append(whole, one), append(parts, &own)
				}
			}
		}
		for _, d := range Differ(t.Table, merge.Rows(t.Table, whole), merge.Rows(apart, parts)) {
			d.Why = "a newer event sets another column of the same version without this one"
			out = append(out, d)
		}
	}
	return out
}

// columnsApart is a table with a version of its own for each latest column; nil
// if it has that already. Where every change speaks of all columns of a scope or
// of none, its rows are the same.
func columnsApart(t *merge.Table) *merge.Table {
	columns := slices.Clone(t.Columns)
	shared := false
	for i := range columns {
		if s := t.ScopeOf(i); s >= 0 && columns[i].Scope != merge.KeyScope && len(t.ScopeColumns(s)) > 1 {
			columns[i].Scope, shared = "column "+columns[i].Name, true
		}
	}
	if !shared {
		return nil
	}
	return merge.NewTable(merge.Table{Name: t.Name, Key: t.Key, Columns: columns, Occupied: t.Occupied, Chained: t.Chained, OnDelete: t.OnDelete, Group: t.Group})
}

// unfounded compares what landed with what merge says can: a change whose parent
// nobody brings waits, and one that neither landed nor has an event that is
// waiting or dead is lost.
func (x *told) unfounded() []Difference {
	all := make([]*merge.Change, 0, len(x.mapped))
	ids := make(map[*merge.Change]changeID, len(x.mapped))
	for id, c := range x.mapped {
		if left, ok := x.left[x.event(c)]; ok && left.State == journal.Dead && !x.landed[id] {
			continue
		}
		all, ids[c] = append(all, c), id
	}
	ready, waits := merge.Ready(all)
	var out []Difference
	add := func(c *merge.Change, format string, args ...any) {
		out = append(out, Difference{Table: c.Table.Name, Key: c.Table.Show(c.Key), Why: fmt.Sprintf(format, args...)})
	}
	for _, w := range waits {
		if x.landed[ids[w.Change]] {
			add(w.Change, "a change is written whose parent or row nobody has brought")
		}
	}
	for _, c := range ready {
		if _, told := x.left[x.event(c)]; !told && !x.landed[ids[c]] {
			add(c, "a change is not written, and its event is neither waiting nor dead")
		}
	}
	return out
}

func (x *told) event(c *merge.Change) eventID {
	return eventID{x.of[c.From.Position], c.From.Index}
}

// otherwise tells of the changes that landed in one way of arriving and not in
// the other, with what tables they are of.
func (x *told) otherwise(o *told) []Difference {
	var out []Difference
	tell := func(a, b *told, format string) {
		for id := range a.landed {
			if b.landed[id] {
				continue
			}
			c, reason := a.mapped[id], "no reason is given"
			if e, ok := b.left[a.event(c)]; ok {
				reason = string(e.State) + ": " + e.Reason
			}
			out = append(out, Difference{Table: c.Table.Name, Key: c.Table.Show(c.Key), Why: fmt.Sprintf(format, reason)})
		}
	}
	tell(o, x, "a change lands in the order of the file, and not in this one (%s)")
	tell(x, o, "a change lands in this order, and not in that of the file (%s)")
	slices.SortFunc(out, func(a, b Difference) int { return strings.Compare(a.String(), b.String()) })
	return out
}
