package cli

import (
	"context"
	"fmt"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/sink"
)

// target is one database of a plan and the tables that live in it.
type target struct {
	config *config.Target
	sink   sink.Sink
	tables []*mapping.Table
	// runs tells that a lane runs a statement here.
	runs bool
}

// statements are what brings the live schema in line.
func (t *target) statements(ctx context.Context) (out []string, err error) {
	if len(t.tables) > 0 {
		if out, err = t.sink.Plan(ctx, t.sinkTables()); err != nil {
			return nil, err
		}
	}
	if once, ok := t.sink.(sink.Once); ok && t.runs {
		more, err := once.PlanOnce(ctx)
		return append(out, more...), err
	}
	return out, nil
}

func (t *target) sinkTables() []*sink.Table {
	out := make([]*sink.Table, len(t.tables))
	for i, x := range t.tables {
		out[i] = &x.Table
	}
	return out
}

// problem is what is wrong with a target as a whole, at its place in the config.
func (t *target) problem(err error) config.Problem {
	return config.Problem{Severity: config.Error, Pos: t.config.Pos, Path: t.config.Path, Text: err.Error()}
}

// failed is an error of a target with its place in the config.
func (t *target) failed(cfg *config.Config, err error) error {
	return fmt.Errorf("%s:%d:%d: %s: %w", cfg.File, t.config.Pos.Line, t.config.Pos.Column, t.config.Path, err)
}

// targets opens the database of every target that has a table, or in which a
// lane runs a statement. The caller closes them.
func targets(ctx context.Context, plan *mapping.Plan) ([]*target, error) {
	sinks, err := daemon.OpenSinks(ctx, plan)
	if err != nil {
		return nil, err
	}
	var out []*target
	for _, name := range plan.SinkTargets() {
		t := &target{config: plan.Config.TargetNamed(name), sink: sinks[name], runs: plan.RunsIn(name)}
		for _, x := range plan.Tables {
			if x.Target == name {
				t.tables = append(t.tables, x)
			}
		}
		out = append(out, t)
	}
	return out, nil
}

func closeTargets(list []*target) {
	for _, t := range list {
		_ = t.sink.Close() // nothing was left to be written
	}
}
