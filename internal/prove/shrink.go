package prove

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/hookfold/hookfold/converge"
	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Counterexample is the fewest deliveries, and the way in which they arrive, for
// which something is not as it must be.
type Counterexample struct {
	Differences []Difference
	Steps       []Step
	// Writers is how many writers it takes; more than 1 only where it does not
	// happen with one. Crash says that each batch is written and then, because its
	// writer crashed before the journal knew of it, once more.
	Writers int
	Crash   bool
	// Shrunk says that what was found happened again while it was made smaller. If
	// not, it is as it was found.
	Shrunk bool
	// Deliveries are those of the steps, in their order, for replay.
	Deliveries []*event.Delivery
}

// Step is the arrival of one delivery.
type Step struct {
	// Delivery is the position of the delivery as it was given, Batch the batch
	// that takes it, from 1, and Again says that it came before.
	Delivery event.Position
	Batch    int
	Again    bool
	Source   string
	Events   []Said
}

// Said is what one event of a delivery says.
type Said struct {
	ID, Type string
	Time     time.Time
	// Changes tell, for a person, what it says about which rows.
	Changes []string
}

// raceTries is how often a way of arriving is tried that fails only by chance,
// because several writers are at it.
const raceTries = 12

// maxExpected is how many expectations are kept while shrinking.
const maxExpected = 256

// shrinker makes a failure smaller.
type shrinker struct {
	*prover
	ctx context.Context
	at  sink.Scratch
	// wrong is what was found last, err that something could not be tried.
	wrong []Difference
	err   error
	// expected are expectations by the deliveries that they are of.
	expected map[string]*expectation
}

// way is how schedules arrive, and how often one is tried.
type way struct {
	writers, tries int
	crash          bool
	arrive         func(converge.Schedule) arrival
}

// shrink makes a failure as small as it can. If it is interrupted, the failure
// is told of as it was found.
func (p *prover) shrink(ctx context.Context, x sink.Scratch, f *failure) (*Counterexample, error) {
	s := &shrinker{prover: p, ctx: ctx, at: x, expected: map[string]*expectation{}}
	rnd := rand.New(rand.NewPCG(p.Seed, 1))
	ways := []way{{1, 1, false, alone}, {1, 1, true, crashing}}
	if n := len(f.arrival); n > 1 {
		ways = append(ways, way{n, raceTries, false, func(s converge.Schedule) arrival { return dealt(s, n, rnd) }})
	}
	for _, w := range ways {
		for _, start := range p.starts(f, rnd) {
			if !s.fails(start, w) {
				continue
			}
			best := converge.Shrink(start, func(smaller converge.Schedule) bool { return s.fails(smaller, w) })
			if t := sorted(best); w.writers == 1 && s.fails(t, w) {
				best = t // it reads best so
			}
			out := &Counterexample{Writers: w.writers, Crash: w.crash, Shrunk: s.fails(best, w)}
			if s.err != nil {
				break
			}
			if exp := s.expected[name(best)]; exp != nil && len(exp.wrong) > 0 { // in the order of the record, one by one
				best, out.Writers, out.Crash = singly(numbers(best)), 1, false
			}
			out.Differences = s.wrong
			p.tell(out, best)
			return out, nil
		}
	}
	if s.err != nil && ctx.Err() == nil {
		return nil, s.err
	}
	out := &Counterexample{Writers: len(f.arrival), Differences: f.differences}
	p.tell(out, f.arrival.schedule())
	return out, nil
}

// name names the deliveries of a schedule.
func name(s converge.Schedule) string { return fmt.Sprint(numbers(s)) }

