package post

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/lane"
	"github.com/hookfold/hookfold/source"
)

var (
	now     = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	secrets = [][]byte{[]byte("0123456789abcdef01234567"), []byte("76543210fedcba9876543210")}
)

func message(t *testing.T) *lane.Message {
	t.Helper()
	body, err := event.ParseJSON([]byte(`{"id": "evt_1", "big": 12345678901234567890.10}`))
	if err != nil {
		t.Fatal(err)
	}
	e := &event.Event{
		Delivery: &event.Delivery{Position: 42, Source: "stripe"}, Index: 3, ID: "evt_1", Type: "invoice.paid",
		Time: now.Add(-time.Minute), FirstReceived: now.Add(-time.Second), Body: body,
	}
	return &lane.Message{Lane: "billing", Key: "cus/1 ü", Attempt: 2, Event: e}
}

// What is sent is what Standard Webhooks says, so that any library of it
// verifies it; ours does, by each of the secrets.
func TestMessage(t *testing.T) {
	var got *http.Request
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	}))
	defer s.Close()
	p := New(Options{Post: &config.Post{URL: s.URL + "/hook", Secrets: secrets, Headers: []config.Header{{Name: "Authorization", Value: "Bearer x"}}}, Now: func() time.Time { return now }})
	defer p.Close()
	if a := p.Deliver(t.Context(), message(t)); !a.OK {
		t.Fatalf("%+v", a)
	}
	want := `{"type":"invoice.paid","timestamp":"2026-11-29T11:59:00Z","id":"evt_1","source":"stripe","lane":"billing","key":"cus/1 ü","sequence":4200003,"received":"2026-11-29T11:59:59Z","data":{"id": "evt_1", "big": 12345678901234567890.10}}`
	if d := cmp.Diff(want, string(body)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !json.Valid(body) {
		t.Error("no JSON")
	}
	headers := map[string]string{
		"Webhook-Id": "billing/evt_1", "Webhook-Timestamp": fmt.Sprint(now.Unix()), "Authorization": "Bearer x", "Content-Type": "application/json",
		"Hookfold-Lane": "billing", "Hookfold-Key": "cus%2F1%20%C3%BC", "Hookfold-Sequence": "4200003", "Hookfold-Attempt": "2",
	}
	for name, want := range headers {
		if got.Header.Get(name) != want {
			t.Errorf("%s: %s, want %s", name, got.Header.Get(name), want)
		}
	}
	if got.Method != "POST" || got.URL.Path != "/hook" {
		t.Error(got.Method, got.URL)
	}
	for _, secret := range secrets {
		src, err := source.PresetNamed("standard-webhooks").New(source.Options{Name: "x", Secrets: []source.Secret{{Value: "whsec_" + encode(secret)}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := src.Verify(&source.Request{Header: got.Header, Body: body}, now); err != nil {
			t.Error(err)
		}
	}
}

// Answers, and what each means.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    lane.Answer
	}{
		{"200", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "fine") }, lane.Answer{OK: true}},
		{"204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, lane.Answer{OK: true}},
		{"500", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no\x00\n  such table", 500) }, lane.Answer{Reason: "answered 500: no such table"}},
		{"long", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, strings.Repeat("é", 1e5), 400) }, lane.Answer{Reason: "answered 400: " + strings.Repeat("é", 200) + "…"}},
		{"410", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) }, lane.Answer{Gone: true, Reason: "answered 410"}},
		{"429 seconds", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", "7"); w.WriteHeader(429) },
			lane.Answer{Busy: true, After: 7 * time.Second, Reason: "answered 429"}},
		{"429 date", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", now.Add(time.Minute).Format(http.TimeFormat))
			w.WriteHeader(429)
		}, lane.Answer{Busy: true, After: time.Minute, Reason: "answered 429"}},
		{"503 nonsense", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "soon")
			w.WriteHeader(503)
		},
			lane.Answer{Busy: true, Reason: "answered 503"}},
		{"500 after", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", "-3"); w.WriteHeader(500) },
			lane.Answer{Reason: "answered 500"}},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusTemporaryRedirect)
		},
			lane.Answer{Reason: "answered 307, and redirects are not followed: give post: the URL it is at"}},
		{"slow", func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); <-r.Context().Done() },
			lane.Answer{Reason: "HOST did not answer within 100ms"}},
		{"cut off", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, lane.Answer{Reason: "HOST: EOF"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(c.handler)
			defer s.Close()
			timeout := 20 * time.Second
			if c.name == "slow" {
				timeout = 100 * time.Millisecond
			}
			p := New(Options{Post: &config.Post{URL: s.URL + "/?token=mine"}, Timeout: timeout, Now: func() time.Time { return now }})
			defer p.Close()
			u, _ := url.Parse(s.URL)
			c.want.Reason = strings.ReplaceAll(c.want.Reason, "HOST", u.Host)
			if d := cmp.Diff(c.want, p.Deliver(t.Context(), message(t))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// Where nobody listens no key is at fault; nor where the certificate is another's.
func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	s.Config.ErrorLog = nil
	for _, at := range []string{"http://" + l.Addr().String(), s.URL} {
		p := New(Options{Post: &config.Post{URL: at + "/?token=mine"}})
		a := p.Deliver(context.Background(), message(t))
		if !a.Down || a.Reason == "" || strings.Contains(a.Reason, "mine") {
			t.Errorf("%+v", a)
		}
		p.Close()
	}
}

func TestMessageID(t *testing.T) {
	for id, want := range map[string]string{
		"evt_1": "l/evt_1", "a/b:c|d-e": "l/a/b:c|d-e",
		"a.b": "l/sha256:", "ü": "l/sha256:", "a\nb": "l/sha256:", strings.Repeat("a", 201): "l/sha256:",
	} {
		if got := lane.MessageID("l", id); got != want && (!strings.HasSuffix(want, ":") || !strings.HasPrefix(got, want) || len(got) != len(want)+64) {
			t.Errorf("%s: %s", id, got)
		}
	}
	if lane.MessageID("l", "a.b") == lane.MessageID("l", "a.c") {
		t.Error("two ids are one")
	}
}

func encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
