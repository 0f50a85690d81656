package demo

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/ingest"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/journal/sqlite"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

type server struct {
	url  string
	j    journal.Journal
	run  *pipeline.Runner
	http *ingest.Server
}

func startServer(ctx context.Context, plan *mapping.Plan, log *slog.Logger) (*server, error) {
	j, err := sqlite.Open(strings.TrimPrefix(plan.Config.Journal.URL.Text, "sqlite:"), sqlite.Options{})
	if err != nil {
		return nil, err
	}
	tables := pipeline.Tables(plan, "db")
	sk, err := sqlsink.Open(ctx, plan.Config.Targets[0].URL.Text, tables, sqlsink.Options{})
	if err != nil {
		return nil, err
	}
	st, err := sk.Plan(ctx, tables)
	if err != nil {
		return nil, err
	}
	if err := sk.Execute(ctx, st); err != nil {
		return nil, err
	}
	r := pipeline.New(pipeline.Options{Target: "db", Journal: j, Sink: sk, Sources: pipeline.Sources(plan), Map: func(e *event.Event) mapping.Outcome { return plan.Map(e, "db") }, Tables: tables, Log: log})
	if err := r.Start(ctx); err != nil {
		return nil, err
	}
	src := map[string]ingest.Source{}
	for _, s := range plan.Sources {
		src[s.Name] = ingest.Source{Source: s.Source}
	}
	h, err := ingest.Listen(ingest.ServerOptions{Address: "127.0.0.1:0", Handler: ingest.New(ingest.Options{Sources: src, Journal: j, Log: log})})
	if err != nil {
		return nil, err
	}
	h.Start()
	return &server{url: "http://" + h.Addr().String(), j: j, run: r, http: h}, nil
}

func (s *server) settled(ctx context.Context) error {
	for {
		n, _, err := s.run.Lag(ctx)
		if err != nil || n == 0 {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (s *server) deliveries(ctx context.Context) (out []*event.Delivery, err error) {
	err = s.j.Scan(ctx, 0, func(d *event.Delivery) error { out = append(out, d); return nil })
	return
}

func (s *server) stop() error {
	ctx := context.Background()
	return errors.Join(s.http.Stop(ctx), s.run.Stop(ctx), s.j.Close())
}
