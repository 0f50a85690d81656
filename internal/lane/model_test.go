package lane

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
)

// world runs a scheduler as package run does, on a journal that is a map, and
// with a receiver that fails by chance; it checks what the receiver sees.
type world struct {
	t       *testing.T
	r       *rand.Rand
	o       Options
	now     time.Time
	s       *Scheduler
	journal map[event.Ref]*Item // the entries: what a restart knows of them
	batches [][]*Item           // leased, with what is not done of them
	source  []*Item             // not leased yet
	busy    []*Item
	done    map[string][]event.Ref
	skipped map[event.Ref]bool
}

func (w *world) at(d time.Duration) time.Time { return w.now.Add(d) }

// copyOf is an entry as it is read: nothing of the item in memory is shared.
func copyOf(it *Item) *Item {
	c := *it
	c.gone, c.again, c.Data, c.Stored = false, false, nil, true
	return &c
}

func (w *world) entries() []*Item {
	var out []*Item
	for _, it := range w.journal {
		out = append(out, copyOf(it))
	}
	slices.SortFunc(out, byRef)
	return out
}

// step does one thing of those that may happen.
func (w *world) step() {
	switch w.r.IntN(12) {
	case 0, 1:
		if n := min(1+w.r.IntN(6), len(w.source)); n > 0 && len(w.batches) < 4 {
			b := slices.Clone(w.source[:n])
			w.source = w.source[n:]
			w.batches = append(w.batches, b)
			w.s.Add(w.now, b...)
		}
	case 2:
		if len(w.batches) > 0 {
			w.spill()
		}
	case 3:
		for _, key := range w.s.Missing(2) {
			var page []*Item
			for _, it := range w.entries() {
				if it.Key == key && len(page) < w.s.PageSize() {
					page = append(page, it)
				}
			}
			w.s.Loaded(w.now, key, page)
		}
	case 4:
		if w.r.IntN(4) == 0 {
			w.edit()
		}
	case 5:
		w.now = w.at(time.Duration(w.r.IntN(3000)) * time.Millisecond)
	case 6:
		if w.r.IntN(20) == 0 {
			w.s.HoldAll(w.at(time.Second))
		}
	case 7:
		if w.r.IntN(10) == 0 {
			w.crash()
		}
	case 8, 9:
		w.begin()
	default:
		if len(w.busy) > 0 {
			w.end(w.r.IntN(len(w.busy)))
		}
	}
}

// spill stores what is not done of the oldest batch.
func (w *world) spill() {
	b := w.batches[0]
	w.batches = w.batches[1:]
	for _, it := range b {
		w.journal[it.Ref] = copyOf(it)
	}
	w.s.Store(w.now, b...)
}

// edit is a person who drops or retries a stored event.
func (w *world) edit() {
	all := w.entries()
	if len(all) == 0 {
		return
	}
	if it := all[w.r.IntN(len(all))]; w.r.IntN(2) == 0 {
		delete(w.journal, it.Ref)
		w.skipped[it.Ref] = true
	} else {
		e := w.journal[it.Ref]
		e.Dead, e.Next, e.Since = false, time.Time{}, time.Time{}
	}
	w.s.Reload(w.now, slices.Values(w.entries()))
}

// crash begins anew with what is in the journal.
func (w *world) crash() {
	w.s, w.busy = New(w.o), nil
	w.s.Reload(w.now, slices.Values(w.entries()))
	var again []*Item
	for _, b := range w.batches {
		for _, it := range b {
			c := *it
			c.Attempts, c.Next, c.Since, c.Held, c.Dead = 0, time.Time{}, time.Time{}, false, false
			again = append(again, &c)
		}
	}
	w.source, w.batches = append(again, w.source...), nil
}

func (w *world) begin() {
	it := w.s.Begin(w.now)
	if it == nil {
		return
	}
	if w.skipped[it.Ref] {
		w.t.Fatalf("%s began, and had been dropped", it.Ref)
	}
	for _, other := range w.busy {
		if other.Key == it.Key {
			w.t.Fatalf("%s and %s of key %s are under way at once", other.Ref, it.Ref, it.Key)
		}
	}
	if w.now.Before(w.s.HeldUntil()) || it.Next.After(w.now) || it.Dead {
		w.t.Fatalf("%s began before its time", it.Ref)
	}
	w.busy = append(w.busy, it)
	tried := 0
	for _, x := range w.busy {
		if x.Attempts > 0 {
			tried++
		}
	}
	if len(w.busy) > w.o.Concurrency || tried > max(1, w.o.Concurrency/4) {
		w.t.Fatalf("%d are under way, %d of them tried before", len(w.busy), tried)
	}
}

