package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/sink"
)

const head = `version: 1
journal: sqlite:test.db
targets: {db: {url: "sqlite:rows.db"}}
sources:
  calendly: {preset: calendly, secrets: [whsec]}
  whatsapp: {preset: whatsapp, secrets: [whsec], verify_token: t}
  stripe: {preset: stripe, secrets: [whsec]}
  shop: {preset: http, verify: none, id: event.id, type: event.type, time: event.at}
  bare: {preset: http, verify: none}
tables:
`

func compiled(t testing.TB, text string) *mapping.Plan {
	t.Helper()
	cfg, problems := config.Parse("f.yaml", []byte(text), config.Options{Env: func(string) (string, bool) { return "x", true }})
	if err := problems.Err(); err != nil {
		t.Fatalf("the config cannot be read:\n%v", err)
	}
	p, problems := mapping.Compile(cfg)
	if err := problems.Err(); err != nil {
		t.Fatalf("the config does not compile:\n%v", err)
	}
	return p
}

// problems lists what is found in tables, without the places of the file.
func problems(t testing.TB, tables string, least config.Severity) []string {
	t.Helper()
	var out []string
	for _, p := range Run(compiled(t, head+tables)).Problems.List {
		if least == config.Error && p.Severity != config.Error || least == config.Warning && p.Severity == config.Note {
			continue
		}
		out = append(out, fmt.Sprintf("%s %s: %s", p.Severity, p.Path, p.Text))
	}
	return out
}

