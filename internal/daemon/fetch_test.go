package daemon

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/backoff"
	"github.com/hookfold/hookfold/internal/enrich/enrichtest"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/journal"
)

const fetchYAML = `
version: 1
listen: 127.0.0.1:0
admin: 127.0.0.1:0
journal: {url: "sqlite:%s", keep: 30d}
sources:
  shop: {preset: http, verify: none, id: event.id, type: event.type, time: "event.?at"}
targets: {db: "%s"}
fetches:
  c: {url: '"%s/c/" + event.c', hosts: ["%s"], bearer: t0psecret, headers: {X-Key: k3y-of-ours}, %s}
tables:
  c:
    key: {id: text}
    columns: {name: text, ver: int}
    events:
      - {from: shop, type: c, fetch: c, key: {id: event.c}, %s}
  plain:
    key: {id: text}
    columns: {name: text}
    events: [{from: shop, type: plain, key: {id: event.c}, set: {name: event.name}}]
`

const byVer = "version: [fetched.ver], set: {name: fetched.name, ver: fetched.ver}"

// fetchRig is a daemon whose rows are what an API says; more is added to the
// fetch.
func fetchRig(t *testing.T, api *enrichtest.API, more, mapping string) *rig {
	t.Helper()
	text := fmt.Sprintf(fetchYAML, filepath.Join(t.TempDir(), "journal.db"), testdb.SQLite(t), api.URL, api.Host, more, mapping)
	if strings.Contains(more, "not_found: delete") {
		text = strings.Replace(text, "{name: text, ver: int}", "{name: text, ver: int}\n    on_delete: remove", 1)
	}
	r := newRigOf(t, text)
	r.o.FetchBackoff = backoff.Policy{First: 10 * time.Millisecond, Most: 200 * time.Millisecond}
	r.start()
	r.migrate()
	return r
}

// changed says that something about an object has changed.
func (r *rig) changed(c string, n int) {
	r.Helper()
	r.mustPost(fmt.Sprintf(`{"id":"%s-%d","type":"c","c":"%s"}`, c, n, c))
}

// becomes waits until rows are as they have to be.
func (r *rig) becomes(table string, want map[string]string) {
	r.Helper()
	r.until(func() string {
		got := r.rows(table)
		for key, row := range want {
			if got[key] != row {
				return fmt.Sprintf("%s %s is %q, not %q", table, key, got[key], row)
			}
		}
		if len(got) != len(want) {
			return fmt.Sprintf("%d rows of %s, not %d", len(got), table, len(want))
		}
		return ""
	})
}

// until waits until nothing is wrong.
func (r *rig) until(wrong func() string) {
	r.Helper()
	deadline, tick := time.After(30*time.Second), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		text := wrong()
		if text == "" {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			r.Fatalf("%s\n%s", text, r.log.String())
		}
	}
}

// entry waits for the only entry there is, in a state and with a reason.
func (r *rig) entry(state journal.State, reason string) (e journal.Entry) {
	r.Helper()
	r.until(func() string {
		entries, err := r.daemon.Journal().Entries(r.Context(), journal.Filter{})
		if err != nil {
			r.Fatal(err)
		}
		if len(entries) != 1 || entries[0].State != state || !strings.Contains(entries[0].Reason, reason) {
			return fmt.Sprintf("the entries are %+v, not one that is %s: %s", entries, state, reason)
		}
		e = entries[0]
		return ""
	})
	return e
}

// objects is the state of objects at a provider.
type objects struct {
	mu  sync.Mutex
	ver map[string]int
}

// change changes an object, and returns how often it has been.
func (o *objects) change(c string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ver == nil {
		o.ver = map[string]int{}
	}
	o.ver[c]++
	return o.ver[c]
}

func (o *objects) get(c string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return fmt.Sprintf(`{"name":"%s at %d","ver":%d}`, c, o.ver[c], o.ver[c])
}

