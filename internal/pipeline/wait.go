package pipeline

import (
	"slices"
	"sync"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// maxWaits bounds the events that waits keeps in memory; events beyond it are
// only tried again as time passes.
const maxWaits = 100_000

// asking is how the sink is asked whether what an event needs has come, beside
// what this process writes itself.
type asking uint8

const (
	askNever asking = iota
	askKnown        // for its row, or the memory of its delete
	askRow          // for its row
)

// need is a row that must be written or deleted before a change can land.
type need struct {
	about rowID // the row of the change
	row   rowID
	ask   asking
	// anyRow says that any row of the table may be it; the key is "".
	anyRow bool
	// holder says that the row holds a unique value.
	holder bool
}

// waiting is an event that waits, or is dead but for changes that wait.
type waiting struct {
	since time.Time
	on    string
	dead  bool
	needs []need
	// misses counts how often it was woken because the sink has what it needs,
	// and still had to wait; asked tells that it is now.
	misses int
	asked  bool
	// circle is the circle that it is tried with, 0 if none; circled counts how
	// often it was since circledAt.
	circle, circled int
	circledAt       time.Time
}

// waits knows which rows the waiting events of a target are about and need, so
// that they are woken when such a row is written. It only makes things faster:
// an event that it does not know is tried again as time passes.
type waits struct {
	mu     sync.Mutex
	events map[event.Ref]*waiting
	// rows holds the events by the rows that they are about and need; of a need
	// of any row the key is "".
	rows map[rowID]map[event.Ref]struct{}
	// touched are the tables that were written since they were last looked at.
	touched map[int]bool
	// asks counts the events for which the sink is asked for a row, fresh are
	// those of them for which it has not yet been.
	asks  map[question]int
	fresh map[question]bool
	// woken are events to be tried again at once.
	woken map[event.Ref]struct{}
	wake  chan struct{} // of capacity 1
	// circles counts the circles that were found.
	circles int
	// seq counts batches as they begin and as they are written; begun are those
	// that have not ended, late is what was written since the first of them began.
	seq   int64
	begun map[int64]struct{}
	late  []*writing
}

// question is what the sink is asked.
type question struct {
	row rowID
	ask asking
}

func newWaits() *waits {
	return &waits{
		events: map[event.Ref]*waiting{}, rows: map[rowID]map[event.Ref]struct{}{}, touched: map[int]bool{},
		asks: map[question]int{}, fresh: map[question]bool{}, woken: map[event.Ref]struct{}{}, wake: make(chan struct{}, 1),
		begun: map[int64]struct{}{},
	}
}

// maxMisses is how often the sink may have what an event needs, and the event
// still not land, before the sink is no longer asked on its account.
const maxMisses = 3

// put takes down that an event waits.
func (w *waits) put(e *journal.Entry, v *verdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.events[e.Ref]
	w.remove(e.Ref) // but if it was woken while it was tried, it is tried again
	if len(w.events) >= maxWaits {
		return
	}
	x := &waiting{since: e.Since, on: e.On, dead: e.State == journal.Dead, needs: v.needs}
	if was != nil {
		x.misses, x.circled, x.circledAt = was.misses, was.circled, was.circledAt
		if was.asked {
			x.misses++
		}
	}
	w.events[e.Ref] = x
	for _, id := range x.rows() {
		if w.rows[id] == nil {
			w.rows[id] = map[event.Ref]struct{}{}
		}
		w.rows[id][e.Ref] = struct{}{}
	}
	for _, q := range x.questions() {
		if w.asks[q]++; w.asks[q] == 1 {
			w.fresh[q] = true
		}
	}
	for _, n := range x.needs {
		if was == nil && n.anyRow { // others may wait for this very change
			w.touched[n.row.table] = true
		}
	}
	if len(w.fresh) > 0 {
		w.signal()
	}
}

// settled takes down that an event does not wait any more.
func (w *waits) settled(ref event.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(ref)
	delete(w.woken, ref)
}

func (w *waits) remove(ref event.Ref) {
	x := w.events[ref]
	if x == nil {
		return
	}
	delete(w.events, ref)
	for _, id := range x.rows() {
		if delete(w.rows[id], ref); len(w.rows[id]) == 0 {
			delete(w.rows, id)
		}
	}
	for _, q := range x.questions() {
		if w.asks[q]--; w.asks[q] <= 0 {
			delete(w.asks, q)
			delete(w.fresh, q)
		}
	}
}

// rows are those whose writing wakes it, each once.
func (x *waiting) rows() []rowID {
	var out []rowID
	for _, n := range x.needs {
		for _, id := range []rowID{n.about, n.row} {
			if !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	return out
}

func (x *waiting) questions() []question {
	var out []question
	for _, n := range x.needs {
		if q := (question{n.row, n.ask}); n.ask != askNever && x.misses < maxMisses && !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	return out
}

func (w *waits) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// writing is what a batch wrote: rows, their tables, and the tables of which it
// replaced whole lists.
type writing struct {
	seq           int64
	rows          []rowID
	tables, lists []int
}

// begin tells that a batch is going to be written; what is written from then on
// is remembered until end, because events that turn out to wait may have waited
// for it.
func (w *waits) begin() (seq int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seq++
	w.begun[w.seq] = struct{}{}
	return w.seq
}

func (w *waits) end(seq int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.begun, seq)
	first := w.seq + 1
	for b := range w.begun {
		first = min(first, b)
	}
	w.late = slices.DeleteFunc(w.late, func(x *writing) bool { return x.seq < first })
}

// missed wakes those of some events of a batch for which something was written
// while the batch was: they may have been tried before.
func (w *waits) missed(seq int64, refs []event.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := map[event.Ref]bool{}
	for _, ref := range refs {
		waiting[ref] = true
	}
	for _, x := range w.late {
		if x.seq < seq {
			continue
		}
		for _, id := range x.rows {
			for ref := range w.rows[id] {
				if waiting[ref] {
					w.woken[ref] = struct{}{}
				}
			}
		}
	}
	if len(w.woken) > 0 {
		w.signal()
	}
}

// written wakes the events that are about rows that were written, or need them.
func (w *waits) written(x *writing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.begun) > 0 {
		w.seq++
		x.seq = w.seq
		w.late = append(w.late, x)
	}
	if len(w.events) == 0 {
		return
	}
	for _, table := range x.tables {
		w.touched[table] = true
	}
	for _, id := range x.rows {
		w.rouse(id)
	}
	for _, table := range x.lists { // rows that are not named may be gone
		for ref, e := range w.events {
			if slices.ContainsFunc(e.needs, func(n need) bool { return n.holder && n.row.table == table }) {
				w.woken[ref] = struct{}{}
			}
		}
	}
	if len(w.woken) > 0 {
		w.signal()
	}
}

func (w *waits) rouse(id rowID) {
	for ref := range w.rows[id] {
		w.woken[ref] = struct{}{}
	}
}

// answered wakes the events that asked for a row, for it has come.
func (w *waits) answered(q question) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ref := range w.rows[q.row] {
		if x := w.events[ref]; slices.Contains(x.questions(), q) {
			x.asked = true
			w.woken[ref] = struct{}{}
		}
	}
}

// anyAtOnce is how many events are woken at a time because a table was written
// any row of which they may need.
const anyAtOnce = 500

// tick wakes events that wait for any row of a table that was written.
func (w *waits) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for table := range w.touched {
		n := 0
		for ref := range w.rows[rowID{table: table}] {
			if n++; n > anyAtOnce {
				break
			}
			w.woken[ref] = struct{}{}
		}
	}
	clear(w.touched)
}

