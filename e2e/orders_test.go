package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/converge"
	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/demo"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/internal/prove"
	"github.com/hookfold/hookfold/internal/testtarget"
	"github.com/hookfold/hookfold/internal/witness"
	"github.com/hookfold/hookfold/merge"
)

// history is a few deliveries about rows of their own: HISTORY in a body stands
// for the number of the history, so that thousands of orders of the same
// deliveries run side by side in one table.
type history struct {
	name   string
	table  string // that it is about
	bodies []delivered
}

type delivered struct{ source, body string }

func calendly(kind, invitee, since, updated, cancellation, start string) delivered {
	return delivered{"calendly", fmt.Sprintf(`{"event":"invitee.%s","created_at":"2026-05-01T08:00:00Z","payload":{"uri":"inv/%s","created_at":"%s","updated_at":"%s",
		"cancellation":%s,"tracking":{"utm_term":"lead-HISTORY"},"scheduled_event":{"start_time":"%s"}}}`, kind, invitee, since, updated, cancellation, start)}
}

func status(of, at string) string {
	return fmt.Sprintf(`{"id":"wamid.HISTORY","status":"%s","timestamp":"%s"}`, of, at)
}

func statuses(list ...string) delivered {
	return delivered{"whatsapp", `{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages","value":{"statuses":[` +
		strings.Join(list, ",") + `]}}]}]}`}
}

func shop(body string) delivered { return delivered{"shop", body} }

const problems = `
version: 1
journal: sqlite:unused.db
sources:
  calendly: {preset: calendly, secrets: [s]}
  whatsapp: {preset: whatsapp, secrets: [s]}
  shop: {preset: http, verify: none, id: event.id, type: event.type, time: event.at}
targets:
  db: {url: "TARGET"}
tables:
  booking:
    key: {ref: text}
    columns:
      status: text
      invitee: text
      start_at: timestamp
      changed_at: {type: timestamp, merge: touch}
    events:
      - from: calendly
        type: [invitee.created, invitee.canceled]
        when: present(event.payload.tracking.utm_term)
        key: {ref: event.payload.tracking.utm_term}
        occupant: {id: event.payload.uri, since: event.payload.created_at}
        version: [event.payload.updated_at, 'type == "invitee.canceled" ? 1 : 0']
        set:
          status: 'type == "invitee.canceled" ? "canceled" : "active"'
          invitee: event.payload.uri
          start_at: event.payload.scheduled_event.start_time
  message_status:
    key: {message_id: text}
    columns:
      status:       {type: text, merge: {ladder: [sent, failed, delivered, read, played]}}
      sent_at:      {type: timestamp, merge: min}
      delivered_at: {type: timestamp, merge: min}
      read_at:      {type: timestamp, merge: min}
      error:        {type: int, scope: error}
    events:
      - from: whatsapp
        type: "status.*"
        key: {message_id: event.id}
        set:
          status: event.status
          sent_at: 'type == "status.sent" ? time : unset'
          delivered_at: 'type == "status.delivered" ? time : unset'
          read_at: 'type == "status.read" ? time : unset'
          error: "event.?errors[0].?code"
  user:
    name: app_user
    key: {id: text}
    columns: {email: text, plan: text}
    events:
      - {from: shop, type: "user.*", key: {id: event.user}, set: {email: event.email, plan: event.plan}}
  payment:
    key: {id: text}
    columns:
      user_id: {type: text, references: user, missing: ensure}
      amount: numeric
      first_seen: {type: timestamp, merge: first}
    events:
      - from: shop
        type: "payment.*"
        key: {id: event.payment}
        set: {user_id: event.user, amount: event.amount, first_seen: time}
  label:
    key: {payment: text}
    columns:
      tags: {type: "text[]", merge: union}
    events:
      - {from: shop, type: "payment.*", key: {payment: event.payment}, set: {tags: event.tags}}
`

