package demo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Request is one webhook: its source in the config, and its body.
type Request struct {
	Source string
	Body   []byte
	// About names what it tells, for a person.
	About string
}

// start is when the story begins. It lies in the past, so that no event is
// ahead of any clock.
var start = time.Date(2025, 11, 3, 9, 0, 0, 0, time.UTC)

// How much there is of everything: bookings that take place, bookings that are
// canceled for good after them, messages, users.
const (
	kept     = 12
	canceled = 8
	messages = 300
	users    = 100
)

// lead is the reference of a booking.
func lead(n int) string { return fmt.Sprintf("lead_%d", 48201+n) }

// Story tells the events of the demo, in the order in which they happened.
func Story(seed uint64) []Request {
	r := rand.New(rand.NewPCG(seed, 1))
	var out []Request
	for n := range kept + canceled {
		out = append(out, bookings(lead(n), start.Add(time.Duration(n)*time.Hour), n >= kept)...)
	}
	out = append(out, statuses(r)...)
	return append(out, shop(r)...)
}

// Shuffle puts requests in the order of a bad day: each comes twice, one in
// four times at the same moment, else anywhere.
func Shuffle(requests []Request, seed uint64) []Request {
	r := rand.New(rand.NewPCG(seed, 2))
	type placed struct {
		place float64
		Request
	}
	var all []placed
	for _, q := range requests {
		first, second := r.Float64(), r.Float64()
		if r.IntN(4) == 0 {
			second = first
		}
		all = append(all, placed{first, q}, placed{second, q})
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.place, b.place) })
	out := make([]Request, len(all))
	for i, p := range all {
		out[i] = p.Request
	}
	return out
}

// bookings is one Calendly booking that is rescheduled twice. Each reschedule
// is two webhooks: the old invitee is canceled, stamped a moment after the new
// one was created. With forGood, the last invitee then cancels for good.
func bookings(lead string, at time.Time, forGood bool) []Request {
	const api = "https://api.calendly.com/scheduled_events/"
	uri := func(n int) any {
		if n < 1 || n > 3 {
			return nil
		}
		return fmt.Sprintf("%s5b0f6c3e-0000-4000-9000-%s%03d/invitees/a2d4f6b8-0000-4000-9000-%s%03d", api, lead[5:]+"0000", n, lead[5:]+"0000", n)
	}
	created := func(n int) time.Time { return at.Add(time.Duration(n-1) * 26 * time.Hour) }
	event := func(kind string, n int, updated time.Time, rescheduled bool) Request {
		status, next := "active", any(nil)
		if kind == "invitee.canceled" {
			status = "canceled"
			if rescheduled {
				next = uri(n + 1)
			}
		}
		payload := map[string]any{
			"uri": uri(n), "created_at": micro(created(n)), "updated_at": micro(updated), "status": status,
			"email": "jonas.weber@contoso.example", "name": "Jonas Weber",
			"rescheduled": rescheduled, "old_invitee": uri(n - 1), "new_invitee": next,
			"tracking": map[string]any{"utm_term": lead, "utm_source": "newsletter"},
			"scheduled_event": map[string]any{
				"uri": fmt.Sprintf("%s5b0f6c3e-0000-4000-9000-%s%03d", api, lead[5:]+"0000", n), "name": "Intro Call (30 min)",
				"start_time": micro(at.Add(time.Duration(7+n) * 24 * time.Hour)), "status": status,
			},
		}
		if status == "canceled" {
			payload["cancellation"] = map[string]any{"canceled_by": "Jonas Weber", "canceler_type": "invitee", "created_at": micro(updated.Add(-16 * time.Millisecond)), "reason": "Need a later slot"}
		}
		return Request{Source: "calendly", About: fmt.Sprintf("%s %s, invitee %d", lead, kind, n), Body: encode(map[string]any{
			"event": kind, "created_at": micro(updated.Truncate(time.Second)), "payload": payload,
		})}
	}
	out := []Request{event("invitee.created", 1, created(1), false)}
	for n := 2; n <= 3; n++ {
		out = append(out,
			event("invitee.created", n, created(n), false),
			event("invitee.canceled", n-1, created(n).Add(135*time.Millisecond), true))
	}
	if forGood {
		out = append(out, event("invitee.canceled", 3, created(3).Add(48*time.Hour), false))
	}
	return out
}

type status struct {
	message int
	status  string
	at      time.Time
}

