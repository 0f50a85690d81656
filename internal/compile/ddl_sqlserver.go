package compile

import (
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

var sqlserverTypes = map[merge.TypeKind]string{
	merge.Text: "nvarchar(max)", merge.Bool: "bit", merge.Int: "bigint", merge.Numeric: "decimal(38,18)", merge.Float: "float",
	merge.Timestamp: "datetimeoffset(6)", merge.Date: "date", merge.UUID: "uniqueidentifier", merge.JSON: "nvarchar(max)", merge.Bytes: "varbinary(max)", merge.TextArray: "nvarchar(max)",
}

const (
	// mostUnits and mostBytes are what nvarchar(n) and a key of a table take at
	// most, mostDigits what a decimal does.
	mostUnits  = 4000
	mostBytes  = 900
	mostDigits = 38
	// versionLength is enough for a version of seven elements.
	versionLength = 255
	// textBinary is the collation of columns that Hookfold makes to be compared as
	// they are.
	textBinary = "Latin1_General_BIN2"
)

func (sqlserver) column(name string, t merge.Type) column {
	c := column{name: name, live: sink.LiveColumn{Name: name, Type: sqlserverTypes[t.Kind]}}
	l := &c.live
	switch t.Kind {
	case merge.Text:
		l.Units = sink.UTF16
		if t.Length > 0 && t.Length <= mostUnits {
			l.Type, l.Length = fmt.Sprintf("nvarchar(%d)", t.Length), t.Length
		}
	case merge.JSON, merge.TextArray:
		l.Units = sink.UTF16
	case merge.Numeric:
		l.Precision, l.Scale = mostDigits, 18
		if t.Precision > 0 {
			l.Precision, l.Scale = min(t.Precision, mostDigits), min(t.Scale, mostDigits)
		}
		l.Type = fmt.Sprintf("decimal(%d,%d)", l.Precision, l.Scale)
	case merge.Int:
		l.Bits = 64
	case merge.Timestamp:
		l.Scale = 6
	}
	c.ddl, l.Base = l.Type, baseTSQL(l)
	return c
}

// bytesColumn holds an identity, which may be any text, or a version.
func (d sqlserver) bytesColumn(name string) column {
	return d.binaryText(name, mostBytes/2)
}

// binaryText is a text of so many units at most that is compared as it is.
func (sqlserver) binaryText(name string, units int) column {
	typ := fmt.Sprintf("nvarchar(%d)", units)
	return column{name: name, ddl: typ + binary,
		live: sink.LiveColumn{Name: name, Type: typ, Base: "nvarchar", Length: units, Units: sink.UTF16, Collate: textBinary, Pads: true}}
}

// keyed gives a text the most that an index takes. Of a key of several parts the
// database refuses those that are too long together.
func (d sqlserver) keyed(c column, _ int) column {
	switch classTSQL(&c.live) {
	case "text":
		if c.live.CodePage != 0 {
			c.ddl = c.live.Type + " collate " + c.live.Collate
			c.live.Pads = true
			break
		}
		units := mostBytes / 2
		if n := c.live.Length; n > 0 && n < units {
			units = n
		}
		c = d.binaryText(c.name, units)
	case "bytes":
		c.live.Type, c.live.Base = fmt.Sprintf("varbinary(%d)", mostBytes), "varbinary"
		c.ddl = c.live.Type
	}
	return notNull(c)
}

// copied gives a column of the records the type of a live one.
func (sqlserver) copied(c column, l *sink.LiveColumn) column {
	name := c.name
	c.live = *l
	c.live.Name, c.live.NotNull, c.live.Default, c.live.Generated = name, false, "", false
	c.ddl = l.Type
	if l.Collate != "" {
		c.ddl += " collate " + l.Collate
	}
	return c
}

// entry is a column of a table beside. The keys of these tables are nonclustered,
// so that they may have 1,700 bytes together.
func (d sqlserver) entry(name string, t merge.Type, key bool) column {
	if t.Kind != merge.Text {
		return d.column(name, t)
	}
	units := versionLength
	switch {
	case name == "table_name" || name == "column_name":
		units = 128
	case key || name == "root":
		units = 500
	}
	return d.binaryText(name, units)
}

func (sqlserver) createTable(table string, lines []string, ifMissing bool) string {
	sql := "create table " + table + " (\n    " + strings.Join(lines, ",\n    ") + "\n)"
	if ifMissing {
		sql = strings.Replace(sql, "primary key (", "primary key nonclustered (", 1)
		return fmt.Sprintf("if object_id(%s, N'U') is null\n%s", "N"+Literal(table), sql)
	}
	return sql
}

func (d sqlserver) addColumn(table string, c column) string {
	return fmt.Sprintf("alter table %s add %s %s", table, d.quote(c.name), c.ddl)
}

func (d sqlserver) uniqueIndex(name string, key []string) string {
	parts := SplitTable(name)
	return fmt.Sprintf("create unique index %s on %s (%s)", d.quote(parts[len(parts)-1]+"_hookfold_key"), quoteTable(d, name), quoted(d, key))
}

func (d sqlserver) index(name, table string, columns []string) string {
	parts := SplitTable(table)
	index := parts[len(parts)-1] + "_" + name
	return fmt.Sprintf("if not exists (select 1 from sys.indexes where name = N%s and object_id = object_id(N%s))\ncreate index %s on %s (%s)",
		Literal(index), Literal(quoteTable(d, table)), d.quote(index), quoteTable(d, table), quoted(d, columns))
}

func (d sqlserver) besideColumns() []column {
	return []column{notNull(d.binaryText("table_name", 256)), notNull(d.binaryText("key", mostBytes/2)), d.column("versions", merge.Type{Kind: merge.JSON})}
}

func (sqlserver) primary() string { return "primary key" }

func (sqlserver) longestName() int { return 128 }

func (d sqlserver) allowNull(table string, c *sink.LiveColumn) string {
	collate := ""
	if c.Collate != "" {
		collate = " collate " + c.Collate
	}
	return fmt.Sprintf("alter table %s alter column %s %s%s null", quoteTable(d, table), d.quote(c.Name), c.Type, collate)
}

func (d sqlserver) dropDefault(table string, c *sink.LiveColumn) string {
	name := "its constraint"
	if c.DefaultName != "" {
		name = d.quote(c.DefaultName)
	}
	return fmt.Sprintf("alter table %s drop constraint %s", quoteTable(d, table), name)
}

func (sqlserver) keepsVersion(c *sink.LiveColumn) bool {
	return isTextTSQL(c) && !fixedTSQL(c) && (c.Length == 0 || c.Length >= 100)
}

func (sqlserver) manner() string {
	return "Each statement is for a batch: @rows is a JSON list with an object per row, with the number n of the row and a text, or null, for each of p1, p2, …; v.p1 is p1. No key may come twice in a batch. @table is the name of the table."
}

func (sqlserver) mark(n int) string { return fmt.Sprintf("p%d", n) }

func (sqlserver) locks(t *sink.Table) string {
	what := "the keys'"
	switch {
	case Linked(t.Table):
		what = "the table's"
	case t.Group != nil:
		what = "the groups'"
	}
	return fmt.Sprintf(" %s numbers, ascending, each by:\n%s", what, ApplockSQL("0", "1000"))
}

// ApplockSQL takes one of SQL Server's locks until the transaction ends: its
// number, and the milliseconds to wait for it.
func ApplockSQL(number, wait string) string {
	return fmt.Sprintf("exec @got = sp_getapplock @Resource = N'hookfold %s', @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = %s", number, wait)
}
