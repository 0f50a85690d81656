package merge

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/event"
)

// Missing says what a change does when its row is not there.
type Missing uint8

// What happens to a change without a row.
const (
	Insert Missing = iota // the row is inserted
	Wait                  // the change waits for somebody else to insert it
	Skip                  // the change says nothing
)

// Cell is what a change or a row says about one column.
type Cell struct {
	// Set says that the column is spoken of at all; an unset cell is not NULL.
	Set   bool
	Value Value
	// Version is the version of a First column's value, "" for other rules.
	Version Version
}

// Parent names a row that a change needs to be there.
type Parent struct {
	Table *Table
	Key   Key
}

// Occupant is the identity a change is about.
type Occupant struct {
	// ID is the identity, never "".
	ID string
	// Since says since when it holds the row, encoded as a version's component;
	// "" is unknown, and older than any known.
	Since Component
}

// Change is what one event says about one row. Cells stand in the order of the
// table's columns.
type Change struct {
	Table *Table
	// From is the event that says it, Mapping the place in the config.
	From    event.Ref
	Mapping string
	Key     Key
	// Version is "" if the table needs none.
	Version  Version
	Occupant *Occupant
	Cells    []Cell
	// Parents are rows to be inserted, key only, before this change is written.
	Parents   []Parent
	IfMissing Missing
}

// Row is the join of changes of one row and, on a table with occupants, of one
// occupant. It is at once what a sink adds to the row that is stored and, when
// it joins every change there is, the row itself.
type Row struct {
	Key Key
	// Occupant is nil for what belongs to the row itself.
	Occupant *Occupant
	// Scopes holds the version of each scope in the order of Table.Scopes; ""
	// where no change has spoken of the scope.
	Scopes []Version
	Cells  []Cell
	// Seen is the greatest version of all changes of the row: its existence.
	Seen Version
	// IfMissing is part of what tells rows apart while folding: a change that
	// may insert is never joined with one that may not.
	IfMissing Missing
}

// Lift makes rows of a change: one, or on a table with occupants one for the
// occupant and one for what belongs to the row itself, where the change speaks
// of both.
func Lift(c *Change) []*Row {
	if !c.Table.Occupied || c.Occupant == nil {
		return []*Row{c.part(nil, func(int) bool { return true })}
	}
	rows := []*Row{c.part(c.Occupant, func(i int) bool { return !c.Table.OfKey(i) })}
	if own := c.part(nil, c.Table.OfKey); slices.ContainsFunc(own.Cells, func(x Cell) bool { return x.Set }) {
		rows = append(rows, own)
	}
	return rows
}

func (c *Change) part(occupant *Occupant, has func(column int) bool) *Row {
	t := c.Table
	r := &Row{
		Key: c.Key, Occupant: occupant, Seen: c.Version, IfMissing: c.IfMissing,
		Scopes: make([]Version, len(t.scopes)), Cells: make([]Cell, len(t.Columns)),
	}
	for i, cell := range c.Cells {
		if !cell.Set || !has(i) {
			continue
		}
		switch t.Columns[i].Rule {
		case Latest:
			r.Scopes[t.scopeOf[i]] = c.Version
		case First:
			cell.Version = c.Version
		case Touch:
			continue
		default: // max, min, ladder, union: NULL says nothing
			if cell.Value.IsNull() {
				continue
			}
			if t.Columns[i].Rule == Union {
				cell.Value = unionOf(cell.Value, cell.Value)
			}
		}
		r.Cells[i] = cell
	}
	return r
}

// Join joins two rows of one key and occupant into a new one.
func Join(t *Table, a, b *Row) *Row {
	r := &Row{
		Key: a.Key, Occupant: joinOccupant(a.Occupant, b.Occupant), IfMissing: a.IfMissing,
		Seen: max(a.Seen, b.Seen), Scopes: make([]Version, len(a.Scopes)), Cells: make([]Cell, len(a.Cells)),
	}
	for s := range r.Scopes {
		r.Scopes[s] = max(a.Scopes[s], b.Scopes[s])
	}
	for i := range r.Cells {
		x, y := a.Cells[i], b.Cells[i]
		if s := t.scopeOf[i]; s >= 0 {
			r.Cells[i] = joinLatest(x, y, a.Scopes[s], b.Scopes[s])
			continue
		}
		r.Cells[i] = joinCell(&t.Columns[i], x, y)
	}
	return r
}

func joinOccupant(a, b *Occupant) *Occupant {
	if a == nil || b == nil || a.Since >= b.Since {
		return a
	}
	return b
}

// joinLatest takes the cell of the greater version. At one version both come
// from one event and mapping, and a cell that only one of them has (the config
// has gained a column) counts.
func joinLatest(x, y Cell, v, w Version) Cell {
	switch {
	case v > w:
		return x
	case v < w:
		return y
	case !x.Set:
		return y
	case y.Set && y.Value.text > x.Value.text:
		return y
	}
	return x
}