var histories = []history{
	{table: "booking", name: "calendly, a reschedule and its cancel stamped later", bodies: []delivered{
		calendly("created", "A", "2026-05-01T08:00:00.000001Z", "2026-05-01T08:00:00.000001Z", "null", "2026-05-04T09:00:00Z"),
		calendly("created", "B", "2026-05-02T08:00:00.120000Z", "2026-05-02T08:00:00.120000Z", "null", "2026-05-06T09:00:00Z"),
		calendly("canceled", "A", "2026-05-01T08:00:00.000001Z", "2026-05-02T08:00:00.310000Z", `{"created_at":"2026-05-02T08:00:00.310000Z"}`, "2026-05-04T09:00:00Z"),
	}},
	{table: "booking", name: "calendly, two reschedules and a true cancel", bodies: []delivered{
		calendly("created", "A", "2026-05-01T08:00:00.000001Z", "2026-05-01T08:00:00.000001Z", "null", "2026-05-04T09:00:00Z"),
		calendly("created", "B", "2026-05-02T08:00:00.12Z", "2026-05-02T08:00:00.12Z", "null", "2026-05-06T09:00:00Z"),
		calendly("canceled", "A", "2026-05-01T08:00:00.000001Z", "2026-05-02T08:00:00.31Z", `{"created_at":"2026-05-02T08:00:00.31Z"}`, "2026-05-04T09:00:00Z"),
		calendly("created", "C", "2026-05-03T08:00:00Z", "2026-05-03T08:00:00Z", "null", "2026-05-08T09:00:00Z"),
		calendly("canceled", "B", "2026-05-02T08:00:00.12Z", "2026-05-03T08:00:00.5Z", `{"created_at":"2026-05-03T08:00:00.5Z"}`, "2026-05-06T09:00:00Z"),
		calendly("canceled", "C", "2026-05-03T08:00:00Z", "2026-05-03T08:00:00Z", `{"created_at":"2026-05-03T08:00:00Z"}`, "2026-05-08T09:00:00Z"),
	}},
	{table: "message_status", name: "whatsapp, four statuses in three requests and a failure", bodies: []delivered{
		statuses(status("delivered", "1767000003"), status("read", "1767000003")),
		statuses(status("sent", "1767000001")),
		statuses(`{"id":"wamid.HISTORY","status":"failed","timestamp":"1767000002","errors":[{"code":131049}]}`),
		statuses(status("delivered", "1767000004")),
		statuses(`{"id":"wamid.HISTORY","status":"failed","timestamp":"1767000009","errors":[{"code":131026}]}`),
	}},
	{table: "payment", name: "events, a user named before it is known", bodies: []delivered{
		shop(`{"id":"e1-HISTORY","type":"payment.created","at":"2026-03-01T10:00:00.100Z","payment":"p-HISTORY","user":"u-HISTORY","amount":129.90,"tags":["b","a"]}`),
		shop(`{"id":"e2-HISTORY","type":"user.created","at":"2026-03-01T10:00:00.200Z","user":"u-HISTORY","email":"old@example.test","plan":null}`),
		shop(`{"id":"e3-HISTORY","type":"user.updated","at":"2026-03-01T12:00:00.300+02:00","user":"u-HISTORY","email":"new@example.test","plan":"pro"}`),
		shop(`{"id":"e4-HISTORY","type":"payment.updated","at":"2026-03-01T10:00:00.400Z","payment":"p-HISTORY","user":"v-HISTORY","amount":12345678901234567890.01,"tags":["c"]}`),
		shop(`{"id":"e5-HISTORY","type":"payment.updated","at":"2026-03-01T10:00:00.400Z","payment":"p-HISTORY","user":"u-HISTORY","amount":1,"tags":[]}`),
		shop(`{"id":"e6-HISTORY","type":"user.updated","at":"2026-03-01T10:00:00.250Z","user":"v-HISTORY","email":"v@example.test","plan":"free"}`),
		shop(`{"id":"e7-HISTORY","type":"payment.created","at":"2026-03-01T10:00:00Z","payment":"q-HISTORY","user":"w-HISTORY","amount":-0.00,"tags":["a"]}`),
		shop(`{"id":"e8-HISTORY","type":"user.created","at":"2026-03-01T09:00:00Z","user":"u-HISTORY","email":"first@example.test","plan":"x"}`),
	}},
}

// orders is how many orders of a history are tried at most: through an API each
// costs more.
func orders(of testtarget.Kind) int {
	switch {
	case of.Name == "pgbouncer", of.Name == "mysql", of.SQL && testing.Short():
		return 500
	case of.SQL:
		return 2000
	}
	return 100
}

