package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// measure is one line, or a few, of the report.
type measure struct {
	name string
	// long measures have no short form.
	long bool
	take func(ctx context.Context, b *bench, r *report) error
}

func (b *bench) pick(short, full int) int {
	if b.short {
		return short
	}
	return full
}

// during is how long a load goes on.
func (b *bench) during() time.Duration { return time.Duration(b.pick(2, 10)) * time.Second }

// inTurn runs subjects one after another, again and again.
func (b *bench) inTurn(ctx context.Context, kinds []string, one func(kind string) (run, error)) (map[string][]run, error) {
	out := map[string][]run{}
	for n := range b.runs {
		for i := range kinds {
			kind := kinds[(i+n)%len(kinds)] // none is always first
			x, err := one(kind)
			if err != nil {
				return nil, fmt.Errorf("%s, run %d: %w", kind, n+1, err)
			}
			fmt.Fprintf(os.Stderr, "  %-15s %8.0f/s  p99 %6.1f ms  %3d MB\n", kind, x.rate, ms(pOf(x, .99)), x.server.peak>>20)
			out[kind] = append(out[kind], x)
		}
	}
	return out, nil
}

func pOf(r run, q float64) time.Duration {
	if r.sent == nil {
		return 0
	}
	return r.sent.p(q)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func rate(r run) float64 { return r.rate }

func measures() []measure {
	return []measure{
		{name: "sustained at 128 connections", take: sustained128},
		{name: "sustained at 512 connections", take: sustained512},
		{name: "one hot row", take: hotRow},
		{name: "acknowledgement at half load", take: halfLoad},
		{name: "request to visible row", take: visibleRow},
		{name: "draining a backlog", take: drainBacklog},
		{name: "replay of a file", take: replayFile},
		{name: "full tables", long: true, take: fullTables},
	}
}

func sustained128(ctx context.Context, b *bench, r *report) error {
	w := newWorkload(b.pick(60_000, 350_000), 0, 1)
	kinds := []string{"ours", "naive", "null", "intake", "river", "ours again"}
	got, err := b.inTurn(ctx, kinds, func(kind string) (run, error) {
		return b.sustained(ctx, kind, w, shape{connections: 128, during: b.during()})
	})
	if err != nil {
		return err
	}
	const what = "received, durable and settled, 128 connections"
	r.noise(what, got, "ours again", "ours", rate)
	r.ratio(what, got, "naive", rate, atLeast, 2.5)
	r.ratio(what, got, "null", rate, atLeast, .4)
	r.ratio(what, got, "intake", rate, atLeast, .8)
	r.ratio(what, got, "river", rate, atLeast, 4)
	r.figure("peak memory at full load, MB", got["ours"], func(x run) float64 { return float64(x.server.peak) / 1e6 }, 150)
	r.figure("bytes on disk per delivery in the journal", got["ours"], func(x run) float64 { return float64(x.journal) }, 500)
	r.medians(got, rate)
	b.halves = map[string]float64{"ours": median(each(got["ours"], rate)) / 2, "naive": median(each(got["naive"], rate)) / 2}
	return nil
}

func sustained512(ctx context.Context, b *bench, r *report) error {
	w := newWorkload(b.pick(60_000, 350_000), 0, 2)
	got, err := b.inTurn(ctx, []string{"ours", "naive"}, func(kind string) (run, error) {
		return b.sustained(ctx, kind, w, shape{connections: 512, during: b.during()})
	})
	if err != nil {
		return err
	}
	r.ratio("received, durable and settled, 512 connections", got, "naive", rate, atLeast, 4)
	return nil
}

func hotRow(ctx context.Context, b *bench, r *report) error {
	w := newWorkload(b.pick(60_000, 350_000), .9, 3)
	got, err := b.inTurn(ctx, []string{"ours", "naive"}, func(kind string) (run, error) {
		return b.sustained(ctx, kind, w, shape{connections: 128, during: b.during()})
	})
	if err != nil {
		return err
	}
	r.ratio("90 % of the events on one row", got, "naive", rate, atLeast, 12)
	return nil
}

// halfLoad sends each subject half of what it has sustained.
func halfLoad(ctx context.Context, b *bench, r *report) error {
	if b.halves == nil {
		return fmt.Errorf("it needs what is measured by %q", measures()[0].name)
	}
	w := newWorkload(b.pick(40_000, 150_000), 0, 4)
	got, err := b.inTurn(ctx, []string{"ours", "naive"}, func(kind string) (run, error) {
		return b.sustained(ctx, kind, w, shape{connections: 128, during: b.during(), rate: b.halves[kind]})
	})
	if err != nil {
		return err
	}
	r.ratio("p99 of the acknowledgement at half load", got, "naive", func(x run) float64 { return ms(pOf(x, .99)) }, atMost, .7)
	return nil
}

func visibleRow(ctx context.Context, b *bench, r *report) error {
	w := newWorkload(b.pick(1500, 10_000), 0, 5)
	got, err := b.inTurn(ctx, []string{"ours", "naive"}, func(kind string) (run, error) {
		return b.untilVisible(ctx, kind, w, shape{connections: 64, rate: 500})
	})
	if err != nil {
		return err
	}
	r.ratio("p99 from request to visible row at 500/s", got, "naive", func(x run) float64 { return ms(x.visible[len(x.visible)*99/100]) }, atMost, 1.5)
	return nil
}

func drainBacklog(ctx context.Context, b *bench, r *report) error {
	n := b.pick(100_000, 1_000_000)
	w := newWorkload(n, 0, 6)
	got, err := b.inTurn(ctx, []string{"ours", "ceiling", "ours, no index"}, func(kind string) (run, error) { return b.drain(ctx, kind, w) })
	if err != nil {
		return err
	}
	r.ratio(fmt.Sprintf("draining a backlog of %d", n), got, "ceiling", rate, atLeast, .5)
	r.ratio("draining with the index of explain", got, "ours, no index", rate, atLeast, .9)
	r.figure(fmt.Sprintf("peak memory with a backlog of %d, MB", n), got["ours"], func(x run) float64 { return float64(x.server.peak) / 1e6 }, 200)
	return nil
}

func replayFile(ctx context.Context, b *bench, r *report) error {
	n := b.pick(100_000, 1_000_000)
	w := newWorkload(n, 0, 7)
	file := filepath.Join(b.dir, "deliveries.ndjson")
	if err := writeLines(file, w); err != nil {
		return err
	}
	got, err := b.inTurn(ctx, []string{"ours", "ceiling"}, func(kind string) (run, error) {
		if kind == "ceiling" {
			return b.drain(ctx, kind, w)
		}
		return b.replay(ctx, w, file, false)
	})
	if err != nil {
		return err
	}
	r.ratio(fmt.Sprintf("replay of a file of %d into PostgreSQL", n), got, "ceiling", rate, atLeast, .4)
	if got, err = b.inTurn(ctx, []string{"ours", "ceiling"}, func(kind string) (run, error) {
		if kind == "ceiling" {
			return b.ceilingSQLite(ctx, w)
		}
		return b.replay(ctx, w, file, true)
	}); err != nil {
		return err
	}
	r.ratio(fmt.Sprintf("replay of a file of %d into SQLite", n), got, "ceiling", rate, atLeast, .4)
	return nil
}

// fullTables compares a place that holds much with an empty one.
func fullTables(ctx context.Context, b *bench, r *report) error {
	w := newWorkload(200_000, 0, 8)
	full, err := b.newPlace(ctx)
	if err != nil {
		return err
	}
	defer full.remove() //nolint:errcheck // the folder goes with the run
	if err := b.fillPlace(ctx, full, 10_000_000, 5_000_000); err != nil {
		return err
	}
	got, err := b.inTurn(ctx, []string{"ours", "empty"}, func(kind string) (run, error) {
		if kind == "empty" {
			return b.sustained(ctx, "ours", w, shape{connections: 128, during: b.during()})
		}
		return b.sustainedIn(ctx, full, w, shape{connections: 128, during: b.during()})
	})
	if err != nil {
		return err
	}
	r.ratio("with 10,000,000 rows and 5,000,000 deliveries in the journal", got, "empty", rate, atLeast, .8)
	return nil
}
