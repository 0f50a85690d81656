package pipeline

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// One source sends very much at once, another one a little meanwhile.
func TestC69TheFloodOfOneSourceHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.options.Sources["calm"] = r.options.Sources["shop"]
		r.options.Sink = slowSink{r.sink, 100 * time.Millisecond}
		r.options.Events = 250
		for i := range 400 {
			r.send("[" + strings.Join(numbered(10, fmt.Sprintf(`{"id":"a%d.%%d","value":"x"}`, i)), ",") + "]")
		}
		r.start()
		time.Sleep(300 * time.Millisecond)
		if err := r.journal.Append(context.Background(), &event.Delivery{Source: "calm", Body: []byte(`{"id":"b","value":"x"}`), Received: time.Now()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		rows := r.sink.show()
		if rows["item b"] == "" || len(rows) > 3000 {
			t.Errorf("of %d rows b is %q", len(rows), rows["item b"])
		}
		time.Sleep(time.Minute)
		if n := len(r.sink.show()); n != 4001 {
			t.Errorf("%d rows", n)
		}
		if n, _, err := r.runner.Lag(context.Background()); n != 0 || err != nil {
			t.Errorf("%d are pending, %v", n, err)
		}
		r.stop()
	})
}

// slowSink takes its time for each batch.
type slowSink struct {
	*memory
	takes time.Duration
}

func (s slowSink) Apply(ctx context.Context, b *sink.Batch) (*sink.Result, error) {
	time.Sleep(s.takes)
	return s.memory.Apply(ctx, b)
}

func TestTheBacklogIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.options.Ahead = journal.Limit{Deliveries: 10, Bytes: 1 << 20}
		r.options.Limit = journal.Limit{Deliveries: 4, Bytes: 1 << 20}
		r.sink.set(func() { r.sink.ping = errDown })
		r.send(numbered(100, `{"id":"k%d","value":"x"}`)...)
		r.start()
		time.Sleep(time.Minute)
		if n := r.runner.inHand.Load(); n == 0 || n > 10 {
			t.Errorf("%d deliveries are leased", n)
		}
		r.sink.set(func() { r.sink.ping = nil })
		time.Sleep(2 * time.Minute)
		if n := len(r.sink.show()); n != 100 {
			t.Errorf("%d rows", n)
		}
		r.stop()
	})
}

// Each event of a delivery becomes as great as the delivery.
func TestADeliveryIsMappedInParts(t *testing.T) {
	r := newRig(t)
	r.options.Made = 100_000
	var most atomic.Int64
	big, err := merge.ParseValue(merge.Type{}, strings.Repeat("x", 10_000))
	if err != nil {
		t.Fatal(err)
	}
	r.options.Map = func(e *event.Event) mapping.Outcome {
		out := mapEvent(e)
		out.Changes[0].Cells[0] = merge.Cell{Set: true, Value: big}
		return out
	}
	r.sink.fail = func(b *sink.Batch) error {
		n := 0
		for _, g := range b.Groups {
			n += len(g.Rows)
		}
		most.Store(max(most.Load(), int64(n)))
		return nil
	}
	r.send("["+strings.Join(numbered(1000, `{"id":"k%d"}`), ",")+"]", `{"id":"fault"}`, `{"id":"last"}`)
	r.options.Map = func(m func(*event.Event) mapping.Outcome) func(*event.Event) mapping.Outcome {
		return func(e *event.Event) mapping.Outcome {
			if e.Body.Get("id").Text() == "fault" {
				return mapEvent(e)
			}
			return m(e)
		}
	}(r.options.Map)
	r.start()
	r.settle()
	if n := len(r.sink.show()); n != 1001 || most.Load() > 11 {
		t.Errorf("%d rows, at most %d in a batch", n, most.Load())
	}
	if st := r.runner.Stats(); st.Settled != 1001 || st.Died != 1 || st.Events != 1002 || st.Deliveries != 3 {
		t.Errorf("%+v", st)
	}
	// What is tried again is mapped in parts as well.
	if n, err := r.journal.Retry(context.Background(), journal.Filter{State: journal.Dead}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	r.until(func() bool { es := r.entries(journal.Dead); return len(es) == 1 && es[0].Attempts == 2 })
}

func TestPackedBodiesCountUnpacked(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprintf(z, `{"pad":%q}`, strings.Repeat("x", 1<<20))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	body, err := event.ParseJSON(fmt.Appendf(nil, `{"pad":%q}`, strings.Repeat("x", 1<<20)))
	if err != nil {
		t.Fatal(err)
	}
	d := &event.Delivery{Body: packed.Bytes(), Header: http.Header{"Content-Encoding": {"gzip"}}}
	if n := unpacked(d, []eventOf{{event: &event.Event{Body: body, Envelope: body}}}); n < 1<<20 || n > 2<<20 {
		t.Errorf("%d bytes", n)
	}
}
