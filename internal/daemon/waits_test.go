package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/internal/witness"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/journal/sqlite"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

const chainYAML = `
version: 1
journal: sqlite:unused.db
sources:
  shop: {preset: http, verify: none, id: event.id, type: event.type, time: event.at}
targets:
  db: {url: "%s"}
tables:
  region:
    key: {id: text}
    on_delete: mark
    columns: {name: text}
    events:
      - {from: shop, type: region, key: {id: event.region}, set: {name: event.name}}
      - {from: shop, type: region.gone, key: {id: event.region}, delete: true}
  customer:
    key: {id: text}
    columns: {region: {type: text, references: region, missing: wait}, email: text}
    events: [{from: shop, type: customer, key: {id: event.customer}, set: {region: event.region, email: event.email}}]
  invoice:
    key: {id: text}
    columns: {customer: {type: text, references: customer, missing: wait, for: 1h}, total: int, top: {type: int, merge: max}}
    events: [{from: shop, type: invoice, key: {id: event.invoice}, set: {customer: event.customer, total: event.total, top: event.total}}]
  note:
    key: {id: text}
    columns: {of: text, text: text}
    events:
      - {from: shop, type: note, key: {id: event.note}, set: {of: event.invoice, text: event.text}}
`

// team is runners that share a database, each with a journal of its own.
type team struct {
	*testing.T
	url      string
	log      *syncBuffer
	plan     *mapping.Plan
	journals []*sqlite.Journal
	runners  []*pipeline.Runner
	sink     sink.Sink
}

