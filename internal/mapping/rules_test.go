package mapping

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/merge"
)

func TestDeletes(t *testing.T) {
	p := compiled(t, head+`
tables:
  user:
    key: {id: text}
    on_delete: {set: {deleted: true, name: gone}}
    columns: {name: text, seen: {type: timestamp, merge: max}, changed: {type: timestamp, merge: touch}}
    events:
      - {from: shop, type: user.gone, key: {id: event.id}, delete: true}
      - {from: shop, type: user, key: {id: event.id}, set: {"*": event}, delete: event.state == "gone"}
      - {from: shop, type: login, key: {id: event.id}, version: [timestamp(event.seen)], set: {seen: event.seen}}
`)
	cases := []struct {
		name, body string
		want       []string
	}{
		{"only an id", `{"type":"user.gone","id":1,"at":"2026-01-01T00:00:00Z"}`, []string{"user id=1: gone at 2026-01-01T00:00:00.000000Z @2026-01-01T00:00:00Z"}},
		{"by an expression", `{"type":"user","id":"1","at":"2026-01-01T00:00:00Z","state":"gone"}`, []string{"user id=1: gone at 2026-01-01T00:00:00.000000Z @2026-01-01T00:00:00Z"}},
		{"that is false", `{"type":"user","id":"1","at":"2026-01-01T00:00:00Z","state":"here","name":"n","seen":null}`, []string{"user id=1: name=n seen=NULL @2026-01-01T00:00:00Z"}},
		{"that fails", `{"type":"user","id":"1","at":"2026-01-01T00:00:00Z","name":"n","seen":null}`, []string{"dead user.: delete: no such field: event has no state"}},
		{"that is neither", `{"type":"user","id":"1","at":"2026-01-01T00:00:00Z","name":"n","seen":null,"state":1}`, []string{`dead user.: delete: cannot compare the number 1 with the text "gone". Write string(…) around the number, or double(…) around the text`}},
		{"a write without a latest column has a version too", `{"type":"login","id":"1","seen":"2026-01-01T00:00:00Z"}`, []string{"user id=1: seen=2026-01-01T00:00:00.000000Z @2026-01-01T00:00:00Z"}},
		{"no time", `{"type":"user.gone","id":1}`, []string{"dead user.: version[0]: the event has no time"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, mapped(t, p, tc.body)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	table := p.Table("user").Table.Table
	if i := table.Column("deleted"); i < 0 || table.Columns[i].Rule != merge.Flag || table.Columns[table.Column("name")].OnDelete.Text() != "gone" {
		t.Errorf("on_delete is not in the table: %+v", table.Columns)
	}
	write := `{"type":"user","id":"1","at":"2026-01-01T00:00:00Z","state":"here","name":"n","seen":null}`
	gone := `{"type":"user.gone","id":1,"at":"2026-01-01T00:00:00Z"}`
	for _, bodies := range [][]string{{write, gone}, {gone, write}, {write, gone, write}} { // F3: a delete wins its own instant
		if got := shown(table, changesOf(t, p, "user", bodies...)); got != "id=1 gone true" {
			t.Errorf("a delete of the same instant: %q", got)
		}
	}
}

// TestDeletedAt: the time of a delete is the event's, whatever its version is,
// and else the time in its version. A row without any could not be marked.
func TestDeletedAt(t *testing.T) {
	p := compiled(t, head+`
tables:
  user: {key: {id: text}, on_delete: mark, events: [{from: shop, key: {id: event.id}, version: [event.ver], delete: true}]}
  note: {key: {id: text}, on_delete: mark, events: [{from: shop, type: note, key: {id: event.id}, version: ["timestamp(event.changed)"], delete: true}]}
`)
	got := mapped(t, p, `{"id":1,"ver":5,"at":"2026-01-01T00:00:00Z"}`, `{"id":1,"ver":5}`, `{"id":1,"ver":5,"at":"x"}`)
	for i, want := range []string{
		"user id=1: gone at 2026-01-01T00:00:00.000000Z @5",
		"dead user.deleted_at: the event has no time, and its version has none, so that the row could not be marked.",
		"dead user.deleted_at: the event's time cannot be read: event.at: ",
	} {
		if !strings.HasPrefix(got[i], want) {
			t.Errorf("%q, want %q", got[i], want)
		}
	}
	noted := mapped(t, p, `{"type":"note","id":1,"ver":5,"changed":"2026-03-01T00:00:00Z"}`)
	if want := "note id=1: gone at 2026-03-01T00:00:00.000000Z @2026-03-01T00:00:00Z"; !slices.Contains(noted, want) {
		t.Errorf("%q, want %q", noted, want)
	}
}

const chains = head + `
tables:
  booking:
    key: {uid: text}
    on_delete: mark
    columns: {start_at: timestamp, moves: {type: int, merge: count, scope: key}}
    events:
      - {from: shop, type: moved, key: {uid: event.uid}, occupant: {since: event.since}, chain: {previous: "event.?old", next: "event.?new"}, set: {start_at: event.start, moves: true}}
      - {from: shop, type: gone, key: {uid: event.uid}, chain: {previous: "event.?old"}, delete: true}
  meeting:
    key: {uid: text}
    columns: {root: {type: text, merge: chain}, start_at: timestamp}
    events: [{from: shop, type: meeting, key: {uid: event.uid}, chain: {previous: event.old}, set: {"*": event}}]
`

func TestChains(t *testing.T) {
	p := compiled(t, chains)
	cases := []struct {
		name, body string
		want       []string
	}{
		{"both", `{"type":"moved","id":"e1","uid":"b","old":"a","new":"c","since":"2026-01-01T00:00:00Z","start":"2026-02-01T00:00:00Z","at":"2026-01-02T00:00:00Z"}`,
			[]string{"booking uid=b: start_at=2026-02-01T00:00:00.000000Z moves=1 @2026-01-02T00:00:00Z of b a→b b→c as shop/e1"}},
		{"a number and its text are one identity; null, the empty text and oneself are none", `{"type":"moved","id":"e1","uid":7,"old":"7","new":"","since":null,"start":"2026-02-01T00:00:00Z","at":"2026-01-02T00:00:00Z"}`,
			[]string{"booking uid=7: start_at=2026-02-01T00:00:00.000000Z moves=1 @2026-01-02T00:00:00Z of 7 as shop/e1"}},
		{"a delete links too", `{"type":"gone","uid":"b","old":"a","at":"2026-01-02T00:00:00Z"}`,
			[]string{"booking uid=b: gone at 2026-01-02T00:00:00.000000Z @2026-01-02T00:00:00Z of b a→b"}},
		{"no identity", `{"type":"gone","uid":"","at":"2026-01-02T00:00:00Z"}`, []string{"dead booking.uid: an empty text is no identity"}},
		{"a path that is missing", `{"type":"meeting","uid":"b","start_at":"2026-02-01T00:00:00Z","at":"2026-01-02T00:00:00Z"}`,
			[]string{"dead meeting.: chain.previous: no such field: event has no old"}},
		{"a row for each identity", `{"type":"meeting","uid":"b","old":"a","start_at":"2026-02-01T00:00:00Z","at":"2026-01-02T00:00:00Z"}`,
			[]string{"meeting uid=b: start_at=2026-02-01T00:00:00.000000Z @2026-01-02T00:00:00Z a→b"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, mapped(t, p, tc.body)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	if b, m := p.Table("booking"), p.Table("meeting"); !b.Chained || !b.Occupied || m.Chained || m.Occupied {
		t.Error("chained tables are wrong")
	}
}

// TestF5Chains: whatever the order of links, the row has the key of the first
// identity and shows the last one.
func TestF5Chains(t *testing.T) {
	p := compiled(t, chains)
	body := func(uid, old, start string) string {
		return `{"type":"moved","id":"` + uid + `","uid":"` + uid + `","old":"` + old + `","since":null,"start":"2026-02-` + start + `T00:00:00Z","at":"2026-01-01T00:00:00Z"}`
	}
	bodies := []string{body("a", "", "01"), body("b", "a", "02"), body("c", "b", "03")}
	for _, order := range permutations(3) {
		var in []string
		for _, i := range order {
			in = append(in, bodies[i])
		}
		if got := shown(p.Table("booking").Table.Table, changesOf(t, p, "booking", in...)); got != "uid=a 2026-02-03T00:00:00.000000Z 3" {
			t.Errorf("%v: %s", order, got)
		}
	}
}

func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for _, p := range permutations(n - 1) {
		for i := range n {
			out = append(out, append(append(append([]int{}, p[:i]...), n-1), p[i:]...))
		}
	}
	return out
}

// TestF14Identities: each event counts once, and twice only in two mappings.
func TestF14Identities(t *testing.T) {
	p := compiled(t, head+`
tables:
  credit:
    key: {user: text}
    columns: {n: {type: numeric, merge: sum}, events: {type: int, merge: count}}
    events:
      - {from: shop, type: nothing, key: {user: event.user}, set: {n: 1}}
      - {from: shop, key: {user: event.user}, set: {n: event.n, events: true}}
      - {from: shop, when: event.n > 100, key: {user: event.user}, set: {n: 1}}
  note: {key: {user: text}, columns: {text: {type: text, merge: max}}, events: [{from: shop, key: {user: event.user}, set: {text: id}}]}
`)
	got := mapped(t, p, `{"id":"e1","user":"u","n":0.1}`, `{"id":7,"user":"u","n":129.90,"at":"2026-01-01T00:00:00Z"}`)
	want := []string{
		"credit user=u: n=0.1 events=1 as shop/e1",
		"note user=u: text=e1",
		"credit user=u: n=129.9 events=1 @2026-01-01T00:00:00Z as shop/7",
		"credit user=u: n=1 @2026-01-01T00:00:00Z as shop/7/1",
		"note user=u: text=7",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	got = mapped(t, p, `{"user":"u","n":1}`)
	want = []string{
		"note user=u: text=NULL",
		"dead credit.n: sum takes each event once, and this one has no identity (sources.shop.id) to know a second delivery by",
		"dead credit.events: count takes each event once, and this one has no identity (sources.shop.id) to know a second delivery by",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	e := `{"id":"e1","user":"u","n":0.1}`
	if got := shown(p.Table("credit").Table.Table, changesOf(t, p, "credit", e, `{"id":"e2","user":"u","n":0.2}`, e, e)); got != "user=u 0.3 2" {
		t.Error(got)
	}
	long := mapped(t, p, `{"id":"`+strings.Repeat("x", 300)+`","user":"u","n":1}`, `{"id":"a\u0000b","user":"u","n":1}`)
	if !strings.Contains(long[0], " as shop/sha256:") || !strings.Contains(long[2], " as shop/sha256:") || long[0] == long[2] {
		t.Errorf("%q", long)
	}
}

// TestPositionAsIdentity: where a source has an identity only at times, its
// deliveries can stand for the others.
func TestPositionAsIdentity(t *testing.T) {
	text := strings.Replace(head, "    id: event.id\n", "    id: 'coalesce(headers[\"x-delivery-id\"], position)'\n    split: body\n", 1)
	p := compiled(t, text+`
tables:
  run_count: {key: {job: text}, columns: {n: {type: int, merge: count}}, events: [{from: shop, key: {job: event.job}, set: {n: true}}]}
`)
	var changes []*merge.Change
	for i, header := range []string{"", "", "d-3", "d-3"} {
		d := &event.Delivery{Position: event.Position(i + 1), Source: "shop", Body: []byte(`[{"job":"nightly"}]`), Header: map[string][]string{}, Received: time.Unix(0, 0)}
		if header != "" {
			d.Header.Set("X-Delivery-Id", header)
		}
		for range 2 { // mapped again after a crash
			split, err := p.Source("shop").Events(d)
			if err != nil {
				t.Fatal(err)
			}
			changes = append(changes, p.Map(split.Events[0], "db").Changes...)
		}
	}
	if got := shown(p.Table("run_count").Table.Table, changes); got != "job=nightly 3" {
		t.Error(got)
	}
	got := mapped(t, p, `[{"job":"a"},{"job":"a"},{"job":"b"}]`)
	want := []string{"run_count job=a: n=1 as shop/7", "run_count job=a: n=1 as shop/7.000001", "run_count job=b: n=1 as shop/7.000002"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestParents(t *testing.T) {
	p := compiled(t, head+`
tables:
  customer: {key: {id: text}, on_delete: mark, columns: {name: text}, events: [{from: shop, type: customer, key: {id: event.id}, set: {name: event.name}}, {from: shop, type: customer.gone, key: {id: event.id}, delete: true}]}
  order:
    key: {id: text}
    columns:
      customer: {type: text, references: customer, for: 2h}
      agent: {type: text, references: customer, missing: ensure}
      former: {type: text, references: order}
    parents: [{table: customer, key: {id: "event.?seller"}}]
    events: [{from: shop, type: order, key: {id: event.id}, set: {"*": event}}]
`)
	got := mapped(t, p,
		`{"type":"order","id":1,"customer":"c","agent":"a","former":"o","seller":"s","at":"2026-01-01T00:00:00Z"}`,
		`{"type":"order","id":1,"customer":null,"agent":null,"former":1,"at":"2026-01-01T00:00:00Z"}`)
	want := []string{
		"order id=1: customer=c agent=a former=o @2026-01-01T00:00:00Z waits 24h0m0s for customer id=s waits 2h0m0s for customer id=c needs customer id=a waits 24h0m0s for order id=o",
		"order id=1: customer=NULL agent=NULL former=1 @2026-01-01T00:00:00Z",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if p.Table("order").Rank != 1 {
		t.Errorf("order has rank %d", p.Table("order").Rank)
	}
}

// TestF12Stubs: a parent that is inserted for a child does not come back from a
// later delete.
func TestF12Stubs(t *testing.T) {
	p := compiled(t, head+`
tables:
  user: {key: {id: text}, on_delete: mark, columns: {name: text}, events: [{from: shop, type: user, key: {id: event.id}, set: {name: event.name}}, {from: shop, type: user.gone, key: {id: event.id}, delete: true}]}
  visit: {key: {id: text}, columns: {user: {type: text, merge: max, references: user, missing: ensure}}, events: [{from: shop, type: visit, key: {id: event.id}, set: {user: event.user}}]}
`)
	gone := `{"type":"user.gone","id":"u","at":"2026-01-01T00:00:05Z"}`
	visit := func(at string) string {
		return `{"type":"visit","id":"v","user":"u","at":"2026-01-01T00:00:` + at + `Z"}`
	}
	table := p.Table("user").Table.Table
	for _, bodies := range [][]string{{gone, visit("04")}, {visit("04"), gone}} {
		rows := merge.Rows(table, changesOf(t, p, "user", bodies...))
		if len(rows) != 1 || !rows[0].Gone() {
			t.Errorf("%v", rows)
		}
	}
	for _, bodies := range [][]string{{gone, visit("06")}, {visit("06"), gone}} {
		rows := merge.Rows(table, changesOf(t, p, "user", bodies...))
		if len(rows) != 1 || rows[0].Gone() {
			t.Errorf("%v", rows)
		}
	}
	if c := changesOf(t, p, "visit", visit("04"))[0]; c.Version == "" {
		t.Error("the child has no version, so neither has the parent it inserts")
	}
}