func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, o.get(strings.TrimPrefix(r.URL.Path, "/c/")))
}

// TestAThousandEventsOfFiftyObjects: an API that is slow, fails, wants less, and
// tells older states than it has, is asked far less often than there are events,
// never more at a time than allowed, and every row is right in the end.
func TestAThousandEventsOfFiftyObjects(t *testing.T) {
	const n, events, most = 50, 1000, 3
	var state objects
	var mu sync.Mutex
	old := map[string]string{} // what the API may still tell of an object
	limited := 0
	api := enrichtest.New(t, func(w http.ResponseWriter, r *http.Request) {
		c := strings.TrimPrefix(r.URL.Path, "/c/")
		mu.Lock()
		chance := rand.IntN(100)
		stale, isStale := old[c]
		old[c] = state.get(c)
		if chance >= 10 && chance < 15 {
			limited++
		}
		mu.Unlock()
		switch {
		case chance < 10:
			w.WriteHeader(http.StatusInternalServerError)
		case chance < 15:
			w.Header().Set("Retry-After", "0.05")
			w.WriteHeader(http.StatusTooManyRequests)
		case chance < 30 && isStale:
			fmt.Fprint(w, stale)
		default:
			state.ServeHTTP(w, r)
		}
	})
	r := fetchRig(t, api, fmt.Sprintf("concurrency: %d, until: fetched.ver >= event.ver", most), byVer)
	var senders sync.WaitGroup
	var sent atomic.Int64
	for range 8 {
		senders.Go(func() {
			for sent.Add(1) <= events {
				c := fmt.Sprintf("c%d", rand.IntN(n))
				v := state.change(c)
				r.mustPost(fmt.Sprintf(`{"id":"%s-%d","type":"c","c":"%s","ver":%d}`, c, v, c, v))
			}
		})
	}
	senders.Wait()
	r.drain()
	want := map[string]string{}
	for c, v := range state.ver {
		want[c] = fmt.Sprintf("%s at %d/%d", c, v, v)
	}
	r.becomes("c", want)
	requests := api.Requests()
	t.Logf("%d requests for %d events of %d objects, at most %d at a time; %d of them limited", len(requests), events, n, api.Most(), limited)
	if len(requests) > events/2 {
		t.Errorf("%d requests for %d events", len(requests), events)
	}
	if api.Most() > most {
		t.Errorf("%d requests at a time", api.Most())
	}
	for _, x := range requests {
		if x.Header.Get("Authorization") != "Bearer t0psecret" || x.Header.Get("X-Key") != "k3y-of-ours" {
			t.Fatalf("a request without its credentials: %v", x.Header)
		}
	}
	if s := r.log.String(); strings.Contains(s, "t0psecret") || strings.Contains(s, "k3y-of-ours") {
		t.Error("the log tells a secret")
	}
}

