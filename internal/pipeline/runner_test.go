package pipeline

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

func TestDeliveriesBecomeRows(t *testing.T) {
	r := newRig(t)
	r.send(
		`{"id":"a","at":1,"value":"old","top":7}`,
		`[{"id":"a","at":3,"value":"new","top":5,"user":"u"},{"id":"a","at":2,"value":"between"}]`,
		`{"user":"u","at":1,"name":"Ann"}`,
		`{"type":"other"}`, `[]`,
	)
	r.start()
	r.settle()
	want := map[string]string{"item a": "new/7", "user u": "Ann"}
	if diff := cmp.Diff(want, r.sink.show()); diff != "" {
		t.Error(diff)
	}
	st := r.runner.Stats()
	if diff := cmp.Diff(Stats{Deliveries: 5, Events: 5, Skipped: 1, Settled: 4, Written: st.Written}, st); diff != "" {
		t.Error(diff)
	}
	if s, err := r.journal.State(context.Background(), "db", event.Ref{Position: 1}); err != nil || s != journal.Settled {
		t.Errorf("state %s, %v", s, err)
	}
}

// What cannot land is dead, says why, and holds nothing else up.
func TestOneBadEventDiesAlone(t *testing.T) {
	check := func(b *sink.Batch) error {
		if ref, ok := rowNamed(b, "item", "bad"); ok {
			return &sink.BatchError{Rows: []sink.RowError{{RowRef: ref, Err: &sink.Error{Action: sink.Reject, Message: "item: value violates check top_is_small", Code: "23514"}}}}
		}
		return nil
	}
	opaque := func(b *sink.Batch) error {
		if _, ok := rowNamed(b, "item", "bad"); ok {
			return &sink.Error{Action: sink.Reject, Message: "a trigger says no", Code: "P0001"}
		}
		return nil
	}
	panics := func(b *sink.Batch) error {
		if _, ok := rowNamed(b, "item", "bad"); ok {
			panic("by the test")
		}
		return nil
	}
	for _, c := range []struct {
		name, bad string
		fail      func(*sink.Batch) error
		want      string
		most      int // tries
	}{
		{"the sink names its row", `{"id":"bad","event":"evt_1","type":"t"}`, check,
			"dead  shop #501 evt_1 t → item: value violates check top_is_small (23514). When it is put right run: hookfold dead retry 501", 3},
		{"the sink does not name it", `{"id":"bad"}`, opaque,
			"dead  shop #501 → item id=bad: a trigger says no (P0001). When it is put right run: hookfold dead retry 501", 40},
		{"writing panics", `{"id":"bad"}`, panics,
			"dead  shop #501 → item id=bad: writing it panicked: by the test. This is a fault of Hookfold: please report it with the event. When it is put right run: hookfold dead retry 501", 40},
		{"mapping fails", `{"id":"fault"}`, nil,
			"dead  shop #501 → item: key id is null (event.id). Events without a key belong in a when:.", 1},
		{"mapping panics", `{"id":"panic"}`, nil,
			"dead  shop #501: mapping it panicked: by the test. This is a fault of Hookfold: please report it with the event", 1},
		{"it is not JSON", `{"id":`, nil, "dead  shop #501: not JSON: ", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.sink.fail = c.fail
			r.send(numbered(500, `{"id":"k%d","value":"x"}`)...)
			r.send(c.bad)
			r.send(numbered(499, `{"id":"l%d","value":"x"}`)...)
			r.start()
			r.settle()
			got := r.lines(journal.Dead)
			if len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
				t.Errorf("dead:\n%s\nwant:\n%s", strings.Join(got, "\n"), c.want)
			}
			if n := len(r.sink.show()); n != 999 {
				t.Errorf("%d rows, want 999", n)
			}
			if st := r.runner.Stats(); st.Settled != 999 || st.Died != 1 {
				t.Errorf("%+v", st)
			}
			// Batches may have been cut by how the runner met the backlog.
			if r.sink.tries > c.most+3 {
				t.Errorf("%d tries, want at most %d", r.sink.tries, c.most+3)
			}
			if !strings.Contains(r.log.String(), "dead  shop #501") {
				t.Errorf("the log does not tell: %s", r.log)
			}
		})
	}
}

