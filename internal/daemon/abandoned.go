package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/journal/sqlite"
)

// findAbandoned finds and tells of the consumers of targets that the config does
// not have any more: what they have yet to settle stays in the journal, whatever
// keep and max_size say.
func (d *Daemon) findAbandoned(ctx context.Context, j *sqlite.Journal, targets []string) error {
	names, err := j.Consumers(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		switch {
		case slices.Contains(targets, name), slices.ContainsFunc(d.plan.Lanes, func(l *mapping.Lane) bool { return l.Consumer() == name }), name == noTarget && targets == nil:
		case name == noTarget:
			if err := j.RemoveConsumer(ctx, name); err != nil {
				return err
			}
		default:
			d.abandoned = append(d.abandoned, name)
			what, of := "no table of the config has the target "+name, "target"
			if lane, ok := strings.CutPrefix(name, mapping.LanePrefix); ok {
				what, of = "the config does not have the lane "+lane, "lane"
			}
			d.o.Log.Warn(what+" any more, and the journal keeps all that is not done for it, whatever keep and max_size say. Bring the "+of+" back, or give it up: hookfold forget "+name, of, name)
		}
	}
	return nil
}

// Forget lets the journal of a config forget what is not done for a target that
// no table of the config has any more. The journal must not be in use.
func Forget(ctx context.Context, cfg *config.Config, target string) error {
	for _, t := range cfg.Tables {
		if t.Target.Text == target {
			return fmt.Errorf("forget target %s: the config has it, for table %s", target, t.Text)
		}
	}
	for _, l := range cfg.Lanes {
		if target == mapping.LanePrefix+l.Text {
			return fmt.Errorf("forget %s: the config has the lane %s", target, l.Text)
		}
	}
	j, err := OpenJournal(cfg, sqlite.Owner)
	if err != nil {
		return err
	}
	names, err := j.Consumers(ctx)
	if err == nil && !slices.Contains(names, target) {
		err = fmt.Errorf("forget target %s: the journal does not know it; it knows %v", target, names)
	}
	if err == nil {
		err = j.RemoveConsumer(ctx, target)
	}
	return errors.Join(err, j.Close())
}