// statuses is what WhatsApp tells of its messages: each is sent, then most are
// delivered and many read, some fail, and a few fail on one device and are
// delivered on another. One request in five holds several.
func statuses(r *rand.Rand) []Request {
	var all []status
	for m := range messages {
		at := start.Add(time.Duration(m) * 7 * time.Second)
		all = append(all, status{m, "sent", at})
		fate := r.IntN(100)
		if fate < 10 {
			all = append(all, status{m, "failed", at.Add(2 * time.Second)})
		}
		if fate >= 6 && fate < 96 {
			all = append(all, status{m, "delivered", at.Add(time.Duration(r.IntN(6)) * time.Second)})
		}
		if fate >= 20 && fate < 85 {
			all = append(all, status{m, "read", at.Add(time.Duration(10+r.IntN(300)) * time.Second)})
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var out []Request
	for len(all) > 0 {
		n := 1
		if r.IntN(5) == 0 {
			n = min(2+r.IntN(4), len(all))
		}
		out = append(out, whatsapp(all[:n]))
		all = all[n:]
	}
	return out
}

func messageID(m int) string { return fmt.Sprintf("wamid.HBgLMTU1NTAxMjM0NTYVAgAR%04d", m) }

func whatsapp(some []status) Request {
	var list []any
	about := ""
	for _, s := range some {
		one := map[string]any{
			"id": messageID(s.message), "status": s.status, "timestamp": fmt.Sprint(s.at.Unix()), "recipient_id": "15550123456",
		}
		if s.status == "failed" {
			one["errors"] = []any{map[string]any{"code": 131026, "title": "Message undeliverable"}}
		}
		list = append(list, one)
		about += fmt.Sprintf(" %s of message %d", s.status, s.message)
	}
	return Request{Source: "whatsapp", About: about[1:], Body: encode(map[string]any{
		"object": "whatsapp_business_account",
		"entry": []any{map[string]any{"id": "209900000000001", "changes": []any{map[string]any{"field": "messages", "value": map[string]any{
			"messaging_product": "whatsapp",
			"metadata":          map[string]any{"display_phone_number": "15550100200", "phone_number_id": "104880000000001"},
			"statuses":          list,
		}}}}},
	})}
}

// shop is five events of each user of an in-house system: they register,
// change plan, pay, and write tickets. One user in ten was never announced.
func shop(r *rand.Rand) []Request {
	var out []Request
	add := func(kind string, user int, at time.Time, more map[string]any) {
		n := len(out) + 1
		body := map[string]any{"id": fmt.Sprintf("evt_%04d", n), "type": kind, "at": micro(at), "user": userID(user)}
		for k, v := range more {
			body[k] = v
		}
		out = append(out, Request{Source: "shop", About: fmt.Sprintf("%s of %s", kind, userID(user)), Body: encode(body)})
	}
	for u := range users {
		at := start.Add(time.Duration(u) * time.Minute)
		if u%10 == 9 {
			add("ticket.opened", u, at, map[string]any{"ticket": fmt.Sprintf("tk_%03d_0", u), "subject": "Where do I sign up?"})
		} else {
			add("user.registered", u, at, map[string]any{"email": fmt.Sprintf("user%03d@contoso.example", u), "plan": "free"})
		}
		if u%10 == 9 {
			add("ticket.closed", u, at.Add(2*time.Minute), map[string]any{"ticket": fmt.Sprintf("tk_%03d_0", u), "subject": "Where do I sign up?"})
		} else {
			add("user.updated", u, at.Add(90*time.Second), map[string]any{"email": fmt.Sprintf("user%03d@contoso.example", u), "plan": "pro"})
		}
		pay := map[string]any{"payment": fmt.Sprintf("pay_%03d", u), "amount": json.Number(fmt.Sprintf("%d.%02d", 10+r.IntN(190), r.IntN(100)))}
		add("payment.created", u, at.Add(2*time.Minute), pay)
		if u%7 == 3 {
			add("payment.failed", u, at.Add(2*time.Minute+1500*time.Millisecond), pay)
		} else {
			add("payment.paid", u, at.Add(2*time.Minute+800*time.Millisecond), pay)
		}
		add("ticket.opened", u, at.Add(time.Hour), map[string]any{"ticket": fmt.Sprintf("tk_%03d_1", u), "subject": "Invoice, please"})
	}
	return out
}

func userID(u int) string { return fmt.Sprintf("user_%03d", u) }

// micro prints a time as Calendly does: UTC, six digits.
func micro(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// encode writes a body as JSON. The bodies are our own and always can be.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}
