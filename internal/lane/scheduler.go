package lane

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// Options configure a Scheduler.
type Options struct {
	// Concurrency is how many items are under way at most.
	Concurrency int
	// ByVersion orders the items of a key by version, among those received within
	// Hold of the oldest that waits.
	ByVersion bool
	Hold      time.Duration
	// Page is how many stored items a line holds. Default 32.
	Page int
}

// Scheduler holds the lines of a lane. It is used by one goroutine at a time.
type Scheduler struct {
	o     Options
	lines map[string]*line
	// Lines that may go on: tried are those whose head has failed before, which
	// get a part of the places only, so that many stuck keys leave room to others.
	ready, tried []*line
	timers       timers
	pages        []*line // that have to be read before they go on
	busy         int
	busyTried    int
	storedLines  int
	until        time.Time // before which nothing begins
}

// line is the items of a key.
type line struct {
	key    string
	stored []*Item
	more   int // stored beyond those
	fresh  []*Item
	busy   *Item

	at   time.Time // when its timer is due
	slot int       // in timers, -1 if it is not there
	in   place
}

type place uint8

const (
	nowhere place = iota
	inReady
	inTried
	inTimers
	inPages
)

// New returns a scheduler without items.
func New(o Options) *Scheduler {
	if o.Concurrency < 1 {
		o.Concurrency = 1
	}
	if o.Page < 1 {
		o.Page = 32
	}
	return &Scheduler{o: o, lines: map[string]*line{}}
}

// triedPlaces is how many heads that have failed before may be under way.
func (s *Scheduler) triedPlaces() int { return max(1, s.o.Concurrency/4) }

func (s *Scheduler) line(key string) *line {
	l := s.lines[key]
	if l == nil {
		l = &line{key: key, slot: -1}
		s.lines[key] = l
	}
	return l
}

// Add puts fresh items at the ends of their lines. They come in the order of
// acceptance, after all that is stored.
func (s *Scheduler) Add(now time.Time, items ...*Item) {
	for _, it := range items {
		l := s.line(it.Key)
		l.fresh = append(l.fresh, it)
		s.place(l, now)
	}
}

// Begin returns an item to be tried, and takes it under way; nil if there is none
// now.
func (s *Scheduler) Begin(now time.Time) *Item {
	s.advance(now)
	if s.busy >= s.o.Concurrency || now.Before(s.until) {
		return nil
	}
	var l *line
	switch {
	case len(s.tried) > 0 && s.busyTried < s.triedPlaces():
		l, s.tried = s.tried[0], s.tried[1:]
	case len(s.ready) > 0:
		l, s.ready = s.ready[0], s.ready[1:]
	default:
		return nil
	}
	l.in = nowhere
	it, at := l.head(&s.o)
	if it == nil || it.Dead || at.After(now) { // what was ready has changed
		s.place(l, now)
		return s.Begin(now)
	}
	l.busy = it
	s.busy++
	if it.Attempts > 0 {
		s.busyTried++
	}
	return it
}

// End tells what became of an item that Begin has given.
func (s *Scheduler) End(it *Item, o Outcome, now time.Time) {
	l := s.lines[it.Key]
	l.busy = nil
	s.busy--
	if it.Attempts > 0 {
		s.busyTried--
	}
	if it.Held = o.Kind == Hold; !it.Held {
		it.HeldSince = time.Time{}
	} else if it.HeldSince.IsZero() {
		it.HeldSince = now
	}
	switch o.Kind {
	case Again:
		if it.Attempts++; it.Since.IsZero() {
			it.Since = now
		}
		it.Next, it.Reason = o.At, o.Reason
	case Hold:
		it.Next, it.Reason = o.At, o.Reason
	case Die:
		if it.Attempts++; it.Since.IsZero() {
			it.Since = now
		}
		it.Dead, it.Next, it.Reason = true, time.Time{}, o.Reason
	default:
		it.Reason = o.Reason
		s.remove(l, it)
	}
	if it.gone {
		s.remove(l, it)
	} else if it.again && !it.Dead {
		it.Next = now
	}
	it.again = false
	s.place(l, now)
}

// Skipped tells whether a person has dropped an item, or set it aside, while it
// was under way.
func (it *Item) Skipped() bool { return it.gone }

// head gives the item that is next in a line, and when it may be tried; nil if
// there is none, or if it has to be read first.
func (l *line) head(o *Options) (*Item, time.Time) {
	if o.ByVersion { // what has begun is not overtaken
		for _, list := range [][]*Item{l.stored, l.fresh} {
			if i := slices.IndexFunc(list, func(it *Item) bool { return it.stuck() || it == l.busy }); i >= 0 {
				return list[i], list[i].Next
			}
		}
	}
	if len(l.stored) == 0 && l.more > 0 || len(l.stored)+len(l.fresh) == 0 {
		return nil, time.Time{}
	}
	if !o.ByVersion {
		first := l.fresh
		if len(l.stored) > 0 {
			first = l.stored
		}
		return first[0], first[0].Next
	}
	all := slices.Clone(l.stored)
	if l.more == 0 {
		all = append(all, l.fresh...)
	}
	oldest := slices.MinFunc(all, func(a, b *Item) int { return a.Received.Compare(b.Received) })
	limit := oldest.Received.Add(o.Hold)
	within := slices.DeleteFunc(all, func(it *Item) bool { return it.Received.After(limit) })
	it := slices.MinFunc(within, func(a, b *Item) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), a.Ref.Compare(b.Ref))
	})
	if it.Next.After(limit) {
		limit = it.Next
	}
	return it, limit
}

