package source

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hookfold/hookfold/event"
)

// whatsapp is the preset of Meta's WhatsApp Cloud API.
func whatsapp() *Preset {
	return &Preset{
		Name: "whatsapp",
		Doc: `WhatsApp Cloud API (Meta).

Signed: X-Hub-Signature-256: sha256=<hex>, the HMAC-SHA256 of the raw body under the app secret (one per Meta app, not per number). No time is signed, so there is no tolerance. Meta sends its JSON escaped (\u00e9, \/): the signature is over those bytes. (developers.facebook.com: WhatsApp webhooks)
Handshake: GET with hub.mode=subscribe, hub.verify_token and hub.challenge, at every change of the webhook's settings; answered with the challenge if the token is verify_token.
Split: a request holds up to 1000 updates. Each element of entry[].changes[].value.statuses[] and .messages[] of field messages is an event; so is the whole value of every other change, and of one without either.
event: the status, the message, or the value. envelope: what stood beside it in its value (metadata, contacts, errors, …), with entry_id (the WhatsApp Business account), entry_time where there is one, and field.
type: status.<status> (sent, delivered, read, played, failed), message.<type> (text, image, …), else the field, such as message_template_status_update.
id: none. A status has only its message's id and itself; for messages event.id is an identity, the same in every retry.
time: timestamp, whole seconds; none for other fields.
Statuses come late, doubled and in any order, and several bear one second. "failed" can precede "delivered" and the reverse. Retried for seven days; no API tells a status later.`,
		Types: []string{
			"status.sent", "status.delivered", "status.read", "status.played", "status.failed", "status.deleted", "status.warning",
			"message.text", "message.image", "message.video", "message.audio", "message.voice", "message.document", "message.sticker",
			"message.location", "message.contacts", "message.button", "message.interactive", "message.reaction", "message.order",
			"message.system", "message.referral", "message.request_welcome", "message.edit", "message.revoke", "message.unsupported", "message.unknown",
			"messages", "calls", "flows", "history", "security", "group_lifecycle_update", "group_participants_update", "group_settings_update", "group_status_update",
			"account_alerts", "account_review_update", "account_settings_update", "account_update", "automatic_events", "business_capability_update",
			"business_status_update", "message_template_components_update", "message_template_quality_update", "message_template_status_update",
			"partner_solutions", "payment_configuration_update", "phone_number_name_update", "phone_number_quality_update",
			"smb_app_state_sync", "smb_message_echoes", "template_category_update", "template_correct_category_detection", "tracking_events", "user_preferences",
		},
		HasTime:     true,
		Grain:       Grain(time.Second),
		TimeCaution: "time has whole seconds, and sent and delivered often share one: use a ladder for the status and min for each status's own time",
		Samples:     samples("whatsapp"),
		Host:        "graph.facebook.com",
		New: func(o Options) (Source, error) {
			scheme := Scheme{Kind: SchemeHMAC, Hash: "sha256", Header: "X-Hub-Signature-256", Encoding: "hex", Prefix: "sha256="}
			v, err := newHMAC(scheme, o, "the app secret of the Meta app (App settings, Basic)")
			if err != nil {
				return nil, err
			}
			v.missing = "Meta signs every delivery: does the request come from Meta, and does every proxy pass its headers on?"
			v.advice = "Is it the app secret of the app that owns the webhook (not an access token, not the verify token)?"
			return build(v, nil, built{options: o, split: splitWhatsApp(o.Zone), handshake: metaHandshake(o.VerifyToken)})
		},
	}
}

