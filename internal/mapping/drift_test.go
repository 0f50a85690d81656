package mapping

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/merge"
)

// inEveryOrder checks the rows that events make, in every order.
func inEveryOrder(t *testing.T, p *Plan, table, want string, bodies ...string) {
	t.Helper()
	for _, order := range permutations(len(bodies)) {
		var in []string
		for _, i := range order {
			in = append(in, bodies[i])
		}
		if got := shown(p.Table(table).Table.Table, changesOf(t, p, table, in...)); got != want {
			t.Errorf("%v: %s, want %s", order, got, want)
		}
	}
}

// TestUnitsOfTime: seconds, milliseconds, and texts of either, ISO text with any
// offset and precision, and text without an offset are the same instants.
func TestUnitsOfTime(t *testing.T) {
	p := compiled(t, head+`
tables:
  contact: {key: {id: int}, columns: {name: text, changed_at: timestamp}, events: [{from: shop, key: {id: event.id}, version: timestamp(event.changed), set: {name: event.name, changed_at: timestamp(event.changed)}}]}
`)
	var bodies []string
	for i, changed := range []string{
		`1767400000`, `1767400001000`, `"1767400002"`, `"2026-01-03T00:26:43.000Z"`,
	} {
		bodies = append(bodies, fmt.Sprintf(`{"id":%s,"name":"n%d","changed":%s}`, []string{`1`, `"1"`}[i%2], i, changed))
	}
	inEveryOrder(t, p, "contact", "id=1 n3 2026-01-03T00:26:43.000000Z", bodies...)
	for _, same := range []string{`1767400003`, `1767400003000`, `1767400003000000`, `1767400003000000000`, `"1767400003"`, `1767400003.0`, `"2026-01-03T01:26:43+01:00"`, `"2026-01-03 01:26:43"`, `"20260103T002643Z"`, `"2026-01-02T19:26:43-0500"`, `"Sat, 03 Jan 2026 00:26:43 GMT"`} {
		got := mapped(t, p, `{"id":1,"name":"n","changed":`+same+`}`)
		if want := []string{"contact id=1: name=n changed_at=2026-01-03T00:26:43.000000Z @2026-01-03T00:26:43Z"}; !cmp.Equal(got, want) {
			t.Errorf("%s: %q", same, got)
		}
	}
	for _, odd := range []string{`99999999999999999999`, `"yesterday"`, `"Sat, 03 Jan 2026 00:26:43 PST"`, `true`} {
		if got := mapped(t, p, `{"id":1,"name":"n","changed":`+odd+`}`); !strings.HasPrefix(got[0], "dead contact.") {
			t.Errorf("%s is taken for a time: %q", odd, got)
		}
	}
}

// TestF25AheadOfReceipt: a time that is ahead of the first receipt is not
// believed, whenever the event comes again.
func TestF25AheadOfReceipt(t *testing.T) {
	p := compiled(t, strings.Replace(head, "    zone:", "    max_ahead: 10m\n    zone:", 1)+`
tables:
  device: {key: {id: text}, columns: {fw: text}, events: [{from: shop, key: {id: event.dev}, set: {fw: event.fw}}]}
`)
	received := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name           string
		at             time.Time
		receipt, first time.Time
		dead           bool
	}{
		{"behind", received.Add(-time.Minute), received, received, false},
		{"a little ahead", received.Add(10 * time.Minute), received, received, false},
		{"a year ahead", received.AddDate(1, 0, 0), received, received, true},
		{"again, when its time has come", received.Add(time.Hour), received.Add(2 * time.Hour), received, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := &event.Delivery{Position: 1, Source: "shop", Received: tc.receipt, Body: fmt.Appendf(nil, `{"id":"e","dev":"d1","fw":"1","at":%q}`, tc.at.Format(time.RFC3339))}
			split, err := p.Source("shop").Events(d)
			if err != nil {
				t.Fatal(err)
			}
			e := split.Events[0]
			e.FirstReceived = tc.first
			out := p.Map(e, "db")
			if dead := len(out.Faults) == 1 && strings.Contains(out.Faults[0].Reason, "more than max_ahead (10m0s)"); dead != tc.dead || dead == (len(out.Changes) == 1) {
				t.Errorf("%q", lines(out))
			}
		})
	}
}

