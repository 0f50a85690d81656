package check

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const booking = head + `
  booking:
    key: {ref: text}
    columns: {status: text, invitee: text, start_at: timestamp}
    events:
      - from: calendly
        type: [invitee.created, invitee.canceled]
        when: present(event.payload.tracking.utm_term)
        key: {ref: event.payload.tracking.utm_term}
        OCCUPANT
        version: [event.payload.updated_at, 'type == "invitee.canceled" ? 1 : 0']
        set:
          status: 'type == "invitee.canceled" ? "canceled" : "active"'
          invitee: event.payload.uri
          start_at: event.payload.scheduled_event.start_time
  user: {key: {id: int}, columns: {}, events: [{from: shop, when: present(event.user), key: {id: event.user}}]}
  payment:
    key: {id: text}
    columns: {user_id: {type: int, references: user, missing: ensure}, amount: numeric}
    events: [{from: shop, type: payment, key: {id: event.id}, set: {user_id: event.user, amount: event.cents / 100}}]
`

const withOccupant = "occupant: {id: event.payload.uri, since: event.payload.created_at}"

func TestTests(t *testing.T) {
	cases := []struct {
		name, occupant, tests string
		orders                int
		differences           []string
	}{
		{"the late cancel of an old invitee", withOccupant, `
  - name: x
    send: [calendly/reschedule.new.invitee.created, calendly/reschedule.old.invitee.canceled]
    expect: {booking: [{ref: lead_48213, status: active, start_at: 2026-09-23T13:00:00Z}]}`, 2, nil},
		{"the cancel wins without an occupant", "", `
  - name: x
    send: [calendly/reschedule.new.invitee.created, calendly/reschedule.old.invitee.canceled]
    expect: {booking: [{ref: lead_48213, status: active}]}`, 1,
			[]string{"booking ref=lead_48213: status is canceled, expected active", "in the order calendly/reschedule.new.invitee.created, calendly/reschedule.old.invitee.canceled"}},
		{"a payment makes its user", withOccupant, `
  - name: x
    send:
      - {source: shop, body: {type: payment, id: p1, user: 17, cents: 1999, at: "2026-01-01T00:00:00Z"}}
      - {source: shop, body: {type: payment, id: p1, user: 17, cents: 2001, at: "2026-01-02T00:00:00Z"}}
      - {source: shop, body: {type: payment, id: p2, user: null, cents: 5, at: "2026-01-02T00:00:00Z"}}
    expect:
      user: [{id: 17}]
      payment: [{id: p1, amount: 20.01}, {id: p2, amount: 0.05, user_id: null}]`, 6, nil},
		{"a row too few and a row too many", withOccupant, `
  - name: x
    send: [{source: shop, body: {type: payment, id: p1, user: 17, cents: 1, at: "2026-01-01T00:00:00Z"}}]
    expect: {user: [], payment: [{id: p2}]}`, 1,
			[]string{"user: there is a row id=17 that is not expected", "payment: there is no row id=p2", "payment: there is a row id=p1 that is not expected"}},
		{"a sample that there is not", withOccupant, `
  - name: x
    send: [calendly/invitee.create]
    expect: {booking: []}`, 0,
			[]string{"there is no sample calendly/invitee.create. Did you mean calendly/invitee.created?"}},
		{"a value of another type", withOccupant, `
  - name: x
    send: [{source: shop, body: {type: other}}]
    expect: {user: [{id: abc}]}`, 1, []string{"user.id: abc does not fit int"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p := compiled(t, strings.Replace(booking, "OCCUPANT", tc.occupant, 1)+"tests:"+tc.tests+"\n")
			results := Test(p, Options{})
			if len(results) != 1 {
				t.Fatalf("%d results", len(results))
			}
			if d := cmp.Diff(tc.differences, results[0].Differences); d != "" || results[0].Orders != tc.orders {
				t.Errorf("%d orders, want %d; -want +got\n%s", results[0].Orders, tc.orders, d)
			}
		})
	}
}

// TestNotes tells of events that say nothing.
func TestNotes(t *testing.T) {
	p := compiled(t, strings.Replace(booking, "OCCUPANT", withOccupant, 1)+`tests:
  - name: x
    send:
      - {source: shop, body: {type: payment, id: null, user: null, cents: 1}}
      - {source: shop, body: {type: other}}
    expect: {user: []}
`)
	r := Test(p, Options{})[0]
	want := []string{
		"send[0] payment is dead → payment: key id is null (event.id). Events without a key belong in a when:.",
		"send[0] payment is dead → payment: version[0]: the event has no time",
		"send[1] other is wanted by no mapping",
	}
	if d := cmp.Diff(want, r.Notes); d != "" || !r.Passed() {
		t.Errorf("passed %v, -want +got\n%s", r.Passed(), d)
	}
}

// TestManyEvents tries random orders where there are too many to try all.
func TestManyEvents(t *testing.T) {
	var send []string
	for _, at := range []string{"01", "02", "03", "04", "05", "06", "07", "08"} {
		send = append(send, `{source: shop, body: {type: payment, id: p, user: 1, cents: `+at[1:]+`00, at: "2026-01-`+at+`T00:00:00Z"}}`)
	}
	p := compiled(t, strings.Replace(booking, "OCCUPANT", withOccupant, 1)+"tests: [{name: x, send: ["+strings.Join(send, ", ")+"], expect: {payment: [{id: p, amount: 8}]}}]\n")
	r := Test(p, Options{Seed: 1, Orders: 50})[0]
	if !r.Passed() || r.Orders != 50 || r.Events != 8 {
		t.Errorf("%+v", r)
	}
}

// TestTestsOfFetches: what fetches read is given with a test's deliveries.
func TestTestsOfFetches(t *testing.T) {
	text := head + `
  order:
    key: {id: text}
    on_delete: remove
    columns: {state: text}
    events: [{from: shop, type: order, fetch: order, key: {id: event.id}, set: {state: fetched.state}}]
fetches: {order: {url: event.link, hosts: [api.example.com], not_found: delete}}
tests:
  - name: the last read counts
    send:
      - {source: shop, body: {id: 1, type: order, at: 1}, fetched: {order: {state: new}}}
      - {source: shop, body: {id: 1, type: order, at: 1}, fetched: {order: {state: paid}}}
      - {source: shop, body: {id: 2, type: order, at: 1}, fetched: {order: {state: new}}}
      - {source: shop, body: {id: 2, type: order, at: 1}, fetched: {order: null}}
    expect: {order: [{id: "1", state: paid}]}
  - name: nothing was read
    send: [{source: shop, body: {id: 1, type: order, link: "https://api.example.com/1"}}]
    expect: {order: []}
`
	results := Test(compiled(t, text), Options{})
	if !results[0].Passed() || results[0].Orders != 24 {
		t.Errorf("%+v", results[0])
	}
	if notes := strings.Join(results[1].Notes, "\n"); !results[1].Passed() || !strings.Contains(notes, "waits for fetch order of https://api.example.com/1: give fetched: {order: {…}} with it") {
		t.Errorf("%+v", results[1])
	}
}
