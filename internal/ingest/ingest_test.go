package ingest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/calm"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "s3cr3t-value"

// signed is a source that believes "X-Sign: ok", answers ?challenge=x, and
// panics on a body "panic".
type signed struct{}

func (signed) Verify(r *source.Request, _ time.Time) error {
	switch {
	case string(r.Body) == "panic":
		panic("by the test")
	case r.Header.Get("X-Sign") == "":
		return &source.Refusal{Reason: "no X-Sign header."}
	case r.Header.Get("X-Sign") != "ok":
		return &source.Refusal{Reason: "signature does not match any of 1 secret."}
	}
	return nil
}

func (signed) Handshake(r *source.Request, _ time.Time) (*source.Answer, bool) {
	if c, ok := strings.CutPrefix(r.Query, "challenge="); ok && r.Method != http.MethodPost {
		return &source.Answer{Status: http.StatusOK, Body: []byte(c)}, true
	}
	if r.Method == http.MethodPost && strings.HasPrefix(string(r.Body), "ping") {
		return &source.Answer{Status: http.StatusOK, ContentType: "application/json", Body: []byte(`{"pong":1}`)}, true
	}
	return nil, false
}

func (signed) Split(*event.Delivery) ([]*event.Event, error) { panic("ingest does not split") }

// memory is a journal that keeps deliveries, or fails.
type memory struct {
	mu   sync.Mutex
	kept []*event.Delivery
	fail error
	hold chan struct{} // if not nil, Append waits for it,
	held chan struct{} // having said so here
}

