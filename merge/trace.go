package merge

import (
	"fmt"
	"slices"
)

// Fate is what became of what a change says, when it arrived.
type Fate string

// The fates.
const (
	// Won: the column took the value; a delete or a complete list took effect.
	Won Fate = "won"
	// Same: it was so already, through this event or another.
	Same Fate = "same"
	// Lost: something that had arrived before beats it.
	Lost Fate = "lost"
	// Hidden: the record took the value, but the row does not show it: another
	// occupant holds the row, or the row is deleted.
	Hidden Fate = "hidden"
)

// Outcome is a fate with its reason.
type Outcome struct {
	Fate Fate
	// Reason tells a person why, "" for Won and Same.
	Reason string
	// Against is the change that it lost to or is hidden by; nil for Won and
	// Same, and where no single change did it.
	Against *Change
}

// ColumnFate is the fate of one cell of a change.
type ColumnFate struct {
	Column string
	Value  Value
	Outcome
}

// Step is what one change did when it arrived.
type Step struct {
	Change *Change
	// Key is that of the row the change was found to be about: on a chained table
	// the one of its chain, of a complete list its group's.
	Key Key
	// Whole is the fate of a change that speaks of the row as a whole, or of a
	// group: a delete, a complete list, or one without a row it may write; nil for
	// other changes.
	Whole *Outcome
	// Columns are the fates of the columns that the change speaks of.
	Columns []ColumnFate
	// Appeared are the rows that show since this change, Gone those that do so no
	// more, sorted.
	Appeared, Gone []Key
}

// Lost tells whether anything that the change says is not in the row because
// something that had arrived before beats it.
func (s *Step) Lost() bool {
	in := func(o Outcome) bool { return o.Fate == Lost || o.Fate == Hidden }
	return s.Whole != nil && in(*s.Whole) || slices.ContainsFunc(s.Columns, func(c ColumnFate) bool { return in(c.Outcome) })
}

// Trace follows the changes of one table in the order of arrival and tells for
// each what it did. The rows it ends with are those of Rows, but for changes of
// IfMissing Wait, which it takes to be written when their row appears, and of
// Skip, which say nothing where there was no row yet.
func Trace(t *Table, arrivals []*Change) []Step {
	tr := newTracer(t)
	for _, c := range arrivals {
		tr.arrive(c)
	}
	return tr.steps
}

// partOf names a record: of a row itself, or of one of its occupants. On a
// chained table an identity has one record, whatever its chain's key is.
type partOf struct {
	key      Key
	occupied bool
	occupant string
}

type cellOf struct {
	partOf
	column int
}

// tracer keeps which change is behind what is held.
type tracer struct {
	table *Table
	held  *Held
	steps []Step
	// shown are the rows that show; waiting are the places in steps of changes
	// that wait for a row.
	shown   map[Key]*Row
	waiting []int

	cells                    map[cellOf]*Change
	writes, deletes, holders map[partOf]*Change
	lists                    map[Key]*Change
}

func newTracer(t *Table) *tracer {
	return &tracer{
		table: t, held: NewHeld(t, nil, nil, nil), shown: map[Key]*Row{}, cells: map[cellOf]*Change{},
		writes: map[partOf]*Change{}, deletes: map[partOf]*Change{}, holders: map[partOf]*Change{}, lists: map[Key]*Change{},
	}
}

func (tr *tracer) arrive(c *Change) {
	n := len(tr.steps)
	tr.steps = append(tr.steps, Step{Change: c})
	tr.take(n)
	if len(tr.steps[n].Appeared) == 0 {
		return
	}
	waiting := tr.waiting
	tr.waiting = nil
	for _, i := range waiting {
		tr.take(i)
	}
}

// take lets the change of a step do what it does, and writes it down.
func (tr *tracer) take(n int) {
	s := &tr.steps[n]
	c := s.Change
	*s = Step{Change: c, Key: c.Key}
	tr.write(s, Batch{Links: FoldAll(tr.table, []*Change{{Table: tr.table, Replaces: true, Links: c.Links}}).Links})
	switch {
	case c.Replaces:
		tr.list(s)
	case c.IfMissing != Insert && tr.held.Shown(tr.root(c.Key)) == nil:
		s.Key = tr.root(c.Key)
		s.Whole = &Outcome{Fate: Lost, Reason: "there is no row, and it may not insert one"}
		if c.IfMissing == Wait {
			s.Whole.Reason = "there is no row yet, and it waits for one"
			tr.waiting = append(tr.waiting, n)
		}
	default:
		s.Key = tr.root(c.Key)
		tr.row(s)
	}
}

