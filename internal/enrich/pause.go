package enrich

import (
	"slices"
	"time"

	"github.com/hookfold/hookfold/event"
)

// spec is a Spec, and how it goes.
type spec struct {
	*Spec
	// paused is set while the API does not want us: since when and why, and when
	// it is asked again.
	paused bool
	since  time.Time
	why    string
	probe  time.Time
	probes int
	// asking tells that the one read that is made meanwhile is under way.
	asking bool
	parked []*flight
	// answers counts the answers, so that a refusal of one object can be told from
	// one of all.
	answers int
	wanted  int // reads, by events
}

// prober gives the read by which a paused fetch is tried, when it is time.
func (x *spec) prober(now time.Time, sooner func(time.Time)) *flight {
	if !x.paused || x.asking {
		return nil
	}
	x.parked = slices.DeleteFunc(x.parked, func(f *flight) bool { return f.state != queued })
	if len(x.parked) == 0 {
		return nil
	}
	if now.Before(x.probe) {
		sooner(x.probe)
		return nil
	}
	f := x.parked[0]
	x.parked = x.parked[1:]
	x.asking, f.probe = true, true
	return f
}

// noProbe tells that it is not this read that finds out whether its fetch is
// answered again: it has, or it does not begin now.
func (f *flight) noProbe() {
	if f.probe {
		f.probe, f.spec.asking = false, false
	}
}

// unproven tells that the read that was to find out whether a paused fetch is
// answered again failed otherwise: the next one is not made at once.
func (s *schedule) unproven(x *spec, o outcome, now time.Time) {
	n := 1
	if !o.final { // what is final is the object's fault
		x.probes++
		n = x.probes
	}
	x.probe = later(x.probe, now.Add(s.probing.Later(n, s.random())))
}

func (s *schedule) answered(f *flight, a *event.Fetched, now time.Time) {
	f.state, f.answer, f.failure, f.until = landed, a, nil, now.Add(shareFor)
	x := f.spec
	if x.answers++; !x.paused {
		return
	}
	x.paused, x.asking, x.probes = false, false, 0
	parked := x.parked
	x.parked = nil
	for _, p := range parked {
		if p.state == queued {
			s.enqueue(p)
		}
	}
}

// denied pauses a fetch whose API does not want us, unless it is only this
// object that it does not give.
func (s *schedule) denied(f *flight, o outcome, probe bool, now time.Time) {
	x := f.spec
	if !o.unauthorized && x.answers > 0 {
		f.denied++
	}
	if f.denied >= maxDenied {
		f.state, f.failure = landed, &Failure{Reason: o.reason + ". Others are answered", Tries: f.tries + 1, Final: true}
		return
	}
	if !x.paused {
		x.since = now
	}
	if !x.paused || probe { // else it was under way when the fetch was paused
		x.probes++
		x.probe = now.Add(s.probing.Later(x.probes, s.random()))
	}
	x.paused, x.why, x.answers = true, o.reason, 0
	f.failure = &Failure{Reason: o.reason, Tries: f.tries, Next: x.probe, Paused: true}
	s.again(f)
}
