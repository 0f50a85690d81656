package demo

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/witness"
	"github.com/hookfold/hookfold/merge"
)

func TestStoryIsWhatItSays(t *testing.T) {
	story := Story(1)
	bySource := map[string]int{}
	for _, r := range story {
		bySource[r.Source]++
	}
	if bySource["calendly"] != 5*kept+6*canceled || bySource["shop"] != 500 || bySource["whatsapp"] < 300 {
		t.Errorf("requests by source: %v", bySource)
	}
	if got := len(Shuffle(story, 1)); got != 2*len(story) {
		t.Errorf("%d requests after doubling %d", got, len(story))
	}
}

// The naive handler is no straw man: requests that come one by one, in order
// and once, it gets right. Only the reschedule, whose cancel follows the new
// booking, it cannot.
func TestNaiveIsRightInOrder(t *testing.T) {
	dir := t.TempDir()
	f := Files{Folder: dir, Config: filepath.Join(dir, "hookfold.yaml"), Rows: filepath.Join(dir, "rows.db"), Naive: filepath.Join(dir, "naive.db")}
	plan, err := writeConfig(f)
	if err != nil {
		t.Fatal(err)
	}
	n, err := startNaive(t.Context(), f.Naive)
	if err != nil {
		t.Fatal(err)
	}
	defer n.stop()
	var told []*event.Delivery
	// WhatsApp's own order is none: its statuses are left out.
	for _, q := range Story(1) {
		if q.Source == "whatsapp" {
			continue
		}
		told = append(told, &event.Delivery{Position: event.Position(len(told) + 1), Source: q.Source, Body: q.Body, Header: http.Header{}, Received: time.Now()})
		status, _, err := once(t.Context(), http.DefaultClient, n.url, q, unsigned)
		if err != nil || status != http.StatusOK {
			t.Fatalf("%s: %d %v", q.About, status, err)
		}
	}
	want, err := Read(plan, told)
	if err != nil {
		t.Fatal(err)
	}
	db, err := witness.Open("sqlite:" + f.Naive)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, name := range []string{"user", "payment", "ticket", "booking"} {
		table := plan.Table(name)
		v, err := db.Judge(t.Context(), &table.Table, merge.Rows(table.Table.Table, want.Changes[table.Table.Table]))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case name == "booking" && (v.Right != canceled || v.Wrong != kept || v.Diffs[merge.NewKey(lead(0))] != "status is canceled, not active"):
			t.Errorf("booking: %+v", v)
		case name != "booking" && !v.OK():
			t.Errorf("%s: %+v", name, v.Diffs)
		}
	}
}