func (m *memory) Append(ctx context.Context, d *event.Delivery) error {
	if m.hold != nil {
		m.held <- struct{}{}
		select {
		case <-m.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	m.kept = append(m.kept, d)
	d.Position = event.Position(len(m.kept))
	return nil
}

func stuck() *memory { return &memory{hold: make(chan struct{}), held: make(chan struct{}, 10)} }

func (m *memory) len() int { m.mu.Lock(); defer m.mu.Unlock(); return len(m.kept) }

type counter struct {
	mu    sync.Mutex
	seen  map[string]int
	event chan struct{}
}

func newCounter() *counter {
	return &counter{seen: map[string]int{}, event: make(chan struct{}, 10_000)}
}

func (c *counter) Answered(source string, status, _ int, _ time.Duration) {
	c.mu.Lock()
	c.seen[fmt.Sprintf("%s %d", source, status)]++
	c.mu.Unlock()
	c.event <- struct{}{}
}

type rig struct {
	*testing.T
	journal *memory
	counter *counter
	log     *bytes.Buffer
	server  *Server
	client  *http.Client
}

func start(t *testing.T, o Options, so ServerOptions) *rig {
	t.Helper()
	r := &rig{T: t, journal: &memory{}, counter: newCounter(), log: &bytes.Buffer{}}
	if o.Journal == nil {
		o.Journal = r.journal
	} else {
		r.journal = o.Journal.(*memory)
	}
	if o.Sources == nil {
		o.Sources = map[string]Source{"shop": {Source: signed{}, Secrets: []string{secret}}}
	}
	o.Observer = r.counter
	o.Log = slog.New(slog.NewTextHandler(&lockedWriter{w: r.log}, nil))
	so.Address, so.Handler = "127.0.0.1:0", New(o)
	s, err := Listen(so)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	r.server = s
	tr := &http.Transport{ExpectContinueTimeout: 5 * time.Second}
	r.client = &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return r
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func (r *rig) url(path string) string { return "http://" + r.server.Addr().String() + path }

func (r *rig) do(method, path string, body io.Reader, header ...string) *http.Response {
	r.Helper()
	req, err := http.NewRequest(method, r.url(path), body)
	if err != nil {
		r.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := r.client.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(b))
	return resp
}

// raw sends bytes over a connection of their own and returns what comes back.
func (r *rig) raw(text string, closeAfter bool) string {
	r.Helper()
	c, err := net.Dial("tcp", r.server.Addr().String())
	if err != nil {
		r.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		r.Fatal(err)
	}
	if closeAfter {
		return ""
	}
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "no answer"
	}
	defer resp.Body.Close()
	return fmt.Sprint(resp.StatusCode)
}

func (r *rig) logged() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r.client.CloseIdleConnections()
	if err := r.server.Stop(ctx); err != nil {
		r.Error(err)
	}
	return r.log.String()
}

func TestAnswers(t *testing.T) {
	ok := []string{"X-Sign", "ok"}
	for _, c := range []struct {
		name, method, path, body string
		header                   []string
		status                   int
		want                     string
		kept                     int
	}{
		{"a signed delivery is kept", "POST", "/in/shop", `{"a":1}`, ok, 200, `{"received":true}`, 1},
		{"more path belongs to the delivery", "POST", "/in/shop/eu/west", `{}`, ok, 200, `{"received":true}`, 1},
		{"a trailing slash is no redirect", "POST", "/in/shop/", `{}`, ok, 200, `{"received":true}`, 1},
		{"a path is not cleaned", "POST", "/in/shop/../x//y", `{}`, ok, 200, `{"received":true}`, 1},
		{"truncated JSON is kept all the same", "POST", "/in/shop", `{"a":`, ok, 200, `{"received":true}`, 1},
		{"an empty body is kept all the same", "POST", "/in/shop", ``, ok, 200, `{"received":true}`, 1},
		{"no signature", "POST", "/in/shop", `{}`, nil, 401, `{"error":"unauthorized"}`, 0},
		{"wrong signature", "POST", "/in/shop", `{}`, []string{"X-Sign", "no"}, 401, `{"error":"unauthorized"}`, 0},
		{"unknown source", "POST", "/in/shopp", `{}`, ok, 404, `{"error":"not found"}`, 0},
		{"no source", "POST", "/in/", `{}`, ok, 404, `{"error":"not found"}`, 0},
		{"prefix without slash", "POST", "/in", `{}`, ok, 404, `{"error":"not found"}`, 0},
		{"root", "GET", "/", ``, nil, 404, `{"error":"not found"}`, 0},
		{"double slash", "POST", "//in/shop", `{}`, ok, 404, `{"error":"not found"}`, 0},
		{"a bad escape names no source", "POST", "/in/sh%6Fpp", `{}`, ok, 404, `{"error":"not found"}`, 0},
		{"an escaped name is the name", "POST", "/in/sh%6Fp", `{}`, ok, 200, `{"received":true}`, 1},
		{"GET that is no handshake", "GET", "/in/shop", ``, ok, 405, `{"error":"method not allowed"}`, 0},
		{"PUT", "PUT", "/in/shop", `{}`, ok, 405, `{"error":"method not allowed"}`, 0},
		{"DELETE", "DELETE", "/in/shop", ``, ok, 405, `{"error":"method not allowed"}`, 0},
		{"OPTIONS", "OPTIONS", "/in/shop", ``, ok, 405, `{"error":"method not allowed"}`, 0},
		{"GET handshake", "GET", "/in/shop?challenge=42", ``, nil, 200, `42`, 0},
		{"POST handshake", "POST", "/in/shop", `ping`, nil, 200, `{"pong":1}`, 0},
		{"a body at the limit", "POST", "/in/small", strings.Repeat("x", 100), ok, 200, `{"received":true}`, 1},
		{"a body over the limit", "POST", "/in/small", strings.Repeat("x", 101), ok, 413, `{"error":"too large"}`, 0},
		{"a fault of ours", "POST", "/in/shop", `panic`, ok, 503, `{"error":"try again later"}`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, Options{Sources: map[string]Source{
				"shop": {Source: signed{}}, "small": {Source: signed{}, MaxBody: 100},
			}}, ServerOptions{})
			resp := r.do(c.method, c.path, strings.NewReader(c.body), c.header...)
			b, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != c.status || strings.TrimSpace(string(b)) != c.want {
				t.Errorf("answer is %d %s, want %d %s", resp.StatusCode, b, c.status, c.want)
			}
			if allow := resp.Header.Get("Allow"); (resp.StatusCode == 405) != (allow == "POST") {
				t.Errorf("Allow is %q", allow)
			}
			if after := resp.Header.Get("Retry-After"); (resp.StatusCode == 503) != (after != "") {
				t.Errorf("Retry-After is %q", after)
			}
			if resp.Header.Get("Location") != "" {
				t.Errorf("a redirect to %q", resp.Header.Get("Location"))
			}
			if got := r.journal.len(); got != c.kept {
				t.Errorf("%d deliveries kept, want %d", got, c.kept)
			}
		})
	}
}

func TestHeadAnswersWithoutABody(t *testing.T) {
	r := start(t, Options{}, ServerOptions{})
	if resp := r.do("HEAD", "/in/shop?challenge=42", nil); resp.StatusCode != 200 || resp.ContentLength != 2 {
		t.Errorf("%d, length %d", resp.StatusCode, resp.ContentLength)
	}
	if resp := r.do("HEAD", "/in/shop", nil); resp.StatusCode != 405 {
		t.Errorf("%d", resp.StatusCode)
	}
}

