// Package daemon puts a config to work: it opens the journal and the sinks, and
// runs the receive path, a pipeline per target, the admin address and the
// journal's retention.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/backoff"
	"github.com/hookfold/hookfold/internal/check"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/enrich"
	"github.com/hookfold/hookfold/internal/ingest"
	"github.com/hookfold/hookfold/internal/lane/post"
	"github.com/hookfold/hookfold/internal/lane/run"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/metrics"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/journal/sqlite"
	"github.com/hookfold/hookfold/sink"
)

// Options configure a Daemon.
type Options struct {
	// Log gets what an operator should read; nil is silent.
	Log *slog.Logger
	// NoListen opens no address: deliveries come by Append only.
	NoListen bool
	// RetainEvery is how often settled deliveries beyond keep and max_size are
	// removed. Default 10 min.
	RetainEvery time.Duration
	// FetchBackoff, if not zero, is how long fetches that fail are left, for tests.
	FetchBackoff backoff.Policy
	// Sink, if not nil, takes the place of each sink that was opened, for tests.
	Sink func(target string, s sink.Sink) sink.Sink
	// Journal, if not nil, takes the place of the journal that was opened, for
	// tests.
	Journal func(journal.Journal) journal.Journal
}

// Daemon is a config at work.
type Daemon struct {
	cfg     *config.Config
	o       Options
	plan    *mapping.Plan
	journal journal.Journal
	sinks   map[string]sink.Sink
	runners []*pipeline.Runner
	lanes   []*run.Runner // in the order of the plan
	posters []*post.Poster
	metrics *metrics.Metrics
	fetcher *enrich.Fetcher
	// abandoned are the consumers of targets that the config does not have.
	abandoned []string

	// unruly are the targets that have tables which are not to be written.
	unruly map[string]*unruly
	// journalFile is the journal's file, and door how deliveries are handed in
	// beside it.
	journalFile string
	door        *Door

	intake, admin *ingest.Server
	ready         atomic.Bool

	begin, end sync.Once
	started    error
	stopped    error
	retaining  sync.WaitGroup
	stopRetain context.CancelFunc
}

// noTarget is the consumer of a journal whose config has no table: it finds the
// deliveries that cannot be split.
const noTarget = "(none)"

// Open opens the journal and makes the sinks of a config; nothing runs yet, and
// no target needs to be up. A config that is not sound is refused, with a
// *config.Problems.
func Open(ctx context.Context, cfg *config.Config, o Options) (*Daemon, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.RetainEvery <= 0 {
		o.RetainEvery = 10 * time.Minute
	}
	plan, problems := mapping.Compile(cfg)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	if err := check.Run(plan).Problems.Err(); err != nil {
		return nil, err
	}
	if err := Limits(plan).Err(); err != nil {
		return nil, err
	}
	d := &Daemon{cfg: cfg, o: o, plan: plan, metrics: metrics.New()}
	j, err := OpenJournal(cfg, sqlite.Owner)
	if err != nil {
		return nil, err
	}
	d.journal, d.journalFile = j, j.Path()
	if o.Journal != nil {
		d.journal = o.Journal(j)
	}
	if d.sinks, err = OpenSinks(ctx, plan); err != nil {
		return nil, errors.Join(err, d.journal.Close())
	}
	d.fetcher = d.newFetcher(j)
	if err := d.checkRules(ctx); err != nil {
		return nil, errors.Join(err, d.closeAll())
	}
	targets := plan.Targets()
	for _, target := range targets {
		if o.Sink != nil {
			d.sinks[target] = o.Sink(target, d.sinks[target])
		}
		d.runners = append(d.runners, d.runner(target))
	}
	if targets == nil {
		d.runners = []*pipeline.Runner{d.runner(noTarget)}
	}
	if err := d.openLanes(); err != nil {
		return nil, errors.Join(err, d.closeAll())
	}
	if err := d.findAbandoned(ctx, j, targets); err != nil {
		return nil, errors.Join(err, d.closeAll())
	}
	d.measure()
	d.measureLanes()
	return d, nil
}

// written is the sink of a target as rows are written to it.
func (d *Daemon) written(target string) sink.Sink {
	if u := d.unruly[target]; u != nil {
		u.Sink = d.sinks[target]
		return u
	}
	return d.sinks[target]
}

func (d *Daemon) runner(target string) *pipeline.Runner {
	var plan uint64
	if d.cfg.Journal.Index {
		plan = d.plan.Digest()
	}
	return pipeline.New(pipeline.Options{
		Plan: plan, Target: target, Journal: d.journal, Sink: d.written(target),
		Sources: pipeline.Sources(d.plan), Tables: pipeline.Tables(d.plan, target),
		Map: d.mapper(target), Fetcher: d.fetcher,
		Log: d.o.Log, Observer: d.metrics,
	})
}

// Start listens and begins to work; ctx bounds only the beginning. When it
// fails, everything is closed again. Calling it again gives the first call's
// result.
func (d *Daemon) Start(ctx context.Context) error {
	d.begin.Do(func() {
		if d.started = d.start(ctx); d.started != nil {
			d.started = errors.Join(d.started, d.stop(ctx))
		}
	})
	return d.started
}

func (d *Daemon) start(ctx context.Context) (err error) {
	if !d.o.NoListen {
		if err = d.listen(); err != nil {
			return err
		}
	}
	d.fetcher.Start()
	for _, r := range d.runners {
		if err := r.Start(ctx); err != nil {
			return err
		}
	}
	for _, r := range d.lanes {
		if err := r.Start(ctx); err != nil {
			return err
		}
	}
	retain, cancel := context.WithCancel(context.Background())
	d.stopRetain = cancel
	d.retaining.Go(func() { d.retain(retain) })
	if !d.o.NoListen {
		d.retaining.Go(func() { d.sweep(retain) })
	}
	if d.intake != nil {
		d.intake.Start()
	}
	d.ready.Store(true)
	if err := d.openDoor(); err != nil {
		return err
	}
	if d.admin != nil {
		d.admin.Start()
	}
	return nil
}

