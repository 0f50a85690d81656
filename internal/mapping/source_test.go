package mapping

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
)

// shopWith is a config with one http source and one table of its events.
func shopWith(source, set string) string {
	return `
version: 1
journal: sqlite:test.db
targets: {db: {url: "sqlite:rows.db"}}
sources:
  shop: {preset: http, verify: none, ` + source + `}
tables:
  t:
    key: {id: text}
    columns: {a: {type: text, scope: a}, b: {type: bytes, scope: b}}
    events: [{from: shop, key: {id: 'string(event.n)'}, version: [1], set: {` + set + `}}]
`
}

func TestEvents(t *testing.T) {
	cases := []struct{ name, source, body, want string }{
		{"the body is one event", ``, `{"n":1}`, `{"n":1}`},
		{"split", `split: body.events`, `{"events":[{"n":1},{"n":2}]}`, `{"n":1} {"n":2}`},
		{"split of a list that is made", `split: 'body.a + body.b'`, `{"a":[{"n":1.50}],"b":[{"n":2}]}`, `{"n":1.50} {"n":2}`},
		{"split of a filtered list", `split: 'body.events.filter(e, e.n > 1)'`, `{"events":[{"n":1},{"n":2}]}`, `{"n":2}`},
		{"split of nothing", `split: body.events`, `{"events":[]}`, ``},
		{"split of what is no list", `split: body.events`, `{"events":{}}`, `error: split: body.events gives an object, not a list of events`},
		{"split of what is missing", `split: body.events`, `{}`, `error: split: no such field: body has no events`},
		{"id", `id: event.id`, `{"id":17}`, `{"id":17} id=17`},
		{"id that is null", `id: event.id`, `{"id":null}`, `{"id":null}`},
		{"id that is missing", `id: event.id`, `{}`, `{}`},
		{"id of parts", `id: [event.a, event.b]`, `{"a":"x/y","b":1}`, `{"a":"x/y","b":1} id=x\/y/1`},
		{"id of which a part is null", `id: [event.a, event.b]`, `{"a":"x","b":null}`, `{"a":"x","b":null}`},
		{"id that is an object", `id: event.id`, `{"id":{}}`, `error: event 0 of the delivery: id: event.id: an object is not text`},
		{"id of the body", `split: body.l, id: 'body.batch + "-" + string(event.n)'`, `{"batch":"b","l":[{"n":1}]}`, `{"n":1} id=b-1`},
		{"id of a header", `id: 'headers["x-id"]'`, `{}`, `{} id=h1`},
		{"type", `type: '"order." + event.k'`, `{"k":"paid"}`, `{"k":"paid"} type=order.paid`},
		{"type that is missing", `type: event.k`, `{}`, `{}`},
		{"time in seconds", `time: event.at`, `{"at":1767225600}`, `{"at":1767225600} time=2026-01-01T00:00:00Z`},
		{"time in a zone", `time: event.at, zone: Europe/Berlin`, `{"at":"2026-07-01 12:00"}`, `{"at":"2026-07-01 12:00"} time=2026-07-01T10:00:00Z`},
		{"time that is null", `time: event.at`, `{"at":null}`, `{"at":null}`},
		{"time that cannot be read", `time: event.at`, `{"at":true}`, `{"at":true} no time: event.at: true is not a time`},
		{"when", `split: body, when: event.live`, `[{"live":true},{"live":false},{"live":1},{}]`,
			`{"live":true} skipped 1 fault: the source's when: it gives the number 1, not true or false fault: the source's when: no such field: event has no live`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p := compiled(t, shopWith(tc.source, ""))
			split, err := p.Source("shop").Events(&event.Delivery{Source: "shop", Body: []byte(tc.body), Header: http.Header{"X-Id": {"h1"}}})
			var got []string
			if err != nil {
				got = append(got, "error: "+err.Error())
				split = &Split{}
			}
			for _, e := range split.Events {
				got = append(got, string(e.Body.Raw()))
				if e.ID != "" {
					got = append(got, "id="+e.ID)
				}
				if e.Type != "" {
					got = append(got, "type="+e.Type)
				}
				if !e.Time.IsZero() {
					got = append(got, "time="+e.Time.Format(time.RFC3339Nano))
				}
				if e.TimeError != "" {
					got = append(got, "no time: "+e.TimeError)
				}
			}
			if split.Skipped > 0 {
				got = append(got, fmt.Sprintf("skipped %d", split.Skipped))
			}
			for _, f := range split.Faults {
				got = append(got, "fault: "+f.Reason)
			}
			if g := strings.Join(got, " "); g != tc.want {
				t.Errorf("got  %s\nwant %s", g, tc.want)
			}
		})
	}
}

// TestRequest reads what is around an event: form fields, headers, the raw body.
func TestRequest(t *testing.T) {
	p := compiled(t, shopWith(`format: form`, `a: 'body.status + headers["x-id"] + query.q + path + event.status', b: raw`))
	d := &event.Delivery{Source: "shop", Body: []byte("n=5&status=sent"), Header: http.Header{"X-Id": {"h1"}}, Query: "q=1", Path: "/p"}
	split, err := p.Source("shop").Events(d)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{fmt.Sprintf(`t id=5: a=senth11/psent b=\x%x @1`, d.Body)}
	if diff := cmp.Diff(want, lines(p.Map(split.Events[0], "db"))); diff != "" {
		t.Error(diff)
	}
}

func TestNeedsFirstReceipt(t *testing.T) {
	for set, want := range map[string]bool{"a: event.a": false, "a: string(received)": true} {
		if got := compiled(t, shopWith(`id: event.id`, set)).Source("shop").NeedsFirstReceipt; got != want {
			t.Errorf("%s: %v, want %v", set, got, want)
		}
	}
}

// TestF15FirstReceipt: received is the first receipt of the identity.
func TestF15FirstReceipt(t *testing.T) {
	p := compiled(t, shopWith(`id: event.id`, "a: string(received)"))
	e := events(t, p, "shop", `{"n":1,"id":"x"}`)[0]
	e.FirstReceived = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if diff := cmp.Diff([]string{"t id=1: a=2026-01-01T00:00:00Z @1"}, lines(p.Map(e, "db"))); diff != "" {
		t.Error(diff)
	}
}

// TestSourceNames: what a source says of an event is the same each time it comes.
func TestSourceNames(t *testing.T) {
	cases := []struct{ source, want string }{
		{`time: received`, "sources.shop.time: received is not known here: this expression can read event, type, source, envelope, body, raw, headers, query, path"},
		{`id: type`, ""},
		{`type: id`, "sources.shop.type: id is not known here: this expression can read event, source, envelope, body, raw, headers, query, path"},
		{`split: event.list`, "sources.shop.split: event is not known here: this expression can read source, body, raw, headers, query, path"},
		{`when: position > 5`, "sources.shop.when: position is not known here: this expression can read event, type, id, time, source, envelope, body, raw, headers, query, path"},
	}
	for _, tc := range cases {
		_, problems := Compile(parsed(t, shopWith(tc.source, "")))
		got := ""
		for _, p := range problems.List {
			got += p.Path + ": " + p.Text
		}
		if got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.source, got, tc.want)
		}
	}
}