func joinCell(c *Column, x, y Cell) Cell {
	if !x.Set || !y.Set {
		if x.Set {
			return x
		}
		return y
	}
	switch c.Rule {
	case First:
		if o := cmp.Compare(x.Version, y.Version); o < 0 || o == 0 && x.Value.text >= y.Value.text {
			return x
		}
		return y
	case Max:
		if Compare(c.Type, x.Value, y.Value) >= 0 {
			return x
		}
		return y
	case Min:
		if Compare(c.Type, x.Value, y.Value) <= 0 {
			return x
		}
		return y
	case Ladder:
		if c.rung(x.Value) >= c.rung(y.Value) {
			return x
		}
		return y
	case Union:
		return Cell{Set: true, Value: unionOf(x.Value, y.Value)}
	}
	return Cell{}
}

// Fold joins changes of one table into as few rows as there are keys,
// occupants and ways of being missing, sorted by key, then occupant. It is what
// a batch writes, and it cannot change a result, because it is Join.
func Fold(t *Table, changes []*Change) []*Row {
	f := NewFolder(t)
	for _, c := range changes {
		f.Add(c)
	}
	return f.Rows()
}

// Folder folds changes one by one.
type Folder struct {
	table *Table
	rows  map[foldKey]*Row
}

type foldKey struct {
	key      Key
	occupied bool
	occupant string
	missing  Missing
}

// NewFolder returns an empty folder for a table.
func NewFolder(t *Table) *Folder { return &Folder{table: t, rows: map[foldKey]*Row{}} }

// Add joins a change of the folder's table into its row.
func (f *Folder) Add(c *Change) {
	for _, r := range Lift(c) {
		f.AddRow(r)
	}
}

// AddRow joins a row of the folder's table.
func (f *Folder) AddRow(r *Row) {
	k := foldKey{key: r.Key, missing: r.IfMissing}
	if r.Occupant != nil {
		k.occupied, k.occupant = true, r.Occupant.ID
	}
	if have, ok := f.rows[k]; ok {
		r = Join(f.table, have, r)
	}
	f.rows[k] = r
}

// Rows returns the folded rows, sorted by key, then what belongs to the row
// itself before occupants by id.
func (f *Folder) Rows() []*Row {
	return slices.SortedFunc(maps.Values(f.rows), compareRows)
}

func compareRows(a, b *Row) int {
	if c := strings.Compare(string(a.Key), string(b.Key)); c != 0 {
		return c
	}
	if a.Occupant != nil && b.Occupant != nil {
		if c := strings.Compare(a.Occupant.ID, b.Occupant.ID); c != 0 {
			return c
		}
	} else if c := btoi(a.Occupant != nil) - btoi(b.Occupant != nil); c != 0 {
		return c
	}
	return cmp.Compare(a.IfMissing, b.IfMissing)
}

// Newer tells whether occupant a holds a row rather than b: the greater since,
// then the greater id.
func Newer(a, b *Occupant) bool {
	if a.Since != b.Since {
		return a.Since > b.Since
	}
	return a.ID > b.ID
}

// Project gives the row that shows for one key, from the records of all its
// occupants and what belongs to the row itself (the one without an occupant, if
// there is one). The newest occupant's record is taken whole.
func Project(t *Table, parts []*Row) *Row {
	var own, newest *Row
	for _, p := range parts {
		switch {
		case p.Occupant == nil:
			own = p
		case newest == nil || Newer(p.Occupant, newest.Occupant):
			newest = p
		}
	}
	if newest == nil {
		return own
	}
	r := &Row{
		Key: newest.Key, Occupant: newest.Occupant, Seen: newest.Seen, IfMissing: newest.IfMissing,
		Scopes: slices.Clone(newest.Scopes), Cells: slices.Clone(newest.Cells),
	}
	if own == nil {
		return r
	}
	r.Seen = max(r.Seen, own.Seen)
	for i := range t.Columns {
		if !t.OfKey(i) {
			continue
		}
		r.Cells[i] = own.Cells[i]
		if s := t.scopeOf[i]; s >= 0 {
			r.Scopes[s] = own.Scopes[s]
		}
	}
	return r
}

// Rows gives the rows that all the changes of one table together make, as a
// user sees them: folded, then projected, one per key, sorted by key. Changes
// that may not insert count only where a row is there.
func Rows(t *Table, changes []*Change) []*Row {
	byKey := map[Key][]*Row{}
	inserted := map[Key]bool{}
	f := NewFolder(t)
	for _, c := range changes {
		for _, r := range Lift(c) {
			inserted[r.Key] = inserted[r.Key] || r.IfMissing == Insert
			r.IfMissing = Insert
			f.AddRow(r)
		}
	}
	for _, r := range f.Rows() {
		byKey[r.Key] = append(byKey[r.Key], r)
	}
	var out []*Row
	for _, k := range slices.Sorted(maps.Keys(byKey)) {
		if inserted[k] {
			out = append(out, Project(t, byKey[k]))
		}
	}
	return out
}
