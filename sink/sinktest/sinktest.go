// Package sinktest is the conformance suite of package sink: whatever the order,
// duplication, grouping and concurrency of the changes, the rows of a sink are
// those of package merge. A sink works when Run passes.
package sinktest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/merge/mergetest"
	"github.com/hookfold/hookfold/sink"
)

// Engine is one kind of sink to be tested.
type Engine struct {
	// Open returns a sink on an empty database made for this test, in which no
	// table is there yet, and removes both when the test ends.
	Open func(t testing.TB, tables []*sink.Table) sink.Sink
	// Guard is what keeps the rows of the tables right.
	Guard sink.Guard
	// Rounds multiplies the number of random rounds; 0 is 1.
	Rounds int
	// NotBeside says that the sink refuses tables whose versions live beside.
	NotBeside bool
	// LocalOnly says that the sink refuses tables that are not Local: deletes,
	// complete lists, chains and counters.
	LocalOnly bool
	// NotOccupied says that the sink refuses tables with occupants.
	NotOccupied bool
	// Brief leaves out what is the same for every table of a sink, however its rows
	// are kept right: exact values, large batches, pages, and plans. It is for a
	// second suite of a sink.
	Brief bool
	// Holds says which tables the sink takes, where the shapes above do not tell;
	// nil is all.
	Holds func(*sink.Table) bool
	// Keeps says which columns the sink can merge; tables lose the others. Nil is
	// all.
	Keeps func(merge.Column) bool
	// Refuses says which values, by their canonical text, the sink refuses with
	// Reject, because they would not arrive as they are. Nil is none.
	Refuses func(t merge.Type, text string) bool
	// RefusesKey says which values it refuses in a key besides.
	RefusesKey func(t merge.Type, text string) bool
	// Faulty opens a sink as Open does whose transactions fail as fault says; it
	// is asked when all of a transaction but its commit is done. Nil leaves out
	// the test that needs it.
	Faulty func(t testing.TB, tables []*sink.Table, fault func() Fault) sink.Sink
}

// Fault is where a transaction fails.
type Fault uint8

// Where it fails. Each time the sink is left with an error that says Retry.
const (
	NoFault Fault = iota
	// BeforeCommit loses the transaction, AfterCommit the news that it is in.
	BeforeCommit
	AfterCommit
)

// Run runs the suite.
func Run(t *testing.T, e Engine) {
	e.Rounds = max(e.Rounds, 1)
	t.Run("EveryRuleInEveryOrder", func(t *testing.T) { everyRule(t, e) })
	t.Run("EveryRuleWithConcurrentWriters", func(t *testing.T) { concurrent(t, e) })
	if e.Faulty != nil {
		t.Run("EveryRuleWithFaults", func(t *testing.T) { faults(t, e) })
	}
	if !e.LocalOnly {
		t.Run("ChainColumn", func(t *testing.T) { chainColumn(t, e) })
	}
	t.Run("AgainChangesNothing", func(t *testing.T) { again(t, e) })
	t.Run("CompositeKeys", func(t *testing.T) { compositeKeys(t, e) })
	t.Run("ParentsBeforeChildren", func(t *testing.T) { parents(t, e) })
	t.Run("IfMissing", func(t *testing.T) { ifMissing(t, e) })
	if e.Keeps == nil || e.Keeps(merge.Column{Type: merge.Type{Kind: merge.Timestamp}, Rule: merge.Touch}) {
		t.Run("Touch", func(t *testing.T) { touch(t, e) })
	}
	t.Run("Known", func(t *testing.T) { known(t, e) })
	if e.Brief {
		return
	}
	t.Run("ExactValues", func(t *testing.T) { exactValues(t, e) })
	t.Run("Replace", func(t *testing.T) { replace(t, e) })
	t.Run("Pages", func(t *testing.T) { pages(t, e) })
	t.Run("LargeBatch", func(t *testing.T) { largeBatch(t, e) })
	t.Run("PlanIsAdditiveAndDone", func(t *testing.T) { plan(t, e) })
}

// open returns a sink with its tables made.
func (e Engine) open(t testing.TB, tables ...*sink.Table) sink.Sink {
	t.Helper()
	for _, x := range tables {
		x.Guard = e.Guard
	}
	s := e.Open(t, tables)
	bring(t, s, tables...)
	return s
}

func bring(t testing.TB, s sink.Sink, tables ...*sink.Table) {
	t.Helper()
	statements, err := s.Plan(t.Context(), tables)
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	if err := s.Execute(t.Context(), statements); err != nil {
		t.Fatalf("execute: %v\n%v", err, statements)
	}
}

// variants are the tables on which every rule is tried, one of each shape that
// the sink takes.
func (e Engine) variants() []*sink.Table {
	var out []*sink.Table
	shapes := mergetest.Shapes()
	if !e.NotBeside {
		shapes = append(shapes, mergetest.Shape{Beside: true}, mergetest.Shape{Beside: true, Occupied: true})
	}
	for _, shape := range shapes {
		x := &sink.Table{Table: e.kept(mergetest.EveryRule(shape)), Name: shape.Name(), Guard: e.Guard}
		if shape.Beside {
			x.Versions = sink.Beside
		}
		if (x.Local() || !e.LocalOnly) && (!x.Occupied || !e.NotOccupied) && e.holds(x) {
			out = append(out, x)
		}
	}
	return out
}

