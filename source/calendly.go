package source

import (
	"errors"
	"time"

	"github.com/hookfold/hookfold/event"
)

// calendly is the preset of Calendly's webhook subscriptions (API v2).
func calendly() *Preset {
	return &Preset{
		Name: "calendly",
		Doc: `Calendly webhook subscriptions, API v2.

Signed: Calendly-Webhook-Signature: t=<seconds>,v1=<hex>, the HMAC-SHA256 of t, a dot and the raw body, under the signing_key that was given when the subscription was created. The key is optional there and never shown again; without one Calendly sends no signature, and Hookfold refuses the request. Tolerance: 180 s, as in Calendly's own example code. (developer.calendly.com: Webhook signatures)
event: the whole body. The invitee is event.payload, its identity event.payload.uri.
type: the event member, such as invitee.created.
id: none. Calendly sends no id of an event or of a delivery.
time: when the thing happened to the invitee, in microseconds:
  invitee.created                  payload.created_at
  invitee.canceled                 payload.cancellation.created_at, else payload.updated_at
  invitee_no_show.created          payload.no_show.created_at
  invitee_no_show.deleted          created_at, when the notification was made (often whole seconds): nothing else tells
  routing_form_submission.created  payload.created_at
  every other                      created_at, when the notification was made
payload.created_at is when the invitee was booked, also in the event that cancels it, and never changes. A no-show does not move payload.updated_at.
A reschedule sends two events in any order: invitee.canceled for the old invitee (rescheduled: true, new_invitee) and invitee.created for a new one (old_invitee). The cancellation can bear the later time, so times do not order the pair: use occupant: with id event.payload.uri and since event.payload.created_at.
Bodies of the retired API v1 (top-level time, no created_at) are refused as a whole; they were never signed.`,
		Types: []string{
			"invitee.created", "invitee.canceled",
			"invitee_no_show.created", "invitee_no_show.deleted",
			"routing_form_submission.created",
			"event_type.created", "event_type.updated", "event_type.deleted",
			"contact.created", "contact.updated", "contact.deleted",
			"meeting_recap.created", "meeting_recap.updated", "meeting_recap.deleted",
		},
		HasTime:     true,
		Grain:       Grain(time.Microsecond),
		TimeCaution: "the cancel of a rescheduled invitee can bear a later time than the new booking: let occupant: order invitees, and the time only the events of one invitee",
		Samples:     samples("calendly"),
		Host:        "api.calendly.com",
		New: func(o Options) (Source, error) {
			ring, err := newKeyring(o.Secrets, "the signing_key of the webhook subscription", textKey)
			return build(&pairs{
				header: "Calendly-Webhook-Signature", ring: ring, tolerance: tolerance(o.Tolerance, threeMinutes),
				missing: "The subscription was made without a signing_key; make it again with one.",
				advice:  "Is it the signing_key of this subscription?",
			}, err, built{options: o, split: splitCalendly(o.Zone)})
		},
	}
}

func splitCalendly(zone *time.Location) func(*event.Delivery, event.JSON) ([]*event.Event, error) {
	return func(_ *event.Delivery, body event.JSON) ([]*event.Event, error) {
		typ := body.Get("event")
		if body.Kind() != event.Object || typ.Kind() != event.String {
			return nil, errors.New("not a Calendly webhook: it is no object with the text event")
		}
		if body.Get("created_at").Kind() == event.Missing && body.Get("time").Kind() != event.Missing {
			return nil, errors.New("a webhook of Calendly's retired API v1 (it has time and no created_at), which is not signed and is shaped differently: subscribe anew with API v2, POST https://api.calendly.com/webhook_subscriptions")
		}
		e := whole(body)
		e.Type = typ.Text()
		at := calendlyTime(e.Type, body)
		setTime(e, body.Path(at...), dotted(at), zone)
		return []*event.Event{e}, nil
	}
}

// calendlyTime tells where the time of an event of a type stands.
func calendlyTime(typ string, body event.JSON) []string {
	switch typ {
	case "invitee.created", "routing_form_submission.created":
		return []string{"payload", "created_at"}
	case "invitee.canceled":
		if canceled := []string{"payload", "cancellation", "created_at"}; body.Path(canceled...).Kind() > event.Null {
			return canceled
		}
		return []string{"payload", "updated_at"}
	case "invitee_no_show.created":
		return []string{"payload", "no_show", "created_at"}
	}
	return []string{"created_at"}
}
