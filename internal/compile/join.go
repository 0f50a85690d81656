package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/merge"
)

// move is what one register of a row does when a row comes in: the columns of a
// scope move together, every other column by itself.
type move struct {
	// when the register moves.
	when string
	// to are its columns and what they become.
	to []assignment
	// value says that a value would change, version that a version would; both
	// presuppose when. version is "" if the register keeps none.
	value, version string
}

type assignment struct{ column, becomes string }

// moves gives the registers of a relation. in gives what comes in, at what is
// stored, and versionOf the stored version of a version field: a column too, or a
// parameter if versions live beside. Where assignments are sequential, each is
// right in whatever state those before it leave the row: one that moves a register
// leaves the conditions of the register's others as they were.
func (r *relation) moves(d dialect, in, at, versionOf func(field) string, keep bool) []move {
	var out []move
	for _, s := range r.scopes {
		var m move
		m.when = d.version(in(s)) + " >= " + d.version("coalesce("+versionOf(s)+", '')")
		var differ []string
		for _, f := range r.values {
			if f.rule == merge.Latest && f.scope == s.Index {
				m.to = append(m.to, assignment{f.Name, in(f)})
				differ = append(differ, d.distinct(in(f), at(f), f))
			}
		}
		m.value = strings.Join(differ, " or ")
		if keep {
			m.to = append(m.to, assignment{s.Name, in(s)})
			m.version = d.distinct(in(s), at(s), s)
		}
		out = append(out, m)
	}
	firsts := r.firsts
	values := r.values
	if r.since != nil {
		values = append(append([]field{}, values...), *r.since)
	}
	for _, f := range values {
		m := move{to: []assignment{{f.Name, in(f)}}, value: d.distinct(in(f), at(f), f)}
		switch f.rule {
		case merge.Latest:
			continue
		case merge.First:
			v := firsts[0]
			firsts = firsts[1:]
			m.when = fmt.Sprintf("%s is not null and (%s is null and %s is null or %s <= %s)",
				in(v), versionOf(v), at(f), d.version(in(v)), d.version(versionOf(v)))
			if keep {
				m.to = append(m.to, assignment{v.Name, in(v)})
				m.version = d.distinct(in(v), at(v), v)
				if d.sequential() { // the condition reads the value while there is no version
					slices.Reverse(m.to)
				}
			}
		case merge.Max:
			m.when = fmt.Sprintf("%s is not null and (%s is null or %s)", in(f), at(f), d.greater(in(f), at(f), f))
			m.value = ""
		case merge.Min:
			m.when = fmt.Sprintf("%s is not null and (%s is null or %s)", in(f), at(f), d.greater(at(f), in(f), f))
			m.value = ""
		case merge.Ladder:
			m.when = fmt.Sprintf("%s is not null and (%s is null or %s > %s)", in(f), at(f), rank(d, in(f), f), rank(d, at(f), f))
			m.value = ""
		case merge.Union:
			both := d.union(at(f), in(f), f)
			m.when = in(f) + " is not null"
			m.to = []assignment{{f.Name, fmt.Sprintf("case when %s is null then %s else %s end", at(f), in(f), both)}}
			m.value = fmt.Sprintf("(%s is null or %s)", at(f), d.distinct(both, at(f), f))
		}
		out = append(out, m)
	}
	return out
}

// incoming and at name a column of the subquery excluded and of the table t.
func incoming(d dialect, f field) string { return "excluded." + d.quote(f.Name) }
func at(d dialect, f field) string       { return "t." + d.quote(f.Name) }

// same says that a column of a key is what comes in.
func same(d dialect, a, b string, f field) string {
	if x, ok := d.(interface {
		same(a, b string, f field) string
	}); ok {
		return x.same(a, b, f)
	}
	return a + " = " + b
}

// place names a field by its place, as no column is that stands beside it, and
// placed is the field in a subquery whose columns are all named so.
func place(f field) string  { return fmt.Sprintf("p%d", f.n) }
func placed(f field) string { return "excluded." + place(f) }

func rank(d dialect, expr string, f field) string {
	var b strings.Builder
	b.WriteString("case " + d.bytes(expr, f))
	for i, rung := range f.rungs {
		fmt.Fprintf(&b, " when %s then %d", d.literal(rung), i+1)
	}
	b.WriteString(" else 0 end")
	return b.String()
}

// changes says that a value, or if versions count a version, would change.
func (m move) changes(versions bool) string {
	differ := m.value
	if versions && m.version != "" {
		if differ != "" {
			differ += " or "
		}
		differ += m.version
	}
	switch {
	case differ == "" && m.value == "" && m.version == "":
		return m.when // a max that moves changes
	case differ == "":
		return ""
	}
	return fmt.Sprintf("%s and (%s)", m.when, differ)
}

// assignments is what a row becomes.
func (r *relation) assignments(d dialect, moves []move, at func(field) string) []assignment {
	var set, touch []assignment
	stay := func(column string) string { return at(field{Param: Param{Name: column}}) }
	for _, m := range moves {
		for _, a := range m.to {
			set = append(set, assignment{a.column, fmt.Sprintf("case when %s then %s else %s end", m.when, a.becomes, stay(a.column))})
		}
	}
	for _, f := range r.touch {
		if c := condition(moves, false); c != "" {
			touch = append(touch, assignment{f.Name, fmt.Sprintf("case when %s\n      then %s else %s end", strings.ReplaceAll(c, "\n", "\n        "), d.now(f), stay(f.Name))})
		}
	}
	if d.sequential() { // as long as nothing has changed
		return append(touch, set...)
	}
	return append(set, touch...)
}

// listed writes the list behind SET.
func listed(d dialect, set []assignment) string {
	var out []string
	for _, a := range set {
		out = append(out, d.quote(a.column)+" = "+a.becomes)
	}
	return strings.Join(out, ",\n    ")
}

// condition says that a row changes: in a value, or if versions count also in a
// version.
func condition(moves []move, versions bool) string {
	var any []string
	for _, m := range moves {
		if c := m.changes(versions); c != "" {
			any = append(any, "("+c+")")
		}
	}
	return strings.Join(any, "\n   or ")
}
