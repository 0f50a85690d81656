package enrich_test

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/backoff"
	"github.com/hookfold/hookfold/internal/enrich"
	"github.com/hookfold/hookfold/internal/enrich/enrichtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reader makes single reads through a real fetcher.
type reader struct {
	t    *testing.T
	f    *enrich.Fetcher
	n    event.Position
	told chan struct{}
}

func newReader(t *testing.T, s *enrich.Spec) *reader {
	t.Helper()
	s.Name = "f"
	if s.Allows == nil {
		s.Allows = func(*url.URL) error { return nil }
	}
	if s.AllowsPrivate == nil {
		s.AllowsPrivate = func(*url.URL) bool { return true }
	}
	s.Concurrency = 2
	if s.Timeout == 0 {
		s.Timeout = 10 * time.Second
	}
	if s.MaxBody == 0 {
		s.MaxBody = 1 << 10
	}
	f := enrich.New(enrich.Options{Specs: []*enrich.Spec{s}, Backoff: backoff.Policy{First: time.Hour, Most: time.Hour}})
	f.Start()
	f.Start()
	t.Cleanup(func() { f.Stop(); f.Stop() })
	return &reader{t: t, f: f, told: make(chan struct{}, 100)}
}

// read makes one read, and returns its answer or its failure.
func (r *reader) read(url string, header http.Header) enrich.Standing {
	r.t.Helper()
	r.n++
	ref := event.Ref{Position: r.n}
	r.f.Want("db", func([]event.Ref) { r.told <- struct{}{} }, []enrich.Want{{Ref: ref, Fetch: "f", Request: enrich.Request{URL: url, Header: header}}})
	select {
	case <-r.told:
	case <-time.After(30 * time.Second):
		r.t.Fatal("nothing comes of it")
	}
	return r.f.Look("db", ref, "f")
}

func (r *reader) fails(url, want string) *enrich.Failure {
	r.t.Helper()
	st := r.read(url, nil)
	if st.Answer != nil || st.Failure == nil || !strings.Contains(st.Failure.Reason, want) {
		r.t.Fatalf("%+v %+v, want %q", st.Answer, st.Failure, want)
	}
	return st.Failure
}

