package enrich

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/backoff"
)

// clockwork runs a schedule by a clock of its own.
type clockwork struct {
	t *testing.T
	*schedule
	now      time.Time
	received event.Position
	flying   []*flight
}

func wind(t *testing.T, specs ...*Spec) *clockwork {
	for _, s := range specs {
		if s.Allows == nil {
			s.Allows = func(*url.URL) error { return nil }
		}
		if s.Concurrency == 0 {
			s.Concurrency = 4
		}
	}
	policy := backoff.Policy{First: time.Second, Most: 5 * time.Minute}
	probing := backoff.Policy{First: 20 * time.Second, Most: 10 * time.Minute}
	return &clockwork{
		t: t, schedule: newSchedule(specs, policy, probing, func() float64 { return 1 }),
		now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), received: 1 << 40,
	}
}

func (c *clockwork) wants(p event.Position, fetch, path string) id {
	w := id{"db", event.Ref{Position: p}, fetch}
	c.want(w, Request{URL: "https://api.example.com/" + path}, c.now)
	return w
}

// begin starts what may begin, and returns its paths.
func (c *clockwork) begin() (paths []string) {
	flights, _ := c.start(c.now, c.received)
	for _, f := range flights {
		paths = append(paths, f.url.Path)
	}
	c.flying = append(c.flying, flights...)
	return paths
}

// end ends the read that began first.
func (c *clockwork) end(o outcome) []id {
	c.t.Helper()
	if len(c.flying) == 0 {
		c.t.Fatal("no read is under way")
	}
	f := c.flying[0]
	c.flying = c.flying[1:]
	return c.done(f, o, c.now)
}

func (c *clockwork) after(d time.Duration) { c.now = c.now.Add(d) }

var fine = outcome{answer: &event.Fetched{Status: 200, Body: []byte("{}")}}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestF17WhoSharesARead: events that were received before a read began, and no
// other; and only one read of a URL is under way.
func TestF17WhoSharesARead(t *testing.T) {
	c := wind(t, &Spec{Name: "f"})
	c.received = 7
	a, b := c.wants(1, "f", "x"), c.wants(2, "f", "x")
	same(t, "begin", c.begin(), "[/x]")
	early := c.wants(7, "f", "x")  // received before, and mapped only now
	late := c.wants(8, "f", "x")   // received after it began
	later := c.wants(20, "f", "x") // shares with that one
	same(t, "while one is under way", c.begin(), "[]")
	told := c.end(fine)
	same(t, "told", len(told), 3)
	for _, w := range []id{a, b, early} {
		if c.schedule.wants[w].answer == nil {
			t.Errorf("%v has no answer", w)
		}
	}
	for _, w := range []id{late, later} {
		if c.schedule.wants[w].answer != nil {
			t.Errorf("%v has an answer that is older than itself", w)
		}
	}
	if w := c.wants(6, "f", "x"); c.schedule.wants[w].answer == nil {
		t.Error("an answer that has just come is not shared")
	}
	c.received = 20
	same(t, "the next", c.begin(), "[/x]")
	same(t, "told", len(c.end(fine)), 2)
	c.after(shareFor)
	c.sweep(c.now)
	if w := c.wants(5, "f", "x"); c.schedule.wants[w].answer != nil {
		t.Error("an old answer is shared")
	}
}

// TestHeadersTellReadsApart: two accounts behind one URL are two objects.
func TestHeadersTellReadsApart(t *testing.T) {
	c := wind(t, &Spec{Name: "f"})
	for p, account := range []string{"a", "b", "a"} {
		c.want(id{"db", event.Ref{Position: event.Position(p + 1)}, "f"}, Request{URL: "https://h/x", Header: http.Header{"Account": {account}}}, c.now)
	}
	same(t, "reads", len(c.begin()), 2)
}

// TestRate: in no second more begin than the rate says, whoever wants them.
func TestRate(t *testing.T) {
	c := wind(t, &Spec{Name: "f", Rate: 10, Concurrency: 100}, &Spec{Name: "g", Rate: 20, Concurrency: 100})
	for i := range 60 {
		c.wants(event.Position(i+1), []string{"f", "g"}[i%2], fmt.Sprint(i))
	}
	var began []time.Time
	for len(began) < 60 {
		flights, again := c.start(c.now, c.received)
		for range flights {
			began = append(began, c.now)
		}
		if len(began) < 60 {
			if !again.After(c.now) {
				t.Fatalf("asked to come again at %v, and it is %v", again, c.now)
			}
			c.now = again
		}
	}
	for i := range began {
		if i >= 10 && began[i].Sub(began[i-10]) < time.Second {
			t.Errorf("11 reads within %v", began[i].Sub(began[i-10]))
		}
	}
	if took := began[59].Sub(began[0]); took > 6*time.Second {
		t.Errorf("60 reads took %v", took)
	}
}

