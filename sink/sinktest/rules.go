package sinktest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/hookfold/hookfold/converge"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/merge/mergetest"
	"github.com/hookfold/hookfold/sink"
)

func named(name string, occupied bool) *merge.Table {
	t := *mergetest.EveryRule(mergetest.Shape{Occupied: occupied})
	return merge.NewTable(merge.Table{Name: name, Key: t.Key, Columns: t.Columns, Occupied: occupied})
}

// everyRule runs many small histories at once, each in an order, duplication
// and grouping of its own: the first batch of all of them is one transaction,
// then the second, and so on.
func everyRule(t *testing.T, e Engine) {
	for _, table := range e.variants() {
		t.Run(table.Name, func(t *testing.T) {
			rnd, _ := newRand(t)
			s := e.open(t, table)
			var all []*merge.Change
			var steps [][]*merge.Change
			for h := range 150 * e.Rounds {
				changes := rekey(mergetest.Changes(rnd, table.Table, 1+rnd.IntN(6)), h)
				all = append(all, changes...)
				for i, batch := range converge.Random(rnd, len(changes)) {
					if i == len(steps) {
						steps = append(steps, nil)
					}
					for _, x := range batch {
						steps[i] = append(steps[i], changes[x])
					}
				}
			}
			for i, changes := range steps {
				if _, err := apply(t.Context(), s, table, changes); err != nil {
					t.Fatalf("batch %d: %v", i, err)
				}
			}
			mustHold(t, s, table, all, "after every batch")
		})
	}
}

// concurrent lets eight writers write overlapping halves of the same changes to
// the same few rows, in random orders.
func concurrent(t *testing.T, e Engine) {
	for _, table := range e.variants() {
		t.Run(table.Name, func(t *testing.T) {
			rnd, seed := newRand(t)
			s := e.open(t, table)
			var all []*merge.Change
			for h := range 12 * e.Rounds {
				all = append(all, rekey(mergetest.Changes(rnd, table.Table, 10), h)...)
			}
			const writers = 8
			var wg sync.WaitGroup
			errs := make([]error, writers)
			for w := range writers {
				wg.Go(func() { errs[w] = write(t, s, table, all, w, writers, seed) })
			}
			wg.Wait()
			for w, err := range errs {
				if err != nil {
					t.Fatalf("writer %d: %v", w, err)
				}
			}
			mustHold(t, s, table, all, "after eight writers")
		})
	}
}

func write(t *testing.T, s sink.Sink, table *sink.Table, all []*merge.Change, w, writers int, seed uint64) error {
	rnd := rand.New(rand.NewPCG(seed, uint64(w)+1))
	var mine []*merge.Change
	for i, c := range all {
		if i%writers == w || rnd.IntN(4) == 0 {
			mine = append(mine, c)
		}
	}
	rnd.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
	for len(mine) > 0 {
		n := min(len(mine), 1+rnd.IntN(12))
		if err := persist(t, s, table, mine[:n]); err != nil {
			return err
		}
		mine = mine[n:]
	}
	return nil
}

// persist applies changes again as long as the sink says that it may be tried.
func persist(t *testing.T, s sink.Sink, table *sink.Table, changes []*merge.Change) error {
	var err error
	for range 50 {
		if _, err = apply(t.Context(), s, table, changes); err == nil {
			return nil
		}
		if sink.ActionOf(err) != sink.Retry {
			break
		}
	}
	return err
}

// again applies everything a second time: nothing is written, and nothing
// moves.
func again(t *testing.T, e Engine) {
	for _, table := range e.variants() {
		t.Run(table.Name, func(t *testing.T) {
			rnd, _ := newRand(t)
			s := e.open(t, table)
			var all []*merge.Change
			for h := range 20 {
				all = append(all, rekey(mergetest.Changes(rnd, table.Table, 6), h)...)
			}
			if _, err := apply(t.Context(), s, table, all); err != nil {
				t.Fatal(err)
			}
			before := readAll(t, s, table)
			got, err := apply(t.Context(), s, table, all)
			if err != nil {
				t.Fatal(err)
			}
			if got.Written != 0 || got.Unchanged == 0 {
				t.Errorf("the same batch again wrote %d rows and left %d unchanged", got.Written, got.Unchanged)
			}
			if after := readAll(t, s, table); fmt.Sprint(before) != fmt.Sprint(after) {
				t.Errorf("rows moved, touch among them:\n%v\n%v", before, after)
			}
		})
	}
}

// readAll returns every cell of every row as text, touch columns too.
func readAll(t *testing.T, s sink.Sink, table *sink.Table) []string {
	t.Helper()
	live, err := s.Read(t.Context(), table, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range live {
		out = append(out, fmt.Sprint(r.Key, r.Cells, r.Scopes))
	}
	return out
}
