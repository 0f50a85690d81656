package mapping

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/merge"
)

// everyFeature has a table for each way in which changes are made.
const everyFeature = head + `  crm: {preset: http, verify: none, format: form, id: event.id, type: event.type, time: event.at}
tables:
  order:
    key: {id: text}
    on_delete: {set: {deleted: true, state: gone}}
    columns:
      state: text
      note: {type: text, scope: note}
      first: {type: text, merge: first}
      most: {type: numeric, merge: max}
      total: {type: numeric, merge: sum}
      events: {type: int, merge: count}
      former: {type: text, scope: former, references: order, missing: ensure}
    events:
      - {from: shop, type: saved, key: {id: event.order}, set: {state: event.text, note: "event.?note", first: event.text, most: event.n, total: event.n, events: true, former: "event.?other"}, delete: event.n == 3}
      - {from: shop, type: gone, key: {id: event.order}, delete: true}
      - {from: crm, clock: shop, type: note, key: {id: event.order}, set: {note: event.text, events: true}}
  line:
    key: {no: text, order: {type: text, references: order, missing: ensure}}
    on_delete: remove
    columns: {sku: text}
    events:
      - {from: shop, type: saved, each: "event.?lines", when: 'item.no != "skip"', replaces: {order: event.order}, key: {order: event.order, no: item.no}, set: {sku: item.sku}, delete: item.sku == "gone"}
      - {from: shop, type: line, key: {order: event.order, no: event.other}, set: {sku: event.text}}
      - {from: crm, clock: shop, type: line, key: {order: event.order, no: event.other}, set: {sku: event.text}}
  stock:
    key: {sku: text}
    columns: {n: {type: numeric, merge: sum}, last: text, tags: {type: "text[]", merge: union}}
    events:
      - {from: shop, type: saved, each: "event.?lines", key: {sku: item.sku}, set: {n: 1, last: item.no, tags: "[item.no]"}}
  booking:
    key: {uid: text}
    on_delete: mark
    columns: {at: text, most: {type: numeric, merge: max}, moves: {type: int, merge: count, scope: key}}
    events:
      - {from: shop, type: moved, key: {uid: event.order}, occupant: {since: 'event.n > 2 ? time : null'}, chain: {previous: "event.?other"}, set: {at: event.text, most: event.n, moves: true}}
      - {from: shop, type: gone, key: {uid: event.order}, chain: {next: "event.?other"}, delete: true}
  meeting:
    key: {uid: text}
    columns: {root: {type: text, merge: chain}, at: text}
    events: [{from: shop, type: moved, key: {uid: event.order}, chain: {previous: "event.?other"}, set: {at: event.text}}]
  seat:
    key: {tenant: text, no: int}
    on_delete: mark
    columns: {guest: text, low: {type: numeric, merge: min}}
    events:
      - {from: shop, type: [saved, moved], key: {tenant: source, no: event.n}, occupant: {id: event.order, since: time}, set: {guest: event.text, low: event.n}}
      - {from: shop, type: gone, key: {tenant: source, no: event.n}, occupant: {id: event.order}, delete: true}
`

// body makes a delivery by chance, with times that tie.
func body(rnd *rand.Rand, id int) (src, text string) {
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	at := fmt.Sprintf("2026-01-01T00:00:0%dZ", rnd.IntN(6))
	order, other, says := pick("1", "2", "3"), pick("1", "2", "3", "4"), pick("a", "b", "c")
	if rnd.IntN(5) == 0 {
		return "crm", fmt.Sprintf("id=c%d&type=%s&order=%s&other=%s&text=%s&at=%s", id, pick("note", "line"), order, other, says, at)
	}
	if rnd.IntN(2) == 0 {
		order = `"` + order + `"` // a number and its text are one key
	}
	var b strings.Builder
	fmt.Fprintf(&b, `{"id":"s%d","type":%q,"order":%s,"text":%q,"n":%d,"at":%q`, id, pick("saved", "saved", "saved", "gone", "moved", "moved", "line"), order, says, rnd.IntN(4), at)
	if strings.Contains(b.String(), `"line"`) || rnd.IntN(2) == 0 {
		fmt.Fprintf(&b, `,"other":%q`, other)
	}
	if rnd.IntN(3) == 0 {
		fmt.Fprintf(&b, `,"note":%s`, pick(`"x"`, `"y"`, "null"))
	}
	if rnd.IntN(3) > 0 {
		var list []string
		for range rnd.IntN(4) {
			list = append(list, fmt.Sprintf(`{"no":%q,"sku":%q}`, pick("1", "2", "3", "skip"), pick("a", "b", "gone")))
		}
		fmt.Fprintf(&b, `,"lines":[%s]`, strings.Join(list, ","))
	}
	return "shop", b.String() + "}"
}

