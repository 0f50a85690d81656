package pipeline

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/sink"
)

const benchConfig = `
version: 1
journal: sqlite:unused.db
sources:
  whatsapp: {preset: whatsapp, secrets: [s], verify_token: t}
targets:
  db: {url: "sqlite:unused.db"}
tables:
  message_status:
    key: {message_id: text}
    columns:
      status:       {type: text, merge: {ladder: [sent, failed, delivered, read, played]}}
      sent_at:      {type: timestamp, merge: min}
      delivered_at: {type: timestamp, merge: min}
      read_at:      {type: timestamp, merge: min}
    events:
      - from: whatsapp
        type: "status.*"
        key: {message_id: event.id}
        set:
          status: event.status
          sent_at: 'type == "status.sent" ? time : unset'
          delivered_at: 'type == "status.delivered" ? time : unset'
          read_at: 'type == "status.read" ? time : unset'
`

// nowhere is a sink that takes everything at once.
type nowhere struct{}

func (nowhere) Apply(context.Context, *sink.Batch) (*sink.Result, error) { return &sink.Result{}, nil }
func (nowhere) Inspect(context.Context, *sink.Table) (*sink.Live, error) {
	return &sink.Live{Exists: true}, nil
}
func (nowhere) Ping(context.Context) error { return nil }

// BenchmarkSettle is the settle path without journal and database: split, map,
// fit, fold and judge, per event, in batches of 1,000 deliveries of one event
// each (3 events a message).
func BenchmarkSettle(b *testing.B) {
	cfg, problems := config.Parse("bench.yaml", []byte(benchConfig), config.Options{})
	if err := problems.Err(); err != nil {
		b.Fatal(err)
	}
	plan, problems := mapping.Compile(cfg)
	if err := problems.Err(); err != nil {
		b.Fatal(err)
	}
	r := New(Options{
		Target: "db", Sink: nowhere{}, Sources: Sources(plan), Tables: Tables(plan, "db"),
		Map: func(e *event.Event) mapping.Outcome { return plan.Map(e, "db") },
	})
	const n = 1000
	batch := &journal.Batch{}
	for i := range n {
		status := []string{"sent", "delivered", "read"}[i%3]
		batch.Deliveries = append(batch.Deliveries, &event.Delivery{
			Position: event.Position(i + 1), Source: "whatsapp", Received: time.Unix(1767225600, 0),
			Body: fmt.Appendf(nil, `{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"value":{"messaging_product":"whatsapp",`+
				`"metadata":{"display_phone_number":"15550001","phone_number_id":"106"},"statuses":[{"id":"wamid.%d","status":"%s","timestamp":"%d",`+
				`"recipient_id":"49151","conversation":{"id":"c1","origin":{"type":"service"}},"pricing":{"billable":true,"pricing_model":"CBP","category":"service"}}]},"field":"messages"}]}]}`,
				i/3, status, 1767225600+i),
		})
	}
	ctx := context.Background()
	b.ReportAllocs()
	b.SetBytes(int64(len(batch.Deliveries[0].Body)))
	for i := 0; i < b.N; i += n {
		r.backlog.add(&leased{batch: batch, left: n})
		first, _ := r.backlog.next()
		w, err := r.gather(ctx, first)
		if err != nil {
			b.Fatal(err)
		}
		r.backlog.done(w.taken[0].of)
		if err := r.land(ctx, w); err != nil {
			b.Fatal(err)
		}
		if left := r.entries(w, time.Now(), func() float64 { return 0 }); len(left) > 0 || len(w.units) != n {
			b.Fatalf("%d changes, %d unsettled: %+v", len(w.units), len(left), left[:min(1, len(left))])
		}
	}
}