func TestConcurrency(t *testing.T) {
	c := wind(t, &Spec{Name: "f", Concurrency: 3}, &Spec{Name: "g", Concurrency: 2})
	for i := range 10 {
		c.wants(event.Position(i+1), "f", fmt.Sprint(i))
	}
	same(t, "begin", len(c.begin()), 2) // of two fetches from one host the strictest counts
	c.end(fine)
	same(t, "then", len(c.begin()), 1)
}

// TestFailures: pauses that grow, and a failure that everybody sees who waits.
func TestFailures(t *testing.T) {
	c := wind(t, &Spec{Name: "f"})
	a, b := c.wants(1, "f", "x"), c.wants(2, "f", "x")
	for n, pause := range []time.Duration{1, 2, 4, 8, 16} {
		same(t, "begin", c.begin(), "[/x]")
		same(t, "told", len(c.end(outcome{reason: "no", counts: true})), 2)
		f := c.schedule.wants[a].failure
		if f.Tries != n+1 || !f.Counts || f.Final || !f.Next.Equal(c.now.Add(pause*time.Second)) {
			t.Fatalf("%+v", f)
		}
		same(t, "too early", c.begin(), "[]")
		c.after(pause*time.Second - 1)
		same(t, "too early", c.begin(), "[]")
		c.after(1)
	}
	c.forget(a)
	same(t, "begin", c.begin(), "[/x]")
	c.forget(b)
	same(t, "told", len(c.end(outcome{reason: "no", counts: true})), 0)
	c.after(time.Hour)
	same(t, "nobody wants it", c.begin(), "[]")
}

func TestFinal(t *testing.T) {
	c := wind(t, &Spec{Name: "f"})
	a := c.wants(1, "f", "x")
	c.begin()
	c.end(outcome{reason: "422", final: true})
	if f := c.schedule.wants[a].failure; !f.Final {
		t.Errorf("%+v", f)
	}
	c.after(time.Hour)
	same(t, "again", c.begin(), "[]")
	c.forget(a)
	c.wants(1, "f", "x") // retried by a person
	same(t, "anew", c.begin(), "[/x]")
}

// TestHold: a host that says 429 is left alone until the time it says, and what
// waits meanwhile has not failed.
func TestHold(t *testing.T) {
	c := wind(t, &Spec{Name: "f"}, &Spec{Name: "g"})
	a := c.wants(1, "f", "x")
	c.begin()
	c.end(outcome{reason: "429", hold: true, asked: true, pause: 7 * time.Second})
	c.wants(2, "f", "y")
	c.wants(3, "g", "z") // of the same host
	c.want(id{"db", event.Ref{Position: 4}, "g"}, Request{URL: "https://other.example.com/w"}, c.now)
	same(t, "another host", c.begin(), "[/w]")
	if f := c.schedule.wants[a].failure; f.Counts || f.Tries != 0 || !f.Next.Equal(c.now.Add(7*time.Second)) {
		t.Errorf("%+v", f)
	}
	c.after(7*time.Second - 1)
	same(t, "too early", c.begin(), "[]")
	c.after(1)
	same(t, "then", len(c.begin()), 3)
	// Without a time to wait the pauses grow.
	c = wind(t, &Spec{Name: "f"})
	c.wants(1, "f", "x")
	for _, pause := range []time.Duration{2, 4, 8} {
		same(t, "begin", c.begin(), "[/x]")
		c.end(outcome{reason: "429", hold: true})
		c.after(pause*time.Second - 1)
		same(t, "too early", c.begin(), "[]")
		c.after(1)
	}
}

