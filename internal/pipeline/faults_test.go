package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// shaky is a journal of which each call fails a few times first.
type shaky struct {
	Journal
	mu    sync.Mutex
	times map[string]int
}

func (s *shaky) fails(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.times[what]++; s.times[what]%3 != 0 {
		return fmt.Errorf("%s %w", what, errTest)
	}
	return nil
}

func (s *shaky) FirstReceipts(ctx context.Context, ids []journal.Receipt) ([]journal.Receipt, error) {
	if err := s.fails("first receipts"); err != nil {
		return nil, err
	}
	return s.Journal.FirstReceipts(ctx, ids)
}

func (s *shaky) Retry(ctx context.Context, f journal.Filter) (int, error) {
	if err := s.fails("retry"); err != nil {
		return 0, err
	}
	return s.Journal.Retry(ctx, f)
}

func (s *shaky) Consumer(ctx context.Context, name string) (journal.Consumer, error) {
	c, err := s.Journal.Consumer(ctx, name)
	return &shakyConsumer{c, s}, err
}

type shakyConsumer struct {
	journal.Consumer
	s *shaky
}

func (c *shakyConsumer) Next(ctx context.Context, l journal.Limit) (*journal.Batch, error) {
	if err := c.s.fails("next"); err != nil {
		return nil, err
	}
	return c.Consumer.Next(ctx, l)
}

func (c *shakyConsumer) Due(ctx context.Context, now time.Time, l journal.Limit) (*journal.Batch, error) {
	if err := c.s.fails("due"); err != nil {
		return nil, err
	}
	return c.Consumer.Due(ctx, now, l)
}

func (c *shakyConsumer) Done(ctx context.Context, b *journal.Batch, unsettled []journal.Entry) error {
	if err := c.s.fails("done"); err != nil {
		return err
	}
	return c.Consumer.Done(ctx, b, unsettled)
}

func TestAJournalThatFailsForAWhileLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		s := &shaky{Journal: r.journal, times: map[string]int{}}
		r.options.Journal = s
		r.start()
		for i := range 20 {
			r.send(fmt.Sprintf(`{"event":"e%d","id":"k%d","value":"x"}`, i, i))
			time.Sleep(300 * time.Millisecond)
		}
		r.send(`{"id":"late","type":"wait","value":"x"}`)
		time.Sleep(2 * time.Second)
		r.send(`{"id":"late","at":-1,"top":1}`)
		time.Sleep(time.Minute)
		if got := r.sink.show(); len(got) != 21 || got["item late"] != "x/1" {
			t.Errorf("%d rows: %v", len(got), got)
		}
		if n := len(r.entries("")); n != 0 {
			t.Errorf("%d entries left", n)
		}
		r.stop()
		for _, what := range []string{"next", "due", "done", "first receipts", "retry"} {
			if s.times[what] < 3 {
				t.Errorf("%s was called %d times", what, s.times[what])
			}
		}
		if !strings.Contains(r.log.String(), "cannot record what became of a batch: done by the test") {
			t.Error("the log does not tell")
		}
	})
}

// A batch has more changes than a transaction may have, and events whose
// changes fall into two of them.
func TestABatchIsWrittenInBoundedTransactions(t *testing.T) {
	r := newRig(t)
	r.options.Changes = 10
	most := 0
	r.sink.fail = func(b *sink.Batch) error {
		n := 0
		for _, g := range b.Groups {
			n += len(g.Rows)
		}
		most = max(most, n)
		return nil
	}
	var body strings.Builder
	for i := range 995 {
		fmt.Fprintf(&body, `{"id":"k%d","value":"x"},`, i)
	}
	r.send("[" + strings.TrimSuffix(body.String(), ",") + "]")
	r.start()
	r.settle()
	if len(r.sink.show()) != 995 || most != 10 || r.sink.tries != 100 {
		t.Errorf("%d rows, at most %d rows in each of %d transactions", len(r.sink.show()), most, r.sink.tries)
	}
}