// remove takes an item out of its line.
func (s *Scheduler) remove(l *line, it *Item) {
	same := func(x *Item) bool { return x == it }
	before := l.holds()
	l.stored = slices.DeleteFunc(l.stored, same)
	l.fresh = slices.DeleteFunc(l.fresh, same)
	s.counted(l, before)
}

// holds tells whether a line has stored items.
func (l *line) holds() bool { return len(l.stored)+l.more > 0 }

func (s *Scheduler) counted(l *line, before bool) {
	switch after := l.holds(); {
	case after && !before:
		s.storedLines++
	case before && !after:
		s.storedLines--
	}
}

// place puts a line where it belongs now.
func (s *Scheduler) place(l *line, now time.Time) {
	if l.busy != nil {
		return
	}
	it, at := l.head(&s.o)
	switch {
	case it == nil && l.more > 0:
		s.move(l, inPages)
	case it == nil:
		s.move(l, nowhere)
		delete(s.lines, l.key)
	case it.Dead:
		s.move(l, nowhere)
	case at.After(now):
		if l.in == inTimers && l.at.Equal(at) {
			return
		}
		s.move(l, nowhere)
		l.at = at
		s.move(l, inTimers)
	case it.Attempts > 0:
		s.move(l, inTried)
	default:
		s.move(l, inReady)
	}
}

// move takes a line from where it is to another place.
func (s *Scheduler) move(l *line, to place) {
	if l.in == to {
		return
	}
	out := func(list []*line) []*line { return slices.DeleteFunc(list, func(x *line) bool { return x == l }) }
	switch l.in {
	case inReady:
		s.ready = out(s.ready)
	case inTried:
		s.tried = out(s.tried)
	case inPages:
		s.pages = out(s.pages)
	case inTimers:
		heap.Remove(&s.timers, l.slot)
	}
	switch l.in = to; to {
	case inReady:
		s.ready = append(s.ready, l)
	case inTried:
		s.tried = append(s.tried, l)
	case inPages:
		s.pages = append(s.pages, l)
	case inTimers:
		heap.Push(&s.timers, l)
	}
}

// advance makes the lines ready whose time has come.
func (s *Scheduler) advance(now time.Time) {
	for len(s.timers) > 0 && !s.timers[0].at.After(now) {
		l := s.timers[0]
		s.move(l, nowhere)
		s.place(l, now)
	}
}

// Wake returns when Begin may next give something because time has passed; zero
// if nothing waits for time.
func (s *Scheduler) Wake(now time.Time) time.Time {
	var at time.Time
	if len(s.timers) > 0 {
		at = s.timers[0].at
	}
	waits := !at.IsZero() || len(s.ready)+len(s.tried) > 0
	if waits && s.until.After(now) && s.until.After(at) {
		at = s.until
	}
	return at
}

// HoldAll lets nothing begin before a time.
func (s *Scheduler) HoldAll(until time.Time) {
	if until.After(s.until) {
		s.until = until
	}
}

// HeldUntil tells before when nothing begins.
func (s *Scheduler) HeldUntil() time.Time { return s.until }

// Idle tells that items could be under way that are not there: a place is free,
// and no line may go on.
func (s *Scheduler) Idle(now time.Time) bool {
	s.advance(now)
	return !now.Before(s.until) && s.busy < s.o.Concurrency && len(s.ready) == 0 && len(s.pages) == 0
}

// Stuck tells whether the line of an item stands still because of its head.
func (s *Scheduler) Stuck(it *Item) bool {
	l := s.lines[it.Key]
	if l == nil {
		return false
	}
	head, _ := l.head(&s.o)
	return head != nil && head.stuck()
}

// UnderWay tells whether an item is being tried.
func (s *Scheduler) UnderWay(it *Item) bool {
	l := s.lines[it.Key]
	return l != nil && l.busy == it
}

// Busy counts the items that are under way, Lines the keys that have items, and
// StoredLines those of them that have stored ones.
func (s *Scheduler) Busy() int        { return s.busy }
func (s *Scheduler) Lines() int       { return len(s.lines) }
func (s *Scheduler) StoredLines() int { return s.storedLines }

// Count tells how many lines stand still because of their head, and how many of
// these wait for a person.
func (s *Scheduler) Count() (stuck, dead int) {
	for _, l := range s.lines {
		if head, _ := l.head(&s.o); head != nil && head.stuck() {
			stuck++
			if head.Dead {
				dead++
			}
		}
	}
	return stuck, dead
}

// timers is a heap of lines by their time.
type timers []*line

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i]; t[i].slot, t[j].slot = i, j }
func (t *timers) Push(x any)        { l := x.(*line); l.slot = len(*t); *t = append(*t, l) }
func (t *timers) Pop() any {
	old := *t
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	l.slot = -1
	return l
}