// TestPause: 401 parks everything of a fetch; one read after the other finds out,
// each time another, whether it is answered again.
func TestPause(t *testing.T) {
	c := wind(t, &Spec{Name: "f", Concurrency: 2}, &Spec{Name: "g", Concurrency: 2})
	denied := outcome{reason: "401", denied: true, unauthorized: true}
	for i, path := range []string{"a", "b", "c", "d"} {
		c.wants(event.Position(i+1), "f", path)
	}
	same(t, "begin", c.begin(), "[/a /b]")
	c.end(denied)
	c.end(denied)
	c.wants(9, "f", "e")
	c.wants(10, "g", "other")
	same(t, "another fetch", c.begin(), "[/other]")
	c.end(fine)
	seen := map[string]bool{}
	for _, pause := range []time.Duration{20, 40, 80} {
		same(t, "too early", c.begin(), "[]")
		c.after(pause * time.Second)
		paths := c.begin()
		if len(paths) != 1 || seen[paths[0]] {
			t.Fatalf("%v, after %v", paths, seen)
		}
		seen[paths[0]] = true
		same(t, "one at a time", c.begin(), "[]")
		c.end(denied)
	}
	c.after(160 * time.Second)
	same(t, "begin", len(c.begin()), 1)
	c.end(fine)
	if c.specs["f"].paused {
		t.Error("still paused")
	}
	same(t, "all the others", len(c.begin()), 2)
	c.end(fine)
	c.end(fine)
	same(t, "the rest", len(c.begin()), 2)
}

// TestOneObjectIsDenied: an object that alone is refused does not keep its fetch
// paused for ever.
func TestOneObjectIsDenied(t *testing.T) {
	c := wind(t, &Spec{Name: "f", Concurrency: 1})
	bad := c.wants(1, "f", "bad")
	for i := 2; c.schedule.wants[bad] != nil && c.schedule.wants[bad].state != landed; i++ {
		if i > 50 {
			t.Fatal("it is never given up")
		}
		c.wants(event.Position(i), "f", fmt.Sprint("good", i))
		for len(c.begin()) > 0 {
			o := fine
			if c.flying[0].url.Path == "/bad" {
				o = outcome{reason: "403", denied: true}
			}
			c.end(o)
		}
		c.after(time.Minute)
	}
	if f := c.schedule.wants[bad].failure; !f.Final {
		t.Errorf("%+v", f)
	}
	if c.specs["f"].paused {
		t.Error("the fetch is paused by one object")
	}
}

// TestRefuse: an answer that is too old for one event is one for another.
func TestRefuse(t *testing.T) {
	c := wind(t, &Spec{Name: "f"})
	a, b := c.wants(1, "f", "x"), c.wants(2, "f", "x")
	c.begin()
	c.end(fine)
	c.refuse(b, "too old", c.now)
	if c.schedule.wants[a].answer == nil || c.schedule.wants[b].answer != nil || c.schedule.wants[b].failure.Reason != "too old" {
		t.Error("the wrong one is to be asked again")
	}
	if w := c.wants(1, "f", "x"); w != a {
		t.Error(w)
	}
	third := c.wants(0, "f", "x")
	if c.schedule.wants[third].answer != nil {
		t.Error("an answer that was refused is shared")
	}
	same(t, "at once", c.begin(), "[]")
	c.after(time.Second)
	same(t, "then", c.begin(), "[/x]")
	c.end(fine)
	c.refuse(b, "still", c.now)
	if f := c.schedule.wants[b].failure; f.Tries != 2 || !f.Counts {
		t.Errorf("%+v", f)
	}
}

