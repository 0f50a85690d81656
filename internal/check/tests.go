package check

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/source"
)

// Options say how tests are run. The zero value is ready to use.
type Options struct {
	// Seed chooses the random orders of tests with more events than have all
	// their orders tried.
	Seed uint64
	// Orders is how many random orders are tried then; default 200.
	Orders int
}

const (
	allOrders     = 6 // events of which every order is tried
	defaultOrders = 200
)

// Result is what became of one test.
type Result struct {
	Name string     `json:"name"`
	Pos  config.Pos `json:"-"`
	// Events and Orders count what was tried; each event was applied twice.
	Events int `json:"events"`
	Orders int `json:"orders"`
	// Differences are why the test fails; none if it passes.
	Differences []string `json:"differences,omitempty"`
	// Notes tell of events that said nothing: dead, or not wanted.
	Notes []string `json:"notes,omitempty"`
}

// Passed tells whether the test passes.
func (r *Result) Passed() bool { return len(r.Differences) == 0 }

// Test runs the tests of a config: the rows that the events make, in every
// order, each event twice, have to be those that are expected.
func Test(p *mapping.Plan, o Options) []*Result {
	if o.Orders == 0 {
		o.Orders = defaultOrders
	}
	var results []*Result
	for _, t := range p.Config.Tests {
		r := &Result{Name: t.Text, Pos: t.Pos}
		results = append(results, r)
		run := &testRun{plan: p, test: t, result: r, options: o}
		run.run()
	}
	return results
}

type testRun struct {
	plan    *mapping.Plan
	test    *config.Test
	result  *Result
	options Options
	said    []said
}

// said is what one event says.
type said struct {
	name    string
	changes []*merge.Change
}

func (r *testRun) differ(format string, args ...any) {
	r.result.Differences = append(r.result.Differences, fmt.Sprintf(format, args...))
}

func (r *testRun) run() {
	for i := range r.test.Send {
		r.send(i)
	}
	r.result.Events = len(r.said)
	r.wait()
	if len(r.result.Differences) > 0 {
		return
	}
	for order := range orders(len(r.said), r.options) {
		r.result.Orders++
		if r.compare(order); len(r.result.Differences) > 0 {
			return
		}
	}
}

// send maps the events of one delivery.
func (r *testRun) send(i int) {
	d := &r.test.Send[i]
	src, delivery, err := r.delivery(d)
	if err != nil {
		r.differ("%v", err)
		return
	}
	delivery.Position = event.Position(i + 1)
	split, err := src.Events(delivery)
	if err != nil {
		r.differ("send[%d] cannot be read: %v", i, err)
		return
	}
	for _, f := range split.Faults {
		r.result.Notes = append(r.result.Notes, fmt.Sprintf("send[%d] %s is dead: %s", i, f.Event.Type, f.Reason))
	}
	for _, e := range split.Events {
		if delivery.Received.Before(e.Time) {
			delivery.Received = e.Time.Add(time.Second)
		}
	}
	for _, e := range split.Events {
		e.FirstReceived = delivery.Received
		for _, name := range slices.Sorted(maps.Keys(d.Fetched)) {
			f := event.Fetched{Index: e.Index, Name: name, Status: http.StatusOK, At: firstReceived.Add(time.Duration(i) * time.Second), Body: d.Fetched[name]}
			if string(f.Body) == "null" {
				f.Status, f.Body = http.StatusNotFound, nil
			}
			e.Delivery.Fetched = append(e.Delivery.Fetched, f)
		}
	}
	for _, e := range split.Events {
		r.event(i, d, e)
	}
}

// firstReceived is when a test's deliveries are received if no event of theirs
// has a later time.
var firstReceived = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (r *testRun) delivery(d *config.Delivery) (*mapping.Source, *event.Delivery, error) {
	out := &event.Delivery{Source: d.Source, Body: d.Body, Header: header(d.Header), Received: firstReceived}
	if d.Sample != "" {
		s, preset := source.SampleNamed(d.Sample)
		if s == nil {
			return nil, nil, fmt.Errorf("there is no sample %s.%s", d.Sample, sampleHint(d.Sample, preset))
		}
		out.Body, out.Header = s.Body, s.Header
		if out.Source == "" {
			i := slices.IndexFunc(r.plan.Sources, func(x *mapping.Source) bool { return x.Preset != nil && x.Preset.Name == preset.Name })
			if i < 0 {
				return nil, nil, fmt.Errorf("no source has the preset %s of the sample %s", preset.Name, d.Sample)
			}
			out.Source = r.plan.Sources[i].Name
		}
	}
	src := r.plan.Source(out.Source)
	if src == nil || src.Source == nil {
		return nil, nil, fmt.Errorf("%s is not a source of this config", out.Source)
	}
	return src, out, nil
}

