package mapping

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
)

// manyOf is a config that splits body.events, with a text column p.
func manyOf(source, set string) string {
	return head + `  many: {preset: http, verify: none, split: body.events` + source + `}
tables:
  item:
    key: {k: text}
    columns: {p: json, q: text, r: text}
    events: [{from: many, key: {k: event.k}, version: event.v, set: {` + set + `}}]
`
}

// many makes a delivery of n events and at least pad bytes.
func many(n, pad int) *event.Delivery {
	var b strings.Builder
	b.WriteString(`{"account":"a1","events":[`)
	for i := range n {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"k":"k%d","v":1}`, i)
	}
	b.WriteString(`],"list":[` + strings.TrimSuffix(strings.Repeat(`"x",`, pad/8), ",") + `],"pad":"` + strings.Repeat("x", pad/2) + `"}`)
	return &event.Delivery{Position: 1, Source: "many", Received: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), Body: []byte(b.String()), Query: "a=" + strings.Repeat("q", 50_000),
		Header: http.Header{"X-Big": {strings.Repeat("h", 50_000)}}}
}

// What an expression makes of nothing but the delivery is made once, however many
// events it has, and so is what versions hold of it: else a delivery of 1 MB
// would take gigabytes and hours.
func TestManyEventsOfOneDelivery(t *testing.T) {
	const n, pad = 5_000, 1 << 20
	for _, c := range []struct{ name, source, set string }{
		{"values", "", "p: body, q: string(raw), r: 'size(envelope.list) > 3 ? headers[\"x-big\"] : query.a'"},
		{"members", "", "p: envelope.list"},
		{"together with the event", "", "q: 'body.account + event.k', r: 'query.a == event.k ? \"a\" : coalesce(headers.?none, \"b\")'"},
		{"of the whole list", "", "q: 'body.list.size() > event.v ? \"a\" : \"b\"'"},
		{"id, type, time and when", ", id: [body.account, event.k], type: body.account, time: 'body.?time', when: 'body.account == \"a1\" && headers.?none.orValue(\"\") == \"\" && query.a != \"\"'", "q: event.k"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := compiled(t, manyOf(c.source, c.set))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			split, err := p.Source("many").Events(many(n, pad))
			if err != nil {
				t.Fatal(err)
			}
			changes := 0
			for _, e := range split.Events {
				out := p.Map(e, "db")
				if len(out.Faults) > 0 {
					t.Fatal(out.Faults)
				}
				if changes += len(out.Changes); time.Since(start) > 10*time.Second {
					t.Fatalf("%d of %d events take %s", changes, n, time.Since(start))
				}
			}
			runtime.ReadMemStats(&after)
			made := (after.TotalAlloc - before.TotalAlloc) >> 20
			t.Logf("%s, %d MB", time.Since(start), made)
			if changes != n || made > 500 {
				t.Errorf("%d changes of %d events take %d MB", changes, n, made)
			}
		})
	}
}

// Events that are alike have one version only if what is around them is alike too.
func TestF6HashOfTheDelivery(t *testing.T) {
	version := func(p *Plan, d *event.Delivery, at int) string {
		split, err := p.Source("many").Events(d)
		if err != nil {
			t.Fatal(err)
		}
		return string(p.Map(split.Events[at], "db").Changes[0].Version)
	}
	with := func(edit func(*event.Delivery)) *event.Delivery {
		d := many(2, 0)
		d.Position, d.Header, d.Query = 2, http.Header{"X": {"1"}}, "a=1"
		edit(d)
		return d
	}
	none := func(*event.Delivery) {}
	other := func(d *event.Delivery) { d.Body = []byte(strings.Replace(string(d.Body), "a1", "a2", 1)) }
	for _, c := range []struct {
		reads string
		edit  func(*event.Delivery)
	}{
		{"body.account", other}, {"envelope.account", other}, {"string(raw)", other},
		{"headers.x", func(d *event.Delivery) { d.Header.Set("X", "2") }},
		{"query.a", func(d *event.Delivery) { d.Query = "a=2" }},
		{"path", func(d *event.Delivery) { d.Path = "/b" }},
	} {
		t.Run(c.reads, func(t *testing.T) {
			p := compiled(t, manyOf("", "q: '"+c.reads+"'"))
			first := version(p, with(none), 0)
			if again := version(p, with(none), 0); again != first {
				t.Errorf("sent again: %s, was %s", again, first)
			}
			if changed := version(p, with(c.edit), 0); changed == first {
				t.Errorf("changed, and it is still %s", first)
			}
			if next := version(p, with(none), 1); next == first {
				t.Errorf("the next event has %s too", next)
			}
		})
	}
}

// The values that events share are theirs however they are mapped, and bad text
// in them counts for each.
func TestSharedValuesCountBadText(t *testing.T) {
	p := compiled(t, manyOf("", `"*": body.all`))
	split, err := p.Source("many").Events(&event.Delivery{Source: "many", Position: 1, Body: []byte(`{"all":{"p":1,"q":"a\u0000b","r":"c"},"events":[{"k":"a","v":1},{"k":"b","v":1}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range split.Events {
		if out := p.Map(e, "db"); out.Replaced != 1 || len(out.Faults) > 0 {
			t.Errorf("%s: %d replaced, %v", e.Ref(), out.Replaced, out.Faults)
		}
	}
}