// TestEveryOrderGivesTheRowsOfMerge runs every order of each history (random ones
// where there are more), with deliveries doubled and cut into batches by chance,
// by one, two and eight writers, through the real mapping, pipeline and sinks.
func TestEveryOrderGivesTheRowsOfMerge(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, h := range histories {
		for _, kind := range testtarget.Kinds {
			if slices.Contains(kind.Refuses, h.table) {
				continue
			}
			for _, writers := range []int{1, 2, 8} {
				if !kind.SQL && writers == 2 {
					continue // one alone, and many, say most
				}
				t.Run(fmt.Sprintf("%s/%s/%d", h.name, kind.Name, writers), func(t *testing.T) {
					runOrders(t, h, kind, writers, rand.New(rand.NewPCG(seed, uint64(writers))))
				})
			}
		}
	}
}

func runOrders(t *testing.T, h history, kind testtarget.Kind, writers int, rnd *rand.Rand) {
	target := kind.Open(t)
	cfg, bad := config.Parse("problems.yaml", []byte(without(t, target.In(problems), kind.Refuses...)), config.Options{})
	if bad.Err() != nil {
		t.Fatal(bad)
	}
	cfg.TargetNamed("db").Connections = writers
	plan, bad := mapping.Compile(cfg)
	if bad.Err() != nil {
		t.Fatal(bad)
	}
	tables := pipeline.Tables(plan, "db")
	sinks, err := daemon.OpenSinks(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	s := sinks["db"]
	defer s.Close()
	statements, err := s.Plan(t.Context(), tables)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Execute(t.Context(), statements); err != nil {
		t.Fatal(err)
	}

	dealt, all := deal(h, orders(kind), writers, rnd)
	feed := &prove.Feed{Plan: plan, Target: "db", Sink: s, Tables: tables, Writers: dealt}
	left, err := feed.Run(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		t.Fatalf("not settled: %+v", e)
	}
	judge(t, plan, target.Rows, all)
}

// judge compares every table with the rows that package merge makes of the
// deliveries.
func judge(t *testing.T, plan *mapping.Plan, url string, deliveries []*event.Delivery) {
	t.Helper()
	reading, err := demo.Read(plan, deliveries)
	if err != nil {
		t.Fatal(err)
	}
	db, err := witness.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range plan.Tables {
		verdict, err := db.Judge(t.Context(), &table.Table, merge.Rows(table.Table.Table, reading.Changes[table.Table.Table]))
		if err != nil {
			t.Fatal(err)
		}
		if !verdict.OK() {
			t.Errorf("%s: %d rows right of %d, %d wrong, %d missing, %d doubled, %d extra", table.Name, verdict.Right, verdict.Want, verdict.Wrong, verdict.Missing, verdict.Doubled, verdict.Extra)
			shown := 0
			for key, diff := range verdict.Diffs {
				if shown++; shown <= 5 {
					t.Errorf("  %s: %s", table.Show(key), diff)
				}
			}
		}
	}
}

// deal makes a history of its own of every order, and deals their arrivals out
// to the writers. A single writer takes the first batches of all histories as
// one batch, then the second ones, and so on. Some writers crash between the
// database and the journal.
func deal(h history, most, writers int, rnd *rand.Rand) ([][]prove.Batch, []*event.Delivery) {
	var all []*event.Delivery
	steps := make([][][]*event.Delivery, writers)
	n := 0
	for order := range converge.Orders(len(h.bodies), most, rnd.Uint64()) {
		n++
		for range rnd.IntN(3) {
			order = slices.Insert(order, rnd.IntN(len(order)+1), order[rnd.IntN(len(order))])
		}
		step := make([]int, writers)
		for _, i := range order {
			b := h.bodies[i]
			d := &event.Delivery{
				Position: event.Position(len(all) + 1), Source: b.source, Received: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
				Body: bytes.ReplaceAll([]byte(b.body), []byte("HISTORY"), fmt.Appendf(nil, "%05d", n)),
			}
			all = append(all, d)
			w := rnd.IntN(writers)
			step[w] += rnd.IntN(2)
			for len(steps[w]) <= step[w] {
				steps[w] = append(steps[w], nil)
			}
			steps[w][step[w]] = append(steps[w][step[w]], d)
		}
	}
	out := make([][]prove.Batch, writers)
	for w, batches := range steps {
		for _, b := range batches {
			if len(b) > 0 {
				out[w] = append(out[w], prove.Batch{Deliveries: b, Crash: rnd.IntN(4) == 0})
			}
		}
	}
	return out, all
}
