package mapping

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// compiler compiles one config.
type compiler struct {
	plan     *Plan
	problems *config.Problems
	expr     *expr.Compiler
	// seen shares programs: one expression is compiled once per config and
	// source, and evaluated once per event.
	seen map[*Source]map[string]*Expr
	// fetchOf names the fetch of the mapping that is being compiled: what is read
	// from another one is not the same.
	fetchOf string
}

// Compile compiles the expressions of a config and makes its sources and
// tables. The plan holds what could be compiled, whatever the problems; it must
// not be run if the problems' Err is not nil.
func Compile(cfg *config.Config) (*Plan, *config.Problems) {
	c := &compiler{
		plan:     &Plan{Config: cfg, bySource: map[string]*Source{}},
		problems: &config.Problems{File: cfg.File},
		seen:     map[*Source]map[string]*Expr{},
	}
	var err error
	if c.expr, err = expr.NewCompiler(); err != nil {
		c.problems.Add(config.Error, config.Pos{}, "", "%v", err)
		return c.plan, c.problems
	}
	for _, s := range cfg.Sources {
		c.source(s)
	}
	c.fetches(cfg.Fetches)
	c.tables(cfg.Tables)
	for _, t := range c.plan.Tables {
		for i, m := range t.Config.Events {
			c.mapping(t, i, m)
		}
	}
	for _, l := range cfg.Lanes {
		c.lane(l)
	}
	c.kin()
	c.learnKinds()
	c.problems.Sort()
	return c.plan, c.problems
}

// Expr is a compiled expression of the config.
type Expr struct {
	*expr.Program
	// At is where it stands.
	At config.Expr

	slot int // its place among the results of one event
}

// compile compiles an expression. It returns nil if there is none, or if there
// is a problem, which it reports.
func (c *compiler) compile(s *Source, e config.Expr, allowed expr.Names) *Expr {
	if e.Text == "" {
		return nil
	}
	ofFetch := c.fetchOf + "\x00" + e.Text
	for _, key := range []string{e.Text, ofFetch} {
		if shared := c.seen[s][key]; shared != nil && allowed&expr.ForMapping == expr.ForMapping && shared.Reads&^allowed == 0 {
			return &Expr{Program: shared.Program, At: e, slot: shared.slot}
		}
	}
	p, problems := c.expr.Compile(e.Text, allowed)
	for _, x := range problems {
		c.problems.Add(config.Error, Place(e, x.Line, x.Column), e.Path, "%s", x.Text)
	}
	if p == nil {
		return nil
	}
	x := &Expr{Program: p, At: e}
	if allowed&expr.ForMapping == expr.ForMapping && s != nil {
		if c.seen[s] == nil {
			c.seen[s] = map[string]*Expr{}
		}
		x.slot = s.slots
		s.slots++
		if p.Reads&expr.OfFetch != 0 {
			c.seen[s][ofFetch] = x
		} else {
			c.seen[s][e.Text] = x
		}
		if p.Reads&expr.Received != 0 {
			s.NeedsFirstReceipt = true
		}
	}
	return x
}

func (c *compiler) compileRef(s *Source, e *config.Expr, allowed expr.Names) *Expr {
	if e == nil {
		return nil
	}
	return c.compile(s, *e, allowed)
}

// Place returns where a place in an expression, from line 1 and column 1, stands
// in the file.
func Place(e config.Expr, line, column int) config.Pos {
	if line > 1 {
		return config.Pos{Line: e.Pos.Line + line - 1, Column: column}
	}
	if e.Quoted {
		column++
	}
	return config.Pos{Line: e.Pos.Line, Column: e.Pos.Column + column - 1}
}

// tables makes the tables, in rank order.
func (c *compiler) tables(all []*config.Table) {
	made := map[string]*Table{}
	ranks := map[string]int{}
	var rank func(t *config.Table, path []string) int
	rank = func(t *config.Table, path []string) int {
		if r, ok := ranks[t.Text]; ok || slices.Contains(path, t.Text) {
			return r // the loader reports circles
		}
		r := 0
		for _, ref := range references(t) {
			if parent := c.plan.Config.TableNamed(ref.Table.Text); parent != nil && parent != t {
				r = max(r, rank(parent, append(path, t.Text))+1)
			}
		}
		ranks[t.Text] = r
		return r
	}
	for _, t := range all {
		made[t.Text] = &Table{
			Table:  sink.Table{Table: mergeTable(t), Name: t.Physical.Text, Versions: placement(t), Guard: guard(t), UnsafeUnique: unsafeUnique(t)},
			Target: t.Target.Text, Rank: rank(t, nil), Config: t, ignores: ignored(t),
		}
		if t.Physical.Text == "" {
			made[t.Text].Name = t.Text
		}
		c.plan.Tables = append(c.plan.Tables, made[t.Text])
	}
	slices.SortStableFunc(c.plan.Tables, func(a, b *Table) int {
		if a.Rank != b.Rank {
			return a.Rank - b.Rank
		}
		return strings.Compare(a.Config.Text, b.Config.Text)
	})
}

