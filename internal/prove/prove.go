// Package prove tells whether rows depend on the order in which recorded
// deliveries arrive. It lets them arrive in many orders, doubled, in batches of
// every size, at several writers at once, and with crashes between the database
// and the journal: through the real mapping and pipeline, into copies of the
// user's own tables in the real database. Each time the rows have to be those
// that package merge makes of what landed, and the same changes have to land. A
// difference is shrunk to the fewest deliveries that show it.
package prove

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/check"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Options say what is to be proven.
type Options struct {
	// Plan and Target say what the deliveries mean for which tables.
	Plan   *mapping.Plan
	Target string
	// Sink makes the places in which it is tried.
	Sink sink.Scratcher
	// Deliveries are what was recorded, in the order of the record. Positions name
	// them in what is told. A delivery without a time of receipt was received when
	// the proof begins.
	Deliveries []*event.Delivery
	// Orders is how many orders are tried at least; default DefaultOrders. Seed
	// chooses them.
	Orders int
	Seed   uint64
	// Parallel is how many places are used at once; default 2.
	Parallel int
	// Patience is how long the database may be at fault before the proof is given
	// up; default 30 s.
	Patience time.Duration
	// Progress is told how many of the orders were tried; nil is nobody. It is
	// called by one goroutine at a time.
	Progress func(done, of int)
}

// Report tells what was found for one target.
type Report struct {
	Target string
	// Deliveries and Events are what was given, Orders in how many ways it
	// arrived, first in the order of the record; Arrivals and Crashes are what
	// happened in them altogether.
	Deliveries, Events int
	Orders             int
	Arrivals, Crashes  int
	Took               time.Duration
	// Rows counts the rows that the deliveries make, by table.
	Rows map[string]int
	// Left are the events that are waiting or dead when all has arrived in the
	// order of the record: nothing is proven of them.
	Left []journal.Entry
	// Depends are the tables that depend on arrival as check says, and what was
	// seen of it.
	Depends []Dependence
	// Notes tell what is not in the copies of the tables.
	Notes []string
	// Counterexample is nil if every order gave the same rows.
	Counterexample *Counterexample
}

// Dependence is a table that depends on arrival, as the static verdict says.
type Dependence struct {
	Table   string
	Because string
	// Orders is in how many orders other rows came out, or other events waited.
	Orders  int
	Example string
}

// Run proves. An error says that it could not be done.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Orders <= 0 {
		o.Orders = DefaultOrders
	}
	if o.Parallel <= 0 {
		o.Parallel = 2
	}
	if o.Patience <= 0 {
		o.Patience = 30 * time.Second
	}
	p := &prover{
		Options: o, begun: time.Now(), tables: pipeline.Tables(o.Plan, o.Target), depends: map[*merge.Table]*Dependence{},
		report: Report{Target: o.Target, Deliveries: len(o.Deliveries), Rows: map[string]int{}},
	}
	p.received()
	err := p.run(ctx)
	p.report.Took = time.Since(p.begun)
	return &p.report, errors.Join(err, p.close())
}

type prover struct {
	Options
	begun  time.Time
	tables []*sink.Table
	places []sink.Scratch

	mu      sync.Mutex
	report  Report
	depends map[*merge.Table]*Dependence
	found   *failure
}

// failure is a way of arriving in which something was not as it must be.
type failure struct {
	arrival     arrival
	differences []Difference
}

// received gives every delivery a time of receipt.
func (p *prover) received() {
	p.Deliveries = slices.Clone(p.Deliveries)
	for i, d := range p.Deliveries {
		if d.Received.IsZero() {
			own := *d
			own.Received = p.begun.UTC()
			p.Deliveries[i] = &own
		}
	}
}

func (p *prover) run(ctx context.Context) error {
	for range p.Parallel {
		x, err := p.Sink.Scratch(ctx, p.tables)
		if err != nil {
			return err
		}
		p.places = append(p.places, x)
	}
	p.report.Notes = p.places[0].Notes()
	if err := p.verdicts(ctx); err != nil {
		return err
	}
	all := make([]int, len(p.Deliveries))
	for i := range all {
		all[i] = i
	}
	base, err := p.expect(ctx, p.places[0], all)
	if err != nil {
		return err
	}
	p.first(base)
	if base.wrong != nil {
		p.found = &failure{arrival: inOrder(all), differences: base.wrong}
	} else if err := p.hunt(ctx, base); err != nil {
		return err
	}
	for _, t := range p.tables {
		if d := p.depends[t.Table]; d != nil {
			p.report.Depends = append(p.report.Depends, *d)
		}
	}
	if p.found == nil {
		return nil
	}
	p.report.Counterexample, err = p.shrink(ctx, p.places[0], p.found)
	return err
}

func (p *prover) close() error {
	var errs []error
	for _, x := range p.places {
		errs = append(errs, x.Close())
	}
	return errors.Join(errs...)
}

// verdicts takes down which tables depend on arrival, and why.
func (p *prover) verdicts(ctx context.Context) error {
	static := check.Run(p.Plan)
	for i, t := range p.tables {
		table := p.Plan.Table(t.Table.Name)
		live, err := p.places[0].Inspect(ctx, p.places[0].Tables()[i])
		if err != nil {
			return err
		}
		if because := static.Depends(table, live); because != "" {
			p.depends[t.Table] = &Dependence{Table: t.Table.Name, Because: because}
		}
	}
	return nil
}

// first reports what the order of the record gives.
func (p *prover) first(base *expectation) {
	for t, rows := range base.rows {
		p.report.Rows[t.Name] = len(rows)
	}
	for _, e := range base.left {
		e.Ref.Position = p.Deliveries[e.Ref.Position-1].Position
		p.report.Left = append(p.report.Left, e)
	}
	slices.SortFunc(p.report.Left, func(a, b journal.Entry) int { return a.Ref.Compare(b.Ref) })
	p.report.Events = base.events
	p.count(inOrder(make([]int, len(p.Deliveries))))
}

// hunt tries orders until one fails, or all are tried.
func (p *prover) hunt(ctx context.Context, base *expectation) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	total := 1 + size(len(p.Deliveries), p.Orders)
	queue := make(chan arrival)
	var group sync.WaitGroup
	stop := errors.New("found")
	for _, x := range p.places {
		group.Go(func() {
			for a := range queue {
				wrong, err := p.try(ctx, x, base, a)
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					cancel(err)
					return
				}
				if p.tried(a, wrong, total) {
					cancel(stop)
					return
				}
			}
		})
	}
feed:
	for a := range effort(len(p.Deliveries), p.Orders, p.Seed) {
		select {
		case queue <- a:
		case <-ctx.Done():
			break feed
		}
	}
	close(queue)
	group.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, stop) {
		return err
	}
	return nil
}

func (p *prover) count(a arrival) {
	p.report.Orders++
	for _, batches := range a {
		for _, b := range batches {
			p.report.Arrivals += len(b.deliveries)
			if b.crash {
				p.report.Crashes++
			}
		}
	}
}

// tried counts an arrival, and tells whether it is the counterexample.
func (p *prover) tried(a arrival, wrong []Difference, total int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(a)
	if p.Progress != nil {
		p.Progress(p.report.Orders, total)
	}
	if len(wrong) == 0 || p.found != nil {
		return false
	}
	p.found = &failure{a, wrong}
	return true
}
