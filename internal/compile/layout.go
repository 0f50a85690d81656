package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// The names of the columns that hold an occupant.
const (
	SinceColumn    = "occupant_since"
	OccupantColumn = "occupant_id"
)

// The names of the columns of tables that know deletes.
const (
	SeenColumn      = "seen_version"
	DeleteColumn    = "delete_version"
	DeletedAtColumn = "deleted_at"
)

// ScopeColumn names the column that holds a scope's version.
func ScopeColumn(scope string) string { return scope + "_version" }

// FirstColumn names the column that holds the version of a first column.
func FirstColumn(column string) string { return column + "__first" }

// ParamKind says what a parameter of a statement takes from a row.
type ParamKind uint8

// What a parameter takes.
const (
	KeyParam        ParamKind = iota // a part of the key
	CellParam                        // a column's value
	ScopeParam                       // the version of a scope
	FirstParam                       // the version of a first column
	SinceParam                       // since when the occupant holds the row
	IDParam                          // the occupant
	StoredScope                      // the stored version of a scope (versions beside)
	StoredFirst                      // the stored version of a first column (versions beside)
	PartParam                        // the occupant of a record, '' for what belongs to the row itself
	SeenParam                        // the greatest version of the row's writes
	DeleteParam                      // the version of the row's delete
	DeletedAtParam                   // the time of the delete, while the row is deleted
	DeleteTimeParam                  // the time of the delete, newer writes or not
)

// Param is one parameter of a statement.
type Param struct {
	Kind ParamKind
	// Index is the place of the key's part, the column or the scope.
	Index int
	// Name is the column's name.
	Name string
	// Type is the column's type in the config; versions are text.
	Type merge.Type
	// Live is the live column, nil for a value without one.
	Live *sink.LiveColumn
}

// Of returns what the parameter takes from a row: its canonical text, and false
// if it is NULL. A row's stored versions are not part of it.
func (p Param) Of(r *merge.Row) (string, bool) {
	switch p.Kind {
	case KeyParam:
		return r.Key.Parts()[p.Index], true
	case CellParam:
		c := r.Cells[p.Index]
		return c.Value.Text(), c.Set && !c.Value.IsNull()
	case ScopeParam:
		v := r.Scopes[p.Index]
		return string(v), v != ""
	case FirstParam:
		c := r.Cells[p.Index]
		return string(c.Version), c.Set && c.Version != ""
	case SinceParam:
		if r.Occupant != nil {
			return string(r.Occupant.Since), r.Occupant.Since != ""
		}
	case IDParam:
		if r.Occupant != nil {
			return r.Occupant.ID, true
		}
	case PartParam:
		if r.Occupant != nil {
			return r.Occupant.ID, true
		}
		return "", true
	case SeenParam:
		return string(r.Seen), r.Seen != ""
	case DeleteParam:
		return string(r.Deleted), r.Deleted != ""
	case DeletedAtParam:
		return r.DeletedAt.Text(), r.Gone() && !r.DeletedAt.IsNull()
	case DeleteTimeParam:
		return r.DeletedAt.Text(), !r.DeletedAt.IsNull()
	}
	return "", false
}

// field is one column of a relation that statements write.
type field struct {
	Param
	rule  merge.Rule // of a CellParam
	rungs []string
	scope int // of a latest column, else -1
	n     int // place among the relation's parameters, from 1
}

// relation is a table that is joined into: the table of the config, or that of
// its occupants.
type relation struct {
	name   string // as the config or this package names it
	key    []field
	values []field // mapped columns
	scopes []field // versions by place in the table's scopes; only those in use
	firsts []field
	since  *field  // of an occupants table
	stored []field // stored versions, as parameters, if versions live beside
	touch  []field
	more   []field // of tables that are not Local: occupants, existence and deletes
	beside bool
}

func (r *relation) fields() []field {
	out := append([]field{}, r.key...)
	out = append(out, r.values...)
	out = append(out, r.scopes...)
	out = append(out, r.firsts...)
	if r.since != nil {
		out = append(out, *r.since)
	}
	return append(out, r.more...)
}

var versionType = merge.Type{Kind: merge.Text}

// layout makes a relation of the columns of t that has takes.
func layout(t *sink.Table, name string, has func(i int) bool) *relation {
	r := &relation{name: name}
	for i, k := range t.Key {
		r.key = append(r.key, field{Param: Param{Kind: KeyParam, Index: i, Name: k.Name, Type: k.Type}, scope: -1})
	}
	used := make([]bool, len(t.Scopes()))
	for i := range t.Columns {
		if !has(i) {
			continue
		}
		c := &t.Columns[i]
		f := field{Param: Param{Kind: CellParam, Index: i, Name: c.Name, Type: c.Type}, rule: c.Rule, rungs: c.Rungs, scope: t.ScopeOf(i)}
		switch c.Rule {
		case merge.Touch:
			r.touch = append(r.touch, f)
			continue
		case merge.Latest:
			used[f.scope] = true
		case merge.First:
			r.firsts = append(r.firsts, field{Param: Param{Kind: FirstParam, Index: i, Name: FirstColumn(c.Name), Type: versionType}, scope: -1})
		}
		r.values = append(r.values, f)
	}
	for s, name := range t.Scopes() {
		if used[s] {
			r.scopes = append(r.scopes, field{Param: Param{Kind: ScopeParam, Index: s, Name: ScopeColumn(name), Type: versionType}, scope: -1})
		}
	}
	return r
}

