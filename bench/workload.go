package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"time"
)

// secret signs every delivery.
const secret = "bench-secret"

// workload is deliveries in the order in which they are sent.
type workload struct{ deliveries []delivery }

// delivery is one signed request and what it says.
type delivery struct {
	// request is the whole HTTP request, as it goes over the wire.
	request []byte
	// body is the part of request that is signed.
	body []byte
	said row
}

// row is what a delivery says about a row, or a row that is found.
type row struct {
	table, key, state, who string
	at                     int64 // seconds since 1970
}

// epoch is when the first event happened.
const epoch = 1767225600 // 2026-01-01T00:00:00Z

// newWorkload makes n deliveries, half WhatsApp statuses and half Calendly
// bookings, three events to a row: 30 % come out of order, 20 % are there
// twice. hot is the share of events that are about one row.
func newWorkload(n int, hot float64, seed uint64) *workload {
	rnd := rand.New(rand.NewPCG(seed, 7))
	said := make([]row, 0, n)
	fresh := n - n/6 // doubling a fifth of these gives n
	for i := range fresh {
		key, step := i/3, i%3
		r := row{at: epoch + int64(i)}
		switch {
		case rnd.Float64() < hot:
			r.table, r.key = tables[0], "wamid.HOT"
		case key%2 == 0:
			r.table, r.key = tables[0], fmt.Sprintf("wamid.HBgLNDkxNTE%08d", key)
		default:
			r.table, r.key = tables[1], fmt.Sprintf("lead_%08d", key)
		}
		if r.table == tables[0] {
			r.state, r.who = []string{"sent", "delivered", "read"}[step], fmt.Sprintf("4915112%06d", key%1_000_000)
		} else {
			r.state, r.who = []string{"active", "active", "canceled"}[step], fmt.Sprintf("person%d@example.com", key)
		}
		said = append(said, r)
	}
	for i := range said {
		if j := i + 1 + rnd.IntN(50); rnd.Float64() < .2 && j < len(said) { // both of a pair are out of order then
			said[i], said[j] = said[j], said[i]
		}
	}
	for len(said) < n {
		at := rnd.IntN(fresh)
		said = append(said, said[at])
	}
	rnd.Shuffle(len(said)-fresh, func(i, j int) { said[fresh+i], said[fresh+j] = said[fresh+j], said[fresh+i] })
	// The second copies go among the first ones, not to the end.
	order := make([]row, 0, n)
	second := said[fresh:]
	for i, r := range said[:fresh] {
		order = append(order, r)
		for len(second) > 0 && len(order)-i-1 < (i+1)*(n-fresh)/fresh {
			order, second = append(order, second[0]), second[1:]
		}
	}
	order = append(order, second...)
	w := &workload{deliveries: make([]delivery, len(order))}
	for i, r := range order {
		w.deliveries[i] = render(r)
	}
	return w
}

var tables = []string{"message_status", "booking"}

// render makes the request of a delivery of 1.2 to 1.5 KB. What identifies
// things in it differs from row to row, and from event to event, as with a
// provider: it does not compress.
func render(r row) delivery {
	at := time.Unix(r.at, 0).UTC()
	of, event1 := digest(r.key), digest(fmt.Sprint(r.key, r.at))
	name := names[int(of[0])%len(names)] + " " + names[int(of[1])%len(names)]
	var body, path, header string
	if r.table == tables[0] {
		body = fmt.Sprintf(whatsappBody, r.key, r.state, r.at, r.who, of[:32], r.at+86400, event1[:32], event1[32:48], name, r.who, of[32:52])
		path, header = "/in/whatsapp", "X-Hub-Signature-256: sha256="+sign([]byte(body))
	} else {
		t := at.Format(time.RFC3339)
		event := map[string]string{"active": "invitee.created", "canceled": "invitee.canceled"}[r.state]
		body = fmt.Sprintf(calendlyBody, event, t, of[:16], of[16:32], r.who, of[32:48], name, of[16:32], r.key, t, t, of[32:48], of[16:32], of[32:48])
		stamp := time.Now().Unix()
		path, header = "/in/calendly", fmt.Sprintf("Calendly-Webhook-Signature: t=%d,v1=%s", stamp, sign(fmt.Appendf(nil, "%d.%s", stamp, body)))
	}
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nUser-Agent: provider/1.0\r\n%s\r\nContent-Length: %d\r\n\r\n", path, header, len(body))
	request := append([]byte(head), body...)
	return delivery{request: request, body: request[len(head):], said: r}
}

