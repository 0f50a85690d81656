package cases

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/check"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/source"
)

// head is what is put before the config of a case.
const head = `version: 1
listen: 127.0.0.1:0
admin: 127.0.0.1:0
journal: "%s"
targets:
  db: %s
`

// world is a case at work on one engine: the real server in this process.
type world struct {
	*scenario
	t       testing.TB
	url     string // of the database itself
	ready   func(testing.TB)
	config  string // the whole config
	plan    *mapping.Plan
	options daemon.Options
	daemon  *daemon.Daemon
	log     logBuffer
	client  *http.Client
	// kept counts the deliveries that were answered with 2xx.
	kept atomic.Int64
}

// logBuffer collects what is logged.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// compile reads the config as serve does, and refuses what serve refuses.
func compile(text string) (*mapping.Plan, error) {
	cfg, problems := config.Parse("hookfold.yaml", []byte(text), config.Options{Presets: presets()})
	if problems.Err() != nil {
		return nil, problems
	}
	plan, problems := mapping.Compile(cfg)
	if problems.Err() != nil {
		return nil, problems
	}
	if report := check.Run(plan); report.Problems.Err() != nil {
		return nil, report.Problems
	}
	return plan, nil
}

func presets() (names []string) {
	for _, p := range source.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// prepare makes the database, and the config for it.
func (s *scenario) prepare(t testing.TB, on engine) (*world, error) {
	own := s.per[on.name]
	if own == nil {
		own = s.per[on.sql()]
	}
	if own != nil {
		of := *s
		of.outcome = *own
		s = &of
	}
	target, url, ready := on.open(t)
	w := &world{scenario: s, t: t, url: url, ready: ready}
	w.config = fmt.Sprintf(head, "sqlite:"+filepath.Join(t.TempDir(), "journal.db"), target) + s.config
	plan, err := compile(w.config)
	if err != nil {
		return nil, err
	}
	w.plan = plan
	for _, of := range []string{"", on.sql()} {
		if err := w.execute(s.schema[of]); err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
	}
	return w, nil
}

// start migrates, and starts the server.
func (w *world) start() error {
	o := w.options
	o.Log = slog.New(slog.NewTextHandler(&w.log, nil))
	d, err := daemon.Open(w.t.Context(), w.plan.Config, o)
	if err != nil {
		return err
	}
	w.daemon = d
	for _, target := range d.Plan().Targets() {
		tables := pipeline.Tables(d.Plan(), target)
		statements, err := d.Sink(target).Plan(w.t.Context(), tables)
		if err == nil {
			err = d.Sink(target).Execute(w.t.Context(), statements)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("migrate: %w", err), w.stop())
		}
	}
	w.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 64}, Timeout: patience}
	return d.Start(w.t.Context())
}

func (w *world) stop() error {
	if w.daemon == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), patience)
	defer cancel()
	if w.client != nil {
		w.client.CloseIdleConnections()
	}
	err := w.daemon.Stop(ctx)
	w.daemon = nil
	return err
}

// arrive makes one arrival happen.
func (w *world) arrive(a arrival) error {
	switch {
	case a.SQL != nil:
		script, ok := a.SQL[w.engineName()]
		if !ok {
			script = a.SQL[""]
		}
		return w.execute(script)
	case a.Retry:
		n, err := w.daemon.Journal().Retry(w.t.Context(), journal.Filter{State: journal.Dead})
		if err == nil && n == 0 {
			err = errors.New("nothing is dead that could be tried again")
		}
		return err
	case a.Replay:
		return w.replay()
	}
	status, body, err := w.request(a)
	if err != nil {
		return err
	}
	want, wantBody, exact := strings.Cut(a.Answer, " ")
	got := fmt.Sprint(status)
	right := slices.Contains(strings.Split(want, "|"), got) || want == "" && status/100 == 2
	if right && status/100 == 2 && a.Method == "" {
		w.kept.Add(1)
	}
	if !right || exact && body != wantBody {
		return fmt.Errorf("%s %s%s?%s is answered %s %q, not %s", a.Method, a.Source, a.Path, a.Query, got, body, a.Answer)
	}
	return nil
}

// replay takes the deliveries of the journal in once more.
func (w *world) replay() error {
	var all []*event.Delivery
	err := w.daemon.Journal().Scan(w.t.Context(), 0, func(d *event.Delivery) error {
		all = append(all, d)
		return nil
	})
	for _, d := range all {
		again := *d
		err = errors.Join(err, w.daemon.Append(w.t.Context(), &again))
		w.kept.Add(1)
	}
	return err
}

// execute runs statements of somebody else.
func (w *world) execute(script string) error {
	err := execute(w.t, w.url, script)
	if err == nil && w.ready != nil && strings.TrimSpace(script) != "" {
		w.ready(w.t)
	}
	return err
}

func (w *world) engineName() string {
	if strings.HasPrefix(w.url, "sqlite:") {
		return "sqlite"
	}
	return "postgres"
}

