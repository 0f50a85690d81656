// Package enrich reads, from the APIs of providers, what events need before they
// can be mapped: the fetches of a config.
//
//	want      a target wants a read for an event that waits for it
//	share     wants of one URL share one read, if it has not begun, or if their
//	          events had been received when it began: what is read is at least as
//	          new as they are
//	start     a read begins when its host's rate, concurrency and holds let it
//	ask       one GET with few redirects, to allowed hosts and public addresses
//	judge     an answer; a failure that is tried again; one that is final; a host
//	          that wants a pause; an API that does not want us: the fetch pauses,
//	          and one read after the other finds out when it does again
//	look      the target is woken, looks, journals the answer and maps the event
//
// The schedule is a value without clock, goroutine or lock; Fetcher owns those.
// Nothing here is durable: what waits is in the journal, and wants its reads anew
// after a restart.
package enrich

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/backoff"
	"github.com/hookfold/hookfold/internal/calm"
)

// Spec is a fetch: how its reads are made.
type Spec struct {
	Name string
	// Header is sent with every request to the URL's own host; it holds secrets.
	Header http.Header
	// Allows tells why a URL may not be read, nil if it may; AllowsPrivate whether
	// its host may have an address that is not one of the internet.
	Allows        func(u *url.URL) error
	AllowsPrivate func(u *url.URL) bool
	// Rate is the most requests a second to one host, 0 for no limit, and
	// Concurrency the most at a time.
	Rate        float64
	Concurrency int
	// Timeout bounds one request with its redirects and its answer, MaxBody the
	// bytes of the answer.
	Timeout time.Duration
	MaxBody int64
	// NotFound says what 404 and 410 are.
	NotFound NotFound
}

// NotFound says what it means that an object is not there.
type NotFound string

// An object that is not there is asked for again, is an answer, or is not of
// use to be asked for again.
const (
	NotFoundRetry NotFound = "retry"
	NotFoundValue NotFound = "value"
	NotFoundDead  NotFound = "dead"
)

// Request is what is read for an event.
type Request struct {
	URL string
	// Header is what the event adds to the fetch's.
	Header http.Header
}

// Want is a read that an event waits for.
type Want struct {
	Ref   event.Ref
	Fetch string
	Request
}

// Standing is how a read stands. It is zero if it is not wanted.
type Standing struct {
	// Answer is not nil if there is one. It is shared, and never changed; its
	// Index and Name are for the caller to set in a copy.
	Answer *event.Fetched
	// Failure is the last one, nil if there was none since the read was wanted.
	Failure *Failure
}

// Failure is a read that failed.
type Failure struct {
	// Reason is for a person, without secrets.
	Reason string
	// Tries is how often it failed in a way that counts.
	Tries int
	// Next is about when it is tried again.
	Next time.Time
	// Final tells that it is not, Counts that the failure brings the event nearer
	// to its limit, and Paused that the fetch is paused as a whole.
	Final, Counts, Paused bool
}

// Observer is told of requests, for metrics. It must be quick and safe for
// concurrent use.
type Observer interface {
	// Fetched tells of a request: its outcome is answered, failed, limited, denied
	// or refused.
	Fetched(fetch, outcome string, took time.Duration)
}

