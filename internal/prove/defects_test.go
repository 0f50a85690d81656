package prove_test

import (
	"context"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/internal/prove"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// shopTables have most rules, and deletes, lists and counters.
const shopTables = `
  user:
    name: app_user
    key: {id: text}
    columns: {email: text, plan: text}
    events:
      - {from: shop, type: "user.*", key: {id: event.user}, set: {email: event.email, plan: event.plan}}
  order:
    key: {id: text}
    columns:
      user_id: {type: text, references: user, missing: ensure}
      step: {type: text, merge: {ladder: [sent, failed, delivered]}}
      low: {type: numeric, merge: min}
      origin: {type: text, merge: first}
    events:
      - {from: shop, type: "order.*", key: {id: event.order}, set: {user_id: event.user, step: event.step, low: event.low, origin: event.id}}
  item:
    key: {order: text, sku: text}
    columns: {qty: int}
    on_delete: remove
    events:
      - from: shop
        type: "list.*"
        each: event.items
        replaces: {order: event.order}
        key: {order: event.order, sku: item.sku}
        set: {qty: item.qty}
      - {from: shop, type: "item.set", key: {order: event.order, sku: event.sku}, set: {qty: event.qty}}
      - {from: shop, type: "item.deleted", delete: true, key: {order: event.order, sku: event.sku}}
  account:
    key: {id: text}
    columns:
      total: {type: numeric, merge: sum}
    events:
      - {from: shop, type: "paid", key: {id: event.account}, set: {total: event.amount}}
`

var shopEvents = shop(`
	{"type":"user.created","at":"2026-03-01T10:00:00.100Z","user":"u","email":"a@example.test","plan":"free"}
	{"type":"user.updated","at":"2026-03-01T10:00:00.700Z","user":"u","email":null,"plan":"pro"}
	{"type":"user.updated","at":"2026-03-01T10:00:00.700Z","user":"u","email":"b@example.test","plan":"max"}
	{"type":"order.created","at":"2026-03-01T10:00:01Z","order":"o","user":"u","step":"sent","low":7}
	{"type":"order.updated","at":"2026-03-01T10:00:02Z","order":"o","user":"u","step":"delivered","low":null}
	{"type":"order.failed","at":"2026-03-01T10:00:03Z","order":"o","user":"u","step":"failed","low":9.5}
	{"type":"list.complete","at":"2026-03-01T10:00:05Z","order":"o","items":[{"sku":"x","qty":1}]}
	{"type":"item.set","at":"2026-03-01T10:00:04Z","order":"o","sku":"y","qty":2}
	{"type":"item.deleted","at":"2026-03-01T10:00:07Z","order":"o","sku":"x"}
	{"type":"paid","at":"2026-03-01T10:00:08Z","account":"a","amount":5}
	{"type":"paid","at":"2026-03-01T10:00:09Z","account":"a","amount":2.50}
	{"type":"user.created","at":"2026-03-01T10:00:10Z","user":"w","email":"w@example.test","plan":"free"}
	{"type":"user.updated","at":"2026-03-01T10:00:11Z","user":"w","email":null,"plan":"free"}`)

// bookings have an occupant whose identity is smaller than that of the one
// before, and a cancel of the former that is stamped last.
var bookings = []*event.Delivery{
	calendly("created", "B", "2026-05-01T08:00:00Z", "2026-05-01T08:00:00Z"),
	calendly("created", "A", "2026-05-02T08:00:00.12Z", "2026-05-02T08:00:00.12Z"),
	calendly("canceled", "B", "2026-05-01T08:00:00Z", "2026-05-02T08:00:00.31Z"),
}

// defect is something wrong with what writes rows.
type defect struct {
	name    string
	table   string // whose rows come out wrong
	tables  string
	history []*event.Delivery
	// statement changes the text of a statement of the table; row changes a row
	// before it is written.
	statement func(sql string) string
	row       func(t *merge.Table, r *merge.Row)
}

func replace(pattern, by string) func(string) string {
	re := regexp.MustCompile(pattern)
	return func(sql string) string { return re.ReplaceAllString(sql, by) }
}

const (
	column  = `(\w+|"\w+")`
	bytes   = ` collate (?:binary|"C")`
	version = `(excluded\.(?:row_version|p\d+))` + bytes + ` >= coalesce\((t\.row_version), ''\)` + bytes
)

var defects = []defect{
	{name: "strictly newer, by whole seconds", table: "user", statement: replace(version, `substr($1, 1, 19) > coalesce(substr($2, 1, 19), '')`)},
	{name: "null never overwrites", table: "user", statement: replace(`then excluded\.(email|"plan")`, `then coalesce(excluded.$1, t.$1)`)},
	{name: "the version is assigned before what it guards, and a newer one must be greater", table: "user",
		statement: replace(`(email|"plan") = case when .*? end`, `$1 = t.$1`)},
	{name: "any arrival overwrites", table: "user", statement: replace(version, `'b' > 'a'`)},
	{name: "the first arrival stays", table: "user", statement: replace(`(?s)do update set.*`, `do nothing`)},
	{name: "no hash in the version", table: "user", row: func(_ *merge.Table, r *merge.Row) {
		for i, v := range r.Scopes {
			r.Scopes[i] = merge.Version(v.Tuple())
		}
	}},
	{name: "a stub overwrites the parent", table: "user", statement: replace(`do nothing`, `do update set email = null, "plan" = null`)},
	{name: "a ladder compared as text", table: "order",
		statement: replace(`case (excluded\.step)`+bytes+` when .*? end > case (t\.step)`+bytes+` when .*? end`, `$1 > $2`)},
	{name: "min takes null", table: "order", statement: replace(`excluded\.low is not null and \(`, `(excluded.low is null or `)},
	{name: "the last of first", table: "order", statement: replace(`(excluded\.origin__first`+bytes+`) <= (t\.origin__first)`, `$1 >= $2`)},
	{name: "a delete leaves no memory", table: "item", statement: replace(`(hookfold_tombstones as t (?:where|on) t\.table_name = [$?]1)`, `$1 and false`)},
	{name: "the version of a complete list is not remembered", table: "item", statement: replace(`(hookfold_sets as t (?:where|on) t\.table_name = [$?]1)`, `$1 and false`)},
	{name: "a redelivery is added again", table: "account", statement: replace(`(hookfold_ledger as t (?:where|on) t\.table_name = [$?]1)`, `$1 and false`)},
	{name: "an occupant without since", table: "booking", tables: problems, history: bookings,
		statement: replace(`coalesce\((?:excluded|t)\.occupant_since, ''\)`+bytes+`, `, ``)},
	{name: "an occupant by its version alone", table: "booking", tables: problems, history: bookings,
		statement: replace(`coalesce\((?:excluded|t)\.occupant_(?:since|id), ''\)`+bytes+`, `, ``)},
}

// every changes the text of every statement of a table.
func every(s *compile.Statements, change func(string) string) {
	texts := []*string{&s.Upsert.SQL, &s.Stub.SQL, &s.Update.SQL}
	if o := s.Occupants; o != nil {
		texts = append(texts, &o.Join.SQL, &o.Project.SQL, &o.Reproject.SQL)
	}
	if h := s.Held; h != nil {
		texts = append(texts, &h.Insert.SQL, &h.Update.SQL, &h.Delete.SQL)
		for _, side := range []*compile.SideStatements{h.Tombstones, h.Sets, h.Ledger} {
			if side != nil {
				texts = append(texts, &side.Get)
			}
		}
	}
	for _, t := range texts {
		*t = change(*t)
	}
}

// Every defect is found within the default effort, and shrunk to few deliveries.
func TestPlantedDefects(t *testing.T) {
	for engine, database := range engines {
		for _, d := range defects {
			t.Run(engine+"/"+d.name, func(t *testing.T) {
				t.Parallel()
				if d.tables == "" {
					d.tables, d.history = shopTables, shopEvents
				}
				plan := compiled(t, d.tables)
				var changed atomic.Bool
				o := sqlsink.Options{Rewrite: func(table *sink.Table, s *compile.Statements) {
					if d.statement == nil || table.Table.Name != d.table {
						return
					}
					every(s, func(sql string) string {
						out := d.statement(sql)
						changed.CompareAndSwap(false, out != sql)
						return out
					})
				}}
				var at sink.Scratcher = open(t, database(t), pipeline.Tables(plan, "db"), o)
				if d.row != nil {
					changed.Store(true)
					at = &bent{at, d.row}
				}
				r := run(t, prove.Options{Plan: plan, Deliveries: d.history, Sink: at})
				if !changed.Load() {
					t.Fatal("the defect is not planted: no statement looks as it expects")
				}
				if r.Counterexample == nil {
					t.Fatalf("it is not found in %d orders", r.Orders)
				}
				story := prove.Story(r.Counterexample)
				if n := len(r.Counterexample.Steps); n > 4 || !strings.Contains(story, d.table) {
					t.Errorf("shrunk to %d deliveries:\n%s", n, story)
				}
				t.Logf("found in %d orders:\n%s", r.Orders, story)
			})
		}
	}
}

// bent is a sink that changes rows before it writes them.
type bent struct {
	sink.Scratcher
	row func(t *merge.Table, r *merge.Row)
}

func (b *bent) Scratch(ctx context.Context, tables []*sink.Table) (sink.Scratch, error) {
	x, err := b.Scratcher.Scratch(ctx, tables)
	if err != nil {
		return nil, err
	}
	return &bentScratch{x, b.row}, nil
}

type bentScratch struct {
	sink.Scratch
	row func(t *merge.Table, r *merge.Row)
}

func (b *bentScratch) Apply(ctx context.Context, batch *sink.Batch) (*sink.Result, error) {
	for _, g := range batch.Groups {
		for _, r := range g.Rows {
			b.row(g.Table.Table, r)
		}
	}
	return b.Scratch.Apply(ctx, batch)
}

// Without a defect the same histories pass.
func TestHistoriesOfDefectsPass(t *testing.T) {
	plan := compiled(t, shopTables)
	for engine, database := range engines {
		t.Run(engine, func(t *testing.T) {
			r := run(t, prove.Options{Plan: plan, Deliveries: shopEvents, Orders: orders(), Sink: open(t, database(t), pipeline.Tables(plan, "db"), sqlsink.Options{})})
			if r.Counterexample != nil {
				t.Fatal(prove.Story(r.Counterexample))
			}
			if len(r.Left) > 0 || len(r.Depends) > 0 {
				t.Errorf("left %v, depends %v", r.Left, r.Depends)
			}
		})
	}
}