// ignored tells per column whether an unknown rung says nothing.
func ignored(t *config.Table) []bool {
	var out []bool
	for _, col := range mappedColumns(t) {
		out = append(out, col.UnknownIgnore)
	}
	return out
}

func references(t *config.Table) []config.Reference {
	refs := slices.Clone(t.Parents)
	for _, cols := range [][]config.Column{t.Key, t.Columns} {
		for _, col := range cols {
			if col.References != nil {
				refs = append(refs, *col.References)
			}
		}
	}
	return refs
}

func placement(t *config.Table) sink.Placement {
	if t.Beside {
		return sink.Beside
	}
	return sink.InRow
}

func unsafeUnique(t *config.Table) []string {
	var out []string
	for _, n := range t.UnsafeUnique {
		out = append(out, n.Text)
	}
	return out
}

func guard(t *config.Table) sink.Guard {
	if t.Guarded {
		return sink.ByTrigger
	}
	return sink.ByStatement
}

// mergeTable makes the rule of a table.
func mergeTable(t *config.Table) *merge.Table {
	out := merge.Table{Name: t.Text, Occupied: t.Occupied(), Chained: t.Chained(), Group: t.Group()}
	for _, k := range t.Key {
		out.Key = append(out.Key, merge.KeyColumn{Name: k.Text, Type: k.Type})
	}
	for _, col := range mappedColumns(t) {
		scope := col.Scope.Text
		if col.Rule == merge.Latest && scope == "" {
			scope = merge.RowScope
			if t.VersionsPerColumn {
				scope = col.Text
			}
		}
		out.Columns = append(out.Columns, merge.Column{Name: col.Text, Type: col.Type, Rule: col.Rule, Scope: scope, Rungs: col.Rungs})
	}
	if d := t.OnDelete; d != nil {
		out.OnDelete = d.Rule
		for i := range d.Set {
			shown := &d.Set[i]
			if shown.Flag {
				out.Columns = append(out.Columns, merge.Column{Name: shown.Column.Text, Type: shown.Type, Rule: merge.Flag, OnDelete: &shown.Value})
			} else if at := slices.IndexFunc(out.Columns, func(c merge.Column) bool { return c.Name == shown.Column.Text }); at >= 0 {
				out.Columns[at].OnDelete = &shown.Value
			}
		}
	}
	return merge.NewTable(out)
}

// settable tells whether mappings set a column: others are filled by Hookfold.
func settable(c *merge.Column) bool {
	return c.Rule != merge.Touch && c.Rule != merge.Chain && c.Rule != merge.Flag
}

// mappedColumns returns the columns that are not part of the key; one that is
// only says what the key refers to.
func mappedColumns(t *config.Table) []config.Column {
	return slices.DeleteFunc(slices.Clone(t.Columns), func(col config.Column) bool { return keyPlace(t, col.Text) >= 0 })
}

func keyPlace(t *config.Table, column string) int {
	return slices.IndexFunc(t.Key, func(k config.Column) bool { return k.Text == column })
}

// mapping compiles one mapping of a table.
func (c *compiler) mapping(t *Table, place int, m *config.Mapping) {
	s := c.plan.Source(m.From.Text)
	if s == nil || s.broken {
		return // reported: it is not a source, or the source itself is wrong
	}
	before := len(c.problems.List)
	out := &Mapping{Config: m, Table: t, Source: s, name: stableName(t.Config, place)}
	if out.names = expr.ForMapping; m.Each != nil {
		out.names = expr.ForElement
	}
	if c.fetchOf = m.Fetch.Text; c.fetchOf != "" {
		out.names |= expr.OfFetch
	}
	c.fetch(out, m)
	out.when = c.compileRef(s, m.When, out.names)
	c.wantBool(out.when)
	c.list(out, m)
	out.Key = make([]*Expr, len(t.Key))
	for _, a := range m.Key {
		if k := keyPlace(t.Config, a.Column.Text); k >= 0 {
			out.Key[k] = c.compile(s, a.Expr, out.names)
			c.never(out.Key[k], "part of a key")
			c.fits(out, out.Key[k], t.Config.Key[k].Type, nil)
		}
	}
	if m.Occupant != nil {
		out.OccupantID = c.compile(s, m.Occupant.ID, out.names)
		c.never(out.OccupantID, "an occupant's id")
		out.Since = c.compileRef(s, m.Occupant.Since, out.names)
	}
	c.chain(out, m)
	out.Delete = c.compileRef(s, m.Delete, out.names)
	c.wantBool(out.Delete)
	c.version(out, m)
	c.assignments(out, m)
	c.parents(out)
	for r := range t.Registers() {
		out.versioned = out.versioned || out.Feeds(r)
	}
	out.versioned = out.versioned || slices.ContainsFunc(out.parents, func(p *parentRef) bool { return p.wait == 0 && p.table.Remembers() })
	out.broken = out.incomplete() || slices.ContainsFunc(c.problems.List[before:], func(p config.Problem) bool { return p.Severity == config.Error })
	out.readable()
	t.Mappings = append(t.Mappings, out)
	if !out.broken {
		s.mappings[t.Target] = append(s.mappings[t.Target], out)
	}
}