func TestAnswers(t *testing.T) {
	api := enrichtest.New(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			w.Header().Set("Etag", `"7"`)
			w.Header().Set("Set-Cookie", "secret=1")
			fmt.Fprint(w, `{"a":9007199254740993}`)
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprint(z, `{"packed":true}`)
			z.Close()
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			z.Write(make([]byte, 1<<20))
			z.Close()
		case "/nothing":
			w.WriteHeader(http.StatusNoContent)
		case "/html":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>")
		case "/long":
			fmt.Fprintf(w, `"%s"`, strings.Repeat("x", 1<<10))
		case "/half":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"a":`)
		case "/circle":
			http.Redirect(w, r, "/circle", http.StatusFound)
		case "/moved":
			http.Redirect(w, r, "/ok", http.StatusPermanentRedirect)
		case "/nowhere":
			w.WriteHeader(http.StatusFound)
		case "/header":
			w.Header().Set("X-Long", strings.Repeat("x", 100<<10))
		case "/hangs":
			<-r.Context().Done()
		}
	})
	secret := http.Header{"Authorization": {"Bearer t0psecret"}}
	r := newReader(t, &enrich.Spec{Timeout: time.Minute, Header: secret})
	st := r.read(api.URL+"/ok", http.Header{"X-Account": {"7"}})
	if st.Answer == nil || string(st.Answer.Body) != `{"a":9007199254740993}` || st.Answer.Status != 200 || st.Answer.Header.Get("Etag") != `"7"` || st.Answer.Header.Get("Set-Cookie") != "" {
		t.Errorf("%+v %+v", st.Answer, st.Failure)
	}
	if got := api.Requests()[0].Header; got.Get("Authorization") != "Bearer t0psecret" || got.Get("X-Account") != "7" || got.Get("User-Agent") != "hookfold" {
		t.Errorf("%v", got)
	}
	for path, body := range map[string]string{"/gzip": `{"packed":true}`, "/nothing": "", "/moved": `{"a":9007199254740993}`} {
		if st := r.read(api.URL+path, nil); st.Answer == nil || string(st.Answer.Body) != body {
			t.Errorf("%s: %+v %+v", path, st.Answer, st.Failure)
		}
	}
	for _, tc := range []struct {
		path, want    string
		final, counts bool
	}{
		{"/html", "answered 200 with what is no JSON (text/html)", false, true},
		{"/long", "answered with more than 1024 bytes: raise max_body", true, false},
		{"/bomb", "answered with more than 1024 bytes: raise max_body", true, false},
		{"/half", "cannot be read to the end", false, true},
		{"/circle", "redirects more than 3 times", true, false},
		{"/nowhere", "answered 302 without a Location", true, false},
		{"/header", "cannot be read", false, true},
	} {
		if f := r.fails(api.URL+tc.path, tc.want); f.Final != tc.final || f.Counts != tc.counts || strings.Contains(f.Reason, "t0psecret") {
			t.Errorf("%s: %+v", tc.path, f)
		}
	}
	r = newReader(t, &enrich.Spec{Timeout: 100 * time.Millisecond, Header: secret})
	if f := r.fails(api.URL+"/hangs", "did not answer within 100ms"); f.Final || !f.Counts {
		t.Errorf("%+v", f)
	}
}

func TestStatuses(t *testing.T) {
	status := http.StatusOK
	var header http.Header
	api := enrichtest.New(t, func(w http.ResponseWriter, r *http.Request) {
		for name, v := range header {
			w.Header()[name] = v
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, "you sent %s and %s", r.Header.Get("Authorization"), r.Header.Get("X-Key"))
	})
	in := func(d time.Duration) http.Header {
		return http.Header{"Retry-After": {time.Now().Add(d).UTC().Format(http.TimeFormat)}}
	}
	for _, tc := range []struct {
		status                int
		header                http.Header
		final, counts, paused bool
		wait                  time.Duration // until the next try, at least
	}{
		{status: 400, final: true}, {status: 405, final: true}, {status: 422, final: true}, {status: 451, final: true}, {status: 100 + 99, final: true},
		{status: 408, counts: true}, {status: 409, counts: true}, {status: 423, counts: true}, {status: 425, counts: true},
		{status: 500, counts: true}, {status: 503, counts: true}, {status: 599, counts: true},
		{status: 503, counts: true, header: http.Header{"Retry-After": {"5000"}}, wait: 4900 * time.Second},
		{status: 401, paused: true}, {status: 403, paused: true},
		{status: 429}, {status: 429, header: http.Header{"Retry-After": {"77"}}, wait: 70 * time.Second},
		{status: 429, header: http.Header{"Retry-After": {"2.5"}}, wait: 2 * time.Second}, {status: 429, header: in(100 * time.Second), wait: 90 * time.Second},
		{status: 403, header: http.Header{"Retry-After": {"60"}}, wait: 55 * time.Second},
		{status: 403, header: http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {fmt.Sprint(time.Now().Unix() + 90)}}, wait: 80 * time.Second},
		{status: 429, header: http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"60"}}, wait: 55 * time.Second},
	} {
		if tc.status < 200 {
			continue // what comes before an answer is none
		}
		status, header = tc.status, tc.header
		r := newReader(t, &enrich.Spec{Header: http.Header{"Authorization": {"Basic dXNlcjpwYXNzd29yZDEyMw=="}, "X-Key": {"k3y-of-ours"}}})
		f := r.fails(api.URL+"/x", fmt.Sprintf("answered %d", tc.status))
		if f.Final != tc.final || f.Counts != tc.counts || f.Paused != tc.paused || tc.wait > 0 && time.Until(f.Next) < tc.wait {
			t.Errorf("%d %v: %+v", tc.status, tc.header, f)
		}
		if strings.Contains(f.Reason, "dXNlcjpwYXNzd29yZDEyMw") || strings.Contains(f.Reason, "k3y") {
			t.Errorf("%d: %s", tc.status, f.Reason)
		}
	}
}

// TestRedirectsKeepCredentials: credentials stay with the scheme, host and port
// they are for.
func TestRedirectsKeepCredentials(t *testing.T) {
	var to string
	other := enrichtest.New(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "{}") })
	api := enrichtest.New(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			fmt.Fprint(w, "{}")
			return
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	})
	secret := http.Header{"Authorization": {"Bearer t0psecret"}, "X-Key": {"k3y"}, "Accept": {"application/json"}}
	r := newReader(t, &enrich.Spec{Header: secret})
	for _, tc := range []struct {
		to   string
		at   *enrichtest.API
		kept bool
	}{{"/end", api, true}, {api.URL + "/end", api, true}, {other.URL + "/end", other, false}} {
		to = tc.to
		if st := r.read(api.URL+"/begin", http.Header{"X-Account": {"7"}}); st.Answer == nil {
			t.Fatalf("%+v", st.Failure)
		}
		all := tc.at.Requests()
		got := all[len(all)-1].Header
		if kept := got.Get("Authorization") != "" || got.Get("X-Key") != "" || got.Get("X-Account") != ""; kept != tc.kept || got.Get("Accept") == "" {
			t.Errorf("%s gets %v", tc.to, got)
		}
	}
}

// TestAddressesAreJudgedWhenDialled: a name that is allowed and leads to this
// machine is not asked, unless that is said of it.
func TestAddressesAreJudgedWhenDialled(t *testing.T) {
	api := enrichtest.New(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "{}") })
	port := api.Host[strings.LastIndex(api.Host, ":"):]
	r := newReader(t, &enrich.Spec{AllowsPrivate: func(u *url.URL) bool { return false }})
	for _, host := range []string{"localhost" + port, api.Host, "[::ffff:127.0.0.1]" + port, "127.1" + port, "2130706433" + port, "0x7f000001" + port} {
		st := r.read("http://"+host+"/x", nil)
		if st.Answer != nil {
			t.Errorf("%s is asked", host)
		}
	}
	if n := api.Requests(); len(n) != 0 {
		t.Errorf("it got %v", n)
	}
	r = newReader(t, &enrich.Spec{AllowsPrivate: func(u *url.URL) bool { return u.Hostname() == "localhost" }})
	if st := r.read("http://localhost"+port+"/x", nil); st.Answer == nil {
		t.Errorf("%+v", st.Failure)
	}
	r.fails("http://"+api.Host+"/x", "which is not one of the internet")
}

// TestNoProxyOfTheEnvironment: where the environment names a proxy, it is not
// asked.
func TestNoProxyOfTheEnvironment(t *testing.T) {
	proxy := enrichtest.New(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "{}") })
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	t.Setenv("ALL_PROXY", proxy.URL)
	r := newReader(t, &enrich.Spec{Timeout: 2 * time.Second})
	r.read("http://proxied.invalid/x", nil)
	if n := proxy.Requests(); len(n) != 0 {
		t.Errorf("the proxy got %v", n)
	}
}

func TestNotFound(t *testing.T) {
	api := enrichtest.New(t, http.NotFound)
	for policy, want := range map[enrich.NotFound]string{enrich.NotFoundRetry: "counts", enrich.NotFoundDead: "final", enrich.NotFoundValue: "answer"} {
		r := newReader(t, &enrich.Spec{NotFound: policy})
		st := r.read(api.URL+"/x", nil)
		got := "answer"
		if f := st.Failure; f != nil {
			got = map[bool]string{true: "final", false: "counts"}[f.Final]
		} else if st.Answer.Status != 404 || st.Answer.Body != nil {
			t.Errorf("%+v", st.Answer)
		}
		if got != want {
			t.Errorf("%s: %s", policy, got)
		}
	}
}
