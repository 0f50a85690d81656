package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfold/hookfold/internal/check"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/mapping"
)

// readyJSON is the line that serve --json prints once it receives.
type readyJSON struct {
	Event   string `json:"event"`
	Receive string `json:"receive"`
	Admin   string `json:"admin,omitempty"`
}

// How long serve looks at the live databases once it has started, and how long it
// takes to finish what it holds when it is asked to end.
const (
	lookTimeout = 5 * time.Second
	stopTimeout = 30 * time.Second
)

func (a *app) serve() *cobra.Command {
	level := "info"
	cmd := &cobra.Command{
		Use: "serve", Short: "Receive webhooks and fold them into rows", Args: count(0, 0, "no arguments"),
		Long: "Receives on the config's listen address until SIGINT or SIGTERM, then finishes what\n" +
			"it holds. A database that is down, or lacks a table, holds up nothing but its rows.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := a.logger(level)
			if err != nil {
				return usage(cmd, "%v", err)
			}
			plan, err := a.plan()
			if err != nil {
				return err
			}
			return a.run(cmd.Context(), plan, log)
		},
	}
	cmd.Flags().StringVar(&level, "log", level, "log from this `level` on: debug, info, warn or error")
	return cmd
}

// logger logs to the standard error output, as JSON under --json.
func (a *app) logger(level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log is %s; it can be debug, info, warn or error", level)
	}
	o := &slog.HandlerOptions{Level: l}
	if a.json {
		return slog.New(slog.NewJSONHandler(a.Err, o)), nil
	}
	return slog.New(slog.NewTextHandler(a.Err, o)), nil
}

func (a *app) run(ctx context.Context, plan *mapping.Plan, log *slog.Logger) (err error) {
	d, err := daemon.Open(ctx, plan.Config, daemon.Options{Log: log})
	if err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err = errors.Join(err, d.Stop(stop))
	}()
	if err := d.Start(ctx); err != nil {
		return err
	}
	ready := readyJSON{Event: "ready", Receive: "http://" + d.Addr()}
	if d.AdminAddr() != "" {
		ready.Admin = "http://" + d.AdminAddr()
	}
	if err := a.printReady(ready, plan); err != nil {
		return err
	}
	looking, stopLooking := context.WithCancel(ctx)
	var looked sync.WaitGroup
	looked.Go(func() { look(looking, plan, log) })
	defer looked.Wait()
	defer stopLooking()
	select {
	case <-ctx.Done():
		log.Info("stopping: finishing what is in hand")
	case <-d.Failed():
		return errors.New("receiving has ended by itself")
	}
	return nil
}

// look tells what is wrong with the live tables. It keeps nothing from
// starting, and may take as long as a database that does not answer: deliveries
// are taken meanwhile, and land when it has been put right.
func look(ctx context.Context, plan *mapping.Plan, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	const unseen = "the live tables could not be looked at; deliveries are kept until they can be written"
	found, err := connect(ctx, plan, &check.Report{})
	if err != nil {
		log.Warn(unseen, "error", err)
		return
	}
	for _, p := range found.List {
		switch {
		case slices.Contains(found.down, p):
			log.Warn(unseen, "target", strings.TrimPrefix(p.Path, "targets."), "error", p.Text)
		case p.Severity == config.Error:
			log.Error(p.Text)
		default:
			log.Warn(p.Text)
		}
	}
}

func (a *app) printReady(r readyJSON, plan *mapping.Plan) error {
	if a.json {
		return json.NewEncoder(a.Out).Encode(r)
	}
	var names []string
	for _, s := range plan.Sources {
		names = append(names, s.Name)
	}
	a.printf("Receiving on %s/in/SOURCE, with SOURCE one of: %s\n", r.Receive, strings.Join(names, ", "))
	if r.Admin != "" {
		a.printf("Health and metrics on %s/readyz and /metrics\n", r.Admin)
	}
	return nil
}
