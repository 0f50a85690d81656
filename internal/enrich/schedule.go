package enrich

import (
	"container/heap"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/backoff"
)

// id names a read that is wanted: for an event, by a target.
type id struct {
	target string
	ref    event.Ref
	fetch  string
}

// flight is one read of one URL, made for whoever wants it. Until it has begun
// everybody may join it; once it has, only events that were received before.
type flight struct {
	key    string
	spec   *spec
	gate   *gate
	url    *url.URL
	header http.Header

	wants map[id]struct{}
	state flightState
	// seen is the position up to which deliveries had been received when it began.
	seen  event.Position
	began time.Time
	// ready is when it may begin, at the earliest.
	ready time.Time
	// tries counts the failures that count, failure is the last one.
	tries   int
	failure *Failure
	// denied counts the answers 403 between which others were answered.
	denied int
	answer *event.Fetched
	// until is when an answer is shared no more.
	until time.Time
	// probe tells that it finds out whether a paused fetch is answered again.
	probe bool
	// then is the next read of the same, which begins when this one has ended.
	then *flight
	size int // of the answer, while it is kept
	turn int // in which it was queued: of those that may begin the first goes first
	at   int // in the heap, -1 if it is not there
}

type flightState uint8

const (
	queued  flightState = iota
	running             // a request is under way
	landed              // it has an answer, or failed for good
	gone                // nobody wants it any more
)

// schedule decides which reads are made when. It is pure: it reads no clock,
// makes no request, and has no goroutine or lock.
type schedule struct {
	specs map[string]*spec
	gates map[string]*gate
	wants map[id]*flight
	next  map[string]*flight // by key: the one that has not begun
	last  map[string]*flight // by key: the one that has
	delay delayed
	turns int
	seen  event.Position // the greatest position that was wanted
	held  int            // bytes of answers that are kept

	policy, probing backoff.Policy
	random          func() float64
}

const (
	// shareFor is how long an answer may be shared by events that were received
	// before it was asked for.
	shareFor = 10 * time.Second
	// maxHeld is how many bytes of answers may be kept that no event has taken yet:
	// beyond it no read begins. What is under way may exceed it.
	maxHeld = 64 << 20
	// maxDenied is how often one object may be refused, while others are answered,
	// until that is taken for its own.
	maxDenied = 3
)

func newSchedule(specs []*Spec, policy, probing backoff.Policy, random func() float64) *schedule {
	s := &schedule{
		specs: map[string]*spec{}, gates: map[string]*gate{}, wants: map[id]*flight{}, next: map[string]*flight{}, last: map[string]*flight{},
		policy: policy, probing: probing, random: random,
	}
	for _, x := range specs {
		s.specs[x.Name] = &spec{Spec: x}
	}
	return s
}

// want joins the read that will do for an event, or makes one. It tells whether
// there is something to look at now.
func (s *schedule) want(w id, r Request, now time.Time) (ready bool) {
	key := keyOf(w.fetch, r)
	if f := s.wants[w]; f != nil {
		if f.key == key {
			return false
		}
		s.forget(w)
	}
	x := s.specs[w.fetch]
	if x == nil {
		return false
	}
	s.seen = max(s.seen, w.ref.Position)
	if f := s.last[key]; f != nil && w.ref.Position <= f.seen && (f.state == running || f.answer != nil && now.Before(f.until)) {
		s.join(f, w)
		return f.state == landed
	}
	f := s.next[key]
	if f == nil {
		u, err := url.Parse(r.URL)
		if err != nil {
			f = &flight{key: key, spec: x, state: landed, wants: map[id]struct{}{}, at: -1, failure: &Failure{Reason: "its URL cannot be read", Final: true}}
			s.join(f, w)
			return true
		}
		f = &flight{key: key, spec: x, url: u, header: r.Header, gate: s.gate(u), wants: map[id]struct{}{}, ready: now, at: -1}
		s.next[key] = f
		s.enqueue(f)
	}
	s.join(f, w)
	return false
}

func (s *schedule) join(f *flight, w id) {
	if s.wants[w] == nil {
		f.spec.wanted++
	}
	f.wants[w] = struct{}{}
	s.wants[w] = f
}

// keyOf tells reads apart.
func keyOf(fetch string, r Request) string {
	var b strings.Builder
	b.WriteString(fetch + "\x00" + r.URL)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		b.WriteString("\x00" + name + "\x00" + strings.Join(r.Header[name], "\x01"))
	}
	return b.String()
}

// enqueue puts a flight where it waits for its turn.
func (s *schedule) enqueue(f *flight) {
	if f.spec.paused {
		f.spec.parked = append(f.spec.parked, f)
		return
	}
	s.turns++
	f.turn = s.turns
	heap.Push(&s.delay, f)
}

// forget ends an event's want.
func (s *schedule) forget(w id) {
	f := s.wants[w]
	if f == nil {
		return
	}
	delete(s.wants, w)
	f.spec.wanted--
	if delete(f.wants, w); len(f.wants) > 0 || f.state == running {
		return
	}
	s.release(f)
	if f.state == queued {
		f.state = gone
		f.noProbe()
		if s.next[f.key] == f {
			delete(s.next, f.key)
		}
		if f.at >= 0 {
			heap.Remove(&s.delay, f.at)
		}
	}
}

// release lets go of an answer that nobody wants or may share any more.
func (s *schedule) release(f *flight) {
	if f != nil && len(f.wants) == 0 && s.last[f.key] != f {
		s.held -= f.size
		f.size = 0
	}
}