func sampleHint(name string, preset *source.Preset) string {
	var names []string
	if preset != nil {
		for _, s := range preset.Samples {
			names = append(names, s.Name)
		}
	}
	if near := expr.Nearest(name, names); near != "" {
		return " Did you mean " + near + "?"
	}
	if len(names) > 0 {
		return " There are " + and(names) + "."
	}
	return ""
}

func header(h map[string]string) map[string][]string {
	out := map[string][]string{}
	for name, v := range h {
		out[canonical(name)] = []string{v}
	}
	return out
}

func (r *testRun) event(i int, d *config.Delivery, e *event.Event) {
	s := said{name: eventName(i, d, e)}
	wanted := false
	for _, target := range r.plan.Targets() {
		out := r.plan.Map(e, target)
		wanted = wanted || out.Wanted
		for _, f := range out.Faults {
			at := f.Table
			if f.Column != "" {
				at += "." + f.Column
			}
			r.result.Notes = append(r.result.Notes, fmt.Sprintf("%s is dead → %s: %s", s.name, at, f.Reason))
		}
		for _, read := range out.Reads {
			r.result.Notes = append(r.result.Notes, fmt.Sprintf("%s waits for fetch %s of %s: give fetched: {%[2]s: {…}} with it", s.name, read.Fetch.Name, read.URL))
		}
		s.changes = append(s.changes, out.Changes...)
	}
	if !wanted {
		r.result.Notes = append(r.result.Notes, s.name+" is wanted by no mapping")
	}
	r.said = append(r.said, s)
}

// wait leaves out the changes that wait for what none of the test's events
// brings, and adds the parents that changes insert.
func (r *testRun) wait() {
	var all []*merge.Change
	of := map[*merge.Change]string{}
	for _, s := range r.said {
		for _, c := range s.changes {
			all, of[c] = append(all, c), s.name
		}
	}
	_, waits := merge.Ready(all)
	waiting := map[*merge.Change]bool{}
	for _, w := range waits {
		if w.For != nil { // else merge.Rows leaves it out
			waiting[w.Change] = true
			r.result.Notes = append(r.result.Notes, fmt.Sprintf("%s → %s %s: waits for %s %s, which no event of the test brings",
				of[w.Change], w.Change.Table.Name, w.Change.Table.Show(w.Change.Key), w.For.Table.Name, w.For.Table.Show(w.For.Key)))
		}
	}
	for i := range r.said {
		s := &r.said[i]
		var land []*merge.Change
		for _, c := range s.changes {
			if !waiting[c] {
				land = append(append(land, c.Stubs()...), c)
			}
		}
		s.changes = land
	}
}

func eventName(i int, d *config.Delivery, e *event.Event) string {
	name := fmt.Sprintf("send[%d]", i)
	if d.Sample != "" {
		name = d.Sample
	} else if e.Type != "" {
		name += " " + e.Type
	}
	if e.Index > 0 {
		name += fmt.Sprintf(" (event %d)", e.Index)
	}
	return name
}

// orders yields the orders to try.
func orders(n int, o Options) func(func([]int) bool) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if n <= allOrders {
		return func(yield func([]int) bool) { permute(order, 0, yield) }
	}
	random := rand.New(rand.NewPCG(o.Seed, uint64(n)))
	return func(yield func([]int) bool) {
		for range o.Orders {
			if !yield(order) {
				return
			}
			random.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
	}
}

func permute(order []int, from int, yield func([]int) bool) bool {
	if from >= len(order)-1 {
		return yield(order)
	}
	for i := from; i < len(order); i++ {
		order[from], order[i] = order[i], order[from]
		ok := permute(order, from+1, yield)
		order[from], order[i] = order[i], order[from]
		if !ok {
			return false
		}
	}
	return true
}

// compare applies the events in an order, and then again the other way round.
func (r *testRun) compare(order []int) {
	twice := slices.Concat(order, order)
	slices.Reverse(twice[len(order):])
	byTable := map[*merge.Table][]*merge.Change{}
	for _, i := range twice {
		for _, c := range r.said[i].changes {
			byTable[c.Table] = append(byTable[c.Table], c)
		}
	}
	before := len(r.result.Differences)
	for i := range r.test.Expect {
		expected := &r.test.Expect[i]
		t := r.plan.Table(expected.Table.Text)
		if t == nil {
			r.differ("%s is not a table of this config", expected.Table.Text)
			continue
		}
		r.rows(t, expected, merge.Rows(t.Table.Table, byTable[t.Table.Table]))
	}
	if len(r.result.Differences) > before && len(order) > 1 {
		var names []string
		for _, i := range order {
			names = append(names, r.said[i].name)
		}
		r.differ("in the order %s", strings.Join(names, ", "))
	}
}