// TestKeysOfTwoKinds: an id that is a number once and a text once is one key, and
// one identity; another text is another.
func TestKeysOfTwoKinds(t *testing.T) {
	p := compiled(t, head+`
tables:
  item: {key: {id: text}, columns: {a: text, n: {type: int, merge: count}}, events: [{from: shop, key: {id: event.item}, set: {a: event.a, n: true}}]}
  big: {key: {id: int}, columns: {}, events: [{from: shop, key: {id: event.item}}]}
`)
	b := func(id, item, a string) string {
		return fmt.Sprintf(`{"id":%s,"item":%s,"a":%q,"at":"2026-01-01T00:00:00Z"}`, id, item, a)
	}
	inEveryOrder(t, p, "item", "id=01001 b 1; id=1001 a 2", b("1", "1001", "a"), b(`"1"`, `"1001"`, "a"), b("2", `"1001"`, "a"), b("3", `"01001"`, "b"))
	inEveryOrder(t, p, "big", "id=9007199254740993", b("1", "9007199254740993", "a"), b("1", `"9007199254740993"`, "a"), b("1", `" 9007199254740993"`, "a")[:0]+b("1", "9007199254740993", "b"))
}

// TestDeclaredPolicies: what an event has that the config does not know is dead,
// or what the config says, and never something else in silence.
func TestDeclaredPolicies(t *testing.T) {
	p := compiled(t, head+`
tables:
  a: {key: {id: text}, columns: {s: {type: text, merge: {ladder: [x, y]}}, t: {type: text(3), scope: t}}, events: [{from: shop, key: {id: event.id}, set: {s: event.s, t: event.t}}]}
  b: {key: {id: text}, columns: {s: {type: text, merge: {ladder: [x, y]}, unknown: ignore}}, events: [{from: shop, key: {id: event.id}, set: {s: event.s}}]}
`)
	got := mapped(t, p, `{"id":"1","s":"z","t":"long","at":"2026-01-01T00:00:00Z"}`, `{"id":"1","s":"y","at":"2026-01-01T00:00:00Z"}`)
	want := []string{
		"b id=1: ",
		`dead a.s: "z" is not a rung of the ladder [x y]. Add it where it belongs, or say unknown: ignore.`,
		"dead a.t: 4 characters into text(3)", "ignored 1",
		"b id=1: s=y", "dead a.t: no such field: event has no t",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, e := range events(t, p, "shop", `{"id":"1","s":"y","at":"2026-01-01T00:00:00Z"}`) {
		f := p.Map(e, "db").Faults[0]
		if !f.Missing || f.Mapping != "tables.a.events[0]" || f.Column != "t" {
			t.Errorf("%+v", f)
		}
	}
}

// TestTenants: several sources and accounts share a table, and their rows do not
// meet.
func TestTenants(t *testing.T) {
	p := compiled(t, head+`  other: {preset: http, verify: none, id: event.id, time: event.at, split: body.events}
tables:
  invoice:
    key: {source: text, account: text, id: text}
    columns: {amount: numeric, n: {type: int, merge: count}}
    events:
      - {from: shop, key: {source: source, account: event.account, id: event.inv}, set: {amount: event.amount, n: true}}
      - {from: other, key: {source: source, account: envelope.account, id: event.no}, version: [timestamp(event.at)], set: {amount: event.cents / 100, n: true}}
`)
	var changes []*merge.Change
	for _, d := range []struct{ src, body string }{
		{"shop", `{"id":"e1","account":"a","inv":1,"amount":"10","at":"2026-01-01T00:00:00Z"}`},
		{"shop", `{"id":"e2","account":"b","inv":1,"amount":"20","at":"2026-01-01T00:00:00Z"}`},
		{"other", `{"account":"a","events":[{"id":"e1","no":"1","cents":3001,"at":1767225600},{"id":"e2","no":"2","cents":1,"at":1767225600}]}`},
	} {
		for _, e := range events(t, p, d.src, d.body) {
			out := p.Map(e, "db")
			if len(out.Faults) > 0 {
				t.Fatal(lines(out))
			}
			changes = append(changes, out.Changes...)
		}
	}
	want := "source=other, account=a, id=1 30.01 1; source=other, account=a, id=2 0.01 1; source=shop, account=a, id=1 10 1; source=shop, account=b, id=1 20 1"
	if got := shown(p.Table("invoice").Table.Table, changes); got != want {
		t.Error(got)
	}
}

// TestFormBodies: what a form holds can be mapped as JSON can.
func TestFormBodies(t *testing.T) {
	p := compiled(t, head+`  form: {preset: http, verify: none, format: form, id: 'json(event.payload).id', time: event.order.at}
tables:
  line:
    key: {order: text, no: int}
    on_delete: remove
    columns: {sku: text}
    events: [{from: form, each: event.lines, replaces: {order: event.order.id}, key: {order: event.order.id, no: index}, set: {sku: item.sku}}]
  tag: {key: {id: text}, columns: {tags: {type: "text[]", merge: union}, gift: bool}, events: [{from: form, key: {id: id}, set: {tags: event.tag, gift: json(event.payload).gift}}]}
`)
	var got []string
	for _, e := range events(t, p, "form", `payload={"id":7,"gift":true}&order[id]=o1&order[at]=2026-01-01T00:00:00Z&lines[0][sku]=a&lines[1][sku]=b&tag[]=y&tag[]=x`) {
		got = append(got, lines(p.Map(e, "db"))...)
	}
	want := []string{
		"line all of o1 @2026-01-01T00:00:00Z",
		"line no=0", "line no=1",
	}
	want = []string{
		want[0],
		"line order=o1, no=0: sku=a @2026-01-01T00:00:00Z",
		"line order=o1, no=1: sku=b @2026-01-01T00:00:00Z",
		`tag id=7: tags=["y","x"] gift=true @2026-01-01T00:00:00Z`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestNoType: an event without the type that mappings go by is not dropped
// without a word.
func TestNoType(t *testing.T) {
	const table = `
tables: {a: {key: {id: text}, columns: {}, events: [{from: shop, type: a, key: {id: event.id}}]}}
`
	p := compiled(t, head+table)
	got := mapped(t, p, `{"id":1}`, `[1,2]`, `"x"`, `{"id":1,"type":"b"}`)
	dead := "dead .: it has no type (event.type), and only by its type could a mapping take it. If some events have none, write a ? before the step that may be missing, as in event.?type."
	if d := cmp.Diff([]string{dead, dead, dead, "not wanted"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	p = compiled(t, strings.Replace(head, "type: event.type", `type: "event.?type"`, 1)+table)
	if d := cmp.Diff([]string{"not wanted"}, mapped(t, p, `{"id":1}`)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestArrayBodies: a body that is a list is one event, unless split says that it
// is a list of them.
func TestArrayBodies(t *testing.T) {
	p := compiled(t, head+`  one: {preset: http, verify: none}
  many: {preset: http, verify: none, split: body}
tables:
  a: {key: {id: text}, columns: {}, events: [{from: one, each: event, key: {id: item.id}}, {from: many, key: {id: event.id}}]}
  b: {key: {id: text}, columns: {}, events: [{from: one, key: {id: event.id}}]}
`)
	var got []string
	for _, src := range []string{"one", "many"} {
		for _, e := range events(t, p, src, `[{"id":1},{"id":2}]`) {
			got = append(got, lines(p.Map(e, "db"))...)
		}
	}
	want := []string{
		"a id=1: ", "a id=2: ", "dead b.id: no such field: event is a list, which has no id: say which element, event[0].id",
		"a id=1: ", "a id=2: ",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestC54Content: what an event says is told from what another with its identity
// says, where no version tells which of them counts.
func TestC54Content(t *testing.T) {
	p := compiled(t, head+`  own: {preset: hasura, verify: none, id: event.id}
  position: {preset: http, verify: none, id: position}
tables:
  key: {key: {id: text}, columns: {}, events: [{from: shop, type: key, key: {id: event.id}}, {from: own, key: {id: event.id}}, {from: position, key: {id: event.id}}]}
  row: {key: {id: text}, columns: {a: text}, events: [{from: shop, type: row, key: {id: event.id}, set: {a: id}}]}
`)
	content := func(src, body string) string {
		e := events(t, p, src, body)[0]
		return string(p.Source(src).Content(e, p.Map(e, "db").Changes))
	}
	one := content("shop", `{"id":1,"type":"key","a":[1,{"x":2,"y":"é"}]}`)
	if one == "" || one != content("shop", `{ "type":"key", "a":[1, {"y":"\u00e9","x":2}], "id":1 }`) {
		t.Error("one event that is written in two ways is taken for two")
	}
	if one == content("shop", `{"id":1,"type":"key","a":[2,{"x":2,"y":"é"}]}`) {
		t.Error("two events are taken for one")
	}
	if content("shop", `"x"`) != "" || content("shop", `{"type":"key","a":1}`) != "" {
		t.Error("an event without an identity, or that says nothing, is compared")
	}
	if content("shop", `{"id":1,"type":"row","at":"2026-01-01T00:00:00Z"}`) != "" {
		t.Error("an event that has a version is compared")
	}
	if content("position", `{"id":1}`) != "" {
		t.Error("a position is taken for an identity that comes again")
	}
	hasura := func(retry, rest string) string {
		return content("own", `{"id":"e","created_at":"2026-01-01T00:00:00Z","event":{"op":"INSERT","data":{}},"delivery_info":{"current_retry":`+retry+`}`+rest+`}`)
	}
	if hasura("0", "") == "" || hasura("0", "") != hasura("1", "") || hasura("0", "") == hasura("0", `,"x":1`) {
		t.Error("a retry is taken for another event")
	}
	e := events(t, p, "shop", `{"id":1,"type":"key"}`)[0]
	want := "its id 1 has come before with other contents (#3), and no version tells which of the two counts. Is sources.shop.id the identity of an event, and not of the thing it is about?"
	if got := p.Source("shop").Conflict(e, event.Ref{Position: 3}); got != want {
		t.Error(got)
	}
}
