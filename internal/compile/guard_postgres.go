package compile

import (
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/merge"
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
	body := (&plpgsql{t: t, r: r, live: live, moves: r.moves(postgres{}, in, stored, stored, true)}).body()
	function := besideTable(t.Name, func(name string) string { return fitName(guardFunction + name) })
	name, table := QuoteTable(function), QuoteTable(t.Name)
	drop := func(trigger string) string { return fmt.Sprintf("drop trigger if exists %s on %s", trigger, table) }
	g := &Guard{
		Triggers: []sink.Trigger{{Name: guardTrigger, Body: body, Enabled: true, Before: true}, {Name: guardDone, Body: body, Enabled: true}},
		Install: []string{
			"create or replace function " + name + "() returns trigger\nlanguage plpgsql\nset search_path from current\nas " + dollar(body),
			drop(guardTrigger), drop(guardDone),
			fmt.Sprintf("create trigger %s before insert or update on %s for each row execute function %s()", guardTrigger, table, name),
			fmt.Sprintf("create trigger %s after insert on %s for each statement execute function %s()", guardDone, table, name),
		},
		Remove: []string{drop(guardTrigger), drop(guardDone), "drop function if exists " + name + "()"},
		Mark:   guardMark + rules(t),
	}
	if versions := append(r.scopes[:len(r.scopes):len(r.scopes)], r.firsts...); len(versions) > 0 {
		g.Marked = versions[0].Name
		comment := fmt.Sprintf("comment on column %s.%s is ", table, Quote(g.Marked))
		g.Install = append(g.Install, comment+Literal(g.Mark))
		g.Remove = append(g.Remove, comment+"null")
	}
	return g
}

// plpgsql writes the body of a guard's function.
type plpgsql struct {
	t     *sink.Table
	r     *relation
	live  *sink.Live
	moves []move
	b     strings.Builder
	depth int
}

func (w *plpgsql) line(format string, args ...any) {
	for _, l := range strings.Split(fmt.Sprintf(format, args...), "\n") {
		w.b.WriteString(strings.Repeat("    ", w.depth) + l + "\n")
	}
}

// when writes IF … END IF.
func (w *plpgsql) when(condition string, do func()) {
	w.line("if %s then", condition)
	w.depth++
	do()
	w.depth--
	w.line("end if;")
}

// in and stored name a column of the row that comes and of the stored one.
func in(f field) string     { return incoming(postgres{}, f) }
func stored(f field) string { return at(postgres{}, f) }

// comes and was name a column of the two rows as a target: always quoted, since
// the language has reserved words of its own.
func comes(name string) string { return "excluded." + always(name) }
func was(name string) string   { return "t." + always(name) }

