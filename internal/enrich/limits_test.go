package enrich

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
)

// TestProbesThatFailAreFewer: whatever comes of the read that finds out whether a
// paused fetch is answered again, the next one is not made at once.
func TestProbesThatFailAreFewer(t *testing.T) {
	for _, o := range []outcome{
		{reason: "503", counts: true},
		{reason: "400", final: true},
		{reason: "429", hold: true, asked: true},
	} {
		c := wind(t, &Spec{Name: "f"})
		for p := range 3 {
			c.wants(event.Position(p+1), "f", fmt.Sprint(p))
		}
		c.begin()
		for range 3 {
			c.end(outcome{reason: "401", denied: true, unauthorized: true})
		}
		pauses := []time.Duration{20, 40}
		if o.final { // of its object
			pauses[1] = 20
		}
		for _, pause := range pauses {
			c.after(pause*time.Second - 1)
			same(t, "too early", c.begin(), "[]")
			c.after(1)
			same(t, "one", len(c.begin()), 1)
			c.end(o)
			same(t, "at once after "+o.reason, c.begin(), "[]")
		}
	}
}

// TestHoldOfNothing: who limits us and asks for no pause, or for one that is over
// by our clock, is not asked again at once.
func TestHoldOfNothing(t *testing.T) {
	c := wind(t, &Spec{Name: "f"})
	c.wants(1, "f", "x")
	for _, pause := range []time.Duration{2, 4, 8} {
		same(t, "begin", c.begin(), "[/x]")
		c.end(outcome{reason: "429", hold: true, asked: true})
		c.after(pause*time.Second - 1)
		same(t, "too early", c.begin(), "[]")
		c.after(1)
	}
	same(t, "begin", c.begin(), "[/x]")
	o := fine
	o.hold, o.asked = true, true // its limit is over already
	c.end(o)
	c.wants(2, "f", "y")
	same(t, "after an answer", c.begin(), "[/y]")
}

// TestRefuseCountsAmongOthers: an answer that will not do counts, though a read
// for a later event is queued already.
func TestRefuseCountsAmongOthers(t *testing.T) {
	c := wind(t, &Spec{Name: "f"})
	c.received = 1
	a := c.wants(1, "f", "x")
	for tries := 1; tries <= 6; tries++ {
		same(t, "begin", c.begin(), "[/x]")
		c.received++
		c.wants(c.received, "f", "x")
		c.end(fine)
		c.refuse(a, "too old", c.now)
		if f := c.schedule.wants[a].failure; f == nil || f.Tries != tries || f.Reason != "too old" {
			t.Fatalf("after %d answers: %+v", tries, f)
		}
		c.after(5 * time.Minute)
	}
}

// TestWantsAreBoundedPerFetch: events that wait for one fetch take no room from
// those of another.
func TestWantsAreBoundedPerFetch(t *testing.T) {
	allows := func(*url.URL) error { return nil }
	f := New(Options{Specs: []*Spec{{Name: "down", Allows: allows}, {Name: "up", Allows: allows}}, Wants: 3})
	want := func(p event.Position, fetch string) {
		f.Want("db", func([]event.Ref) {}, []Want{{Ref: event.Ref{Position: p}, Fetch: fetch, Request: Request{URL: fmt.Sprintf("https://a.example/%s/%d", fetch, p)}}})
	}
	waiting := func() (out []int) {
		for _, s := range f.States() {
			out = append(out, s.Waiting)
		}
		return out
	}
	for p := range event.Position(5) {
		want(p+1, "down")
		want(p+1, "up")
	}
	same(t, "waiting", waiting(), "[3 3]")
	f.Forget("db", event.Ref{Position: 1})
	f.Forget("db", event.Ref{Position: 1})
	want(2, "up") // wanted already
	want(6, "up")
	want(7, "up")
	same(t, "waiting", waiting(), "[2 3]")
}

// TestSecretsAreTakenOutWhole: an API that repeats the token gives nothing of it
// away, wherever what it said is cut off.
func TestSecretsAreTakenOutWhole(t *testing.T) {
	const token = "t0p-secret-value-of-a-token"
	at := &url.URL{Scheme: "https", Host: "a.example"}
	for _, s := range []*Spec{
		{Header: http.Header{"Authorization": {"Bearer " + token}}},
		{Header: http.Header{"X-Auth": {"Token " + token}}},
	} {
		for n := range 4*maxSaid + 50 {
			body := strings.Repeat("x", n) + token
			if n > maxSaid { // what is between is not told
				body = "x" + strings.Repeat(" ", n) + token
			}
			if o := s.refusal(at, 500, http.Header{}, []byte(body), time.Now()); strings.Contains(o.reason, token[:4]) {
				t.Fatalf("at %d: %s", n, o.reason)
			}
		}
	}
}

// TestWhatAServerCallsAStatus is not told: it may be long, and hold anything.
func TestWhatAServerCallsAStatus(t *testing.T) {
	at := &url.URL{Scheme: "https", Host: "a.example"}
	for _, n := range []NotFound{NotFoundRetry, NotFoundDead} {
		s := &Spec{NotFound: n}
		o := s.object(at, &http.Response{StatusCode: 404, Status: "404 \x1b[2J" + strings.Repeat("x", 1<<15)}, nil, time.Now())
		if len(o.reason) > 200 || strings.Contains(o.reason, "\x1b") || !strings.Contains(o.reason, "404 Not Found") {
			t.Errorf("%.200q", o.reason)
		}
	}
}

// TestNAT64OfANetworkIsItsOwn: where in such an address the one of IPv4 stands is
// up to that network.
func TestNAT64OfANetworkIsItsOwn(t *testing.T) {
	for _, text := range []string{"64:ff9b:1:7f00:0:100::", "64:ff9b:1:a9fe:a9:fe00:808:808", "64:ff9b:1::8.8.8.8"} {
		if Public(netip.MustParseAddr(text)) {
			t.Errorf("%s is asked", text)
		}
	}
}