// fails tells whether something is not as it must be when a schedule arrives.
func (s *shrinker) fails(x converge.Schedule, w way) bool {
	if s.err != nil {
		return false
	}
	exp := s.expected[name(x)]
	if exp == nil {
		if exp, s.err = s.expect(s.ctx, s.at, numbers(x)); s.err != nil {
			return false
		}
		if len(s.expected) >= maxExpected {
			clear(s.expected)
		}
		s.expected[name(x)] = exp
	}
	if len(exp.wrong) > 0 {
		s.wrong = exp.wrong
		return true
	}
	for range w.tries {
		var wrong []Difference
		if wrong, s.err = s.try(s.ctx, s.at, exp, w.arrive(x)); s.err != nil {
			return false
		}
		if len(wrong) > 0 {
			s.wrong = wrong
			return true
		}
	}
	return false
}

// schedule is an arrival with the batches of its writers one after the other, in
// turn.
func (a arrival) schedule() converge.Schedule {
	var s converge.Schedule
	for i := 0; ; i++ {
		more := false
		for _, batches := range a {
			if i < len(batches) {
				s, more = append(s, batches[i].deliveries), true
			}
		}
		if !more {
			return s
		}
	}
}

// starts are schedules from which to shrink: first only the deliveries about the
// rows that are wrong, then all; as they are, one by one, and with several
// writers also in other orders, because it is not known in which they came.
func (p *prover) starts(f *failure, rnd *rand.Rand) []converge.Schedule {
	whole := f.arrival.schedule()
	var out []converge.Schedule
	add := func(s converge.Schedule) {
		if len(s) > 0 {
			out = append(out, s)
		}
	}
	about := p.about(f.differences)
	var narrow converge.Schedule
	for _, b := range whole {
		if b = slices.DeleteFunc(slices.Clone(b), func(d int) bool { return !about[d] }); len(b) > 0 {
			narrow = append(narrow, b)
		}
	}
	for _, s := range []converge.Schedule{narrow, whole} {
		add(s)
		add(singly(s.Flat()))
		if len(f.arrival) > 1 {
			for range 6 {
				flat := s.Flat()
				rnd.Shuffle(len(flat), func(i, j int) { flat[i], flat[j] = flat[j], flat[i] })
				add(singly(flat))
			}
		}
	}
	return out
}

// numbers are the deliveries of a schedule, in the order of the record.
func numbers(s converge.Schedule) []int {
	return slices.Compact(slices.Sorted(slices.Values(s.Flat())))
}

func singly(order []int) converge.Schedule {
	var s converge.Schedule
	for _, d := range order {
		s = append(s, []int{d})
	}
	return s
}

// sorted is a schedule with its deliveries in the order of the record within
// each batch.
func sorted(s converge.Schedule) converge.Schedule {
	out := make(converge.Schedule, len(s))
	for i, b := range s {
		out[i] = slices.Sorted(slices.Values(b))
	}
	return out
}

// crashing lets every batch be taken by two lives of the writer.
func crashing(s converge.Schedule) arrival {
	a := alone(s)
	for i := range a[0] {
		a[0][i].crash = true
	}
	return a
}

// dealt deals the arrivals of a schedule out to writers by chance, each a batch.
func dealt(s converge.Schedule, writers int, rnd *rand.Rand) arrival {
	a := make(arrival, writers)
	for _, d := range s.Flat() {
		w := rnd.IntN(writers)
		a[w] = append(a[w], cut{deliveries: []int{d}})
	}
	return slices.DeleteFunc(a, func(b []cut) bool { return b == nil })
}

// about are the deliveries that speak of rows that are wrong, or of parents of
// theirs.
func (p *prover) about(list []Difference) map[int]bool {
	rows, tables := map[string]bool{}, map[string]bool{}
	for _, d := range list {
		rows[d.Table+" "+d.Key], tables[d.Table] = true, true
	}
	return About(p.Plan, p.Target, p.Deliveries, func(c *merge.Change) bool {
		return rows[c.Table.Name+" "+c.Table.Show(c.Key)] || c.Replaces && tables[c.Table.Name]
	})
}