func (d *Daemon) listen() (err error) {
	sources := make(map[string]ingest.Source, len(d.plan.Sources))
	for _, s := range d.plan.Sources {
		in := ingest.Source{Source: s.Source, MaxBody: s.Config.MaxBody, URL: s.Config.URL, Secrets: []string{s.Config.VerifyToken}}
		for _, secret := range s.Config.Secrets {
			in.Secrets = append(in.Secrets, secret.Value)
		}
		sources[s.Name] = in
	}
	handler := ingest.New(ingest.Options{Sources: sources, Journal: d.journal, Log: d.o.Log, Observer: d.metrics})
	d.intake, err = ingest.Listen(ingest.ServerOptions{Address: d.cfg.Listen, Handler: handler, Log: d.o.Log})
	if err != nil {
		return fmt.Errorf("%w. Is another server running? Say another listen: address", err)
	}
	if d.cfg.Admin == "" {
		return nil
	}
	d.admin, err = ingest.Listen(ingest.ServerOptions{Address: d.cfg.Admin, Handler: d.adminHandler(), Log: d.o.Log, MaxConnections: 64})
	if err != nil {
		return fmt.Errorf("%w. Is another server running? Say another admin: address", err)
	}
	return nil
}

// Addr is the address that webhooks are received on, "" before Start or with
// NoListen.
func (d *Daemon) Addr() string { return address(d.intake) }

// AdminAddr is the admin address, "" where there is none.
func (d *Daemon) AdminAddr() string { return address(d.admin) }

func address(s *ingest.Server) string {
	if s == nil {
		return ""
	}
	return s.Addr().String()
}

// Failed is closed when receiving has ended, by Stop or by an error that Stop
// returns; nil with NoListen.
func (d *Daemon) Failed() <-chan struct{} {
	if d.intake == nil {
		return nil
	}
	return d.intake.Failed()
}

// Append journals a delivery that did not come over HTTP; the pipelines take it
// from there. A delivery without a time of receipt is received now.
func (d *Daemon) Append(ctx context.Context, x *event.Delivery) error {
	if err := d.accept(x); err != nil {
		return err
	}
	return d.journal.Append(ctx, x)
}

func (d *Daemon) accept(x *event.Delivery) error {
	if d.plan.Source(x.Source) == nil {
		return noSourceError(x.Source)
	}
	if x.Received.IsZero() {
		x.Received = time.Now().UTC()
	}
	return nil
}

// Journal is the journal at work.
func (d *Daemon) Journal() journal.Journal { return d.journal }

// Plan is the compiled config.
func (d *Daemon) Plan() *mapping.Plan { return d.plan }

// Sink is the sink of a target, or nil.
func (d *Daemon) Sink(target string) sink.Sink { return d.sinks[target] }

// Stop ends receiving, finishes the requests and the batches in hand, and
// closes the sinks and the journal. What is not finished when ctx ends is left
// to the next start: requests unanswered, batches in the journal. It may be
// called again, and without Start.
func (d *Daemon) Stop(ctx context.Context) error {
	d.begin.Do(func() { d.started = pipeline.ErrStopped })
	return d.stop(ctx)
}

func (d *Daemon) stop(ctx context.Context) error {
	d.end.Do(func() {
		d.ready.Store(false)
		var errs []error
		if d.intake != nil {
			errs = append(errs, d.intake.Stop(ctx))
		}
		if d.stopRetain != nil {
			d.stopRetain()
		}
		d.retaining.Wait()
		errs = append(errs, d.stopRunners(ctx)...)
		d.fetcher.Stop()
		if d.admin != nil {
			errs = append(errs, d.admin.Stop(ctx), d.closeDoor())
		}
		d.stopped = errors.Join(append(errs, d.closeAll())...)
	})
	return d.stopped
}

func (d *Daemon) closeAll() error {
	var errs []error
	for _, p := range d.posters {
		p.Close()
	}
	for _, s := range d.sinks {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, d.journal.Close())...)
}

func (d *Daemon) stopRunners(ctx context.Context) []error {
	errs := make([]error, len(d.runners)+len(d.lanes))
	var all sync.WaitGroup
	for i, r := range d.runners {
		all.Go(func() { errs[i] = r.Stop(ctx) })
	}
	for i, r := range d.lanes {
		all.Go(func() { errs[len(d.runners)+i] = r.Stop(ctx) })
	}
	all.Wait()
	return errs
}

// retain removes what need not be kept, again and again.
func (d *Daemon) retain(ctx context.Context) {
	keep := journal.Retention{Age: d.cfg.Journal.Keep, Bytes: d.cfg.Journal.MaxSize}
	if keep == (journal.Retention{}) {
		return
	}
	every := time.NewTicker(d.o.RetainEvery)
	defer every.Stop()
	for {
		removed, err := d.journal.Retain(ctx, keep, time.Now())
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			d.o.Log.Error("the journal could not be cut to keep and max_size; it is tried again", "error", err)
		case removed.Deliveries > 0:
			d.o.Log.Info("removed settled deliveries from the journal", "deliveries", removed.Deliveries, "bytes", removed.Bytes)
		}
		if err := d.purge(ctx, time.Now()); err != nil && ctx.Err() == nil {
			d.o.Log.Warn("old deletes could not be forgotten; it is tried again", "error", err)
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
	}
}