func TestTheDeliveryIsKeptAsReceived(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.FixedZone("", 3600))
	r := start(t, Options{Now: func() time.Time { return now }}, ServerOptions{})
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write([]byte(`{"a":1}`))
	z.Close()
	// A body of unknown length goes out in chunks.
	body := io.MultiReader(bytes.NewReader(zipped.Bytes()))
	r.do("POST", "/in/shop/eu?a=1&b=%20", body, "X-Sign", "ok", "Content-Encoding", "gzip",
		"Authorization", "Basic x", "Cookie", "c", "X-Custom", "Bearer "+secret, "X-Once", "1", "Connection", "X-Once",
		"Webhook-Id", "msg_1", "Content-Type", "application/json", "User-Agent", "test")
	want := []*event.Delivery{{
		Position: 1, Source: "shop", Path: "/eu", Query: "a=1&b=%20", Body: zipped.Bytes(), Received: now.UTC(),
		Header: http.Header{
			"X-Sign": {"ok"}, "Content-Encoding": {"gzip"}, "Webhook-Id": {"msg_1"},
			"Content-Type": {"application/json"}, "User-Agent": {"test"}, "Accept-Encoding": {"gzip"},
		},
	}}
	if diff := cmp.Diff(want, r.journal.kept); diff != "" {
		t.Error(diff)
	}
}

func TestTheReasonIsForTheLogOnly(t *testing.T) {
	r := start(t, Options{}, ServerOptions{})
	resp := r.do("POST", "/in/shop", strings.NewReader("{}"), "X-Sign", "wrong")
	b, _ := io.ReadAll(resp.Body)
	if strings.Contains(string(b), "secret") {
		t.Errorf("the sender reads: %s", b)
	}
	if log := r.logged(); !strings.Contains(log, "401 shop: signature does not match any of 1 secret.") {
		t.Errorf("the log says: %s", log)
	}
}

func TestRubbishDoesNotFillTheLog(t *testing.T) {
	at := time.Unix(0, 0)
	r := start(t, Options{Now: func() time.Time { return at }}, ServerOptions{})
	for range 100 {
		r.do("POST", "/in/shop", strings.NewReader("{}"))
	}
	at = at.Add(2 * time.Second)
	r.do("POST", "/in/shop", strings.NewReader("{}"))
	log := r.logged()
	if n := strings.Count(log, "401 shop"); n != calm.Burst+1 {
		t.Errorf("%d lines, want %d", n, calm.Burst+1)
	}
	if !strings.Contains(log, "left_out=80") {
		t.Errorf("the log does not tell what it left out: %s", log)
	}
	if got := r.counter.seen["shop 401"]; got != 101 {
		t.Errorf("%d counted, want 101", got)
	}
}

func TestJournalFailureIs503(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		after string
		log   string
	}{
		{"full", fmt.Errorf("append: %w", journal.ErrFull), "30", "503 shop: append: the journal is full. Make room"},
		{"overloaded", journal.ErrOverloaded, "5", "503 shop: the journal takes deliveries more slowly than they come"},
		{"broken", journal.ErrBroken, "30", "503 shop: the delivery could not be journaled"},
		{"closed", journal.ErrClosed, "30", "503 shop: the delivery could not be journaled"},
		{"unknown", errors.New("disk on fire"), "30", "disk on fire"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, Options{Journal: &memory{fail: c.err}}, ServerOptions{})
			resp := r.do("POST", "/in/shop", strings.NewReader("{}"), "X-Sign", "ok")
			if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != c.after {
				t.Errorf("%d, Retry-After %s", resp.StatusCode, resp.Header.Get("Retry-After"))
			}
			if log := r.logged(); !strings.Contains(log, c.log) {
				t.Errorf("the log says: %s", log)
			}
		})
	}
}

func TestAStuckJournalIs503InBoundedTime(t *testing.T) {
	r := start(t, Options{Journal: stuck(), AppendTimeout: 20 * time.Millisecond}, ServerOptions{})
	if resp := r.do("POST", "/in/shop", strings.NewReader("{}"), "X-Sign", "ok"); resp.StatusCode != 503 {
		t.Errorf("%d", resp.StatusCode)
	}
}