// TestNothingIsForgotten: whatever happens, each want has an answer in the end,
// or a final failure, and one that no read began before.
func TestNothingIsForgotten(t *testing.T) {
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 17))
		c := wind(t, &Spec{Name: "f", Rate: 5, Concurrency: 1 + rnd.IntN(3)}, &Spec{Name: "g", Concurrency: 2})
		c.random = rnd.Float64
		received := map[id]int{} // how many reads had begun when the event came
		begun := map[*flight]int{}
		n := 0
		c.received = 0
		wait := []id{}
		for step := 0; step < 4000 && (step < 200 || len(wait) > 0); step++ {
			if step < 200 && rnd.IntN(2) == 0 {
				c.received++
				w := id{"db", event.Ref{Position: c.received}, []string{"f", "g"}[rnd.IntN(2)]}
				received[w] = n
				wait = append(wait, w)
			}
			if len(wait) > 0 && rnd.IntN(2) == 0 { // mapped some time after
				w := wait[rnd.IntN(len(wait))]
				c.want(w, Request{URL: fmt.Sprintf("https://h%d/%d", w.ref.Position%2, w.ref.Position%5)}, c.now)
			}
			flights, again := c.start(c.now, c.received)
			for _, f := range flights {
				n++
				begun[f] = n
			}
			c.flying = append(c.flying, flights...)
			most := 0
			for _, g := range c.gates {
				most = max(most, g.running-g.most)
			}
			if most > 0 {
				t.Fatalf("seed %d: too many at a time", seed)
			}
			if len(c.flying) > 0 && rnd.IntN(3) > 0 {
				i := rnd.IntN(len(c.flying))
				c.flying[0], c.flying[i] = c.flying[i], c.flying[0]
				o := fine
				switch rnd.IntN(8) {
				case 0:
					o = outcome{reason: "500", counts: true}
				case 1:
					o = outcome{reason: "429", hold: true, asked: rnd.IntN(2) == 0, pause: time.Second}
				case 2:
					o = outcome{reason: "401", denied: true, unauthorized: rnd.IntN(2) == 0}
				case 3:
					o = outcome{reason: "422", final: rnd.IntN(4) == 0, counts: true}
				}
				c.end(o)
			} else if again.After(c.now) {
				c.now = again
			} else {
				c.after(10 * time.Millisecond)
			}
			if rnd.IntN(10) == 0 {
				c.sweep(c.now)
			}
			var still []id
			for _, w := range wait {
				f := c.schedule.wants[w]
				switch {
				case f == nil || f.state != landed:
					still = append(still, w)
				case f.answer != nil && begun[f] <= received[w]:
					t.Fatalf("seed %d: %v has an answer of a read that began before it came", seed, w)
				case f.answer != nil && rnd.IntN(6) == 0:
					c.refuse(w, "too old", c.now)
					still = append(still, w)
				default:
					c.forget(w)
				}
			}
			wait = still
			for _, w := range wait {
				if c.schedule.wants[w] == nil && step >= 200 {
					c.want(w, Request{URL: fmt.Sprintf("https://h%d/%d", w.ref.Position%2, w.ref.Position%5)}, c.now)
				}
			}
		}
		if len(wait) > 0 {
			t.Fatalf("seed %d: %d wants are never answered: %+v", seed, len(wait), c.schedule.wants[wait[0]])
		}
		if len(c.schedule.wants) > 0 || len(c.next) > 0 && len(c.flying) == 0 {
			t.Errorf("seed %d: %d wants and %d reads are left", seed, len(c.schedule.wants), len(c.next))
		}
		for len(c.flying) > 0 {
			c.end(fine)
		}
		c.after(time.Hour)
		if c.sweep(c.now); c.held != 0 {
			t.Errorf("seed %d: %d bytes are kept for nobody", seed, c.held)
		}
	}
}

// TestHeldAnswersAreBounded: while nobody takes answers, no more are asked for.
func TestHeldAnswersAreBounded(t *testing.T) {
	c := wind(t, &Spec{Name: "f", Concurrency: 2})
	large := func() outcome {
		return outcome{answer: &event.Fetched{Status: 200, Body: make([]byte, maxHeld/4)}}
	}
	var all []id
	for i := range 20 {
		all = append(all, c.wants(event.Position(i+1), "f", fmt.Sprint(i)))
	}
	n := 0
	for len(c.begin()) > 0 || len(c.flying) > 0 {
		n++
		c.end(large())
	}
	same(t, "reads until it is full", n, 5)
	for _, w := range all[:2] {
		c.forget(w)
	}
	same(t, "answers that may be shared are kept", c.begin(), "[]")
	c.after(shareFor)
	c.sweep(c.now)
	for len(c.begin()) > 0 || len(c.flying) > 0 {
		n++
		c.end(large())
	}
	same(t, "reads", n, 7)
	for _, w := range all {
		c.forget(w)
	}
	c.after(shareFor)
	c.sweep(c.now)
	same(t, "held", c.held, 0)
}

func TestAURLThatIsNone(t *testing.T) {
	c := wind(t, &Spec{Name: "f", Allows: func(*url.URL) error { return errors.New("no") }})
	w := id{"db", event.Ref{Position: 1}, "f"}
	if !c.want(w, Request{URL: "https://a b/\x7f"}, c.now) || !c.schedule.wants[w].failure.Final {
		t.Error("it is asked")
	}
	if c.want(id{"db", event.Ref{Position: 1}, "unknown"}, Request{URL: "https://a/"}, c.now) {
		t.Error("a fetch that there is not")
	}
}
