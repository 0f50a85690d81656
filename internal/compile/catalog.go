package compile

import (
	_ "embed"
	"strings"
)

// The queries that tell a live table of PostgreSQL; $1 is its oid, but for
// PostgresTable the table's name in quotes.
const (
	// PostgresTable gives the oid, the kind of relation, and whether a trigger
	// runs before an insert. A name that holds no schema is looked up along the
	// search path.
	PostgresTable = `select c.oid, c.relkind::text, exists (
    select from pg_catalog.pg_trigger g
    where g.tgrelid = c.oid and not g.tgisinternal and g.tgenabled <> 'D' and g.tgtype & 7 = 7)
from pg_catalog.pg_class c
where c.oid = pg_catalog.to_regclass($1)`

	// PostgresUniques gives the unique indexes that can decide a conflict:
	// partial ones, those on expressions and those that are checked later cannot.
	PostgresUniques = `select i.indexrelid::regclass::text, array(
    select a.attname::text
    from pg_catalog.unnest(i.indkey::int2[]) with ordinality as k (n, at)
    join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.n
    where k.at <= i.indnkeyatts
    order by k.at)
from pg_catalog.pg_index i
where i.indrelid = $1::oid and i.indisunique and i.indisvalid and i.indimmediate and i.indpred is null and i.indexprs is null
order by not i.indisprimary, 1`
)

// PostgresTriggers lists the triggers of a table, by its oid: name, source,
// whether it is enabled, and whether it runs before a row is inserted or updated.
const PostgresTriggers = `select g.tgname::text, f.prosrc, g.tgenabled in ('O', 'A'), g.tgtype & 3 = 3 and g.tgtype & 20 <> 0
from pg_catalog.pg_trigger g
join pg_catalog.pg_proc f on f.oid = g.tgfoid
where g.tgrelid = $1::oid and not g.tgisinternal
order by g.tgname collate "C"`

// PostgresColumns gives the columns, in order: name, type, type behind a domain,
// its internal name, length, precision, scale, labels, not null, default,
// generated, collation. Of a list, length, labels and collation are those of its
// elements.
//
//go:embed postgres_columns.sql
var PostgresColumns string

// PostgresName writes the name of a table for PostgresTable.
func PostgresName(table string) string {
	parts := SplitTable(table)
	for i, s := range parts {
		parts[i] = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return strings.Join(parts, ".")
}

// PostgresReadOnly says per kind of relation why rows cannot be written.
var PostgresReadOnly = map[string]string{
	"v": "it is a view; name the table behind it",
	"m": "it is a materialized view",
	"f": "it is a foreign table, which cannot decide conflicts",
	"S": "it is a sequence", "c": "it is a type", "i": "it is an index",
}

// PostgresBits says the size of the integer types, and of real, by their internal names.
var PostgresBits = map[string]int{"int2": 16, "int4": 32, "int8": 64, "float4": 32}

// PostgresReferences lists the foreign keys of a table and those that name its
// rows, by its oid: name, table, columns, the other table, its columns, whether
// the columns follow an update, whether the table is the first one, and whether
// it is the other one.
const PostgresReferences = `select f.conname::text, f.conrelid::regclass::text, array(
    select a.attname::text
    from pg_catalog.unnest(f.conkey) with ordinality as k (n, at)
    join pg_catalog.pg_attribute a on a.attrelid = f.conrelid and a.attnum = k.n
    order by k.at), f.confrelid::regclass::text, array(
    select a.attname::text
    from pg_catalog.unnest(f.confkey) with ordinality as k (n, at)
    join pg_catalog.pg_attribute a on a.attrelid = f.confrelid and a.attnum = k.n
    order by k.at), f.confupdtype = 'c', f.conrelid = $1::oid, f.confrelid = $1::oid
from pg_catalog.pg_constraint f
where f.contype = 'f' and (f.conrelid = $1::oid or f.confrelid = $1::oid)
order by 1, 2`
