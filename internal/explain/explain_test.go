package explain_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/explain"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/journal/sqlite"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

const shop = `
version: 1
sources:
  shop: {preset: http, verify: none, id: event.id, type: event.type, time: event.at}
targets: {db: {url: "sqlite:unused.db"}}
tables:
  customer:
    key: {id: text}
    on_delete: mark
    columns: {name: {type: text, scope: name}}
    events:
      - {from: shop, type: customer, key: {id: event.customer}, set: {name: event.name}}
      - {from: shop, type: customer.deleted, key: {id: event.customer}, delete: true}
  invoice:
    key: {id: text}
    columns:
      customer: {type: text, references: customer, missing: ensure}
      state: {type: text, merge: {ladder: [draft, open, paid]}}
      paid: {type: numeric, merge: sum}
    events:
      - {from: shop, type: "invoice.*", key: {id: event.invoice}, set: {customer: event.customer, state: event.state, paid: "event.?paid"}}
  line:
    key: {invoice: text, no: int}
    on_delete: remove
    columns: {sku: text}
    events:
      - from: shop
        type: invoice.lines
        each: event.lines
        replaces: {invoice: event.invoice}
        key: {invoice: event.invoice, no: index}
        set: {sku: item}
  seat:
    key: {id: text}
    columns: {holder: text}
    events:
      - {from: shop, type: seat, key: {id: event.seat}, chain: {previous: "event.?previous"}, set: {holder: event.holder}}
  note:
    key: {id: text}
    columns: {text: text}
    events:
      - {from: shop, type: note, key: {id: event.note}, if_missing: wait, set: {text: event.text}}
      - {from: shop, type: note.new, key: {id: event.note}, set: {text: event.text}}
`