// About tells which deliveries hold a wanted change, or speak of the rows of one,
// of rows that it names as parents, or of identities that it links. A delivery
// that cannot be read speaks of nothing.
func About(plan *mapping.Plan, target string, deliveries []*event.Delivery, wanted func(c *merge.Change) bool) map[int]bool {
	type row struct {
		table *merge.Table
		key   merge.Key
	}
	changes := make([][]*merge.Change, len(deliveries))
	for i, d := range deliveries {
		changes[i] = meaning(plan, target, d)
	}
	out := map[int]bool{}
	rows := map[row]bool{}
	for more := true; more; {
		before := len(out) + len(rows)
		for i, list := range changes {
			for _, c := range list {
				if !rows[row{c.Table, c.Key}] && !wanted(c) {
					continue
				}
				out[i], rows[row{c.Table, c.Key}] = true, true
				for _, parent := range c.Parents {
					rows[row{parent.Table, parent.Key}] = true
				}
				for _, l := range c.Links {
					rows[row{c.Table, merge.NewKey(l.Old)}] = true
					rows[row{c.Table, merge.NewKey(l.New)}] = true
				}
			}
		}
		more = len(out)+len(rows) > before
	}
	return out
}

// meaning are the changes of a delivery.
func meaning(plan *mapping.Plan, target string, d *event.Delivery) []*merge.Change {
	own := *d
	own.Memo = nil
	src := plan.Source(d.Source)
	if src == nil {
		return nil
	}
	split, err := src.Events(&own)
	if err != nil {
		return nil
	}
	var out []*merge.Change
	for _, e := range split.Events {
		out = append(out, plan.Map(e, target).Changes...)
	}
	return out
}

// tell fills in the steps of a counterexample.
func (p *prover) tell(x *Counterexample, s converge.Schedule) {
	came := map[int]bool{}
	for b, batch := range s {
		for _, i := range batch {
			d := p.Deliveries[i]
			step := Step{Delivery: d.Position, Batch: b + 1, Again: came[i], Source: d.Source}
			came[i] = true
			own := *d
			own.Memo = nil
			if src := p.Plan.Source(d.Source); src != nil {
				if split, err := src.Events(&own); err == nil {
					for _, e := range split.Events {
						step.Events = append(step.Events, p.said(e))
					}
				}
			}
			x.Steps = append(x.Steps, step)
			x.Deliveries = append(x.Deliveries, d)
		}
	}
}

// said tells what an event says.
func (p *prover) said(e *event.Event) Said {
	out := Said{ID: e.ID, Type: e.Type, Time: e.Time}
	for _, c := range p.Plan.Map(e, p.Target).Changes {
		out.Changes = append(out.Changes, describe(c))
	}
	return out
}

// describe tells a person what a change says.
func describe(c *merge.Change) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", c.Table.Name, c.Table.Show(c.Key))
	if c.Occupant != nil && !c.Table.Chained {
		fmt.Fprintf(&b, " (occupant %s)", c.Occupant.ID)
	}
	b.WriteString(":")
	switch {
	case c.Replaces:
		b.WriteString(" the list is complete")
	case c.Delete:
		b.WriteString(" deleted")
	}
	sep := " "
	for i, cell := range c.Cells {
		if cell.Set && !c.Delete {
			fmt.Fprintf(&b, "%s%s=%s", sep, c.Table.Columns[i].Name, cell.Value)
			sep = ", "
		}
	}
	if sep == " " && !c.Delete && !c.Replaces {
		b.WriteString(" it is there")
	}
	for _, l := range c.Links {
		fmt.Fprintf(&b, "; %s follows %s", l.New, l.Old)
	}
	for _, p := range c.Parents {
		verb := "inserted if missing"
		if p.Wait {
			verb = "waited for"
		}
		fmt.Fprintf(&b, "; %s %s %s", p.Table.Name, p.Table.Show(p.Key), verb)
	}
	return b.String()
}
