package mapping

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/source"
)

const bookings = head + `
tables:
  booking:
    name: public.booking
    key: {ref: text}
    columns:
      status: text
      invitee: text
      start_at: timestamp
      no_show: {type: bool, scope: no_show}
      changed_at: {type: timestamp, merge: touch}
    events:
      - from: calendly
        type: [invitee.created, invitee.canceled]
        when: present(event.payload.tracking.utm_term)
        key: {ref: event.payload.tracking.utm_term}
        occupant: {id: event.payload.uri, since: event.payload.created_at}
        version: [event.payload.updated_at, 'type == "invitee.canceled" ? 1 : 0']
        set:
          status: 'type == "invitee.canceled" ? "canceled" : "active"'
          invitee: event.payload.uri
          start_at: event.payload.scheduled_event.start_time
      - from: calendly
        type: "invitee_no_show.*"
        when: present(event.payload.tracking.utm_term)
        key: {ref: event.payload.tracking.utm_term}
        occupant: {id: event.payload.uri, since: event.payload.created_at}
        set: {no_show: 'type == "invitee_no_show.created"'}
  message_status:
    key: {message_id: text}
    columns:
      status:       {type: text, merge: {ladder: [sent, failed, delivered, read, played]}}
      sent_at:      {type: timestamp, merge: min}
      delivered_at: {type: timestamp, merge: min}
      read_at:      {type: timestamp, merge: min}
      error:        {type: int, scope: error}
    events:
      - from: whatsapp
        type: "status.*"
        key: {message_id: event.id}
        set:
          status: event.status
          sent_at: 'type == "status.sent" ? time : unset'
          delivered_at: 'type == "status.delivered" ? time : unset'
          read_at: 'type == "status.read" ? time : unset'
          error: "event.?errors[0].?code"
`

func sampleEvents(t testing.TB, p *Plan, src, name string) []*event.Event {
	t.Helper()
	s, _ := source.SampleNamed(name)
	if s == nil {
		t.Fatalf("there is no sample %s", name)
	}
	split, err := p.Source(src).Events(&event.Delivery{Position: 1, Source: src, Body: s.Body, Header: s.Header})
	if err != nil {
		t.Fatal(err)
	}
	return split.Events
}

func TestSamples(t *testing.T) {
	p := compiled(t, bookings)
	got := map[string][]string{}
	for _, name := range []string{"calendly/reschedule.new.invitee.created", "calendly/reschedule.old.invitee.canceled", "whatsapp/status.failed", "whatsapp/status.sent"} {
		src, _, _ := strings.Cut(name, "/")
		for _, e := range sampleEvents(t, p, src, name) {
			got[name] = append(got[name], lines(p.Map(e, "db"))...)
		}
	}
	const (
		old = "https://api.calendly.com/scheduled_events/5b0f6c3e-8a1d-4e7b-9c52-1d3f5a7b9c01/invitees/a2d4f6b8-1c3e-4a5b-8d7f-9e0b1c2d3e01"
		new = "https://api.calendly.com/scheduled_events/5b0f6c3e-8a1d-4e7b-9c52-1d3f5a7b9c02/invitees/a2d4f6b8-1c3e-4a5b-8d7f-9e0b1c2d3e02"
	)
	want := map[string][]string{
		"calendly/reschedule.new.invitee.created":  {"booking ref=lead_48213: status=active invitee=" + new + " start_at=2026-09-23T13:00:00.000000Z @2026-09-16T13:45:07.512904Z/0 of " + new},
		"calendly/reschedule.old.invitee.canceled": {"booking ref=lead_48213: status=canceled invitee=" + old + " start_at=2026-09-21T08:00:00.000000Z @2026-09-16T13:45:07.64812Z/1 of " + old},
		"whatsapp/status.failed":                   {"message_status message_id=wamid.HBgLMTU1NTAxMjM0NTYVAgARGBJBQUFBMDAwMDAwMDAwMDAwMDIA: status=failed error=131026 @2026-09-10T00:26:43Z"},
		"whatsapp/status.sent":                     {"message_status message_id=wamid.HBgLMTU1NTAxMjM0NTYVAgARGBJBQUFBMDAwMDAwMDAwMDAwMDEA: status=sent sent_at=2026-09-10T00:26:40.000000Z @2026-09-10T00:26:40Z"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func BenchmarkMap(b *testing.B) {
	p := compiled(b, bookings)
	for _, name := range []string{"calendly/reschedule.new.invitee.created", "whatsapp/status.failed"} {
		src, _, _ := strings.Cut(name, "/")
		s, _ := source.SampleNamed(name)
		b.Run("split and map "+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				split, err := p.Source(src).Events(&event.Delivery{Position: 1, Source: src, Body: s.Body, Header: s.Header})
				if err != nil {
					b.Fatal(err)
				}
				for _, e := range split.Events {
					if out := p.Map(e, "db"); len(out.Changes) != 1 {
						b.Fatal(lines(out))
					}
				}
			}
		})
		b.Run("map again "+name, func(b *testing.B) {
			e := sampleEvents(b, p, src, name)[0]
			b.ReportAllocs()
			for b.Loop() {
				if out := p.Map(e, "db"); len(out.Changes) != 1 {
					b.Fatal(lines(out))
				}
			}
		})
	}
}

// TestConcurrent maps events of one plan from several goroutines: run it with
// -race.
func TestConcurrent(t *testing.T) {
	p := compiled(t, bookings)
	want := lines(p.Map(sampleEvents(t, p, "calendly", "calendly/reschedule.new.invitee.created")[0], "db"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				e := sampleEvents(t, p, "calendly", "calendly/reschedule.new.invitee.created")[0]
				if got := lines(p.Map(e, "db")); !slices.Equal(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
			}
		})
	}
	wg.Wait()
}

