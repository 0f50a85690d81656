package daemon

import (
	"context"
	"fmt"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// trialConnections is how many connections a trial has, so that writers meet.
const trialConnections = 8

// Trial is a sink on which tables of a target can be tried.
type Trial struct {
	sink.Sink
	sink.Scratcher
	// Place says for a person where it is, without the secrets of a URL.
	Place string
}

// OpenTrial opens a sink that can make places for trials beside the tables of a
// target: in the target's own database, or in the one that a URL names. own gives
// upserts of one's own, by the table's name in the config, in place of Hookfold's.
func OpenTrial(ctx context.Context, plan *mapping.Plan, target, url string, own map[string]string) (*Trial, error) {
	t := *plan.Config.TargetNamed(target)
	place := "the database of target " + target
	switch {
	case url != "":
		t = config.Target{Name: t.Name, URL: config.Name{Text: url}, Kind: config.KindOfURL(url)}
		place = "the database of --sink"
	case t.Kind == config.Supabase && t.DirectURL != "":
		t = config.Target{Name: t.Name, URL: config.Name{Text: t.DirectURL}, Kind: config.PostgreSQL}
		place = "the database at direct_url, not through the API"
	}
	t.Connections = trialConnections
	e, known := engines[t.Kind]
	if !known {
		return nil, fmt.Errorf("--sink: there is no database for this URL. Write postgres://… or sqlite:FILE")
	}
	if own != nil && (t.Kind == config.PostgreSQL && (url == "" || t.Pooler != "") || t.Kind != config.PostgreSQL && t.Kind != config.SQLite) {
		return nil, fmt.Errorf("target %s: a statement of one's own could write anywhere, so it is only run in a database for trials: say --sink sqlite:FILE, or the URL of a PostgreSQL database with nothing in it to lose", target)
	}
	tables := pipeline.Tables(plan, target)
	for _, table := range tables {
		if _, ok := own[table.Table.Name]; ok && (!table.Local() || table.Occupied || compile.Beside(table)) {
			return nil, fmt.Errorf("table %s takes more than one statement (hookfold sql %[1]s shows them), so none of one's own can stand in their place", table.Table.Name)
		}
	}
	open := func() (sink.Sink, error) { return e.open(ctx, &t, tables) }
	if own != nil {
		open = func() (sink.Sink, error) {
			return sqlsink.Open(ctx, t.URL.Text, tables, sqlsink.Options{Connections: trialConnections, Rewrite: func(table *sink.Table, s *compile.Statements) {
				if text, ok := own[table.Table.Name]; ok {
					s.Upsert.SQL = text
				}
			}})
		}
	}
	s, err := open()
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", target, err)
	}
	x, ok := s.(sink.Scratcher)
	if !ok {
		_ = s.Close() // it was not used
		return nil, fmt.Errorf("target %s is an API (%s), in which no tables can be made for a trial: say --sink with the URL of the database behind it, or of another PostgreSQL; the statements are the same", target, t.Kind)
	}
	return &Trial{Sink: s, Scratcher: x, Place: place}, nil
}

// sweep removes what trials have left behind that were killed. A database that
// cannot be reached keeps it until the next start.
func (d *Daemon) sweep(ctx context.Context) {
	for name, s := range d.sinks {
		x, ok := s.(sink.Scratcher)
		if !ok {
			continue
		}
		n, err := x.Sweep(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			d.o.Log.Debug("what trials have left behind could not be looked for", "target", name, "error", err)
		case n > 0:
			d.o.Log.Info("removed the tables of trials that were killed", "target", name, "trials", n)
		}
	}
}
