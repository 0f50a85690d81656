package pipeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/sink"
)

// circle follows who waits for whom, by unique values, from an event that is
// about a row and needs another. It returns the events between, and the rows, of
// a circle; nil if there is none within some hundred steps.
func (w *waits) circle(about, holder rowID) (refs []event.Ref, rows []rowID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := map[rowID]bool{}
	var follow func(at rowID) bool
	follow = func(at rowID) bool {
		if at == about {
			return true
		}
		if seen[at] || len(seen) > 200 {
			return false
		}
		seen[at] = true
		rows = append(rows, at)
		for ref := range w.rows[at] {
			for _, n := range w.events[ref].needs {
				if !n.holder || n.about != at {
					continue
				}
				refs = append(refs, ref)
				if follow(n.row) {
					return true
				}
				refs = refs[:len(refs)-1]
			}
		}
		rows = rows[:len(rows)-1]
		return false
	}
	rows = []rowID{about}
	if !follow(holder) {
		return nil, nil
	}
	return refs, rows
}

// together wakes events that wait for each other, to be tried in one
// transaction: three times, and then once in a while.
func (w *waits) together(refs []event.Ref, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ref := range refs {
		if x := w.events[ref]; x == nil || x.circle > 0 || x.circled >= 3 && now.Sub(x.circledAt) < circleAgain {
			return
		}
	}
	w.circles++
	for _, ref := range refs {
		x := w.events[ref]
		x.circle, x.circledAt = w.circles, now
		x.circled++
		w.woken[ref] = struct{}{}
	}
	w.signal()
}

// circleAgain is how long a circle is left that could not be landed as one.
const circleAgain = 5 * time.Minute

// circleOf is the circle that an event is to be tried with, 0 if none.
func (w *waits) circleOf(ref event.Ref) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x := w.events[ref]; x != nil {
		return x.circle
	}
	return 0
}

// circles finds the events that wait for each other, by the unique values that
// their rows hold, and says so in their reason.
func (r *Runner) circles(w *work) [][]event.Ref {
	var out [][]event.Ref
	for i := range w.items {
		it := &w.items[i]
		if it.state != journal.Waiting {
			continue
		}
		for _, n := range it.needs {
			if !n.holder {
				continue
			}
			refs, rows := r.waits.circle(n.about, n.row)
			if refs == nil {
				continue
			}
			var names []string
			for _, id := range append(rows, n.about) {
				t := r.o.Tables[id.table]
				names = append(names, t.Table.Name+" "+t.Show(id.key))
			}
			it.reason += fmt.Sprintf(". They wait in a circle, each for the next one's value: %s. %s", strings.Join(names, " → "), r.together(rows))
			out = append(out, append(refs, it.ref))
			break
		}
	}
	return out
}

// together says what is done about a circle of rows. No row of a table with
// occupants can give its value up for a moment: what it becomes is decided by
// the records of its occupants, and only while it is written.
func (r *Runner) together(rows []rowID) string {
	for _, id := range rows {
		if t := r.o.Tables[id.table]; t.Local() && (t.Occupied || t.Versions == sink.Beside) {
			return "The rows of " + t.Table.Name + " cannot take values from each other: set one of the values free by hand"
		}
	}
	return "They are tried together; where that does not help, set one of the values free by hand"
}
