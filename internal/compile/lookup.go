package compile

import (
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Lookup selects the keys of rows that have a row's values in some columns. It
// gives the parts of the key, after the place of the parameters on PostgreSQL.
// It has no SQL if the table does not map all of these columns.
func Lookup(d Dialect, t *sink.Table, live *sink.Live, columns []string) Statement {
	x := d.impl()
	var on []string
	var params []Param
	for _, name := range columns {
		f, ok := columnOf(t, live, name)
		if !ok {
			return Statement{}
		}
		f.n = len(params) + 1
		params = append(params, f.Param)
		on = append(on, same(x, at(x, f), x.matched(f), f))
	}
	var shown []string
	for _, k := range t.Key {
		f, ok := columnOf(t, live, k.Name)
		if !ok {
			return Statement{}
		}
		shown = append(shown, x.read(at(x, f), f))
	}
	return Statement{SQL: x.byKey(strings.Join(shown, ", "), quoteTable(x, t.Name), strings.Join(on, " and "), params, false), Params: params}
}

// Park sets columns of rows to NULL, by key.
func Park(d Dialect, t *sink.Table, live *sink.Live, columns []string) Statement {
	x := d.impl().over(t, live, keyOf(t))
	var exprs, on []string
	var set []assignment
	var params []Param
	for _, k := range t.Key {
		f, ok := columnOf(t, live, k.Name)
		if !ok {
			return Statement{}
		}
		f.n = len(params) + 1
		params = append(params, f.Param)
		exprs = append(exprs, x.matched(f)+" as "+place(f))
		on = append(on, same(x, at(x, f), placed(f), f))
	}
	for _, name := range columns {
		set = append(set, assignment{name, "null"})
	}
	return Statement{SQL: x.update(&update{table: quoteTable(x, t.Name), set: set, from: x.excluded(exprs, params), on: strings.Join(on, " and ")}), Params: params}
}

// columnOf is a column of a table as it is written.
func columnOf(t *sink.Table, live *sink.Live, name string) (field, bool) {
	f := field{scope: -1}
	for i, k := range t.Key {
		if strings.EqualFold(k.Name, name) {
			f.Param = Param{Kind: KeyParam, Index: i, Name: k.Name, Type: k.Type}
		}
	}
	for i := range t.Columns {
		if c := &t.Columns[i]; f.Name == "" && strings.EqualFold(c.Name, name) && c.Rule != merge.Touch {
			f.Param = Param{Kind: CellParam, Index: i, Name: c.Name, Type: c.Type}
		}
	}
	return f, f.Name != "" && bindField(&f, t.Name, live) == nil
}

// ValuesOf gives the texts that a row has in columns, and false if any of them
// is not set, is NULL or is not mapped.
func ValuesOf(t *sink.Table, live *sink.Live, r *merge.Row, columns []string) ([]string, bool) {
	var out []string
	for _, name := range columns {
		f, ok := columnOf(t, live, name)
		if !ok {
			return nil, false
		}
		s, ok := f.Of(r)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}
