package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strings"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/sink"
)

const (
	// mysqlTable gives schema, name, kind, engine, whether a trigger runs before an
	// insert, and whether names of tables have no case. The name is compared by
	// the server's own rule.
	mysqlTable = `select t.table_schema, t.table_name, t.table_type, coalesce(t.engine, ''),
    exists (select 1 from information_schema.triggers g where g.event_object_schema = t.table_schema and g.event_object_table = t.table_name
        and g.event_manipulation = 'INSERT' and g.action_timing = 'BEFORE'), @@lower_case_table_names > 0, version()
from information_schema.tables t where t.table_schema = coalesce(?, database()) and t.table_name = ?`

	mysqlColumns = `select column_name, data_type, column_type, coalesce(character_maximum_length, 0), coalesce(character_octet_length, 0),
    coalesce(numeric_precision, 0), coalesce(numeric_scale, 0), coalesce(datetime_precision, 0), is_nullable = 'NO', column_default, extra,
    coalesce(character_set_name, ''), coalesce(collation_name, '')
from information_schema.columns where table_schema = ? and table_name = ? order by ordinal_position`

	// mysqlUniques gives a row per column of a unique index; one on an expression
	// has no column.
	mysqlUniques = `select index_name, coalesce(column_name, ''), sub_part is not null
from information_schema.statistics where table_schema = ? and table_name = ? and non_unique = 0
order by index_name <> 'PRIMARY', index_name, seq_in_index`

	// mysqlTriggers gives the triggers in the order in which they run.
	mysqlTriggers = `select trigger_name, action_statement, action_timing = 'BEFORE' and event_manipulation <> 'DELETE'
from information_schema.triggers where event_object_schema = ? and event_object_table = ?
order by action_timing desc, event_manipulation, action_order`

	mysqlReferences = `select k.constraint_name, k.table_schema, k.table_name, k.column_name, k.referenced_table_schema, k.referenced_table_name, k.referenced_column_name,
    r.update_rule = 'CASCADE'
from information_schema.key_column_usage k
join information_schema.referential_constraints r on r.constraint_schema = k.constraint_schema and r.constraint_name = k.constraint_name and r.table_name = k.table_name
where k.referenced_table_name is not null
    and (k.table_schema = ? and k.table_name = ? or k.referenced_table_schema = ? and k.referenced_table_name = ?)
order by k.table_schema, k.table_name, k.constraint_name, k.ordinal_position`
)

