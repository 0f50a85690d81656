package compile

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// postgres writes PostgreSQL 13 and later.
type postgres struct {
	// rows is the expression of a JSON list of objects from which statements
	// take their rows; "" is arrays as parameters.
	rows string
	// args, if not nil, are what a function's statements take for parameters, by
	// name: a statement then takes one row, which they are.
	args map[string]string
}

var lengthForm = regexp.MustCompile(`^(character varying|character|bpchar)(\(\d+\))?`)

// castType is the type to cast a text to. Of text types the length is left
// out, since a cast would cut a text that is too long, where the assignment to
// the column refuses it. A domain is cast to the type behind it; the assignment
// checks the domain.
func castType(c *sink.LiveColumn) string {
	base := c.Base
	if base == "" {
		base = c.Type
	}
	of, list := strings.CutSuffix(base, "[]")
	if of == "character" || strings.HasPrefix(of, "character(") {
		of = "bpchar" // character alone is of one
	}
	of = lengthForm.ReplaceAllString(of, "$1")
	if list {
		of += "[]"
	}
	return of
}

func (postgres) quote(name string) string { return Quote(name) }
func (postgres) literal(s string) string  { return Literal(s) }

func (d postgres) incoming(f field) string           { return incoming(d, f) }
func (d postgres) resident(_ string, f field) string { return at(d, f) }
func (postgres) sequential() bool                    { return false }

func (postgres) newer(a, b []string) string { return newerRow(a, b) }

// Parameters are named by their places, v.p1, so that no column of the user's
// has such a name.
func (postgres) raw(f field) string { return fmt.Sprintf("v.p%d", f.n) }

func (d postgres) param(f field) string {
	if f.Live == nil {
		return d.raw(f)
	}
	if c := castType(f.Live); c != "text" {
		return d.raw(f) + "::" + c
	}
	return d.raw(f)
}

func (d postgres) matched(f field) string { return d.param(f) }

func (d postgres) over(*sink.Table, *sink.Live, []string) dialect { return d }

func (postgres) version(expr string) string { return expr + ` collate "C"` }

func (postgres) bytes(expr string, f field) string {
	if c := castType(f.Live); c != "text" && c != "character varying" {
		expr += "::text"
	}
	return expr + ` collate "C"`
}

func (d postgres) distinct(a, b string, f field) string {
	switch c := f.Live; {
	case c == nil:
	case c.Collation != "":
		a, b = d.bytes(a, f), d.bytes(b, f)
	case c.Base == "json" || c.Base == "jsonb":
		a, b = a+"::text", b+"::text"
	}
	return a + " is distinct from " + b
}

func (d postgres) greater(a, b string, f field) string {
	text := isText(f.Live) || len(f.Live.Labels) > 0
	switch f.Type.Kind {
	case merge.Int, merge.Numeric:
		if text {
			a, b = a+"::numeric", b+"::numeric"
		}
	case merge.Float:
		if text {
			a, b = a+"::float8", b+"::float8"
		}
	default:
		if text {
			a, b = d.bytes(a, f), d.bytes(b, f)
		}
	}
	return a + " > " + b
}

func (postgres) union(a, b string, f field) string {
	c, x := castType(f.Live), "x"
	if c != "text[]" {
		x = "x::text" // a type may have an equality of its own
	}
	sql := fmt.Sprintf(`array(select distinct %s collate "C" from unnest(%s || %s) as x where x is not null order by 1)`, x, a, b)
	if c != "text[]" {
		sql += "::" + c
	}
	return sql
}

func (postgres) now(f field) string {
	switch castType(f.Live) {
	case "timestamp without time zone":
		return "clock_timestamp() at time zone 'UTC'"
	case "text", "character varying":
		return `to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
	}
	return "clock_timestamp()"
}

func (postgres) dflt(f field) string {
	return fmt.Sprintf("cast(%s as %s)", f.Live.Default, castType(f.Live))
}

func (d postgres) from(params []Param) string {
	return d.source(params) + " as v (" + strings.Join(places(params), ", ") + ")"
}

// ordered is from with the places of the rows, from 1, as v.hookfold_n.
func (d postgres) ordered(params []Param) string {
	if d.args != nil {
		return fmt.Sprintf("(select *, 1 from %s as v) as v (%s)", d.source(params), strings.Join(append(places(params), "hookfold_n"), ", "))
	}
	return d.source(params) + " with ordinality as v (" + strings.Join(append(places(params), "hookfold_n"), ", ") + ")"
}

func (d postgres) source(params []Param) string {
	var of []string
	for i, p := range params {
		if d.args != nil {
			of = append(of, d.args[p.Name])
		} else if d.rows != "" {
			of = append(of, Quote(p.Name)+" text")
		} else {
			of = append(of, fmt.Sprintf("$%d::text[]", i+1))
		}
	}
	if d.args != nil {
		return "(values (" + strings.Join(of, ", ") + "))"
	}
	if d.rows != "" {
		return "rows from (json_to_recordset(" + d.rows + ") as (" + strings.Join(of, ", ") + "))"
	}
	return "unnest(" + strings.Join(of, ", ") + ")"
}

func places(params []Param) []string {
	var names []string
	for i := range params {
		names = append(names, fmt.Sprintf("p%d", i+1))
	}
	return names
}

func (postgres) convert(expr string, from, to field) string {
	if from.Live == nil || to.Live == nil || castType(from.Live) == castType(to.Live) {
		return expr
	}
	return expr + "::" + castType(to.Live)
}

func (d postgres) upsert(u *upsert) []string {
	return []string{fmt.Sprintf("insert into %s as t (%s)\nselect %s\nfrom %s",
		u.table, strings.Join(u.columns, ", "), strings.Join(u.exprs, ",\n    "), u.from(d.from(u.params))) + u.rest() + onConflict(d, u)}
}

func (d postgres) update(u *update) string { return updateFrom(d, u) }

func (d postgres) excluded(exprs []string, params []Param) string {
	return fmt.Sprintf("(select %s\n    from %s) as excluded", strings.Join(exprs, ",\n    "), d.from(params))
}

func (d postgres) lock(table, on string, firsts []string, params []Param) string {
	return fmt.Sprintf("select v.hookfold_n, array[%s]::bool[]\nfrom %s\njoin %s as t on %s\norder by v.hookfold_n\nfor no key update of t",
		strings.Join(firsts, ", "), d.ordered(params), table, on)
}

func (d postgres) records(p *projection) string {
	as := ""
	if p.place != "hookfold_n" {
		as = " as " + p.place
	}
	return fmt.Sprintf("select distinct on (%s) v.hookfold_n%[8]s, %[2]s\n    from %[3]s\n    join %[4]s as o on %[5]s\n    order by %[1]s, coalesce(o.%[6]s, '') collate \"C\" desc, o.%[7]s collate \"C\" desc",
		strings.Join(p.keys, ", "), strings.Join(p.exprs, ", "), d.ordered(p.params), p.table, strings.Join(p.on, " and "), SinceColumn, OccupantColumn, as)
}

func (postgres) skipLocked(sql string) string { return sql + " skip locked" }

func (postgres) inOrder(p *projection) string { return "\norder by p." + p.place }

func isText(c *sink.LiveColumn) bool {
	switch t := castType(c); {
	case t == "text", t == "character varying", t == "bpchar":
		return true
	default:
		return t == "citext" || strings.HasSuffix(t, ".citext")
	}
}
