package mapping

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/merge"
)

const lanesHead = head + `  bare: {preset: http, verify: none}
lanes:
`

func TestLanesTakeTheirEvents(t *testing.T) {
	p := compiled(t, lanesHead+`
  billing: {from: shop, type: "invoice.*", when: event.total > 0, key: event.customer, post: "http://localhost/x", secret: none}
  ordered: {from: shop, key: event.customer, order: version, version: [event.at, event.no], post: "http://localhost/x", secret: none}
`)
	for _, c := range []struct{ lane, body, want string }{
		{"billing", `{"id":"e1","type":"invoice.paid","at":"2026-01-01T00:00:00Z","total":1,"customer":1001}`, "1001"},
		{"billing", `{"id":"e1","type":"invoice.paid","total":0,"customer":"a"}`, "-"},
		{"billing", `{"id":"e1","type":"order","total":1,"customer":"a"}`, "-"},
		{"billing", `{"id":"e1","type":"invoice.paid","total":1}`, "dead no such field: event has no customer"},
		{"billing", `{"id":"e1","type":"invoice.paid","total":1,"customer":""}`, "dead its key is an empty text"},
		{"billing", `{"id":"e1","type":"invoice.paid","total":1,"customer":null}`, "dead key key is null"},
		{"billing", `{"type":"invoice.paid","total":1,"customer":"a"}`, "dead it has no identity (sources.shop.id)"},
		{"billing", `{"id":"e1","type":"invoice.paid","at":"2027-01-01T00:00:00Z","total":1,"customer":"a"}`, "dead its time"},
		{"ordered", `{"id":"e1","type":"x","at":"2026-01-01T00:00:00Z","no":7,"customer":"a"}`, "a @2026-01-01T00:00:00Z/7"},
		{"ordered", `{"id":"e1","type":"x","at":"2026-01-01T00:00:00Z","customer":"a"}`, "dead version[1]: no such field"},
	} {
		e := events(t, p, "shop", c.body)[0]
		e.FirstReceived = e.Delivery.Received
		o, wanted, reason := p.Order(p.Lane(c.lane), e)
		got := o.Key
		if o.Version != "" {
			got += " @" + o.Version.Show()
		}
		switch {
		case reason != "":
			got = "dead " + reason
		case !wanted:
			got = "-"
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s of %s: %s, want %s", c.lane, c.body, got, c.want)
		}
	}
	if _, wanted, reason := p.Order(p.Lane("billing"), events(t, p, "stripe", `{"id":"evt_1","object":"event","type":"invoice.paid","created":1}`)[0]); wanted || reason != "" {
		t.Errorf("an event of another source: %v, %s", wanted, reason)
	}
	if p.Lane("nope") != nil || p.Lane("billing").Consumer() != "lane:billing" {
		t.Error("names")
	}
}

func TestParametersOfALane(t *testing.T) {
	p := compiled(t, lanesHead+`
  audit:
    from: shop
    key: event.id
    sql:
      statement: insert into audit values (:t, :i, :n, :big, :b, :at, :j, :null, :gone, :raw)
      with: {t: event.t, i: event.i, n: event.n, big: event.big, b: event.b, at: time, j: event.j, null: event.nil, gone: 'event.?gone', raw: raw}
`)
	body := `{"id":"e1","type":"x","at":"2026-01-01T00:00:00Z","t":"a","i":9007199254740993,"n":129.90,"big":123456789012345678901,"b":true,"j":{"a": [1]},"nil":null}`
	args, err := p.Values(p.Lane("audit"), events(t, p, "shop", body)[0])
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range args {
		got = append(got, fmt.Sprintf("%s %s", merge.Type{Kind: a.Kind}, a.Value))
	}
	got[9] = got[9][:8]
	want := []string{"text a", "int 9007199254740993", "numeric 129.9", "numeric 123456789012345678901", "bool true",
		"timestamp 2026-01-01T00:00:00.000000Z", `json {"a":[1]}`, "text NULL", "text NULL", `bytes \x`}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, err := p.Values(p.Lane("audit"), events(t, p, "shop", `{"id":"e1","type":"x"}`)[0]); err == nil || !strings.HasPrefix(err.Error(), "with.t: no such field") {
		t.Error(err)
	}
}

// Without an identity a receiver cannot know an event again.
func TestALaneNeedsAnIdentity(t *testing.T) {
	_, problems := Compile(parsed(t, lanesHead+`
  x: {from: bare, key: event.customer, post: "http://localhost/x", secret: none}
  y: {from: shop, when: 1 + 1, key: "unset", post: "http://localhost/x", secret: none}
`))
	want := `hookfold.yaml:19:13: lanes.x.from: events of bare have no identity, by which your code could know one that comes again. Give sources.bare an id:, what tells one event from every other.
hookfold.yaml:20:25: lanes.y.when: gives a number, and has to be true or false
hookfold.yaml:20:37: lanes.y.key: unset is not allowed in part of a key`
	if d := cmp.Diff(want, problems.Error()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
