package compile

import (
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

var mysqlTypes = map[merge.TypeKind]string{
	merge.Text: "longtext", merge.Bool: "tinyint(1)", merge.Int: "bigint", merge.Numeric: "decimal(65,30)", merge.Float: "double",
	merge.Timestamp: "datetime(6)", merge.Date: "date", merge.UUID: "char(36)", merge.JSON: "json", merge.Bytes: "longblob", merge.TextArray: "json",
}

// What MySQL keeps: the most digits of a decimal, and behind its point, the most
// characters of a varchar that leaves room for others in a row, and the most
// characters that all columns of an index may have.
const (
	mysqlDigits     = 65
	mysqlScale      = 30
	mysqlVarchar    = 1000
	mysqlKeyVarchar = 760
)

const (
	asciiBytes = " character set ascii collate ascii_bin"
	textBytes  = " character set utf8mb4 collate utf8mb4_bin"
)

func (d mysql) column(name string, t merge.Type) column {
	typ, length, precision, scale := mysqlTypes[t.Kind], 0, 0, 0
	switch {
	case t.Kind == merge.Text && t.Length > 0 && t.Length <= mysqlVarchar:
		typ, length = fmt.Sprintf("varchar(%d)", t.Length), t.Length
	case t.Kind == merge.Numeric && (t.Precision > mysqlDigits || t.Scale > mysqlScale):
		typ = "longtext" // no decimal has so many digits
	case t.Kind == merge.Numeric && t.Precision > 0:
		typ, precision, scale = fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale), t.Precision, t.Scale
	case t.Kind == merge.Numeric:
		precision, scale = mysqlDigits, mysqlScale
	case t.Kind == merge.UUID:
		return ascii(name, typ, 36)
	}
	base, _, _ := strings.Cut(typ, "(")
	c := column{name: name, ddl: typ, live: sink.LiveColumn{Name: name, Type: typ, Base: base, Length: length, Precision: precision, Scale: scale}}
	switch {
	case t.Kind == merge.Int:
		c.live.Bits = 64
	case t.Kind == merge.Bool:
		c.live.Bits = 8
	case t.Kind == merge.Timestamp:
		c.live.Scale = 6
	case isMySQLText(&c.live):
		c.ddl += " character set utf8mb4"
		c.live.Charset = "utf8mb4"
	}
	return c
}

func ascii(name, typ string, length int) column {
	base, _, _ := strings.Cut(typ, "(")
	return column{name: name, ddl: typ + asciiBytes, live: sink.LiveColumn{Name: name, Type: typ, Base: base, Length: length, Charset: "ascii", CollatedBy: "ascii_bin"}}
}

// bytesColumn is ASCII for a version, and any text for an identity.
func (d mysql) bytesColumn(name string) column {
	if name == OccupantColumn {
		return text255(name, 255)
	}
	return ascii(name, "varchar(255)", 255)
}

func text255(name string, n int) column {
	typ := fmt.Sprintf("varchar(%d)", n)
	return column{name: name, ddl: typ + textBytes, live: sink.LiveColumn{Name: name, Type: typ, Base: "varchar", Length: n, Charset: "utf8mb4", CollatedBy: "utf8mb4_bin", Pads: true}}
}

// keyed makes a text one that an index takes whole and that compares bytes.
func (d mysql) keyed(c column, parts int) column {
	switch {
	case c.live.Base == "longtext":
		c = text255(c.name, min(255, mysqlKeyVarchar/parts))
	case c.name == OccupantColumn:
		c = text255(c.name, min(255, mysqlKeyVarchar/parts))
	case c.live.Base == "longblob":
		n := min(255, mysqlKeyVarchar/parts)
		c.live.Type, c.live.Base, c.live.MaxBytes = fmt.Sprintf("varbinary(%d)", n), "varbinary", n
		c.ddl = c.live.Type
	case c.live.Charset == "utf8mb4" && c.live.CollatedBy == "":
		c = text255(c.name, c.live.Length)
	}
	return notNull(c)
}

