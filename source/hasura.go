package source

import (
	"errors"
	"time"

	"github.com/hookfold/hookfold/event"
)

// hasura is the preset of Hasura's event triggers (graphql-engine v2).
func hasura() *Preset {
	return &Preset{
		Name: "hasura",
		Doc: `Hasura event triggers (graphql-engine v2).

Signed: nothing. A trigger only sends the static headers that it was given; the secret is expected as Authorization: Bearer <secret> unless verify names another header ({header: X-Webhook-Secret}), basic, or none. (hasura.io/docs: Create an event trigger)
event: the whole body: event.event.op, event.event.data.old and .new, event.table.schema and .name, event.trigger.name.
type: event.op, in Hasura's own words: INSERT, UPDATE, DELETE or MANUAL. Several triggers of one source are told apart by when: event.trigger.name == "…".
id: the body's id, the same in every retry and double. delivery_info.current_retry differs, so the bytes of a retry do too.
time: created_at, in microseconds with trailing zeros cut. It is the start of the transaction: all events of one transaction share it, and a transaction that commits later can bear the earlier one. Order the changes of a row by a column of the row.
Triggers retry 0 times unless told otherwise (retry_conf.num_retries), in no promised order. (hasura.io/docs: Event trigger payload; server source EventTrigger.hs)`,
		Types:       []string{"INSERT", "UPDATE", "DELETE", "MANUAL"},
		HasID:       true,
		Volatile:    []string{"delivery_info"},
		HasTime:     true,
		Grain:       Grain(time.Microsecond),
		TimeCaution: "created_at is when the transaction began, so it cannot order two changes of one row: put a counter or updated_at column of the row into version:",
		Samples:     samples("hasura"),
		New: func(o Options) (Source, error) {
			v, err := newUnsigned(o, "the secret that the trigger sends in its header")
			return build(v, err, built{options: o, split: splitHasura(o.Zone)})
		},
	}
}

func splitHasura(zone *time.Location) func(*event.Delivery, event.JSON) ([]*event.Event, error) {
	return func(_ *event.Delivery, body event.JSON) ([]*event.Event, error) {
		op := body.Path("event", "op")
		if op.Kind() != event.String {
			return nil, errors.New("not a Hasura event: it has no text event.op. Does a request transform of the trigger change the body?")
		}
		e := whole(body)
		e.Type = op.Text()
		e.ID, _ = body.Get("id").Scalar()
		setTime(e, body.Get("created_at"), "created_at", zone)
		return []*event.Event{e}, nil
	}
}