func (e Engine) holds(t *sink.Table) bool { return e.Holds == nil || e.Holds(t) }

// kept is a table without the columns that the sink cannot merge.
func (e Engine) kept(t *merge.Table) *merge.Table {
	if e.Keeps == nil {
		return t
	}
	columns := slices.DeleteFunc(slices.Clone(t.Columns), func(c merge.Column) bool { return !e.Keeps(c) })
	return merge.NewTable(merge.Table{Name: t.Name, Key: t.Key, Columns: columns, Occupied: t.Occupied, Chained: t.Chained, OnDelete: t.OnDelete, Group: t.Group})
}

// apply writes one batch of changes of one table.
func apply(ctx context.Context, s sink.Sink, table *sink.Table, changes []*merge.Change) (*sink.Result, error) {
	return s.Apply(ctx, &sink.Batch{Groups: []sink.Group{group(table, changes)}})
}

func group(table *sink.Table, changes []*merge.Change) sink.Group {
	b := merge.FoldAll(table.Table, changes)
	return sink.Group{Table: table, Rows: b.Rows, Sets: b.Sets, Links: b.Links}
}

// row is what is compared of a row: unset and NULL look alike in a database.
type row struct {
	Key      string
	Occupant string
	Since    merge.Component
	Cells    map[string]string
	Versions map[string]merge.Version
	// Deleted is the version of the delete that the row remembers, and DeletedAt
	// its time while the row is deleted.
	Deleted   merge.Version
	DeletedAt string
}

func rows(t *merge.Table, list []*merge.Row) []row {
	var out []row
	for _, r := range list {
		x := row{Key: t.Show(r.Key), Cells: map[string]string{}, Versions: map[string]merge.Version{}}
		if r.Occupant != nil {
			x.Occupant, x.Since = r.Occupant.ID, r.Occupant.Since
		}
		for i, c := range r.Cells {
			if c.Set && !c.Value.IsNull() && t.Columns[i].Rule != merge.Touch {
				x.Cells[t.Columns[i].Name] = c.Value.Text()
			}
			if c.Version != "" {
				x.Versions[t.Columns[i].Name] = c.Version
			}
		}
		if t.OnDelete != merge.DeleteNone {
			x.Versions["seen"] = r.Seen
		}
		if t.OnDelete == merge.DeleteMark || t.OnDelete == merge.DeleteSet {
			x.Deleted = r.Deleted
		}
		if t.OnDelete == merge.DeleteMark && r.Gone() {
			x.DeletedAt = r.DeletedAt.Text()
		}
		for i, v := range r.Scopes {
			if v != "" {
				x.Versions[t.Scopes()[i]] = v
			}
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b row) int { return cmpString(a.Key, b.Key) })
	return out
}

func cmpString(a, b string) int {
	if a < b {
		return -1
	}
	return btoi(a > b)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// mustHold fails the test unless the table holds exactly the rows that the
// changes make by package merge.
func mustHold(t *testing.T, s sink.Sink, table *sink.Table, changes []*merge.Change, story string) {
	t.Helper()
	live, err := s.Read(t.Context(), table, nil)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	want := rows(table.Table, merge.Rows(table.Table, changes))
	if d := cmp.Diff(want, rows(table.Table, live)); d != "" {
		t.Fatalf("%s: rows of %s are not those of merge (-want +got):\n%s", story, table.Name, shorten(d))
	}
}

func shorten(s string) string {
	const most = 6000
	if len(s) > most {
		return s[:most] + "\n…"
	}
	return s
}

func newRand(t *testing.T) (*rand.Rand, uint64) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0)), seed
}

// rekey gives changes keys of their own, so that many small histories can live
// in one table.
func rekey(changes []*merge.Change, history int) []*merge.Change {
	own := func(s string) string { return fmt.Sprintf("%06d.%s", history, s) }
	out := make([]*merge.Change, len(changes))
	for i, c := range changes {
		x := *c
		if !c.Replaces || len(c.Table.Group) > 0 { // else it is about all of them
			x.Key = merge.Key(own(string(c.Key)))
		}
		if c.Table.Chained {
			if c.Occupant != nil {
				x.Occupant = &merge.Occupant{ID: own(c.Occupant.ID), Since: c.Occupant.Since}
			}
			x.Links = nil
			for _, l := range c.Links {
				x.Links = append(x.Links, merge.Link{Old: own(l.Old), New: own(l.New)})
			}
		}
		out[i] = &x
	}
	return out
}

func value(t testing.TB, typ merge.Type, text string) merge.Value {
	t.Helper()
	v, err := merge.ParseValue(typ, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// change makes a change of a table at a version; values are canonical texts by
// column name, and a nil one is NULL.
func change(t testing.TB, table *sink.Table, key merge.Key, version int64, values map[string]*string) *merge.Change {
	t.Helper()
	c := &merge.Change{Table: table.Table, Key: key, Cells: make([]merge.Cell, len(table.Columns))}
	if table.Versioned() {
		c.Version = merge.NewVersion([]merge.Component{merge.IntOf(version)}, merge.Write, fmt.Append(nil, slices.Sorted(maps.Keys(values)), version))
	}
	for name, text := range values {
		i := table.Column(name)
		c.Cells[i].Set = true
		if text != nil {
			c.Cells[i].Value = value(t, table.Columns[i].Type, *text)
		}
	}
	return c
}

func text(s string) *string { return &s }