// digest is 64 digits that stand for a text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

var names = []string{"Katharina", "Musterfrau", "Jonas", "Schneider", "Aylin", "Demir", "Nguyen", "Thi", "Maria", "da Silva", "Olusegun", "Adeyemi", "Sofia", "Rossi", "Emil", "Lindqvist"}

func sign(signed []byte) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write(signed)
	return hex.EncodeToString(m.Sum(nil))
}

// want gives the rows that deliveries make: of each the event that is newest.
func want(sent []delivery) map[string]row {
	rows := map[string]row{}
	for _, d := range sent {
		k := d.said.table + " " + d.said.key
		if have, ok := rows[k]; !ok || d.said.at > have.at {
			rows[k] = d.said
		}
	}
	return rows
}

const whatsappBody = `{"object":"whatsapp_business_account","entry":[{"id":"102290129340398","changes":[{"value":{"messaging_product":"whatsapp",` +
	`"metadata":{"display_phone_number":"15550783881","phone_number_id":"106540352242922"},"statuses":[{"id":%q,"status":%q,"timestamp":"%d",` +
	`"recipient_id":%q,"conversation":{"id":%q,"expiration_timestamp":"%d","origin":{"type":"marketing"}},` +
	`"pricing":{"billable":true,"pricing_model":"PMP","category":"marketing","type":"regular"},` +
	`"biz_opaque_callback_data":"campaign=spring;segment=returning;variant=b;template=order_update_v3;locale=de_DE;trace=00-%s-%s-01"}],` +
	`"contacts":[{"profile":{"name":%q},"wa_id":%q,"user_id":"DE.%s"}]},"field":"messages"}],` +
	`"time":1767225600,"changed_fields":["messages","message_template_status_update","phone_number_quality_update","account_update","business_capability_update"],` +
	`"account":{"name":"Example Retail GmbH","currency":"EUR","timezone_id":"57","message_template_namespace":"ba30dd89_2ebd_41e4_b805_f2c05ae04cc9","review_status":"APPROVED",` +
	`"business_verification_status":"verified","country":"DE","ownership_type":"SELF","primary_business_location":"Europe/Berlin"}}]}`

const calendlyBody = `{"event":%q,"created_at":%q,"created_by":"https://api.calendly.com/users/%s","payload":{"cancel_url":"https://calendly.com/cancellations/%s",` +
	`"email":%q,"event":"https://api.calendly.com/scheduled_events/%s","name":%q,"new_invitee":null,"old_invitee":null,` +
	`"questions_and_answers":[{"answer":"We would like to talk about the rollout in spring, and about the price for 40 seats.","position":0,"question":"What is it about?"}],` +
	`"reschedule_url":"https://calendly.com/reschedulings/%s","rescheduled":false,"status":"active","text_reminder_number":null,"timezone":"Europe/Berlin",` +
	`"tracking":{"utm_campaign":null,"utm_source":null,"utm_medium":null,"utm_content":null,"utm_term":%q,"salesforce_uuid":null},"updated_at":%q,` +
	`"created_at":%q,"uri":"https://api.calendly.com/scheduled_events/%s/invitees/%s","scheduled_event":` +
	`{"uri":"https://api.calendly.com/scheduled_events/%s","name":"Intro call","status":"active","start_time":"2026-02-03T09:00:00.000000Z","end_time":"2026-02-03T09:30:00.000000Z",` +
	`"location":{"type":"physical","location":"Room 4"},"invitees_counter":{"total":1,"active":1,"limit":1}}}}`
