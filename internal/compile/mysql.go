package compile

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// mysql writes MySQL 8.0.17 and later, and MariaDB 10.6 and later.
//
// A statement is for a batch and has one parameter: a JSON list with a list per
// row, in it a text or null for each parameter. A text is what the database reads
// as a value of the column: 1 and 0 for bool, 2006-01-02 15:04:05.000000 for a
// timestamp, hexadecimal digits for bytes. The session's zone is UTC.
//
// ON DUPLICATE KEY UPDATE assigns one after the other, and knows no condition:
// each assignment decides by itself. It takes any unique index for the key, so a
// table that has others is written by two statements: what is absent is inserted,
// and then all joined by the key. Another row is never written for it. So is a table with a union, since VALUES()
// cannot stand in the subquery that makes one.
type mysql struct {
	// key is the name of the unique index that begins with the key, "" if it is not known.
	key string
	// split says that rows are inserted and joined by statements of their own.
	split bool
}

// over is the dialect for one table as it lives.
func (mysql) over(t *sink.Table, live *sink.Live, key []string) dialect {
	d := mysql{split: slices.ContainsFunc(t.Columns, func(c merge.Column) bool { return c.Rule == merge.Union })}
	for _, u := range live.Uniques {
		if u.Partial || !sameColumns(u.Columns, key) {
			d.split = true
		}
		if n := len(key); d.key == "" && !u.Partial && len(u.Columns) >= n && sameColumns(u.Columns[:n], key) {
			d.key = u.Name
		}
	}
	return d
}

