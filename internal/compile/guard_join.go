package compile

import (
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// guardSyntax is what the languages of triggers differ in.
type guardSyntax interface {
	// comes and was are a column of the row that comes and of the stored one.
	comes(name string) string
	was(name string) string
	// assign gives a column of the row that comes another value.
	assign(name, expr string) string
	// given tells that the writer names the columns that are meant, and names
	// whether any of a list is among them, or all.
	given() string
	names(list []string, all bool) string
	// elseif is its keyword.
	elseif() string
	// refuse refuses the statement, with a text and a SQLSTATE.
	refuse(text, state string) string
}

// guardBody writes what the guards of all databases have in common.
type guardBody struct {
	guardSyntax
	d    dialect
	t    *sink.Table
	r    *relation
	live *sink.Live
	// shows is nil for a table without occupants, and for that of their records.
	shows *shownBy
	b     strings.Builder
	depth int
}

func newGuardBody(d dialect, s guardSyntax, t *sink.Table, r *relation, live *sink.Live) *guardBody {
	return &guardBody{guardSyntax: s, d: d, t: t, r: r, live: live}
}

func (w *guardBody) in(f field) string { return w.comes(f.Name) }
func (w *guardBody) at(f field) string { return w.was(f.Name) }

func (w *guardBody) line(text string) {
	for _, l := range strings.Split(text, "\n") {
		w.b.WriteString(strings.Repeat("    ", w.depth) + l + "\n")
	}
}

func (w *guardBody) linef(format string, args ...any) { w.line(fmt.Sprintf(format, args...)) }

// when writes IF … END IF, and nothing if there is nothing to be done.
func (w *guardBody) when(condition string, do func()) {
	before := w.b.String()
	w.line("if " + condition + " then")
	begun := w.b.Len()
	w.within(do)
	if w.b.Len() == begun {
		w.b.Reset()
		w.b.WriteString(before)
		return
	}
	w.line("end if;")
}

func (w *guardBody) within(do func()) {
	w.depth++
	do()
	w.depth--
}

// keep lets columns stay as they are stored, and clear says nothing of them.
func (w *guardBody) keep(names ...string) {
	for _, n := range names {
		w.line(w.assign(n, w.was(n)))
	}
}

func (w *guardBody) clear(names ...string) {
	for _, n := range names {
		w.line(w.assign(n, "null"))
	}
}

// versions are the version columns.
func (w *guardBody) versions() []field {
	out := append(append([]field{}, w.r.scopes...), w.r.firsts...)
	for _, f := range w.r.more {
		if f.Kind == SeenParam || f.Kind == DeleteParam {
			out = append(out, f)
		}
	}
	if w.r.since != nil {
		out = append(out, *w.r.since)
	}
	if w.shows != nil {
		out = append(out, w.shows.versions...)
	}
	return out
}

// moved says that a version differs from the stored one, "" if there is none.
func (w *guardBody) moved() string {
	var out []string
	for _, f := range w.versions() {
		out = append(out, w.d.distinct(w.in(f), w.at(f), f))
	}
	return strings.Join(out, "\n        or ")
}

func (w *guardBody) scopeOf(f field) field {
	for _, s := range w.r.scopes {
		if s.Index == f.scope {
			return s
		}
	}
	return field{}
}

// meant writes what is done with columns that the writer does not name: with
// those of one scope together, since they have one version.
func (w *guardBody) meant(unset func(names ...string)) {
	w.when(w.given(), func() {
		for _, s := range w.r.scopes {
			var names []string
			for _, f := range w.r.values {
				if f.rule == merge.Latest && f.scope == s.Index {
					names = append(names, f.Name)
				}
			}
			all := append(names[:len(names):len(names)], s.Name)
			w.line("if not " + w.names(all, false) + " then")
			w.within(func() { unset(all...) })
			if len(names) > 1 {
				w.linef("%s not %s then", w.elseif(), w.names(names, true))
				w.within(func() {
					w.line(w.refuse(w.d.literal(fmt.Sprintf("hookfold.set names only some of %s, which share the version %s: name all of them or none", strings.Join(names, ", "), s.Name)), "22023"))
				})
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
			w.when("not "+w.names(names, false), func() { unset(names...) })
		}
	})
}

// fresh writes what is done with the values of a row that is proposed.
func (w *guardBody) fresh() {
	carries := []string{w.given()}
	for _, f := range w.versions() {
		carries = append(carries, w.in(f)+" is not null")
	}
	for _, f := range w.r.values {
		in := w.in(f)
		switch {
		case f.rule == merge.Ladder:
			w.rungs(f, in+" is not null and ("+strings.Join(carries, " or ")+")")
		case f.rule == merge.Union:
			w.when(in+" is not null", func() { w.line(w.assign(f.Name, w.d.union(in, in, f))) })
		case f.rule == merge.Latest && f.Live.Default != "":
			w.when(w.in(w.scopeOf(f))+" is null and "+in+" is null", func() { w.line(w.assign(f.Name, w.d.dflt(f))) })
		}
	}
}

// touched sets the times of the last change of a new row.
func (w *guardBody) touched() {
	for _, f := range w.r.touch {
		w.line(w.assign(f.Name, w.d.now(f)))
	}
}

// rungs refuses a value that is no step of a ladder, where a condition holds.
func (w *guardBody) rungs(f field, condition string) {
	w.when(condition+" and ("+rank(w.d, w.in(f), f)+") = 0", func() {
		text := w.d.literal(fmt.Sprintf(" is not a step of the ladder of column %s (%s)", f.Name, strings.Join(f.rungs, ", ")))
		w.line(w.refuse("concat("+w.in(f)+", "+text+")", "23514"))
	})
}

// join writes the join of the stored row and the one that comes.
func (w *guardBody) join() {
	for _, f := range w.r.values {
		if f.rule == merge.Ladder {
			w.rungs(f, w.in(f)+" is not null and "+w.d.distinct(w.in(f), w.at(f), f))
		}
	}
	for _, m := range w.r.moves(w.d, w.in, w.at, w.at, true) {
		if len(m.to) == 0 || m.when == "" {
			continue
		}
		var names []string
		plain := true
		for _, a := range m.to {
			names = append(names, a.column)
			plain = plain && a.becomes == w.comes(a.column)
		}
		if plain {
			w.when("("+m.when+") is not true", func() { w.keep(names...) })
			continue
		}
		w.line("if (" + m.when + ") then")
		w.within(func() {
			for _, a := range m.to {
				w.line(w.assign(a.column, a.becomes))
			}
		})
		w.line("else")
		w.within(func() { w.keep(names...) })
		w.line("end if;")
	}
}

// show keeps what a row shows of an occupant, unless a newer record comes.
func (w *guardBody) show() {
	if w.shows != nil {
		w.when("("+w.shows.newer+") is not true", func() { w.keep(w.shows.columns...) })
	}
}

// touch sets the times of the last change of a row that has been joined.
func (w *guardBody) touch() {
	var differ []string
	for _, v := range append(append([]field{}, w.r.values...), w.r.more...) {
		if v.Kind == CellParam || v.Kind == DeletedAtParam {
			differ = append(differ, w.d.distinct(w.in(v), w.at(v), v))
		}
	}
	for _, f := range w.r.touch {
		if differ == nil {
			w.keep(f.Name)
			continue
		}
		w.line(w.assign(f.Name, fmt.Sprintf("case when %s then %s else %s end", strings.Join(differ, "\n    or "), w.d.now(f), w.at(f))))
	}
}
