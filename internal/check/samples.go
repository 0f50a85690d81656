package check

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/internal/mapping"
)

// own are the objects of a preset whose members its user defines: samples cannot
// tell what is in them.
var own = map[string][]string{
	"hasura":            {"event.event.data", "event.event.session_variables", "event.table", "event.trigger"},
	"supabase":          {"event.record", "event.old_record"},
	"standard-webhooks": {"event"},
	"stripe":            {"event.data.object.metadata"},
	"calendly":          {"event.payload.tracking", "event.payload.questions_and_answers"},
}

// partial are presets whose samples show only a part of what is sent: what is in
// none of them may be there all the same.
var partial = []string{"stripe", "standard-webhooks", "hasura", "supabase"}

// samples runs the expressions of a mapping over the preset's samples.
func (c *checker) samples(m *mapping.Mapping) {
	samples := m.Samples()
	if m.Source.Preset == nil || len(m.Source.Preset.Samples) == 0 {
		return
	}
	if len(samples) == 0 {
		if len(m.Config.Types) > 0 {
			c.add(config.Note, m.Config.Types[0].Pos, m.Config.Types[0].Path, "there is no sample of %s, so the expressions of this mapping were not tried.", typesOf(m))
		}
		return
	}
	lacking := map[string]bool{}
	for _, e := range m.Exprs() {
		for _, p := range e.Paths {
			c.path(m, e, p, samples, lacking)
		}
	}
	if !m.Broken() {
		c.try(m, samples, lacking)
	}
}

func typesOf(m *mapping.Mapping) string {
	var types []string
	for _, n := range m.Config.Types {
		types = append(types, n.Text)
	}
	return strings.TrimSpace(m.Source.Preset.Name + " " + strings.Join(types, ", "))
}

// path reports a path that is in none of the samples.
func (c *checker) path(m *mapping.Mapping, e *mapping.Expr, p *expr.PathRef, samples []mapping.Sampled, lacking map[string]bool) {
	if p.Root&(expr.Event|expr.Envelope|expr.Body|expr.Item) == 0 || len(p.Steps) == 0 || lacking[p.String()] {
		return
	}
	preset := m.Source.Preset.Name
	certain := false // a sample has the object that lacks the member
	inputs := inputsOf(m, p, samples)
	if len(inputs) == 0 {
		return // the samples have no elements to look at
	}
	for _, in := range inputs {
		at, missing := p.Lookup(in)
		if missing < 0 {
			return
		}
		if at.Kind() == event.Object && at.Len() > 0 && !p.Steps[missing].IsIndex {
			certain = true
		}
	}
	if isOwn(m, p) {
		return
	}
	lacking[p.String()] = true
	severity := config.Warning
	if certain && p.Use == expr.Get && !slices.Contains(partial, preset) {
		severity = config.Error
	}
	hint := ""
	if near := nearest(p, inputs); near != "" {
		hint = fmt.Sprintf(" There is %s.", near)
	} else if p.Use == expr.Get {
		hint = " If it is there only at times, write a ? before the step that may be missing, as in event.?a."
	}
	what := fmt.Sprintf("%d samples", len(samples))
	if p.Root == expr.Item {
		what = fmt.Sprintf("%d elements of %s in the samples", len(inputs), m.Each.Text)
	}
	c.add(severity, mapping.Place(e.At, p.Line, p.Column), e.At.Path, "field %s is in none of the %s of %s.%s", p, what, typesOf(m), hint)
}

// isOwn tells of a path into what the preset's user defines.
func isOwn(m *mapping.Mapping, p *expr.PathRef) bool {
	path := p.String()
	if p.Root == expr.Item { // as deep as its list, as far as that is a path
		if len(m.Each.Paths) != 1 {
			return true
		}
		path = m.Each.Paths[0].String() + strings.TrimPrefix(path, p.Root.String())
	}
	return slices.ContainsFunc(own[m.Source.Preset.Name], func(prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+".") })
}

// inputsOf gives what a path is looked up in: the samples or, for a path from
// item, the elements of their lists.
func inputsOf(m *mapping.Mapping, p *expr.PathRef, samples []mapping.Sampled) []*expr.Input {
	var out []*expr.Input
	for _, s := range samples {
		in := &expr.Input{}
		in.Reset(s.Event, m.Source.Config.Zone)
		if p.Root != expr.Item {
			out = append(out, in)
			continue
		}
		for i, item := range m.Elements(s.Event) {
			element := *in
			element.Item, element.Index = item, i
			out = append(out, &element)
		}
	}
	return out
}

