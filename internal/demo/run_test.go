package demo

import (
	"log/slog"
	"os"
	"testing"
)

func TestRun(t *testing.T) {
	r, err := Run(t.Context(), Options{Folder: t.TempDir(), Seed: 1, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Tables {
		t.Logf("%s %+v", x.Table, x)
	}
	t.Logf("%+v", r)
}
