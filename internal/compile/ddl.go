package compile

import (
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// column is a column as Hookfold creates it.
type column struct {
	name, ddl string // ddl is the type and what stands behind it
	live      sink.LiveColumn
}

// columns are those that the table of the config has, keys first.
func columns(d Dialect, t *sink.Table) []column {
	x := d.impl()
	var out []column
	parts := len(t.Key)
	if t.Occupied {
		parts++ // of the key of their records
	}
	for _, k := range t.Key {
		out = append(out, x.keyed(x.column(k.Name, k.Type), parts))
	}
	for i := range t.Columns {
		out = append(out, x.column(t.Columns[i].Name, t.Columns[i].Type))
	}
	return append(out, versionColumns(d, t)...)
}

// versionColumns are those that Hookfold adds to the table of the config.
func versionColumns(d Dialect, t *sink.Table) []column {
	x := d.impl()
	var out []column
	if Beside(t) {
		return nil
	}
	for _, s := range t.Scopes() {
		out = append(out, x.bytesColumn(ScopeColumn(s)))
	}
	for _, c := range t.Columns {
		if c.Rule == merge.First {
			out = append(out, x.bytesColumn(FirstColumn(c.Name)))
		}
	}
	if t.Occupied {
		out = append(out, x.bytesColumn(SinceColumn), x.bytesColumn(OccupantColumn))
	}
	if t.OnDelete != merge.DeleteNone {
		out = append(out, x.bytesColumn(SeenColumn))
	}
	if marks(t) {
		out = append(out, x.bytesColumn(DeleteColumn))
	}
	if t.OnDelete == merge.DeleteMark {
		out = append(out, x.column(DeletedAtColumn, timeType))
	}
	return out
}

// recordColumns are those of the table of the occupants' records. Their types
// are those of the live table where it has them.
func recordColumns(d Dialect, t *sink.Table, live *sink.Live) []column {
	x := d.impl()
	o := occupants(d, t)
	var out []column
	for _, f := range o.fields() {
		var c column
		switch f.Kind {
		case KeyParam, CellParam:
			c = x.column(f.Name, f.Type)
			if l := live.Column(f.Name); l != nil {
				c = x.copied(c, l)
			}
		case DeleteTimeParam:
			c = x.column(f.Name, timeType)
		default:
			c = x.bytesColumn(f.Name)
		}
		if f.Kind == KeyParam || f.Kind == IDParam || f.Kind == PartParam {
			c = x.keyed(c, len(o.key))
		}
		out = append(out, c)
	}
	return out
}

// Ideal is the live schema of a table as Hookfold creates it, and of the table
// of its occupants' records (nil without occupants).
func Ideal(d Dialect, t *sink.Table) (live, records *sink.Live) {
	live = idealOf(d, columns(d, t), keyOf(t))
	if t.Occupied {
		records = idealOf(d, recordColumns(d, t, &sink.Live{}), append(keyOf(t), OccupantColumn))
	}
	return live, records
}

func idealOf(d Dialect, columns []column, key []string) *sink.Live {
	l := &sink.Live{Exists: true, Uniques: []sink.Unique{{Name: d.impl().primary(), Columns: key}}}
	for _, c := range columns {
		l.Columns = append(l.Columns, c.live)
	}
	return l
}

func keyOf(t *sink.Table) []string {
	var key []string
	for _, k := range t.Key {
		key = append(key, k.Name)
	}
	return key
}

// Schemas are the live schemas that concern one table. Tables that are not
// there, or not needed, have Exists false.
type Schemas struct {
	Table, Records, Versions *sink.Live
	// Sides are the tables of SideTables, by name.
	Sides map[string]*sink.Live
}

// Look asks for all live schemas that concern a table.
func Look(d Dialect, t *sink.Table, inspect func(table string) (*sink.Live, error)) (Schemas, error) {
	none := &sink.Live{}
	have := Schemas{Table: none, Records: none, Versions: none, Sides: map[string]*sink.Live{}}
	look := func(name string, into **sink.Live) error {
		live, err := inspect(name)
		if err == nil {
			*into = live
		}
		return err
	}
	if err := look(t.Name, &have.Table); err != nil {
		return have, err
	}
	if t.Occupied {
		if err := look(OccupantsTable(t.Name), &have.Records); err != nil {
			return have, err
		}
	}
	if Beside(t) {
		if err := look(VersionsTable(t.Name), &have.Versions); err != nil {
			return have, err
		}
	}
	for _, name := range SideTables(d, t) {
		live := none
		if err := look(name, &live); err != nil {
			return have, err
		}
		have.Sides[name] = live
	}
	return have, nil
}

// Migrate gives the statements that bring live schemas in line with a table:
// what is missing is added, nothing is changed or removed.
func Migrate(d Dialect, t *sink.Table, have Schemas) []string {
	out := bring(d, t.Name, columns(d, t), keyOf(t), have.Table)
	if t.Occupied {
		out = append(out, bring(d, OccupantsTable(t.Name), recordColumns(d, t, have.Table), append(keyOf(t), OccupantColumn), have.Records)...)
	}
	x := d.impl()
	if Beside(t) && !have.Versions.Exists {
		var lines []string
		for _, c := range x.besideColumns() {
			lines = append(lines, x.quote(c.name)+" "+c.ddl)
		}
		lines = append(lines, "primary key ("+quoted(x, []string{"table_name", "key"})+")")
		out = append(out, x.createTable(quoteTable(x, VersionsTable(t.Name)), lines, true))
	}
	for _, s := range sides(d, t) {
		live := have.Sides[s.name]
		if live == nil || !live.Exists {
			out = append(out, s.ddl()...)
		}
	}
	if t.Guard == sink.ByTrigger {
		out = append(out, bringGuard(d, t, have)...)
	}
	return out
}

func bring(d Dialect, name string, columns []column, key []string, live *sink.Live) []string {
	x := d.impl()
	table := quoteTable(x, name)
	if !live.Exists {
		var lines []string
		for _, c := range columns {
			lines = append(lines, x.quote(c.name)+" "+c.ddl)
		}
		lines = append(lines, "primary key ("+quoted(x, key)+")")
		return []string{x.createTable(table, lines, false)}
	}
	var out []string
	for _, c := range columns {
		if live.Column(c.name) == nil {
			// A column of the key is added as it must be: the database refuses it
			// where rows are there.
			out = append(out, x.addColumn(table, c))
		}
	}
	if !live.HasUnique(key) {
		out = append(out, UniqueIndex(d, name, key))
	}
	return out
}

// UniqueIndex gives the statement that makes a table's key unique.
func UniqueIndex(d Dialect, name string, key []string) string { return d.impl().uniqueIndex(name, key) }

// createTable is how most dialects make a table.
func createTable(table string, lines []string, ifMissing bool) string {
	if ifMissing {
		table = "if not exists " + table
	}
	return "create table " + table + " (\n    " + strings.Join(lines, ",\n    ") + "\n)"
}

// notNull makes a column refuse NULL.
func notNull(c column) column {
	c.ddl += " not null"
	c.live.NotNull = true
	return c
}
