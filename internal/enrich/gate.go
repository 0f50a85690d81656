package enrich

import (
	"net/url"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/hookfold/hookfold/internal/backoff"
)

// gate is what keeps the limits of one host.
type gate struct {
	most, running int
	limiter       *rate.Limiter
	// hold is until when the host wants nothing; holds counts how often in a row
	// it said so without saying for how long.
	hold  time.Time
	holds int
	queue []*flight
}

// holding is for a host that wants nothing and does not say for how long.
var holding = backoff.Policy{First: 2 * time.Second, Most: 2 * time.Minute}

// shortest is the shortest pause that is believed of who limits us: where its
// clock and ours differ, the time that it names may be over.
const shortest = time.Second

// gate is that of the host of a URL. Of the fetches that may ask it the
// strictest limits count.
func (s *schedule) gate(u *url.URL) *gate {
	host := strings.ToLower(u.Hostname()) + ":" + port(u)
	g := s.gates[host]
	if g != nil {
		return g
	}
	g = &gate{}
	slowest := rate.Inf
	for _, x := range s.specs {
		if x.Allows(u) != nil {
			continue
		}
		if g.most == 0 || x.Concurrency < g.most {
			g.most = x.Concurrency
		}
		if x.Rate > 0 && rate.Limit(x.Rate) < slowest {
			slowest = rate.Limit(x.Rate)
		}
	}
	g.most = max(1, g.most)
	g.limiter = rate.NewLimiter(slowest, 1)
	s.gates[host] = g
	return g
}

// hold keeps a host that wants nothing for a while.
func (s *schedule) hold(f *flight, o outcome, now time.Time) {
	g := f.gate
	switch {
	case o.hold && o.asked && (o.pause >= shortest || o.counts || o.answer != nil):
		g.hold = later(g.hold, now.Add(o.pause))
	case o.hold:
		g.holds++
		g.hold = later(g.hold, now.Add(max(o.pause, holding.Later(g.holds, s.random()))))
	case o.answer != nil:
		g.holds = 0
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// waits tells whether a read of a gate's host has not begun.
func (s *schedule) waits(g *gate) bool {
	for _, f := range s.next {
		if f.gate == g {
			return true
		}
	}
	return false
}

// delayed are flights by the time from which they may begin.
type delayed []*flight

func (d delayed) Len() int { return len(d) }
func (d delayed) Less(i, j int) bool {
	if !d[i].ready.Equal(d[j].ready) {
		return d[i].ready.Before(d[j].ready)
	}
	return d[i].turn < d[j].turn
}
func (d delayed) Swap(i, j int) { d[i], d[j] = d[j], d[i]; d[i].at, d[j].at = i, j }
func (d *delayed) Push(x any)   { f := x.(*flight); f.at = len(*d); *d = append(*d, f) }
func (d *delayed) Pop() any {
	f := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	f.at = -1
	return f
}