func (mysql) quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// literal means the same whether a backslash escapes or not, and is shown as it is
// written in the source of a trigger: there MySQL leaves out _utf8mb4, and puts a
// question mark for a character of four bytes.
func (mysql) literal(s string) string {
	if strings.Contains(s, `\`) || strings.ContainsFunc(s, func(r rune) bool { return r > 0xffff }) {
		return "convert(x'" + hex.EncodeToString([]byte(s)) + "' using utf8mb4)"
	}
	return Literal(s)
}

func (d mysql) incoming(f field) string {
	if d.split {
		return incoming(d, f)
	}
	return "values(" + d.quote(f.Name) + ")"
}

func (d mysql) resident(table string, f field) string {
	if d.split {
		return at(d, f)
	}
	return table + "." + d.quote(f.Name)
}

func (mysql) sequential() bool { return true }

func (mysql) raw(f field) string { return fmt.Sprintf("v.p%d", f.n) }

func (d mysql) param(f field) string {
	raw := d.raw(f)
	if f.Live == nil {
		return raw
	}
	switch f.Live.Base {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "year":
		if f.Live.Unsigned {
			return "cast(" + raw + " as unsigned)"
		}
		return "cast(" + raw + " as signed)"
	case "decimal":
		return fmt.Sprintf("cast(%s as decimal(%d,%d))", raw, f.Live.Precision, f.Live.Scale)
	case "double":
		return "(" + raw + " + 0e0)"
	case "datetime", "timestamp":
		return "cast(" + raw + " as datetime(6))"
	case "date", "uuid":
		return "cast(" + raw + " as " + f.Live.Base + ")"
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		switch f.Type.Kind {
		case merge.UUID:
			return "unhex(" + mysqlHex("replace("+raw+", '-', '')") + ")"
		case merge.Bytes:
			return "unhex(" + mysqlHex(raw) + ")"
		}
		return "cast(" + raw + " as binary)" // an entry of a table beside
	}
	return raw
}

// mysqlHex bounds the length of hexadecimal digits, far beyond what comes: from
// that of a longtext MariaDB reckons that their bytes have none, and keeps none
// where it materializes them.
func mysqlHex(digits string) string { return "left(" + digits + ", 2147483647)" }

// matched takes the collation of the column, or an index would not serve.
func (d mysql) matched(f field) string {
	if f.Live == nil || f.Live.Charset == "" || f.Live.CollatedBy == "" || f.Live.CollatedBy == "utf8mb4_bin" {
		return d.param(f)
	}
	return fmt.Sprintf("convert(%s using %s) collate %s", d.raw(f), f.Live.Charset, f.Live.CollatedBy)
}

func (mysql) version(expr string) string { return "cast(" + expr + " as binary)" }

func (mysql) bytes(expr string, f field) string {
	if c := f.Live; c != nil && c.Charset != "" && c.Charset != "utf8mb4" {
		expr = "convert(" + expr + " using utf8mb4)"
	}
	return "cast(" + expr + " as binary)"
}

func (d mysql) distinct(a, b string, f field) string {
	switch c := f.Live; {
	case c == nil || isMySQLText(c):
		a, b = d.bytes(a, f), d.bytes(b, f)
	case c.Base == "json": // a text would be a JSON text
		a, b = "json_extract("+a+", '$')", "json_extract("+b+", '$')"
	}
	return "not (" + a + " <=> " + b + ")"
}

func (d mysql) greater(a, b string, f field) string {
	text := f.Live == nil || isMySQLText(f.Live)
	switch f.Type.Kind {
	case merge.Int, merge.Numeric:
		if text {
			a, b = "cast("+a+" as decimal(65,30))", "cast("+b+" as decimal(65,30))"
		}
	case merge.Float:
		if text {
			a, b = "("+a+" + 0e0)", "("+b+" + 0e0)"
		}
	default:
		switch {
		case text:
			a, b = d.bytes(a, f), d.bytes(b, f)
		case f.Live.Base == "uuid": // MariaDB orders them by their last part
			a, b = "cast("+a+" as char)", "cast("+b+" as char)"
		}
	}
	return a + " > " + b
}

func (mysql) newer(a, b []string) string { return newerRow(a, b) }

func (mysql) union(a, b string, _ field) string {
	return "(select concat('[', coalesce(group_concat(distinct json_quote(j.x) order by cast(j.x as binary) separator ','), ''), ']') from json_table(json_merge_preserve(" +
		a + ", " + b + "), '$[*]' columns (x longtext character set utf8mb4 collate utf8mb4_bin path '$')) as j)"
}

const mysqlInstant = `'%Y-%m-%dT%H:%i:%s.%fZ'`

func (mysql) now(f field) string {
	switch {
	case f.Live != nil && f.Live.Base == "timestamp": // in the zone of the session
		return "current_timestamp(6)"
	case f.Live != nil && isMySQLText(f.Live):
		return "date_format(utc_timestamp(6), " + mysqlInstant + ")"
	}
	return "utc_timestamp(6)"
}

func (mysql) dflt(f field) string { return f.Live.Default }

func (mysql) convert(expr string, _, _ field) string { return expr }

func (mysql) read(expr string, f field) string {
	c := f.Live
	if c == nil {
		return expr
	}
	switch c.Base {
	case "datetime", "timestamp":
		return "date_format(" + expr + ", " + mysqlInstant + ")"
	case "date":
		return "date_format(" + expr + ", '%Y-%m-%d')"
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		switch f.Type.Kind {
		case merge.UUID:
			return "lower(insert(insert(insert(insert(hex(" + expr + "), 9, 0, '-'), 14, 0, '-'), 19, 0, '-'), 24, 0, '-'))"
		case merge.Bytes:
			return `concat(_utf8mb4 x'5c78', lower(hex(` + expr + `)))` // \x
		}
		return "convert(" + expr + " using utf8mb4)"
	}
	if isMySQLText(c) {
		return expr
	}
	return "cast(" + expr + " as char)"
}

// columnsOf describes the list that is the parameter.
func (mysql) columnsOf(n int) string {
	columns := []string{"hookfold_n for ordinality"}
	for i := range n {
		columns = append(columns, fmt.Sprintf("p%d longtext character set utf8mb4 collate utf8mb4_bin path '$[%d]'", i+1, i))
	}
	return "json_table(?, '$[*]' columns (" + strings.Join(columns, ", ") + ")) as v"
}

func (d mysql) from(params []Param) string { return d.columnsOf(len(params)) }

// keyed names a table as t, read by the index on its key: a scan would lock all
// that it passes.
func (d mysql) keyedTable(table string) string {
	if d.key == "" {
		return table + " as t"
	}
	return table + " as t force index (" + d.quote(d.key) + ")"
}

func (d mysql) upsert(u *upsert) []string {
	from := u.from(d.from(u.params))
	if d.split {
		return d.insertUpdate(u, from)
	}
	from += u.rest()
	sql := fmt.Sprintf("insert into %s (%s)\nselect %s\nfrom %s", u.table, strings.Join(u.columns, ", "), strings.Join(u.exprs, ",\n    "), from)
	if len(u.set) == 0 { // what INSERT IGNORE would pass over is more than that
		return []string{sql + fmt.Sprintf("\non duplicate key update %s = %s.%[1]s", u.key[0], u.table)}
	}
	return []string{sql + "\non duplicate key update\n    " + listed(d, withGuard(d, u.set, u.guard, u.table))}
}

// withGuard lets each assignment decide by a condition too.
func withGuard(d dialect, set []assignment, guard, table string) []assignment {
	out := slices.Clone(set)
	for i, a := range out {
		if guard != "" {
			out[i].becomes = fmt.Sprintf("case when %s\n      then %s else %s.%s end", guard, a.becomes, table, d.quote(a.column))
		}
	}
	return out
}

// insertUpdate inserts the rows that are not there, and then joins all by their
// key. The other order would lose what another writer has inserted in between: the
// update would not have seen it, and the insert would leave it alone.
func (d mysql) insertUpdate(u *upsert, from string) []string {
	exprs := make([]string, len(u.columns))
	for i, c := range u.columns {
		exprs[i] = u.exprs[i] + " as " + c
		if k := slices.Index(u.key, c); k >= 0 {
			exprs[i] = u.matched[k] + " as " + c
		}
	}
	var on, absent []string
	for i, c := range u.key {
		on, absent = append(on, "t."+c+" = excluded."+c), append(absent, "t."+c+" = "+u.matched[i])
	}
	out := []string{fmt.Sprintf("insert into %s (%s)\nselect %s\nfrom %s\nwhere not exists (select 1 from %s where %s)", u.table, strings.Join(u.columns, ", "),
		strings.Join(u.exprs, ",\n    "), from, d.keyedTable(u.table), strings.Join(absent, " and "))}
	if u.where != "" {
		out[0] += " and " + u.where
		from += "\n    where " + u.where
	}
	out[0] += u.order
	if len(u.set) > 0 {
		out = append(out, d.update(&update{table: u.table, set: u.set, from: fmt.Sprintf("(select %s\n    from %s) as excluded", strings.Join(exprs, ",\n    "), from),
			on: strings.Join(on, " and "), guard: u.guard}))
	}
	return out
}

// update has no WHERE: a row that it leaves out is not locked, and what is
// decided later by the row, its projection say, would be decided by an old one.
func (d mysql) update(u *update) string {
	var lines []string
	for _, a := range withGuard(d, u.set, u.guard, "t") {
		lines = append(lines, "t."+d.quote(a.column)+" = "+a.becomes)
	}
	return fmt.Sprintf("update %s\nstraight_join %s on %s\nset %s", u.from, d.keyedTable(u.table), u.on, strings.Join(lines, ",\n    "))
}

func (d mysql) excluded(exprs []string, params []Param) string {
	return fmt.Sprintf("(select %s\n    from %s) as excluded", strings.Join(exprs, ",\n    "), d.from(params))
}

func (d mysql) remove(table, on string, params []Param) string {
	return fmt.Sprintf("delete t\nfrom %s\nstraight_join %s on %s", d.from(params), d.keyedTable(table), on)
}

func (d mysql) lock(table, on string, firsts []string, params []Param) string {
	return d.byKey(strings.Join(append([]string{"1"}, firsts...)[min(1, len(firsts)):], ", "), table, on, params, true)
}

func (d mysql) byKey(columns, table, on string, params []Param, lock bool) string {
	sql := fmt.Sprintf("select v.hookfold_n, %s\nfrom %s\nstraight_join %s on %s", columns, d.from(params), d.keyedTable(table), on)
	if lock {
		sql += "\nfor update"
	}
	return sql
}

func (mysql) skipLocked(sql string) string { return sql + " skip locked" }

func (d mysql) records(p *projection) string {
	return fmt.Sprintf("select * from (select v.hookfold_n as %s, %s,\n        row_number() over (partition by %s order by %s desc, %s desc) as hookfold_rank\n    from %s\n    straight_join %s as o force index (`PRIMARY`) on %s) as r where r.hookfold_rank = 1",
		p.place, strings.Join(p.exprs, ", "), strings.Join(p.keys, ", "), d.version("coalesce(o."+d.quote(SinceColumn)+", '')"), d.version("o."+d.quote(OccupantColumn)),
		d.from(p.params), p.table, strings.Join(p.on, " and "))
}

func (mysql) inOrder(p *projection) string { return "\norder by p." + p.place }

func (d mysql) page(all string, key []field, after bool) string {
	if !after {
		return all + order(d, key) + "\nlimit ?1"
	}
	return all + "\nwhere " + d.behind(key, 1) + order(d, key) + fmt.Sprintf("\nlimit ?%d", len(key)+1)
}

// behind compares keys part by part: an index serves that, and no comparison of
// rows. The n-th parameter is written ?n.
func (d mysql) behind(key []field, n int) string {
	a := at(d, key[0])
	b := strings.ReplaceAll(d.matched(key[0]), d.raw(key[0]), fmt.Sprintf("?%d", n))
	if key[0].Type.Kind == merge.Bytes {
		b = fmt.Sprintf("unhex(substr(?%d, 3))", n)
	}
	if len(key) == 1 {
		return a + " > " + b
	}
	return fmt.Sprintf("%s >= %s and (%[1]s > %[2]s or %[3]s)", a, b, d.behind(key[1:], n+1))
}

// Tables beside. The first part of an entry is the table's name.

func (d mysql) sideFrom(fields int) string { return d.columnsOf(1 + fields) }

func (d mysql) sideOn(s *side, by []field) string {
	on := "t.`table_name` = cast(v.p1 as binary)"
	for _, f := range by {
		on += " and " + at(d, f) + " = " + d.matched(f)
	}
	return on
}

func (d mysql) sideTable(s *side, by []field) string {
	d.key = d.primary() // which begins with all that entries are found by
	if len(by) == 1 && by[0].Name == s.index {
		d.key = s.index
	}
	return d.keyedTable(quoteTable(d, s.name))
}

func (d mysql) sideGet(s *side, by []field) string {
	return fmt.Sprintf("select %s from %s\nstraight_join %s on %s", s.shown(d), d.sideFrom(len(by)), d.sideTable(s, by), d.sideOn(s, by))
}

func (d mysql) sidePut(s *side) string {
	exprs := []string{"v.p1"}
	for _, f := range s.fields() {
		expr := d.raw(f)
		if f.Type.Kind == merge.Timestamp { // as it is written everywhere else
			expr = "replace(replace(" + expr + ", 'T', ' '), 'Z', '')"
		}
		exprs = append(exprs, expr)
	}
	var set []string
	for _, f := range s.values {
		set = append(set, fmt.Sprintf("%s = values(%[1]s)", d.quote(f.Name)))
	}
	if s.stamp != "" {
		exprs = append(exprs, d.now(field{}))
		set = append(set, fmt.Sprintf("%s = values(%[1]s)", d.quote(s.stamp)))
	}
	table := quoteTable(d, s.name)
	if set == nil {
		set = append(set, fmt.Sprintf("%s = %s.%[1]s", d.quote("table_name"), table))
	}
	return fmt.Sprintf("insert into %s (%s)\nselect %s from %s\non duplicate key update %s", table, quoted(d, s.columns()), strings.Join(exprs, ", "), d.sideFrom(len(s.fields())), strings.Join(set, ", "))
}

func (d mysql) sideDrop(s *side, by []field) string {
	return fmt.Sprintf("delete t from %s\nstraight_join %s on %s", d.sideFrom(len(by)), d.sideTable(s, by), d.sideOn(s, by))
}

func (d mysql) oldest(s *side) string {
	return fmt.Sprintf("select convert(`key` using utf8mb4), %s from %s\nwhere `table_name` = ? and %s < ?\norder by `key` limit ? for update",
		d.quote(DeleteColumn), quoteTable(d, s.name), d.quote(s.stamp))
}

func (d mysql) versions(table string) (claim, hold, save string) {
	on := "t.`table_name` = cast(v.p1 as binary) and t.`key` = cast(v.p2 as binary)"
	return fmt.Sprintf("insert into %s (`table_name`, `key`)\nselect v.p1, v.p2 from %s\non duplicate key update `key` = %[1]s.`key`", table, d.columnsOf(2)),
		fmt.Sprintf("select v.p2, t.`versions` from %s\nstraight_join %s as t force index (`PRIMARY`) on %s\nfor update", d.columnsOf(2), table, on),
		fmt.Sprintf("update (select v.p1, v.p2, v.p3 from %s) as v\nstraight_join %s as t force index (`PRIMARY`) on %s\nset t.`versions` = v.p3", d.columnsOf(3), table, on)
}

func (d mysql) readVersions(table string) (all, byKey string) {
	const columns = "select convert(t.`key` using utf8mb4), t.`versions` from "
	return fmt.Sprintf("%s%s\nstraight_join %s as t on t.`table_name` = cast(v.p1 as binary)", columns, d.columnsOf(1), table),
		fmt.Sprintf("%s%s\nstraight_join %s as t on t.`table_name` = cast(v.p1 as binary) and t.`key` = cast(v.p2 as binary)", columns, d.columnsOf(2), table)
}

// LockRows is the statement that takes locks that end with a transaction on
// MySQL: their numbers, in order, are rows of the table of LocksTable. Those that
// are not there yet are made.
func LockRows(table string) string {
	d := mysql{}
	return fmt.Sprintf("insert into %s (n)\nselect v.p1 from %s\non duplicate key update n = %[1]s.n", quoteTable(d, table), d.columnsOf(1))
}
