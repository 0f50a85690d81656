package pipeline

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
)

// TestC54Conflict: of two events with one identity and different contents, the
// second is dead, however often it comes; the first may come again.
func TestC54Conflict(t *testing.T) {
	r := newRig(t)
	s := r.options.Sources["shop"]
	s.Content = func(e *event.Event, changes []*merge.Change) []byte {
		if e.ID == "" || len(changes) == 0 {
			return nil
		}
		return []byte(e.Body.Get("id").Text())
	}
	s.Conflict = func(e *event.Event, first event.Ref) string {
		return "the id " + e.ID + " has come before in " + first.String()
	}
	r.options.Sources["shop"] = s
	r.start()
	for i, body := range []string{
		`{"event":"G1","id":"a","value":"x"}`, `{"event":"G1","id":"a","value":"x"}`, `{"event":"G1","id":"b","value":"x"}`,
		`{"event":"G1","id":"b","value":"x"}`, `{"event":"G2","id":"c","value":"x"}`, `{"event":"G1","id":"a","value":"x"}`, `{"id":"d","value":"x"}`,
	} {
		d := &event.Delivery{Source: "shop", Body: []byte(body), Received: time.Unix(int64(i), 0).UTC()}
		if err := r.journal.Append(context.Background(), d); err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 { // some meet in one batch
			r.settle()
		}
	}
	r.settle()
	rows := r.sink.show()
	for key, there := range map[string]bool{"item a": true, "item b": false, "item c": true, "item d": true} {
		if _, ok := rows[key]; ok != there {
			t.Errorf("%s: there is %v, of %v", key, ok, rows)
		}
	}
	dead := r.entries(journal.Dead)
	if len(dead) != 2 {
		t.Fatalf("%d dead", len(dead))
	}
	for _, e := range dead {
		if !strings.Contains(e.Reason, "the id G1 has come before in #1") {
			t.Error(e.Reason)
		}
	}
}
