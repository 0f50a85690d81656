package main

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"net/http"
)

// The load is what it says: sizes, shares of doubles and of what is out of order,
// signatures, and rows.
func TestWorkload(t *testing.T) {
	w := newWorkload(6000, 0, 1)
	if len(w.deliveries) != 6000 {
		t.Fatalf("%d deliveries", len(w.deliveries))
	}
	newest, seen, late, doubled := map[string]int64{}, map[row]bool{}, 0, 0
	for _, d := range w.deliveries {
		if n := len(d.body); n < 1200 || n > 1500 || !json.Valid(d.body) {
			t.Fatalf("a body of %d bytes: %s", n, d.body)
		}
		got, err := parse(d.said.table, d.body)
		if err != nil || got != d.said {
			t.Fatalf("it says %+v, want %+v: %v", got, d.said, err)
		}
		k := d.said.table + d.said.key
		switch {
		case seen[d.said]:
			doubled++
		case d.said.at < newest[k]:
			late++
		}
		seen[d.said], newest[k] = true, max(newest[k], d.said.at)
	}
	t.Logf("%d of %d are doubled, %d come after a newer one of their row, %d rows", doubled, len(w.deliveries), late, len(newest))
	if doubled != 1000 || late == 0 {
		t.Errorf("%d doubled, want 1000; %d late, want some", doubled, late)
	}
	hot := 0
	for _, d := range newWorkload(6000, .9, 1).deliveries {
		if strings.HasSuffix(d.said.key, "HOT") {
			hot++
		}
	}
	if hot < 5200 || hot > 5600 {
		t.Errorf("%d of 6000 are about the hot row, want 90 %%", hot)
	}
}

func TestLoad(t *testing.T) {
	w := newWorkload(500, 0, 1)
	verified := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := receive(r); err != nil {
			t.Error(err)
		}
		verified++
		null(w, r)
	}))
	defer s.Close()
	got, err := load(strings.TrimPrefix(s.URL, "http://"), w, shape{connections: 1})
	if err != nil || len(got.deliveries) != 500 || verified != 500 || len(got.latencies) != 500 {
		t.Errorf("%d sent, %d verified, %d latencies: %v", len(got.deliveries), verified, len(got.latencies), err)
	}
	if rows := want(got.deliveries); len(rows) == 0 {
		t.Error("nothing to be judged")
	}
}

func TestReport(t *testing.T) {
	r := &report{runs: 3}
	runs := func(x ...float64) (out []run) {
		for _, n := range x {
			out = append(out, run{rate: n, duration: time.Second})
		}
		return out
	}
	got := map[string][]run{"ours": runs(10, 30, 20), "naive": runs(10, 10, 10)}
	r.ratio("x", got, "naive", rate, atLeast, 2)
	if !r.ok() {
		t.Errorf("2 is at least 2: %+v", r.lines)
	}
	r.ratio("x", got, "naive", rate, atMost, 1.9)
	if r.ok() {
		t.Errorf("2 is not at most 1.9: %+v", r.lines)
	}
}