// number gives every parameter its place.
func (r *relation) number() {
	n := 0
	for _, fields := range [][]field{r.key, r.values, r.scopes, r.firsts} {
		for i := range fields {
			n++
			fields[i].n = n
		}
	}
	if r.since != nil {
		n++
		r.since.n = n
	}
	for i := range r.more {
		n++
		r.more[i].n = n
	}
	for _, f := range append(append([]field{}, r.scopes...), r.firsts...) {
		n++
		f.n = n
		f.Name = storedName(f.Name)
		f.Kind = map[ParamKind]ParamKind{ScopeParam: StoredScope, FirstParam: StoredFirst}[f.Kind]
		r.stored = append(r.stored, f)
	}
}

// storedOf is the stored version that belongs to a version.
func (r *relation) storedOf(f field) field {
	for _, s := range r.stored {
		if s.Name == storedName(f.Name) {
			return s
		}
	}
	return field{}
}

func storedName(name string) string { return "stored_" + name }

// Beside tells whether a table has versions that live beside it.
func Beside(t *sink.Table) bool {
	return t.Versions == sink.Beside && (t.Versioned() || t.Occupied)
}

// own is what belongs to a table's rows themselves: on a table with occupants
// only the columns of scope key.
func own(t *sink.Table) *relation {
	r := layout(t, t.Name, t.OfKey)
	r.beside = Beside(t)
	r.number()
	return r
}

// occupants is the table of the records of a table's occupants.
func occupants(d Dialect, t *sink.Table) *relation {
	if d.holds(t) {
		return heldRecords(t)
	}
	return localRecords(t)
}

// localRecords is the table of the records of a table that its statements join.
func localRecords(t *sink.Table) *relation {
	r := layout(t, OccupantsTable(t.Name), func(i int) bool { return !t.OfKey(i) && t.Columns[i].Rule != merge.Touch })
	r.key = append(r.key, field{Param: Param{Kind: IDParam, Name: OccupantColumn, Type: versionType}, scope: -1})
	r.since = &field{Param: Param{Kind: SinceParam, Name: SinceColumn, Type: versionType}, rule: merge.Max, scope: -1}
	r.number()
	return r
}

// bind looks up the live columns of a relation, and leaves out those that are
// not to be written.
func (r *relation) bind(live *sink.Live) error {
	if !live.Exists {
		return &MissingError{Table: r.name}
	}
	columns := [][]field{r.key, r.values, r.touch, r.more}
	if !r.beside {
		columns = append(columns, r.scopes, r.firsts)
	}
	for _, fields := range columns {
		for i := range fields {
			if err := bindField(&fields[i], r.name, live); err != nil {
				return err
			}
		}
	}
	if r.since != nil {
		return bindField(r.since, r.name, live)
	}
	return nil
}

func bindField(f *field, table string, live *sink.Live) error {
	c := live.Column(f.Name)
	if c == nil {
		return &MissingError{Table: table, Column: f.Name}
	}
	if c.Generated {
		return fmt.Errorf("table %s: column %s is generated by the database and cannot be written", table, f.Name)
	}
	f.Live = c
	return nil
}

// MissingError says that the live schema lacks a table or a column.
type MissingError struct {
	Table, Column string // Column is "" if the table is missing
}

func (e *MissingError) Error() string {
	if e.Column == "" {
		return fmt.Sprintf("there is no table %s", e.Table)
	}
	return fmt.Sprintf("table %s has no column %s", e.Table, e.Column)
}

// Shared names a column, or a version, that two tables of a config both write
// because they are one table of the database; "" if there is none. Each would
// take the other's version for its own.
func Shared(a, b *sink.Table) string {
	if a.Table == b.Table || !strings.EqualFold(QuoteTable(a.Name), QuoteTable(b.Name)) {
		return ""
	}
	theirs := written(b)
	for _, name := range written(a) {
		if slices.Contains(theirs, name) {
			return name
		}
	}
	return ""
}

// written lists the columns and versions that a table of a config writes, but
// for its key.
func written(t *sink.Table) []string {
	var out []string
	for i := range t.Columns {
		out = append(out, t.Columns[i].Name)
	}
	inRow := *t
	inRow.Versions = sink.InRow
	for _, c := range versionColumns(SQLite, &inRow) {
		out = append(out, c.name)
	}
	return out
}
