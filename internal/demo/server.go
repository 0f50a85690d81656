package demo

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
)

// server is the real server, with its tables made.
type server struct {
	daemon *daemon.Daemon
	url    string
}

func startServer(ctx context.Context, plan *mapping.Plan, log *slog.Logger) (*server, error) {
	d, err := daemon.Open(ctx, plan.Config, daemon.Options{Log: log})
	if err != nil {
		return nil, err
	}
	s := &server{daemon: d}
	for _, target := range plan.Targets() {
		sink := d.Sink(target)
		statements, err := sink.Plan(ctx, pipeline.Tables(plan, target))
		if err == nil {
			err = sink.Execute(ctx, statements)
		}
		if err != nil {
			return nil, s.stop(err)
		}
	}
	if err := d.Start(ctx); err != nil {
		return nil, err
	}
	s.url = "http://" + d.Addr()
	return s, nil
}

// settled waits until everything that was received has landed.
func (s *server) settled(ctx context.Context) error {
	_, err := s.daemon.Drain(ctx, nil)
	return err
}

// deliveries are those of the journal, in the order of acceptance.
func (s *server) deliveries(ctx context.Context) (out []*event.Delivery, err error) {
	err = s.daemon.Journal().Scan(ctx, 0, func(d *event.Delivery) error {
		out = append(out, d)
		return nil
	})
	return out, err
}

// stop stops the server, for the reason of an error or none.
func (s *server) stop(because error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return errors.Join(because, s.daemon.Stop(ctx))
}
