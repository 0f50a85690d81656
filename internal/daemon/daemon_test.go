package daemon

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/sink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const yaml = `
version: 1
listen: 127.0.0.1:0
admin: 127.0.0.1:0
journal: {url: "sqlite:%s", keep: 30d}
sources:
  shop:
    preset: http
    verify: {hmac: sha256, header: X-Signature, encoding: hex}
    secrets: [topsecret]
    id: event.id
    type: event.type
    time: event.at
targets:
  db: {url: "%s"}
tables:
  user:
    key: {id: text}
    columns: {name: text}
    events: [{from: shop, type: user, key: {id: event.user}, set: {name: event.name}}]
  payment:
    key: {id: text}
    columns:
      user_id: {type: text, references: user, missing: ensure}
      amount: numeric
      top: {type: int, merge: max}
      note: {type: text, scope: note}
    events:
      - {from: shop, type: note, key: {id: event.id}, set: {note: event.note}, if_missing: wait}
      - {from: shop, type: payment, key: {id: event.id}, set: {user_id: event.user, amount: event.amount, top: "event.?top"}}
`

type rig struct {
	*testing.T
	cfg    *config.Config
	log    *syncBuffer
	daemon *Daemon
	o      Options
	client *http.Client
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}
func (s *syncBuffer) String() string { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

func newRig(t *testing.T, url string) *rig {
	t.Helper()
	return newRigOf(t, fmt.Sprintf(yaml, filepath.Join(t.TempDir(), "journal.db"), url))
}

func newRigOf(t *testing.T, text string) *rig {
	t.Helper()
	cfg, problems := config.Parse("hookfold.yaml", []byte(text), config.Options{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, cfg: cfg, log: &syncBuffer{}}
	r.o.Log = slog.New(slog.NewTextHandler(r.log, nil))
	tr := &http.Transport{MaxIdleConnsPerHost: 64}
	r.client = &http.Client{Transport: tr, Timeout: 20 * time.Second}
	t.Cleanup(func() {
		r.stop()
		tr.CloseIdleConnections()
	})
	return r
}

func (r *rig) open() {
	r.Helper()
	d, err := Open(context.Background(), r.cfg, r.o)
	if err != nil {
		r.Fatal(err)
	}
	r.daemon = d
}

func (r *rig) migrate() {
	r.Helper()
	ctx := context.Background()
	s := r.daemon.Sink("db")
	plan, err := s.Plan(ctx, pipeline.Tables(r.daemon.Plan(), "db"))
	if err != nil {
		r.Fatal(err)
	}
	if err := s.Execute(ctx, plan); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) start() {
	r.Helper()
	r.open()
	if err := r.daemon.Start(context.Background()); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) stop() {
	r.Helper()
	if r.daemon == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := r.daemon.Stop(ctx); err != nil {
		r.Error(err)
	}
}

// post sends a signed delivery and returns the status, 0 for a failed send.
func (r *rig) post(body string) int {
	mac := hmac.New(sha256.New, []byte("topsecret"))
	mac.Write([]byte(body))
	req, err := http.NewRequest("POST", "http://"+r.daemon.Addr()+"/in/shop", strings.NewReader(body))
	if err != nil {
		return 0
	}
	req.Header.Set("X-Signature", hex.EncodeToString(mac.Sum(nil)))
	resp, err := r.client.Do(req)
	if err != nil {
		return 0
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode
}

func (r *rig) mustPost(body string) {
	r.Helper()
	if s := r.post(body); s != 200 {
		r.Fatalf("%s is answered %d; the log says:\n%s", body, s, r.log)
	}
}

func (r *rig) drain() Summary {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s, err := r.daemon.Drain(ctx, nil)
	if err != nil {
		r.Fatalf("%v; the log says:\n%s", err, r.log)
	}
	return s
}

// rows shows the live rows of a table: key: column/column.
func (r *rig) rows(table string) map[string]string {
	r.Helper()
	t := r.daemon.Plan().Table(table)
	rows, err := r.daemon.Sink("db").Read(context.Background(), &t.Table, nil)
	if err != nil {
		r.Fatal(err)
	}
	out := map[string]string{}
	for _, row := range rows {
		var cells []string
		for _, c := range row.Cells {
			cells = append(cells, c.Value.String())
		}
		out[string(row.Key)] = strings.Join(cells, "/")
	}
	return out
}

func (r *rig) admin(path string) (int, string) {
	r.Helper()
	resp, err := r.client.Get("http://" + r.daemon.AdminAddr() + path)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func payment(i, at int) string {
	return fmt.Sprintf(`{"id":"p%d","type":"payment","at":"2026-01-01T00:00:%02dZ","user":"u%d","amount":%d.50,"top":%d}`, i, at, i%10, at, at)
}

func databases(t *testing.T) map[string]func(testing.TB) string {
	return map[string]func(testing.TB) string{"sqlite": testdb.SQLite, "postgres": testdb.Schema}
}

// Through HTTP from 64 connections, shuffled and doubled.
func TestDeliveriesLandInTheDatabase(t *testing.T) {
	for name, url := range databases(t) {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, url(t))
			r.start()
			r.migrate()
			var all sync.WaitGroup
			for c := range 64 {
				all.Go(func() {
					for i := c; i < 320; i += 64 {
						for _, at := range []int{i % 5, (i + 3) % 5, (i + 1) % 5, (i + 3) % 5, (i + 4) % 5, (i + 2) % 5} {
							if s := r.post(payment(i, at)); s != 200 {
								t.Errorf("answered %d", s)
							}
						}
					}
				})
			}
			all.Go(func() { r.mustPost(`{"id":"x","type":"user","at":"2026-01-01T00:00:00Z","user":"u1","name":"Ann"}`) })
			all.Wait()
			s := r.drain()
			payments, users := r.rows("payment"), r.rows("user")
			if len(payments) != 320 || payments["p7"] != "u7/4.5/4/NULL" {
				t.Errorf("%d payments, p7 is %s; %+v\n%s", len(payments), payments["p7"], s, r.log)
			}
			if len(users) != 10 || users["u1"] != "Ann" || users["u2"] != "NULL" {
				t.Errorf("users: %v", users)
			}
			if got := s.Targets["db"]; got.Settled != 320*6+1 || s.Dead != 0 || s.Waiting != 0 {
				t.Errorf("%+v", s)
			}
			if strings.Contains(r.log.String(), "nique") {
				t.Errorf("a unique violation in the log: %s", r.log)
			}
		})
	}
}

func TestTruncatedJSONIsKeptAndDead(t *testing.T) {
	r := newRig(t, testdb.SQLite(t))
	r.start()
	r.migrate()
	r.mustPost(`{"id":"p1","ty`)
	r.mustPost(payment(1, 1))
	if s := r.drain(); s.Dead != 1 || s.Targets["db"].Settled != 1 {
		t.Errorf("%+v", s)
	}
	dead, err := r.daemon.Journal().Entries(context.Background(), journal.Filter{State: journal.Dead})
	if err != nil || len(dead) != 1 || dead[0].Ref != (event.Ref{Position: 1, Index: event.WholeDelivery}) {
		t.Fatalf("%+v, %v", dead, err)
	}
	if d, err := r.daemon.Journal().Get(context.Background(), 1); err != nil || string(d.Body) != `{"id":"p1","ty` {
		t.Errorf("kept as %q, %v", d.Body, err)
	}
}

func TestATargetThatIsDownAtStartDoesNotStopIntake(t *testing.T) {
	url := testdb.Schema(t)
	r := newRig(t, url)
	var down atomic.Bool
	down.Store(true)
	r.o.Sink = func(_ string, s sink.Sink) sink.Sink { return &fickle{Sink: s, down: &down} }
	r.start()
	for i := range 20 {
		r.mustPost(payment(i, 1))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.daemon.Drain(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("drained a target that is down: %v", err)
	}
	status, body := r.admin("/readyz")
	var ready Readiness
	if err := json.Unmarshal([]byte(body), &ready); err != nil {
		t.Fatal(err)
	}
	if status != 200 || !ready.Ready || !ready.Journal.OK || len(ready.Targets) != 1 || ready.Targets[0].Up || ready.Targets[0].Pending != 20 || !strings.HasSuffix(ready.Targets[0].Error, "connection refused") {
		t.Errorf("%d %s", status, body)
	}
	down.Store(false)
	r.migrate()
	r.drain()
	if n := len(r.rows("payment")); n != 20 {
		t.Errorf("%d rows", n)
	}
}

// fickle is a sink whose database can be made to go away.
type fickle struct {
	sink.Sink
	down  *atomic.Bool
	after func() // called between Apply and the news of it
}

var errRefused = &sink.Error{Action: sink.Retry, Message: "connection refused"}

func (f *fickle) Apply(ctx context.Context, b *sink.Batch) (*sink.Result, error) {
	if f.down.Load() {
		return nil, errRefused
	}
	res, err := f.Sink.Apply(ctx, b)
	if err == nil && f.after != nil {
		f.after()
		return nil, errRefused // the news never came
	}
	return res, err
}

func (f *fickle) Inspect(ctx context.Context, t *sink.Table) (*sink.Live, error) {
	if f.down.Load() {
		return nil, errRefused
	}
	return f.Sink.Inspect(ctx, t)
}

func (f *fickle) Ping(ctx context.Context) error {
	if f.down.Load() {
		return errRefused
	}
	return f.Sink.Ping(ctx)
}

func TestACrashBetweenApplyAndDoneRedeliversTheSameRows(t *testing.T) {
	for name, url := range databases(t) {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, url(t))
			r.open()
			r.migrate()
			r.stop()
			var down atomic.Bool
			applied := make(chan struct{})
			var once sync.Once
			r.o.Sink = func(_ string, s sink.Sink) sink.Sink {
				return &fickle{Sink: s, down: &down, after: func() { down.Store(true); once.Do(func() { close(applied) }) }}
			}
			r.start()
			for i := range 5 {
				r.mustPost(payment(i, 3))
			}
			<-applied
			before := r.rows("payment")
			r.stop()
			r.o.Sink = nil
			r.start()
			r.mustPost(payment(0, 2)) // late
			r.drain()
			after := r.rows("payment")
			for k, v := range before {
				if after[k] != v {
					t.Errorf("%s was %s, is %s", k, v, after[k])
				}
			}
			if len(before) == 0 || len(after) != 5 {
				t.Errorf("%d rows before, %d after", len(before), len(after))
			}
		})
	}
}

func TestStopUnderLoadAndRestartLosesNothingAcknowledged(t *testing.T) {
	r := newRig(t, testdb.SQLite(t))
	r.start()
	r.migrate()
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	var n atomic.Int64
	enough := make(chan struct{})
	var all sync.WaitGroup
	for c := range 16 {
		all.Go(func() {
			for i := c; ; i += 16 {
				if r.post(payment(i, 1)) != 200 {
					return
				}
				mu.Lock()
				acknowledged[fmt.Sprint("p", i)] = true
				mu.Unlock()
				if n.Add(1) == 300 {
					close(enough)
				}
			}
		})
	}
	<-enough
	r.stop()
	all.Wait()
	r.start()
	r.drain()
	rows := r.rows("payment")
	for id := range acknowledged {
		if rows[id] == "" {
			t.Errorf("%s was acknowledged and is lost", id)
		}
	}
	if len(acknowledged) < 300 {
		t.Errorf("%d acknowledged", len(acknowledged))
	}
}

// sick is a journal that fails to take deliveries.
type sick struct {
	journal.Journal
	err atomic.Pointer[error]
}

func (s *sick) Append(ctx context.Context, d *event.Delivery) error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return s.Journal.Append(ctx, d)
}

func (s *sick) Healthy() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return s.Journal.Healthy()
}

func TestAJournalThatFailsIs503AndNotReady(t *testing.T) {
	r := newRig(t, testdb.SQLite(t))
	j := &sick{}
	r.o.Journal = func(real journal.Journal) journal.Journal { j.Journal = real; return j }
	r.start()
	full := error(journal.ErrFull)
	j.err.Store(&full)
	if s := r.post(payment(1, 1)); s != 503 {
		t.Errorf("answered %d", s)
	}
	if status, body := r.admin("/readyz"); status != 503 || !strings.Contains(body, `"error":"the journal is full"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := r.admin("/healthz"); status != 200 {
		t.Errorf("%d", status)
	}
	j.err.Store(nil)
	r.mustPost(payment(1, 1))
	if status, _ := r.admin("/readyz"); status != 200 {
		t.Errorf("%d", status)
	}
}

func TestAdmin(t *testing.T) {
	r := newRig(t, testdb.SQLite(t))
	r.start()
	r.migrate()
	r.mustPost(payment(1, 1))
	r.mustPost(`{"id":`)
	r.drain()
	if status, body := r.admin("/readyz"); status != 200 || !strings.Contains(body, `"dead":1`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := r.admin("/metrics"); status != 200 || !strings.Contains(body, `hookfold_requests_total{source="shop",status="200"} 2`) || !strings.Contains(body, "hookfold_dead_events 1") ||
		!strings.Contains(body, `hookfold_events_total{state="settled",target="db"} 1`) || !strings.Contains(body, `hookfold_pending_deliveries{target="db"} 0`) {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := r.admin("/nothing"); status != 404 {
		t.Errorf("%d", status)
	}
	resp, err := r.client.Post("http://"+r.daemon.AdminAddr()+"/healthz", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 405 || resp.Header.Get("Allow") == "" {
		t.Errorf("%d", resp.StatusCode)
	}
}

func TestSecretsAreNotInTheJournal(t *testing.T) {
	r := newRig(t, testdb.SQLite(t))
	r.start()
	body := payment(1, 1)
	mac := hmac.New(sha256.New, []byte("topsecret"))
	mac.Write([]byte(body))
	req, _ := http.NewRequest("POST", "http://"+r.daemon.Addr()+"/in/shop", strings.NewReader(body))
	req.Header.Set("X-Signature", hex.EncodeToString(mac.Sum(nil)))
	req.Header.Set("X-Debug", "key=topsecret")
	req.Header.Set("Authorization", "Bearer abc")
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	d, err := r.daemon.Journal().Get(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if d.Header.Get("X-Debug") != "" || d.Header.Get("Authorization") != "" || d.Header.Get("X-Signature") == "" {
		t.Errorf("kept: %v", d.Header)
	}
}

func TestAppendReplaysWithoutListening(t *testing.T) {
	r := newRig(t, testdb.SQLite(t))
	r.o.NoListen = true
	r.start()
	r.migrate()
	for i := range 1000 {
		if err := r.daemon.Append(context.Background(), &event.Delivery{Source: "shop", Body: []byte(payment(i, 1))}); err != nil {
			t.Fatal(err)
		}
	}
	var last Progress
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s, err := r.daemon.Drain(ctx, func(p Progress) { last = p })
	if err != nil || s.Targets["db"].Settled != 1000 || last.Pending != 0 {
		t.Errorf("%+v, %+v, %v", s, last, err)
	}
	if r.daemon.Addr() != "" || r.daemon.Failed() != nil {
		t.Error("it listens")
	}
	if err := r.daemon.Append(context.Background(), &event.Delivery{Source: "shpo"}); err == nil || !strings.Contains(err.Error(), "shpo") {
		t.Errorf("an unknown source: %v", err)
	}
}

// What waits is tried once more before Drain returns, and told if it still
// waits.
func TestDrainLandsWhatWaits(t *testing.T) {
	r := newRig(t, testdb.SQLite(t))
	r.start()
	r.migrate()
	r.mustPost(`{"id":"p1","type":"note","at":"2026-01-01T00:00:00Z","note":"hi"}`)
	r.mustPost(`{"id":"p2","type":"note","at":"2026-01-01T00:00:00Z","note":"hi"}`)
	if s := r.drain(); s.Waiting != 2 || s.Targets["db"].Waited != 2 {
		t.Errorf("%+v", s)
	}
	r.mustPost(payment(1, 1))
	if s := r.drain(); s.Waiting != 1 || s.Targets["db"].Settled != 2 {
		t.Errorf("%+v", s)
	}
	// The row is inserted by somebody else, so nothing wakes what waits.
	if err := r.daemon.Sink("db").Execute(context.Background(), []string{"insert into payment (id) values ('p2')"}); err != nil {
		t.Fatal(err)
	}
	if s := r.drain(); s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
	if diff := cmp.Diff(map[string]string{"p1": "u1/1.5/1/hi", "p2": "NULL/NULL/NULL/hi"}, r.rows("payment")); diff != "" {
		t.Error(diff)
	}
}

func TestStartFailsWhole(t *testing.T) {
	r := newRig(t, testdb.SQLite(t))
	r.start()
	other := newRig(t, testdb.SQLite(t))
	other.cfg.Listen = r.daemon.Addr()
	other.open()
	err := other.daemon.Start(context.Background())
	if err == nil || !strings.Contains(err.Error(), "Is another server running?") {
		t.Errorf("Start: %v", err)
	}
	if again := other.daemon.Start(context.Background()); !errors.Is(again, err) && again != err {
		t.Errorf("a second Start: %v", again)
	}
	// Its journal is free again.
	other.cfg.Listen = "127.0.0.1:0"
	other.start()
}

func TestAConfigThatIsWrongDoesNotOpen(t *testing.T) {
	r := newRig(t, "sqlite:x.db")
	r.cfg.Targets[0].URL.Text = "postgres://localhost:notaport/x"
	if _, err := Open(context.Background(), r.cfg, r.o); err == nil || !strings.Contains(err.Error(), "target db") {
		t.Errorf("%v", err)
	}
	r.cfg.Targets[0].URL.Text = testdb.SQLite(t)
	r.start() // the journal was closed again
}

func TestTheOldIsRemoved(t *testing.T) {
	r := newRig(t, testdb.SQLite(t))
	r.o.RetainEvery = 5 * time.Millisecond
	r.cfg.Journal.Keep = time.Hour
	removed := make(chan journal.Removed, 100)
	r.o.Journal = func(j journal.Journal) journal.Journal { return &retaining{j, removed} }
	r.start()
	r.migrate()
	old := &event.Delivery{Source: "shop", Body: []byte(payment(1, 1)), Received: time.Now().Add(-2 * time.Hour).UTC()}
	if err := r.daemon.Append(context.Background(), old); err != nil {
		t.Fatal(err)
	}
	r.drain()
	for x := range removed {
		if x.Deliveries == 1 {
			break
		}
	}
	if diff := cmp.Diff(map[string]string{"p1": "u1/1.5/1/NULL"}, r.rows("payment")); diff != "" {
		t.Error(diff)
	}
}

type retaining struct {
	journal.Journal
	removed chan journal.Removed
}

func (r *retaining) Retain(ctx context.Context, keep journal.Retention, now time.Time) (journal.Removed, error) {
	x, err := r.Journal.Retain(ctx, keep, now)
	select {
	case r.removed <- x:
	default:
	}
	return x, err
}
