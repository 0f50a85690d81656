package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/hookfold/hookfold/internal/check"
	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// live is what the live databases tell of a config.
type live struct {
	*config.Problems
	// down are the problems of databases that could not be looked at. They are
	// among the problems.
	down []config.Problem
}

// connect compares the tables of a plan with the live databases, and adds to the
// report what only these tell.
func connect(ctx context.Context, plan *mapping.Plan, report *check.Report) (*live, error) {
	list, err := targets(ctx, plan)
	if err != nil {
		return nil, err
	}
	defer closeTargets(list)
	out := &live{Problems: &config.Problems{File: plan.Config.File}}
	for _, target := range list {
		before, reached := len(out.List), true
		for _, t := range target.tables {
			have, err := target.schemas(ctx, &t.Table)
			if err != nil {
				out.unreached(target, err)
				reached = false
				break // the other tables of this database
			}
			report.Contested(t, have.Table)
			for _, p := range compile.Problems(daemon.Dialect(target.config), &t.Table, have, usageOf(plan, t)) {
				severity := config.Error
				if p.Warning {
					severity = config.Warning
				}
				out.Add(severity, t.Config.Pos, "", "table %s (target %s): %s", t.Name, target.config.Text, p.Text)
			}
		}
		if reached {
			target.ownStatements(ctx, plan, out)
		}
		if err := target.migrated(ctx, out.List[before:]); err != nil {
			out.List = append(out.List, target.problem(err))
		}
	}
	out.Sort()
	return out, nil
}

// unreached adds a database that could not be looked at.
func (l *live) unreached(t *target, err error) {
	p := t.problem(err)
	l.down = append(l.down, p)
	l.List = append(l.List, p)
}

// ownStatements adds the statements of lanes that the database cannot run.
func (t *target) ownStatements(ctx context.Context, plan *mapping.Plan, out *live) {
	once, ok := t.sink.(sink.Once)
	if !ok {
		return
	}
	for _, l := range plan.Lanes {
		c := l.Config.SQL
		if c == nil || c.Target.Text != t.config.Text {
			continue
		}
		err := once.CheckOnce(ctx, l.Statement())
		switch {
		case err == nil:
		case sink.ActionOf(err) == sink.Retry:
			out.unreached(t, err)
			return
		default:
			out.Add(config.Error, c.Statement.Pos, c.Statement.Path, "%v. Make what it needs, or correct it; until then the lane's events wait", err)
		}
	}
}

// migrated tells what of a migration has not been run, where nothing else is
// found to be wrong.
func (t *target) migrated(ctx context.Context, found []config.Problem) error {
	if slices.ContainsFunc(found, func(p config.Problem) bool { return p.Severity == config.Error }) {
		return nil
	}
	statements, err := t.statements(ctx)
	if err != nil || len(statements) == 0 {
		return err
	}
	return errors.New(unapplied(statements))
}

// schemas reads the live schemas that concern a table.
func (target *target) schemas(ctx context.Context, t *sink.Table) (compile.Schemas, error) {
	return compile.Look(daemon.Dialect(target.config), t, func(name string) (*sink.Live, error) {
		return target.sink.Inspect(ctx, &sink.Table{Table: t.Table, Name: name})
	})
}

// usageOf tells what the mappings of a plan do with a table.
func usageOf(plan *mapping.Plan, t *mapping.Table) compile.Usage {
	use := compile.Usage{Unset: make([]bool, len(t.Columns))}
	for _, m := range t.Mappings {
		use.Inserts = use.Inserts || m.Config.IfMissing == merge.Insert
		for i, a := range m.Columns {
			use.Unset[i] = use.Unset[i] || a == nil || a.Expr.MaybeUnset || a.Expr.MaybeAbsent
		}
	}
	use.Stubs = isParent(plan.Config, t.Config.Text)
	return use
}

// isParent tells whether rows of a table are made for want of a parent.
func isParent(cfg *config.Config, name string) bool {
	for _, t := range cfg.Tables {
		if slices.ContainsFunc(t.References(), func(r config.Reference) bool { return r.Table.Text == name }) {
			return true
		}
	}
	return false
}

// brokenRules adds the tables whose rows were written by rules that the config
// does not have any more, as the journal remembers. No journal remembers none.
func brokenRules(ctx context.Context, plan *mapping.Plan, found *live) error {
	j, err := daemon.OpenJournal(plan.Config, reader)
	if err != nil {
		return nil // it is not there yet, or serve tells what is wrong with it
	}
	defer j.Close()
	broken, err := daemon.BrokenRules(ctx, plan, j)
	if err != nil {
		return err
	}
	for t, why := range broken {
		found.Add(config.Error, t.Config.Pos, t.Config.Path, "the table is not written until it is rebuilt. %s", why)
	}
	found.Sort()
	return nil
}