// start gives the reads that begin now, and when to ask again; zero is when
// something has changed.
func (s *schedule) start(now time.Time, received event.Position) (begin []*flight, again time.Time) {
	sooner := func(t time.Time) {
		if again.IsZero() || t.Before(again) {
			again = t
		}
	}
	for len(s.delay) > 0 && !s.delay[0].ready.After(now) {
		f := heap.Pop(&s.delay).(*flight)
		f.gate.queue = append(f.gate.queue, f)
	}
	if len(s.delay) > 0 {
		sooner(s.delay[0].ready)
	}
	for _, x := range s.specs {
		if f := x.prober(now, sooner); f != nil {
			f.gate.queue = slices.Insert(f.gate.queue, 0, f)
		}
	}
	for _, g := range s.gates {
		for len(g.queue) > 0 {
			f := g.queue[0]
			switch {
			case f.state != queued:
				g.queue = g.queue[1:]
				f.noProbe()
				continue
			case f.spec.paused && !f.probe:
				g.queue = g.queue[1:]
				f.spec.parked = append(f.spec.parked, f)
				continue
			}
			if before := s.last[f.key]; before != nil && before.state == running {
				g.queue = g.queue[1:]
				f.noProbe()
				before.then = f
				continue
			}
			if g.running >= g.most || s.held >= maxHeld {
				break
			}
			if now.Before(g.hold) {
				sooner(g.hold)
				break
			}
			if !g.limiter.AllowN(now, 1) {
				missing := 1 - g.limiter.TokensAt(now)
				sooner(now.Add(time.Duration(missing/float64(g.limiter.Limit())*float64(time.Second)) + time.Microsecond))
				break
			}
			g.queue = g.queue[1:]
			g.running++
			f.state, f.began, f.seen = running, now, max(s.seen, received)
			delete(s.next, f.key)
			before := s.last[f.key]
			s.last[f.key] = f
			s.release(before)
			begin = append(begin, f)
		}
	}
	return begin, again
}

// done takes in what came of a read, and returns who is to look at it.
func (s *schedule) done(f *flight, o outcome, now time.Time) (tell []id) {
	f.gate.running--
	probe, then := f.probe, f.then
	f.noProbe()
	f.then = nil
	if o.answer != nil {
		f.size = len(o.answer.Body)
		s.held += f.size
	}
	if s.last[f.key] == f && o.answer == nil {
		delete(s.last, f.key)
	}
	s.hold(f, o, now)
	switch {
	case o.answer != nil:
		s.answered(f, o.answer, now)
	case o.denied:
		s.denied(f, o, probe, now)
	case o.final:
		f.state, f.failure = landed, &Failure{Reason: o.reason, Tries: f.tries + 1, Final: true}
	default:
		if o.counts {
			f.tries++
			f.ready = now.Add(s.policy.Pause(f.tries, s.random()))
		}
		f.failure = &Failure{Reason: o.reason, Tries: f.tries, Next: later(f.ready, f.gate.hold), Counts: o.counts}
		s.again(f)
	}
	if probe && f.spec.paused && !o.denied {
		s.unproven(f.spec, o, now)
	}
	if then != nil && then.state == queued && then.at < 0 {
		s.enqueue(then)
	}
	for w := range f.wants {
		tell = append(tell, w)
	}
	return tell
}

// again has a read made once more. If another one of the same is to be made
// anyhow, it takes over.
func (s *schedule) again(f *flight) {
	f.state = queued
	o := s.next[f.key]
	if o == nil {
		if len(f.wants) == 0 {
			f.state = gone
			return
		}
		s.next[f.key] = f
		s.enqueue(f)
		return
	}
	o.tries, o.failure, o.denied = max(o.tries, f.tries), f.failure, max(o.denied, f.denied)
	if o.ready = later(o.ready, f.ready); o.at >= 0 {
		heap.Fix(&s.delay, o.at)
	}
	for w := range f.wants {
		s.join(o, w)
	}
	f.state, f.wants = gone, o.wants // who is told
}

// refuse takes in that an answer will not do for an event: it is asked again
// after a pause, for whoever wants it then.
func (s *schedule) refuse(w id, reason string, now time.Time) {
	f := s.wants[w]
	if f == nil || f.answer == nil {
		return
	}
	s.forget(w)
	f.until = now // nobody else shares it
	n := s.next[f.key]
	if n == nil {
		n = &flight{key: f.key, spec: f.spec, url: f.url, header: f.header, gate: s.gate(f.url), wants: map[id]struct{}{}, at: -1}
		n.ready = now.Add(s.policy.Later(f.tries+1, s.random()))
		s.next[n.key] = n
		s.enqueue(n)
	}
	// A read for a later event, which was queued already, is not put off; but that
	// this one failed counts there too.
	n.tries = max(n.tries, f.tries+1)
	n.failure = &Failure{Reason: reason, Tries: n.tries, Next: n.ready, Counts: true}
	s.join(n, w)
}

// sweep forgets answers that are shared no more.
func (s *schedule) sweep(now time.Time) {
	for key, f := range s.last {
		if f.state == landed && !now.Before(f.until) {
			delete(s.last, key)
			s.release(f)
		}
	}
	for host, g := range s.gates {
		if g.running == 0 && len(g.queue) == 0 && now.After(g.hold) && g.limiter.TokensAt(now) >= 1 && !s.waits(g) {
			delete(s.gates, host)
		}
	}
}