// TestF17AReadThatBeganBeforeIsNotShared: the object changes at 9, its event
// comes at 10, and a read that began at 8 is still under way then: the event has
// one of its own.
func TestF17AReadThatBeganBeforeIsNotShared(t *testing.T) {
	var state objects
	state.change("a")
	began, goOn := make(chan struct{}), make(chan struct{})
	var first sync.Once
	api := enrichtest.New(t, func(w http.ResponseWriter, r *http.Request) {
		seen := state.get("a")
		first.Do(func() { close(began); <-goOn })
		fmt.Fprint(w, seen)
	})
	r := fetchRig(t, api, "concurrency: 4", byVer)
	r.changed("a", 1)
	<-began
	state.change("a")
	r.changed("a", 2)
	r.until(func() string { // the second event waits too
		entries, err := r.daemon.Journal().Entries(r.Context(), journal.Filter{State: journal.Waiting})
		if err != nil || len(entries) != 2 {
			return fmt.Sprintf("%d events wait: %v", len(entries), err)
		}
		return ""
	})
	close(goOn)
	r.drain()
	r.becomes("c", map[string]string{"a": "a at 2/2"})
	if n := len(api.Requests()); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

// TestEventsWithoutAFetchDoNotWait: an API that hangs holds up its own events
// and no other.
func TestEventsWithoutAFetchDoNotWait(t *testing.T) {
	goOn := make(chan struct{})
	var state objects
	api := enrichtest.New(t, func(w http.ResponseWriter, r *http.Request) {
		<-goOn
		state.ServeHTTP(w, r)
	})
	r := fetchRig(t, api, "timeout: 20s", byVer)
	for i := range 100 {
		r.changed(fmt.Sprint(i), 1)
		r.mustPost(fmt.Sprintf(`{"id":"p%d","type":"plain","at":%d,"c":"p%d","name":"n"}`, i, 1786000000+i, i))
	}
	want := map[string]string{}
	for i := range 100 {
		want[fmt.Sprint("p", i)] = "n"
	}
	r.becomes("plain", want)
	if got := r.rows("c"); len(got) != 0 {
		t.Errorf("%v", got)
	}
	close(goOn)
	r.drain()
	if got := r.rows("c"); len(got) != 100 {
		t.Errorf("%d rows", len(got))
	}
}

// TestAnAPIThatDoesNotKnowUsPausesTheFetch: 401 and 403 burn no event; who asks
// is tried again, alone, until it is known.
func TestAnAPIThatDoesNotKnowUsPausesTheFetch(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		var known atomic.Bool
		var state objects
		api := enrichtest.New(t, func(w http.ResponseWriter, r *http.Request) {
			if !known.Load() {
				w.WriteHeader(status)
				fmt.Fprintf(w, "who is %s?", r.Header.Get("Authorization"))
				return
			}
			state.ServeHTTP(w, r)
		})
		r := fetchRig(t, api, "concurrency: 2, for: 1ms", byVer)
		for i := range 20 {
			r.changed(fmt.Sprint(i), 1)
		}
		r.until(func() string {
			if len(api.Requests()) < 12 { // it is tried again and again
				return fmt.Sprint(len(api.Requests()), " requests")
			}
			return ""
		})
		_, body := r.admin("/readyz")
		var ready Readiness
		if err := json.Unmarshal([]byte(body), &ready); err != nil {
			t.Fatal(err)
		}
		if !ready.Ready || len(ready.Fetches) != 1 || !ready.Fetches[0].Paused || ready.Fetches[0].Waiting != 20 || !strings.Contains(ready.Fetches[0].Error, fmt.Sprint(status)) {
			t.Errorf("/readyz says %s", body)
		}
		if _, m := r.admin("/metrics"); !strings.Contains(m, `hookfold_fetch_paused{fetch="c"} 1`) || !strings.Contains(m, `hookfold_fetch_requests_total{fetch="c",outcome="denied"}`) {
			t.Errorf("/metrics says\n%s", m)
		}
		entries, err := r.daemon.Journal().Entries(t.Context(), journal.Filter{})
		if err != nil || len(entries) != 20 {
			t.Fatalf("%d entries: %v", len(entries), err)
		}
		for _, e := range entries {
			if e.State != journal.Waiting {
				t.Errorf("%+v", e)
			}
		}
		known.Store(true)
		r.drain()
		r.until(func() string {
			if n := len(r.rows("c")); n != 20 {
				return fmt.Sprintf("%d rows", n)
			}
			return ""
		})
		if log := r.log.String(); !strings.Contains(log, "It is paused") || !strings.Contains(log, "it is answered again") || strings.Contains(log, "t0psecret") {
			t.Errorf("the log says\n%s", log)
		}
		r.stop()
	}
}

