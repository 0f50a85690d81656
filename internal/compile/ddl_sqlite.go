package compile

import (
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

var sqliteTypes = map[merge.TypeKind]string{
	merge.Text: "text", merge.Bool: "integer", merge.Int: "integer", merge.Numeric: "text", merge.Float: "real",
	merge.Timestamp: "text", merge.Date: "text", merge.UUID: "text", merge.JSON: "text", merge.Bytes: "blob", merge.TextArray: "text",
}

func (sqlite) column(name string, t merge.Type) column {
	typ := sqliteTypes[t.Kind]
	c := column{name: name, ddl: typ, live: sink.LiveColumn{Name: name, Type: typ, Base: Affinity(typ)}}
	if c.live.Base == affinityInteger {
		c.live.Bits = 64
	}
	return c
}

func (d sqlite) bytesColumn(name string) column { return d.column(name, versionType) }

func (sqlite) keyed(c column, _ int) column { return notNull(c) }

func (sqlite) copied(c column, l *sink.LiveColumn) column {
	c.live.Type, c.live.Base, c.live.Bits = l.Type, l.Base, l.Bits
	c.ddl = l.Type
	return c
}

func (d sqlite) entry(name string, t merge.Type, _ bool) column { return d.column(name, t) }

func (sqlite) createTable(table string, lines []string, ifMissing bool) string {
	return createTable(table, lines, ifMissing)
}

func (d sqlite) addColumn(table string, c column) string {
	return fmt.Sprintf("alter table %s add column %s %s", table, d.quote(c.name), c.ddl)
}

func (d sqlite) uniqueIndex(name string, key []string) string {
	parts := SplitTable(name)
	index := d.quote(strings.Join(append(parts, key...), "_") + "_key")
	return fmt.Sprintf("create unique index %s on %s (%s)", index, d.quote(parts[len(parts)-1]), quoted(d, key))
}

// index names the schema before the index, which stands where its table does.
func (d sqlite) index(name, table string, columns []string) string {
	parts := SplitTable(table)
	last := parts[len(parts)-1]
	index := strings.TrimSuffix(quoteTable(d, table), d.quote(last)) + d.quote(last+"_"+name)
	return fmt.Sprintf("create index if not exists %s on %s (%s)", index, d.quote(last), quoted(d, columns))
}

func (d sqlite) besideColumns() []column {
	return []column{notNull(d.bytesColumn("table_name")), notNull(d.bytesColumn("key")), d.column("versions", merge.Type{Kind: merge.JSON})}
}

func (sqlite) primary() string { return "primary key" }

func (sqlite) unjudged(*sink.LiveColumn) string { return "" }

func (sqlite) keyDoubt(*sink.LiveColumn) string { return "" }

func (sqlite) keepsVersion(c *sink.LiveColumn) bool { return Affinity(c.Type) == affinityText }

func (sqlite) longestName() int { return 0 }

func (d sqlite) allowNull(table string, c *sink.LiveColumn) string {
	return fmt.Sprintf("alter table %s alter column %s drop not null", quoteTable(d, table), d.quote(c.Name))
}

func (d sqlite) dropDefault(table string, c *sink.LiveColumn) string {
	return fmt.Sprintf("alter table %s alter column %s drop default", quoteTable(d, table), d.quote(c.Name))
}

func (sqlite) manner() string { return "Each statement is for one row." }

func (sqlite) mark(n int) string { return fmt.Sprintf("?%d", n) }

func (sqlite) locks(*sink.Table) string { return "\nbegin immediate" }
