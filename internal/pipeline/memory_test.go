package pipeline

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Two events that a version cannot tell apart, each in a batch of its own, and
// each more than once.
func TestTiesAreCountedAcrossBatches(t *testing.T) {
	r := newRig(t)
	r.start()
	for _, b := range []string{
		`{"event":"e1","id":"a","at":1,"value":"x"}`, `{"event":"e2","id":"a","at":1,"value":"y"}`,
		`{"event":"e1","id":"a","at":1,"value":"x"}`, `{"event":"e2","id":"a","at":1,"value":"y"}`,
		`{"event":"e3","id":"a","at":1,"value":"x","top":7}`, `{"event":"e4","id":"a","at":2,"value":"z"}`,
	} {
		r.send(b)
		r.settle()
	}
	// e1 and e3 may or may not differ from what was taken; each counts once.
	if st := r.runner.Stats(); st.Ties < 1 || st.Ties > 2 {
		t.Errorf("%d ties", st.Ties)
	}
	if !strings.Contains(r.log.String(), "two different events have the version 1 (e1, e2)") {
		t.Error(r.log)
	}
}

func TestTiesForgetWhatIsLongAgo(t *testing.T) {
	x := newTies()
	for i := range 3 * maxTied {
		x.put(uint64(i), &tied{})
	}
	if n := len(x.young) + len(x.old); n > 2*maxTied {
		t.Errorf("%d are remembered", n)
	}
	if x.get(0) != nil || x.get(3*maxTied-1) == nil {
		t.Error("the oldest is there, or the newest is not")
	}
}

func TestKnownsForgetWhatIsLongAgo(t *testing.T) {
	k := newKnowns()
	k.add(rowID{0, "a"})
	if k.has(rowID{0, "a"}) {
		t.Error("a row was remembered that nobody may ask for")
	}
	k.watch(0)
	for i := range 3 * maxKnown {
		k.add(rowID{0, keyOf(i)})
	}
	if n := len(k.young) + len(k.old); n > 2*maxKnown || !k.has(rowID{0, keyOf(3*maxKnown - 1)}) || k.has(rowID{0, keyOf(0)}) {
		t.Errorf("%d are remembered", n)
	}
}

// A field that was always there is missing from now on.
func TestAMissingFieldTellsHowOftenItWasThere(t *testing.T) {
	r := newRig(t)
	r.options.Map = func(e *event.Event) mapping.Outcome {
		if e.Body.Get("value").Text() == "" {
			return mapping.Outcome{Wanted: true, Faults: []mapping.Fault{{Table: "item", Column: "value", Mapping: "m", Missing: true, Reason: "no such field: event has no value. Has the provider changed its API version?"}}}
		}
		out := mapEvent(e)
		out.Changes[0].Mapping = "m"
		return out
	}
	r.send(numbered(1234, `{"id":"k%d","value":"x","type":"t"}`)...)
	r.send(`{"id":"a","type":"t"}`, `{"id":"b","type":"other kind"}`)
	r.start()
	r.settle()
	want := []string{
		"dead  shop #1235 t → item.value: no such field: event has no value (missing now, present in 1,234 events before). Has the provider changed its API version?",
		"dead  shop #1236 other kind → item.value: no such field: event has no value. Has the provider changed its API version?",
	}
	if diff := cmp.Diff(want, r.lines(journal.Dead)); diff != "" {
		t.Error(diff)
	}
}

// An event that was dead because its time lay too far ahead is dead in every
// order: also when it comes again after its time has come, and after a restart.
func TestF25AheadIsJudgedByTheFirstReceipt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		at := time.Now().Add(30 * time.Hour)
		s := Source{
			Events: func(d *event.Delivery) (*mapping.Split, error) {
				split, err := events(d)
				for _, e := range split.Events {
					e.Time = at
				}
				return split, err
			},
			Ahead: func(e *event.Event) string {
				if e.Time.Sub(e.FirstReceived) > 24*time.Hour {
					return "ahead"
				}
				return ""
			},
		}
		r.options.Sources = map[string]Source{"shop": s}
		r.options.Map = func(e *event.Event) mapping.Outcome {
			if why := s.Ahead(e); why != "" {
				return mapping.Outcome{Wanted: true, Faults: []mapping.Fault{{Table: "item", Reason: why}}}
			}
			return mapEvent(e)
		}
		r.start()
		r.send(`{"event":"e1","id":"a","value":"x"}`)
		time.Sleep(20 * time.Hour)
		r.send(`{"event":"e1","id":"a","value":"x"}`, `{"event":"e2","id":"b","value":"x"}`)
		time.Sleep(time.Second)
		r.rests(map[string]string{"item b": "x/"})
		r.stop()
		r.start()
		r.send(`{"event":"e1","id":"a","value":"x"}`)
		time.Sleep(time.Second)
		r.rests(map[string]string{"item b": "x/"})
		if n := len(r.entries(journal.Dead)); n != 3 {
			t.Errorf("%d dead", n)
		}
		r.stop()
	})
}

func TestSkippedEventsAreToldOncePerType(t *testing.T) {
	r := newRig(t)
	r.options.Map = func(*event.Event) mapping.Outcome { return mapping.Outcome{} }
	r.send(numbered(30, `{"type":"t%d"}`)...)
	r.send(numbered(30, `{"type":"t1","n":%d}`)...)
	r.send(`{"n":1}`, `{"n":2}`)
	r.start()
	r.settle()
	log := r.log.String()
	if n := strings.Count(log, "wants t1."); n != 1 {
		t.Errorf("t1 was told of %d times:\n%s", n, log)
	}
	if n := r.runner.Stats().Skipped; n != 62 {
		t.Errorf("%d skipped", n)
	}
	if r.runner.skipped.first(Skip{Source: "shop"}) {
		t.Error("an event without a type was not told of")
	}
}

// A target that was never reached is not up; and it is found without work to do.
func TestATargetIsUpOnceItHasAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.sink.ping = errDown
		r.start()
		time.Sleep(10 * time.Minute)
		if h := r.runner.Health(); h.Up || h.Error != "connection refused" || h.Tries < 10 || h.Tries > 60 {
			t.Errorf("%+v", h)
		}
		r.sink.set(func() { r.sink.ping = nil })
		time.Sleep(31 * time.Second)
		if h := r.runner.Health(); !h.Up {
			t.Errorf("%+v", h)
		}
		r.stop()
	})
}

// What a person tries again is judged by the table as it is now.
func TestDeadRetryLooksAtTheTableAnew(t *testing.T) {
	r := newRig(t)
	r.sink.live["item"] = narrow()
	r.send(`{"id":"a","value":"long"}`)
	r.start()
	r.settle()
	r.sink.set(func() { delete(r.sink.live, "item") })
	if n, err := r.journal.Retry(context.Background(), journal.Filter{Position: 1}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	r.until(func() bool {
		return r.sink.show()["item a"] == "long/" || len(r.entries(journal.Dead)) == 1 && r.entries(journal.Dead)[0].Attempts > 1
	})
	if r.sink.show()["item a"] == "" {
		t.Error(r.lines(journal.Dead))
	}
}

func keyOf(i int) merge.Key { return merge.NewKey(fmt.Sprint(i)) }

func narrow() *sink.Live {
	return &sink.Live{Exists: true, Columns: []sink.LiveColumn{{Name: "value", Type: "character varying(3)", Length: 3}}}
}
