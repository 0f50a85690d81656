package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// mostArguments is what a function of PostgreSQL takes.
const mostArguments = 100

// postgresProcedure writes a function, which a statement calls: select f(…).
func postgresProcedure(t *sink.Table, live, records *sink.Live) (string, error) {
	numbered := postgres{args: map[string]string{}}
	s, err := compileWith(numbered, t, live, records)
	if err != nil {
		return "", err
	}
	of := []Statement{s.Upsert}
	if o := s.Occupants; o != nil {
		of = []Statement{s.Upsert, o.Join, o.Project}
	}
	args := arguments(t, of...)
	if len(args) > mostArguments {
		return "", fmt.Errorf("table %s: a function of PostgreSQL takes %d arguments, and this one would take %d. Run the statement that hookfold sql prints, or install the guard trigger", t.Name, mostArguments, len(args))
	}
	for i, a := range args {
		numbered.args[a.Name] = fmt.Sprintf("$%d", i+1)
	}
	// Once more, now that the places are known.
	if s, err = compileWith(numbered, t, live, records); err != nil {
		return "", err
	}
	var b strings.Builder
	name := QuoteTable(besideTable(t.Name, func(table string) string { return fitName(ProcedurePrefix + table) }))
	fmt.Fprintf(&b, "-- Function that joins a row into table %s for postgres. It may be called by any number of sessions, in any order, as\n"+
		"-- often as one likes; it tells whether anything has changed. Versions are text and compared as bytes; NULL is older than all.\n"+
		"-- Arguments go by name, and what is left out says nothing: select %s(%s);\n", t.Name, name, strings.Join(called(args), ", "))
	for _, a := range args {
		fmt.Fprintf(&b, "--   %s: %s\n", a.Name, a.describe(t))
	}
	b.WriteString(postgresVersionHelp)
	fmt.Fprintf(&b, "-- To remove it: drop function if exists %s;\n\nbegin;\ndrop function if exists %[1]s;\n", name)
	var list []string
	for _, a := range args {
		item := Quote(a.Name) + " text"
		if a.Live != nil {
			item = Quote(a.Name) + " " + castType(a.Live)
		}
		if !a.key {
			item += " default null"
		}
		list = append(list, item)
	}
	body := procedureBody(t, s, args)
	fmt.Fprintf(&b, "create function %s(\n    %s\n) returns boolean\nlanguage plpgsql\nset search_path from current\nas %s;\ncommit;\n", name, strings.Join(list, ",\n    "), dollar(body))
	return b.String(), nil
}

const postgresVersionHelp = `-- A version has one form for all that write the table: its elements, each with / behind it (a time in UTC with nine digits
-- of a second, a whole number n as n + 9223372036854775808 with twenty digits), then 0/ and sixteen hexadecimal digits that
-- tell apart two events of one version. Of a time at and the event's text body it is:
--   to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') || '000Z/0/' || left(encode(sha256(convert_to(body, 'UTF8')), 'hex'), 16)
`

// called shows the first few arguments of a call.
func called(args []argument) []string {
	var out []string
	for _, a := range args {
		if a.key || len(out) < 3 {
			out = append(out, Quote(a.Name)+" => …")
		}
	}
	if len(out) < len(args) {
		out = append(out, "…")
	}
	return out
}