func (tr *tracer) root(k Key) Key {
	if !tr.table.Chained {
		return k
	}
	return NewKey(tr.held.Chains().Root(string(k)))
}

// write joins a batch into what is held, and notes which rows come and go.
func (tr *tracer) write(s *Step, b Batch) {
	for _, k := range tr.held.Write(b).Touched {
		was, is := tr.shown[k], tr.held.Shown(k)
		switch {
		case was == nil && is != nil:
			s.Gone, s.Appeared = comes(s.Gone, s.Appeared, k)
		case was != nil && is == nil:
			s.Appeared, s.Gone = comes(s.Appeared, s.Gone, k)
		}
		if tr.shown[k] = is; is == nil {
			delete(tr.shown, k)
		}
	}
}

// comes takes a key from one sorted list, or else puts it into another.
func comes(from, to []Key, k Key) (newFrom, newTo []Key) {
	if i, ok := slices.BinarySearch(from, k); ok {
		return slices.Delete(from, i, i+1), to
	}
	i, _ := slices.BinarySearch(to, k)
	return from, slices.Insert(to, i, k)
}

// list follows a complete list.
func (tr *tracer) list(s *Step) {
	c := s.Change
	was := tr.held.Set(c.Key)
	switch {
	case was.Version == c.Version:
		s.Whole = &Outcome{Fate: Same}
	case was.Version > c.Version:
		s.Whole = &Outcome{Fate: Lost, Reason: olderThan(c.Version, was.Version), Against: tr.lists[c.Key]}
	default:
		s.Whole = &Outcome{Fate: Won}
		tr.lists[c.Key] = c
	}
	tr.write(s, Batch{Sets: []Set{{Group: c.Key, Version: c.Version, At: c.DeletedAt}}})
}

// row follows a write or a delete of a row.
func (tr *tracer) row(s *Step) {
	c := s.Change
	type record struct{ says, was, is *Row }
	var records []record
	for _, r := range Lift(c) {
		r.Key = s.Key
		was := tr.record(r)
		records = append(records, record{r, was, Join(tr.table, was, r)})
	}
	before := tr.shown[s.Key]
	tr.write(s, FoldAll(tr.table, []*Change{c}))
	for _, x := range records {
		part := tr.partOf(x.says)
		if x.is.Seen > x.was.Seen || tr.writes[part] == nil && !c.Delete {
			tr.writes[part] = c
		}
		if x.is.Occupant != nil && (tr.holders[part] == nil || x.is.Occupant.Since != x.was.Occupant.Since) {
			tr.holders[part] = c
		}
		if c.Delete {
			s.Whole = tr.deleted(s, x.was, x.is, before)
			continue
		}
		for i, cell := range x.says.Cells {
			if cell.Set {
				s.Columns = append(s.Columns, ColumnFate{tr.table.Columns[i].Name, cell.Value, tr.cell(s, i, x.says, x.was, x.is)})
			}
		}
	}
}

// record gives what is held of the record that a row is of, empty if nothing is.
func (tr *tracer) record(r *Row) *Row {
	for _, p := range tr.held.Parts(r.Key) {
		if samePart(p, r) {
			return p
		}
	}
	return &Row{Key: r.Key, Occupant: r.Occupant, Scopes: make([]Version, len(r.Scopes)), Cells: make([]Cell, len(r.Cells))}
}

func (tr *tracer) partOf(r *Row) partOf {
	p := partOf{key: r.Key}
	if r.Occupant != nil {
		p.occupied, p.occupant = true, r.Occupant.ID
		if tr.table.Chained {
			p.key = ""
		}
	}
	return p
}