// A parent that cannot be inserted holds up its children, and nobody else.
func TestAParentAtFaultIsItsChildrensFault(t *testing.T) {
	r := newRig(t)
	r.options.Patience = Backoff{First: time.Hour, Most: time.Hour}
	r.sink.fail = func(b *sink.Batch) error {
		if ref, ok := rowNamed(b, "user", "u3"); ok && isStub(ref.Row) && r.sink.rows["user u3"] == nil {
			return &sink.BatchError{Rows: []sink.RowError{{RowRef: ref, Err: &sink.Error{Action: sink.Wait, Message: "user: column name is NOT NULL and has no value yet", On: "user id=u3"}}}}
		}
		return nil
	}
	for i := range 100 {
		r.send(fmt.Sprintf(`{"id":"k%d","value":"x","user":"u%d"}`, i, i%10))
	}
	r.start()
	r.settle()
	waiting := r.entries(journal.Waiting)
	if len(waiting) != 10 || waiting[0].On != "user id=u3" || waiting[0].Table != "item" || waiting[0].Key != "id=k3" {
		t.Fatalf("%d wait: %+v", len(waiting), waiting)
	}
	if n := len(r.sink.show()); n != 90+9 {
		t.Errorf("%d rows, want 90 items and 9 users", n)
	}
	if r.sink.tries > 10 {
		t.Errorf("%d tries: each child was tried by itself", r.sink.tries)
	}
	// What they wait for comes, and wakes them: long before an hour.
	r.send(`{"user":"u3","name":"Ann"}`)
	r.until(func() bool { return len(r.entries("")) == 0 })
	if n := len(r.sink.show()); n != 110 {
		t.Errorf("%d rows, want 110", n)
	}
}

// Of many changes of one row only one is at fault.
func TestTheOtherChangesOfARowLand(t *testing.T) {
	bad := func(b *sink.Batch) error {
		ref, ok := rowNamed(b, "item", "a")
		if ok && ref.Row.Cells[1].Value.Text() == "13" {
			return &sink.BatchError{Rows: []sink.RowError{{RowRef: ref, Err: &sink.Error{Action: sink.Reject, Message: "item: check no_thirteen"}}}}
		}
		return nil
	}
	r := newRig(t)
	r.sink.fail = bad
	for i := range 14 {
		r.send(fmt.Sprintf(`{"id":"a","at":%d,"value":"v%d","top":%d}`, i, i, i))
	}
	r.send(`{"id":"b","value":"x"}`)
	r.start()
	r.settle()
	if diff := cmp.Diff(map[string]string{"item a": "v12/12", "item b": "x/"}, r.sink.show()); diff != "" {
		t.Error(diff)
	}
	if dead := r.entries(journal.Dead); len(dead) != 1 || dead[0].Ref.Position != 14 {
		t.Errorf("%+v", dead)
	}
}

func TestStopGivesBackWhatDoesNotEnd(t *testing.T) {
	r := newRig(t)
	entered := make(chan struct{})
	stuck := &stuckSink{memory: r.sink, entered: entered}
	r.options.Sink = stuck
	r.send(`{"id":"a","value":"x"}`)
	r.start()
	<-entered
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := r.runner.Stop(ctx); err != nil {
		t.Error(err)
	}
	r.options.Sink = r.sink
	r.start()
	r.settle()
	if len(r.sink.show()) != 1 {
		t.Error("the batch was lost")
	}
}

// stuckSink does not answer until it is told to stop.
type stuckSink struct {
	*memory
	entered chan struct{}
}

func (s *stuckSink) Apply(ctx context.Context, _ *sink.Batch) (*sink.Result, error) {
	close(s.entered)
	<-ctx.Done()
	return nil, ctx.Err()
}

// Two events that wait for rows which the other one writes must not keep the
// target busy.
func TestEventsThatWakeEachOtherDoNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.options.Map = func(e *event.Event) mapping.Outcome {
			out := mapEvent(e)
			also := *out.Changes[0]
			also.Key = merge.NewKey(e.Body.Get("also").Text())
			out.Changes = append(out.Changes, &also)
			return out
		}
		on := map[string]string{"x": "item id=p", "y": "item id=q"}
		r.sink.fail = func(b *sink.Batch) error {
			for id := range on {
				if ref, ok := rowNamed(b, "item", id); ok {
					return &sink.BatchError{Rows: []sink.RowError{{RowRef: ref, Err: &sink.Error{Action: sink.Wait, Message: "not yet", On: on[id]}}}}
				}
			}
			return nil
		}
		r.send(`{"id":"x","value":"1","also":"q"}`, `{"id":"y","value":"1","also":"p"}`)
		r.start()
		time.Sleep(time.Minute)
		r.stop()
		if r.sink.tries < 8 || r.sink.tries > 60*5*4 {
			t.Errorf("%d tries in a minute", r.sink.tries)
		}
		if n := len(r.entries(journal.Waiting)); n != 2 {
			t.Errorf("%d wait", n)
		}
	})
}

