package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/ndjson"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/journal/sqlite"
)

// through is a file's way into the journal of a running server.
type through struct {
	a      *app
	plan   *mapping.Plan
	door   *daemon.Door
	client *http.Client
	out    replayJSON
	// taken are the positions that the file's deliveries got.
	taken []span
}

// span are positions from first to last.
type span struct{ first, last event.Position }

// replayThrough hands a file to the server that runs on the journal, and waits
// until it has written what is in it.
func (a *app) replayThrough(ctx context.Context, plan *mapping.Plan, in io.Reader) error {
	j, err := daemon.OpenJournal(plan.Config, reader)
	if err != nil {
		return err
	}
	defer j.Close()
	door, err := daemon.OpenDoor(j.Path())
	if err != nil {
		return err
	}
	t := &through{a: a, plan: plan, door: door, client: &http.Client{Timeout: time.Minute}, out: replayJSON{ThroughServer: true, Entries: []entryJSON{}}}
	begun := time.Now()
	bar := a.progress("replay", -1)
	defer bar.done()
	n, line, readErr := feed(ctx, plan, in, bar, t.add)
	entries, err := t.wait(ctx, j)
	bar.done()
	if ctx.Err() != nil {
		return notSo("stopped at line %d, with %s in the journal. The server goes on writing them; the file may be replayed again from its beginning", line, deliveries(n))
	}
	if err != nil {
		return err
	}
	t.out.Deliveries, t.out.Seconds = n, time.Since(begun).Seconds()
	t.out.Settled = max(0, t.out.Events-t.out.Skipped-int64(len(entries)))
	return a.replayed(t.out, entries, readErr)
}

// add hands deliveries to the server, again where it is overloaded, and counts
// the events in them.
func (t *through) add(ctx context.Context, list []*event.Delivery) error {
	var body bytes.Buffer
	w := ndjson.NewWriter(&body)
	for _, d := range list {
		if err := w.Write(d); err != nil {
			return err
		}
	}
	for try := 1; ; try++ {
		done, status, err := t.post(ctx, body.Bytes())
		switch {
		case err != nil:
			return fmt.Errorf("hand deliveries to the server: %w", err)
		case status == http.StatusOK:
			t.take(list, done.Positions)
			return nil
		case status != http.StatusServiceUnavailable || try >= 30:
			return fmt.Errorf("hand deliveries to the server: %s (%d)", done.Error, status)
		}
		pause := time.NewTimer(time.Second)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
}

func (t *through) post(ctx context.Context, body []byte) (done daemon.Imported, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+reachable(t.door.Admin)+daemon.ImportPath, bytes.NewReader(body))
	if err != nil {
		return done, 0, err
	}
	req.Header.Set("Authorization", "Bearer "+t.door.Token)
	resp, err := t.client.Do(req)
	if err != nil {
		return done, 0, err
	}
	defer resp.Body.Close()
	return done, resp.StatusCode, json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(&done)
}

func (t *through) take(list []*event.Delivery, positions []event.Position) {
	for i, p := range positions {
		if n := len(t.taken); n > 0 && t.taken[n-1].last+1 == p {
			t.taken[n-1].last = p
		} else {
			t.taken = append(t.taken, span{p, p})
		}
		d := list[i]
		d.Position = p
		split, err := t.plan.Source(d.Source).Events(d)
		if err != nil {
			t.out.Events += int64(len(t.plan.Targets()))
			continue
		}
		for _, e := range split.Events {
			for _, target := range t.plan.Targets() {
				t.out.Events++
				if !t.plan.Map(e, target).Wanted {
					t.out.Skipped++
				}
			}
		}
	}
}

// mine tells of an event of the file.
func (t *through) mine(e journal.Entry) bool {
	_, found := slices.BinarySearchFunc(t.taken, e.Ref.Position, func(s span, p event.Position) int {
		switch {
		case s.last < p:
			return -1
		case s.first > p:
			return 1
		}
		return 0
	})
	return found
}

// wait waits until every target has what the file holds, and until no event of
// it that waits is landed by what else was written; it returns those that are
// left.
func (t *through) wait(ctx context.Context, j *sqlite.Journal) ([]journal.Entry, error) {
	if len(t.taken) == 0 {
		return nil, nil
	}
	last := t.taken[len(t.taken)-1].last
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	told := map[string]bool{}
	for {
		behind := false
		for _, target := range t.plan.Targets() {
			done, err := j.Progress(ctx, target)
			if err != nil {
				return nil, err
			}
			behind = behind || done < last
		}
		if !behind {
			break
		}
		t.tellDown(ctx, told)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	// What waits for something in the same file lands within a second.
	for before, still := -1, 0; ; {
		entries, err := j.Entries(ctx, journal.Filter{})
		if err != nil {
			return nil, err
		}
		entries = slices.DeleteFunc(entries, func(e journal.Entry) bool { return !t.mine(e) })
		waiting := 0
		for _, e := range entries {
			if e.State == journal.Waiting {
				waiting++
			}
		}
		if still++; waiting != before {
			before, still = waiting, 0
		}
		if waiting == 0 || still > 40 {
			return entries, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tellDown tells once of each target that the server cannot reach.
func (t *through) tellDown(ctx context.Context, told map[string]bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+reachable(t.door.Admin)+"/readyz", nil)
	if err != nil {
		return
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return // it is tried again
	}
	defer resp.Body.Close()
	var ready daemon.Readiness
	if json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&ready) != nil {
		return
	}
	p := daemon.Progress{Down: map[string]string{}}
	for _, x := range ready.Targets {
		if !x.Up && x.Error != "" && !told[x.Name] {
			told[x.Name] = true
			p.Down[x.Name] = x.Error
		}
	}
	t.a.tellDown()(p)
}