// bytes are the body as it is sent.
func (a *arrival) bytes() ([]byte, error) {
	body := []byte(a.Body)
	switch {
	case a.Raw != nil:
		body = []byte(*a.Raw)
	case a.RawBase64 != nil:
		body = a.RawBase64
	}
	if !a.Gzip {
		return body, nil
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(body); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

func (w *world) request(a arrival) (status int, answer string, err error) {
	body, err := a.bytes()
	if err != nil {
		return 0, "", err
	}
	if a.Method == "" {
		a.Method = http.MethodPost
	}
	url := "http://" + w.daemon.Addr() + "/in/" + a.Source + a.Path
	if a.Query != "" {
		url += "?" + a.Query
	}
	var reader io.Reader = bytes.NewReader(body)
	if a.Chunked {
		reader = io.MultiReader(reader) // its length is not seen
	}
	r, err := http.NewRequestWithContext(w.t.Context(), a.Method, url, reader)
	if err != nil {
		return 0, "", err
	}
	if a.Gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	if a.Sign != "" {
		if err := w.sign(a, r.Header, body); err != nil {
			return 0, "", err
		}
	}
	for name, value := range a.Headers {
		r.Header.Set(name, value)
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

func (w *world) sign(a arrival, h http.Header, body []byte) error {
	shift, err := time.ParseDuration(a.Sign)
	if err != nil {
		return err
	}
	as := a.Source
	if a.SignAs != "" {
		as = a.SignAs
	}
	if a.SignBody != "" {
		body = []byte(a.SignBody)
	}
	signer, ok := w.plan.Source(as).Source.(source.Signer)
	if !ok {
		return fmt.Errorf("%s does not sign", as)
	}
	return signer.Sign(h, body, time.Now().Add(shift))
}

// taken waits until every delivery was taken through the pipeline, and does not
// touch what waits.
func (w *world) taken() error {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	done := errors.New("taken")
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	_, err := w.daemon.Drain(inner, func(p daemon.Progress) {
		if p.Pending == 0 {
			stop(done)
		}
	})
	if err != nil && !errors.Is(context.Cause(inner), done) {
		return fmt.Errorf("take the deliveries: %w", err)
	}
	return nil
}

// judge waits until all is as it must be.
func (w *world) judge() error {
	if err := w.taken(); err != nil {
		return err
	}
	window := w.Window
	if window == 0 {
		window = 2 * patience
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), window)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		diff, err := w.differ()
		if err != nil || diff == "" {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New(diff)
		}
	}
}

func (w *world) differ() (string, error) {
	diff, err := w.compareRows(w.t, w.plan, w.url)
	if err != nil || diff != "" {
		return diff, err
	}
	if diff, err = w.differEntries(); err != nil || diff != "" {
		return diff, err
	}
	stats, err := w.daemon.Journal().Stats(w.t.Context())
	if err != nil {
		return "", err
	}
	want := w.kept.Load()
	if w.Kept != nil {
		want = int64(*w.Kept)
	}
	if stats.Deliveries != want {
		return fmt.Sprintf("the journal holds %d deliveries, not %d", stats.Deliveries, want), nil
	}
	return w.counted()
}

// differEntries compares what waits or is dead.
func (w *world) differEntries() (string, error) {
	entries, err := w.daemon.Journal().Entries(w.t.Context(), journal.Filter{})
	if err != nil {
		return "", err
	}
	return w.compareEntries(entries), nil
}

// counted compares what was counted and logged.
func (w *world) counted() (string, error) {
	for _, part := range w.Log {
		if !strings.Contains(w.log.String(), part) {
			return fmt.Sprintf("the log does not say %q", part), nil
		}
	}
	if w.Ties == nil && w.Replaced == nil {
		return "", nil
	}
	summary, err := w.daemon.Drain(w.t.Context(), nil)
	if err != nil {
		return "", err
	}
	stats := summary.Targets["db"]
	if w.Ties != nil && stats.Ties != *w.Ties {
		return fmt.Sprintf("%d ties are counted, not %d", stats.Ties, *w.Ties), nil
	}
	if w.Replaced != nil && stats.Replaced != *w.Replaced {
		return fmt.Sprintf("%d replaced texts are counted, not %d", stats.Replaced, *w.Replaced), nil
	}
	return "", nil
}

// complaints are words that no log may hold where nothing is at fault. A number
// alone may be part of a time.
var complaints = []string{"unique", "duplicate", "deadlock", "level=ERROR", "panic", "(23505", "SQLSTATE 23505", "40P01"}

// quiet tells of a complaint in a log.
func quiet(log string) error {
	for line := range strings.SplitSeq(log, "\n") {
		for _, c := range complaints {
			if strings.Contains(line, c) {
				return fmt.Errorf("the log complains: %s", line)
			}
		}
	}
	return nil
}

// writeFile writes a file into a new folder and returns its path.
func writeFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