// TestRowsDoNotDependOnOrder: whatever is delivered, in whatever order, how often
// and in whatever batches, the rows are the same.
func TestRowsDoNotDependOnOrder(t *testing.T) {
	p := compiled(t, everyFeature)
	seen := map[string]int{}
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var all [][]*merge.Change
		var texts []string
		for i := range 2 + rnd.IntN(7) {
			src, text := body(rnd, i)
			texts = append(texts, text)
			var out [2]Outcome
			for again := range out { // in another delivery, at another time
				d := &event.Delivery{Position: event.Position(i + 1 + 100*again), Source: src, Body: []byte(text), Received: time.Date(2026, 3, 1+again, 0, 0, 0, 0, time.UTC)}
				split, err := p.Source(src).Events(d)
				if err != nil {
					t.Fatal(err)
				}
				out[again] = p.Map(split.Events[0], "db")
			}
			if d := cmp.Diff(withVersions(out[0]), withVersions(out[1])); d != "" {
				t.Fatalf("%s says something else when it comes again:\n%s", text, d)
			}
			for _, f := range out[0].Faults {
				t.Fatalf("%s: %s", text, f.Reason)
			}
			for _, c := range out[0].Changes {
				seen[c.Table.Name]++
			}
			all = append(all, out[0].Changes)
		}
		for _, table := range p.Tables {
			changes := changesIn(table.Table.Table, all)
			want := rowsOf(table.Table.Table, merge.Rows(table.Table.Table, changes))
			for range 6 {
				arrivals := slices.Concat(changes, changes[:rnd.IntN(len(changes)+1)])
				rnd.Shuffle(len(arrivals), func(i, j int) { arrivals[i], arrivals[j] = arrivals[j], arrivals[i] })
				if d := cmp.Diff(want, rowsOf(table.Table.Table, merge.Rows(table.Table.Table, arrivals))); d != "" {
					t.Fatalf("seed %d, %s in another order (-want +got):\n%s\n%s", seed, table.Config.Text, d, strings.Join(texts, "\n"))
				}
				if d := cmp.Diff(want, stored(rnd, table.Table.Table, arrivals)); d != "" {
					t.Fatalf("seed %d, %s in batches (-want +got):\n%s\n%s", seed, table.Config.Text, d, strings.Join(texts, "\n"))
				}
			}
		}
	}
	for _, table := range p.Tables {
		if seen[table.Config.Text] < 300 {
			t.Errorf("only %d changes of %s", seen[table.Config.Text], table.Config.Text)
		}
	}
}

// withVersions renders an outcome with its versions whole.
func withVersions(out Outcome) []string {
	all := lines(out)
	for _, c := range out.Changes {
		all = append(all, string(c.Version))
	}
	return all
}

// changesIn are the changes of one table, with the parents that changes insert.
func changesIn(t *merge.Table, all [][]*merge.Change) []*merge.Change {
	var out []*merge.Change
	for _, c := range slices.Concat(all...) {
		for _, parent := range c.Parents {
			if parent.Table == t {
				out = append(out, merge.Stub(parent, c))
			}
		}
		if c.Table == t {
			out = append(out, c)
		}
	}
	return out
}

// stored writes changes in batches as a sink does.
func stored(rnd *rand.Rand, t *merge.Table, arrivals []*merge.Change) []string {
	held := merge.NewHeld(t, nil, nil, nil)
	keys := map[merge.Key]bool{}
	for len(arrivals) > 0 {
		n := 1 + rnd.IntN(len(arrivals))
		for _, k := range held.Write(merge.FoldAll(t, arrivals[:n])).Touched {
			keys[k] = true
		}
		arrivals = arrivals[n:]
	}
	var rows []*merge.Row
	for k := range keys {
		if r := held.Shown(k); r != nil {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *merge.Row) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return rowsOf(t, rows)
}

// rowsOf renders rows as they show.
func rowsOf(t *merge.Table, rows []*merge.Row) []string {
	out := []string{}
	for _, r := range rows {
		text := t.Show(r.Key)
		for i, c := range r.Cells {
			if c.Set {
				text += " " + t.Columns[i].Name + "=" + c.Value.String()
			}
		}
		for i, v := range r.Scopes {
			text += fmt.Sprintf(" %s@%s", t.Scopes()[i], v)
		}
		if r.Gone() {
			text += " gone at " + r.DeletedAt.String()
		}
		out = append(out, text)
	}
	return out
}