func (mysql) copied(c column, l *sink.LiveColumn) column {
	name := c.live.Name
	c.live = *l
	c.live.Name, c.live.NotNull, c.live.Default, c.live.Generated = name, false, "", false
	c.ddl = l.Type
	if l.Charset != "" {
		c.ddl += " character set " + l.Charset
	}
	if l.CollatedBy != "" {
		c.ddl += " collate " + l.CollatedBy
	}
	if l.Base == "timestamp" {
		c.ddl += " null" // an old server makes it NOT NULL else
	}
	return c
}

// entry keeps texts of keys as bytes, which no collation changes.
func (d mysql) entry(name string, t merge.Type, key bool) column {
	switch {
	case t.Kind == merge.Numeric:
		return ascii(name, "longtext", 0)
	case t.Kind != merge.Text:
		return d.column(name, t)
	case !key && name != "root":
		return d.bytesColumn(name)
	}
	n := 1200
	if name == "table_name" || name == "column_name" {
		n = 256
	}
	typ := fmt.Sprintf("varbinary(%d)", n)
	return column{name: name, ddl: typ, live: sink.LiveColumn{Name: name, Type: typ, Base: "varbinary", MaxBytes: n}}
}

func (mysql) createTable(table string, lines []string, ifMissing bool) string {
	return createTable(table, lines, ifMissing) + " engine = InnoDB default character set utf8mb4"
}

func (d mysql) addColumn(table string, c column) string {
	return fmt.Sprintf("alter table %s add column %s %s", table, d.quote(c.name), c.ddl)
}

func (d mysql) uniqueIndex(name string, key []string) string {
	return fmt.Sprintf("alter table %s add unique (%s)", quoteTable(d, name), quoted(d, key))
}

// index is made with its table: there is no CREATE INDEX IF NOT EXISTS on MySQL.
func (mysql) index(string, string, []string) string { return "" }

func (d mysql) besideColumns() []column {
	return []column{notNull(d.entry("table_name", versionType, true)), notNull(d.entry("key", versionType, true)), d.column("versions", merge.Type{Kind: merge.Text})}
}

func (mysql) primary() string { return "PRIMARY" }

// keyDoubt has nothing to say: a collation for which keys are one is refused, and
// a key that ends in a space, which none of the others sees, is dead.
func (mysql) keyDoubt(*sink.LiveColumn) string { return "" }

func (mysql) keepsVersion(c *sink.LiveColumn) bool {
	return isMySQLText(c) && (c.Length == 0 || c.Length >= 255)
}

// longestName is in characters, which are no more than bytes.
func (mysql) longestName() int { return 64 }

func (d mysql) allowNull(table string, c *sink.LiveColumn) string {
	return fmt.Sprintf("alter table %s modify column %s %s null", quoteTable(d, table), d.quote(c.Name), d.copied(column{live: sink.LiveColumn{Name: c.Name}}, c).ddl)
}

func (d mysql) dropDefault(table string, c *sink.LiveColumn) string {
	return fmt.Sprintf("alter table %s alter column %s drop default", quoteTable(d, table), d.quote(c.Name))
}

func (mysql) manner() string {
	return "Each statement is for a batch, and has one parameter: a JSON list with a list per row, in it a text, or null, for each of what is named below as v.p1, v.p2, ….\n" +
		"-- A text is what the database reads as such a value: 1 and 0 for bool, 2006-01-02 15:04:05.000000 in UTC for a timestamp, hexadecimal digits for bytes.\n" +
		"-- No key may come twice in a batch; rows are sorted by their key. The session is READ COMMITTED, in utf8mb4, has time_zone '+00:00' and a strict sql_mode.\n" +
		"-- CREATE and ALTER TABLE commit what the session has done before them."
}

func (mysql) mark(n int) string { return fmt.Sprintf("v.p%d", n) }

func (d mysql) locks(t *sink.Table) string {
	what := "the keys'"
	switch {
	case Linked(t.Table):
		what = "the table's"
	case t.Group != nil:
		what = "the groups'"
	}
	return fmt.Sprintf(" %s numbers, ascending; their rows are locked until the transaction ends.\n%s", what, LockRows(LocksTable(t.Name)))
}
