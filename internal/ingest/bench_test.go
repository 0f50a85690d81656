package ingest

import (
	"bytes"
	"context"
	"net/http"
	"testing"

	"github.com/hookfold/hookfold/event"
)

type nowhere struct{}

func (nowhere) Append(context.Context, *event.Delivery) error { return nil }

type silent struct{ h http.Header }

func (s silent) Header() http.Header         { return s.h }
func (s silent) Write(b []byte) (int, error) { return len(b), nil }
func (s silent) WriteHeader(int)             {}

// BenchmarkReceive is the receive path without the network, the signature and
// the journal.
func BenchmarkReceive(b *testing.B) {
	h := New(Options{Journal: nowhere{}, Sources: map[string]Source{"shop": {Source: signed{}, Secrets: []string{secret}}}})
	body := bytes.Repeat([]byte("x"), 1300)
	header := http.Header{"X-Sign": {"ok"}, "Content-Type": {"application/json"}, "User-Agent": {"bench"},
		"Accept": {"*/*"}, "X-Request-Id": {"1"}, "Content-Length": {"1300"}}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	w := silent{http.Header{}}
	reader := bytes.NewReader(body)
	r, _ := http.NewRequest("POST", "http://host/in/shop", reader)
	r.Header = header
	for b.Loop() {
		reader.Reset(body)
		clear(w.h)
		h.ServeHTTP(w, r)
	}
}