func newTeam(t *testing.T, url string, n int) *team {
	t.Helper()
	cfg, problems := config.Parse("hookfold.yaml", fmt.Appendf(nil, chainYAML, url), config.Options{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	plan, problems := mapping.Compile(cfg)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	x := &team{T: t, url: url, log: &syncBuffer{}, plan: plan}
	tables := pipeline.Tables(plan, "db")
	s, err := sqlsink.Open(t.Context(), url, tables, sqlsink.Options{Connections: n})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	x.sink = s
	statements, err := s.Plan(t.Context(), tables)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Execute(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		j, err := sqlite.Open(filepath.Join(t.TempDir(), fmt.Sprint("j", i)), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := pipeline.New(pipeline.Options{
			Target: "db", Journal: j, Sink: s, Sources: pipeline.Sources(plan), Tables: tables,
			Map: func(e *event.Event) mapping.Outcome { return plan.Map(e, "db") },
			Log: slog.New(slog.NewTextHandler(x.log, nil)),
			// Nothing but being woken brings events forward.
			Patience: pipeline.Backoff{First: time.Hour, Most: time.Hour},
		})
		x.journals, x.runners = append(x.journals, j), append(x.runners, r)
		t.Cleanup(func() {
			if err := r.Stop(context.Background()); err != nil {
				t.Error(err)
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func (x *team) send(to int, body string) {
	x.Helper()
	if err := x.journals[to].Append(x.Context(), &event.Delivery{Source: "shop", Body: []byte(body), Received: time.Now()}); err != nil {
		x.Fatal(err)
	}
}

func (x *team) entries() []journal.Entry {
	x.Helper()
	var all []journal.Entry
	for _, j := range x.journals {
		es, err := j.Entries(x.Context(), journal.Filter{})
		if err != nil {
			x.Fatal(err)
		}
		all = append(all, es...)
	}
	return all
}

// settle waits until nothing is pending, and so many events wait or are dead.
func (x *team) settle(within time.Duration, left int) {
	x.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); ; <-tick.C {
		pending := int64(0)
		for _, r := range x.runners {
			n, _, err := r.Lag(x.Context())
			if err != nil {
				x.Fatal(err)
			}
			pending += n
		}
		es := x.entries()
		if pending == 0 && len(es) == left {
			return
		}
		if time.Since(begun) > within {
			x.Fatalf("%d pending, %d left, want %d:\n%s\n%s", pending, len(es), left, strings.Join(pipeline.Lines(es, time.Now()), "\n"), x.log)
		}
	}
}

// exec is somebody else at the database.
func (x *team) exec(statements ...string) {
	x.Helper()
	if err := x.sink.Execute(x.Context(), statements); err != nil {
		x.Fatal(err)
	}
}

func (x *team) count(sql string) string {
	x.Helper()
	db, err := witness.Open(x.url)
	if err != nil {
		x.Fatal(err)
	}
	defer db.Close()
	var out string
	if err := db.QueryRowContext(x.Context(), sql).Scan(&out); err != nil {
		x.Fatal(err)
	}
	return out
}

const day1 = "2026-01-01T00:00:%02dZ"

// Chains of three, dealt out to eight runners that share nothing but the
// database, each with its part in an order of its own.
func TestF11ChainsOfParentsOverEightRunners(t *testing.T) {
	for name, url := range databases(t) {
		t.Run(name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 1))
			x := newTeam(t, url(t), 8)
			var bodies []string
			for i := range 20 {
				at := fmt.Sprintf(day1, i)
				bodies = append(bodies, fmt.Sprintf(`{"type":"region","at":%q,"region":"r%d","name":"n"}`, at, i))
				if i%5 == 0 { // gone, before or after: a region that was there
					bodies = append(bodies, fmt.Sprintf(`{"type":"region.gone","at":%q,"region":"r%d"}`, fmt.Sprintf(day1, 40), i))
				}
				for c := range 3 {
					bodies = append(bodies, fmt.Sprintf(`{"type":"customer","at":%q,"customer":"c%d.%d","region":"r%d","email":"e"}`, at, i, c, i))
					for v := range 3 {
						bodies = append(bodies, fmt.Sprintf(`{"type":"invoice","at":%q,"invoice":"i%d.%d","customer":"c%d.%d","total":%d}`, fmt.Sprintf(day1, v), i, c, i, c, v))
					}
				}
			}
			// Nobody ever tells of the region x.
			bodies = append(bodies, fmt.Sprintf(`{"type":"customer","at":%q,"customer":"cx","region":"x","email":"e"}`, fmt.Sprintf(day1, 1)),
				fmt.Sprintf(`{"type":"invoice","at":%q,"invoice":"ix","customer":"cx","total":1}`, fmt.Sprintf(day1, 1)))
			rnd.Shuffle(len(bodies), func(i, j int) { bodies[i], bodies[j] = bodies[j], bodies[i] })
			for _, b := range bodies {
				x.send(rnd.IntN(8), b)
				if rnd.IntN(4) == 0 {
					x.send(rnd.IntN(8), b)
				}
			}
			// A redelivery of what waits waits as well.
			left := 0
			for _, j := range x.journals {
				if err := j.Scan(t.Context(), 0, func(d *event.Delivery) error {
					if strings.Contains(string(d.Body), `"cx"`) {
						left++
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			x.settle(30*time.Second, left)
			for sql, want := range map[string]string{
				"select count(*) from region": "20", "select count(*) from region where deleted_at is not null": "4",
				"select count(*) from customer": "60", "select count(*) from invoice where total = 2 and top = 2": "60",
				"select count(*) from invoice": "60",
			} {
				if got := x.count(sql); got != want {
					t.Errorf("%s: %s, want %s", sql, got, want)
				}
			}
			// The parent comes, by hand, to a runner that has not told of it.
			x.exec("insert into region (id, name) values ('x', 'by hand')")
			begun := time.Now()
			x.settle(30*time.Second, 0)
			t.Logf("a chain of two landed %s after its parent", time.Since(begun).Round(time.Millisecond))
			if got := x.count("select count(*) from invoice where id = 'ix'"); got != "1" {
				t.Error("ix is not there")
			}
		})
	}
}

// What the database asks for without the config knowing: foreign keys, unique
// values, NOT NULL.
func TestWhatTheDatabaseAsksForIsWaitedFor(t *testing.T) {
	for name, url := range databases(t) {
		t.Run(name, func(t *testing.T) {
			x := newTeam(t, url(t), 2)
			if name == "postgres" {
				x.exec("alter table note add foreign key (of) references invoice (id)",
					"alter table note add column must text not null default 'x'", "alter table customer add unique (email)")
			} else {
				x.exec("create unique index customer_email on customer (email)")
			}
			at := func(n int) string { return fmt.Sprintf(day1, n) }
			x.send(0, fmt.Sprintf(`{"type":"region","at":%q,"region":"r","name":"n"}`, at(1)))
			for _, c := range []string{"a", "b"} {
				x.send(0, fmt.Sprintf(`{"type":"customer","at":%q,"customer":%q,"region":"r","email":%q}`, at(1), c, c+"@x"))
			}
			x.settle(10*time.Second, 0)
			left := 0
			if name == "postgres" {
				x.send(0, fmt.Sprintf(`{"type":"note","at":%q,"note":"n1","invoice":"i1","text":"t"}`, at(1)))
				left++
			}
			// c wants what a has, and a is going to give it up, told to the same runner.
			x.send(0, fmt.Sprintf(`{"type":"customer","at":%q,"customer":"c","region":"r","email":"a@x"}`, at(2)))
			x.settle(10*time.Second, left+1)
			x.send(0, fmt.Sprintf(`{"type":"customer","at":%q,"customer":"a","region":"r","email":"free@x"}`, at(3)))
			x.settle(10*time.Second, left)
			// b and c swap.
			x.send(0, fmt.Sprintf(`{"type":"customer","at":%q,"customer":"b","region":"r","email":"a@x"}`, at(4)))
			x.settle(10*time.Second, left+1)
			x.send(0, fmt.Sprintf(`{"type":"customer","at":%q,"customer":"c","region":"r","email":"b@x"}`, at(4)))
			x.settle(10*time.Second, left)
			if got := x.count("select count(*) from customer where id || email in ('afree@x', 'ba@x', 'cb@x')"); got != "3" {
				t.Errorf("%s customers are right", got)
			}
			// The other runner brings what the database misses.
			x.send(1, fmt.Sprintf(`{"type":"invoice","at":%q,"invoice":"i1","customer":"a","total":1}`, at(1)))
			x.settle(10*time.Second, 0)
			if n := x.count("select count(*) from note"); name == "postgres" && n != "1" {
				t.Errorf("%s notes", n)
			}
		})
	}
}
