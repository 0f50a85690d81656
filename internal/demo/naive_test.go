package demo

import (
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

func TestStoryIsWhatItSays(t *testing.T) {
	story := Story(1)
	bySource := map[string]int{}
	for _, r := range story {
		bySource[r.Source]++
	}
	if bySource["calendly"] != 11 || bySource["shop"] != 500 || bySource["whatsapp"] < 300 {
		t.Errorf("requests by source: %v", bySource)
	}
	if got := len(Shuffle(story, 1)); got != 2*len(story) {
		t.Errorf("%d requests after doubling %d", got, len(story))
	}
}

// The naive handler is right as long as requests come in order, one by one.
func TestNaiveHandler(t *testing.T) {
	n, err := startNaive(t.Context(), filepath.Join(t.TempDir(), "naive.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer n.stop()
	requests := Shuffle(Story(1), 1)
	answers, err := fire(t.Context(), n.url, requests, func(Request, http.Header) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Log(answers, n.errors)
	table := &sink.Table{Table: merge.NewTable(merge.Table{Name: "message_status", Key: []merge.KeyColumn{{Name: "message_id"}}}), Name: "message_status"}
	rows, err := rowsOf(t.Context(), n.db, table)
	if err != nil {
		t.Fatal(err)
	}
	doubled := 0
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		if len(rows[k]) > 1 {
			doubled++
		}
	}
	t.Logf("%d messages, %d doubled", len(rows), doubled)
}
