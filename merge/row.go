package merge

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

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
	// Ledger holds what each event adds to a Sum or Count, by the event's
	// identity; the value is its total. A change's own cell has none.
	Ledger map[string]Amount
}

// equal tells whether two cells say the same; ledgers with one total do.
func (c Cell) equal(o Cell) bool {
	return c.Set == o.Set && c.Value == o.Value && c.Version == o.Version
}

// Amount is what one event adds to a counter. Of two amounts of one event the
// one with the greater version counts.
type Amount struct {
	Version Version
	Value   Value
}

// Parent names a row that a change needs to be there. It is inserted, key only,
// unless the change is to wait for it.
type Parent struct {
	Table *Table
	Key   Key
	Wait  bool
	// For is how long the change waits before it is given up; 0 if it does not
	// wait.
	For time.Duration
}

// Stub is what a change says about a parent that it does not wait for: that the
// row exists, since the change's own version. A delete of the parent that is
// newer beats it, as it would beat a write.
func Stub(p Parent, child *Change) *Change {
	c := &Change{
		Table: p.Table, From: child.From, Mapping: child.Mapping, Key: p.Key,
		Version: child.Version, Cells: make([]Cell, len(p.Table.Columns)),
	}
	if p.Table.Chained {
		c.Occupant = &Occupant{ID: string(p.Key)}
	}
	return c
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
	// Parents are rows that must be there before this change is written.
	Parents   []Parent
	IfMissing Missing
	// Identity names the event for counters, "" if it has no identity: the same
	// in every delivery, and different for each part of the event that counts.
	Identity string
	// Delete says that the row is gone since Version; DeletedAt is the time
	// that the event gives for it. Cells are not looked at.
	Delete    bool
	DeletedAt Value
	// Replaces says that the rows of a group are complete as of Version: the
	// key's group holds only the rows whose versions are not older. Such a
	// change is about the group and not about a row: Key is the group's.
	Replaces bool
	// Links say which identity follows which, on a table with chains.
	Links []Link
}

// Link says that identity New took the place of Old.
type Link struct{ Old, New string }

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
	// Seen is the greatest version of all writes of the row: its existence.
	// Written tells whether there is any, for tables without versions too.
	Seen    Version
	Written bool
	// Deleted is the greatest version of the row's deletes, "" if there is none,
	// and DeletedAt the time that this delete gives.
	Deleted   Version
	DeletedAt Value
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
		Key: c.Key, Occupant: occupant, IfMissing: c.IfMissing,
		Scopes: make([]Version, len(t.scopes)), Cells: make([]Cell, len(t.Columns)),
	}
	if c.Delete {
		r.Deleted, r.DeletedAt = c.Version, c.DeletedAt
		return r
	}
	r.Seen, r.Written = c.Version, true
	for i, cell := range c.Cells {
		if !cell.Set || !has(i) {
			continue
		}
		switch t.Columns[i].Rule {
		case Latest:
			r.Scopes[t.scopeOf[i]] = c.Version
		case First:
			cell.Version = c.Version
		case Touch, Chain, Flag:
			continue
		case Sum, Count:
			if cell = counted(c, &t.Columns[i], cell); !cell.Set {
				continue
			}
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
		Seen: max(a.Seen, b.Seen), Written: a.Written || b.Written, Scopes: make([]Version, len(a.Scopes)), Cells: make([]Cell, len(a.Cells)),
	}
	r.Deleted, r.DeletedAt = joinDeletes(a, b)
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
	case Sum, Count:
		return joinLedgers(x, y)
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
	sets  map[Key]Set
	links Links
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
	for _, l := range c.Links {
		if f.links == nil {
			f.links = Links{}
		}
		f.links[l] = true
	}
	if c.Replaces {
		if f.sets == nil {
			f.sets = map[Key]Set{}
		}
		f.sets[c.Key] = JoinSets(Set{Group: c.Key, Version: c.Version, At: c.DeletedAt}, f.sets[c.Key])
		return
	}
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

// Batch returns all that was folded.
func (f *Folder) Batch() Batch {
	b := Batch{Rows: f.Rows()}
	for _, k := range slices.Sorted(maps.Keys(f.sets)) {
		b.Sets = append(b.Sets, f.sets[k])
	}
	b.Links = slices.SortedFunc(maps.Keys(f.links), func(x, y Link) int {
		return cmp.Or(strings.Compare(x.Old, y.Old), strings.Compare(x.New, y.New))
	})
	return b
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

// Newer tells whether occupant a holds a row rather than b: on a chain the one
// that no other has followed, then the greater since, then the greater id.
// chains may be nil.
func Newer(a, b *Occupant, chains *Chains) bool {
	if chains != nil {
		if x, y := chains.Succeeded(a.ID), chains.Succeeded(b.ID); x != y {
			return y
		}
	}
	if a.Since != b.Since {
		return a.Since > b.Since
	}
	return a.ID > b.ID
}

// Project gives the row that shows for one key, from the records of all its
// occupants and what belongs to the row itself (the one without an occupant, if
// there is one). The newest occupant's record is taken whole, and it alone says
// whether the row exists: if it is deleted, or known by nothing but a delete,
// there is no falling back to the one before it. chains may be nil on a table
// without chains.
func Project(t *Table, parts []*Row, chains *Chains) *Row {
	var own, newest *Row
	for _, p := range parts {
		switch {
		case p.Occupant == nil:
			own = p
		case newest == nil || Newer(p.Occupant, newest.Occupant, chains):
			newest = p
		}
	}
	if newest == nil {
		return own
	}
	r := &Row{
		Key: newest.Key, Occupant: newest.Occupant, Seen: newest.Seen, Written: newest.Written, IfMissing: newest.IfMissing,
		Deleted: newest.Deleted, DeletedAt: newest.DeletedAt,
		Scopes: slices.Clone(newest.Scopes), Cells: slices.Clone(newest.Cells),
	}
	if own == nil {
		return r
	}
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
