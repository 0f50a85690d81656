package compile

import "strings"

// The queries that tell a live table of SQL Server. They ask for no more than
// Babelfish has.
const (
	// SQLServerTable gives the id, the kind of object, and whether a trigger takes
	// the place of an insert. @p1 is the table's name in brackets; one that holds
	// no schema is looked up in the user's.
	SQLServerTable = `select o.object_id, rtrim(o.type), case when exists (
    select 1 from sys.triggers as g where g.parent_id = o.object_id and g.is_instead_of_trigger = 1 and g.is_disabled = 0) then 1 else 0 end
from sys.objects as o
where o.object_id = object_id(@p1)`

	// SQLServerColumns gives the columns, in order; @p1 is the table's id: name,
	// type, length in bytes (-1 is unlimited), precision, scale, whether NULL is
	// allowed, whether it is an identity or computed, default, the name of its
	// constraint, collation and code page. A type of the user's own is the one
	// behind it.
	SQLServerColumns = `select c.name, case when y.is_user_defined = 1 then (
    select top (1) b.name from sys.types as b where b.system_type_id = y.system_type_id and b.is_user_defined = 0 order by b.user_type_id) else y.name end,
    c.max_length, c.precision, c.scale, cast(c.is_nullable as int), cast(c.is_identity as int), cast(c.is_computed as int),
    coalesce(d.definition, N''), coalesce(d.name, N''), coalesce(c.collation_name, N''), coalesce(cast(collationproperty(c.collation_name, 'CodePage') as int), 0)
from sys.columns as c
join sys.types as y on y.user_type_id = c.user_type_id
left join sys.default_constraints as d on d.object_id = c.default_object_id
where c.object_id = @p1
order by c.column_id`

	// SQLServerUniques gives the columns of the unique indexes that decide about
	// every row: name, whether it ignores duplicates, column.
	SQLServerUniques = `select i.name, cast(i.ignore_dup_key as int), c.name
from sys.indexes as i
join sys.index_columns as k on k.object_id = i.object_id and k.index_id = i.index_id
join sys.columns as c on c.object_id = k.object_id and c.column_id = k.column_id
where i.object_id = @p1 and i.is_unique = 1 and i.has_filter = 0 and i.is_disabled = 0 and k.is_included_column = 0
order by i.is_primary_key desc, i.index_id, k.key_ordinal`

	// SQLServerReferences lists the foreign keys of a table and those that name its
	// rows, column by column: name, schema and table, column, the other schema and
	// table, its column, whether the columns follow an update, whether the table is
	// the first one, and whether it is the other one.
	SQLServerReferences = `select f.name, ps.name, po.name, pc.name, rs.name, ro.name, rc.name,
    case when f.update_referential_action = 1 then 1 else 0 end,
    case when f.parent_object_id = @p1 then 1 else 0 end, case when f.referenced_object_id = @p1 then 1 else 0 end
from sys.foreign_keys as f
join sys.foreign_key_columns as k on k.constraint_object_id = f.object_id
join sys.objects as po on po.object_id = f.parent_object_id
join sys.schemas as ps on ps.schema_id = po.schema_id
join sys.objects as ro on ro.object_id = f.referenced_object_id
join sys.schemas as rs on rs.schema_id = ro.schema_id
join sys.columns as pc on pc.object_id = k.parent_object_id and pc.column_id = k.parent_column_id
join sys.columns as rc on rc.object_id = k.referenced_object_id and rc.column_id = k.referenced_column_id
where f.parent_object_id = @p1 or f.referenced_object_id = @p1
order by f.name, f.object_id, k.constraint_column_id`
)

// SQLServerName writes the name of a table for SQLServerTable.
func SQLServerName(table string) string {
	parts := SplitTable(table)
	for i, s := range parts {
		parts[i] = bracketed(s)
	}
	return strings.Join(parts, ".")
}

// SQLServerReadOnly says per kind of object why rows cannot be written.
var SQLServerReadOnly = map[string]string{
	"V": "it is a view; name the table behind it", "SN": "it is a synonym; name the table behind it",
	"IF": "it is a function", "TF": "it is a function", "FN": "it is a function", "P": "it is a procedure", "S": "it is a table of the system", "ET": "it is an external table",
}

// SQLServerBits says the size of the integer types, and of real.
var SQLServerBits = map[string]int{"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "real": 32}