// metaHandshake answers the GET by which Meta makes sure of an endpoint.
func metaHandshake(token string) func(*Request) (*Answer, bool) {
	want := sha256.Sum256([]byte(token))
	text := func(status int, body string) (*Answer, bool) {
		return &Answer{Status: status, ContentType: "text/plain; charset=utf-8", Body: []byte(body)}, true
	}
	return func(r *Request) (*Answer, bool) {
		if r.Method != http.MethodGet {
			return nil, false
		}
		query, _ := url.ParseQuery(r.Query) // what cannot be parsed is not there
		if query.Get("hub.mode") != "subscribe" {
			return nil, false
		}
		got := sha256.Sum256([]byte(query.Get("hub.verify_token")))
		challenge := query.Get("hub.challenge")
		switch {
		case token == "":
			return text(http.StatusForbidden, "This source has no verify_token in its config.\n")
		case subtle.ConstantTimeCompare(got[:], want[:]) == 0:
			return text(http.StatusForbidden, "The verify token is not the one in the config of this source.\n")
		case challenge == "" || len(challenge) > 1024:
			return text(http.StatusBadRequest, "hub.challenge is missing or too long.\n")
		}
		return text(http.StatusOK, challenge)
	}
}

func splitWhatsApp(zone *time.Location) func(*event.Delivery, event.JSON) ([]*event.Event, error) {
	return func(_ *event.Delivery, body event.JSON) ([]*event.Event, error) {
		entries := body.Get("entry")
		if body.Get("object").Kind() != event.String || entries.Kind() != event.Array {
			return nil, errors.New("not a Meta webhook: it has no text object and list entry")
		}
		if object := body.Get("object").Text(); object != "whatsapp_business_account" {
			return nil, errors.New("a Meta webhook, but not of a WhatsApp business account: subscribe this endpoint to whatsapp_business_account only")
		}
		var events []*event.Event
		for i := range entries.Len() {
			entry := entries.At(i)
			changes := entry.Get("changes")
			if changes.Kind() != event.Array {
				return nil, fmt.Errorf("not a WhatsApp webhook: entry[%d] has no list changes", i)
			}
			for j := range changes.Len() {
				more, err := splitChange(entry, changes.At(j), zone)
				if err != nil {
					return nil, err
				}
				events = append(events, more...)
			}
		}
		return events, nil
	}
}

// splitChange gives the events of one change. A list that is not a list, or an
// element without its status or type, costs none of its neighbours: it becomes
// an event of a type that says only what it is.
func splitChange(entry, change event.JSON, zone *time.Location) ([]*event.Event, error) {
	value := change.Get("value")
	field := change.Get("field").Text()
	if value.Kind() == event.Missing || change.Get("field").Kind() != event.String {
		return nil, errors.New("not a WhatsApp webhook: a change has no text field or no value")
	}
	envelope, err := changeEnvelope(entry, change)
	if err != nil {
		return nil, err
	}
	var events []*event.Event
	listed := false
	if field == "messages" {
		for _, list := range []struct{ name, prefix, kind string }{{"statuses", "status", "status"}, {"messages", "message", "type"}} {
			elements := value.Get(list.name)
			listed = listed || elements.Kind() == event.Array
			for i := range elements.Len() {
				e := &event.Event{Body: elements.At(i), Envelope: envelope, Type: list.prefix}
				if kind := e.Body.Get(list.kind).Text(); kind != "" {
					e.Type += "." + kind
				}
				setTime(e, e.Body.Get("timestamp"), "timestamp", zone)
				events = append(events, e)
			}
		}
	}
	if !listed {
		events = append(events, &event.Event{Body: value, Envelope: envelope, Type: field})
	}
	return events, nil
}

// changeEnvelope makes the object of what stands around the events of a change,
// which has a field.
func changeEnvelope(entry, change event.JSON) (event.JSON, error) {
	var out []byte
	member := func(name string, v event.JSON) {
		if v.Kind() == event.Missing {
			return
		}
		out = append(appendText(append(out, ','), name), ':')
		out = append(out, v.Raw()...)
	}
	member("entry_id", entry.Get("id"))
	member("entry_time", entry.Get("time"))
	member("field", change.Get("field"))
	value := change.Get("value")
	for _, name := range value.Names() {
		if name != "statuses" && name != "messages" {
			member(name, value.Get(name))
		}
	}
	out[0] = '{'
	return event.ParseJSON(append(out, '}'))
}

// dotted joins the steps of a path.
func dotted(path []string) string { return strings.Join(path, ".") }