// stableName names a mapping in the hash of its versions, so that a mapping
// added above it does not change it: table, source, types and, where that names
// several, its place among them.
func stableName(t *config.Table, place int) []byte {
	name := func(m *config.Mapping) string {
		var types []string
		for _, typ := range m.Types {
			types = append(types, typ.Text)
		}
		return fmt.Sprintf("%s|%s|%s", t.Text, m.From.Text, strings.Join(types, ","))
	}
	same := 0
	for _, m := range t.Events[:place] {
		if name(m) == name(t.Events[place]) {
			same++
		}
	}
	return fmt.Appendf(nil, "%s|%d", name(t.Events[place]), same)
}

func (c *compiler) wantBool(e *Expr) {
	if e == nil {
		return
	}
	if e.Kind != expr.KindBool && e.Kind != expr.KindAny || e.MaybeUnset {
		c.fail(e, "gives %s, and has to be true or false", kindWord(e))
	}
	if e.MaybeAbsent {
		c.fail(e, "may be absent, and has to be true or false. Write .orValue(false) after it.")
	}
}

func kindWord(e *Expr) string {
	if e.MaybeUnset {
		return "unset"
	}
	return string(e.Kind)
}

// never refuses unset where a value has to be.
func (c *compiler) never(e *Expr, what string) {
	if e != nil && e.MaybeUnset {
		c.fail(e, "unset is not allowed in %s", what)
	}
}

func (c *compiler) fail(e *Expr, format string, args ...any) {
	c.problems.Add(config.Error, e.At.Pos, e.At.Path, format, args...)
}

func (c *compiler) version(out *Mapping, m *config.Mapping) {
	given, byDefault := m.Version, "time"
	if out.Fetch != nil && len(given) == 0 {
		given, byDefault = out.Fetch.version, "fetched_at"
	}
	out.VersionGiven = len(given) > 0 || byDefault != "time"
	if len(given) == 0 {
		given = []config.Expr{{Text: byDefault, Pos: m.Pos, Path: m.Path + ".version"}}
	}
	for _, e := range given {
		names := out.names
		if m.Replaces != nil {
			names = out.whole() // a complete list has one version
		}
		x := c.compile(out.Source, e, names)
		if x == nil {
			continue
		}
		c.never(x, "a version")
		part := &VersionPart{Expr: x, position: strings.TrimSpace(e.Text) == "position"}
		switch {
		case part.position || x.Kind == expr.KindNumber:
			part.Kind = merge.IntComponent
		case x.Kind == expr.KindTime || x.Kind == expr.KindText: // a text in a version must be a time
			part.Kind = merge.TimeComponent
		case x.Kind == expr.KindAny || x.Kind == expr.KindNull:
		default:
			c.fail(x, "is %s; a version is made of times and whole numbers", x.Kind)
		}
		out.Version = append(out.Version, part)
	}
}

func (c *compiler) assignments(out *Mapping, m *config.Mapping) {
	t := out.Table
	out.Columns = make([]*Assignment, len(t.Columns))
	for _, a := range m.Set {
		i := t.Column(a.Column.Text)
		if i < 0 || !settable(&t.Columns[i]) {
			continue // reported: it is not a column, or not one to be set
		}
		out.Columns[i] = &Assignment{At: a.Column, Expr: c.compile(out.Source, a.Expr, out.names)}
		if t.Columns[i].Rule != merge.Count {
			c.fits(out, out.Columns[i].Expr, t.Columns[i].Type, &t.Columns[i])
		}
	}
	if m.Rest != nil {
		out.rest = c.compile(out.Source, *m.Rest, out.names)
		c.never(out.rest, "set.\"*\"")
	}
	for i, col := range t.Columns {
		if m.Rest != nil && out.Columns[i] == nil && settable(&t.Columns[i]) {
			out.Columns[i] = &Assignment{At: config.Name{Text: col.Name, Pos: m.Rest.Pos, Path: m.Rest.Path}, Rest: true, Expr: out.rest}
		}
		if out.Columns[i] != nil {
			c.counter(out, &t.Columns[i], out.Columns[i])
		}
	}
}