func TestABodyOf10MiB(t *testing.T) {
	r := start(t, Options{Sources: map[string]Source{"shop": {Source: signed{}}, "big": {Source: signed{}, MaxBody: 10 << 20}}}, ServerOptions{})
	ten := make([]byte, 10<<20)
	for _, c := range []struct {
		name, path string
		body       func() io.Reader
		status     int
	}{
		{"over the limit", "/in/shop", func() io.Reader { return bytes.NewReader(ten) }, 413},
		{"over the limit, in chunks", "/in/shop", func() io.Reader { return io.MultiReader(bytes.NewReader(ten)) }, 413},
		{"within the limit", "/in/big", func() io.Reader { return bytes.NewReader(ten) }, 200},
		{"within the limit, in chunks", "/in/big", func() io.Reader { return io.MultiReader(bytes.NewReader(ten)) }, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			req, _ := http.NewRequest("POST", r.url(c.path), c.body())
			req.Header.Set("X-Sign", "ok")
			// The sender waits for the go-ahead, as it should with a body like this.
			req.Header.Set("Expect", "100-continue")
			resp, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != c.status {
				t.Errorf("%d, want %d", resp.StatusCode, c.status)
			}
		})
	}
	if r.journal.len() != 2 || len(r.journal.kept[0].Body) != 10<<20 {
		t.Errorf("%d kept", r.journal.len())
	}
}

func TestRawRequests(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"rubbish", "hello\r\n\r\n", "400"},
		{"a chunk that is none", "POST /in/shop HTTP/1.1\r\nHost: x\r\nX-Sign: ok\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", "400"},
		{"two lengths", "POST /in/shop HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", "400"},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "404"},
		{"HTTP/1.0", "POST /in/shop HTTP/1.0\r\nX-Sign: ok\r\nContent-Length: 2\r\n\r\n{}", "200"},
		{"an absolute target", "POST http://x/in/shop HTTP/1.1\r\nHost: x\r\nX-Sign: ok\r\nContent-Length: 2\r\n\r\n{}", "200"},
		{"a header without end", "POST /in/shop HTTP/1.1\r\nHost: x\r\nX-Long: " + strings.Repeat("a", 80<<10) + "\r\n\r\n", "431"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, Options{}, ServerOptions{})
			if got := r.raw(c.text, false); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestASlowSenderIsCutOff(t *testing.T) {
	r := start(t, Options{}, ServerOptions{HeaderTimeout: 30 * time.Millisecond, ReadTimeout: 60 * time.Millisecond})
	if got := r.raw("POST /in/shop HTTP/1.1\r\nHost: x\r\nX-Si", false); got == "200" {
		t.Errorf("half a header is answered %s", got)
	}
	if got := r.raw("POST /in/shop HTTP/1.1\r\nHost: x\r\nX-Sign: ok\r\nContent-Length: 100\r\n\r\n{", false); got != "503" {
		t.Errorf("half a body is answered %s", got)
	}
	if r.journal.len() != 0 {
		t.Error("half a delivery was kept")
	}
}