// questionsAtOnce is how many rows the sink is asked for at a time.
const questionsAtOnce = 10_000

// questions are what the sink is to be asked: what it has not been asked before,
// or everything.
func (w *waits) questions(all bool) []question {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !all && len(w.fresh) == 0 {
		return nil
	}
	var out []question
	for q := range w.asks { // begins anywhere
		if len(out) == questionsAtOnce {
			break
		}
		if all || w.fresh[q] {
			out = append(out, q)
			delete(w.fresh, q)
		}
	}
	if len(w.fresh) > 0 {
		w.signal()
	}
	return out
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

// keep forgets events that are not, or no longer, among the entries of the
// journal: somebody has dropped them. It returns them.
func (w *waits) keep(there map[event.Ref]bool, before time.Time) (dropped []event.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ref, x := range w.events {
		if !there[ref] && x.since.Before(before) {
			w.remove(ref)
			delete(w.woken, ref)
			dropped = append(dropped, ref)
		}
	}
	return dropped
}

// Waits tells of the events of a target that wait.
type Waits struct {
	// Events counts them, as far as they are kept in memory, and Oldest is since
	// when the oldest one waits.
	Events int
	Oldest time.Time
}

func (w *waits) read() (out Waits) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.events {
		if x.dead {
			continue
		}
		if out.Events++; out.Oldest.IsZero() || x.since.Before(out.Oldest) {
			out.Oldest = x.since
		}
	}
	return out
}

// crowd counts the events that wait for the same as an entry.
func (w *waits) crowd(e *journal.Entry) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.events[e.Ref]
	if x == nil || len(x.needs) == 0 || x.needs[0].anyRow {
		return 1
	}
	n := 0
	for ref := range w.rows[x.needs[0].row] {
		if w.events[ref].on == e.On {
			n++
		}
	}
	return n
}
