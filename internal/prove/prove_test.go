package prove_test

import (
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/internal/prove"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

const head = `
version: 1
journal: sqlite:unused.db
sources:
  calendly: {preset: calendly, secrets: [s]}
  whatsapp: {preset: whatsapp, secrets: [s]}
  shop: {preset: http, verify: none, id: event.id, type: event.type, time: event.at}
targets:
  db: {url: "sqlite:unused.db"}
tables:
`

// problems are the tables of the three problems.
const problems = `
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
    events:
      - from: whatsapp
        type: "status.*"
        key: {message_id: event.id}
        set:
          status: event.status
          sent_at: 'type == "status.sent" ? time : unset'
          delivered_at: 'type == "status.delivered" ? time : unset'
          read_at: 'type == "status.read" ? time : unset'
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
      tags: {type: "text[]", merge: union}
      first_seen: {type: timestamp, merge: first}
    events:
      - from: shop
        type: "payment.*"
        key: {id: event.payment}
        set: {user_id: event.user, amount: event.amount, tags: event.tags, first_seen: time}
`

func compiled(t testing.TB, tables string) *mapping.Plan {
	t.Helper()
	cfg, bad := config.Parse("prove.yaml", []byte(head+tables), config.Options{})
	if bad.Err() != nil {
		t.Fatal(bad)
	}
	plan, bad := mapping.Compile(cfg)
	if bad.Err() != nil {
		t.Fatal(bad)
	}
	return plan
}

func delivery(source, body string) *event.Delivery {
	return &event.Delivery{Source: source, Body: []byte(body), Received: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}
}

// shop are events, one per line, with their id left out.
func shop(lines string) []*event.Delivery {
	var out []*event.Delivery
	for i, l := range strings.Split(strings.TrimSpace(lines), "\n") {
		out = append(out, delivery("shop", fmt.Sprintf(`{"id":"e%d",%s`, i+1, strings.TrimPrefix(strings.TrimSpace(l), "{"))))
	}
	return out
}

func calendly(kind, invitee, since, updated string) *event.Delivery {
	return delivery("calendly", fmt.Sprintf(`{"event":"invitee.%s","created_at":"2026-05-01T08:00:00Z","payload":{"uri":"inv/%s","created_at":"%s","updated_at":"%s",
		"tracking":{"utm_term":"lead-1"},"scheduled_event":{"start_time":"2026-05-04T09:00:00Z"}}}`, kind, invitee, since, updated))
}

func status(of, at string) string {
	return fmt.Sprintf(`{"id":"wamid.1","status":"%s","timestamp":"%s"}`, of, at)
}

func statuses(list ...string) *event.Delivery {
	return delivery("whatsapp", `{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages","value":{"statuses":[`+strings.Join(list, ",")+`]}}]}]}`)
}

var histories = map[string][]*event.Delivery{
	"calendly": {
		calendly("created", "A", "2026-05-01T08:00:00.000001Z", "2026-05-01T08:00:00.000001Z"),
		calendly("created", "B", "2026-05-02T08:00:00.12Z", "2026-05-02T08:00:00.12Z"),
		calendly("canceled", "A", "2026-05-01T08:00:00.000001Z", "2026-05-02T08:00:00.31Z"),
		calendly("created", "C", "2026-05-03T08:00:00Z", "2026-05-03T08:00:00Z"),
		calendly("canceled", "B", "2026-05-02T08:00:00.12Z", "2026-05-03T08:00:00.5Z"),
		calendly("canceled", "C", "2026-05-03T08:00:00Z", "2026-05-03T08:00:00Z"),
	},
	"whatsapp": {
		statuses(status("delivered", "1767000003"), status("read", "1767000003")),
		statuses(status("sent", "1767000001")),
		statuses(status("failed", "1767000002")),
		statuses(status("delivered", "1767000004")),
		statuses(status("failed", "1767000009")),
	},
	"events": shop(`
		{"type":"payment.created","at":"2026-03-01T10:00:00.100Z","payment":"p","user":"u","amount":129.90,"tags":["b","a"]}
		{"type":"user.created","at":"2026-03-01T10:00:00.200Z","user":"u","email":"old@example.test","plan":null}
		{"type":"user.updated","at":"2026-03-01T12:00:00.300+02:00","user":"u","email":"new@example.test","plan":"pro"}
		{"type":"payment.updated","at":"2026-03-01T10:00:00.400Z","payment":"p","user":"v","amount":12345678901234567890.01,"tags":["c"]}
		{"type":"payment.updated","at":"2026-03-01T10:00:00.400Z","payment":"p","user":"u","amount":1,"tags":[]}
		{"type":"user.updated","at":"2026-03-01T10:00:00.250Z","user":"v","email":"v@example.test","plan":"free"}
		{"type":"payment.created","at":"2026-03-01T10:00:00Z","payment":"q","user":"w","amount":-0.00,"tags":["a"]}
		{"type":"user.created","at":"2026-03-01T09:00:00Z","user":"u","email":"first@example.test","plan":"x"}`),
}

var engines = map[string]func(testing.TB) string{"sqlite": testdb.SQLite, "postgres": testdb.Schema}

func open(t testing.TB, url string, tables []*sink.Table, o sqlsink.Options) sink.Scratcher {
	t.Helper()
	o.Connections = 8
	s, err := sqlsink.Open(t.Context(), url, tables, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.(sink.Scratcher)
}

func run(t testing.TB, o prove.Options) *prove.Report {
	t.Helper()
	for i, d := range o.Deliveries {
		own := *d
		own.Position = event.Position(i + 1)
		o.Deliveries[i] = &own
	}
	o.Target = "db"
	r, err := prove.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// orders is how many orders are tried where none must fail.
func orders() int {
	n, _ := strconv.Atoi(os.Getenv("HOOKFOLD_ORDERS")) // "" is the default
	switch {
	case n > 0:
		return n
	case testing.Short():
		return 30
	}
	return 100
}

func TestTheThreeProblems(t *testing.T) {
	plan := compiled(t, problems)
	all := maps.Clone(engines)
	all["mysql"] = testdb.MySQL
	for engine, database := range all {
		for name, history := range histories {
			t.Run(engine+"/"+name, func(t *testing.T) {
				least := orders()
				switch {
				case engine == "mysql" && least <= 100: // it writes to the disk with every commit
					history, least = history[:3], 10
				case len(history) == 6 && least < 720: // six are tried in all their 720 orders
					history = history[:5]
				}
				r := run(t, prove.Options{Plan: plan, Deliveries: history, Orders: least, Sink: open(t, database(t), pipeline.Tables(plan, "db"), sqlsink.Options{})})
				if r.Counterexample != nil {
					t.Fatal(prove.Story(r.Counterexample))
				}
				t.Logf("%d orders, %d arrivals, %d crashes in %s: %.0f/s", r.Orders, r.Arrivals, r.Crashes, r.Took, float64(r.Orders)/r.Took.Seconds())
				if len(r.Left) > 0 || len(r.Depends) > 0 {
					t.Errorf("left %v, depends %v", r.Left, r.Depends)
				}
			})
		}
	}
}