// TestObjectsThatAreNotThere: what 404 means is said by the config.
func TestObjectsThatAreNotThere(t *testing.T) {
	for name, tc := range map[string]struct {
		more, mapping string
		state         journal.State
		reason        string
		row           string
	}{
		"retry":        {more: "not_found: retry, for: 1ms", mapping: byVer, state: journal.Dead, reason: "answered 404 Not Found: the object is not there, or not yet; it was tried for"},
		"dead":         {more: "not_found: dead", mapping: byVer, state: journal.Dead, reason: "answered 404 Not Found. When it is put right run: hookfold dead retry 1"},
		"value":        {more: "not_found: value", mapping: `version: [fetched_at], set: {name: 'fetched.status == 404 ? "gone" : fetched.name', ver: fetched_status}`, row: "gone/404"},
		"present":      {more: "not_found: value", mapping: `version: [fetched_at], set: {name: 'present(fetched) ? fetched.name : "none"', ver: "fetched.?ver"}`, row: "none/NULL"},
		"delete":       {more: "not_found: delete", mapping: `version: [fetched_at], set: {name: fetched.name, ver: fetched.ver}`, row: "deleted"},
		"or else":      {more: "for: 1ms, or_else: event", mapping: `version: [fetched_at], set: {name: fetched.id, ver: fetched_status}`, row: "a-1/0"},
		"or else nada": {more: "for: 1ms, or_else: null", mapping: `version: [fetched_at], set: {name: "fetched.?id", ver: fetched_status}`, row: "NULL/0"},
	} {
		t.Run(name, func(t *testing.T) {
			api := enrichtest.New(t, http.NotFound)
			r := fetchRig(t, api, tc.more, tc.mapping)
			r.changed("a", 1)
			if tc.state != "" {
				r.entry(tc.state, tc.reason)
				return
			}
			if tc.row != "deleted" {
				r.becomes("c", map[string]string{"a": tc.row})
				return
			}
			r.drain()
			var state objects
			api.Answer(state.ServeHTTP)
			r.changed("a", 2)
			r.becomes("c", map[string]string{"a": "a at 0/0"})
			api.Answer(http.NotFound)
			r.changed("a", 3)
			r.becomes("c", map[string]string{})
		})
	}
}

