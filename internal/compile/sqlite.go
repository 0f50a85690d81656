package compile

import (
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// sqlite writes SQLite 3.38 and later. A statement is for one row and run once
// per row. Decimals are kept as text and compared by hookfold_decimal(a, b), a
// function that Hookfold brings along: below 0, 0 or above 0 as a is less than,
// equal to or greater than b.
type sqlite struct{}

// DecimalFunction is the SQL function that compares decimals on SQLite.
const DecimalFunction = "hookfold_decimal"

// The affinities of SQLite's columns.
const (
	affinityText    = "text"
	affinityInteger = "integer"
	affinityReal    = "real"
	affinityNumeric = "numeric"
	affinityBlob    = "blob"
)

// Affinity gives the affinity of a declared type, after the rules of
// https://sqlite.org/datatype3.html#determination_of_column_affinity.
func Affinity(declared string) string {
	s := strings.ToUpper(declared)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(s, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("INT"):
		return affinityInteger
	case has("CHAR", "CLOB", "TEXT"):
		return affinityText
	case s == "" || has("BLOB"):
		return affinityBlob
	case has("REAL", "FLOA", "DOUB"):
		return affinityReal
	}
	return affinityNumeric
}

func (sqlite) quote(name string) string { return Quote(name) }
func (sqlite) literal(s string) string  { return Literal(s) }

func (d sqlite) incoming(f field) string           { return incoming(d, f) }
func (d sqlite) resident(_ string, f field) string { return at(d, f) }
func (sqlite) sequential() bool                    { return false }

func (sqlite) newer(a, b []string) string { return newerRow(a, b) }

func (sqlite) raw(f field) string { return fmt.Sprintf("?%d", f.n) }

func (d sqlite) param(f field) string { return d.raw(f) }

func (d sqlite) matched(f field) string { return d.param(f) }

func (d sqlite) over(*sink.Table, *sink.Live, []string) dialect { return d }

func (sqlite) version(expr string) string { return expr + " collate binary" }

func (sqlite) bytes(expr string, _ field) string { return expr + " collate binary" }

func (d sqlite) distinct(a, b string, f field) string {
	if f.Live != nil && Affinity(f.Live.Type) == affinityText {
		a += " collate binary"
	}
	return a + " is not " + b
}

func (d sqlite) greater(a, b string, f field) string {
	affinity := affinityText
	if f.Live != nil {
		affinity = Affinity(f.Live.Type)
	}
	switch f.Type.Kind {
	case merge.Int:
		if affinity == affinityInteger {
			return a + " > " + b
		}
		return fmt.Sprintf("%s(%s, %s) > 0", DecimalFunction, a, b)
	case merge.Numeric:
		return fmt.Sprintf("%s(%s, %s) > 0", DecimalFunction, a, b)
	case merge.Float:
		if affinity == affinityText {
			return fmt.Sprintf("cast(%s as real) > cast(%s as real)", a, b)
		}
		return a + " > " + b
	case merge.Bool, merge.Bytes:
		return a + " > " + b
	}
	return a + " collate binary > " + b
}

func (sqlite) union(a, b string, _ field) string {
	return fmt.Sprintf("(select json_group_array(value) from (select value from json_each(%s) where value is not null union select value from json_each(%s) order by 1 collate binary))", a, b)
}

func (sqlite) now(field) string { return `strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'` }

func (sqlite) dflt(f field) string { return "(" + f.Live.Default + ")" }

func (sqlite) convert(expr string, _, _ field) string { return expr }

func (d sqlite) upsert(u *upsert) []string {
	from := fmt.Sprintf("values (%s)", strings.Join(u.exprs, ",\n    "))
	if u.source != "" {
		from = fmt.Sprintf("select %s\nfrom %s", strings.Join(u.exprs, ",\n    "), u.from("")) + u.rest()
	}
	return []string{fmt.Sprintf("insert into %s as t (%s)\n%s", u.table, strings.Join(u.columns, ", "), from) + onConflict(d, u)}
}

func (d sqlite) update(u *update) string { return updateFrom(d, u) }

func (sqlite) excluded(exprs []string, _ []Param) string {
	return fmt.Sprintf("(select %s) as excluded", strings.Join(exprs, ", "))
}

func (sqlite) lock(table, on string, firsts []string, _ []Param) string {
	if len(firsts) == 0 {
		firsts = []string{"1"}
	}
	return fmt.Sprintf("select %s from %s as t where %s", strings.Join(firsts, ", "), table, on)
}

func (sqlite) records(p *projection) string {
	return fmt.Sprintf("select %s\n    from %s as o\n    where %s", strings.Join(p.exprs, ", "), p.table, strings.Join(p.on, " and "))
}

func (sqlite) skipLocked(sql string) string { return sql }

func (sqlite) inOrder(*projection) string { return "" }
