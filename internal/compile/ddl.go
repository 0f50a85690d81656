package compile

import (
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// column is a column as Hookfold creates it.
type column struct {
	name, ddl string // ddl is the type and what stands behind it
	live      sink.LiveColumn
}

// typeName gives the type of a column in a table that Hookfold creates.
func typeName(d Dialect, t merge.Type) string {
	if d == SQLite {
		return sqliteTypes[t.Kind]
	}
	switch {
	case t.Kind == merge.Text && t.Length > 0:
		return fmt.Sprintf("character varying(%d)", t.Length)
	case t.Kind == merge.Numeric && t.Precision > 0:
		return fmt.Sprintf("numeric(%d,%d)", t.Precision, t.Scale)
	}
	return postgresTypes[t.Kind]
}

var postgresTypes = map[merge.TypeKind]string{
	merge.Text: "text", merge.Bool: "boolean", merge.Int: "bigint", merge.Numeric: "numeric", merge.Float: "double precision",
	merge.Timestamp: "timestamp with time zone", merge.Date: "date", merge.UUID: "uuid", merge.JSON: "jsonb", merge.Bytes: "bytea", merge.TextArray: "text[]",
}

var sqliteTypes = map[merge.TypeKind]string{
	merge.Text: "text", merge.Bool: "integer", merge.Int: "integer", merge.Numeric: "text", merge.Float: "real",
	merge.Timestamp: "text", merge.Date: "text", merge.UUID: "text", merge.JSON: "text", merge.Bytes: "blob", merge.TextArray: "text",
}

// newColumn is a column of the config's type.
func newColumn(d Dialect, name string, t merge.Type) column {
	typ := typeName(d, t)
	c := column{name: name, ddl: typ, live: sink.LiveColumn{Name: name, Type: typ, Base: typ, Length: t.Length, Precision: t.Precision, Scale: t.Scale}}
	if d == SQLite {
		c.live.Base, c.live.Length, c.live.Precision, c.live.Scale = Affinity(typ), 0, 0, 0
	}
	if t.Kind == merge.Int || d == SQLite && Affinity(typ) == affinityInteger {
		c.live.Bits = 64
	}
	return c
}

// bytesColumn is a text column that is compared as bytes: a version, or an
// identity.
func bytesColumn(d Dialect, name string) column {
	c := newColumn(d, name, versionType)
	if d == Postgres {
		c.ddl += ` collate "C"`
	}
	return c
}

// columns are those that the table of the config has, keys first.
func columns(d Dialect, t *sink.Table) []column {
	var out []column
	for _, k := range t.Key {
		c := newColumn(d, k.Name, k.Type)
		if d == Postgres && isText(&c.live) {
			c.ddl += ` collate "C"`
		}
		c.ddl += " not null"
		c.live.NotNull = true
		out = append(out, c)
	}
	for i := range t.Columns {
		out = append(out, newColumn(d, t.Columns[i].Name, t.Columns[i].Type))
	}
	return append(out, versionColumns(d, t)...)
}

// versionColumns are those that Hookfold adds to the table of the config.
func versionColumns(d Dialect, t *sink.Table) []column {
	var out []column
	if Beside(t) {
		return nil
	}
	for _, s := range t.Scopes() {
		out = append(out, bytesColumn(d, ScopeColumn(s)))
	}
	for _, c := range t.Columns {
		if c.Rule == merge.First {
			out = append(out, bytesColumn(d, FirstColumn(c.Name)))
		}
	}
	if t.Occupied {
		out = append(out, bytesColumn(d, SinceColumn), bytesColumn(d, OccupantColumn))
	}
	if t.OnDelete != merge.DeleteNone {
		out = append(out, bytesColumn(d, SeenColumn))
	}
	if marks(t) {
		out = append(out, bytesColumn(d, DeleteColumn))
	}
	if t.OnDelete == merge.DeleteMark {
		out = append(out, newColumn(d, DeletedAtColumn, timeType))
	}
	return out
}

// recordColumns are those of the table of the occupants' records. Their types
// are those of the live table where it has them.
func recordColumns(d Dialect, t *sink.Table, live *sink.Live) []column {
	o := occupants(t)
	var out []column
	for _, f := range o.fields() {
		var c column
		switch f.Kind {
		case KeyParam, CellParam:
			c = newColumn(d, f.Name, f.Type)
			if l := live.Column(f.Name); l != nil {
				c.live.Type, c.live.Base = l.Type, l.Base
				c.live.Length, c.live.Precision, c.live.Scale, c.live.Bits, c.live.Labels = l.Length, l.Precision, l.Scale, l.Bits, l.Labels
				c.ddl = l.Type
				if d == Postgres && l.Base != "" {
					c.ddl, c.live.Type = l.Base, l.Base // a domain may refuse NULL
				}
			}
			if f.Kind == KeyParam {
				if d == Postgres && isText(&c.live) {
					c.ddl += ` collate "C"`
				}
				c.ddl += " not null"
				c.live.NotNull = true
			}
		case DeleteTimeParam:
			c = newColumn(d, f.Name, timeType)
		case IDParam, PartParam:
			c = bytesColumn(d, f.Name)
			c.ddl += " not null"
			c.live.NotNull = true
		default:
			c = bytesColumn(d, f.Name)
		}
		out = append(out, c)
	}
	return out
}

// Ideal is the live schema of a table as Hookfold creates it, and of the table
// of its occupants' records (nil without occupants).
func Ideal(d Dialect, t *sink.Table) (live, records *sink.Live) {
	live = idealOf(columns(d, t), keyOf(t))
	if t.Occupied {
		records = idealOf(recordColumns(d, t, &sink.Live{}), append(keyOf(t), OccupantColumn))
	}
	return live, records
}

func idealOf(columns []column, key []string) *sink.Live {
	l := &sink.Live{Exists: true, Uniques: []sink.Unique{{Name: "primary key", Columns: key}}}
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
func Look(t *sink.Table, inspect func(table string) (*sink.Live, error)) (Schemas, error) {
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
	for _, name := range SideTables(t) {
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
	if Beside(t) && !have.Versions.Exists {
		out = append(out, versionsDDL(d, t))
	}
	for _, x := range sides(d, t) {
		live := have.Sides[x.name]
		if live == nil || !live.Exists {
			out = append(out, x.ddl()...)
		}
	}
	return out
}

func bring(d Dialect, name string, columns []column, key []string, live *sink.Live) []string {
	table := QuoteTable(name)
	if !live.Exists {
		var lines []string
		for _, c := range columns {
			lines = append(lines, Quote(c.name)+" "+c.ddl)
		}
		lines = append(lines, "primary key ("+quoted(key)+")")
		return []string{"create table " + table + " (\n    " + strings.Join(lines, ",\n    ") + "\n)"}
	}
	var out []string
	for _, c := range columns {
		if live.Column(c.name) == nil {
			// A column of the key is added as it must be: the database refuses it
			// where rows are there.
			out = append(out, fmt.Sprintf("alter table %s add column %s %s", table, Quote(c.name), c.ddl))
		}
	}
	if !live.HasUnique(key) {
		out = append(out, UniqueIndex(d, name, key))
	}
	return out
}

// UniqueIndex gives the statement that makes a table's key unique.
func UniqueIndex(d Dialect, name string, key []string) string {
	if d == SQLite {
		parts := SplitTable(name)
		index := Quote(strings.Join(append(parts, key...), "_") + "_key")
		return fmt.Sprintf("create unique index %s on %s (%s)", index, Quote(parts[len(parts)-1]), quoted(key))
	}
	return fmt.Sprintf("create unique index on %s (%s)", QuoteTable(name), quoted(key))
}

func versionsDDL(d Dialect, t *sink.Table) string {
	collate, versions := ` collate "C"`, "jsonb"
	if d == SQLite {
		collate, versions = "", "text"
	}
	return fmt.Sprintf("create table if not exists %s (\n    table_name text%s not null,\n    key text%[2]s not null,\n    versions %[3]s,\n    primary key (table_name, key)\n)",
		QuoteTable(VersionsTable(t.Name)), collate, versions)
}

func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = Quote(n)
	}
	return strings.Join(out, ", ")
}