// Options configure a Fetcher.
type Options struct {
	Specs []*Spec
	// Received gives the greatest position that was received; nil counts what was
	// wanted. The more it knows, the more reads are shared.
	Received func() event.Position
	// Log gets a line for what fails, in bounded number; nil is silent.
	Log *slog.Logger
	// Observer may be nil.
	Observer Observer
	// Backoff is how long a read that failed is left. Default 1 s to 5 min.
	Backoff backoff.Policy
	// Probing is how long a paused fetch is left. Default 15 s to 10 min.
	Probing backoff.Policy
	// Wants is the most events that one fetch makes reads for at a time; others are
	// to want them again later. Default 20,000.
	Wants int
	// Now is the clock; default time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Received == nil {
		o.Received = func() event.Position { return 0 }
	}
	if o.Backoff == (backoff.Policy{}) {
		o.Backoff = backoff.Policy{First: time.Second, Most: 5 * time.Minute}
	}
	if o.Probing == (backoff.Policy{}) {
		o.Probing = backoff.Policy{First: 15 * time.Second, Most: 10 * time.Minute}
	}
	if o.Wants <= 0 {
		o.Wants = 20_000
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Fetcher makes reads. It is safe for concurrent use.
type Fetcher struct {
	o       Options
	log     *calm.Logger
	clients map[string]*http.Client
	changed chan struct{} // has a token when the schedule is to be looked at

	mu       sync.Mutex
	schedule *schedule
	wake     map[string]func([]event.Ref) // by target

	ctx        context.Context
	cancel     context.CancelFunc
	begin, end sync.Once
	loops      sync.WaitGroup
}

// New returns a fetcher; Start sets it going.
func New(o Options) *Fetcher {
	o = o.withDefaults()
	f := &Fetcher{
		o: o, log: calm.New(o.Log, o.Now), clients: map[string]*http.Client{}, changed: make(chan struct{}, 1),
		schedule: newSchedule(o.Specs, o.Backoff, o.Probing, rand.Float64), wake: map[string]func([]event.Ref){},
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	for _, s := range o.Specs {
		f.clients[s.Name] = &http.Client{
			Transport:     newTransport(s),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return f
}

// Start begins to make reads. It may be called again.
func (f *Fetcher) Start() { f.begin.Do(func() { f.loops.Go(f.run) }) }

// Stop ends the requests that are under way. It may be called again, and before
// Start.
func (f *Fetcher) Stop() {
	f.begin.Do(func() {})
	f.end.Do(func() {
		f.cancel()
		f.loops.Wait()
		for _, c := range f.clients {
			c.CloseIdleConnections()
		}
	})
}

// Want asks for reads for events of a target. When there is something to look at
// wake is called, from any goroutine, with the events; it must not block. What is
// wanted already is left as it is.
func (f *Fetcher) Want(target string, wake func([]event.Ref), wants []Want) {
	var ready []event.Ref
	f.mu.Lock()
	f.wake[target] = wake
	now := f.o.Now()
	for _, w := range wants {
		key := id{target, w.Ref, w.Fetch}
		if x := f.schedule.specs[w.Fetch]; x != nil && x.wanted >= f.o.Wants && f.schedule.wants[key] == nil {
			continue
		}
		if f.schedule.want(key, w.Request, now) {
			ready = append(ready, w.Ref)
		}
	}
	f.mu.Unlock()
	f.kick()
	if ready != nil {
		wake(ready)
	}
}

// Look tells how a read stands.
func (f *Fetcher) Look(target string, ref event.Ref, fetch string) Standing {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.schedule.wants[id{target, ref, fetch}]
	if x == nil {
		return Standing{}
	}
	return Standing{Answer: x.answer, Failure: x.failure}
}

// Refuse tells that the answer will not do for an event, and why. It is asked for
// again after a pause.
func (f *Fetcher) Refuse(target string, ref event.Ref, fetch, reason string) {
	f.mu.Lock()
	f.schedule.refuse(id{target, ref, fetch}, reason, f.o.Now())
	f.mu.Unlock()
	f.kick()
}

// Forget tells that an event wants nothing any more, or no more of some fetches.
func (f *Fetcher) Forget(target string, ref event.Ref, fetches ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.schedule.wants) == 0 {
		return
	}
	defer f.kick() // there may be room for others
	if fetches == nil {
		for _, s := range f.o.Specs {
			f.schedule.forget(id{target, ref, s.Name})
		}
	}
	for _, name := range fetches {
		f.schedule.forget(id{target, ref, name})
	}
}

// hopeful is how often a read may fail until it is no longer waited for.
const hopeful = 3

// Busy counts the wants of which something may be expected soon: it leaves out
// those of paused fetches, and reads that have failed several times.
func (f *Fetcher) Busy() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.schedule.wants {
		switch {
		case x.state == landed || x.state == running, !x.spec.paused && x.tries < hopeful:
			n++
		}
	}
	return n
}

// State tells how a fetch goes.
type State struct {
	Name string
	// Waiting counts the events that wait for it.
	Waiting int
	// Paused is set while its API does not know or want who asks, Error says how it
	// answered, and Since when that began.
	Paused bool
	Error  string
	Since  time.Time
}

// States tells how the fetches go, in their order.
func (f *Fetcher) States() []State {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]State, len(f.o.Specs))
	for i, s := range f.o.Specs {
		x := f.schedule.specs[s.Name]
		out[i] = State{Name: s.Name, Waiting: x.wanted, Paused: x.paused}
		if x.paused {
			out[i].Error, out[i].Since = x.why, x.since
		}
	}
	return out
}

