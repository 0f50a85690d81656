package source

import (
	"errors"

	"github.com/hookfold/hookfold/event"
)

// supabase is the preset of Supabase's database webhooks.
func supabase() *Preset {
	return &Preset{
		Name: "supabase",
		Doc: `Supabase database webhooks (pg_net).

Signed: nothing. A webhook only sends the static headers that it was given; the secret is expected as Authorization: Bearer <secret> unless verify names another header, basic, or none. (supabase.com/docs: Database webhooks. Auth hooks are another thing: preset standard-webhooks.)
event: the whole body: event.record, event.old_record (the complete old row), event.table, event.schema. record is null in a DELETE, old_record in an INSERT.
type: INSERT, UPDATE or DELETE. Several tables of one source are told apart by when: event.table == "…".
id: none. time: none. Order the changes of a row by a column of the row, better a counter than now(), which is the start of the transaction.
Sent once, after the commit, without a retry and in no order: what is lost stays lost, so read the table again from time to time. The request times out after 1 s by default. A webhook of method GET sends no row. (pg_net README and source)`,
		Types:   []string{"INSERT", "UPDATE", "DELETE"},
		Samples: samples("supabase"),
		New: func(o Options) (Source, error) {
			v, err := newUnsigned(o, "the secret that the webhook sends in its header")
			return build(v, err, built{options: o, split: splitSupabase})
		},
	}
}

func splitSupabase(_ *event.Delivery, body event.JSON) ([]*event.Event, error) {
	typ := body.Get("type")
	if typ.Kind() != event.String || body.Get("table").Kind() != event.String {
		return nil, errors.New("not a Supabase database webhook: it has no texts type and table")
	}
	e := whole(body)
	e.Type = typ.Text()
	return []*event.Event{e}, nil
}
