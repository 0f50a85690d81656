package daemon

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/hookfold/hookfold/journal"
)

// adminHandler serves health and metrics.
//
//	/healthz  200 while the process runs
//	/readyz   200 while deliveries are taken, else 503; the body says what is wrong
//	/metrics  for Prometheus
//	/import   takes deliveries from who may read the journal; see Door
func (d *Daemon) adminHandler() http.Handler {
	served := d.metrics.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == ImportPath {
			d.importing(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			writeJSON(w, http.StatusMethodNotAllowed, map[string]any{"error": "method not allowed"})
			return
		}
		switch r.URL.Path {
		case "/healthz":
			writeJSON(w, http.StatusOK, map[string]any{"ok": true})
		case "/readyz":
			ready := d.readiness(r.Context())
			status := http.StatusOK
			if !ready.Ready {
				status = http.StatusServiceUnavailable
			}
			writeJSON(w, status, ready)
		case "/metrics":
			served.ServeHTTP(w, r)
		default:
			writeJSON(w, http.StatusNotFound, map[string]any{"error": "not found"})
		}
	})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that does not wait for the answer takes no harm.
	_ = json.NewEncoder(w).Encode(body)
}

// Readiness is the body of /readyz. Ready says that deliveries are taken; a
// target that is down does not change that.
type Readiness struct {
	Ready     bool           `json:"ready"`
	Listening bool           `json:"listening"`
	Journal   JournalHealth  `json:"journal"`
	Targets   []TargetHealth `json:"targets"`
	// Lanes are left out where the config has none.
	Lanes   []LaneHealth  `json:"lanes,omitempty"`
	Fetches []FetchHealth `json:"fetches,omitempty"`
	// Abandoned are targets that no table of the config has any more, and for
	// which the journal keeps what is not done.
	Abandoned []string `json:"abandoned,omitempty"`
}

// JournalHealth tells how the journal is, and how many events in it wait or are
// dead.
type JournalHealth struct {
	OK      bool   `json:"ok"`
	Error   string `json:"error,omitempty"`
	Waiting int64  `json:"waiting"`
	Dead    int64  `json:"dead"`
}

// TargetHealth tells how a target is.
type TargetHealth struct {
	Name string `json:"name"`
	Up   bool   `json:"up"`
	// Error is the target's last fault, Since when it began.
	Error string     `json:"error,omitempty"`
	Since *time.Time `json:"since,omitempty"`
	// Pending counts deliveries not yet done, Oldest is the receipt of the
	// oldest.
	Pending int64      `json:"pending"`
	Oldest  *time.Time `json:"oldest,omitempty"`
	// Waiting is since when the event waits that has waited longest.
	Waiting *time.Time `json:"waiting_since,omitempty"`
}

func (d *Daemon) readiness(ctx context.Context) Readiness {
	out := Readiness{Listening: d.ready.Load(), Targets: []TargetHealth{}, Fetches: d.fetchHealth(), Abandoned: d.abandoned}
	if err := d.journal.Healthy(); err != nil {
		out.Journal.Error = err.Error()
	} else {
		out.Journal.OK = true
	}
	out.Ready = out.Listening && out.Journal.OK
	if stats, err := d.journal.Stats(ctx); err == nil {
		out.Journal.Waiting, out.Journal.Dead = stats.Waiting, stats.Dead
	} else if out.Journal.Error == "" {
		out.Journal.Error = err.Error()
	}
	for _, r := range d.runners {
		h := r.Health()
		t := TargetHealth{Name: r.Target(), Up: h.Up, Error: h.Error, Since: at(h.Since), Waiting: at(r.Waits().Oldest)}
		pending, oldest, err := r.Lag(ctx)
		if err != nil && t.Error == "" {
			t.Error = err.Error()
		}
		t.Pending, t.Oldest = pending, at(oldest)
		out.Targets = append(out.Targets, t)
	}
	out.Lanes = d.laneHealth(ctx)
	return out
}

func at(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// measure adds the gauges that are read when the metrics are; -1 is one that
// cannot be read.
func (d *Daemon) measure() {
	for _, r := range d.runners {
		labels := map[string]string{"target": r.Target()}
		d.metrics.Gauge("pending_deliveries", "Deliveries that are not yet done.", labels, func() float64 {
			n, _, err := r.Lag(context.Background())
			if err != nil {
				return -1
			}
			return float64(n)
		})
		d.metrics.Gauge("oldest_wait_seconds", "How long the event waits that has waited longest; 0 if none waits.", labels, func() float64 {
			oldest := r.Waits().Oldest
			if oldest.IsZero() {
				return 0
			}
			return time.Since(oldest).Seconds()
		})
		d.metrics.Gauge("target_up", "1 unless the last try failed through the target's own fault.", labels, func() float64 {
			if r.Health().Up {
				return 1
			}
			return 0
		})
	}
	d.measureFetches()
	for name, x := range map[string]struct {
		help string
		of   func(journal.Stats) int64
	}{
		"waiting_events":     {"Events that wait.", func(s journal.Stats) int64 { return s.Waiting }},
		"dead_events":        {"Events that cannot land without a person.", func(s journal.Stats) int64 { return s.Dead }},
		"journal_deliveries": {"Deliveries in the journal.", func(s journal.Stats) int64 { return s.Deliveries }},
		"journal_bytes":      {"Size of the journal in bytes.", func(s journal.Stats) int64 { return s.Bytes }},
	} {
		d.metrics.Gauge(name, x.help, nil, func() float64 {
			s, err := d.journal.Stats(context.Background())
			if err != nil {
				return -1
			}
			return float64(x.of(s))
		})
	}
	d.metrics.Gauge("abandoned_targets", "Targets that no table of the config has any more, for which the journal keeps what is not done.", nil, func() float64 {
		return float64(len(d.abandoned))
	})
	d.metrics.Gauge("journal_healthy", "1 while the journal takes deliveries.", nil, func() float64 {
		if d.journal.Healthy() == nil {
			return 1
		}
		return 0
	})
}
