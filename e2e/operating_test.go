package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/ingest"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/source"
)

const operatingConfig = `
version: 1
listen: 127.0.0.1:0
admin: 127.0.0.1:0
journal: sqlite:hookfold.db
sources: {shop: {preset: http, verify: none, id: event.id, type: event.type, time: event.at}}
fetches:
  thing: {url: '"http://OTHERS/" + event.id', private: [OTHERS]}
lanes:
  thing: {from: shop, type: made, key: event.id, post: "http://OTHERS/thing", secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}
targets:
  db: "sqlite:rows.db"
  down: "postgres://nobody@127.0.0.1:1/none"
tables:
  thing: {target: db, key: {id: text}, columns: {name: text}, events: [{from: shop, type: made, key: {id: event.id}, set: {name: event.name}}]}
  current: {target: db, key: {id: text}, columns: {name: text}, events: [{from: shop, type: made, fetch: thing, key: {id: event.id}, version: [fetched_at], set: {name: "fetched.name"}}]}
  other: {target: down, key: {id: text}, columns: {name: text}, events: [{from: shop, type: made, key: {id: event.id}, set: {name: event.name}}]}
`

// TestMetricsAreDocumented compares what a server serves with the table of
// docs/operating.md.
func TestMetricsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Metrics")
	section, _, _ = strings.Cut(section, "Worth an alarm")
	var want []string
	for _, m := range regexp.MustCompile("`(hookfold_[a-z_]+)`").FindAllStringSubmatch(section, -1) {
		want = append(want, m[1])
	}
	slices.Sort(want)

	others := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"name":"b"}`) }))
	defer others.Close()
	dir := t.TempDir()
	file := writeFile(t, dir, "hookfold.yaml", strings.ReplaceAll(operatingConfig, "OTHERS", others.Listener.Addr().String()))
	s := start(t, dir, os.Environ(), "-c", file)
	for _, body := range []string{`{"type":"made","at":"2026-01-01T00:00:00Z","id":"a","name":"b"}`, `{"type":"else","at":"2026-01-01T00:00:00Z"}`} {
		resp, err := http.Post(s.Receive+"/in/shop", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	have, err := become(strings.Join(want, "\n"), func(ctx context.Context) (string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Admin+"/metrics", nil)
		if err != nil {
			return "", err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		var names []string
		for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
		slices.Sort(names)
		return strings.Join(names, "\n"), err
	})
	if err != nil {
		t.Errorf("%v. Served:\n%s\n\ndocumented:\n%s", err, have, strings.Join(want, "\n"))
	}
}

// TestLimitsAreDocumented keeps the numbers of docs/operating.md true.
func TestLimitsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("| body | `max_body`: %d MiB", ingest.DefaultMaxBody>>20),
		fmt.Sprintf("unpacks to %d MiB", source.MaxInflated>>20),
		fmt.Sprintf("| fields of a form | %d,000 |", source.MaxFormFields/1000),
		fmt.Sprintf("all requests together | %d MiB", ingest.DefaultMaxInHand>>20),
		fmt.Sprintf("| wait for the journal | %.0f s |", ingest.DefaultAppendTimeout.Seconds()),
		fmt.Sprintf("| elements of a list (`each`) | %d,000 |", mapping.MaxElements/1000),
		fmt.Sprintf("| config | %d MiB |", config.MaxSize>>20),
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/operating.md does not say %q", want)
		}
	}
}