func TestWaits(t *testing.T) {
	w := newWaits()
	a := journal.Entry{Ref: event.Ref{Position: 1}, State: journal.Waiting}
	about, needed := rowID{1, merge.NewKey("a")}, rowID{0, merge.NewKey("u")}
	w.put(&a, &verdict{needs: []need{{about: about, row: needed, ask: askKnown}}})
	batch := func(table *sink.Table, key string) *writing {
		return &writing{rows: []rowID{{slices.Index(tables, table), merge.NewKey(key)}}}
	}
	w.written(batch(itemTable, "b"))
	if got := w.take(); len(got) != 0 {
		t.Errorf("woken by another row: %v", got)
	}
	for _, b := range []*writing{batch(itemTable, "a"), batch(userTable, "u")} {
		w.written(b)
		if got := w.take(); len(got) != 1 || got[0] != a.Ref {
			t.Errorf("woken: %v", got)
		}
	}
	q := question{needed, askKnown}
	if got := w.questions(false); len(got) != 1 || got[0] != q {
		t.Errorf("asked at once: %v", got)
	}
	if got := w.questions(false); len(got) != 0 {
		t.Errorf("asked again: %v", got)
	}
	// A row that the sink has, and that does not help, is not asked for for ever.
	for range maxMisses {
		if got := w.questions(true); len(got) != 1 {
			t.Fatalf("asked in time: %v", got)
		}
		w.answered(q)
		if got := w.take(); len(got) != 1 {
			t.Errorf("woken by an answer: %v", got)
		}
		w.put(&a, &verdict{needs: []need{{about: about, row: needed, ask: askKnown}}})
	}
	if got := w.questions(true); len(got) != 0 {
		t.Errorf("still asked: %v", got)
	}
	w.settled(a.Ref)
	w.written(batch(itemTable, "a"))
	if got := w.take(); len(got) != 0 || len(w.rows) != 0 || len(w.events) != 0 || len(w.asks) != 0 {
		t.Errorf("after it settled: %v, %+v", got, w)
	}
}

func TestContributes(t *testing.T) {
	slot := &sink.Table{Name: "slot", Table: merge.NewTable(merge.Table{Name: "slot", Occupied: true, Key: []merge.KeyColumn{{Name: "id"}}})}
	row := func(table *sink.Table, key, occupant string, m merge.Missing) sink.RowRef {
		r := &merge.Row{Key: merge.NewKey(key), IfMissing: m}
		if occupant != "" {
			r.Occupant = &merge.Occupant{ID: occupant}
		}
		return sink.RowRef{Table: table, Row: r}
	}
	change := &merge.Change{
		Table: slot.Table, Key: merge.NewKey("a"), Occupant: &merge.Occupant{ID: "x"},
		Parents: []merge.Parent{{Table: userTable.Table, Key: merge.NewKey("u")}},
	}
	for _, c := range []struct {
		name string
		ref  sink.RowRef
		want bool
	}{
		{"its own record", row(slot, "a", "x", merge.Insert), true},
		{"another's record", row(slot, "a", "y", merge.Insert), false},
		{"what belongs to the row itself", row(slot, "a", "", merge.Insert), true},
		{"another key", row(slot, "b", "x", merge.Insert), false},
		{"another table", row(itemTable, "a", "", merge.Insert), false},
		{"a row that may not be inserted", row(slot, "a", "x", merge.Wait), false},
		{"its parent", row(userTable, "u", "", merge.Insert), true},
		{"another parent", row(userTable, "v", "", merge.Insert), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := contributes(change, c.ref); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestFirstReceiptsReachTheMapping(t *testing.T) {
	r := newRig(t)
	var mu sync.Mutex
	first := map[event.Position]time.Time{}
	r.options.Map = func(e *event.Event) mapping.Outcome {
		mu.Lock()
		defer mu.Unlock()
		first[e.Delivery.Position] = e.FirstReceived
		return mapEvent(e)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, body := range []string{`{"event":"e","id":"a"}`, `{"id":"a"}`, `{"event":"e","id":"a"}`} {
		d := &event.Delivery{Source: "shop", Body: []byte(body), Received: at.Add(time.Duration(i) * time.Hour)}
		if err := r.journal.Append(context.Background(), d); err != nil {
			t.Fatal(err)
		}
	}
	r.start()
	r.settle()
	want := map[event.Position]time.Time{1: at, 2: at.Add(time.Hour), 3: at}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
}

// Waiting events of before a restart are woken too.
func TestWakingSurvivesARestart(t *testing.T) {
	r := newRig(t)
	r.options.Patience = Backoff{First: time.Hour, Most: time.Hour}
	r.send(`{"id":"a","type":"wait","value":"x"}`)
	r.start()
	r.settle()
	r.stop()
	r.start()
	r.send(`{"id":"a","top":1,"at":-5}`)
	r.until(func() bool { return r.sink.show()["item a"] == "x/1" })
}