func TestASenderThatGoesAwayLeavesNothing(t *testing.T) {
	r := start(t, Options{}, ServerOptions{})
	r.raw("POST /in/shop HTTP/1.1\r\nHost: x\r\nX-Sign: ok\r\nContent-Length: 100\r\n\r\n{", true)
	<-r.counter.event
	if r.journal.len() != 0 || r.counter.seen["shop 0"] != 1 {
		t.Errorf("%d kept, %v", r.journal.len(), r.counter.seen)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	r := start(t, Options{MaxInHand: 200 << 10}, ServerOptions{})
	big := bytes.Repeat([]byte("x"), 300<<10)
	if resp := r.do("POST", "/in/shop", bytes.NewReader(big), "X-Sign", "ok"); resp.StatusCode != 503 {
		t.Errorf("%d", resp.StatusCode)
	}
	for range 3 { // what a request held is given back
		if resp := r.do("POST", "/in/shop", bytes.NewReader(big[:100<<10]), "X-Sign", "ok"); resp.StatusCode != 200 {
			t.Errorf("%d", resp.StatusCode)
		}
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	r := start(t, Options{}, ServerOptions{MaxConnections: 1})
	first, err := net.Dial("tcp", r.server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(first, "GET /in/shop?challenge=1 HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(first), nil); err != nil {
		t.Fatal(err)
	}
	answered := make(chan string, 1)
	go func() { answered <- r.raw("GET /in/shop?challenge=2 HTTP/1.1\r\nHost: x\r\n\r\n", false) }()
	select {
	case a := <-answered:
		t.Errorf("a second connection was answered %s", a)
	case <-time.After(50 * time.Millisecond):
	}
	first.Close()
	if a := <-answered; a != "200" {
		t.Errorf("after the first has gone the second is answered %s", a)
	}
}

func TestStopUnderLoadLosesNothingAcknowledged(t *testing.T) {
	r := start(t, Options{}, ServerOptions{})
	var acknowledged, sent atomic.Int64
	var wg sync.WaitGroup
	under := make(chan struct{})
	for range 32 {
		wg.Go(func() {
			for {
				req, _ := http.NewRequest("POST", r.url("/in/shop"), strings.NewReader(`{"a":1}`))
				req.Header.Set("X-Sign", "ok")
				resp, err := r.client.Do(req)
				if err != nil {
					return // no longer accepted
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode == 200 {
					acknowledged.Add(1)
				}
				if sent.Add(1) == 500 {
					close(under)
				}
			}
		})
	}
	<-under
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := r.server.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	kept := r.journal.len()
	wg.Wait()
	if int64(kept) < acknowledged.Load() || r.journal.len() != kept {
		t.Errorf("%d acknowledged, %d kept when stopped, %d kept at last", acknowledged.Load(), kept, r.journal.len())
	}
}

func TestStopFinishesWhatIsInHandWithinABound(t *testing.T) {
	j := stuck()
	r := start(t, Options{Journal: j}, ServerOptions{})
	answered := make(chan string, 1)
	go func() {
		answered <- r.raw("POST /in/shop HTTP/1.1\r\nHost: x\r\nX-Sign: ok\r\nContent-Length: 2\r\n\r\n{}", false)
	}()
	<-j.held
	stopped := make(chan error, 1)
	go func() { stopped <- r.server.Stop(context.Background()) }()
	close(j.hold)
	if got := <-answered; got != "200" || j.len() != 1 {
		t.Errorf("answered %s with %d kept", got, j.len())
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if err := r.server.Stop(context.Background()); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
}

func TestStopCutsOffWhatDoesNotEnd(t *testing.T) {
	j := stuck()
	h := New(Options{Journal: j, Sources: map[string]Source{"shop": {Source: signed{}}}})
	s, err := Listen(ServerOptions{Address: "127.0.0.1:0", Handler: h})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "POST /in/shop HTTP/1.1\r\nHost: x\r\nX-Sign: ok\r\nContent-Length: 2\r\n\r\n{}")
	<-j.held
	defer close(j.hold)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := s.Stop(ctx); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("Stop returned %v", err)
	}
}

func TestAServerThatWasNeverStartedStops(t *testing.T) {
	s, err := Listen(ServerOptions{Address: "127.0.0.1:0", Handler: http.NotFoundHandler()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", s.Addr().String()); err == nil {
		t.Error("the address is still taken")
	}
}

func TestPublicURL(t *testing.T) {
	for _, c := range []struct{ name, url, target, proto, want string }{
		{"from the request", "", "/in/shop?a=1", "", "http://host/in/shop?a=1"},
		{"behind a proxy", "", "/in/shop/x", "https", "https://host/in/shop/x"},
		{"as configured", "https://p.example/hooks/shop", "/in/shop", "", "https://p.example/hooks/shop"},
		{"as configured, with more", "https://p.example/hooks/shop", "/in/shop/x?a=1", "", "https://p.example/hooks/shop/x?a=1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := http.NewRequest("POST", "http://host"+c.target, nil)
			r.RequestURI = c.target
			if c.proto != "" {
				r.Header.Set("X-Forwarded-Proto", c.proto)
			}
			h := New(Options{Journal: &memory{}, Sources: map[string]Source{"shop": {Source: signed{}, URL: c.url}}})
			e, more := h.find(r)
			if got := (&request{Request: r, h: h, source: e, more: more}).publicURL(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// strict is a journal that takes nothing once its caller has given up.
type strict struct{ memory }

func (s *strict) Append(ctx context.Context, d *event.Delivery) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.memory.Append(ctx, d)
}

func TestWhatWasSentWholeIsKeptThoughItsSenderIsGone(t *testing.T) {
	j := &strict{}
	h := New(Options{Journal: j, Sources: map[string]Source{"shop": {Source: signed{}}}})
	ctx, gone := context.WithCancel(context.Background())
	gone()
	r := httptest.NewRequestWithContext(ctx, "POST", "/in/shop", strings.NewReader("{}"))
	r.Header.Set("X-Sign", "ok")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 200 || j.len() != 1 {
		t.Errorf("%d, %d kept", w.Code, j.len())
	}
}

func TestAConnectionThatSendsNothingDoesNotHoldUpStop(t *testing.T) {
	s, err := Listen(ServerOptions{Address: "127.0.0.1:0", Handler: http.NotFoundHandler()})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	silent, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	other, err := net.Dial("tcp", s.Addr().String()) // accepted after the silent one
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	io.WriteString(other, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(other), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}
