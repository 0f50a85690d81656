package daemon

import (
	"slices"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Limits tells what a config asks of its targets that they cannot do, each at
// its place in the file. It asks no database.
func Limits(plan *mapping.Plan) *config.Problems {
	out := &config.Problems{File: plan.Config.File}
	for _, t := range plan.Tables {
		target := plan.Config.TargetNamed(t.Target)
		if target == nil || target.Kind == "" { // which is a problem of its own
			continue
		}
		refused := engines[target.Kind].refuses(target, &t.Table)
		if t.Guard == sink.ByTrigger {
			refused = append(refused, compile.GuardRefuses(Dialect(target), &t.Table)...)
			if t.Occupied && slices.ContainsFunc(t.Mappings, func(m *mapping.Mapping) bool { return m.Config.IfMissing != merge.Insert }) {
				refused = append(refused, sink.Refusal{Part: sink.Guarding, Text: "the guard trigger shows an occupant's record as soon as it is written, and if_missing wants no row inserted for it. Leave guard out, or if_missing"})
			}
		}
		if len(t.UnsafeUnique) > 0 && Dialect(target) != compile.MySQL {
			refused = append(refused, sink.Refusal{Part: sink.Uniques, Text: "unsafe_unique is for MySQL, which takes any unique index for the key. Here it is not needed: leave it out"})
		}
		for _, r := range refused {
			pos, path := placeOf(t.Config, r)
			out.Add(config.Error, pos, path, "target %s (%s) cannot keep this: %s.", target.Text, target.Kind, r.Text)
		}
	}
	out.Sort()
	return out
}

// placeOf finds what is refused of a table in its config.
func placeOf(t *config.Table, r sink.Refusal) (config.Pos, string) {
	switch r.Part {
	case sink.KeepVersions:
		return t.BesideAt, t.Path + ".keep_versions"
	case sink.Guarding:
		return t.GuardAt, t.Path + ".guard"
	case sink.Uniques:
		return t.UnsafeUnique[0].Pos, t.UnsafeUnique[0].Path
	case sink.DeleteRule:
		if t.OnDelete != nil {
			return t.OnDelete.Pos, t.OnDelete.Path
		}
	case sink.Lists, sink.Chains, sink.Occupants:
		for _, m := range t.Events {
			switch {
			case r.Part == sink.Lists && m.Replaces != nil:
				return m.ReplacesAt, m.Path + ".replaces"
			case r.Part == sink.Chains && m.Chain != nil:
				return m.Chain.Pos, m.Chain.Path
			case r.Part == sink.Occupants && m.Occupant != nil:
				return m.Occupant.Pos, m.Occupant.Path
			}
		}
	case sink.AColumn:
		for _, c := range slices.Concat(t.Key, t.Columns) {
			if c.Text == r.Column {
				return c.Pos, c.Path
			}
		}
	}
	return t.Pos, t.Path
}
