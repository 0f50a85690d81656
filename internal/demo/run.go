// Package demo shows Hookfold at work: the real server on real input, beside
// the handler that people write first, both judged by the list of events.
package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/witness"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/source"
)

// Options configure a run.
type Options struct {
	// Folder is where everything is put; "" makes a temporary folder, which
	// stays.
	Folder string
	// Seed chooses the events and their order.
	Seed uint64
	// Keep goes on serving after the report, until the context ends.
	Keep bool
	// Log gets the server's log; nil is silent.
	Log *slog.Logger
	// Progress, if not nil, is told of requests that were answered.
	Progress func(done, total int)
	// Report, if not nil, is given the report as soon as it is there.
	Report func(*Report) error
}

// Run runs the demo. The report says whether every row was right.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if o.Folder == "" {
		if o.Folder, err = os.MkdirTemp("", "hookfold-demo-"); err != nil {
			return nil, err
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(int, int) {}
	}
	r := &Report{Seed: o.Seed, Connections: Connections, Files: Files{
		Folder: o.Folder, Config: filepath.Join(o.Folder, "hookfold.yaml"), Journal: filepath.Join(o.Folder, "journal.db"),
		Rows: filepath.Join(o.Folder, "rows.db"), Naive: filepath.Join(o.Folder, "naive.db"),
	}}
	plan, err := writeConfig(r.Files)
	if err != nil {
		return nil, err
	}
	server, err := startServer(ctx, plan, o.Log)
	if err != nil {
		return nil, err
	}
	defer func() { err = server.stop(err) }()
	r.Receive = server.url

	story := Story(o.Seed)
	requests := Shuffle(story, o.Seed)
	r.Requests = len(requests)
	if err := r.send(ctx, server, requests, plan, o.Progress); err != nil {
		return nil, err
	}
	if err := r.judge(ctx, plan, story, server); err != nil {
		return nil, err
	}
	if o.Report != nil {
		if err := o.Report(r); err != nil {
			return nil, err
		}
	}
	if o.Keep {
		<-ctx.Done()
	}
	return r, nil
}

// writeConfig writes the config of the demo and compiles it.
func writeConfig(f Files) (*mapping.Plan, error) {
	text := Config(f.Folder, "sqlite:"+f.Rows, 0, 0)
	if err := os.WriteFile(f.Config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	var presets []string
	for _, p := range source.Presets() {
		presets = append(presets, p.Name)
	}
	cfg, problems := config.Load(f.Config, config.Options{Presets: presets})
	if err := problems.Err(); err != nil {
		return nil, err
	}
	plan, problems := mapping.Compile(cfg)
	return plan, problems.Err()
}

// send sends the requests to both servers, one after the other.
func (r *Report) send(ctx context.Context, server *server, requests []Request, plan *mapping.Plan, progress func(done, total int)) error {
	done, total := 0, 2*len(requests)
	fire := func(url string, sign Signer) (Side, error) {
		side := Side{Answers: Answers{}}
		begun := time.Now()
		err := Fire(ctx, url, requests, sign, func(q Request, status int, err error) error {
			if err != nil {
				return fmt.Errorf("send to %s: %w", q.Source, err)
			}
			side.Answers[status]++
			done++
			progress(done, total)
			return nil
		})
		side.AnsweredSeconds = time.Since(begun).Seconds()
		return side, err
	}
	begun := time.Now()
	var err error
	if r.Hookfold, err = fire(server.url, SignerOf(plan)); err != nil {
		return err
	}
	if err := server.settled(ctx); err != nil {
		return err
	}
	r.Hookfold.SettledSeconds = time.Since(begun).Seconds()

	naive, err := startNaive(ctx, r.Files.Naive)
	if err != nil {
		return err
	}
	r.Naive, err = fire(naive.url, unsigned)
	r.Naive.Errors = naive.errors
	return errors.Join(err, naive.stop())
}

// judge compares the rows of both with those that the story makes.
func (r *Report) judge(ctx context.Context, plan *mapping.Plan, story []Request, server *server) error {
	told := make([]*event.Delivery, len(story))
	for i, q := range story {
		told[i] = &event.Delivery{Position: event.Position(i + 1), Source: q.Source, Body: q.Body, Header: http.Header{}, Received: time.Now()}
	}
	want, err := Read(plan, told)
	if err != nil {
		return err
	}
	came, err := server.deliveries(ctx)
	if err != nil {
		return err
	}
	arrived, err := Read(plan, came)
	if err != nil {
		return err
	}
	r.Events = want.Events
	ours, err := witness.Open("sqlite:" + r.Files.Rows)
	if err != nil {
		return err
	}
	defer ours.Close()
	theirs, err := witness.Open("sqlite:" + r.Files.Naive)
	if err != nil {
		return err
	}
	defer theirs.Close()
	r.OK = true
	for _, t := range plan.Tables {
		rows := merge.Rows(t.Table.Table, want.Changes[t.Table.Table])
		mine, err := ours.Judge(ctx, &t.Table, rows)
		if err != nil {
			return err
		}
		naive, err := theirs.Judge(ctx, &t.Table, rows)
		if err != nil {
			return err
		}
		r.OK = r.OK && mine.OK()
		r.Tables = append(r.Tables, tableReport(t, mine, naive, arrived.Changes[t.Table.Table], arrived.Types))
	}
	return nil
}