func TestAnEventIsAsBadAsItsWorstChange(t *testing.T) {
	it := item{}
	it.add(verdict{state: journal.Waiting, reason: "w", table: "a"})
	it.add(verdict{state: journal.Dead, reason: "d1", table: "b"})
	it.add(verdict{state: journal.Waiting, reason: "w2", table: "c"})
	it.add(verdict{state: journal.Dead, reason: "d2", table: "d"})
	for i := range 22 {
		it.add(verdict{state: journal.Dead, reason: fmt.Sprint("e", i)})
	}
	it.add(verdict{})
	if it.state != journal.Dead || it.table != "b" || !strings.HasPrefix(it.reason, "d1; d2; e0") {
		t.Errorf("%+v", it)
	}
	r := New(Options{Target: "db"})
	es := r.entries(&work{items: []item{it}}, time.Now(), func() float64 { return 0 })
	if !strings.HasSuffix(es[0].Reason, "; e17; and 4 more") {
		t.Errorf("%q", es[0].Reason)
	}
	if got := Line(es[0], time.Now()); !strings.HasSuffix(got, "→ d1; d2; e0; and 18 more") {
		t.Errorf("%q", got)
	}
}

func TestAChangeThatDoesNotFitIsDeadBeforeTheFold(t *testing.T) {
	r := newRig(t)
	r.sink.live["item"] = &sink.Live{Exists: true, Columns: []sink.LiveColumn{{Name: "value", Type: "character varying(3)", Length: 3}}}
	// Folded with its neighbour it would have been hidden by the newer value.
	r.send(`{"id":"a","at":1,"value":"long","top":9}`, `{"id":"a","at":2,"value":"ok","top":5}`)
	r.start()
	r.settle()
	if diff := cmp.Diff(map[string]string{"item a": "ok/5"}, r.sink.show()); diff != "" {
		t.Error(diff)
	}
	want := []string{"dead  shop #1 → item.value: 4 characters into varchar(3). Alter the column, or the mapping, and run: hookfold dead retry 1"}
	if diff := cmp.Diff(want, r.lines(journal.Dead)); diff != "" {
		t.Error(diff)
	}
}

// A table that is made while the runner is at work is known as it lives.
func TestATableThatIsMadeLaterIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.sink.live["item"] = &sink.Live{}
		r.start()
		r.send(`{"id":"a","value":"x"}`)
		time.Sleep(time.Minute)
		r.sink.set(func() {
			r.sink.live["item"] = &sink.Live{Exists: true, Columns: []sink.LiveColumn{{Name: "value", Type: "character varying(3)", Length: 3}}}
		})
		r.send(`{"id":"b","value":"long"}`)
		time.Sleep(time.Second)
		if n := len(r.entries(journal.Dead)); n != 1 {
			t.Errorf("%d dead, want 1", n)
		}
		r.stop()
	})
}

func TestADeadEventIsRetriedWhenAPersonHasMendedTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.sink.live["item"] = &sink.Live{Exists: true, Columns: []sink.LiveColumn{{Name: "value", Type: "character varying(3)", Length: 3}}}
		r.send(`{"id":"a","value":"long"}`)
		r.start()
		r.settle()
		if n := len(r.entries(journal.Dead)); n != 1 {
			t.Fatalf("%d dead", n)
		}
		time.Sleep(2 * time.Second)
		r.sink.set(func() { r.sink.live["item"] = &sink.Live{Exists: true} })
		if n, err := r.journal.Retry(context.Background(), journal.Filter{Position: 1}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		time.Sleep(2 * time.Second)
		if diff := cmp.Diff(map[string]string{"item a": "long/"}, r.sink.show()); diff != "" {
			t.Error(diff)
		}
		if n := len(r.entries("")); n != 0 {
			t.Errorf("%d entries left", n)
		}
		r.stop()
	})
}

// The target is down for ten minutes: intake goes on, nothing is lost, and it
// takes up within the longest pause.
func TestATargetThatIsDownLosesAndBlocksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		down := func(*sink.Batch) error { return errDown }
		r.sink.set(func() { r.sink.fail, r.sink.ping = down, errDown })
		r.start()
		for i := range 600 {
			r.send(fmt.Sprintf(`{"id":"k%d","value":"x"}`, i))
			time.Sleep(time.Second)
		}
		if h := r.runner.Health(); h.Up || !strings.HasSuffix(h.Error, "connection refused") || h.Tries < 10 || h.Tries > 100 {
			t.Errorf("%+v", h)
		}
		if n := len(r.entries("")); n != 0 {
			t.Errorf("%d entries: a target that is down is no fault of an event", n)
		}
		r.sink.set(func() { r.sink.fail, r.sink.ping = nil, nil })
		time.Sleep(31 * time.Second)
		r.settle()
		if n := len(r.sink.show()); n != 600 {
			t.Errorf("%d rows, want 600", n)
		}
		if h := r.runner.Health(); !h.Up {
			t.Errorf("%+v", h)
		}
		if !strings.Contains(r.log.String(), "down  db:") {
			t.Error("the log does not tell that the target is down")
		}
		r.stop()
	})
}

func TestStopInterruptsABackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.sink.fail = func(*sink.Batch) error { return &sink.Error{Action: sink.Retry, Message: "busy", After: time.Hour} }
		r.send(`{"id":"a","value":"x"}`)
		r.start()
		time.Sleep(time.Minute)
		begun := time.Now()
		r.stop()
		if d := time.Since(begun); d > time.Second {
			t.Errorf("stopping took %s", d)
		}
		if r.sink.tries != 1 {
			t.Errorf("%d tries: the target asked for an hour, of which five minutes are granted", r.sink.tries)
		}
		r.sink.fail = nil
		r.start()
		r.settle()
		if len(r.sink.show()) != 1 {
			t.Error("the batch in hand was lost")
		}
		r.stop()
	})
}

func TestStopAndStartMayBeCalledTwice(t *testing.T) {
	r := newRig(t)
	r.start()
	if err := r.runner.Start(context.Background()); err != nil {
		t.Error(err)
	}
	r.stop()
	r.stop()
	if err := New(r.options).Stop(context.Background()); err != nil {
		t.Errorf("Stop before Start: %v", err)
	}
}

// A crash after the rows are in and before the journal knows.
func TestRedeliveryAfterACrashChangesNothing(t *testing.T) {
	r := newRig(t)
	r.send(numbered(50, `{"id":"k%d","at":1,"value":"x","top":3}`)...)
	ctx, crash := context.WithCancel(context.Background())
	r.sink.after = func() error { crash(); return errTest }
	r.start()
	<-ctx.Done()
	r.stop()
	first := r.sink.show()
	if len(first) == 0 {
		t.Fatal("nothing was applied before the crash")
	}
	r.sink.after = nil
	r.start()
	r.settle()
	got := r.sink.show()
	if len(got) != 50 {
		t.Errorf("%d rows", len(got))
	}
	for k, v := range first {
		if got[k] != v {
			t.Errorf("%s was %s, is %s", k, v, got[k])
		}
	}
}

func TestAnEventWaitsAndIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.options.Patience = Backoff{First: 10 * time.Minute, Most: 10 * time.Minute}
		r.start()
		r.send(`{"id":"a","type":"wait","value":"x"}`)
		time.Sleep(3 * time.Second)
		want := []string{"wait  shop #1 wait → item id=a: waits for this row, which the mapping does not insert (if_missing: wait)"}
		if diff := cmp.Diff(want, r.lines(journal.Waiting)); diff != "" {
			t.Error(diff)
		}
		// The row is written by another event, long before the ten minutes are over.
		r.send(`{"id":"a","top":1,"at":-5}`)
		time.Sleep(time.Second)
		if diff := cmp.Diff(map[string]string{"item a": "x/1"}, r.sink.show()); diff != "" {
			t.Error(diff)
		}
		// Another waits for a row that somebody else inserts.
		r.send(`{"id":"b","type":"wait","value":"x"}`)
		time.Sleep(time.Second)
		b := &merge.Row{Key: merge.NewKey("b"), Scopes: make([]merge.Version, 1), Cells: make([]merge.Cell, 2)}
		r.sink.set(func() { r.sink.rows["item b"] = b })
		time.Sleep(10 * time.Minute)
		if got := r.sink.show()["item b"]; got != "x/" {
			t.Errorf("item b is %q", got)
		}
		if n := len(r.entries("")); n != 0 {
			t.Errorf("%d entries left", n)
		}
		if st := r.runner.Stats(); st.Waited != 2 || st.Settled != 3 {
			t.Errorf("%+v", st)
		}
		if w := r.runner.waits; len(w.events) != 0 || len(w.rows) != 0 {
			t.Errorf("%d events are still known to wait", len(w.events))
		}
		r.stop()
	})
}

func TestWaitingGrowsMorePatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.send(`{"id":"a","type":"wait","value":"x"}`)
		r.start()
		time.Sleep(15 * time.Minute)
		e := r.entries(journal.Waiting)
		if len(e) != 1 || e[0].Attempts < 9 || e[0].Attempts > 18 {
			t.Errorf("after a quarter: %+v", e)
		}
		if len(e) == 1 && time.Since(e[0].Since) < 14*time.Minute {
			t.Errorf("it waits since %s", e[0].Since)
		}
		r.stop()
	})
}