func procedureBody(t *sink.Table, s *Statements, args []argument) string {
	w := &guardBody{guardSyntax: plpgsql{}, t: t}
	place := func(name string) string {
		return fmt.Sprintf("$%d", slices.IndexFunc(args, func(a argument) bool { return a.Name == name })+1)
	}
	run := func(x Statement) {
		if x.SQL == "" {
			return
		}
		w.linef("%s;", x.SQL)
		w.line("get diagnostics hookfold_count = row_count;\nhookfold_written := hookfold_written + hookfold_count;")
	}
	var key []string
	for _, k := range t.Key {
		key = append(key, fmt.Sprintf("t.%s = %s", Quote(k.Name), place(k.Name)))
	}
	there := fmt.Sprintf("exists (select from %s as t where %s)", QuoteTable(t.Name), strings.Join(key, " and "))
	w.b.WriteString("\n#variable_conflict use_column\ndeclare\n    hookfold_count bigint;\n    hookfold_written bigint := 0;\nbegin\n")
	w.depth = 1
	w.judge(args)
	upsert := func() { run(s.Upsert) }
	if o := s.Occupants; o != nil {
		id := place(OccupantColumn)
		var own []string
		for _, p := range s.Upsert.Params {
			if p.Kind != KeyParam {
				own = append(own, place(p.Name)+" is not null")
			}
		}
		w.when(id+" is not null", func() {
			run(o.Join)
			run(o.Project)
			if len(s.Required) > 0 {
				w.when("not "+there, func() {
					w.line("raise exception 'a new row lacks a column that is NOT NULL' using errcode = 'not_null_violation';")
				})
			}
		})
		w.when(strings.Join(append([]string{id + " is null"}, own...), " or "), upsert)
	} else {
		if lacks := lacking(s.Required, t, place); len(lacks) > 0 && s.Update.SQL != "" {
			w.when(strings.Join(lacks, " or "), func() { // an INSERT would be refused before it is seen that the row is there
				run(s.Update)
				w.when(there, func() { w.line("return hookfold_written > 0;") })
			})
		}
		upsert()
	}
	w.line("return hookfold_written > 0;")
	w.b.WriteString("end\n")
	return w.b.String()
}

// judge refuses arguments that cannot be right: a value that is no step of its
// ladder, a value without its version, a version of another form.
func (w *guardBody) judge(args []argument) {
	place := func(name string) string {
		return fmt.Sprintf("$%d", slices.IndexFunc(args, func(a argument) bool { return a.Name == name })+1)
	}
	values := map[string][]string{} // by version
	for _, a := range args {
		if a.Kind != CellParam {
			continue
		}
		c := &w.t.Columns[a.Index]
		switch c.Rule {
		case merge.Latest:
			version := ScopeColumn(c.Scope)
			values[version] = append(values[version], place(c.Name)+" is not null")
		case merge.First:
			values[FirstColumn(c.Name)] = append(values[FirstColumn(c.Name)], place(c.Name)+" is not null")
		case merge.Union: // sorted, and each once, as it is stored
			f := field{Param: a.Param}
			w.when(place(c.Name)+" is not null", func() { w.line(place(c.Name) + " := " + postgres{}.union(place(c.Name), place(c.Name), f) + ";") })
		case merge.Ladder:
			f := field{Param: a.Param, rungs: c.Rungs}
			w.when(fmt.Sprintf("%s is not null and (%s) = 0", place(c.Name), rank(postgres{}, place(c.Name), f)), func() {
				w.line(w.refuse(fmt.Sprintf("concat(%s, %s)", place(c.Name), Literal(fmt.Sprintf(" is not a step of the ladder of column %s (%s)", c.Name, strings.Join(c.Rungs, ", ")))), "23514"))
			})
		}
	}
	for _, a := range args {
		if a.Kind != ScopeParam && a.Kind != FirstParam {
			continue
		}
		v := place(a.Name)
		w.when(v+" is null and ("+strings.Join(values[a.Name], " or ")+")", func() {
			w.line(w.refuse(Literal(a.Name+" is NULL, so it cannot be told whether the row is newer"), "22023"))
		})
		w.when(v+" not like '%/0/________________'", func() {
			w.line(w.refuse("concat("+v+", "+Literal(" has not the form of a version")+")", "22023"))
		})
	}
}

func lacking(required []Required, t *sink.Table, place func(string) string) []string {
	var out []string
	for _, q := range required {
		if q.Column >= 0 {
			out = append(out, place(t.Columns[q.Column].Name)+" is null")
		}
	}
	return out
}