func (w *world) end(i int) {
	it := w.busy[i]
	w.busy = slices.Delete(w.busy, i, i+1)
	o := Outcome{Kind: Done}
	switch w.r.IntN(6) {
	case 0:
		o = Outcome{Kind: Again, At: w.at(time.Duration(w.r.IntN(2000)) * time.Millisecond), Reason: "500"}
	case 1:
		o = Outcome{Kind: Hold, At: w.at(time.Duration(w.r.IntN(100)) * time.Millisecond)}
	case 2:
		if w.r.IntN(5) == 0 {
			o = Outcome{Kind: Die, Reason: "enough"}
		}
	}
	w.s.End(it, o, w.now)
	if o.Kind != Done {
		if e := w.journal[it.Ref]; e != nil && it.Stored && !it.Skipped() {
			w.journal[it.Ref] = copyOf(it)
		}
		return
	}
	if it.Stored {
		delete(w.journal, it.Ref)
	} else {
		for n, b := range w.batches {
			if b = slices.DeleteFunc(b, func(x *Item) bool { return x == it }); len(b) == 0 {
				w.batches = slices.Delete(w.batches, n, n+1)
				break
			}
			w.batches[n] = b
		}
	}
	w.done[it.Key] = append(w.done[it.Key], it.Ref)
}

// finish lets everything end: no more failures, and a person who retries the
// dead.
func (w *world) finish() {
	for range 200_000 {
		w.now = w.at(100 * time.Millisecond)
		for w.begin(); len(w.busy) > 0; w.begin() {
			it := w.busy[0]
			w.r = rand.New(fixed{}) // the receiver is well now
			w.end(0)
			_ = it
		}
		if len(w.source) > 0 && len(w.batches) < 4 {
			n := min(5, len(w.source))
			w.batches = append(w.batches, slices.Clone(w.source[:n]))
			w.s.Add(w.now, w.source[:n]...)
			w.source = w.source[n:]
		} else if len(w.batches) > 0 {
			w.spill()
		}
		for _, it := range w.journal {
			if it.Dead {
				it.Dead, it.Next = false, time.Time{}
			}
		}
		w.s.Reload(w.now, slices.Values(w.entries()))
		for _, key := range w.s.Missing(9) {
			var page []*Item
			for _, it := range w.entries() {
				if it.Key == key && len(page) < w.s.PageSize() {
					page = append(page, it)
				}
			}
			w.s.Loaded(w.now, key, page)
		}
		if len(w.source)+len(w.batches)+len(w.journal) == 0 && w.s.Lines() == 0 {
			return
		}
	}
	w.t.Fatalf("it does not end: %d to come, %d batches, %d entries, %d lines", len(w.source), len(w.batches), len(w.journal), w.s.Lines())
}

// fixed is a source of the greatest numbers: of those by which end chooses, it
// is the one that lets everything through.
type fixed struct{}

func (fixed) Uint64() uint64 { return 1<<64 - 1 }

// Whatever happens in whatever order, each key is served one at a time and in
// order, and nothing is lost: with failures, spills, pages, restarts, and a
// person who drops and retries. HOOKFOLD_ORDERS says how many runs.
func TestModel(t *testing.T) {
	runs := 300
	if testing.Short() {
		runs = 40
	}
	if n, err := strconv.Atoi(os.Getenv("HOOKFOLD_ORDERS")); err == nil {
		runs = n
	}
	for seed := range uint64(runs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			w := &world{
				t: t, r: r, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
				o:       Options{Concurrency: 1 + r.IntN(6), Page: 1 + r.IntN(4), ByVersion: seed%3 == 0, Hold: time.Second},
				journal: map[event.Ref]*Item{}, done: map[string][]event.Ref{}, skipped: map[event.Ref]bool{},
			}
			w.s = New(w.o)
			keys, want := 1+r.IntN(5), map[string][]event.Ref{}
			for i := range 60 + r.IntN(60) {
				it := &Item{Ref: event.Ref{Position: event.Position(i/2 + 1), Index: i % 2}, Key: fmt.Sprint("k", r.IntN(keys)), Received: w.now.Add(time.Duration(i/2) * time.Hour)}
				w.source = append(w.source, it)
				want[it.Key] = append(want[it.Key], it.Ref)
			}
			if w.o.ByVersion { // all in the past, an hour apart: the order is that of acceptance
				w.now = w.now.Add(200 * time.Hour)
			}
			for range 3000 {
				w.step()
			}
			w.finish()
			for key, refs := range want {
				w.inOrder(key, refs)
			}
		})
	}
}

// inOrder checks what the receiver has seen of a key: every event but the
// dropped ones, and each for the first time after those before it.
func (w *world) inOrder(key string, refs []event.Ref) {
	var first []event.Ref
	for _, r := range w.done[key] {
		if !slices.Contains(first, r) {
			first = append(first, r)
		}
	}
	if !slices.IsSortedFunc(first, event.Ref.Compare) {
		w.t.Errorf("%s: out of order: %v", key, first)
	}
	for _, r := range refs {
		if !slices.Contains(first, r) && !w.skipped[r] {
			w.t.Errorf("%s: %s is lost", key, r)
		}
	}
}