// TestMovedField: a field that a provider no longer sends makes the event dead,
// with its name, and never an empty column.
func TestMovedField(t *testing.T) {
	p := compiled(t, head+`
tables:
  subscription:
    key: {id: text}
    columns: {status: text, period_end: timestamp}
    events:
      - from: stripe
        type: customer.subscription.updated
        key: {id: event.data.object.id}
        version: [time, 1]
        set: {status: event.data.object.status, period_end: timestamp(event.data.object.period_end)}
`)
	got := lines(p.Map(sampleEvents(t, p, "stripe", "stripe/customer.subscription.updated")[0], "db"))
	want := []string{"dead subscription.period_end: no such field: event.data.object has no period_end. Has the provider changed its API version?"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestKinds: where an expression does not tell whether a version's element is a
// time or a number, the preset's samples do, or else another mapping of the
// scope; then a value of the other kind is dead, and null has a width.
func TestKinds(t *testing.T) {
	p := compiled(t, head+`
tables:
  a:
    key: {id: text}
    columns: {uri: text}
    events: [{from: calendly, type: invitee.created, key: {id: event.payload.uri}, version: [event.payload.updated_at], set: {uri: event.payload.uri}}]
  b:
    key: {id: text}
    columns: {x: text, y: {type: text, scope: y}}
    events:
      - {from: shop, type: timed, key: {id: event.u}, version: [timestamp(event.n)], set: {x: event.x}}
      - {from: shop, type: open, key: {id: event.u}, version: [event.n], set: {x: event.x}}
      - {from: shop, type: apart, key: {id: event.u}, version: [event.n], set: {y: event.x}}
`)
	var kinds []merge.ComponentKind
	for _, name := range []string{"a", "b"} {
		for _, m := range p.Table(name).Mappings {
			kinds = append(kinds, m.Version[0].Kind)
		}
	}
	if d := cmp.Diff([]merge.ComponentKind{merge.TimeComponent, merge.TimeComponent, merge.TimeComponent, 0}, kinds); d != "" {
		t.Errorf("kinds: %s", d)
	}
	cases := []struct{ body, want string }{
		{`{"u":"1","x":"x","type":"open","n":5}`, "dead b.: version[0]: the number 5 stands where other versions of this scope have a time. Write timestamp(…) or int(…) around it."},
		{`{"u":"1","x":"x","type":"open","n":null}`, "b id=1: x=x @null"},
		{`{"u":"1","x":"x","type":"apart","n":5}`, "b id=1: y=x @5"},
		{`{"u":"1","x":"x","type":"apart","n":null}`, "dead b.: version[0]: is null, and nothing tells whether it would be a time or a number. Write timestamp(…) or int(…) around it."},
	}
	for _, tc := range cases {
		if got := strings.Join(lines(p.Map(events(t, p, "shop", tc.body)[0], "db")), " | "); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.body, got, tc.want)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	cfg := parsed(b, bookings)
	for b.Loop() {
		Compile(cfg)
	}
}
