package mapping

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/merge"
)

// mapped maps the events of bodies and renders what they say.
func mapped(t testing.TB, p *Plan, bodies ...string) []string {
	t.Helper()
	var out []string
	for _, b := range bodies {
		for _, e := range events(t, p, "shop", b) {
			out = append(out, lines(p.Map(e, "db"))...)
		}
	}
	return out
}

const lists = head + `
tables:
  payment:
    key: {id: text}
    on_delete: remove
    columns: {total: numeric}
    events:
      - {from: shop, type: payment, key: {id: event.id}, set: {total: event.total}}
      - {from: shop, type: payment.gone, key: {id: event.id}, delete: true}
  payment_line:
    key: {no: int, payment: {type: text, references: payment, missing: ensure}}
    on_delete: remove
    columns: {sku: text}
    events:
      - from: shop
        type: payment
        when: present(event.total)
        each: event.?lines
        replaces: {payment: event.id}
        key: {payment: 'coalesce(item.payment, event.id)', no: 'coalesce(item.no, index)'}
        set: {sku: item.sku}
`

func TestF10CompleteLists(t *testing.T) {
	p := compiled(t, lists)
	cases := []struct {
		name, body string
		want       []string
	}{
		{"a list", `{"type":"payment","id":"p1","at":"2026-01-01T00:00:00Z","total":1,"lines":[{"sku":"a"},{"sku":"b"}]}`, []string{
			"payment id=p1: total=1 @2026-01-01T00:00:00Z",
			"payment_line all of p1 @2026-01-01T00:00:00Z",
			"payment_line no=0, payment=p1: sku=a @2026-01-01T00:00:00Z needs payment id=p1",
			"payment_line no=1, payment=p1: sku=b @2026-01-01T00:00:00Z needs payment id=p1",
		}},
		{"an empty list speaks", `{"type":"payment","id":"p1","at":"2026-01-01T00:00:00Z","total":1,"lines":[]}`, []string{
			"payment id=p1: total=1 @2026-01-01T00:00:00Z", "payment_line all of p1 @2026-01-01T00:00:00Z",
		}},
		{"an absent one says nothing", `{"type":"payment","id":"p1","at":"2026-01-01T00:00:00Z","total":1}`, []string{
			"payment id=p1: total=1 @2026-01-01T00:00:00Z",
		}},
		{"and so does null", `{"type":"payment","id":"p1","at":"2026-01-01T00:00:00Z","total":1,"lines":null}`, []string{
			"payment id=p1: total=1 @2026-01-01T00:00:00Z",
		}},
		{"no list", `{"type":"payment","id":"p1","at":"2026-01-01T00:00:00Z","total":1,"lines":{"sku":"a"}}`, []string{
			"payment id=p1: total=1 @2026-01-01T00:00:00Z", "dead payment_line.: each: event.?lines is an object, not a list",
		}},
		{"one element at fault keeps the whole list back", `{"type":"payment","id":"p1","at":"2026-01-01T00:00:00Z","total":1,"lines":[{"sku":"a"},{}]}`, []string{
			"payment id=p1: total=1 @2026-01-01T00:00:00Z", "dead payment_line.sku: element 1: no such field: item has no sku",
		}},
		{"an element of another list", `{"type":"payment","id":"p1","at":"2026-01-01T00:00:00Z","total":1,"lines":[{"sku":"a","payment":"p2"}]}`, []string{
			"payment id=p1: total=1 @2026-01-01T00:00:00Z",
			"dead payment_line.: element 0: it is of another list: payment=p2, and the list is complete for payment=p1",
		}},
		{"a row that the list names twice", `{"type":"payment","id":"p1","at":"2026-01-01T00:00:00Z","total":1,"lines":[{"sku":"b","no":1},{"sku":"a","no":"1"}]}`, []string{
			"payment id=p1: total=1 @2026-01-01T00:00:00Z",
			"payment_line all of p1 @2026-01-01T00:00:00Z",
			"payment_line no=1, payment=p1:  @2026-01-01T00:00:00Z needs payment id=p1",
			"payment_line no=1, payment=p1: sku=a @2026-01-01T00:00:00Z needs payment id=p1",
		}},
		{"a delete of the parent empties its list", `{"type":"payment.gone","id":"p1","at":"2026-01-01T00:00:00Z"}`, []string{
			"payment id=p1: gone at 2026-01-01T00:00:00.000000Z @2026-01-01T00:00:00Z",
			"payment_line all of p1 @2026-01-01T00:00:00Z",
		}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, mapped(t, p, tc.body)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// changesOf maps bodies of shop into the changes of a table.
func changesOf(t testing.TB, p *Plan, table string, bodies ...string) []*merge.Change {
	t.Helper()
	var out []*merge.Change
	for _, b := range bodies {
		for _, e := range events(t, p, "shop", b) {
			o := p.Map(e, "db")
			if len(o.Faults) > 0 {
				t.Fatal(lines(o))
			}
			for _, c := range o.Changes {
				for _, parent := range c.Parents {
					if parent.Table.Name == table && !parent.Wait {
						out = append(out, merge.Stub(parent, c))
					}
				}
				if c.Table.Name == table {
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// TestF10WholeVersion: all that a list says has one version, so that two lists of
// one instant do not mix.
func TestF10WholeVersion(t *testing.T) {
	p := compiled(t, lists)
	body := func(skus string) string {
		return `{"type":"payment","id":"p1","at":"2026-01-01T00:00:00Z","total":1,"lines":[` + skus + `]}`
	}
	one := changesOf(t, p, "payment_line", body(`{"no":1,"sku":"a"},{"no":2,"sku":"b"}`))
	for _, c := range one {
		if c.Version != one[0].Version {
			t.Errorf("%v has the version %s, the list %s", c.Key, c.Version, one[0].Version)
		}
	}
	two := changesOf(t, p, "payment_line", body(`{"no":2,"sku":"c"},{"no":3,"sku":"d"}`))
	table := p.Table("payment_line").Table.Table
	var got []string
	for _, order := range [][]*merge.Change{slices.Concat(one, two), slices.Concat(two, one)} {
		got = append(got, shown(table, order))
	}
	if got[0] != got[1] || got[0] != "no=1, payment=p1 a; no=2, payment=p1 b" && got[0] != "no=2, payment=p1 c; no=3, payment=p1 d" {
		t.Errorf("the lists are mixed, or depend on their order: %q", got)
	}
	if one[0].Version == two[0].Version {
		t.Error("two lists have one version")
	}
}

func shown(table *merge.Table, changes []*merge.Change) string {
	var rows []string
	for _, r := range merge.Rows(table, changes) {
		text := table.Show(r.Key)
		for i, c := range r.Cells {
			if c.Set && table.Columns[i].Rule != merge.Touch {
				text += " " + c.Value.String()
			}
		}
		rows = append(rows, text)
	}
	return strings.Join(rows, "; ")
}

// TestF10ParentGone: what a late snapshot of a parent that is gone brings does not
// come back.
func TestF10ParentGone(t *testing.T) {
	p := compiled(t, lists)
	snapshot := `{"type":"payment","id":"p1","at":"2026-01-01T00:00:04Z","total":1,"lines":[{"no":1,"sku":"a"}]}`
	gone := `{"type":"payment.gone","id":"p1","at":"2026-01-01T00:00:05Z"}`
	again := `{"type":"payment","id":"p1","at":"2026-01-01T00:00:06Z","total":2,"lines":[{"no":2,"sku":"b"}]}`
	for _, bodies := range [][]string{{snapshot, gone}, {gone, snapshot}, {snapshot, gone, snapshot}} {
		for _, table := range []string{"payment", "payment_line"} {
			if got := shown(p.Table(table).Table.Table, changesOf(t, p, table, bodies...)); got != "" {
				t.Errorf("%s: %s", table, got)
			}
		}
	}
	for _, bodies := range [][]string{{snapshot, gone, again}, {again, gone, snapshot}} {
		if got := shown(p.Table("payment_line").Table.Table, changesOf(t, p, "payment_line", bodies...)); got != "no=2, payment=p1 b" {
			t.Errorf("after it was made again: %q", got)
		}
	}
}

func TestPlainLists(t *testing.T) {
	p := compiled(t, head+`
tables:
  tag:
    key: {name: text}
    columns: {n: int, seen: {type: timestamp, merge: max}}
    events:
      - {from: shop, when: 'index < 2 || item.name != "skip"', each: 'event.tags + [{"name": event.id}]', key: {name: item.name}, version: [time, index], set: {n: index, seen: time}}
`)
	got := mapped(t, p, `{"id":"e1","at":"2026-01-01T00:00:00Z","tags":[{"name":"a"},{"n":1},{"name":"skip"},{"name":"a"}]}`)
	want := []string{
		"tag name=a: n=0 seen=2026-01-01T00:00:00.000000Z @2026-01-01T00:00:00Z/0",
		"tag name=a: n=3 seen=2026-01-01T00:00:00.000000Z @2026-01-01T00:00:00Z/3",
		"tag name=e1: n=4 seen=2026-01-01T00:00:00.000000Z @2026-01-01T00:00:00Z/4",
		"dead tag.name: element 1: no such field: item has no name",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestListsAreBounded(t *testing.T) {
	p := compiled(t, head+"tables: {tag: {key: {name: text}, columns: {}, events: [{from: shop, each: event.tags, key: {name: item}}]}}\n")
	body := func(n int, item string) string {
		return `{"tags":[` + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + `]}`
	}
	if got := mapped(t, p, body(MaxElements, `"a"`)); len(got) != MaxElements {
		t.Errorf("%d changes", len(got))
	}
	want := []string{fmt.Sprintf("dead tag.: each: event.tags has %d elements, more than %d. Have the sender send it in parts.", MaxElements+1, MaxElements)}
	if d := cmp.Diff(want, mapped(t, p, body(MaxElements+1, `"a"`))); d != "" {
		t.Error(d)
	}
	if got := mapped(t, p, body(30, `null`)); len(got) != maxElementFaults+1 || got[maxElementFaults] != "dead tag.: 20 more elements of event.tags are at fault" {
		t.Errorf("%d faults: %s", len(got), got[len(got)-1])
	}
}

// TestF14TwoElementsOfOneRow: two elements of one event that are about one row
// have versions of their own, and both count.
func TestF14TwoElementsOfOneRow(t *testing.T) {
	p := compiled(t, head+`
tables:
  stock:
    key: {sku: text}
    columns: {n: {type: int, merge: sum}, last: int}
    events: [{from: shop, each: event.lines, key: {sku: item.sku}, set: {n: item.n, last: item.n}}]
`)
	body := `{"id":"e/1","at":"2026-01-01T00:00:00Z","lines":[{"sku":"a","n":2},{"sku":"a","n":2}]}`
	changes := changesOf(t, p, "stock", body, body)
	if changes[0].Version == changes[1].Version || changes[0].Version != changes[2].Version {
		t.Errorf("versions %s, %s, and again %s", changes[0].Version, changes[1].Version, changes[2].Version)
	}
	if changes[0].Identity != `shop/e\/1/0/0` || changes[1].Identity != `shop/e\/1/0/1` {
		t.Errorf("identities %s, %s", changes[0].Identity, changes[1].Identity)
	}
	if got := shown(p.Table("stock").Table.Table, changes); got != "sku=a 4 2" {
		t.Error(got)
	}
}
