package hasuratest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// Columns are what a role may do with the columns of a table.
type Columns struct {
	Select, Insert, Update []string
	// Check, if it is not "", is a condition in SQL over the table's columns
	// that rows must meet after a write.
	Check string
	// Limit, if not 0, is the most rows that a query gives.
	Limit int
}

// view is the schema of one role.
type view struct {
	schema *ast.Schema
	tables map[string]*access // by root name
	arrays bool
	old    bool // constraints do not tell their columns
	fields map[string]RootFields
	usual  map[string]string // names of root fields, by what they are called
}

// access is a table as a role sees it.
type access struct {
	*table
	read, insert, update []*column
	check                string
	limit                int
}

// scalar is the name of a column's type in GraphQL, and of an array that of its
// elements.
func (c *column) scalar() string {
	name := c.internal
	if c.array {
		name = strings.TrimPrefix(name, "_")
	}
	switch name {
	case "int4":
		return "Int"
	case "bool":
		return "Boolean"
	case "float4":
		return "Float"
	case "text", "varchar":
		return "String"
	case "int8":
		return "bigint"
	case "int2":
		return "smallint"
	}
	return name
}

// gql is a column's type in GraphQL.
func (v *view) gql(c *column) string {
	switch {
	case !c.array:
		return c.scalar()
	case v.arrays:
		return "[" + c.scalar() + "!]"
	}
	return c.internal // _text
}

func (v *view) comparison(c *column) string {
	if c.array && v.arrays {
		return c.scalar() + "_array_comparison_exp"
	}
	return strings.Trim(v.gql(c), "[]!") + "_comparison_exp"
}

// build makes the schema that a role sees of the tracked tables; admin sees all.
func build(tables []*table, role string, opts Options) (*view, error) {
	v := &view{tables: map[string]*access{}, arrays: !opts.OldArrays, old: opts.OldConstraints, fields: opts.RootFields, usual: map[string]string{}}
	b := &strings.Builder{}
	query, mutation := &strings.Builder{}, &strings.Builder{}
	scalars, comparisons := map[string]bool{}, map[string]string{}
	for _, t := range tables {
		a := grant(t, role, opts.Roles)
		if a == nil {
			continue
		}
		v.tables[t.gql] = a
		for _, c := range t.columns {
			scalars[strings.Trim(v.gql(c), "[]!")] = true
			comparisons[v.comparison(c)] = v.gql(c)
		}
		v.describe(b, query, mutation, a)
	}
	for _, s := range []string{"Int", "Boolean", "Float", "String"} {
		delete(scalars, s)
	}
	for _, s := range slices.Sorted(maps.Keys(scalars)) {
		fmt.Fprintf(b, "scalar %s\n", s)
	}
	for _, name := range slices.Sorted(maps.Keys(comparisons)) {
		t := comparisons[name]
		fmt.Fprintf(b, "input %s { _eq: %s _gt: %[2]s _gte: %[2]s _in: [%[2]s!] _is_null: Boolean _lt: %[2]s _lte: %[2]s _neq: %[2]s _nin: [%[2]s!] }\n", name, t)
	}
	b.WriteString("enum order_by { asc asc_nulls_first asc_nulls_last desc desc_nulls_first desc_nulls_last }\n")
	if query.Len() == 0 {
		query.WriteString("  no_queries_available: String\n")
	}
	fmt.Fprintf(b, "type query_root {\n%s}\n", query)
	roots := "schema { query: query_root"
	if mutation.Len() > 0 {
		fmt.Fprintf(b, "type mutation_root {\n%s}\n", mutation)
		roots += " mutation: mutation_root"
	}
	b.WriteString(roots + " }\n")
	var err error
	v.schema, err = gqlparser.LoadSchema(&ast.Source{Name: "schema", Input: b.String()})
	return v, err
}

func grant(t *table, role string, roles map[string]map[string]Columns) *access {
	a := &access{table: t}
	if role == "admin" {
		a.read = t.columns
		for _, c := range t.columns {
			if !c.generated {
				a.insert = append(a.insert, c)
				a.update = append(a.update, c)
			}
		}
		return a
	}
	g, ok := roles[role][t.gql]
	if !ok {
		return nil
	}
	a.check, a.limit = g.Check, g.Limit
	for _, c := range t.columns {
		for _, x := range []struct {
			names []string
			list  *[]*column
		}{{g.Select, &a.read}, {g.Insert, &a.insert}, {g.Update, &a.update}} {
			if slices.Contains(x.names, c.name) {
				*x.list = append(*x.list, c)
			}
		}
	}
	return a
}

// custom gives a root field its name, and remembers which it is.
func (v *view) custom(usual, name string) string {
	if name == "" {
		return usual
	}
	v.usual[name] = usual
	return name
}

