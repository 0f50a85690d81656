package postgrest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/sink"
)

// function is a generated function of the database. Its name ends in a hash of
// what it does.
type function struct {
	name       string
	definition string // the whole statement
	args       string // the types of its arguments
}

// named makes a function of its text, in which %[1]s is the name.
func newFunction(schema, stem, args, text string) function {
	sum := sha256.Sum256([]byte(args + text))
	name := stem + "_" + hex.EncodeToString(sum[:6])
	return function{name: name, args: args, definition: strings.Replace(text, "%[1]s", compile.Quote(schema)+"."+compile.Quote(name), 1)}
}

// stopped is the SQLSTATE with which the function stops because rows lack
// columns that are NOT NULL.
const stopped = "HF001"

// The lists of a group, by what is done with their rows.
const (
	listUpsert  = "upsert"  // written, whether they are there or not
	listStubs   = "stubs"   // inserted with their key alone, if they are not there
	listPartial = "partial" // lack what a new row needs: only written if there
	listGuests  = "guests"  // may not insert
	listParts   = "parts"   // records of occupants
	listShown   = "shown"   // shows those records in the table
	listVisits  = "visits"  // records of occupants that may not insert a row
)

const writerHead = `create or replace function %[1]s(hookfold_group json) returns json
language plpgsql volatile security invoker
set search_path = %s
as $hookfold$
#variable_conflict use_column
declare
    hookfold_rows json;
    hookfold_places bigint[];
    hookfold_count bigint;
    hookfold_written bigint := 0;
    hookfold_out jsonb := '{}';
begin
`

// writer writes the function that writes the rows of one table.
func writer(schema string, t *sink.Table, live, records *sink.Live) (function, *compile.Statements, error) {
	s, err := compile.CompileJSON(t, live, records, "hookfold_rows")
	if err != nil {
		return function{}, nil, err
	}
	w := &body{}
	if o := s.Occupants; o != nil {
		w.list(listVisits, "Occupants of rows that are not inserted: which rows are there.", func() {
			w.there(s.Lock, listVisits)
			w.present(listVisits)
		})
		w.list(listParts, "Join the records of occupants.", func() { w.count(o.Join) })
		w.saved(listVisits, func() { w.count(o.Join) })
		w.list(listShown, "Show the newest record of each key.", func() {
			if len(s.Required) > 0 {
				w.run(o.Reproject)
			}
			w.run(o.Project)
			if len(s.Required) > 0 {
				w.there(s.Lock, listShown)
			}
		})
		w.saved(listVisits, func() { w.run(o.Reproject) })
	}
	w.list(listUpsert, "Rows that have all that a new row needs.", func() { w.count(s.Upsert) })
	w.list(listStubs, "Rows of which nothing is known but the key.", func() { w.count(s.Stub) })
	if len(s.Required) > 0 {
		w.list(listPartial, "Rows that lack what a new row needs.", func() {
			w.there(s.Lock, listPartial)
			w.count(s.Update)
			if live.FillsRows { // a trigger may give what they lack
				w.line("    hookfold_out := hookfold_out - '" + listPartial + "';")
				w.pick("<> all")
				w.count(s.Upsert)
			}
		})
	}
	w.list(listGuests, "Rows that are only written if they are there.", func() {
		w.there(s.Lock, listGuests)
		w.present("")
		w.count(s.Update)
	})
	head := strings.Replace(writerHead, "%s", searchPath(schema), 1)
	text := head + w.b.String() + "    return hookfold_out || jsonb_build_object('written', hookfold_written);\nend\n$hookfold$"
	return newFunction(schema, "hookfold_rows_"+stem(t), "json", text), s, nil
}

func searchPath(schema string) string {
	path := compile.Quote(schema)
	if schema != "extensions" { // where Supabase keeps the types of extensions
		path += ", extensions"
	}
	return path + ", pg_temp"
}

var odd = regexp.MustCompile(`[^a-z0-9]+`)

// stem makes a table's name fit for a part of a function's.
func stem(t *sink.Table) string {
	s := strings.Trim(odd.ReplaceAllString(strings.ToLower(t.Name), "_"), "_")
	return s[:min(len(s), 32)]
}

// body writes the body of a writer.
type body struct{ b strings.Builder }

func (w *body) line(s string) { w.b.WriteString("    " + s + "\n") }

// list writes what is done with a list of the group.
func (w *body) list(name, comment string, do func()) {
	w.line("-- " + comment)
	w.line("hookfold_rows := hookfold_group -> '" + name + "';")
	w.line("if hookfold_rows is not null then")
	do()
	w.line("end if;")
}

// saved is list for those rows of a list that were found to be there.
func (w *body) saved(name string, do func()) {
	w.line("hookfold_rows := hookfold_out -> 'there_" + name + "';")
	w.line("if hookfold_rows is not null then")
	do()
	w.line("end if;")
}

