package merge

import (
	"fmt"
	"slices"
)

// Fate is what became of what a change says about a column, when it arrived.
type Fate string

// The fates of a cell.
const (
	// Won: the column took the value.
	Won Fate = "won"
	// Same: the column had this value already, from this event or another.
	Same Fate = "same"
	// Lost: the column kept a value that beats this one.
	Lost Fate = "lost"
	// Hidden: the record took the value, but another occupant holds the row.
	Hidden Fate = "hidden"
)

// ColumnFate is the fate of one cell of a change.
type ColumnFate struct {
	Column string
	Value  Value
	Fate   Fate
	// Reason tells a person why, "" for Won and Same.
	Reason string
	// Against is the change that it lost to; nil for Won and Same.
	Against *Change
}

// Step is what one change did when it arrived.
type Step struct {
	Change  *Change
	Columns []ColumnFate
}

// Lost tells whether anything that the change says is not in the row because
// something that had arrived before beats it.
func (s *Step) Lost() bool {
	return slices.ContainsFunc(s.Columns, func(c ColumnFate) bool { return c.Fate == Lost || c.Fate == Hidden })
}

// Trace follows the changes of one table in the order of arrival and tells for
// each what it did. The rows it follows are those of Rows.
func Trace(t *Table, arrivals []*Change) []Step {
	tr := tracer{table: t, records: map[foldKey]*traced{}, holder: map[Key]*traced{}}
	steps := make([]Step, len(arrivals))
	for i, c := range arrivals {
		steps[i] = tr.step(c)
	}
	return steps
}

// traced is a record and the change behind each of its columns.
type traced struct {
	row    *Row
	behind []*Change
	// newest is the change that made the record what it is as an occupant.
	newest *Change
}

type tracer struct {
	table   *Table
	records map[foldKey]*traced
	holder  map[Key]*traced // the newest occupant's record
}

func (tr *tracer) step(c *Change) Step {
	s := Step{Change: c}
	for _, r := range Lift(c) {
		k := foldKey{key: r.Key}
		if r.Occupant != nil {
			k.occupied, k.occupant = true, r.Occupant.ID
		}
		rec, ok := tr.records[k]
		if !ok {
			rec = &traced{behind: make([]*Change, len(tr.table.Columns)), newest: c}
			rec.row = &Row{Key: r.Key, Occupant: r.Occupant, Scopes: make([]Version, len(r.Scopes)), Cells: make([]Cell, len(r.Cells))}
			tr.records[k] = rec
		}
		before := rec.row
		rec.row = Join(tr.table, before, r)
		if r.Occupant != nil {
			if rec.row.Occupant.Since != before.Occupant.Since {
				rec.newest = c
			}
			if h := tr.holder[r.Key]; h == nil || Newer(rec.row.Occupant, h.row.Occupant, nil) {
				tr.holder[r.Key] = rec
			}
		}
		for i, cell := range r.Cells {
			if cell.Set {
				s.Columns = append(s.Columns, tr.fate(rec, before, r, i, c))
			}
		}
	}
	return s
}

func (tr *tracer) fate(rec *traced, before, r *Row, i int, c *Change) ColumnFate {
	col := &tr.table.Columns[i]
	f := ColumnFate{Column: col.Name, Value: r.Cells[i].Value}
	was, is := before.Cells[i], rec.row.Cells[i]
	switch {
	case is.Value == r.Cells[i].Value && was.Set && was.Value == is.Value:
		f.Fate = Same
	case !is.equal(was):
		f.Fate = Won
	default:
		f.Fate, f.Against = Lost, rec.behind[i]
		f.Reason = tr.lostBecause(col, i, before, r)
	}
	if !was.equal(is) || tr.table.scopeOf[i] >= 0 && before.Scopes[tr.table.scopeOf[i]] < r.Scopes[tr.table.scopeOf[i]] {
		rec.behind[i] = c
	}
	if h := tr.holder[r.Key]; r.Occupant != nil && h != rec && f.Fate != Lost {
		f.Fate, f.Against = Hidden, h.newest
		f.Reason = fmt.Sprintf("it is about %s, and the row belongs to %s%s", r.Occupant.ID, h.row.Occupant.ID, sinceWhen(h.row.Occupant))
	}
	return f
}

func sinceWhen(o *Occupant) string {
	if o.Since == "" {
		return ""
	}
	return " since " + o.Since.show()
}

func (tr *tracer) lostBecause(col *Column, i int, before, r *Row) string {
	was, says := before.Cells[i], r.Cells[i]
	switch col.Rule {
	case Latest:
		s := tr.table.scopeOf[i]
		return olderThan(r.Scopes[s], before.Scopes[s])
	case First:
		if says.Version.Tuple() == was.Version.Tuple() {
			return tie(says.Version)
		}
		return fmt.Sprintf("its version %s is not before %s", says.Version.Show(), was.Version.Show())
	case Ladder:
		return fmt.Sprintf("%s is a lower rung than %s", says.Value, was.Value)
	case Max:
		return fmt.Sprintf("%s is less than %s", says.Value, was.Value)
	case Min:
		return fmt.Sprintf("%s is more than %s", says.Value, was.Value)
	}
	return "the set has it already"
}

func olderThan(says, was Version) string {
	if says.Tuple() == was.Tuple() {
		return tie(says)
	}
	return fmt.Sprintf("its version %s is older than %s", says.Show(), was.Show())
}

func tie(v Version) string {
	return fmt.Sprintf("two different events have the version %s; this one loses in every order", v.Show())
}
