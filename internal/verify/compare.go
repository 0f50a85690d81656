package verify

import (
	"strings"

	"github.com/hookfold/hookfold/merge"
)

// comparer compares the two rows of one key: live as it is, and said as the
// journal has it.
type comparer struct {
	t          *merge.Table
	live, said *merge.Row
	// whole says that the journal is whole, loose that an event about the row has
	// not landed: which, or "".
	whole bool
	loose string
	// counted are what each event has added to the counters of either.
	counted, counts map[int]map[string]merge.Amount

	columns []Column
}

// The reasons of a column.
const (
	whyChanged = "changed outside Hookfold: the event of this very version says otherwise"
	whyBehind  = "the database is behind: the journal has a newer event, which has been written and is not there any more"
	whyNewer   = "the database is newer: its event is not in the journal (any more)"
)

// compare gives what differs, and whether it is drift.
func (c *comparer) compare() (columns []Column, drift bool) {
	occupant := c.occupants()
	for i := range c.t.Columns {
		if occupant || c.t.OfKey(i) {
			c.column(i)
		}
	}
	c.deletes()
	for i := range c.columns {
		x := &c.columns[i]
		if c.loose != "" && x.Right == Journal && x.Why != whyBehind {
			x.Right, x.Why = Unknown, "cannot be checked: "+c.loose+" is about this row too, and has not landed"
		}
		drift = drift || x.Right == Journal
	}
	return c.columns, drift
}

func (c *comparer) add(name string, live, said merge.Value, v, w merge.Version, right Side, why string) {
	c.columns = append(c.columns, Column{
		Name: name, Database: shown(live), Journal: shown(said), DatabaseVersion: versionText(v), JournalVersion: versionText(w), Right: right, Why: why,
	})
}

func versionText(v merge.Version) string {
	if v == "" {
		return ""
	}
	return v.Show()
}

func shown(v merge.Value) *string {
	if v.IsNull() {
		return nil
	}
	s := v.Text()
	return &s
}

// beyond judges what the live row has and no event of the journal says: while
// the journal is whole somebody else has done it.
func (c *comparer) beyond(what string) (Side, string) {
	if c.whole {
		return Journal, what + ", which no event in the journal says: changed outside Hookfold, or there before it"
	}
	return Unknown, "cannot be checked: " + what + ", and the journal does not reach back to its beginning"
}

// occupants compares who holds the row, and tells whether it is the same.
func (c *comparer) occupants() bool {
	if !c.t.Occupied {
		return true
	}
	l, s := c.live.Occupant, c.said.Occupant
	if l == nil && s == nil {
		return true
	}
	name := func(o *merge.Occupant) merge.Value {
		if o == nil {
			return merge.NullValue
		}
		v, err := merge.ParseValue(merge.Type{Kind: merge.Text}, o.ID)
		if err != nil {
			return merge.NullValue
		}
		return v
	}
	right, why := Journal, whyBehind
	switch {
	case s == nil:
		right, why = c.beyond("an occupant")
	case l == nil:
	case l.ID == s.ID && l.Since == s.Since:
		return true
	case l.ID == s.ID:
		if l.Since > s.Since {
			right, why = Unknown, whyNewer
		}
		c.add("occupant_since", merge.NullValue, merge.NullValue, merge.Version(l.Since), merge.Version(s.Since), right, why)
		return true
	case c.t.Chained:
		right, why = c.beyond("another identity of the chain")
	case merge.Newer(l, s, nil):
		right, why = Unknown, whyNewer
	}
	c.add("occupant_id", name(l), name(s), "", "", right, why)
	return false
}

// column compares one column.
func (c *comparer) column(i int) {
	col := &c.t.Columns[i]
	l, s := c.live.Cells[i], c.said.Cells[i]
	switch col.Rule {
	case merge.Touch:
	case merge.Latest:
		at := c.t.ScopeOf(i)
		c.latest(col.Name, l.Value, s.Value, c.live.Scopes[at], c.said.Scopes[at])
	case merge.First:
		c.first(col.Name, l, s)
	case merge.Sum, merge.Count:
		c.counter(i)
	case merge.Flag, merge.Chain:
		if l.Value != s.Value && c.live.Seen == c.said.Seen && c.live.Deleted == c.said.Deleted {
			right, why := c.beyond("a value")
			c.add(col.Name, l.Value, s.Value, "", "", right, why)
		}
	default:
		c.joined(i)
	}
}

