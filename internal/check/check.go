// Package check tells whether the rows of a config depend on the order in which
// events arrive, and why; whether its expressions fit what providers send; and
// whether its own tests pass. It is pure: it needs neither a database nor a
// journal.
package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/source"
)

// Report is what Run found.
type Report struct {
	// Problems are in the order of the file. With an error among them the plan
	// must not be run.
	Problems *config.Problems
	// Verdicts are in the order of the tables of the config, each table's
	// before those of its columns.
	Verdicts []Verdict
}

// Verdict tells whether a table, or a column, depends on arrival.
type Verdict struct {
	Table string `json:"table"`
	// Column is "" for the table as a whole.
	Column    string `json:"column,omitempty"`
	OrderFree bool   `json:"order_free"`
	// On is what it depends on, "" if it is order-free: "the order of arrival".
	On string `json:"on,omitempty"`
	// Because is the reason, as a clause: "the newest version wins".
	Because string `json:"because"`
	// Do says what would make it order-free, "" if it is.
	Do string `json:"do,omitempty"`

	fault bool // the config has errors
}

// String renders the verdict as a line.
func (v Verdict) String() string {
	name := v.Table
	if v.Column != "" {
		name += "." + v.Column
	}
	if v.OrderFree {
		return fmt.Sprintf("%s: order-free because %s", name, v.Because)
	}
	return fmt.Sprintf("%s: depends on %s because %s; %s", name, v.On, v.Because, v.Do)
}

// Run checks a compiled config. What did not compile is left out.
func Run(p *mapping.Plan) *Report {
	c := &checker{plan: p, problems: &config.Problems{File: p.Config.File}}
	for _, t := range p.Config.Tables {
		table := p.Table(t.Text)
		if table == nil {
			continue
		}
		before := len(c.problems.List)
		c.used(table)
		for _, m := range table.Mappings {
			c.types(m)
			c.scopes(m)
			c.samples(m)
			if m.Broken() {
				continue
			}
			c.versioned(m)
			c.fetched(m)
			c.stable(m)
			c.rescheduled(m)
			c.elements(m)
			c.counters(m)
		}
		c.shapes(table)
		c.clocks(table)
		c.occupants(table)
		c.deletes(table)
		c.verdicts(table, c.problems.List[before:])
	}
	for _, l := range p.Lanes {
		c.lane(l)
	}
	c.problems.Sort()
	return &Report{Problems: c.problems, Verdicts: c.list}
}

type checker struct {
	plan     *mapping.Plan
	problems *config.Problems
	list     []Verdict
}

// add reports a problem, once.
func (c *checker) add(s config.Severity, pos config.Pos, path, format string, args ...any) {
	p := config.Problem{Severity: s, Pos: pos, Path: path, Text: fmt.Sprintf(format, args...)}
	if !slices.Contains(c.problems.List, p) {
		c.problems.List = append(c.problems.List, p)
	}
}

// lane checks a lane as a mapping is checked.
func (c *checker) lane(l *mapping.Lane) {
	m := l.Mapping
	c.types(m)
	c.samples(m)
	if m.Broken() {
		return
	}
	if m.Versioned() {
		c.versioned(m)
	}
	c.stable(m)
}

// types refuses event types that the preset never sends.
func (c *checker) types(m *mapping.Mapping) {
	s := m.Source
	if s.Preset == nil || s.Config.Type != nil {
		return
	}
	if s.Preset.Name == "http" && len(m.Config.Types) > 0 && !m.Takes("") {
		n := m.Config.Types[0]
		c.add(config.Error, n.Pos, n.Path, "events of %s have no type, so that none is taken. Say which it is, as in sources.%s: {type: event.type}, or leave type: out here.", s.Name, s.Name)
	}
	if s.Preset.Types == nil {
		return
	}
	for _, n := range m.Config.Types {
		if slices.ContainsFunc(s.Preset.Types, func(typ string) bool { return expr.Glob(n.Text, typ) }) {
			continue
		}
		c.add(config.Error, n.Pos, n.Path, "%s never sends %s. %s", s.Preset.Name, n.Text, sent(s.Preset, n.Text))
	}
	c.compared(m)
}

// compared warns of a type that an expression compares type with, and that the
// preset never sends.
func (c *checker) compared(m *mapping.Mapping) {
	preset := m.Source.Preset
	for _, e := range m.Exprs() {
		for _, x := range e.Types {
			if !slices.ContainsFunc(preset.Types, func(typ string) bool { return expr.Glob(x.Text, typ) }) {
				c.add(config.Warning, mapping.Place(e.At, x.Line, x.Column), e.At.Path, "%s never sends %s. %s", preset.Name, x.Text, sent(preset, x.Text))
			}
		}
	}
}

// sent says what a preset sends in place of a type that it never does.
func sent(p *source.Preset, typ string) string {
	if near := expr.Nearest(typ, p.Types); near != "" {
		return "Did you mean " + near + "?"
	}
	list := p.Types[:min(len(p.Types), 8)]
	hint := "It sends " + strings.Join(list, ", ")
	if len(list) < len(p.Types) {
		hint += fmt.Sprintf(" and %d more", len(p.Types)-len(list))
	}
	return hint + "."
}

// used warns of what nothing writes.
func (c *checker) used(t *mapping.Table) {
	if len(t.Config.Events) == 0 {
		if !c.isParent(t) {
			c.add(config.Warning, t.Config.Pos, t.Config.Path, "has no events, so nothing is ever written to it.")
		}
		return
	}
	if len(t.Mappings) < len(t.Config.Events) {
		return // what the others set is not known
	}
	for i, col := range t.Table.Table.Columns {
		if col.Rule == merge.Touch || col.Rule == merge.Chain || col.Rule == merge.Flag {
			continue
		}
		if !slices.ContainsFunc(t.Mappings, func(m *mapping.Mapping) bool { return m.Columns[i] != nil || m.Broken() }) {
			if n := column(t, col.Name); n != nil {
				c.add(config.Warning, n.Pos, n.Path, "no mapping sets it.")
			}
		}
	}
}

func (c *checker) isParent(t *mapping.Table) bool {
	for _, x := range c.plan.Config.Tables {
		if slices.ContainsFunc(x.References(), func(r config.Reference) bool { return r.Table.Text == t.Config.Text }) {
			return true
		}
	}
	return false
}

func column(t *mapping.Table, name string) *config.Column {
	for i := range t.Config.Columns {
		if t.Config.Columns[i].Text == name {
			return &t.Config.Columns[i]
		}
	}
	return nil
}

// place names a mapping: events[0] (line 48).
func place(m *mapping.Mapping) string {
	at := m.Config.Path
	if i := strings.LastIndex(at, "."); i >= 0 {
		at = at[i+1:]
	}
	if m.Config.Pos.Line > 0 {
		at += fmt.Sprintf(" (line %d)", m.Config.Pos.Line)
	}
	return at
}

// placeIn names a mapping for a reader of table t.
func placeIn(t *mapping.Table, m *mapping.Mapping) string {
	if m.Table == t {
		return place(m)
	}
	return m.Table.Config.Text + "." + place(m)
}

func and(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