func TestSoundness(t *testing.T) {
	// shop gives the table t one mapping of shop's events.
	shop := func(columns, rest string) string {
		return fmt.Sprintf("  t: {key: {id: text}, columns: {%s}, events: [{from: shop, key: {id: event.id}, %s}]}\n", columns, rest)
	}
	cases := []struct {
		name, tables string
		want         []string // errors and warnings
	}{
		{"sound", shop("a: text, b: int", "set: {a: event.a, b: event.b}"), nil},
		{"part of row", "  t:\n    key: {id: text}\n    columns: {status: text, start_at: timestamp}\n    events:\n    - {from: shop, key: {id: event.id}, set: {status: event.a}}\n    - {from: shop, key: {id: event.id}, set: {status: event.a, start_at: time}}\n",
			[]string{"error tables.t.events[0]: sets status but not start_at, which has the same version (scope row): a newer event of this mapping would leave an older start_at under a newer version. Set both, or give one a scope: of its own, or use versions: column."}},
		{"part of row with versions per column", "  t:\n    key: {id: text}\n    versions: column\n    columns: {status: text, start_at: timestamp}\n    events:\n    - {from: shop, key: {id: event.id}, set: {status: event.a}}\n    - {from: shop, key: {id: event.id}, set: {status: event.a, start_at: time}}\n", nil},
		{"unset in row", shop("status: text", `set: {status: 'type == "a" ? event.a : unset'}`),
			[]string{"error tables.t.events[0].set.status: unset is not allowed in scope row: the row's version would rise while status stays. Give status a scope: of its own."}},
		{"F26 absent in row is only noted", shop("status: text", `set: {status: "event.?a"}`), nil},
		{"unset in its own scope", shop("status: {type: text, scope: status}", `set: {status: 'type == "a" ? event.a : unset'}`), nil},
		{"F8 absent in a scope of two", shop("a: {type: text, scope: s}, b: {type: text, scope: s}", `set: {a: event.a, b: "event.?b"}`),
			[]string{"error tables.t.events[0].set.b: scope s has 2 columns and one version, and b may be absent: the scope's version would rise while b stays. Give each of its columns a scope: of its own."}},
		{"F8 star in a scope of two", shop("a: {type: text, scope: s}, b: {type: text, scope: s}", `set: {a: event.a, "*": event}`),
			[]string{`error tables.t.events[0].set.*: scope s has 2 columns and one version, and b of "*" may be lacking: the scope's version would rise while b stays. Give each of its columns a scope: of its own.`}},
		{"no version and no time", "  sms: {key: {id: text}, columns: {a: text}, events: [{from: bare, key: {id: event.id}, set: {a: event.a}}]}\n",
			[]string{"error tables.sms: needs a version, and source bare has no time. Give version:, for example [position] (order of arrival), or use ladder, min or max."}},
		{"no version and no time, twice", "  sms: {key: {id: text}, columns: {a: text}, events: [{from: bare, type: a, key: {id: event.id}, set: {a: event.a}}, {from: bare, key: {id: event.id}, set: {a: event.a}}]}\n",
			[]string{"error tables.sms: needs a version, and source bare has no time.", "error tables.sms.events[0].type: events of bare have no type"}},
		{"no version needed", "  sms: {key: {id: text}, columns: {a: {type: int, merge: max}}, events: [{from: bare, key: {id: event.id}, set: {a: event.a}}]}\n", nil},
		{"F9 versions of unlike length", "  t:\n    key: {id: text}\n    columns: {a: text}\n    events:\n    - {from: shop, key: {id: event.id}, version: [time], set: {a: event.a}}\n    - {from: shop, key: {id: event.id}, version: [time, 1], set: {a: event.a}}\n",
			[]string{"error tables.t.events[1].version: has 2 elements, events[0] (line 15) has 1. All mappings of a table that set scope row give the same number and kinds, or the comparison means nothing."}},
		{"F9 versions of unlike kinds", "  t:\n    key: {id: text}\n    columns: {a: text}\n    events:\n    - {from: shop, key: {id: event.id}, version: [time], set: {a: event.a}}\n    - {from: shop, key: {id: event.id}, version: [int(event.n)], set: {a: event.a}}\n",
			[]string{"error tables.t.events[1].version: element 0 is a number, in events[0] (line 15) it is a time. All mappings of a table that set scope row give the same number and kinds, or the comparison means nothing."}},
		{"versions of unlike length in two scopes", "  t:\n    key: {id: text}\n    columns: {a: text, b: {type: text, scope: b}}\n    events:\n    - {from: shop, key: {id: event.id}, version: [time], set: {a: event.a}}\n    - {from: shop, key: {id: event.id}, version: [time, 1], set: {b: event.a}}\n", nil},
		{"F15 received without identity", "  t: {key: {id: text}, columns: {a: text}, events: [{from: bare, key: {id: event.id}, version: [received], set: {a: event.a}}]}\n",
			[]string{"warning tables.t.events[0].version[0]: is arrival-ordered: source bare gives its events no identity, so an event that comes again counts as newer. Give the source an id:, or put a time of the event in the version."}},
		{"F15 received with identity", shop("a: text", "version: [received], set: {a: event.a}"), nil},
		{"F16 two clocks", "  t:\n    key: {id: text}\n    columns: {a: text}\n    events:\n    - {from: shop, key: {id: event.id}, set: {a: event.a}}\n    - {from: bare, key: {id: event.id}, version: [timestamp(event.x)], set: {a: event.a}}\n",
			[]string{"error tables.t.events[1]: sets scope row by the clock of bare, events[0] (line 15) by the clock of shop. Times of two clocks do not tell what is newer. If they are one clock, say clock: shop here; else lead both versions with a rank, or give the columns of one a scope: of their own."}},
		{"F16 positions are of one journal", "  t:\n    key: {id: text}\n    columns: {a: text}\n    events:\n    - {from: shop, version: [position], key: {id: event.id}, set: {a: event.a}}\n    - {from: bare, version: [position], key: {id: event.id}, set: {a: event.a}}\n", nil},
		{"F16 a position and a time", "  t:\n    key: {id: text}\n    columns: {a: text}\n    events:\n    - {from: shop, version: [received], key: {id: event.id}, set: {a: event.a}}\n    - {from: shop, version: [time], key: {id: event.id}, set: {a: event.a}}\n",
			[]string{"error tables.t.events[1]: sets scope row by the clock of shop, events[0] (line 15) by the clock of this journal."}},
		{"types of a source that has none", "  t: {key: {id: text}, columns: {}, events: [{from: bare, type: a, key: {id: event.id}}]}\n",
			[]string{"error tables.t.events[0].type: events of bare have no type, so that none is taken. Say which it is, as in sources.bare: {type: event.type}, or leave type: out here."}},
		{"a row that two invitees hold in turn", "  t: {key: {id: text}, columns: {a: text}, events: [{from: calendly, type: \"invitee.*\", key: {id: event.payload.email}, version: [event.payload.updated_at], set: {a: type}}]}\n",
			[]string{"warning tables.t.events[0]: calendly reschedules by canceling one invitee and creating another"}},
		{"a row for each invitee", "  t: {key: {id: text}, columns: {a: text}, events: [{from: calendly, type: \"invitee.*\", key: {id: event.payload.uri}, version: [event.payload.updated_at], set: {a: type}}]}\n", nil},
		{"a value that does not fit on any sample", "  t: {key: {id: text}, columns: {a: int}, events: [{from: calendly, type: \"invitee.*\", key: {id: event.payload.uri}, version: [event.payload.updated_at], set: {a: event.payload.email}}]}\n",
			[]string{"error tables.t.events[0].set.a: calendly/invitee.canceled would be dead"}},
		{"F16 one clock by name", "  t:\n    key: {id: text}\n    columns: {a: text}\n    events:\n    - {from: shop, key: {id: event.id}, set: {a: event.a}}\n    - {from: bare, clock: shop, key: {id: event.id}, version: [timestamp(event.x)], set: {a: event.a}}\n", nil},
		{"F16 led by a rank", "  t:\n    key: {id: text}\n    columns: {a: text}\n    events:\n    - {from: shop, key: {id: event.id}, version: [1, time], set: {a: event.a}}\n    - {from: bare, key: {id: event.id}, version: [2, timestamp(event.x)], set: {a: event.a}}\n", nil},
		{"F16 led by the same rank", "  t:\n    key: {id: text}\n    columns: {a: text}\n    events:\n    - {from: shop, key: {id: event.id}, version: [1, time], set: {a: event.a}}\n    - {from: bare, key: {id: event.id}, version: [1, timestamp(event.x)], set: {a: event.a}}\n",
			[]string{"error tables.t.events[1]: sets scope row by the clock of bare"}},
		{"an occupant that is another each time", shop("a: text", "occupant: {id: string(position), since: time}, set: {a: event.a}"),
			[]string{"warning tables.t.events[0].occupant.id: is another each time the event comes"}},
		{"the row's own column without an occupant", "  t:\n    key: {id: text}\n    columns: {a: text, b: {type: text, scope: key}}\n    events:\n    - {from: shop, key: {id: event.id}, occupant: {id: event.o, since: time}, set: {a: event.a}}\n    - {from: shop, key: {id: event.id}, set: {b: event.b}}\n", nil},
		{"nobody knows since when", shop("a: text", "occupant: {id: event.o}, set: {a: event.a}"),
			[]string{"warning tables.t.events[0].occupant: no mapping says since: when an occupant holds the row, so the greatest id shows, not the newest. Add since:, the time at which the occupant came to be."}},
		{"a type that is never sent", "  t: {key: {id: text}, columns: {}, events: [{from: calendly, type: invitee.cancelled, key: {id: event.payload.uri}}]}\n",
			[]string{"error tables.t.events[0].type: calendly never sends invitee.cancelled. Did you mean invitee.canceled?"}},
		{"a type in an expression that is never sent", "  t: {key: {id: text}, columns: {a: {type: text, merge: max}}, events: [{from: calendly, type: [invitee.created, invitee.canceled], key: {id: event.payload.uri}, set: {a: 'type == \"invitee.cancelled\" ? \"x\" : \"y\"'}}]}\n",
			[]string{"warning tables.t.events[0].set.a: calendly never sends invitee.cancelled. Did you mean invitee.canceled?"}},
		{"a field in no sample", "  t: {key: {id: text}, columns: {a: timestamp}, events: [{from: calendly, type: [invitee.created, invitee.canceled], key: {id: event.payload.uri}, version: [event.payload.updated_at], set: {a: event.payload.start_time}}]}\n",
			[]string{"error tables.t.events[0].set.a: field event.payload.start_time is in none of the 5 samples of calendly invitee.created, invitee.canceled. There is event.payload.scheduled_event.start_time."}},
		{"a misspelt field in no sample", "  t: {key: {id: text}, columns: {}, events: [{from: whatsapp, type: \"status.*\", key: {id: event.idd}}]}\n",
			[]string{"error tables.t.events[0].key.id: field event.idd is in none of the 8 samples of whatsapp status.*. There is event.id."}},
		{"an optional in no sample only warns", "  t: {key: {id: text}, columns: {a: {type: text, scope: a}}, events: [{from: whatsapp, type: \"status.*\", key: {id: event.id}, version: [time, 'rank(type, [\"*\"])'], set: {a: \"event.?nope\"}}]}\n",
			[]string{"warning tables.t.events[0].set.a: field event.nope is in none of the 8 samples of whatsapp status.*."}},
		{"a value that does not fit on samples", "  t: {key: {id: int}, columns: {}, events: [{from: whatsapp, type: status.sent, key: {id: event.id}}]}\n",
			[]string{"error tables.t.events[0].key.id: whatsapp/status.sent would be dead (1 of 1 samples that this mapping takes): wamid.HBgLMTU1NTAxMjM0NTYVAgARGBJBQUFBMD… does not fit int"}},
		{"a field that only some samples have", "  t: {key: {id: text}, columns: {a: {type: int, merge: max}}, events: [{from: whatsapp, type: \"status.*\", key: {id: event.id}, set: {a: \"event.errors[0].code\"}}]}\n",
			[]string{"warning tables.t.events[0].set.a: whatsapp/batch.several-entries-and-changes would be dead (7 of 8 samples that this mapping takes): no such field: event has no errors"}},
		{"whole seconds", "  t: {key: {id: text}, columns: {a: text}, events: [{from: stripe, type: customer.subscription.updated, key: {id: event.id}, set: {a: event.type}}]}\n",
			[]string{"warning tables.t.events[0].version: is only the time. stripe: time has whole seconds"}},
		{"whole seconds and a second element", "  t: {key: {id: text}, columns: {a: text}, events: [{from: stripe, type: customer.subscription.updated, key: {id: event.id}, version: [time, 1], set: {a: event.type}}]}\n", nil},
		{"a touch column is not set", shop("a: text, c: {type: timestamp, merge: touch}", "set: {a: event.a}"), nil},
		{"nothing sets a column", shop("a: {type: int, merge: max}, b: {type: int, merge: max}", "set: {a: event.a}"),
			[]string{"warning tables.t.columns.b: no mapping sets it."}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := problems(t, tc.tables, config.Warning)
			for i := range got {
				if i < len(tc.want) && strings.HasPrefix(got[i], tc.want[i]) {
					got[i] = tc.want[i] // what is wanted may leave out the end
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// TestF20Contested: a unique index makes its values depend on who comes first,
// and check says so.
func TestF20Contested(t *testing.T) {
	p := compiled(t, head+"  user: {key: {tenant: text, id: text}, columns: {email: text, name: text}, events: [{from: shop, key: {tenant: event.t, id: event.id}, set: {\"*\": event}}]}\n")
	r := Run(p)
	r.Contested(p.Table("user"), &sink.Live{Uniques: []sink.Unique{
		{Name: "user_pkey", Columns: []string{"tenant", "id"}}, {Name: "wider", Columns: []string{"id", "tenant", "name"}},
		{Name: "email", Columns: []string{"tenant", "email"}}, {Name: "theirs", Columns: []string{"phone"}},
	}, Triggers: []sink.Trigger{{Name: "tidy", Enabled: true, Before: true}, {Name: "tell", Enabled: true}, {Name: "zz_hookfold_guard", Enabled: true, Before: true}}})
	const judged = "; except what trigger tidy makes of a row, which is not judged"
	const except = "; except contested values of email (unique index email): the row that comes first has one until it lets go of it, and another waits"
	want := []string{
		"user: order-free because every column is a join of what the events say" + judged + except,
		"user.email: order-free because the newest version wins: time" + except,
		"user.name: order-free because the newest version wins: time",
	}
	var got []string
	for _, v := range r.Verdicts {
		got = append(got, v.String())
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestVerdicts(t *testing.T) {
	p := compiled(t, head+`
  order:
    key: {id: text}
    columns:
      state: {type: text, merge: {ladder: [new, paid, sent]}}
      price: numeric
      seen: {type: timestamp, merge: max}
      changed: {type: timestamp, merge: touch}
    events: [{from: shop, key: {id: event.id}, version: [event.at, int(event.n)], set: {state: event.state, price: event.price, seen: time}}]
  arrived:
    key: {id: text}
    columns: {a: text}
    events: [{from: bare, key: {id: event.id}, version: [position], set: {a: event.a}}]
  user: {key: {id: text}, columns: {}, events: [{from: shop, key: {id: event.u}}]}
  value: {key: {id: text}, columns: {n: int, at: {type: timestamp, merge: min}}, events: [{from: bare, key: {id: event.id}, version: [event.v], set: {n: position, at: received}}]}
  each: {key: {id: int}, columns: {a: text}, events: [{from: shop, key: {id: position}, set: {a: event.a}}]}
  late: {key: {id: text}, columns: {a: text}, events: [{from: bare, when: received > timestamp("2026-01-01T00:00:00Z"), key: {id: event.id}, version: [event.v], set: {a: event.a}}]}
`)
	var got []string
	for _, v := range Run(p).Verdicts {
		got = append(got, v.String())
	}
	want := []string{
		"order: order-free because every column is a join of what the events say",
		"order.state: order-free because the highest rung wins: new < paid < sent",
		"order.price: order-free because the newest version wins: event.at, then int(event.n)",
		"order.seen: order-free because the greatest value wins",
		"order.changed: order-free because touch tells when the row last changed, and is compared with nothing",
		"arrived: depends on the order of arrival because a does; see there",
		"arrived.a: depends on the order of arrival because its version in events[0] (line 23) is the order of arrival; put a time or a counter of the event in version:, or use ladder, min or max",
		"user: order-free because rows are only inserted, by key, and never changed",
		"value: depends on how often and when events arrive because n does; see there",
		"value.n: depends on how often and when events arrive because its value in events[0] (line 25) is another each time the event arrives; use a time of the event, or merge: min",
		"value.at: order-free because the smallest value wins",
		"each: depends on how often and when events arrive because position in events[0] (line 26) may be another each time an event arrives, and decides which rows it is about; use what is in the event",
		"each.a: order-free because the newest version wins: time",
		`late: depends on how often and when events arrive because received > timestamp("2026-01-01T00:00:00Z") in events[0] (line 27) may be another each time an event arrives, and decides which rows it is about; use what is in the event`,
		"late.a: order-free because the newest version wins: event.v",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// The expressions of a lane are tried as those of a mapping are.
func TestLanesAreChecked(t *testing.T) {
	var got []string
	for _, p := range Run(compiled(t, strings.Replace(head, "verify_token: t", "verify_token: t, id: [event.id, type]", 1)+`  z: {key: {id: text}, events: [{from: shop, key: {id: event.id}}]}
lanes:
  a: {from: whatsapp, type: status.sendt, key: event.id, post: "http://localhost/x", secret: none}
  b: {from: whatsapp, type: status.sent, key: event.idd, post: "http://localhost/x", secret: none}
  c: {from: whatsapp, type: status.sent, key: event.id, sql: {statement: "select :x", with: {x: event.nothing}}}
  d: {from: whatsapp, type: status.sent, key: event.id, order: version, post: "http://localhost/x", secret: none}
`)).Problems.List {
		got = append(got, fmt.Sprintf("%s %s: %s", p.Severity, p.Path, p.Text))
	}
	for _, want := range []string{
		"error lanes.a.type: whatsapp never sends status.sendt. Did you mean status.sent?",
		"error lanes.b.key: field event.idd is in none of the",
		"error lanes.c.sql.with.x: field event.nothing is in none of the",
	} {
		if !slices.ContainsFunc(got, func(p string) bool { return strings.HasPrefix(p, want) }) {
			t.Errorf("no problem %s in\n%s", want, strings.Join(got, "\n"))
		}
	}
	if slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, "lanes.d") }) {
		t.Error(got)
	}
}
