package lane

import (
	"slices"
	"time"

	"github.com/hookfold/hookfold/event"
)

// Store tells that fresh items are entries of the journal from now on. They are
// the first fresh ones of their lines, in order.
func (s *Scheduler) Store(now time.Time, items ...*Item) {
	for _, it := range items {
		l := s.lines[it.Key]
		if l == nil || it.Stored {
			continue
		}
		before := l.holds()
		it.Stored = true
		l.fresh = slices.DeleteFunc(l.fresh, func(x *Item) bool { return x == it })
		if it != l.busy && !it.stuck() {
			it.Data = nil
			if l.more > 0 || len(l.stored) >= s.o.Page {
				l.more++
				continue
			}
		}
		l.stored = append(l.stored, it)
		s.counted(l, before)
		s.place(l, now)
	}
}

// Insert puts stored items where they belong by the order of acceptance: they
// were none before, or of no line.
func (s *Scheduler) Insert(now time.Time, items ...*Item) {
	for _, it := range items {
		l := s.line(it.Key)
		before := l.holds()
		it.Stored = true
		at, there := slices.BinarySearchFunc(l.stored, it, byRef)
		switch {
		case there:
		case at == len(l.stored) && (l.more > 0 || at >= s.o.Page):
			l.more++
		default:
			l.stored = slices.Insert(l.stored, at, it)
		}
		s.counted(l, before)
		s.place(l, now)
	}
}

func byRef(a, b *Item) int { return a.Ref.Compare(b.Ref) }

// Missing returns the keys whose next stored items have to be read, at most n.
func (s *Scheduler) Missing(n int) []string {
	var out []string
	for _, l := range s.pages[:min(n, len(s.pages))] {
		out = append(out, l.key)
	}
	return out
}

// PageSize is how many stored items of a line are to be read at once.
func (s *Scheduler) PageSize() int { return s.o.Page }

// Loaded gives a line its next stored items, in order. Fewer than a page are all
// there are.
func (s *Scheduler) Loaded(now time.Time, key string, items []*Item) {
	l := s.lines[key]
	if l == nil || len(l.stored) > 0 {
		return
	}
	before := l.holds()
	l.stored = items
	for _, it := range items {
		it.Stored = true
	}
	if l.more = max(0, l.more-len(items)); len(items) < s.o.Page {
		l.more = 0
	}
	s.counted(l, before)
	s.place(l, now)
}

// Reload replaces all that is stored by what the journal holds, in the order of
// acceptance, after a person has changed it. What is under way goes on, but
// what became of it counts no more where its entry is gone.
func (s *Scheduler) Reload(now time.Time, entries func(yield func(*Item) bool)) {
	busy := map[event.Ref]*Item{}
	for _, l := range s.lines {
		if before := l.holds(); l.busy != nil && l.busy.Stored {
			busy[l.busy.Ref] = l.busy
			l.busy.gone = true
			l.stored, l.more = []*Item{l.busy}, 0
		} else {
			l.stored, l.more = nil, 0
			s.counted(l, before)
		}
	}
	for it := range entries {
		if b := busy[it.Ref]; b != nil {
			b.gone = false
			b.again = it.Next.IsZero() && !b.Next.IsZero()
			continue
		}
		s.Insert(now, it)
	}
	for _, l := range s.lines {
		s.place(l, now)
	}
}