func (w *body) statement(s string) {
	w.b.WriteString("        " + strings.ReplaceAll(s, "\n", "\n        ") + ";\n")
}

// run runs a statement, and count also counts the rows that it writes.
func (w *body) run(s compile.Statement) {
	if s.SQL != "" {
		w.statement(s.SQL)
	}
}

func (w *body) count(s compile.Statement) {
	if s.SQL == "" {
		return
	}
	w.statement(s.SQL)
	w.line("    get diagnostics hookfold_count = row_count;")
	w.line("    hookfold_written := hookfold_written + hookfold_count;")
}

// there locks the rows that are there, and answers the places of the others.
func (w *body) there(lock compile.Statement, list string) {
	w.statement("hookfold_places := array(select l.place from (\n    " + strings.ReplaceAll(lock.SQL, "\n", "\n    ") + "\n) as l (place, empty))")
	w.statement("hookfold_out := hookfold_out || jsonb_build_object('" + list + "', array(\n    select n from generate_series(1, json_array_length(hookfold_rows)) as n where n <> all (hookfold_places)))")
}

// present leaves the rows that are there, and saves them for later.
func (w *body) present(save string) {
	w.pick("= any")
	if save != "" {
		w.statement("hookfold_out := hookfold_out || jsonb_build_object('there_" + save + "', hookfold_rows)")
	}
}

func (w *body) pick(places string) {
	w.statement("hookfold_rows := (select coalesce(json_agg(e.item order by e.place), '[]') from json_array_elements(hookfold_rows) with ordinality as e (item, place)\n    where e.place " + places + " (hookfold_places))")
}

const applierText = `create or replace function %[1]s(hookfold_batch json) returns json
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
set default_transaction_isolation = 'read committed'
as $hookfold$
declare
    hookfold_group json;
    hookfold_answer json;
    hookfold_answers jsonb := '[]';
    hookfold_lacking bigint := 0;
begin
    for hookfold_group in select e.item from json_array_elements(hookfold_batch) with ordinality as e (item, place) order by e.place loop
        if hookfold_group ->> 'function' !~ '^hookfold_rows_[a-z0-9_]+$' then
            raise exception 'not a function of Hookfold: %', hookfold_group ->> 'function';
        end if;
        execute format('select %I.%I($1)', SCHEMA, hookfold_group ->> 'function') into hookfold_answer using hookfold_group;
        hookfold_answers := hookfold_answers || jsonb_build_array(hookfold_answer::jsonb - 'there_visits');
        hookfold_lacking := hookfold_lacking
            + coalesce(json_array_length(hookfold_answer -> 'partial'), 0) + coalesce(json_array_length(hookfold_answer -> 'shown'), 0);
    end loop;
    if hookfold_lacking > 0 then
        raise exception using errcode = 'STOPPED', message = 'rows lack columns that are NOT NULL', detail = hookfold_answers::text;
    end if;
    return hookfold_answers;
end
$hookfold$`

// applier is the function that writes a batch: it calls those of its tables.
func applier(schema string) function {
	text := strings.NewReplacer("SCHEMA", compile.Literal(schema), "STOPPED", stopped).Replace(applierText)
	return newFunction(schema, "hookfold_apply", "json", text)
}

// inspection is the query that tells live tables and the functions of Hookfold.
// names is the expression of a text[] of names as compile.PostgresName writes
// them.
func inspection(schema, names string) string {
	of := strings.NewReplacer("$1::oid", "r.oid", "-- The columns of one table, in order. $1 is the table's oid.\n", "")
	return fmt.Sprintf(`select json_build_object(
    'functions', (select coalesce(json_agg(p.proname::text order by p.proname::text), '[]') from pg_catalog.pg_proc p
        where p.pronamespace = %s::regnamespace and starts_with(p.proname::text, 'hookfold_')),
    'tables', (select coalesce(json_object_agg(x.name, x.live), '{}') from (
        select n.name, json_build_object('kind', r.kind, 'fills', r.fills,
            'columns', (select json_agg(c) from (
%s
) as c (name, "type", base, internal, "length", "precision", scale, labels, not_null, dflt, generated, "collation")),
            'uniques', (select json_agg(u) from (
%s
) as u (name, columns))) as live
        from unnest(%s) as n (name)
        cross join lateral (
%s
) as r (oid, kind, fills)) as x))`,
		compile.Literal(compile.Quote(schema)), of.Replace(compile.PostgresColumns), of.Replace(compile.PostgresUniques), names,
		strings.Replace(compile.PostgresTable, "$1", "n.name", 1))
}

// inspector is the function that runs inspection.
func inspector(schema string) function {
	text := "create or replace function %[1]s(hookfold_tables text[]) returns json\nlanguage sql stable security invoker\nset search_path = " + searchPath(schema) +
		"\nas $hookfold$\n" + inspection(schema, "hookfold_tables") + "\n$hookfold$"
	return newFunction(schema, "hookfold_inspect", "text[]", text)
}