// TestADeadReadIsRetried: an event whose read was given up lands when a person
// has it tried again.
func TestADeadReadIsRetried(t *testing.T) {
	var good atomic.Bool
	var state objects
	api := enrichtest.New(t, func(w http.ResponseWriter, r *http.Request) {
		if !good.Load() {
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"error":"no k3y-of-ours and no t0psecret"}`)
			return
		}
		state.ServeHTTP(w, r)
	})
	r := fetchRig(t, api, "for: 1h", byVer)
	r.changed("a", 1)
	e := r.entry(journal.Dead, "answered 422 Unprocessable Entity")
	if strings.Contains(e.Reason, "t0psecret") || strings.Contains(e.Reason, "k3y-of-ours") {
		t.Error("the reason tells a secret:", e.Reason)
	}
	good.Store(true)
	if _, err := r.daemon.Journal().Retry(t.Context(), journal.Filter{}); err != nil {
		t.Fatal(err)
	}
	r.drain()
	r.becomes("c", map[string]string{"a": "a at 0/0"})
}

// TestWhatWaitsIsShown: a read that fails is visible with its tries.
func TestWhatWaitsIsShown(t *testing.T) {
	var tries atomic.Int64
	api := enrichtest.New(t, func(w http.ResponseWriter, r *http.Request) {
		if tries.Add(1) > 4 {
			<-r.Context().Done() // it hangs
		}
		w.WriteHeader(http.StatusBadGateway)
	})
	r := fetchRig(t, api, "for: 1h", byVer)
	r.changed("a", 1)
	e := r.entry(journal.Waiting, "answered 502 Bad Gateway (try 4)")
	if e.On != "fetch c "+api.URL+"/c/a" || e.Table != "c" || e.Attempts != 4 || e.Next.IsZero() {
		t.Errorf("%+v", e)
	}
}

// TestRefusedAddresses: nothing is sent to an address that the config does not
// allow, also not after a redirect, and credentials go nowhere else.
func TestRefusedAddresses(t *testing.T) {
	other := enrichtest.New(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"name":"other","ver":1}`) })
	for name, to := range map[string]string{
		"metadata": "http://169.254.169.254/latest/meta-data/", "another port of this machine": other.URL + "/x", "a name": "https://example.com/",
		"this machine by name": "http://localhost" + other.Host[strings.LastIndex(other.Host, ":"):] + "/x", "mapped": "http://[::ffff:127.0.0.1]" + other.Host[strings.LastIndex(other.Host, ":"):],
		"a password": "http://a:b@" + other.Host + "/",
	} {
		t.Run(name, func(t *testing.T) {
			api := enrichtest.New(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
			r := fetchRig(t, api, "for: 1h", byVer)
			r.changed("a", 1)
			r.entry(journal.Dead, "redirects to")
		})
	}
	if n := other.Requests(); len(n) != 0 {
		t.Errorf("what is not allowed got %v", n)
	}
	t.Run("allowed", func(t *testing.T) {
		api := enrichtest.New(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL+"/y", http.StatusFound) })
		r := fetchRig(t, api, fmt.Sprintf(`private: ["%s"]`, api.Host), byVer)
		r.stop()
		text := strings.Replace(fmt.Sprintf(fetchYAML, filepath.Join(t.TempDir(), "journal.db"), testdb.SQLite(t), api.URL, api.Host, "for: 1h", byVer), `hosts: ["`, `hosts: ["`+other.Host+`", "`, 1)
		r = newRigOf(t, text)
		r.start()
		r.migrate()
		r.changed("a", 1)
		r.becomes("c", map[string]string{"a": "other/1"})
		got := other.Requests()
		if len(got) != 1 || got[0].Header.Get("Authorization") != "" || got[0].Header.Get("X-Key") != "" {
			t.Errorf("another host got %v", got)
		}
	})
}

// TestReadsSurviveARestart: what waits for an API that is dead lands after a
// restart, and an answer that was journaled is not asked for again.
func TestReadsSurviveARestart(t *testing.T) {
	var state objects
	api := enrichtest.New(t, state.ServeHTTP)
	r := fetchRig(t, api, "for: 24h", byVer)
	state.change("a")
	r.changed("a", 1)
	r.becomes("c", map[string]string{"a": "a at 1/1"})
	api.Die()
	state.change("a")
	r.changed("a", 2)
	state.change("b")
	r.changed("b", 1)
	r.until(func() string {
		entries, err := r.daemon.Journal().Entries(t.Context(), journal.Filter{State: journal.Waiting})
		if err != nil || len(entries) != 2 || slices.ContainsFunc(entries, func(e journal.Entry) bool { return !strings.Contains(e.Reason, "refused") }) {
			return fmt.Sprintf("%v %v", entries, err)
		}
		return ""
	})
	r.stop()
	api.Revive()
	r.start()
	r.drain()
	r.becomes("c", map[string]string{"a": "a at 2/2", "b": "b at 1/1"})
	asked := len(api.Requests())
	d, err := r.daemon.Journal().Get(t.Context(), 2)
	if err != nil || len(d.Fetched) != 1 || string(d.Fetched[0].Body) != `{"name":"a at 2","ver":2}` || d.Fetched[0].Status != 200 {
		t.Errorf("the answer is not with its delivery: %+v %v", d, err)
	}
	state.change("a")
	again := *d
	if err := r.daemon.Append(t.Context(), &again); err != nil { // as replay does with what export has written
		t.Fatal(err)
	}
	r.drain()
	if n := len(api.Requests()); n != asked {
		t.Errorf("%d requests for an answer that came along", n-asked)
	}
	r.becomes("c", map[string]string{"a": "a at 2/2", "b": "b at 1/1"})
}
