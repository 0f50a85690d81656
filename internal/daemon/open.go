package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal/sqlite"
	"github.com/hookfold/hookfold/sink"
)

// OpenJournal opens the journal of a config: sqlite:file, from the working
// directory.
func OpenJournal(cfg *config.Config, access sqlite.Access) (*sqlite.Journal, error) {
	file, ok := strings.CutPrefix(cfg.Journal.URL.Text, "sqlite:")
	if !ok || file == "" {
		return nil, fmt.Errorf("open journal: %q is not a journal Hookfold has; write sqlite:hookfold.db", cfg.Journal.URL.Text)
	}
	return sqlite.Open(strings.TrimPrefix(file, "//"), sqlite.Options{Access: access, MaxBytes: cfg.Journal.MaxSize})
}

// OpenSinks makes the sink of every target that has a table, or in which a lane
// runs a statement. No target needs to be up.
func OpenSinks(ctx context.Context, plan *mapping.Plan) (map[string]sink.Sink, error) {
	sinks := map[string]sink.Sink{}
	for _, name := range plan.SinkTargets() {
		t := plan.Config.TargetNamed(name)
		s, err := engines[t.Kind].open(ctx, t, pipeline.Tables(plan, name))
		if err != nil {
			for _, open := range sinks {
				err = errors.Join(err, open.Close())
			}
			return nil, fmt.Errorf("target %s: %w", name, err)
		}
		sinks[name] = s
	}
	return sinks, nil
}