// named gives the usual name of a root field.
func (v *view) named(field string) string {
	if n := v.usual[field]; n != "" {
		return n
	}
	return field
}

// describe writes the types of one table.
func (v *view) describe(b, query, mutation *strings.Builder, a *access) {
	n := a.gql
	list := func(kind, name, extra string, columns []*column, typ func(*column) string) {
		fmt.Fprintf(b, "%s %s {\n%s", kind, name, extra)
		for _, c := range columns {
			if c.comment != "" {
				fmt.Fprintf(b, "  %q\n", c.comment)
			}
			fmt.Fprintf(b, "  %s%s\n", c.name, typ(c))
		}
		b.WriteString("}\n")
	}
	plain := func(c *column) string { return ": " + v.gql(c) }
	none := func(*column) string { return "" }
	if len(a.read) > 0 {
		list("type", n, "", a.read, func(c *column) string {
			if c.notNull {
				return ": " + v.gql(c) + "!"
			}
			return ": " + v.gql(c)
		})
		list("input", n+"_bool_exp", fmt.Sprintf("  _and: [%s_bool_exp!]\n  _or: [%[1]s_bool_exp!]\n  _not: %[1]s_bool_exp\n", n), a.read,
			func(c *column) string { return ": " + v.comparison(c) })
		list("input", n+"_order_by", "", a.read, func(*column) string { return ": order_by" })
		list("enum", n+"_select_column", "", a.read, none)
		fmt.Fprintf(query, "  %s(distinct_on: [%s_select_column!], limit: Int, offset: Int, order_by: [%[2]s_order_by!], where: %[2]s_bool_exp): [%[2]s!]!\n", v.custom(n, v.fields[n].Select), n)
		if len(a.key) > 0 {
			var args []string
			for _, k := range a.key {
				if c := a.column(k); c != nil {
					args = append(args, k+": "+v.gql(c)+"!")
				}
			}
			fmt.Fprintf(query, "  %s_by_pk(%s): %[1]s\n", n, strings.Join(args, ", "))
		}
	}
	returning := ""
	if len(a.read) > 0 {
		returning = fmt.Sprintf("  returning: [%s!]!\n", n)
	}
	fmt.Fprintf(b, "type %s_mutation_response {\n  affected_rows: Int!\n%s}\n", n, returning)
	conflict := ""
	if len(a.insert) > 0 {
		list("input", n+"_insert_input", "", a.insert, plain)
		if len(a.constraints) > 0 {
			fmt.Fprintf(b, "enum %s_constraint {\n", n)
			for _, k := range a.constraints {
				var cols []string
				for _, c := range k.columns {
					cols = append(cols, `\"`+c+`\"`)
				}
				on := " on columns " + strings.Join(cols, ", ")
				if v.old {
					on = ""
				}
				fmt.Fprintf(b, "  \"unique or primary key constraint%s\"\n  %s\n", on, k.name)
			}
			b.WriteString("}\n")
			// A role that may update nothing still needs an enum for [].
			placeholder := ""
			if len(a.update) == 0 {
				placeholder = "  _PLACEHOLDER\n"
			}
			list("enum", n+"_update_column", placeholder, a.update, none)
			where := ""
			if len(a.read) > 0 {
				where = fmt.Sprintf("  where: %s_bool_exp\n", n)
			}
			fmt.Fprintf(b, "input %s_on_conflict {\n  constraint: %[1]s_constraint!\n  update_columns: [%[1]s_update_column!]! = []\n%s}\n", n, where)
			conflict = ", on_conflict: " + n + "_on_conflict"
		}
		fmt.Fprintf(mutation, "  %s(objects: [%s_insert_input!]!%s): %[2]s_mutation_response\n", v.custom("insert_"+n, v.fields[n].Insert), n, conflict)
		if len(a.read) > 0 {
			fmt.Fprintf(mutation, "  insert_%s_one(object: %[1]s_insert_input!%s): %[1]s\n", n, conflict)
		}
	}
	if len(a.update) > 0 && len(a.read) > 0 {
		list("input", n+"_set_input", "", a.update, plain)
		fmt.Fprintf(mutation, "  %s(where: %s_bool_exp!, _set: %[2]s_set_input): %[2]s_mutation_response\n", v.custom("update_"+n, v.fields[n].Update), n)
		if len(a.key) > 0 {
			var keys []*column
			for _, k := range a.key {
				if c := a.column(k); c != nil {
					keys = append(keys, c)
				}
			}
			list("input", n+"_pk_columns_input", "", keys, func(c *column) string { return ": " + v.gql(c) + "!" })
			fmt.Fprintf(mutation, "  update_%s_by_pk(pk_columns: %[1]s_pk_columns_input!, _set: %[1]s_set_input): %[1]s\n", n)
		}
	}
}