func (e *mysqlEngine) inspect(ctx context.Context, name string) (*sink.Live, error) {
	parts := compile.SplitTable(name)
	var schema any
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	live := &sink.Live{}
	var in, table, kind, engine, version string
	var caseless bool
	err := e.db.QueryRowContext(ctx, mysqlTable, schema, parts[len(parts)-1]).Scan(&in, &table, &kind, &engine, &live.FillsRows, &caseless, &version)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !caseless && table != parts[len(parts)-1] {
		return live, nil
	}
	if err != nil {
		return nil, err
	}
	live.Exists = true
	switch {
	case strings.Contains(kind, "VIEW"):
		live.ReadOnly = "it is a view; name the table behind it"
	case kind == "SEQUENCE":
		live.ReadOnly = "it is a sequence"
	case !strings.EqualFold(engine, "InnoDB"):
		live.ReadOnly = "its engine is " + engine + ", which has no transactions: alter table " + compile.MySQL.QuoteTable(name) + " engine = InnoDB"
	}
	mariadb := strings.Contains(strings.ToLower(version), "mariadb")
	err = queryRows(ctx, e.db, mysqlColumns, []any{in, table}, func(scan func(...any) error) error {
		var c sink.LiveColumn
		var length, octets, precision, scale, fraction int64
		var dflt sql.NullString
		var extra string
		if err := scan(&c.Name, &c.Base, &c.Type, &length, &octets, &precision, &scale, &fraction, &c.NotNull, &dflt, &extra, &c.Charset, &c.CollatedBy); err != nil {
			return err
		}
		c.Base = strings.ToLower(c.Base)
		shapeMySQL(&c, int(length), int(min(octets, 1<<31-1)), int(precision), int(scale), int(fraction))
		c.Generated = strings.Contains(strings.ToUpper(extra), " GENERATED") || strings.EqualFold(extra, "VIRTUAL GENERATED")
		c.Default = mysqlDefault(&c, dflt, strings.ToLower(extra), mariadb)
		live.Columns = append(live.Columns, c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = queryRows(ctx, e.db, mysqlUniques, []any{in, table}, func(scan func(...any) error) error {
		var index, column string
		var part bool
		if err := scan(&index, &column, &part); err != nil {
			return err
		}
		if n := len(live.Uniques); n == 0 || live.Uniques[n-1].Name != index {
			live.Uniques = append(live.Uniques, sink.Unique{Name: index})
		}
		u := &live.Uniques[len(live.Uniques)-1]
		u.Partial = u.Partial || part || column == ""
		if column != "" {
			u.Columns = append(u.Columns, column)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	live.Triggers = []sink.Trigger{}
	err = queryRows(ctx, e.db, mysqlTriggers, []any{in, table}, func(scan func(...any) error) error {
		x := sink.Trigger{Enabled: true}
		if err := scan(&x.Name, &x.Body, &x.Before); err != nil {
			return err
		}
		live.Triggers = append(live.Triggers, x)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return live, e.references(ctx, in, table, schema != nil, live)
}

// bitsOf are the sizes of the integer types.
var bitsOf = map[string]int{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64, "year": 16}

var enumLabel = regexp.MustCompile(`'((?:[^']|'')*)'`)

// labelText reads a label: the type is shown with them escaped, in every sql_mode.
var labelText = strings.NewReplacer("''", "'", `\\`, `\`, `\n`, "\n", `\r`, "\r", `\0`, "\x00")

// shapeMySQL fills in what a type takes.
func shapeMySQL(c *sink.LiveColumn, length, octets, precision, scale, fraction int) {
	switch c.Base {
	case "char", "varchar":
		c.Length = length
	case "tinytext", "text", "mediumtext", "longtext", "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		c.MaxBytes = octets
	case "json":
		c.MaxBytes = 1 << 30
	case "decimal":
		c.Precision, c.Scale, c.Unsigned = precision, scale, strings.Contains(c.Type, "unsigned")
	case "datetime", "timestamp":
		c.Scale = fraction
	case "enum":
		for _, m := range enumLabel.FindAllStringSubmatch(c.Type, -1) {
			c.Labels = append(c.Labels, labelText.Replace(m[1]))
		}
	case "tinyint", "smallint", "mediumint", "int", "bigint", "year":
		c.Bits, c.Unsigned = bitsOf[c.Base], strings.Contains(c.Type, "unsigned") || c.Base == "year"
	}
	if c.CollatedBy == "" {
		return
	}
	if !strings.HasSuffix(c.CollatedBy, "_bin") {
		c.Collation = c.CollatedBy
	}
	c.Pads = !strings.Contains(c.CollatedBy, "_nopad_") && !strings.Contains(c.CollatedBy, "_0900_")
}

// mysqlDefault gives a default as an expression. MariaDB keeps one; MySQL keeps a
// value, unless extra says otherwise.
func mysqlDefault(c *sink.LiveColumn, dflt sql.NullString, extra string, mariadb bool) string {
	switch {
	case strings.Contains(extra, "auto_increment"):
		return "0" // which takes the next number, as leaving it out does
	case !dflt.Valid, mariadb && strings.EqualFold(dflt.String, "null"):
		return ""
	case mariadb:
		return dflt.String
	case strings.Contains(extra, "default_generated"):
		return "(" + dflt.String + ")"
	case strings.HasPrefix(strings.ToLower(dflt.String), "current_timestamp"), c.Bits > 0, c.Base == "decimal", c.Base == "double", c.Base == "float":
		return dflt.String
	}
	return compile.MySQL.Literal(dflt.String)
}

// references reads the foreign keys that concern a table. Tables of its own
// schema are named without it, unless the config names it.
func (e *mysqlEngine) references(ctx context.Context, in, table string, qualified bool, live *sink.Live) error {
	var list []sink.Reference
	var last string
	named := func(schema, name string) string {
		if schema == in && !qualified {
			return name
		}
		return schema + "." + name
	}
	err := queryRows(ctx, e.db, mysqlReferences, []any{in, table, in, table}, func(scan func(...any) error) error {
		var f sink.Reference
		var fromSchema, from, column, toSchema, to, toColumn string
		if err := scan(&f.Name, &fromSchema, &from, &column, &toSchema, &to, &toColumn, &f.CascadesUpdate); err != nil {
			return err
		}
		this := fromSchema + "\x00" + from + "\x00" + f.Name
		if n := len(list); n > 0 && last == this {
			list[n-1].Columns, list[n-1].ToColumns = append(list[n-1].Columns, column), append(list[n-1].ToColumns, toColumn)
			return nil
		}
		last = this
		f.Table, f.To, f.Columns, f.ToColumns = named(fromSchema, from), named(toSchema, to), []string{column}, []string{toColumn}
		list = append(list, f)
		return nil
	})
	self := named(in, table)
	for _, f := range list {
		if f.Table == self {
			live.References = append(live.References, f)
		}
		if f.To == self {
			live.ReferencedBy = append(live.ReferencedBy, f)
		}
	}
	return err
}
