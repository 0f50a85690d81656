package compile

import (
	"fmt"
	"slices"
	"strings"

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

func lacking(required []Required, t *sink.Table, place func(string) string) []string {
	var out []string
	for _, q := range required {
		if q.Column >= 0 {
			out = append(out, place(t.Columns[q.Column].Name)+" is null")
		}
	}
	return out
}
