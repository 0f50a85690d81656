package compile

import (
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Reading reads rows back in canonical text.
type Reading struct {
	// ByKey reads rows by key, All reads every row. Each gives, after the place
	// of the parameters for ByKey on PostgreSQL, the columns of Fields.
	ByKey Statement
	All   string
	// First reads the first page of every row, and Next the one behind a row. The
	// parameters are for Next the parts, texts, of that row's key as they were
	// read, and then the most rows. The parts of the key are the first of Fields.
	First, Next string
	// Fields say what the columns are.
	Fields []Param
	// Versions reads the versions that lie beside: key, versions. Its parameter
	// is the table, and for VersionsByKey also the keys (on SQLite one key).
	Versions, VersionsByKey string
}

// Read makes the statements that read a table's rows as they live.
func Read(d Dialect, t *sink.Table, live *sink.Live) (*Reading, error) {
	if d.Held(t, live) {
		return readHeld(d, t, live)
	}
	all := *t
	plain := *t.Table
	plain.Occupied = false // every column of the table, whomever it belongs to
	all.Table = &plain
	r := own(&all)
	r.beside = Beside(t)
	if err := r.bind(live); err != nil {
		return nil, err
	}
	fields := append(append(append([]field{}, r.key...), r.values...), r.touch...)
	if !r.beside {
		fields = append(append(fields, r.scopes...), r.firsts...)
		if t.Occupied {
			for _, p := range []Param{{Kind: SinceParam, Name: SinceColumn, Type: versionType}, {Kind: IDParam, Name: OccupantColumn, Type: versionType}} {
				f := field{Param: p}
				if err := bindField(&f, t.Name, live); err != nil {
					return nil, err
				}
				fields = append(fields, f)
			}
		}
	}
	x := d.impl().over(t, live, keyOf(t))
	out := &Reading{}
	var exprs []string
	for _, f := range fields {
		exprs = append(exprs, x.read(at(x, f), f))
		out.Fields = append(out.Fields, f.Param)
	}
	var params []Param
	var on []string
	for _, f := range r.key {
		params = append(params, f.Param)
		on = append(on, same(x, at(x, f), x.matched(f), f))
	}
	columns := strings.Join(exprs, ", ")
	out.ByKey = Statement{SQL: x.byKey(columns, quoteTable(x, t.Name), strings.Join(on, " and "), params, false), Params: params}
	out.All = fmt.Sprintf("select %s from %s as t", columns, quoteTable(x, t.Name))
	out.pages(x, r.key)
	if r.beside {
		out.Versions, out.VersionsByKey = x.readVersions(quoteTable(x, VersionsTable(t.Name)))
	}
	return out, nil
}

func readHeld(d Dialect, t *sink.Table, live *sink.Live) (*Reading, error) {
	r := heldRow(t)
	if err := r.bind(live); err != nil {
		return nil, err
	}
	x := d.impl().over(t, live, keyOf(t))
	var columns []string
	for _, f := range append(r.written(), r.touch...) {
		columns = append(columns, x.read(at(x, f), f))
	}
	out := &Reading{ByKey: r.read(x, r.key, false), Fields: r.reading(),
		All: fmt.Sprintf("select %s from %s as t", strings.Join(columns, ", "), quoteTable(x, t.Name))}
	out.pages(x, r.key)
	if r.beside {
		out.Versions, out.VersionsByKey = x.readVersions(quoteTable(x, VersionsTable(t.Name)))
	}
	return out, nil
}

func (d postgres) byKey(columns, table, on string, params []Param, lock bool) string {
	sql := fmt.Sprintf("select v.hookfold_n, %s\nfrom %s\njoin %s as t on %s", columns, d.ordered(params), table, on)
	if lock {
		sql += "\norder by v.hookfold_n\nfor no key update of t"
	}
	return sql
}

func (sqlite) byKey(columns, table, on string, _ []Param, _ bool) string {
	return fmt.Sprintf("select %s from %s as t where %s", columns, table, on)
}

const instantForm = `'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'`

func (postgres) read(expr string, f field) string {
	base := castType(f.Live)
	switch {
	case strings.HasPrefix(base, "timestamp") && strings.HasSuffix(base, "with time zone"):
		return fmt.Sprintf("case when isfinite(%s) then to_char(%[1]s at time zone 'UTC', %s) else %[1]s::text end", expr, instantForm)
	case strings.HasPrefix(base, "timestamp"):
		return fmt.Sprintf("case when isfinite(%s) then to_char(%[1]s, %s) else %[1]s::text end", expr, instantForm)
	case base == "date":
		return fmt.Sprintf("case when isfinite(%s) then to_char(%[1]s, 'YYYY-MM-DD') else %[1]s::text end", expr)
	case base == "bytea":
		return fmt.Sprintf(`'\x' || encode(%s, 'hex')`, expr)
	case strings.HasSuffix(base, "[]"):
		return fmt.Sprintf("to_json(%s::text[])::text", expr) // the text of char has no blanks at its end
	case f.Type.Kind == merge.Text && base == "text":
		return expr
	}
	return expr + "::text"
}

// read keeps the value as it is stored; the sign keeps drivers from reading
// anything into the declared type.
func (sqlite) read(expr string, _ field) string { return "+" + expr }
