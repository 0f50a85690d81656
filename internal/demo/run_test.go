package demo

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var log bytes.Buffer
	r, err := Run(t.Context(), Options{Folder: t.TempDir(), Seed: 5, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK {
		t.Errorf("not every row is right: %+v", r.Tables)
	}
	if r.Hookfold.Answers[200] != r.Requests || len(r.Hookfold.Answers) != 1 {
		t.Errorf("answers %v to %d requests", r.Hookfold.Answers, r.Requests)
	}
	rows := map[string]int{"booking": kept + canceled, "message_status": messages, "user": users, "payment": users, "ticket": 110}
	for _, x := range r.Tables {
		if x.Hookfold != (Score{Right: rows[x.Table]}) {
			t.Errorf("%s: %+v, want %d right", x.Table, x.Hookfold, rows[x.Table])
		}
		if x.Naive.Right == x.Rows {
			t.Errorf("%s: the naive handler got every row right", x.Table)
		}
		if x.Late.Lost == 0 || len(x.Late.Examples) == 0 {
			t.Errorf("%s: nothing came late", x.Table)
		}
		if len(x.Sample) == 0 {
			t.Errorf("%s: no sample", x.Table)
		}
	}
	if text := strings.ToLower(log.String()); strings.Contains(text, "unique") || strings.Contains(text, "level=error") {
		t.Errorf("the server's log complains:\n%s", log.String())
	}
}
