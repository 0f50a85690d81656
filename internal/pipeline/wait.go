package pipeline

import (
	"sync"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/sink"
)

// maxWaits bounds what waits keeps in memory; events beyond it are only tried
// again as time passes.
const maxWaits = 100_000

// waits knows which rows the waiting events of a target are about and wait for,
// so that they are woken when such a row is written. It only makes things
// faster: an event that it does not know is tried again as time passes.
type waits struct {
	mu sync.Mutex
	// rows holds the events by "table key", of the row they are about and of
	// what they wait for.
	rows  map[string]map[event.Ref]struct{}
	count int
	// woken are events to be tried again at once.
	woken map[event.Ref]struct{}
	wake  chan struct{} // of capacity 1
}

func newWaits() *waits {
	return &waits{rows: map[string]map[event.Ref]struct{}{}, woken: map[event.Ref]struct{}{}, wake: make(chan struct{}, 1)}
}

// note takes down what became of the events of a batch.
func (w *waits) note(before, after []journal.Entry) {
	if len(before) == 0 && len(after) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range before {
		for _, row := range rowsOf(e) {
			if refs := w.rows[row]; refs != nil {
				if _, ok := refs[e.Ref]; ok {
					delete(refs, e.Ref)
					w.count--
				}
				if len(refs) == 0 {
					delete(w.rows, row)
				}
			}
		}
		delete(w.woken, e.Ref)
	}
	for _, e := range after {
		if e.State != journal.Waiting || w.count >= maxWaits {
			continue
		}
		for _, row := range rowsOf(e) {
			if w.rows[row] == nil {
				w.rows[row] = map[event.Ref]struct{}{}
			}
			if _, ok := w.rows[row][e.Ref]; !ok {
				w.rows[row][e.Ref] = struct{}{}
				w.count++
			}
		}
	}
}

func rowsOf(e journal.Entry) []string {
	var rows []string
	if e.Table != "" && e.Key != "" {
		rows = append(rows, e.Table+" "+e.Key)
	}
	if e.On != "" {
		rows = append(rows, e.On)
	}
	return rows
}

// written wakes the events that are about a row of a batch or wait for it.
func (w *waits) written(b *sink.Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rows) == 0 {
		return
	}
	for _, g := range b.Groups {
		for _, row := range g.Rows {
			for ref := range w.rows[g.Table.Table.Name+" "+g.Table.Show(row.Key)] {
				w.woken[ref] = struct{}{}
			}
		}
	}
	if len(w.woken) > 0 {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// take returns the events that are woken, each once.
func (w *waits) take() []event.Ref {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []event.Ref
	for ref := range w.woken {
		out = append(out, ref)
	}
	clear(w.woken)
	return out
}
