package cli

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal/sqlite"
)

// An export that is replayed into a new journal and exported again is the same,
// byte for byte and in its order, whatever the deliveries hold.
func TestAnExportIsReplayedTheSame(t *testing.T) {
	dir := t.TempDir()
	write := func(name, journal string) string {
		text := strings.ReplaceAll(contractConfig, "DIR/hookfold.db", "DIR/"+journal)
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	one, two := write("one.yaml", "one.db"), write("two.yaml", "two.db")
	j, err := sqlite.Open(filepath.Join(dir, "one.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) string {
		b := make([]byte, rnd.IntN(n))
		for i := range b {
			b[i] = byte(rnd.UintN(256))
		}
		return string(b)
	}
	var list []*event.Delivery
	for i := range 2500 {
		d := &event.Delivery{Source: "shop", Received: time.Date(2026, 1, 1, 0, 0, 0, rnd.IntN(1e9), time.UTC).Add(time.Duration(i) * time.Second)}
		switch i % 5 {
		case 0:
			d.Body = []byte(noise(200))
		case 1:
			d.Body = fmt.Appendf(nil, `{"id": "%d", "type":"thing.made",  "x": 1e400 , "x": "\ud800"}`, i)
		case 2:
			d.Body = fmt.Appendf(nil, "{\n\"id\":\"%d\"}\r\n", i)
			d.Header = http.Header{"X-A": {noise(9), "b"}, "X-B": {""}, "X-C": {}}
		case 3:
			d.Body, d.Path, d.Query = []byte{}, "/"+noise(9), noise(9)
		case 4:
			d.Body = fmt.Appendf(nil, `{"n":%d}`, i)
			d.Fetched = []event.Fetched{{Name: "thing", Status: 200, At: d.Received.Add(time.Nanosecond), Header: http.Header{"Etag": {`"1"`}}, Body: []byte(noise(50))}}
		}
		list = append(list, d)
	}
	if err := j.AppendAll(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	exported := func(config string) string {
		t.Helper()
		code, out, errOut := run(t, "export", "-c", config)
		if code != Fine {
			t.Fatalf("export: %d\n%s", code, errOut)
		}
		return out
	}
	want := exported(one)
	file := filepath.Join(dir, "all.ndjson")
	if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := run(t, "migrate", "-c", two, "--apply"); code != Fine {
		t.Fatal(errOut)
	}
	if code, _, errOut := run(t, "replay", "-c", two, file); code == Usage {
		t.Fatal(errOut)
	}
	if got := exported(two); got != want {
		a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Fatalf("line %d is\n%.300s\nand was\n%.300s", i+1, b[i], a[i])
			}
		}
		t.Fatalf("%d lines, %d before", len(b), len(a))
	}
}