// The target answers, but refuses one table whatever it is told.
func TestAFaultOfOneTableDoesNotHoldUpTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		missing := func(b *sink.Batch) error {
			for _, g := range b.Groups {
				if g.Table == itemTable {
					return &sink.Error{Action: sink.Retry, Message: "there is no table item"}
				}
			}
			return nil
		}
		r.sink.fail = missing
		r.send(numbered(300, `{"id":"k%d","value":"x"}`)...)
		r.send(numbered(300, `{"user":"u%d","name":"n"}`)...)
		r.start()
		time.Sleep(5 * time.Minute)
		if n := len(r.sink.show()); n != 300 {
			t.Errorf("%d rows, want the 300 users", n)
		}
		waiting := r.entries(journal.Waiting)
		if len(waiting) != 300 || !strings.HasSuffix(waiting[0].Reason, "there is no table item") {
			t.Errorf("%d waiting, the first: %+v", len(waiting), waiting[:1])
		}
		if r.sink.tries > 3000 {
			t.Errorf("%d tries", r.sink.tries)
		}
		// What is known by now is not found out again for each batch.
		r.send(`[{"id":"k1000","value":"x"},{"user":"u1000","name":"n"}]`)
		time.Sleep(100 * time.Millisecond)
		if r.sink.show()["user u1000"] == "" {
			t.Error("the next batch was tried again and again")
		}
		r.sink.set(func() { r.sink.fail = nil })
		time.Sleep(11 * time.Minute)
		if n := len(r.sink.show()); n != 602 {
			t.Errorf("%d rows, want 602", n)
		}
		// A fault that passes is no longer held against the changes.
		waited, failed := r.runner.Stats().Waited, false
		r.sink.set(func() {
			r.sink.fail = func(*sink.Batch) error {
				if failed {
					return nil
				}
				failed = true
				return errDown
			}
		})
		r.send(`{"id":"k2000","value":"x"}`)
		time.Sleep(time.Second)
		if got := r.runner.Stats().Waited; !failed || got != waited || r.sink.show()["item k2000"] == "" {
			t.Errorf("%d more wait", got-waited)
		}
		r.stop()
	})
}

func TestAnUnknownSourceIsDeadAndKept(t *testing.T) {
	r := newRig(t)
	if err := r.journal.Append(context.Background(), &event.Delivery{Source: "gone", Body: []byte(`{}`), Received: time.Now()}); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.settle()
	want := []string{"dead  gone #1: the config has no source gone any more. Bring it back and run: hookfold dead retry 1"}
	if diff := cmp.Diff(want, r.lines(journal.Dead)); diff != "" {
		t.Error(diff)
	}
	r.stop()
	// The config has it again.
	r.options.Sources["gone"] = Source{Events: events}
	if _, err := r.journal.Retry(context.Background(), journal.Filter{Position: 1}); err != nil {
		t.Fatal(err)
	}
	r.start()
	if err := r.runner.Pass(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// A delivery that could not be split is retried whole.
func TestAWholeDeliveryIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		broken := true
		r.options.Sources = map[string]Source{"shop": {Events: nil}}
		s := r.options.Sources["shop"]
		s.Events = func(d *event.Delivery) (*mapping.Split, error) {
			if broken {
				return nil, errTest
			}
			return events(d)
		}
		r.options.Sources["shop"] = s
		r.send(`[{"id":"a","value":"x"},{"id":"fault"},{"id":"b","value":"y"}]`)
		r.start()
		r.settle()
		if diff := cmp.Diff([]string{"dead  shop #1: by the test"}, r.lines(journal.Dead)); diff != "" {
			t.Error(diff)
		}
		broken = false
		if _, err := r.journal.Retry(context.Background(), journal.Filter{Position: 1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if diff := cmp.Diff(map[string]string{"item a": "x/", "item b": "y/"}, r.sink.show()); diff != "" {
			t.Error(diff)
		}
		want := []string{"dead  shop #1.1 → item: key id is null (event.id). Events without a key belong in a when:."}
		if diff := cmp.Diff(want, r.lines(journal.Dead)); diff != "" {
			t.Error(diff)
		}
		r.stop()
	})
}

func TestTiesAreCountedAndTold(t *testing.T) {
	r := newRig(t)
	r.send(`[{"event":"e1","id":"a","at":1,"value":"x"},{"event":"e2","id":"a","at":1,"value":"y"},{"event":"e3","id":"a","at":2,"value":"z"}]`,
		`[{"event":"e4","id":"b","at":1,"value":"x"},{"event":"e4","id":"b","at":1,"value":"x"}]`)
	r.start()
	r.settle()
	if st := r.runner.Stats(); st.Ties != 1 {
		t.Errorf("%d ties, want 1", st.Ties)
	}
	if !strings.Contains(r.log.String(), "tie   shop → item id=a: two different events have the version 1 (e1, e2)") {
		t.Error(r.log)
	}
}