func (f *Fetcher) kick() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// sweepEvery is how often answers that are shared no more are forgotten.
const sweepEvery = 5 * time.Second

// run starts reads when it is time.
func (f *Fetcher) run() {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		received := f.o.Received() // before any read begins
		f.mu.Lock()
		now := f.o.Now()
		flights, again := f.schedule.start(now, received)
		f.mu.Unlock()
		for _, x := range flights {
			f.loops.Go(func() { f.fly(x) })
		}
		if !again.IsZero() {
			timer.Reset(max(0, again.Sub(now)))
		}
		select {
		case <-f.ctx.Done():
			return
		case <-f.changed:
		case <-timer.C:
		case now := <-sweep.C:
			f.mu.Lock()
			f.schedule.sweep(now)
			f.mu.Unlock()
		}
	}
}

// fly makes one read.
func (f *Fetcher) fly(x *flight) {
	begun := time.Now()
	o := x.spec.ask(f.ctx, f.clients[x.spec.Name], x)
	if f.ctx.Err() != nil {
		return // whoever waits wants it again after the next start
	}
	if f.o.Observer != nil {
		f.o.Observer.Fetched(x.spec.Name, o.word(), time.Since(begun))
	}
	f.mu.Lock()
	paused := x.spec.paused
	tell := f.schedule.done(x, o, f.o.Now())
	f.say(x, o, paused)
	refs := map[string][]event.Ref{}
	for _, w := range tell {
		refs[w.target] = append(refs[w.target], w.ref)
	}
	wake := map[string]func([]event.Ref){}
	for target := range refs {
		wake[target] = f.wake[target]
	}
	f.mu.Unlock()
	for target, of := range refs {
		wake[target](of)
	}
	f.kick()
}

func (o *outcome) word() string {
	switch {
	case o.answer != nil:
		return "answered"
	case o.denied:
		return "denied"
	case o.final:
		return "refused"
	case o.counts:
		return "failed"
	}
	return "limited"
}

// say logs what came of a read that is news.
func (f *Fetcher) say(x *flight, o outcome, was bool) {
	name := x.spec.Name
	switch now := x.spec.paused; {
	case now && !was:
		f.log.Line(slog.LevelError, "paused "+name, func() string {
			return fmt.Sprintf("fetch %s: %s. It is paused: its events wait, none is lost. Is the token right, and may it read this? It is asked again at %s.", name, o.reason, x.spec.probe.UTC().Format(time.TimeOnly))
		})
	case was && !now:
		f.log.Line(slog.LevelInfo, "answers "+name, func() string { return fmt.Sprintf("fetch %s: it is answered again", name) })
	case o.answer == nil:
		f.log.Line(slog.LevelWarn, "failed "+name, func() string { return fmt.Sprintf("fetch %s: %s", name, o.reason) })
	}
}
