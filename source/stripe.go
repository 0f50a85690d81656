package source

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookfold/hookfold/event"
)

// stripe is the preset of Stripe's event destinations.
func stripe() *Preset {
	return &Preset{
		Name: "stripe",
		Doc: `Stripe webhooks: snapshot events, and thin events of API v2.

Signed: Stripe-Signature: t=<seconds>,v1=<hex>, the HMAC-SHA256 of t, a dot and the raw body, under the endpoint's whole whsec_… secret as text. While a secret is rolled there are several v1; one that matches is enough, other schemes (v0) do not count. Each endpoint, test and live mode, and the CLI have secrets of their own. Tolerance: 300 s, both ways. (docs.stripe.com/webhooks; stripe-go webhooks.go)
event: the whole body: event.data.object is the object at the time of the event, event.data.previous_attributes the old values of what changed. A thin event (object v2.core.event) has event.related_object and no data.
type: the body's type, such as customer.subscription.updated.
id: the body's id, evt_…, the same in every retry. Two events with different ids can tell of one change.
time: created, when the event was made: whole seconds (in thin events nanoseconds). One checkout makes several events within a second.
Sent in no order, for up to three days, each retry with its old snapshot.`,
		HasID:       true,
		Volatile:    []string{"pending_webhooks"},
		HasTime:     true,
		Grain:       Grain(time.Second),
		TimeCaution: "time has whole seconds, and one action makes several events within a second: add a second element to version:, such as a rank of the status",
		Samples:     samples("stripe"),
		Host:        "api.stripe.com",
		New: func(o Options) (Source, error) {
			ring, err := newKeyring(o.Secrets, "the signing secret of the endpoint (whsec_…)", stripeKey)
			return build(&pairs{
				header: "Stripe-Signature", ring: ring, tolerance: tolerance(o.Tolerance, fiveMinutes),
				missing: "Does the request come from Stripe, and does every proxy pass its headers on?",
				advice:  "Is it the secret of this endpoint?",
			}, err, built{options: o, split: splitStripe(o.Zone)})
		},
	}
}

// stripeKey reads a signing secret, whose text is the key, and refuses the API
// keys that stand beside it in the dashboard.
func stripeKey(text string) ([]byte, error) {
	for _, prefix := range []string{"sk_", "rk_", "pk_"} {
		if strings.HasPrefix(text, prefix) {
			return nil, fmt.Errorf("begins with %s: it is an API key, not the signing secret of the endpoint (whsec_…)", prefix)
		}
	}
	return []byte(text), nil
}

func splitStripe(zone *time.Location) func(*event.Delivery, event.JSON) ([]*event.Event, error) {
	return func(_ *event.Delivery, body event.JSON) ([]*event.Event, error) {
		switch object := body.Get("object").Text(); object {
		case "event", "v2.core.event":
		default:
			return nil, errors.New("not a Stripe event: its object is neither event nor v2.core.event")
		}
		e := whole(body)
		e.Type = body.Get("type").Text()
		e.ID = body.Get("id").Text()
		setTime(e, body.Get("created"), "created", zone)
		return []*event.Event{e}, nil
	}
}