// rig is a journal and a database, and the runner between them.
type rig struct {
	t    *testing.T
	plan *mapping.Plan
	j    *sqlite.Journal
	s    sink.Sink
	at   time.Time
	n    int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	cfg, problems := config.Parse("shop.yaml", []byte(shop), config.Options{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	plan, problems := mapping.Compile(cfg)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	j, err := sqlite.Open(filepath.Join(t.TempDir(), "journal.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	s, err := sqlsink.Open(t.Context(), testdb.SQLite(t), pipeline.Tables(plan, "db"), sqlsink.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	statements, err := s.Plan(t.Context(), pipeline.Tables(plan, "db"))
	if err == nil {
		err = s.Execute(t.Context(), statements)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, plan: plan, j: j, s: s, at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (r *rig) mapper(e *event.Event) mapping.Outcome { return r.plan.Map(e, "db") }

// land appends bodies and lets a runner take them, with the index or without.
func (r *rig) land(index bool, bodies ...string) {
	r.t.Helper()
	for _, b := range bodies {
		r.n++
		if err := r.j.Append(r.t.Context(), &event.Delivery{Source: "shop", Body: []byte(b), Received: r.at.Add(time.Duration(r.n) * time.Second)}); err != nil {
			r.t.Fatal(err)
		}
	}
	o := pipeline.Options{Target: "db", Journal: r.j, Sink: r.s, Sources: pipeline.Sources(r.plan), Tables: pipeline.Tables(r.plan, "db"), Map: r.mapper}
	if index {
		o.Plan = r.plan.Digest()
	}
	run := pipeline.New(o)
	if err := run.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	for {
		n, _, err := run.Lag(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		if n == 0 {
			break
		}
		time.Sleep(time.Millisecond) // until the runner has taken all
	}
	if err := run.Pass(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	if err := run.Stop(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// plain is a journal without an index.
type plain struct{ explain.Journal }

func (r *rig) explain(j explain.Journal, table string, key ...string) *explain.Story {
	r.t.Helper()
	s, err := explain.Explain(r.t.Context(), explain.Options{Journal: j, Plan: r.plan, Map: r.mapper, Sink: r.s}, r.plan.Table(table), merge.NewKey(key...))
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// told is a story in short: a line for each event.
func told(s *explain.Story) string {
	var out []string
	for _, c := range s.Chapters {
		line := fmt.Sprint(c.Ref, " ", c.State)
		if c.Made {
			line += " parent"
		}
		if w := c.Step.Whole; w != nil {
			line += fmt.Sprint(" ", w.Fate, " ", w.Reason)
		}
		for _, f := range c.Step.Columns {
			line += fmt.Sprintf(" %s=%s:%s", f.Column, f.Value, f.Fate)
		}
		out = append(out, strings.TrimSpace(line))
	}
	return strings.Join(out, "\n")
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if d := cmp.Diff(strings.TrimSpace(strings.ReplaceAll(want, "\t", "")), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestStories(t *testing.T) {
	r := newRig(t)
	r.land(true,
		`{"id":"e1","type":"invoice.paid","at":"2026-03-01T10:00:02Z","invoice":"i1","customer":"c1","state":"paid","paid":5}`,
		`{"id":"e2","type":"invoice.open","at":"2026-03-01T10:00:01Z","invoice":"i1","customer":"c0","state":"open"}`,
		`{"id":"e1","type":"invoice.paid","at":"2026-03-01T10:00:02Z","invoice":"i1","customer":"c1","state":"paid","paid":5}`,
		`{"id":"e3","type":"customer.deleted","at":"2026-03-01T10:00:05Z","customer":"c1"}`,
		`{"id":"e4","type":"customer","at":"2026-03-01T10:00:04Z","customer":"c1","name":"Ann"}`,
		`{"id":"e5","type":"invoice.lines","at":"2026-03-01T10:00:03Z","invoice":"i1","customer":"c1","state":"paid","lines":["a","b"]}`,
		`{"id":"e6","type":"invoice.lines","at":"2026-03-01T10:00:06Z","invoice":"i1","customer":"c1","state":"paid","lines":["c"]}`,
		`{"id":"e7","type":"seat","at":"2026-03-01T10:00:01Z","seat":"B","holder":"bob"}`,
		`{"id":"e8","type":"seat","at":"2026-03-01T10:00:02Z","seat":"C","previous":"B","holder":"cyd"}`,
		`{"id":"e9","type":"seat","at":"2026-03-01T10:00:00Z","seat":"B","previous":"A","holder":"al"}`,
		`{"id":"e10","type":"note","at":"2026-03-01T10:00:00Z","note":"n1","text":"hi"}`,
		`{"id":"e11","type":"invoice.paid","at":"2026-03-01T10:00:09Z","invoice":"i1","customer":"c1","state":"void"}`,
	)
	expect(t, "invoice", told(r.explain(r.j, "invoice", "i1")), `
		#1 settled customer=c1:won state=paid:won paid=5:won
		#2 settled customer=c0:lost state=open:lost
		#3 settled customer=c1:same state=paid:same paid=5:same
		#6 settled customer=c1:same state=paid:same
		#7 settled customer=c1:same state=paid:same`)
	expect(t, "customer", told(r.explain(r.j, "customer", "c1")), `
		#1 settled parent
		#3 settled parent
		#4 settled won
		#5 settled name=Ann:won
		#6 settled parent
		#7 settled parent`)
	expect(t, "line", told(r.explain(r.j, "line", "i1", "1")), `
		#6 settled won
		#6 settled sku=b:won
		#7 settled won`)
	seat := r.explain(r.j, "seat", "C")
	expect(t, "seat", told(seat), `
		#8 settled holder=bob:won
		#9 settled holder=cyd:won
		#10 settled holder=al:lost`)
	if seat.Key != "A" || !slices.Equal(seat.Identities, []string{"A", "B", "C"}) || seat.Live == nil {
		t.Errorf("the seat C is %q, known by %v", seat.Key, seat.Identities)
	}
	note := r.explain(r.j, "note", "n1")
	if len(note.Chapters) != 1 || note.Chapters[0].State != journal.Waiting || note.Chapters[0].Reason == "" || note.Live != nil || note.Drift() {
		t.Errorf("the note: %+v", note.Chapters)
	}
	if s := r.explain(r.j, "invoice", "i2"); len(s.Chapters) > 0 || s.Folded != nil || s.Live != nil {
		t.Errorf("an invoice that is not there: %+v", s)
	}
}

// A row that somebody has edited, removed or inserted is told from one that is
// as its events make it.
func TestDrift(t *testing.T) {
	r := newRig(t)
	r.land(true,
		`{"id":"e1","type":"note.new","at":"2026-03-01T10:00:00Z","note":"n1","text":"one"}`,
		`{"id":"e2","type":"note.new","at":"2026-03-01T10:00:00Z","note":"n2","text":"two"}`)
	if s := r.explain(r.j, "note", "n1"); s.Drift() || s.Columns[0].From == nil || s.Columns[0].From.Position != 1 {
		t.Errorf("a row as it should be: %+v", s.Columns)
	}
	if err := r.s.Execute(t.Context(), []string{"update note set text = 'by hand' where id = 'n1'", "delete from note where id = 'n2'", "insert into note (id, text) values ('n3', 'x')"}); err != nil {
		t.Fatal(err)
	}
	if s := r.explain(r.j, "note", "n1"); !s.Drift() || !s.Columns[0].Differs || s.Columns[0].Live.Text() != "by hand" {
		t.Errorf("an edited row: %+v", s.Columns)
	}
	if s := r.explain(r.j, "note", "n2"); !s.Drift() || s.Live != nil || s.Folded == nil {
		t.Errorf("a removed row: %+v", s.Columns)
	}
	if s := r.explain(r.j, "note", "n3"); !s.Drift() || s.Live == nil || s.Folded != nil {
		t.Errorf("an inserted row: %+v", s.Columns)
	}
}

// What has not landed is not in the row: an event that a person has dropped, and
// one that the target has not come to yet.
func TestWhatHasNotLanded(t *testing.T) {
	r := newRig(t)
	r.land(true,
		`{"id":"e1","type":"note","at":"2026-03-01T11:00:00Z","note":"n1","text":"waits"}`,
		`{"id":"e2","type":"note","at":"2026-03-01T11:00:00Z","note":"n2","text":"waits"}`)
	if n, err := r.j.Drop(t.Context(), journal.Filter{Consumer: "db", Position: 1}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	r.land(true, `{"id":"e3","type":"note.new","at":"2026-03-01T10:00:00Z","note":"n1","text":"one"}`)
	if err := r.j.Append(t.Context(), &event.Delivery{Source: "shop", Received: r.at, Body: []byte(`{"id":"e4","type":"note.new","at":"2026-03-01T12:00:00Z","note":"n1","text":"two"}`)}); err != nil {
		t.Fatal(err)
	}
	s := r.explain(r.j, "note", "n1")
	expect(t, "the story", told(s), `
		#1 dropped
		#3 settled text=one:won
		#4 pending`)
	if s.Drift() || s.Chapters[0].Reason == "" || s.Chapters[2].Reason == "" {
		t.Errorf("%+v", s)
	}
}

// The index only makes it faster: with all of it, with a part and without, the
// stories are the same, and the rows in the database are what they make.
func TestStoriesDoNotDependOnTheIndex(t *testing.T) {
	r := newRig(t)
	rnd := rand.New(rand.NewPCG(3, 5))
	body := func(i int) string {
		at := fmt.Sprintf("2026-03-01T10:00:%02dZ", rnd.IntN(60))
		k := rnd.IntN(3)
		return fmt.Sprintf([]string{
			`{"id":"%[1]d","type":"customer","at":"%[2]s","customer":"c%[3]d","name":"n%[1]d"}`,
			`{"id":"%[1]d","type":"customer.deleted","at":"%[2]s","customer":"c%[3]d"}`,
			`{"id":"%[1]d","type":"invoice.x","at":"%[2]s","invoice":"i%[3]d","customer":"c%[4]d","state":"open","paid":%[1]d}`,
			`{"id":"%[1]d","type":"invoice.lines","at":"%[2]s","invoice":"i%[3]d","customer":"c%[4]d","state":"paid","lines":["s%[1]d","t%[1]d"]}`,
			`{"id":"%[1]d","type":"seat","at":"%[2]s","seat":"s%[3]d","previous":"s%[4]d","holder":"h%[1]d"}`,
		}[rnd.IntN(5)], i, at, k, rnd.IntN(4))
	}
	bodies := func(n int) (out []string) {
		for range n {
			out = append(out, body(r.n+len(out)+1))
		}
		return out
	}
	for _, index := range []bool{true, false, true, false} {
		r.land(index, bodies(40)...)
	}
	whole := func(s *explain.Story) string {
		out := fmt.Sprintf("%q %q %v\n%s\n", s.Asked, s.Key, s.Identities, told(s))
		for _, c := range s.Columns {
			out += fmt.Sprintf("%s %v %s %s %v %v\n", c.Name, c.Set, c.Folded, c.Live, c.Differs, c.From)
		}
		return out
	}
	for _, table := range r.plan.Tables {
		rows, err := r.s.Read(t.Context(), &table.Table, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) == 0 && table.Config.Text != "note" {
			t.Errorf("%s has no row to explain", table.Config.Text)
		}
		for _, row := range rows {
			parts := row.Key.Parts()
			with, without := r.explain(r.j, table.Config.Text, parts...), r.explain(plain{r.j}, table.Config.Text, parts...)
			if d := cmp.Diff(whole(without), whole(with)); d != "" {
				t.Errorf("%s %s (-without +with the index):\n%s", table.Config.Text, table.Show(row.Key), d)
			}
			if with.Drift() || with.Live == nil {
				t.Errorf("%s %s differs: %+v", table.Config.Text, table.Show(row.Key), with.Columns)
			}
		}
	}
	// The index is asked.
	asked := &counting{Journal: r.j}
	r.explain(asked, "customer", "c0")
	if all := int64(r.n); asked.scanned >= all || asked.scanned == 0 {
		t.Errorf("%d of %d deliveries were looked through, want those of the two halves without an index", asked.scanned, all)
	}
}

// counting counts the deliveries that are looked through.
type counting struct {
	*sqlite.Journal
	scanned int64
}

func (c *counting) Scan(ctx context.Context, from event.Position, f func(*event.Delivery) error) error {
	return c.Journal.Scan(ctx, from, func(d *event.Delivery) error {
		c.scanned++
		return f(d)
	})
}
