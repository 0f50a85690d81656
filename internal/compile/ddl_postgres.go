package compile

import (
	"fmt"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

var postgresTypes = map[merge.TypeKind]string{
	merge.Text: "text", merge.Bool: "boolean", merge.Int: "bigint", merge.Numeric: "numeric", merge.Float: "double precision",
	merge.Timestamp: "timestamp with time zone", merge.Date: "date", merge.UUID: "uuid", merge.JSON: "jsonb", merge.Bytes: "bytea", merge.TextArray: "text[]",
}

func (postgres) column(name string, t merge.Type) column {
	typ := postgresTypes[t.Kind]
	switch {
	case t.Kind == merge.Text && t.Length > 0:
		typ = fmt.Sprintf("character varying(%d)", t.Length)
	case t.Kind == merge.Numeric && t.Precision > 0:
		typ = fmt.Sprintf("numeric(%d,%d)", t.Precision, t.Scale)
	}
	c := column{name: name, ddl: typ, live: sink.LiveColumn{Name: name, Type: typ, Base: typ, Length: t.Length, Precision: t.Precision, Scale: t.Scale}}
	if t.Kind == merge.Int {
		c.live.Bits = 64
	}
	return c
}

func (d postgres) bytesColumn(name string) column {
	c := d.column(name, versionType)
	c.ddl += ` collate "C"`
	return c
}

func (postgres) keyed(c column, _ int) column {
	if isText(&c.live) && c.ddl == c.live.Type {
		c.ddl += ` collate "C"`
	}
	return notNull(c)
}

func (postgres) copied(c column, l *sink.LiveColumn) column {
	c.live.Type, c.live.Base = l.Type, l.Base
	c.live.Length, c.live.Precision, c.live.Scale, c.live.Bits, c.live.Labels = l.Length, l.Precision, l.Scale, l.Bits, l.Labels
	if l.Base != "" {
		c.live.Type = l.Base // a domain may refuse NULL
	}
	c.ddl = c.live.Type
	return c
}

func (d postgres) entry(name string, t merge.Type, _ bool) column {
	if t.Kind == merge.Text {
		return d.bytesColumn(name)
	}
	return d.column(name, t)
}

func (postgres) createTable(table string, lines []string, ifMissing bool) string {
	return createTable(table, lines, ifMissing)
}

func (d postgres) addColumn(table string, c column) string {
	return fmt.Sprintf("alter table %s add column %s %s", table, d.quote(c.name), c.ddl)
}

func (d postgres) uniqueIndex(name string, key []string) string {
	return fmt.Sprintf("create unique index on %s (%s)", quoteTable(d, name), quoted(d, key))
}

func (d postgres) index(name, table string, columns []string) string {
	parts := SplitTable(table)
	return fmt.Sprintf("create index if not exists %s on %s (%s)", d.quote(parts[len(parts)-1]+"_"+name), quoteTable(d, table), quoted(d, columns))
}

func (d postgres) besideColumns() []column {
	return []column{notNull(d.bytesColumn("table_name")), notNull(d.bytesColumn("key")), d.column("versions", merge.Type{Kind: merge.JSON})}
}

func (postgres) primary() string { return "primary key" }

func (postgres) keyDoubt(c *sink.LiveColumn) string {
	if castType(c) == "bpchar" {
		return "keys that differ only in spaces at their end are one"
	}
	return ""
}

func (postgres) keepsVersion(c *sink.LiveColumn) bool {
	return isText(c) && (c.Length == 0 || c.Length >= 255)
}

// longestName is what PostgreSQL keeps of a name.
func (postgres) longestName() int { return 63 }

func (d postgres) allowNull(table string, c *sink.LiveColumn) string {
	return fmt.Sprintf("alter table %s alter column %s drop not null", quoteTable(d, table), d.quote(c.Name))
}

func (d postgres) dropDefault(table string, c *sink.LiveColumn) string {
	return fmt.Sprintf("alter table %s alter column %s drop default", quoteTable(d, table), d.quote(c.Name))
}

func (postgres) manner() string {
	return "Each statement is for a batch: a parameter is an array with one element per row; v.p1 is an element of $1. No key may come twice in a batch."
}

func (postgres) mark(n int) string { return fmt.Sprintf("$%d", n) }

func (postgres) locks(t *sink.Table) string {
	what := "the keys'"
	switch {
	case Linked(t.Table):
		what = "the table's"
	case t.Group != nil:
		what = "the groups'"
	}
	return fmt.Sprintf(" %s numbers, ascending.\n%s", what, LockSQL)
}
