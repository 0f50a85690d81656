package e2e

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/demo"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/testtarget"
	"github.com/hookfold/hookfold/internal/witness"
	"github.com/hookfold/hookfold/journal/sqlite"
	"github.com/hookfold/hookfold/merge"
)

// world is a config with an empty database, for the three problems of the demo.
type world struct {
	dir  string
	plan *mapping.Plan
	db   *witness.DB
}

func newWorld(t *testing.T, of testtarget.Kind) *world {
	t.Helper()
	w, target := &world{dir: t.TempDir()}, of.Open(t)
	file := writeFile(t, w.dir, "hookfold.yaml", without(t, target.In(demo.Config(w.dir, testtarget.Here, 0, 0)), of.Refuses...))
	cfg, problems := config.Load(file, config.Options{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	if w.plan, problems = mapping.Compile(cfg); problems.Err() != nil {
		t.Fatal(problems)
	}
	w.run(t, "migrate", "--apply")
	var err error
	if w.db, err = witness.Open(target.Rows); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.db.Close() })
	return w
}

// without takes tables out of a config.
func without(t *testing.T, text string, tables ...string) string {
	t.Helper()
	if tables == nil {
		return text
	}
	var config struct {
		Tables map[string]yaml.Node `yaml:"tables"`
		Rest   map[string]yaml.Node `yaml:",inline"`
	}
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	for _, name := range tables {
		delete(config.Tables, name)
	}
	out, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// journal reads every delivery of the journal.
func (w *world) journal(t *testing.T) []*event.Delivery {
	t.Helper()
	j, err := sqlite.Open(filepath.Join(w.dir, "journal.db"), sqlite.Options{Access: sqlite.Reader})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var out []*event.Delivery
	err = j.Scan(t.Context(), 0, func(d *event.Delivery) error {
		out = append(out, d)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// settle waits until every table holds exactly the rows of the deliveries.
func (w *world) settle(t *testing.T, s *server, deliveries []*event.Delivery) {
	t.Helper()
	want, err := demo.Read(w.plan, deliveries)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for _, table := range w.plan.Tables {
		rows := merge.Rows(table.Table.Table, want.Changes[table.Table.Table])
		for {
			v, err := w.db.Judge(ctx, &table.Table, rows)
			if err == nil && v.OK() {
				break
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				t.Fatalf("%s: %v %+v\n%s", table.Config.Text, err, v, s.log.String())
			}
		}
	}
}

// complaints are words that no log of a load may hold.
var complaints = []string{"unique", "duplicate", "(23505", "SQLSTATE 23505", "deadlock", "level=ERROR", "panic", "DATA RACE"}

func (s *server) quiet(t *testing.T) {
	t.Helper()
	for _, line := range strings.Split(s.log.String(), "\n") {
		for _, c := range complaints {
			if strings.Contains(line, c) {
				t.Errorf("the log complains: %s", line)
			}
		}
	}
}

// The three problems, shuffled and doubled, from 64 connections.
func TestLoad(t *testing.T) {
	for _, kind := range testtarget.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			w := newWorld(t, kind)
			s := start(t, w.dir, os.Environ())
			requests := demo.Shuffle(demo.Story(7), 7)
			answers := map[int]int{}
			err := demo.Fire(t.Context(), s.Receive, requests, demo.SignerOf(w.plan), func(_ demo.Request, status int, err error) error {
				answers[status]++
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if want := map[int]int{http.StatusOK: len(requests)}; !maps.Equal(answers, want) {
				t.Errorf("answers %v, want %v", answers, want)
			}
			deliveries := w.journal(t)
			if len(deliveries) != len(requests) {
				t.Errorf("the journal holds %d deliveries of %d", len(deliveries), len(requests))
			}
			w.settle(t, s, deliveries)
			if err := s.stop(); err != nil {
				t.Errorf("stop: %v\n%s", err, s.log.String())
			}
			s.quiet(t)
			if kind.Name == "postgres" {
				w.nothingRolledBack(t)
			}
		})
	}
}

// nothingRolledBack asks the server itself whether any transaction failed.
func (w *world) nothingRolledBack(t *testing.T) {
	t.Helper()
	var rollbacks, deadlocks int
	err := w.db.QueryRowContext(t.Context(), "select xact_rollback, deadlocks from pg_stat_database where datname = current_database()").Scan(&rollbacks, &deadlocks)
	if err != nil {
		t.Fatal(err)
	}
	if rollbacks != 0 || deadlocks != 0 {
		t.Errorf("PostgreSQL counts %d transactions rolled back and %d deadlocks", rollbacks, deadlocks)
	}
}

// run runs a command of the program to its end.
func (w *world) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := command(w.dir, os.Environ(), args...)
	if err != nil {
		t.Fatalf("hookfold %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}
