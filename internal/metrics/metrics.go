// Package metrics counts what the receive path and the pipelines do, in the
// form that Prometheus reads. The packages that are counted know nothing of it:
// they declare observers, and Metrics is one.
package metrics

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hookfold/hookfold/internal/enrich"
	"github.com/hookfold/hookfold/internal/ingest"
	"github.com/hookfold/hookfold/internal/lane/run"
	"github.com/hookfold/hookfold/internal/pipeline"
)

// maxSkips bounds the pairs of source and type that are counted apart: types
// come from outside. What is beyond them is counted under the type "other".
const maxSkips = 1000

// Metrics implements ingest.Observer, pipeline.Observer, run.Observer and
// enrich.Observer.
type Metrics struct {
	registry *prometheus.Registry

	requests *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	latency  *prometheus.HistogramVec

	events  *prometheus.CounterVec
	rows    *prometheus.CounterVec
	oddity  *prometheus.CounterVec
	skipped *prometheus.CounterVec
	faults  *prometheus.CounterVec
	batches *prometheus.HistogramVec
	fetches *prometheus.CounterVec
	fetched *prometheus.HistogramVec

	tries   *prometheus.CounterVec
	tried   *prometheus.HistogramVec
	ordered *prometheus.CounterVec

	mu    sync.Mutex
	skips map[pipeline.Skip]struct{}
}

var (
	_ ingest.Observer   = (*Metrics)(nil)
	_ pipeline.Observer = (*Metrics)(nil)
	_ run.Observer      = (*Metrics)(nil)
	_ enrich.Observer   = (*Metrics)(nil)
)

// New returns metrics with nothing counted.
func New() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "hookfold", Name: name, Help: help}, labels)
	}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: counter("requests_total", "Requests to sources by answer; 0 is a sender that went away.", "source", "status"),
		bytes:    counter("received_bytes_total", "Bytes of bodies received.", "source"),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "hookfold", Name: "request_seconds", Help: "Time from the end of a request's header to its answer.",
			Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"source"}),
		events:  counter("events_total", "Events by what became of them: settled, waiting, dead, skipped.", "target", "state"),
		rows:    counter("rows_total", "Rows applied: written or unchanged.", "target", "result"),
		oddity:  counter("oddities_total", "Texts replaced, rungs ignored, and ties that a version cannot tell apart.", "target", "kind"),
		skipped: counter("skipped_events_total", "Events that no mapping wanted.", "target", "source", "type"),
		faults:  counter("target_faults_total", "Tries that failed through the target's own fault.", "target"),
		batches: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "hookfold", Name: "batch_seconds", Help: "Time from the lease of a batch until it is done.",
			Buckets: prometheus.ExponentialBuckets(.001, 3, 11),
		}, []string{"target"}),
		fetches: counter("fetch_requests_total", "Requests of fetches by what came of them: answered, failed, limited (429), denied (401, 403), refused.", "fetch", "outcome"),
		fetched: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "hookfold", Name: "fetch_seconds", Help: "Time of a request of a fetch, with its redirects and its answer.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 120},
		}, []string{"fetch"}),
		tries: counter("lane_tries_total", "Tries of a lane by what came of them: done, failed, busy, down, gone.", "lane", "result"),
		tried: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "hookfold", Name: "lane_try_seconds", Help: "Time of a try of a lane.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15, 60},
		}, []string{"lane"}),
		ordered: counter("lane_events_total", "Events of a lane by what became of them: settled, dead, skipped, repeated.", "lane", "state"),
		skips:   map[pipeline.Skip]struct{}{},
	}
	m.registry.MustRegister(m.fetches, m.fetched, m.tries, m.tried, m.ordered, m.requests, m.bytes, m.latency, m.events, m.rows, m.oddity, m.skipped, m.faults, m.batches)
	return m
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Gauge adds a value that is read when the metrics are.
func (m *Metrics) Gauge(name, help string, labels map[string]string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "hookfold", Name: name, Help: help, ConstLabels: labels,
	}, read))
}

// Answered implements ingest.Observer.
func (m *Metrics) Answered(source string, status, bytes int, took time.Duration) {
	m.requests.WithLabelValues(source, strconv.Itoa(status)).Inc()
	m.bytes.WithLabelValues(source).Add(float64(bytes))
	m.latency.WithLabelValues(source).Observe(took.Seconds())
}

// Batch implements pipeline.Observer.
func (m *Metrics) Batch(target string, r pipeline.Report) {
	for _, c := range []struct {
		vec   *prometheus.CounterVec
		label string
		n     int64
	}{
		{m.events, "settled", r.Settled}, {m.events, "waiting", r.Waited}, {m.events, "dead", r.Died}, {m.events, "skipped", r.Skipped},
		{m.rows, "written", r.Written}, {m.rows, "unchanged", r.Unchanged},
		{m.oddity, "replaced", r.Replaced}, {m.oddity, "ignored_rung", r.Ignored}, {m.oddity, "tie", r.Ties},
	} {
		c.vec.WithLabelValues(target, c.label).Add(float64(c.n))
	}
	m.batches.WithLabelValues(target).Observe(r.Took.Seconds())
	for s, n := range r.Skips {
		s.Type = label(s.Type)
		if !m.known(s) {
			s.Type = "other"
		}
		m.skipped.WithLabelValues(target, s.Source, s.Type).Add(float64(n))
	}
}

// label makes a type fit for a label: Prometheus refuses what is not UTF-8.
func label(s string) string {
	if len(s) > 100 {
		s = s[:100]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func (m *Metrics) known(s pipeline.Skip) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.skips[s]; ok {
		return true
	}
	if len(m.skips) >= maxSkips {
		return false
	}
	m.skips[s] = struct{}{}
	return true
}

// Tried implements run.Observer.
func (m *Metrics) Tried(lane, result string, took time.Duration) {
	m.tries.WithLabelValues(lane, result).Inc()
	m.tried.WithLabelValues(lane).Observe(took.Seconds())
}

// Ended implements run.Observer.
func (m *Metrics) Ended(lane, state string, events int) {
	m.ordered.WithLabelValues(lane, state).Add(float64(events))
}

// Fetched implements enrich.Observer.
func (m *Metrics) Fetched(fetch, outcome string, took time.Duration) {
	m.fetches.WithLabelValues(fetch, outcome).Inc()
	m.fetched.WithLabelValues(fetch).Observe(took.Seconds())
}

// Fault implements pipeline.Observer.
func (m *Metrics) Fault(target string) { m.faults.WithLabelValues(target).Inc() }