func always(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// keep lets columns stay as they are stored.
func (w *plpgsql) keep(names ...string) {
	for _, n := range names {
		w.line("%s := %s;", comes(n), was(n))
	}
}

func (w *plpgsql) body() string {
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
	w.line("hookfold_set := case when current_setting('hookfold.set', true) like '{%%' then current_setting('hookfold.set', true)::text[]\n" +
		"    else string_to_array(nullif(replace(current_setting('hookfold.set', true), ' ', ''), ''), ',') end;")
	w.when("tg_op = 'INSERT'", w.insert)
	w.line("if current_setting('hookfold.upsert', true) = %s then", w.rowText(stored))
	w.line("    perform set_config('hookfold.upsert', '', true);")
	w.line("elsif %s then", w.byHand())
	w.line("    return new; -- a person's UPDATE\nend if;")
	w.update()
	w.b.WriteString("end\n")
	return w.b.String()
}

// rowText names a row by its table and key.
func (w *plpgsql) rowText(of func(field) string) string {
	var key []string
	for _, f := range w.r.key {
		key = append(key, of(f))
	}
	return "tg_relid || ' ' || row(" + strings.Join(key, ", ") + ")::text"
}

// versions are the version columns.
func (w *plpgsql) versions() []field {
	out := append(append([]field{}, w.r.scopes...), w.r.firsts...)
	for _, f := range w.r.more {
		if f.Kind == SeenParam || f.Kind == DeleteParam {
			out = append(out, f)
		}
	}
	return out
}

// byHand says that an UPDATE is a person's: no version moves.
func (w *plpgsql) byHand() string {
	s := "hookfold_set is null and current_setting('hookfold.guard', true) is distinct from 'on'"
	for _, f := range w.versions() {
		s += "\n    and " + in(f) + " is not distinct from " + stored(f)
	}
	return s
}

// insert writes what is done with a row that is proposed.
func (w *plpgsql) insert() {
	w.line("perform set_config('hookfold.upsert', %s, true);", w.rowText(in))
	w.when("hookfold_set is not null", func() {
		w.meant(func(names ...string) {
			for _, n := range names {
				w.line("%s := null;", comes(n))
			}
		})
	})
	carries := []string{"hookfold_set is not null"}
	for _, f := range w.versions() {
		carries = append(carries, in(f)+" is not null")
	}
	for _, f := range w.r.values {
		d := postgres{}
		switch {
		case f.rule == merge.Ladder:
			w.rungs(f, in(f)+" is not null and ("+strings.Join(carries, " or ")+")")
		case f.rule == merge.Union:
			w.when(in(f)+" is not null", func() { w.line("%s := %s;", comes(f.Name), d.union(in(f), in(f), f)) })
		case f.rule == merge.Latest && f.Live.Default != "":
			w.when(in(w.scopeOf(f))+" is null and "+in(f)+" is null", func() { w.line("%s := %s;", comes(f.Name), d.dflt(f)) })
		}
	}
	if marks(w.t) {
		w.insertMarked()
	}
	w.touch()
	w.line("return new;")
}

// meant writes what is done with columns that hookfold.set does not name: with
// columns of one scope together, since they have one version.
func (w *plpgsql) meant(unset func(names ...string)) {
	for _, s := range w.r.scopes {
		var names []string
		for _, f := range w.r.values {
			if f.rule == merge.Latest && f.scope == s.Index {
				names = append(names, f.Name)
			}
		}
		all := textArray(names)
		w.line("if not hookfold_set && %s then", textArray(append(names, s.Name)))
		w.depth++
		unset(append(names, s.Name)...)
		w.depth--
		if len(names) > 1 {
			w.line("elsif not hookfold_set @> %s then", all)
			w.line("    raise exception 'hookfold.set names only some of %%, which share one version (%s): name all of them or none', %s using errcode = 'invalid_parameter_value';",
				raised(s.Name), Literal(strings.Join(names, ", ")))
		}
		w.line("end if;")
	}
	firsts := w.r.firsts
	for _, f := range w.r.values {
		names := []string{f.Name}
		switch f.rule {
		case merge.Latest, merge.Flag:
			continue
		case merge.First:
			names = append(names, firsts[0].Name)
			firsts = firsts[1:]
		}
		w.when("not hookfold_set && "+textArray(names), func() { unset(names...) })
	}
}

// rungs refuses a value that is no step of a ladder, where a condition holds.
func (w *plpgsql) rungs(f field, condition string) {
	w.when(fmt.Sprintf("%s and not (%s = any (%s))", condition, postgres{}.bytes(in(f), f), textArray(f.rungs)), func() {
		w.line("raise exception '%% is not a step of the ladder of column %s (%s)', %s using errcode = 'check_violation';",
			raised(f.Name), raised(strings.Join(f.rungs, ", ")), in(f))
	})
}

func (w *plpgsql) scopeOf(f field) field {
	for _, s := range w.r.scopes {
		if s.Index == f.scope {
			return s
		}
	}
	return field{}
}

// touch sets the time of the last change; it is the last word on values.
func (w *plpgsql) touch() {
	for _, f := range w.r.touch {
		w.line("%s := %s;", comes(f.Name), postgres{}.now(f))
	}
}

// update writes the join.
func (w *plpgsql) update() {
	w.when("hookfold_set is not null", func() { w.meant(w.keep) })
	for _, f := range w.r.values {
		if f.rule == merge.Ladder {
			w.rungs(f, in(f)+" is distinct from "+stored(f))
		}
	}
	for _, m := range w.moves {
		if len(m.to) == 0 || m.when == "" {
			continue
		}
		var names []string
		plain := true
		for _, a := range m.to {
			names = append(names, a.column)
			plain = plain && a.becomes == "excluded."+Quote(a.column)
		}
		if plain {
			w.when("("+m.when+") is not true", func() { w.keep(names...) })
			continue
		}
		w.line("if %s then", m.when)
		for _, a := range m.to {
			w.line("    %s := %s;", comes(a.column), a.becomes)
		}
		w.line("else")
		w.depth++
		w.keep(names...)
		w.depth--
		w.line("end if;")
	}
	if marks(w.t) {
		w.updateMarked()
	}
	for _, f := range w.r.touch {
		var differ []string
		for _, v := range append(append([]field{}, w.r.values...), w.r.more...) {
			if v.Kind == CellParam || v.Kind == DeletedAtParam {
				differ = append(differ, postgres{}.distinct(in(v), stored(v), v))
			}
		}
		if differ == nil {
			w.keep(f.Name)
			continue
		}
		w.line("%s := case when %s then %s else %s end;", comes(f.Name), strings.Join(differ, "\n    or "), postgres{}.now(f), stored(f))
	}
	for _, c := range w.live.Columns {
		if c.Generated { // not computed yet
			w.line("%s := %s;", was(c.Name), comes(c.Name))
		}
	}
	w.when("new operator(pg_catalog.*=) old", func() { w.line("return null;") })
	w.line("return new;")
}

// dollar writes a text between dollar quotes that it does not hold.
func dollar(text string) string {
	tag := "$hookfold$"
	for n := 2; strings.Contains(text, tag); n++ {
		tag = fmt.Sprintf("$hookfold%d$", n)
	}
	return tag + text + tag
}

func textArray(items []string) string {
	out := make([]string, len(items))
	for i, x := range items {
		out[i] = Literal(x)
	}
	return "array[" + strings.Join(out, ", ") + "]::text[]"
}

// raised writes a text into the format of RAISE.
func raised(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "'", "''"), "%", "%%") }