// nearest finds the path that was most likely meant: one that ends in the same
// name and shares the most steps with it, or a similar name in the same object.
func nearest(p *expr.PathRef, inputs []*expr.Input) string {
	last := p.Steps[len(p.Steps)-1].Name
	best, score := "", 0
	for _, in := range inputs {
		root := in.Event.Body
		switch p.Root {
		case expr.Envelope:
			root = in.Event.Envelope
		case expr.Item:
			root = in.Item
		}
		walk(root, p.Root.String(), 0, func(path, name string) {
			shared := sharedSteps(path, p.String())
			points := 0
			switch {
			case name == last:
				points = 100 + shared
			case sameParent(path, p.String()) && expr.Nearest(last, []string{name}) != "":
				points = 50
			}
			if points > score || points == score && points > 0 && len(path) < len(best) {
				best, score = path, points
			}
		})
	}
	return best
}

func walk(j event.JSON, path string, depth int, visit func(path, name string)) {
	if depth > 12 {
		return
	}
	for _, name := range j.Names() {
		visit(path+"."+name, name)
		walk(j.Get(name), path+"."+name, depth+1, visit)
	}
	if j.Len() > 0 && j.Kind() == event.Array {
		walk(j.At(0), path+"[0]", depth+1, visit)
	}
}

func sharedSteps(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	n := 0
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	return n
}

func sameParent(a, b string) bool {
	i, j := strings.LastIndex(a, "."), strings.LastIndex(b, ".")
	return i >= 0 && j >= 0 && a[:i] == b[:j]
}

// try maps the samples, and reports what would make events dead.
func (c *checker) try(m *mapping.Mapping, samples []mapping.Sampled, lacking map[string]bool) {
	type failure struct {
		column, reason, sample string
		count                  int
	}
	failures := map[string]*failure{}
	wanted := 0
	for _, s := range samples {
		faults, ok := m.Try(s.Event)
		if !ok {
			continue
		}
		wanted++
		seen := map[string]bool{}
		for _, f := range faults {
			if known(f.Reason, lacking) || seen[f.Column] {
				continue
			}
			seen[f.Column] = true
			if failures[f.Column] == nil {
				failures[f.Column] = &failure{column: f.Column, reason: f.Reason, sample: s.Name}
			}
			failures[f.Column].count++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(failures)) {
		f := failures[name]
		pos, path := placeOf(m, f.column)
		severity := config.Warning
		if f.count == wanted && certain(m, f.column) {
			severity = config.Error
		}
		c.add(severity, pos, path, "%s would be dead (%d of %d samples that this mapping takes): %s", f.sample, f.count, wanted, f.reason)
	}
}

var noSuchField = regexp.MustCompile(`^(?:[^:]{1,60}: )*no such field: (\S+) has no (\S+?)(?:\. Has .*)?$`)

// known tells whether a fault is that of a path that has been reported.
func known(reason string, lacking map[string]bool) bool {
	m := noSuchField.FindStringSubmatch(reason)
	if m == nil {
		return false
	}
	step := m[1] + "." + m[2]
	for path := range lacking {
		if path == step || strings.HasPrefix(path, step+".") || strings.HasPrefix(path, step+"[") {
			return true
		}
	}
	return false
}

// certain tells whether what all samples are dead of is so for every event: the
// column's expression reads nothing that the preset's user defines.
func certain(m *mapping.Mapping, column string) bool {
	if slices.Contains(partial, m.Source.Preset.Name) {
		return false
	}
	e := exprOf(m, column)
	return e != nil && !slices.ContainsFunc(e.Paths, func(p *expr.PathRef) bool { return isOwn(m, p) })
}

// exprOf returns the expression of a column or a part of the key, or nil.
func exprOf(m *mapping.Mapping, column string) *mapping.Expr {
	for i, a := range m.Columns {
		if a != nil && !a.Rest && m.Table.Columns[i].Name == column {
			return a.Expr
		}
	}
	for i, k := range m.Table.Key {
		if k.Name == column {
			return m.Key[i]
		}
	}
	return nil
}

func placeOf(m *mapping.Mapping, column string) (config.Pos, string) {
	for i, a := range m.Columns {
		if a != nil && a.Expr != nil && m.Table.Table.Table.Columns[i].Name == column {
			return a.Expr.At.Pos, a.Expr.At.Path
		}
	}
	if e := exprOf(m, column); e != nil {
		return e.At.Pos, e.At.Path
	}
	return m.Config.Pos, m.Config.Path
}
