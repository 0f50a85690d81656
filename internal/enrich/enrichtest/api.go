// Package enrichtest plays providers' APIs for tests: on loopback, with a log of
// its own by which limits are judged.
package enrichtest

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// Request is a request that an API got.
type Request struct {
	Path   string
	Query  url.Values
	Header http.Header
	// At is when it came, and Beside how many others were under way then.
	At     time.Time
	Beside int
}

// API is a provider's API.
type API struct {
	// URL is where it is, with no slash at the end, and Host the same without
	// scheme.
	URL, Host string

	t       testing.TB
	mu      sync.Mutex
	handler http.HandlerFunc
	log     []Request
	running int
	server  *httptest.Server
}

// New starts an API on loopback that answers by a handler, until the test ends.
func New(t testing.TB, handler http.HandlerFunc) *API {
	t.Helper()
	a := &API{t: t, handler: handler}
	a.server = httptest.NewServer(http.HandlerFunc(a.serve))
	a.URL, a.Host = a.server.URL, a.server.Listener.Addr().String()
	t.Cleanup(func() { a.server.Close() })
	return a
}

func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.log = append(a.log, Request{Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone(), At: time.Now(), Beside: a.running})
	a.running++
	answer := a.handler
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.running--
		a.mu.Unlock()
	}()
	answer(w, r)
}

// Answer has it answer otherwise from now on.
func (a *API) Answer(handler http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.handler = handler
}

// Requests are those it got so far, in order.
func (a *API) Requests() []Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.log)
}

// Most is the most requests that were under way at a time.
func (a *API) Most() (n int) {
	for _, r := range a.Requests() {
		n = max(n, r.Beside+1)
	}
	return n
}

// Die closes the API with all of its connections, in the middle of what they do.
func (a *API) Die() {
	a.server.CloseClientConnections()
	a.server.Close()
}

// Revive starts it again at the same address.
func (a *API) Revive() {
	a.t.Helper()
	l, err := net.Listen("tcp", a.Host)
	if err != nil {
		a.t.Fatal(err)
	}
	a.server = &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(a.serve)}}
	a.server.Start()
}