func (c *comparer) latest(name string, l, s merge.Value, v, w merge.Version) {
	same := l == s
	switch {
	case w == "" && v == "": // no event speaks of it
	case v == w:
		if !same {
			c.add(name, l, s, v, w, Journal, whyChanged)
		}
	case w == "" || v > w:
		if !same || v.Tuple() != w.Tuple() {
			c.add(name, l, s, v, w, Unknown, whyNewer)
		}
	case !same || v.Tuple() != w.Tuple(): // v < w
		c.add(name, l, s, v, w, Journal, whyBehind)
	}
}

func (c *comparer) first(name string, l, s merge.Cell) {
	v, w := l.Version, s.Version
	switch {
	case v == "" && !l.Value.IsNull(): // there before Hookfold, and kept
	case v == w:
		if l.Value != s.Value {
			c.add(name, l.Value, s.Value, v, w, Journal, whyChanged)
		}
	case w == "" || v != "" && v < w:
		if l.Value != s.Value || v.Tuple() != w.Tuple() {
			c.add(name, l.Value, s.Value, v, w, Unknown, "the database has an older first value: its event is not in the journal (any more)")
		}
	case l.Value != s.Value || v.Tuple() != w.Tuple():
		c.add(name, l.Value, s.Value, v, w, Journal, whyBehind)
	}
}

// joined compares a column whose rule keeps no version: what both say together
// tells which of them has more.
func (c *comparer) joined(i int) {
	l, s := c.live.Cells[i].Value, c.said.Cells[i].Value
	if l == s {
		return
	}
	name := c.t.Columns[i].Name
	switch {
	case l.IsNull():
		c.add(name, l, s, "", "", Journal, whyBehind)
		return
	case !s.IsNull():
		x, y := *c.live, *c.said
		x.Cells, y.Cells = only(c.live, i), only(c.said, i)
		if both := merge.Join(c.t, &x, &y).Cells[i].Value; both != l {
			c.add(name, l, s, "", "", Journal, "the database has less than the journal: changed outside Hookfold, or set back")
			return
		}
	}
	right, why := c.beyond("a value")
	c.add(name, l, s, "", "", right, why)
}

// only are cells of which one is set.
func only(r *merge.Row, i int) []merge.Cell {
	out := make([]merge.Cell, len(r.Cells))
	out[i] = merge.Cell{Set: true, Value: r.Cells[i].Value}
	return out
}

// counter compares what each event has added: a total may have a base that was
// there before, so that it is not compared itself.
func (c *comparer) counter(i int) {
	lacks := merge.Post(c.counted[i], c.counts[i])
	var ids []string
	for id, a := range lacks.Changed {
		if c.counted[i][id].Value != a.Value {
			ids = append(ids, id)
		}
	}
	if ids == nil {
		return
	}
	live, total := c.live.Cells[i].Value, merge.Total(c.counts[i])
	right, why := Journal, "the database has not counted "+few(ids)
	if live.Text() == total.Text() && merge.Total(c.counted[i]) != total { // counted again, it would be doubled
		right, why = Unknown, "cannot be checked: the total is what the journal says, but the database does not remember that it has counted "+few(ids)
	}
	c.add(c.t.Columns[i].Name, live, total, "", "", right, why)
}

func few(ids []string) string {
	text := strings.Join(ids[:min(3, len(ids))], ", ")
	if len(ids) > 3 {
		text += ", …"
	}
	return text
}

// deletes compares what is known of the row's existence.
func (c *comparer) deletes() {
	if c.t.OnDelete == merge.DeleteNone && c.t.Group == nil {
		return
	}
	for _, x := range []struct {
		name string
		v, w merge.Version
	}{{"seen_version", c.live.Seen, c.said.Seen}, {"delete_version", c.live.Deleted, c.said.Deleted}} {
		switch {
		case x.v == x.w || x.v.Tuple() == x.w.Tuple() || len(c.columns) > 0 && x.name == "seen_version":
		case x.v > x.w:
			c.add(x.name, merge.NullValue, merge.NullValue, x.v, x.w, Unknown, whyNewer)
		default:
			c.add(x.name, merge.NullValue, merge.NullValue, x.v, x.w, Journal, whyBehind)
		}
	}
	if c.t.OnDelete == merge.DeleteMark && c.live.Deleted == c.said.Deleted && c.live.Seen == c.said.Seen && c.live.Gone() && c.live.DeletedAt != c.said.DeletedAt {
		c.add("deleted_at", c.live.DeletedAt, c.said.DeletedAt, c.live.Deleted, c.said.Deleted, Journal, whyChanged)
	}
}
