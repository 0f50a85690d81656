package compile

import (
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/sink"
)

// postgresGuard writes the trigger for PostgreSQL 13 and later.
//
// The function's row that comes is called excluded and the stored one t, as in
// the upsert, so both are made of the same conditions. An INSERT runs the
// trigger on the row that is proposed and then, if the key is there, again as an
// UPDATE. The first run leaves hookfold.upsert for the second, so that an upsert
// is told from an UPDATE by a person; a statement trigger takes it away.
func postgresGuard(t *sink.Table, r *relation, live *sink.Live) *Guard {
	g := &Guard{Mark: guardMark + rules(t)}
	g.postgres(t.Name, r, postgresBody(newGuardBody(postgres{}, plpgsql{}, t, r, live)))
	return g
}

// postgres puts a function and its triggers on a table.
func (g *Guard) postgres(name string, r *relation, body string) {
	table, function := QuoteTable(name), guardNamed(name, "")
	g.Parts = append(g.Parts, GuardPart{Triggers: []sink.Trigger{{Name: guardTrigger, Body: body, Enabled: true, Before: true}, {Name: guardDone, Body: body, Enabled: true}}})
	g.function(function, body)
	g.trigger(table, guardTrigger, "before insert or update", "row", function)
	g.trigger(table, guardDone, "after insert", "statement", function)
	g.Remove = append(g.Remove, "drop function if exists "+function+"()")
	if versions := append(r.scopes[:len(r.scopes):len(r.scopes)], r.firsts...); len(versions) > 0 {
		g.Parts[len(g.Parts)-1].Marked = versions[0].Name
		comment := fmt.Sprintf("comment on column %s.%s is ", table, Quote(versions[0].Name))
		g.Install = append(g.Install, comment+Literal(g.Mark))
		g.Remove = append(g.Remove, comment+"null")
	}
}

// guardNamed names a function of a table's guard.
func guardNamed(table, what string) string {
	return QuoteTable(besideTable(table, func(name string) string { return fitName(guardFunction + name + what) }))
}

func (g *Guard) function(name, body string) {
	g.Install = append(g.Install, "create or replace function "+name+"() returns trigger\nlanguage plpgsql\nset search_path from current\nas "+dollar(body))
}

func (g *Guard) trigger(table, name, when, each, function string) {
	drop := fmt.Sprintf("drop trigger if exists %s on %s", name, table)
	g.Install = append(g.Install, drop, fmt.Sprintf("create trigger %s %s on %s for each %s execute function %s()", name, when, table, each, function))
	g.Remove = append(g.Remove, drop)
}

// plpgsql is the language of functions. The row that comes is called excluded,
// and columns are always quoted, since it has reserved words of its own.
type plpgsql struct{}

func (plpgsql) comes(name string) string { return "excluded." + always(name) }
func (plpgsql) was(name string) string   { return "t." + always(name) }

func (x plpgsql) assign(name, expr string) string { return x.comes(name) + " := " + expr + ";" }

func (plpgsql) given() string { return "hookfold_set is not null" }

func (plpgsql) names(list []string, all bool) string {
	op := "&&"
	if all {
		op = "@>"
	}
	return "hookfold_set " + op + " array[" + quotedTexts(list) + "]::text[]"
}

func (plpgsql) elseif() string { return "elsif" }

func (plpgsql) refuse(text, state string) string {
	return fmt.Sprintf("raise exception using errcode = '%s', message = %s;", state, text)
}

func always(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func quotedTexts(items []string) string {
	out := make([]string, len(items))
	for i, x := range items {
		out[i] = Literal(x)
	}
	return strings.Join(out, ", ")
}

const guardSet = `hookfold_set := case when current_setting('hookfold.set', true) like '{%' then current_setting('hookfold.set', true)::text[]
    else string_to_array(nullif(replace(current_setting('hookfold.set', true), ' ', ''), ''), ',') end;`

// postgresBody writes the body of the function.
func postgresBody(w *guardBody) string {
	w.b.WriteString("\ndeclare\n")
	w.depth = 1
	w.line("excluded alias for new;\nt alias for old;\nhookfold_set text[];")
	if marks(w.t) {
		w.line(markDeclarations)
	}
	w.b.WriteString("begin\n")
	w.when("tg_level = 'STATEMENT'", func() {
		w.line("perform set_config('hookfold.upsert', '', true);\nreturn null;")
	})
	w.when("current_setting('hookfold.guard', true) = 'off'", func() { w.line("return new;") })
	w.line(guardSet)
	w.when("tg_op = 'INSERT'", func() {
		w.linef("perform set_config('hookfold.upsert', %s, true);", rowText(w, w.in))
		w.meant(w.clear)
		w.fresh()
		if marks(w.t) {
			w.insertMarked()
		}
		w.touched()
		w.line("return new;")
	})
	byHand := "hookfold_set is null and current_setting('hookfold.guard', true) is distinct from 'on'"
	if moved := w.moved(); moved != "" {
		byHand += "\n    and not (" + moved + ")"
	}
	w.linef("if current_setting('hookfold.upsert', true) = %s then", rowText(w, w.at))
	w.line("    perform set_config('hookfold.upsert', '', true);\nelsif " + byHand + " then\n    return new; -- a person's UPDATE\nend if;")
	w.meant(w.keep)
	w.join()
	w.show()
	if marks(w.t) {
		w.updateMarked()
	}
	w.touch()
	for _, c := range w.live.Columns {
		if c.Generated { // not computed yet
			w.line(w.was(c.Name) + " := " + w.comes(c.Name) + ";")
		}
	}
	w.when("new operator(pg_catalog.*=) old", func() { w.line("return null;") })
	w.line("return new;")
	w.b.WriteString("end\n")
	return w.b.String()
}

// rowText names a row by its table and key.
func rowText(w *guardBody, of func(field) string) string {
	var key []string
	for _, f := range w.r.key {
		key = append(key, of(f))
	}
	return "tg_relid || ' ' || row(" + strings.Join(key, ", ") + ")::text"
}

// dollar writes a text between dollar quotes that it does not hold.
func dollar(text string) string {
	tag := "$hookfold$"
	for n := 2; strings.Contains(text, tag); n++ {
		tag = fmt.Sprintf("$hookfold%d$", n)
	}
	return tag + text + tag
}
