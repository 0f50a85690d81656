package compile

import (
	"regexp"
	"slices"
	"strings"
)

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// Quote writes a name as an identifier of PostgreSQL and SQLite: as it is where
// that is safe in both, else in double quotes.
func Quote(name string) string {
	if plainName.MatchString(name) && !strings.Contains(reserved, " "+name+" ") {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// QuoteTable is Quote for the name of a table, which may have its schema in
// front.
func QuoteTable(name string) string { return quoteTable(postgres{}, name) }

func quoteTable(d dialect, name string) string {
	parts := SplitTable(name)
	for i, p := range parts {
		parts[i] = d.quote(p)
	}
	return strings.Join(parts, ".")
}

func quoted(d dialect, names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = d.quote(n)
	}
	return strings.Join(out, ", ")
}

// SplitTable splits the name of a table at its points; a part may stand in
// double quotes.
func SplitTable(name string) []string {
	var parts []string
	var b strings.Builder
	quoted := false
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '"' && quoted && i+1 < len(name) && name[i+1] == '"':
			b.WriteByte('"')
			i++
		case c == '"':
			quoted = !quoted
		case c == '.' && !quoted:
			parts = append(parts, b.String())
			b.Reset()
		default:
			b.WriteByte(c)
		}
	}
	return append(parts, b.String())
}

// JoinName writes a schema and a name as SplitTable takes them apart.
func JoinName(parts ...string) string {
	out := slices.Clone(parts)
	for i, p := range out {
		if strings.ContainsAny(p, `."`) {
			out[i] = `"` + strings.ReplaceAll(p, `"`, `""`) + `"`
		}
	}
	return strings.Join(out, ".")
}

// Literal writes a text as a literal of PostgreSQL and SQLite.
func Literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// beside gives the name of another table in the schema of this one.
func besideTable(name string, other func(table string) string) string {
	parts := SplitTable(name)
	parts[len(parts)-1] = other(parts[len(parts)-1])
	return JoinName(parts...)
}

// InSchema names a table of another schema as this one is named.
func InSchema(schema, name string) string {
	parts := SplitTable(name)
	return besideTable(Quote(schema)+".x", func(string) string { return parts[len(parts)-1] })
}

// OccupantsTable names the table that holds the records of a table's occupants.
func OccupantsTable(name string) string {
	return besideTable(name, func(t string) string { return t + "_occupants" })
}

// VersionsTable names the table that holds the versions of rows whose own table
// may not be altered.
func VersionsTable(name string) string {
	return besideTable(name, func(string) string { return "hookfold_versions" })
}

// LocksTable names the table whose rows are the locks of tables that stand beside
// it, in databases that have no other locks that end with a transaction.
func LocksTable(name string) string {
	return besideTable(name, func(string) string { return "hookfold_locks" })
}

// reserved holds the words that PostgreSQL or SQLite do not take as a column's
// name without quotes.
const reserved = ` abort action add after all alter always analyse analyze and any array as asc asymmetric attach authorization autoincrement ` +
	`before begin between bigint binary bit boolean both by cascade case cast char character check coalesce collate collation column commit concurrently conflict constraint create cross current current_catalog ` +
	`current_date current_role current_schema current_time current_timestamp current_user database dec decimal default deferrable deferred delete desc detach distinct do drop each else end escape except exclude excluded exclusive exists explain extract ` +
	`fail false fetch filter first float following for foreign freeze from full generated glob grant greatest group grouping groups having if ignore ilike immediate in index indexed initially inner inout insert instead int integer intersect interval into is isnull join json_table key ` +
	`lateral last leading least left like limit localtime localtimestamp match materialized merge_action national natural nchar no none normalize not nothing notnull null nullif nulls numeric of offset on only or order others out outer over overlaps overlay ` +
	`partition placing plan position pragma preceding precision primary query raise range real recursive references regexp reindex release rename replace restrict returning right rollback row rows savepoint select session_user set setof similar smallint some substring symmetric system_user ` +
	`table tablesample temp temporary then ties time timestamp to trailing transaction treat trigger trim true unbounded union unique update user using vacuum values varchar variadic verbose view virtual when where window with without ` +
	`xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable `
