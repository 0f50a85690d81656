package run

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/lane"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/journal/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is somebody's code. It checks that each key is served one at a time
// and in order, knows events again, and answers as it is told to.
type receiver struct {
	mu      sync.Mutex
	busy    map[string]string // by key, the id at work
	seen    map[string]bool   // ids that are through
	order   map[string][]int64
	faults  []string
	calls   int
	changed chan struct{}
	// answer tells what is answered; nil lets everything through.
	answer func(ctx context.Context, m *lane.Message) lane.Answer
}

func newReceiver() *receiver {
	return &receiver{busy: map[string]string{}, seen: map[string]bool{}, order: map[string][]int64{}, changed: make(chan struct{}, 1)}
}

func (x *receiver) Deliver(ctx context.Context, m *lane.Message) lane.Answer {
	x.mu.Lock()
	x.calls++
	if id := x.busy[m.Key]; id != "" {
		x.faults = append(x.faults, fmt.Sprintf("key %s: %s while %s is at work", m.Key, m.ID(), id))
	}
	x.busy[m.Key] = m.ID()
	answer := x.answer
	x.mu.Unlock()
	a := lane.Answer{OK: true}
	if answer != nil {
		a = answer(ctx, m)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.busy[m.Key] = ""
	if seq := lane.Sequence(m.Event.Ref()); a.OK && !x.seen[m.ID()] {
		x.seen[m.ID()] = true
		if of := x.order[m.Key]; len(of) > 0 && of[len(of)-1] >= seq {
			x.faults = append(x.faults, fmt.Sprintf("key %s: %d after %d", m.Key, seq, of[len(of)-1]))
		}
		x.order[m.Key] = append(x.order[m.Key], seq)
	}
	signal(x.changed)
	return a
}

// wait waits until so many events are through.
func (x *receiver) wait(t *testing.T, n int) {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		x.mu.Lock()
		got := len(x.seen)
		x.mu.Unlock()
		if got >= n {
			return
		}
		select {
		case <-x.changed:
		case <-late:
			t.Fatalf("%d of %d events are through", got, n)
		}
	}
}

func (x *receiver) check(t *testing.T) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.faults {
		t.Error(f)
	}
}

// rig is a lane on a journal.
type rig struct {
	*testing.T
	o       Options
	file    string
	journal *sqlite.Journal
	runner  *Runner
	x       *receiver
	sent    int
}

const laneConfig = `
version: 1
sources: {shop: {preset: http, verify: none, id: event.id, type: event.type, time: event.at}}
lanes: {l: {from: shop, when: 'event.?skip.orValue(false) == false', key: event.key, %spost: "http://localhost/x", secret: none}}
`

// planned compiles the config with more of the lane.
func planned(t testing.TB, extra string) *mapping.Plan {
	t.Helper()
	cfg, problems := config.Parse("f.yaml", fmt.Appendf(nil, laneConfig, extra), config.Options{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	plan, problems := mapping.Compile(cfg)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return plan
}

func newRig(t *testing.T, extra string) *rig {
	t.Helper()
	plan := planned(t, extra)
	l := plan.Lane("l")
	r := &rig{T: t, file: filepath.Join(t.TempDir(), "j.db"), x: newReceiver()}
	r.o = Options{
		Name: "l", Consumer: l.Consumer(), Source: "shop", Events: l.Source.Events,
		Order:   func(e *event.Event) (mapping.Ordered, bool, string) { return plan.Order(l, e) },
		Deliver: r.x,
		Lines:   lane.Options{Concurrency: 8, ByVersion: l.Config.ByVersion, Hold: l.Config.Hold},
		Policy:  lane.Policy{Retry: -1, Pauses: pipeline.Backoff{First: time.Millisecond, Most: 20 * time.Millisecond}},
		Timeout: 100 * time.Millisecond, Guard: true,
		Down: pipeline.Backoff{First: time.Millisecond, Most: 10 * time.Millisecond}, Visible: time.Millisecond, Poll: 5 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(testWriter{t}, nil)),
	}
	r.open()
	t.Cleanup(func() {
		r.stop()
		if err := r.journal.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

func (r *rig) open() {
	r.Helper()
	j, err := sqlite.Open(r.file, sqlite.Options{})
	if err != nil {
		r.Fatal(err)
	}
	r.journal, r.o.Journal = j, j
}

func (r *rig) start() {
	r.Helper()
	r.runner = New(r.o)
	if err := r.runner.Start(r.Context()); err != nil {
		r.Fatal(err)
	}
}

// stop stops the runner as it should be; cut takes it away in the middle.
func (r *rig) stop() {
	r.Helper()
	if r.runner == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.runner.Stop(ctx); err != nil {
		r.Error(err)
	}
	r.runner = nil
}

func (r *rig) cut() {
	r.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = r.runner.Stop(ctx) // what it could not record comes again
	r.runner = nil
}

func (r *rig) send(format string, args ...any) event.Position {
	r.Helper()
	d := &event.Delivery{Source: "shop", Body: fmt.Appendf(nil, format, args...), Received: time.Now().UTC()}
	if err := r.journal.Append(r.Context(), d); err != nil {
		r.Fatal(err)
	}
	return d.Position
}

// events sends n events over so many keys.
func (r *rig) events(n, keys int) {
	r.Helper()
	for range n {
		r.send(`{"id":"e%d","type":"t","at":"2026-01-01T00:00:00Z","key":"k%d"}`, r.sent, r.sent%keys)
		r.sent++
	}
}

// until waits until something holds.
func (r *rig) until(what string, f func() bool) {
	r.Helper()
	late := time.After(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-late:
			r.Fatal("it never came to be that " + what)
		}
	}
}

func (r *rig) entries(f journal.Filter) []journal.Entry {
	r.Helper()
	f.Consumer = r.o.Consumer
	es, err := r.journal.Entries(context.Background(), f)
	if err != nil {
		r.Fatal(err)
	}
	return es
}

// done waits until nothing is left to do.
func (r *rig) done() {
	r.Helper()
	r.until("all is done", func() bool {
		n, _, err := r.runner.Lag(context.Background())
		return err == nil && n == 0 && len(r.entries(journal.Filter{State: journal.Waiting})) == 0
	})
}

// Failures by chance, slow keys, and a lane that is cut off in the middle again
// and again: in order, one at a time, and nothing is lost.
func TestOrderUnderFailuresAndRestarts(t *testing.T) {
	r := newRig(t, "")
	r.o.Ahead = journal.Limit{Deliveries: 40, Bytes: 1 << 20} // so that stuck keys have to be stored
	r.o.Batch = journal.Limit{Deliveries: 4, Bytes: 1 << 20}
	r.o.Lines.Page = 3
	r.o.Timeout = 20 * time.Millisecond
	random := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	r.x.answer = func(ctx context.Context, m *lane.Message) lane.Answer {
		mu.Lock()
		n := random.IntN(10)
		mu.Unlock()
		if m.Key == "k3" {
			n -= 6
		}
		switch {
		case n < 1:
			return lane.Answer{Reason: "answered 500"}
		case n == 1:
			return lane.Answer{Busy: true, Reason: "answered 503"}
		case n == 2:
			return lane.Answer{Down: true, Reason: "connection refused"}
		case n == 3: // slow
			select {
			case <-time.After(2 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		return lane.Answer{OK: true}
	}
	r.start()
	for range 6 {
		r.events(100, 16)
		r.cut()
		r.start()
	}
	r.x.wait(t, r.sent)
	r.done()
	r.x.check(t)
}

// A head that is stuck holds its key and no other, becomes visible, and goes on
// when it can.
func TestAStuckKeyHoldsOnlyItself(t *testing.T) {
	r := newRig(t, "")
	r.o.Ahead = journal.Limit{Deliveries: 16, Bytes: 1 << 20}
	r.o.Batch = journal.Limit{Deliveries: 4, Bytes: 1 << 20}
	r.o.Lines.Page = 3
	var mu sync.Mutex
	ill := true
	r.x.answer = func(_ context.Context, m *lane.Message) lane.Answer {
		mu.Lock()
		defer mu.Unlock()
		if ill && m.Key == "k0" {
			return lane.Answer{Reason: "answered 500: ill"}
		}
		return lane.Answer{OK: true}
	}
	r.start()
	r.events(200, 4)
	r.x.wait(t, 150)
	r.until("all of the key are entries", func() bool { return len(r.entries(journal.Filter{Key: "k0"})) == 50 })
	n, _, err := r.runner.Lag(t.Context())
	for ; n > 0 && err == nil; n, _, err = r.runner.Lag(t.Context()) {
	}
	all := r.entries(journal.Filter{})
	if len(all) != 50 || all[0].Reason != "answered 500: ill" || all[0].Attempts == 0 || all[0].On != "" || all[1].On != "lane l key k0" || all[1].Attempts != 0 {
		t.Errorf("%d entries, %+v", len(all), all[:min(2, len(all))])
	}
	if s := r.runner.State(); s.Stuck != 1 || s.Dead != 0 {
		t.Errorf("%+v", s)
	}
	r.stop()
	r.start()
	mu.Lock()
	ill = false
	mu.Unlock()
	r.x.wait(t, 200)
	r.done()
	r.x.check(t)
}

// After its time a head is dead, and a person decides.
func TestAPersonDecides(t *testing.T) {
	for _, name := range []string{"skip", "park", "retry", "by itself"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "")
			r.o.Policy.Retry, r.o.Policy.Parks = 10*time.Millisecond, name == "by itself"
			var mu sync.Mutex
			ill := true
			r.x.answer = func(_ context.Context, m *lane.Message) lane.Answer {
				mu.Lock()
				defer mu.Unlock()
				if ill && m.Event.ID == "e0" {
					return lane.Answer{Reason: "answered 422"}
				}
				return lane.Answer{OK: true}
			}
			r.start()
			r.events(10, 2)
			r.x.wait(t, 5)
			r.until("it is dead", func() bool {
				es := r.entries(journal.Filter{State: journal.Dead})
				return len(es) == 1 && es[0].ID == "e0" && strings.Contains(es[0].Reason, "answered 422 (")
			})
			filter := journal.Filter{Consumer: r.o.Consumer, State: journal.Dead}
			var err error
			switch name {
			case "skip":
				_, err = r.journal.Drop(t.Context(), filter)
			case "park":
				_, err = r.journal.Park(t.Context(), filter)
			case "retry":
				mu.Lock()
				ill = false
				mu.Unlock()
				_, err = r.journal.Retry(t.Context(), filter)
			}
			if err != nil {
				t.Fatal(err)
			}
			want := 9
			if name == "retry" {
				want = 10
			}
			r.x.wait(t, want)
			r.done()
			r.x.check(t)
			dead := r.entries(journal.Filter{State: journal.Dead})
			if parked := name == "park" || name == "by itself"; (len(dead) == 1) != parked {
				t.Errorf("dead: %+v", dead)
			}
			if len(dead) == 0 {
				return
			}
			// What was set aside comes when a person asks for it.
			mu.Lock()
			ill = false
			mu.Unlock()
			if _, err := r.journal.Retry(t.Context(), filter); err != nil {
				t.Fatal(err)
			}
			r.until("it is through", func() bool { r.x.mu.Lock(); defer r.x.mu.Unlock(); return r.x.seen["l/e0"] })
			r.done()
		})
	}
}

// An event that is sent twice goes once; what the lane cannot read is dead, holds
// nobody, and is read again when a person asks.
func TestDoublesAndWhatCannotBeRead(t *testing.T) {
	r := newRig(t, "")
	r.start()
	for range 3 {
		r.send(`{"id":"a","key":"k"}`)
	}
	r.send(`{"id":"b"}`)
	r.send(`{"id":"c","skip":true,"key":"k"}`)
	r.send(`{"id":`)
	r.send(`{"id":"d","key":"k"}`)
	r.x.wait(t, 2)
	r.done()
	r.x.check(t)
	if r.x.calls != 2 {
		t.Errorf("%d calls", r.x.calls)
	}
	dead := r.entries(journal.Filter{State: journal.Dead})
	if len(dead) != 2 || !strings.Contains(dead[0].Reason, "event has no key") || dead[1].Ref.Index != event.WholeDelivery {
		t.Fatalf("%+v", dead)
	}
	// The config is mended: now the key is the id.
	r.stop()
	order := r.o.Order
	r.o.Order = func(e *event.Event) (mapping.Ordered, bool, string) {
		if o, wanted, reason := order(e); reason == "" {
			return o, wanted, ""
		}
		return mapping.Ordered{Key: e.ID}, true, ""
	}
	r.start()
	if n, err := r.journal.Retry(t.Context(), journal.Filter{Consumer: r.o.Consumer}); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	r.x.wait(t, 3)
	r.done()
	if dead := r.entries(journal.Filter{}); len(dead) != 1 || dead[0].Ref.Index != event.WholeDelivery || dead[0].State != journal.Dead || dead[0].Attempts != 2 {
		t.Errorf("%+v", dead)
	}
}

// While nobody can be reached the lane pauses as a whole, no try counts, and no
// event dies. 410 pauses it until a person resumes it.
func TestTheWholeLanePauses(t *testing.T) {
	r := newRig(t, "")
	r.o.Policy.Retry = 0
	var mu sync.Mutex
	now := lane.Answer{Down: true, Reason: "localhost cannot be reached"}
	r.x.answer = func(context.Context, *lane.Message) lane.Answer { mu.Lock(); defer mu.Unlock(); return now }
	set := func(a lane.Answer) { mu.Lock(); defer mu.Unlock(); now = a }
	r.start()
	r.events(20, 4)
	r.until("it is known", func() bool { return r.runner.Health().Error == "localhost cannot be reached" })
	set(lane.Answer{Gone: true, Reason: "answered 410"})
	r.until("it is paused", func() bool { return r.runner.State().Paused == "answered 410" })
	r.until("nothing is under way", func() bool { return r.runner.State().Busy == 0 })
	r.stop()
	calls := r.x.calls
	r.start()
	r.events(4, 4)
	if s := r.runner.State(); s.Paused != "answered 410" || r.runner.Health().Up {
		t.Errorf("after a restart: %+v", s)
	}
	set(lane.Answer{OK: true})
	if err := r.journal.SetMark(t.Context(), r.o.Consumer+lane.PausedMark, ""); err != nil {
		t.Fatal(err)
	}
	r.x.wait(t, 24)
	r.done()
	r.x.check(t)
	if r.x.calls != calls+24 {
		t.Errorf("%d calls for 24 events: some were made while it was paused", r.x.calls-calls)
	}
	if h := r.runner.Health(); !h.Up {
		t.Errorf("%+v", h)
	}
}

// A lane that is new is not given what was there before it, unless it asks.
func TestANewLaneBeginsNow(t *testing.T) {
	for _, history := range []bool{false, true} {
		r := newRig(t, "")
		r.o.History = history
		r.events(5, 2)
		r.start()
		r.done()
		r.events(5, 2)
		want := 5
		if history {
			want = 10
		}
		r.x.wait(t, want)
		r.stop()
		r.start() // and it stays so
		r.done()
		if r.x.calls != want {
			t.Errorf("history %v: %d calls", history, r.x.calls)
		}
		r.x.check(t)
	}
}

// What is cut off may be at work for its timeout; until then nothing begins.
func TestNothingBeginsWhileAnOldTryMayBeAtWork(t *testing.T) {
	r := newRig(t, "")
	r.o.Timeout = 300 * time.Millisecond
	began := make(chan time.Time, 10)
	r.x.answer = func(ctx context.Context, _ *lane.Message) lane.Answer {
		began <- time.Now()
		<-ctx.Done()
		return lane.Answer{Reason: "cut off"}
	}
	r.start()
	r.events(1, 1)
	first := <-began
	r.cut()
	r.x.answer = func(context.Context, *lane.Message) lane.Answer { began <- time.Now(); return lane.Answer{OK: true} }
	r.start()
	r.stop() // a clean end of a process that has begun nothing changes nothing
	r.start()
	if second := <-began; second.Sub(first) < r.o.Timeout {
		t.Errorf("the next try began after %s", second.Sub(first))
	}
	r.done()
	r.stop()
	if marks, err := r.journal.Marks(t.Context()); err != nil || marks[r.o.Consumer+guardMark] != "" {
		t.Errorf("after a clean end: %v, %v", marks, err)
	}
}

// By version: of the events that come within the hold the older goes first.
func TestOrderByVersion(t *testing.T) {
	r := newRig(t, "order: version, version: event.n, hold: 300ms, ")
	var mu sync.Mutex
	var got []string
	r.x.answer = func(_ context.Context, m *lane.Message) lane.Answer {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, m.Event.ID)
		return lane.Answer{OK: true}
	}
	r.start()
	for _, n := range []int{3, 1, 2} {
		r.send(`{"id":"e%d","key":"k","n":%d}`, n, n)
	}
	r.x.wait(t, 3)
	r.done()
	if !slices.Equal(got, []string{"e1", "e2", "e3"}) {
		t.Error(got)
	}
}

// after: settled. What is not settled holds its key.
func TestAfterItsRowsAreSettled(t *testing.T) {
	r := newRig(t, "")
	var mu sync.Mutex
	settled := map[event.Position]bool{}
	r.o.Settled = func(_ context.Context, ref event.Ref) (bool, string, error) {
		mu.Lock()
		defer mu.Unlock()
		return settled[ref.Position], "its row waits in db", nil
	}
	r.start()
	r.events(6, 3)
	mu.Lock()
	for _, p := range []event.Position{2, 3, 4, 5, 6} {
		settled[p] = true
	}
	mu.Unlock()
	r.x.wait(t, 4)
	r.until("it is visible", func() bool {
		es := r.entries(journal.Filter{Key: "k0"})
		return len(es) == 2 && es[0].Reason == "its row waits in db" && es[0].Attempts == 0
	})
	mu.Lock()
	settled[1] = true
	mu.Unlock()
	r.x.wait(t, 6)
	r.done()
	r.x.check(t)
}

// failing is a journal whose entries cannot be read.
type failing struct{ Journal }

func (failing) Entries(context.Context, journal.Filter) ([]journal.Entry, error) {
	return nil, fmt.Errorf("the disk is gone")
}

// A runner that cannot start can be stopped, and says why it did not start.
func TestAStartThatFails(t *testing.T) {
	r := newRig(t, "")
	r.o.Journal = failing{r.journal}
	r.runner = New(r.o)
	if err := r.runner.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "start lane l: the disk is gone") {
		t.Error(err)
	}
	r.stop()
	r.o.Journal = r.journal
	r.start() // its consumer is free again
}

// A key whose event takes long holds up nobody, though it has not failed, when
// no more may be leased.
func TestASlowKeyHoldsOnlyItself(t *testing.T) {
	r := newRig(t, "")
	r.o.Ahead = journal.Limit{Deliveries: 8, Bytes: 1 << 20}
	r.o.Batch = journal.Limit{Deliveries: 2, Bytes: 1 << 20}
	r.o.Timeout = time.Minute
	release := make(chan struct{})
	r.x.answer = func(ctx context.Context, m *lane.Message) lane.Answer {
		if m.Event.ID == "e0" {
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return lane.Answer{OK: true}
	}
	r.start()
	r.events(80, 4)
	r.x.wait(t, 60)
	r.until("the slow one is an entry", func() bool { return len(r.entries(journal.Filter{Key: "k0"})) >= 10 })
	if es := r.entries(journal.Filter{Key: "k0"}); es[0].Reason != "it is under way" || es[1].Reason != "its turn has not come in lane l key k0" {
		t.Errorf("%+v", es[:2])
	}
	close(release)
	r.x.wait(t, 80)
	r.done()
	r.x.check(t)
}
