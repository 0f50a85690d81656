package prove_test

import (
	"testing"

	"github.com/hookfold/hookfold/internal/check"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/internal/prove"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

const shapes = `
  booking:
    key: {uid: text}
    columns: {at: timestamp, state: text}
    events: [{from: shop, type: "booking.*", key: {uid: event.uid}, chain: {previous: "event.?old"}, set: {at: event.start, state: event.state}}]
  seat:
    key: {no: int}
    on_delete: mark
    columns: {guest: text, visits: {type: int, merge: count, scope: key}}
    events:
      - {from: shop, type: seat.taken, key: {no: event.seat}, occupant: {id: event.b, since: event.since}, set: {guest: event.guest, visits: 1}}
      - {from: shop, type: seat.left, key: {no: event.seat}, occupant: {id: event.b}, delete: true}
  account:
    key: {id: text}
    on_delete: {set: {closed: true}}
    columns: {name: text, total: {type: numeric, merge: sum}, note: {type: text, scope: note}}
    events:
      - {from: shop, type: account.named, key: {id: event.account}, set: {name: event.name, total: event.amount}}
      - {from: shop, type: account.noted, key: {id: event.account}, if_missing: wait, set: {note: event.note}}
      - {from: shop, type: account.closed, key: {id: event.account}, delete: true}
`

// Chains, occupants that leave, deletes that show, counters, and changes that
// wait for their row.
func TestEveryShape(t *testing.T) {
	plan := compiled(t, shapes)
	if err := check.Run(plan).Problems.Err(); err != nil {
		t.Fatal(err)
	}
	history := shop(`
		{"type":"booking.made","at":"2026-03-01T10:00:00Z","uid":"a","start":"2026-04-01T10:00:00Z","state":"made"}
		{"type":"booking.moved","at":"2026-03-01T10:00:01Z","uid":"b","old":"a","start":"2026-04-02T10:00:00Z","state":"moved"}
		{"type":"booking.ended","at":"2026-03-01T10:00:09Z","uid":"a","start":"2026-04-01T10:00:00Z","state":"ended"}
		{"type":"seat.taken","at":"2026-03-01T10:00:00Z","seat":1,"b":"x","since":"2026-03-01T10:00:00Z","guest":"Ann"}
		{"type":"seat.taken","at":"2026-03-01T10:00:01Z","seat":1,"b":"y","since":"2026-03-01T10:00:01Z","guest":"Bob"}
		{"type":"seat.left","at":"2026-03-01T10:00:05Z","seat":1,"b":"x"}
		{"type":"account.named","at":"2026-03-01T10:00:00Z","account":"k","name":"one","amount":1.5}
		{"type":"account.noted","at":"2026-03-01T10:00:01Z","account":"k","note":"first"}
		{"type":"account.closed","at":"2026-03-01T10:00:02Z","account":"k"}
		{"type":"account.named","at":"2026-03-01T10:00:03Z","account":"k","name":"two","amount":2}
		{"type":"account.noted","at":"2026-03-01T10:00:04Z","account":"none","note":"waits"}`)
	for engine, database := range engines {
		t.Run(engine, func(t *testing.T) {
			r := run(t, prove.Options{Plan: plan, Deliveries: history, Orders: orders(), Sink: open(t, database(t), pipeline.Tables(plan, "db"), sqlsink.Options{})})
			if r.Counterexample != nil {
				t.Fatal(prove.Story(r.Counterexample))
			}
			if len(r.Left) != 1 || len(r.Depends) > 0 || r.Rows["booking"] != 1 || r.Rows["seat"] != 1 || r.Rows["account"] != 1 {
				t.Errorf("left %v, depends %v, rows %v", r.Left, r.Depends, r.Rows)
			}
		})
	}
}
