package run

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/lane"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal/sqlite"
)

// worker takes a while for each event, counts those of well keys, and fails or
// hangs for one key.
type worker struct {
	takes, hangs time.Duration
	ill          string
	done         atomic.Int64
	enough       int64
	all          chan struct{}
}

func (w *worker) Deliver(ctx context.Context, m *lane.Message) lane.Answer {
	takes := w.takes
	if m.Key == w.ill {
		takes = w.hangs
	}
	if takes > 0 {
		t := time.NewTimer(takes)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	if m.Key == w.ill {
		return lane.Answer{Reason: "answered 500"}
	}
	if w.done.Add(1) == w.enough {
		close(w.all)
	}
	return lane.Answer{OK: true}
}

// BenchmarkLane measures a lane of 64 keys on a real journal, 16 at a time: what
// it costs itself, and what one stuck key costs the others. events/s counts those
// that get through.
func BenchmarkLane(b *testing.B) {
	for _, c := range []struct {
		name         string
		takes, hangs time.Duration
		ill          string
	}{
		{"no work", 0, 0, ""},
		{"5 ms", 5 * time.Millisecond, 0, ""},
		{"5 ms, one key fails", 5 * time.Millisecond, 5 * time.Millisecond, "k7"},
		{"5 ms, one key hangs", 5 * time.Millisecond, 500 * time.Millisecond, "k7"},
	} {
		b.Run(c.name, func(b *testing.B) {
			j, err := sqlite.Open(filepath.Join(b.TempDir(), "j.db"), sqlite.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			w := &worker{takes: c.takes, hangs: c.hangs, ill: c.ill, all: make(chan struct{})}
			var all []*event.Delivery
			for i := range b.N {
				key := fmt.Sprint("k", i%64)
				if key != c.ill {
					w.enough++
				}
				all = append(all, &event.Delivery{Source: "shop", Received: time.Now(), Body: fmt.Appendf(nil, `{"id":"e%d","key":%q}`, i, key)})
			}
			if w.enough == 0 {
				return
			}
			appendAll(b, j, all)
			p := planned(b, "")
			r := New(Options{
				Name: "l", Consumer: "lane:l", Source: "shop", Journal: j, Events: p.Lane("l").Source.Events, Deliver: w, History: true,
				Order:   func(e *event.Event) (mapping.Ordered, bool, string) { return p.Order(p.Lane("l"), e) },
				Lines:   lane.Options{Concurrency: 16},
				Policy:  lane.Policy{Retry: -1, Pauses: pipeline.Backoff{First: time.Second, Most: 10 * time.Minute}},
				Timeout: time.Second, Guard: true, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			})
			b.ResetTimer()
			if err := r.Start(b.Context()); err != nil {
				b.Fatal(err)
			}
			<-w.all
			b.StopTimer()
			b.ReportMetric(float64(w.enough)/b.Elapsed().Seconds(), "events/s")
			if err := r.Stop(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
}

func appendAll(b *testing.B, j *sqlite.Journal, all []*event.Delivery) {
	b.Helper()
	errs := make(chan error, 64)
	var next atomic.Int64
	for range cap(errs) {
		go func() {
			for i := next.Add(1) - 1; int(i) < len(all); i = next.Add(1) - 1 {
				if err := j.Append(b.Context(), all[i]); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			b.Fatal(err)
		}
	}
}
