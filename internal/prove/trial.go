package prove

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// expectation is what some deliveries give in the order of the record, one after
// the other.
type expectation struct {
	told
	receipts *Receipts
	rows     map[*merge.Table][]*merge.Row
	events   int
	// wrong is what is not as it must be already then.
	wrong []Difference
}

// expect lets some deliveries arrive in the order of the record.
func (p *prover) expect(ctx context.Context, x sink.Scratch, deliveries []int) (*expectation, error) {
	exp := &expectation{receipts: NewReceipts()}
	got, err := p.feed(ctx, x, exp.receipts, inOrder(deliveries))
	if err != nil {
		return nil, err
	}
	exp.told = *got
	exp.receipts = exp.receipts.More()
	exp.rows = got.rows(p.tables)
	events := map[eventID]bool{}
	for _, c := range got.mapped {
		events[got.event(c)] = true
	}
	for id := range got.left {
		events[id] = true
	}
	exp.events = len(events)
	if exp.wrong, err = p.compare(ctx, x, exp.rows); err != nil {
		return nil, err
	}
	exp.wrong = append(exp.wrong, got.unfounded()...)
	exp.wrong = append(exp.wrong, got.lost(p.tables)...)
	exp.wrong = p.excuse(exp.wrong)
	return exp, nil
}

// manySteps is how many batches the order of the record has at most.
const manySteps = 100

// inOrder lets deliveries arrive in the order of the record: one by one, or where
// they are many a few at a time.
func inOrder(deliveries []int) arrival {
	var batches []cut
	for some := range slices.Chunk(deliveries, 1+(len(deliveries)-1)/manySteps) {
		batches = append(batches, cut{deliveries: some})
	}
	return arrival{batches}
}

// try lets deliveries arrive, and tells what is not as it must be.
func (p *prover) try(ctx context.Context, x sink.Scratch, exp *expectation, a arrival) ([]Difference, error) {
	got, err := p.feed(ctx, x, exp.receipts.More(), a)
	if err != nil {
		return nil, err
	}
	rows := got.rows(p.tables)
	wrong, err := p.compare(ctx, x, rows)
	if err != nil {
		return nil, err
	}
	wrong = append(wrong, got.unfounded()...)
	other := got.otherwise(&exp.told)
	if len(other) > 0 {
		wrong = append(wrong, other...)
	} else {
		for _, t := range p.tables {
			wrong = append(wrong, Differ(t.Table, rows[t.Table], exp.rows[t.Table])...)
		}
	}
	return p.excuse(wrong), nil
}

// excuse takes out what the static verdict says, and counts it.
func (p *prover) excuse(wrong []Difference) []Difference {
	p.mu.Lock()
	defer p.mu.Unlock()
	counted := map[*Dependence]bool{}
	return slices.DeleteFunc(wrong, func(d Difference) bool {
		x := p.dependence(d.Table)
		if x == nil {
			return false
		}
		if !counted[x] {
			counted[x] = true
			if x.Orders++; x.Example == "" {
				x.Example = d.String()
			}
		}
		return true
	})
}

// dependence is that of a table, or of a parent for whose rows its own wait.
func (p *prover) dependence(table string) *Dependence {
	seen := map[string]bool{}
	var look func(name string) *Dependence
	look = func(name string) *Dependence {
		t := p.Plan.Table(name)
		if t == nil || seen[name] {
			return nil
		}
		seen[name] = true
		if d := p.depends[t.Table.Table]; d != nil {
			return d
		}
		for _, r := range t.Config.References() {
			if d := look(r.Table.Text); d != nil {
				return d
			}
		}
		return nil
	}
	return look(table)
}

// compare compares all tables of a place with the rows that there must be.
func (p *prover) compare(ctx context.Context, x sink.Scratch, want map[*merge.Table][]*merge.Row) ([]Difference, error) {
	var out []Difference
	for _, t := range x.Tables() {
		have, err := x.Read(ctx, t, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, Differ(t.Table, have, want[t.Table])...)
	}
	return out, nil
}

// feed empties a place and lets deliveries arrive there.
func (p *prover) feed(ctx context.Context, x sink.Scratch, receipts *Receipts, a arrival) (*told, error) {
	if err := x.Empty(ctx); err != nil {
		return nil, fmt.Errorf("empty the tables of the trial: %w", err)
	}
	got := &told{mapped: map[changeID]*merge.Change{}, landed: map[changeID]bool{}, left: map[eventID]journal.Entry{}, of: map[event.Position]int{}}
	f := &Feed{Plan: p.Plan, Target: p.Target, Sink: x, Tables: x.Tables(), First: receipts}
	copies := event.Position(len(p.Deliveries))
	came := map[int]bool{}
	for _, batches := range a {
		var own []Batch
		for _, c := range batches {
			b := Batch{Crash: c.crash}
			for _, i := range c.deliveries {
				d := *p.Deliveries[i]
				d.Memo, d.Position = nil, event.Position(i+1)
				if came[i] { // a redelivery has a place of its own in the journal
					copies++
					d.Position = copies
				}
				came[i], got.of[d.Position] = true, i
				b.Deliveries = append(b.Deliveries, &d)
			}
			own = append(own, b)
		}
		f.Writers = append(f.Writers, own)
	}
	var mu sync.Mutex
	f.Mapped = func(e *event.Event, changes []*merge.Change) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range changes {
			got.mapped[idOf(got.of[c.From.Position], c)] = c
		}
	}
	type once struct {
		id changeID
		at event.Position
	}
	seen := map[once]bool{}
	f.Landed = func(changes []*merge.Change) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range changes {
			id := idOf(got.of[c.From.Position], c)
			got.landed[id] = true
			if !seen[once{id, c.From.Position}] {
				seen[once{id, c.From.Position}] = true
				got.changes = append(got.changes, c)
			}
		}
	}
	left, err := f.Run(ctx, p.Patience)
	if err != nil {
		return nil, err
	}
	for _, e := range left {
		got.left[eventID{got.of[e.Ref.Position], e.Ref.Index}] = e
	}
	return got, nil
}
