package daemon

import (
	"time"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/enrich"
	"github.com/hookfold/hookfold/journal/sqlite"
)

// newFetcher makes the fetcher of a config's fetches.
func (d *Daemon) newFetcher(j *sqlite.Journal) *enrich.Fetcher {
	notFound := map[string]enrich.NotFound{
		config.NotFoundRetry: enrich.NotFoundRetry, config.NotFoundDead: enrich.NotFoundDead,
		config.NotFoundValue: enrich.NotFoundValue, config.NotFoundDelete: enrich.NotFoundValue,
	}
	o := enrich.Options{Received: j.LastPosition, Log: d.o.Log, Observer: d.metrics, Backoff: d.o.FetchBackoff, Probing: d.o.FetchBackoff}
	for _, f := range d.plan.Fetches {
		if len(f.Hosts) == 0 {
			continue // no mapping uses it
		}
		o.Specs = append(o.Specs, &enrich.Spec{
			Name: f.Name, Header: f.Header, Allows: f.Allows, AllowsPrivate: f.AllowsPrivate,
			Rate: f.Config.Rate, Concurrency: f.Config.Concurrency, Timeout: f.Config.Timeout, MaxBody: f.Config.MaxBody,
			NotFound: notFound[f.Config.NotFound],
		})
	}
	return enrich.New(o)
}

// FetchHealth tells how a fetch goes.
type FetchHealth struct {
	Name string `json:"name"`
	// Waiting counts the events that wait for it.
	Waiting int `json:"waiting"`
	// Paused is set while its API does not know, or not want, who asks: Error is
	// how it answered, Since when that began.
	Paused bool       `json:"paused"`
	Error  string     `json:"error,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
}

func (d *Daemon) fetchHealth() (out []FetchHealth) {
	for _, s := range d.fetcher.States() {
		out = append(out, FetchHealth{Name: s.Name, Waiting: s.Waiting, Paused: s.Paused, Error: s.Error, Since: at(s.Since)})
	}
	return out
}

// measureFetches adds the gauges of the fetches.
func (d *Daemon) measureFetches() {
	for i, s := range d.fetcher.States() {
		labels := map[string]string{"fetch": s.Name}
		d.metrics.Gauge("fetch_waiting_events", "Events that wait for a fetch.", labels, func() float64 {
			return float64(d.fetcher.States()[i].Waiting)
		})
		d.metrics.Gauge("fetch_paused", "1 while a fetch is paused because its API answers 401 or 403.", labels, func() float64 {
			if d.fetcher.States()[i].Paused {
				return 1
			}
			return 0
		})
	}
}
