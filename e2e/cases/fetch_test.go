package cases

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/enrich/enrichtest"
)

// asking puts an API in the place of the one that the config names.
func (s *scenario) asking(api *enrichtest.API) *scenario {
	of := *s
	of.config = strings.ReplaceAll(s.config, "127.0.0.1:1/", api.Host+"/")
	of.config = strings.ReplaceAll(of.config, `"127.0.0.1:1"`, `"`+api.Host+`"`)
	return &of
}

// slowRead has the read for the older event end when the newer event has landed.
func slowRead(t *testing.T, s *scenario, on engine) {
	newer := make(chan struct{})
	asked := make(chan struct{})
	var once sync.Once
	api := enrichtest.New(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("ver") == "10" {
			once.Do(func() { close(asked) })
			<-newer
		}
		fmt.Fprint(w, `{}`)
	})
	s = s.asking(api)
	landed := func(url string) {
		becomes(t, url, `select count(*) from account where ver = 11 and plan = 'pro'`, "1")
	}
	if s.variant == "two-processes" {
		w, err := s.prepare(t, on)
		if err != nil {
			t.Fatal(err)
		}
		configs := w.configs(2)
		program(t, configs[0], "migrate", "--apply")
		first, second := serve(t, configs[0]), serve(t, configs[1])
		all2xx(t, fire(t, func(int) string { return first.Receive + "/in/in" }, []string{string(s.arrivals[0].Body)}, 1))
		<-asked
		all2xx(t, fire(t, func(int) string { return second.Receive + "/in/in" }, []string{string(s.arrivals[1].Body)}, 1))
		landed(w.url)
		close(newer)
		settled(t, configs[0])
		landed(w.url)
		for _, p := range []*process{first, second} {
			if err := errors.Join(p.stop(), quiet(p.log.String())); err != nil {
				t.Error(err)
			}
		}
		return
	}
	w := begin(t, s, on)
	if err := w.arrive(s.arrivals[0]); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := w.arrive(s.arrivals[1]); err != nil {
		t.Fatal(err)
	}
	landed(w.url)
	close(newer)
	if err := errors.Join(w.judge(), quiet(w.log.String())); err != nil {
		t.Error(err)
	}
}

// settled waits until nothing waits in a process's journal.
func settled(t *testing.T, config string) {
	t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for {
		out := program(t, config, "waiting", "list")
		if strings.Contains(out, "No event is waiting") {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("still there: %s", out)
		}
	}
}

// limitedAPI has objects, whose versions grow, and allows a number of requests in
// each second; to others it answers 429 with the time to wait.
type limitedAPI struct {
	allowed int

	mu     sync.Mutex
	ver    map[string]int
	second time.Time
	served int
	// Of the pauses that it asked for: until when, and what came in spite of them.
	pauses   int
	until    time.Time
	after    int // requests since the last pause was asked for
	spiteful []int
}

func (a *limitedAPI) change(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ver[id]++
}

func (a *limitedAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if now.Before(a.until) {
		a.after++
	} else if !a.until.IsZero() {
		a.spiteful, a.after, a.until = append(a.spiteful, a.after), 0, time.Time{}
	}
	if now.Sub(a.second) >= time.Second {
		a.second, a.served = now, 0
	}
	if a.served++; a.served > a.allowed {
		a.pauses++
		after := "1"
		a.until = now.Add(time.Second)
		if a.pauses%2 == 0 {
			a.until = now.Truncate(time.Second).Add(2 * time.Second)
			after = a.until.UTC().Format(http.TimeFormat)
		}
		w.Header().Set("Retry-After", after)
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	id := strings.TrimPrefix(r.URL.Path, "/c/")
	fmt.Fprintf(w, `{"name":"%s at %d","ver":%d}`, id, a.ver[id], a.ver[id])
}

// tooMany sends 2,000 events for 100 objects of an API that does not allow so many
// requests.
func tooMany(t *testing.T, s *scenario, on engine) {
	const ids, events, concurrency = 100, 2000, 4
	provider := &limitedAPI{allowed: 60, ver: map[string]int{}}
	api := enrichtest.New(t, provider.ServeHTTP)
	w := begin(t, s.asking(api), on)
	var bodies []string
	for i := range events {
		id := fmt.Sprint(i % ids)
		provider.change(id)
		bodies = append(bodies, fmt.Sprintf(`{"id":%q}`, id))
	}
	all2xx(t, fire(t, w.in, shuffled(t, bodies), 32))
	// Others are not held up.
	all2xx(t, fire(t, func(int) string { return "http://" + w.daemon.Addr() + "/in/other" }, []string{`{"id":1,"s":"x","ver":1}`}, 1))
	becomes(t, w.url, `select count(*) from other`, "1")
	becomes(t, w.url, fmt.Sprintf(`select count(*) from c where ver = %d`, events/ids), fmt.Sprint(ids))
	if _, err := w.daemon.Drain(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	becomes(t, w.url, fmt.Sprintf(`select count(*) from c where ver = %d`, events/ids), fmt.Sprint(ids))
	if diff, err := w.differEntries(); err != nil || diff != "" {
		t.Error(diff, err)
	}
	requests := len(api.Requests())
	t.Logf("%d requests for %d events, %d of them refused; in spite of pauses came %v", requests, events, provider.pauses, provider.spiteful)
	if requests > events/5 {
		t.Errorf("%d requests for %d events", requests, events)
	}
	for _, n := range provider.spiteful {
		if n >= concurrency { // what was on its way when the first was refused
			t.Errorf("%d requests came while none was wanted", n)
		}
	}
	if most := api.Most(); most > concurrency {
		t.Errorf("%d requests at a time", most)
	}
}

// whileRunning changes an object while it is read: its event makes a read of its
// own.
func whileRunning(t *testing.T, s *scenario, on engine) {
	provider := &limitedAPI{allowed: 1000, ver: map[string]int{"1": 1}}
	asked, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	api := enrichtest.New(t, func(w http.ResponseWriter, r *http.Request) {
		provider.mu.Lock()
		ver := provider.ver["1"]
		provider.mu.Unlock()
		once.Do(func() { close(asked); <-goOn })
		fmt.Fprintf(w, `{"name":"at %d","ver":%d}`, ver, ver)
	})
	w := begin(t, s.asking(api), on)
	all2xx(t, fire(t, w.in, []string{`{"id":"1"}`}, 1))
	<-asked
	provider.change("1")
	all2xx(t, fire(t, w.in, []string{`{"id":"1"}`, `{"id":"1"}`, `{"id":"1"}`}, 3))
	close(goOn)
	becomes(t, w.url, `select count(*) from c where ver = 2 and name = 'at 2'`, "1")
	if _, err := w.daemon.Drain(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if n := len(api.Requests()); n < 2 || n > 4 {
		t.Errorf("%d requests", n)
	}
}