// deleted tells the fate of a delete.
func (tr *tracer) deleted(s *Step, was, is, before *Row) *Outcome {
	part := tr.partOf(is)
	v := s.Change.Version
	switch {
	case was.Deleted == v:
		return &Outcome{Fate: Same}
	case was.Deleted > v:
		return &Outcome{Fate: Lost, Reason: olderThan(v, was.Deleted), Against: tr.deletes[part]}
	}
	tr.deletes[part] = s.Change
	if h := tr.hiddenByOccupant(is); h != nil {
		return h
	}
	after := tr.shown[s.Key]
	if before != nil && after != nil && before.Gone() == after.Gone() && slices.Equal(before.Scopes, after.Scopes) && slices.EqualFunc(before.Cells, after.Cells, Cell.equal) && !is.Gone() {
		return &Outcome{Fate: Lost, Reason: fmt.Sprintf("the row was written at %s, which is not before %s", is.Seen.Show(), v.Show()), Against: tr.writes[part]}
	}
	return &Outcome{Fate: Won}
}

// cell tells the fate of one cell of a write.
func (tr *tracer) cell(s *Step, i int, says, was, is *Row) Outcome {
	col := &tr.table.Columns[i]
	part := tr.partOf(says)
	at := cellOf{part, i}
	o := tr.joined(col, i, s.Change, says, was, is)
	if o.Fate == Lost && o.Against == nil {
		o.Against = tr.cells[at]
	}
	scope := tr.table.scopeOf[i]
	if !was.Cells[i].equal(is.Cells[i]) || scope >= 0 && was.Scopes[scope] < says.Scopes[scope] {
		tr.cells[at] = s.Change
	}
	if o.Fate == Lost {
		return o
	}
	if h := tr.hiddenByOccupant(says); h != nil {
		return *h
	}
	if shown := tr.shown[s.Key]; shown != nil && shown.Cells[i].Value == is.Cells[i].Value && shown.Cells[i].Set {
		return o
	}
	return tr.hiddenByDelete(is)
}

// joined tells what joining a cell into its record did.
func (tr *tracer) joined(col *Column, i int, c *Change, says, was, is *Row) Outcome {
	x, y, z := was.Cells[i], says.Cells[i], is.Cells[i]
	if col.Rule == Sum || col.Rule == Count {
		has, known := x.Ledger[c.Identity]
		switch {
		case !known, newerAmount(y.Ledger[c.Identity], has):
			return Outcome{Fate: Won}
		case has.Value == y.Value:
			return Outcome{Fate: Same}
		}
		return Outcome{Fate: Lost, Reason: fmt.Sprintf("this event counts as %s already: %s", has.Value, olderThan(c.Version, has.Version))}
	}
	switch {
	case x.Set && x.Value == y.Value && z.Value == y.Value:
		return Outcome{Fate: Same}
	case !z.equal(x):
		return Outcome{Fate: Won}
	}
	return Outcome{Fate: Lost, Reason: tr.lostBecause(col, i, was, says)}
}

// hiddenByOccupant tells that another occupant holds the row of a record, nil if
// its own does.
func (tr *tracer) hiddenByOccupant(r *Row) *Outcome {
	if r.Occupant == nil {
		return nil
	}
	holder := Project(tr.table, tr.held.Parts(r.Key), tr.held.Chains())
	if holder == nil || holder.Occupant == nil || holder.Occupant.ID == r.Occupant.ID {
		return nil
	}
	reason := fmt.Sprintf("it is about %s, and the row belongs to %s%s", r.Occupant.ID, holder.Occupant.ID, sinceWhen(holder.Occupant))
	return &Outcome{Fate: Hidden, Reason: reason, Against: tr.holders[tr.partOf(holder)]}
}

func sinceWhen(o *Occupant) string {
	if o.Since == "" {
		return ""
	}
	return " since " + o.Since.show()
}

// hiddenByDelete tells what deletes a record, or a scope of it.
func (tr *tracer) hiddenByDelete(is *Row) Outcome {
	if set := tr.held.setOf(is.Key); set.Version > is.Deleted {
		return Outcome{Fate: Hidden, Reason: fmt.Sprintf("the complete list of %s does not name the row", set.Version.Show()), Against: tr.lists[set.Group]}
	}
	return Outcome{Fate: Hidden, Reason: fmt.Sprintf("the row was deleted at %s", is.Deleted.Show()), Against: tr.deletes[tr.partOf(is)]}
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
