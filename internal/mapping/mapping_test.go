package mapping

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/merge"
)

const head = `
version: 1
journal: sqlite:test.db
targets: {db: {url: "sqlite:rows.db"}}
sources:
  calendly: {preset: calendly, secrets: [whsec]}
  whatsapp: {preset: whatsapp, secrets: [whsec], verify_token: t}
  stripe: {preset: stripe, secrets: [whsec]}
  shop:
    preset: http
    verify: none
    id: event.id
    type: event.type
    time: event.at
    zone: Europe/Berlin
`

// parsed reads the head and tables; problems of the loader fail the test.
func parsed(t testing.TB, text string) *config.Config {
	t.Helper()
	cfg, problems := config.Parse("hookfold.yaml", []byte(text), config.Options{Env: func(string) (string, bool) { return "x", true }})
	if err := problems.Err(); err != nil {
		t.Fatalf("the config cannot be read:\n%v", err)
	}
	return cfg
}

func compiled(t testing.TB, text string) *Plan {
	t.Helper()
	p, problems := Compile(parsed(t, text))
	if err := problems.Err(); err != nil {
		t.Fatalf("the config does not compile:\n%v", err)
	}
	return p
}

// events splits a body as a source does.
func events(t testing.TB, p *Plan, src, body string) []*event.Event {
	t.Helper()
	d := &event.Delivery{Position: 7, Source: src, Body: []byte(body), Received: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	split, err := p.Source(src).Events(d)
	if err != nil {
		t.Fatal(err)
	}
	if len(split.Faults) > 0 {
		t.Fatalf("faults: %v", split.Faults)
	}
	return split.Events
}

// lines renders an outcome, a line for each change and fault.
func lines(out Outcome) []string {
	var list []string
	for _, c := range out.Changes {
		var cells []string
		for i, cell := range c.Cells {
			if cell.Set {
				cells = append(cells, c.Table.Columns[i].Name+"="+cell.Value.String())
			}
		}
		line := fmt.Sprintf("%s %s: %s", c.Table.Name, c.Table.Show(c.Key), strings.Join(cells, " "))
		switch {
		case c.Replaces:
			line = fmt.Sprintf("%s all of %s", c.Table.Name, strings.Join(c.Key.Parts(), ", "))
		case c.Delete:
			line = fmt.Sprintf("%s %s: gone at %s", c.Table.Name, c.Table.Show(c.Key), c.DeletedAt)
		}
		if c.Version != "" {
			line += " @" + c.Version.Show()
		}
		if c.Occupant != nil {
			line += " of " + c.Occupant.ID
		}
		for _, p := range c.Parents {
			verb := "needs"
			if p.Wait {
				verb = fmt.Sprintf("waits %s for", p.For)
			}
			line += fmt.Sprintf(" %s %s %s", verb, p.Table.Name, p.Table.Show(p.Key))
		}
		for _, l := range c.Links {
			line += fmt.Sprintf(" %s→%s", l.Old, l.New)
		}
		if c.Identity != "" {
			line += " as " + c.Identity
		}
		list = append(list, line)
	}
	for _, f := range out.Faults {
		list = append(list, fmt.Sprintf("dead %s.%s: %s", f.Table, f.Column, f.Reason))
	}
	if out.Replaced > 0 {
		list = append(list, fmt.Sprintf("replaced %d", out.Replaced))
	}
	if out.Ignored > 0 {
		list = append(list, fmt.Sprintf("ignored %d", out.Ignored))
	}
	if !out.Wanted {
		list = append(list, "not wanted")
	}
	return list
}

// typesConfig is a table with a column of every type.
const typesConfig = head + `
tables:
  thing:
    key: {id: text}
    columns: {t: text, t5: text(5), b: bool, i: int, n: numeric, n2: "numeric(4,2)", f: float, ts: timestamp, d: date, u: uuid, j: json, y: bytes, a: "text[]"}
    versions: column
    events:
      - from: shop
        key: {id: event.id}
        set:
          t: event.?t
          t5: event.?t5
          b: event.?b
          i: event.?i
          n: event.?n
          n2: event.?n2
          f: event.?f
          ts: event.?ts
          d: event.?d
          u: event.?u
          j: event.?j
          y: event.?y
          a: event.?a
`

func TestValues(t *testing.T) {
	p := compiled(t, typesConfig)
	cases := []struct{ name, members, want string }{
		{"text", `"t":"Größe"`, `t=Größe`},
		{"a number into text keeps its digits", `"t":129.90`, `t=129.90`},
		{"a 64-bit number into text", `"t":9007199254740993`, `t=9007199254740993`},
		{"true into text", `"t":true`, `t=true`},
		{"an object into text", `"t":{}`, `dead thing.t: an object does not fit text`},
		{"null", `"t":null`, `t=NULL`},
		{"too long", `"t5":"123456"`, `dead thing.t5: 6 characters into text(5)`},
		{"bool", `"b":true`, `b=true`},
		{"a number into bool", `"b":1`, `dead thing.b: 1 does not fit bool`},
		{"int", `"i":9223372036854775807`, `i=9223372036854775807`},
		{"int as text", `"i":"12"`, `i=12`},
		{"int beyond 64 bits", `"i":9223372036854775808`, `dead thing.i: 9223372036854775808 does not fit int`},
		{"a fraction into int", `"i":1.5`, `dead thing.i: 1.5 does not fit int`},
		{"numeric", `"n":129.90`, `n=129.9`},
		{"big numeric", `"n":12345678901234567890123.000001`, `n=12345678901234567890123.000001`},
		{"numeric with scale", `"n2":12.345`, `dead thing.n2: 12.345 does not fit numeric(4,2)`},
		{"float", `"f":0.1`, `f=0.1`},
		{"a time with offset", `"ts":"2026-01-01T10:00:00.1234567+02:00"`, `ts=2026-01-01T08:00:00.123456Z`},
		{"a time in the source's zone", `"ts":"2026-07-01 10:00:00"`, `ts=2026-07-01T08:00:00.000000Z`},
		{"a number into timestamp", `"ts":1767225600`, `dead thing.ts: the number 1767225600 into timestamp: write timestamp(x) to read it as the time since 1970`},
		{"digits into timestamp", `"ts":"1767225600"`, `dead thing.ts: the text "1767225600" into timestamp: write timestamp(x) to read it as the time since 1970`},
		{"date", `"d":"2026-01-31"`, `d=2026-01-31`},
		{"a time into date", `"d":"2026-01-31T00:00:00Z"`, `dead thing.d: 2026-01-31T00:00:00Z does not fit date`},
		{"uuid", `"u":"0F8FAD5B-D9CB-469F-A165-70867728950E"`, `u=0f8fad5b-d9cb-469f-a165-70867728950e`},
		{"json keeps digits", `"j":{"b":1.10,"a":[9007199254740993]}`, `j={"a":[9007199254740993],"b":1.10}`},
		{"json of a text", `"j":"x"`, `j="x"`},
		{"list of texts", `"a":["x","y",5]`, `a=["x","y","5"]`},
		{"list of objects into text[]", `"a":[{}]`, `dead thing.a: an object does not fit into a list of texts`},
		{"NUL is replaced", `"t":"a\u0000b"`, "t=a\uFFFDb | replaced 1"},
		{"a lone surrogate is replaced", `"t":"a\ud800b"`, "t=a\uFFFDb | replaced 1"},
		{"invalid UTF-8 is replaced", "\"t\":\"a\xffb\"", "t=a\uFFFDb | replaced 1"},
		{"NUL in json is replaced", `"j":{"k":"a\u0000b","n":1.10}`, "j={\"k\":\"a\uFFFDb\",\"n\":1.10} | replaced 1"},
		{"NUL in a list is replaced", `"a":["a\u0000b","c"]`, "a=[\"a\uFFFDb\",\"c\"] | replaced 1"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			e := events(t, p, "shop", `{"id":"x","at":"2026-01-01T00:00:00Z",`+tc.members+`}`)[0]
			want := tc.want
			if !strings.HasPrefix(want, "dead") {
				value, rest, _ := strings.Cut(want, " | ")
				want = "thing id=x: " + value + " @2026-01-01T00:00:00Z"
				if rest != "" {
					want += " | " + rest
				}
			}
			if got := strings.Join(lines(p.Map(e, "db")), " | "); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestBadTextDead(t *testing.T) {
	p := compiled(t, strings.Replace(typesConfig, "zone: Europe/Berlin", "bad_text: dead", 1))
	for _, members := range []string{`"t":"a\u0000b"`, `"t":"a\ud800b"`, `"j":["a\u0000b"]`, `"a":["a\u0000b"]`} {
		e := events(t, p, "shop", `{"id":"x","at":"2026-01-01T00:00:00Z",`+members+`}`)[0]
		out := p.Map(e, "db")
		if len(out.Faults) != 1 || !strings.Contains(out.Faults[0].Reason, "bad_text: dead") || out.Replaced != 0 {
			t.Errorf("%s: %v", members, lines(out))
		}
	}
}

// TestMap maps one event under one table's config.
func TestMap(t *testing.T) {
	cases := []struct{ name, tables, body, want string }{
		{"key only", `{user: {key: {id: text}, columns: {}, events: [{from: shop, key: {id: event.u}}]}}`,
			`{"u":"u1"}`, `user id=u1: `},
		{"a number and its text are one key", `{user: {key: {id: text}, columns: {}, events: [{from: shop, key: {id: event.u}}]}}`,
			`{"u":1001}`, `user id=1001: `},
		{"key is null", `{user: {key: {id: text}, columns: {}, events: [{from: shop, key: {id: event.u}}]}}`,
			`{"u":null}`, `dead user.: key id is null (event.u). Events without a key belong in a when:.`},
		{"key is absent", `{user: {key: {id: text}, columns: {}, events: [{from: shop, key: {id: "event.?u"}}]}}`,
			`{}`, `dead user.: key id is null (event.?u). Events without a key belong in a when:.`},
		{"key is missing", `{user: {key: {id: text}, columns: {}, events: [{from: shop, key: {id: event.u}}]}}`,
			`{}`, `dead user.id: no such field: event has no u`},
		{"when is false", `{user: {key: {id: text}, columns: {}, events: [{from: shop, when: present(event.u), key: {id: event.u}}]}}`,
			`{}`, `not wanted`},
		{"when fails", `{user: {key: {id: text}, columns: {}, events: [{from: shop, when: event.x == 1, key: {id: event.u}}]}}`,
			`{}`, `dead user.: when: no such field: event has no x`},
		{"another type", `{user: {key: {id: text}, columns: {}, events: [{from: shop, type: "a.*", key: {id: event.u}}]}}`,
			`{"type":"b","u":"1"}`, `not wanted`},
		{"the default version is the time", `{t: {key: {id: text}, columns: {a: text}, events: [{from: shop, key: {id: event.u}, set: {a: event.a}}]}}`,
			`{"u":"1","a":"x","at":"2026-01-01T00:00:00Z"}`, `t id=1: a=x @2026-01-01T00:00:00Z`},
		{"F15 no time is never receipt", `{t: {key: {id: text}, columns: {a: text}, events: [{from: shop, key: {id: event.u}, set: {a: event.a}}]}}`,
			`{"u":"1","a":"x"}`, `dead t.: version[0]: the event has no time`},
		{"a time that cannot be read", `{t: {key: {id: text}, columns: {a: text}, events: [{from: shop, key: {id: event.u}, set: {a: event.a}}]}}`,
			`{"u":"1","a":"x","at":"soon"}`, `dead t.: version[0]: the event's time cannot be read: event.at: "soon" is not a time Hookfold can read (ISO 8601, or seconds or milliseconds since 1970)`},
		{"a table without latest has no version", `{t: {key: {id: text}, columns: {a: {type: int, merge: max}}, events: [{from: shop, key: {id: event.u}, set: {a: event.a}}]}}`,
			`{"u":"1","a":5}`, `t id=1: a=5`},
		{"versions of times and numbers", `{t: {key: {id: text}, columns: {a: text}, events: [{from: shop, key: {id: event.u}, version: [event.at, event.n, 'rank(type, ["x", "y*"])'], set: {a: event.a}}]}}`,
			`{"u":"1","a":"x","type":"yy","at":"2026-01-01 01:00:00","n":-5}`, `t id=1: a=x @2026-01-01T00:00:00Z/-5/2`},
		{"a NULL component", `{t: {key: {id: text}, columns: {a: text}, events: [{from: shop, key: {id: event.u}, version: ["timestamp(event.n)"], set: {a: event.a}}]}}`,
			`{"u":"1","a":"x","n":null}`, `t id=1: a=x @null`},
		{"a fraction in a version", `{t: {key: {id: text}, columns: {a: text}, events: [{from: shop, key: {id: event.u}, version: [event.n], set: {a: event.a}}]}}`,
			`{"u":"1","a":"x","n":1.5}`, `dead t.: version[0]: the number 1.5 is not a whole number of 64 bits`},
		{"digits as text in a version", `{t: {key: {id: text}, columns: {a: text}, events: [{from: shop, key: {id: event.u}, version: [event.n], set: {a: event.a}}]}}`,
			`{"u":"1","a":"x","n":"15"}`, `dead t.: version[0]: the text "15": a text in a version must be a time. Write timestamp(…) or int(…) around it.`},
		{"an unknown rank", `{t: {key: {id: text}, columns: {a: text}, events: [{from: shop, key: {id: event.u}, version: ['rank(type, ["x"])'], set: {a: event.a}}]}}`,
			`{"u":"1","a":"x","type":"z"}`, `dead t.: version[0]: rank: the text "z" is not in the list`},
		{"position", `{t: {key: {id: text}, columns: {a: text}, events: [{from: shop, key: {id: event.u}, version: [position], set: {a: event.a}}]}}`,
			`{"u":"1","a":"x"}`, `t id=1: a=x @7/0`},
		{"F21 an unknown rung", `{t: {key: {id: text}, columns: {a: {type: text, merge: {ladder: [x, y]}}}, events: [{from: shop, key: {id: event.u}, set: {a: event.a}}]}}`,
			`{"u":"1","a":"z"}`, `dead t.a: "z" is not a rung of the ladder [x y]. Add it where it belongs, or say unknown: ignore.`},
		{"F21 an unknown rung is ignored", `{t: {key: {id: text}, columns: {a: {type: text, merge: {ladder: [x, y], unknown: ignore}}}, events: [{from: shop, key: {id: event.u}, set: {a: event.a}}]}}`,
			`{"u":"1","a":"z"}`, `t id=1:  | ignored 1`},
		{"unset says nothing", `{t: {key: {id: text}, columns: {a: {type: int, merge: max}}, events: [{from: shop, key: {id: event.u}, set: {a: 'type == "x" ? 1 : unset'}}]}}`,
			`{"u":"1","type":"y"}`, `t id=1: `},
		{"F26 an absent optional in row is NULL", `{t: {key: {id: text}, columns: {a: text}, events: [{from: shop, key: {id: event.u}, set: {a: "event.?a"}}]}}`,
			`{"u":"1","at":"2026-01-01T00:00:00Z"}`, `t id=1: a=NULL @2026-01-01T00:00:00Z`},
		{"an absent optional in its own scope says nothing", `{t: {key: {id: text}, columns: {a: {type: text, scope: a}}, events: [{from: shop, key: {id: event.u}, set: {a: "event.?a"}}]}}`,
			`{"u":"1","at":"2026-01-01T00:00:00Z"}`, `t id=1:  @2026-01-01T00:00:00Z`},
		{"star takes members", `{t: {key: {id: text}, columns: {a: text, b: int}, events: [{from: shop, key: {id: event.u}, set: {"*": event, a: '"fixed"'}}]}}`,
			`{"u":"1","a":"x","b":5,"at":"2026-01-01T00:00:00Z"}`, `t id=1: a=fixed b=5 @2026-01-01T00:00:00Z`},
		{"star lacks a member in row", `{t: {key: {id: text}, columns: {a: text, b: int}, events: [{from: shop, key: {id: event.u}, set: {"*": event}}]}}`,
			`{"u":"1","a":"x","at":"2026-01-01T00:00:00Z"}`, `dead t.b: no such field: event has no b`},
		{"star lacks a member in its own scope", `{t: {key: {id: text}, columns: {a: text, b: int}, versions: column, events: [{from: shop, key: {id: event.u}, set: {"*": event}}]}}`,
			`{"u":"1","a":"x","at":"2026-01-01T00:00:00Z"}`, `t id=1: a=x @2026-01-01T00:00:00Z`},
		{"parents", `{user: {key: {id: int}, columns: {}}, t: {key: {id: text}, columns: {u: {type: int, references: user, missing: ensure}}, events: [{from: shop, key: {id: event.id}, set: {u: event.u}}]}}`,
			`{"id":"p","u":17,"at":"2026-01-01T00:00:00Z"}`, `t id=p: u=17 @2026-01-01T00:00:00Z needs user id=17`},
		{"NULL is no parent", `{user: {key: {id: int}, columns: {}}, t: {key: {id: text}, columns: {u: {type: int, references: user, missing: ensure}}, events: [{from: shop, key: {id: event.id}, set: {u: event.u}}]}}`,
			`{"id":"p","u":null,"at":"2026-01-01T00:00:00Z"}`, `t id=p: u=NULL @2026-01-01T00:00:00Z`},
		{"F25 too far ahead", `{t: {key: {id: text}, columns: {a: text}, events: [{from: shop, key: {id: event.u}, set: {a: event.a}}]}}`,
			`{"u":"1","a":"x","at":"2026-03-02T00:00:01Z"}`, `dead t.: its time 2026-03-02T00:00:01Z is 24h0m1s ahead of its receipt, more than max_ahead (24h0m0s): it would shut out every later event. Is the sender's clock right?`},
		{"one fault leaves the other change", `{a: {key: {id: int}, columns: {}, events: [{from: shop, key: {id: event.x}}]}, b: {key: {id: text}, columns: {}, events: [{from: shop, key: {id: event.u}}]}}`,
			`{"u":"1","x":"no"}`, `b id=1:  | dead a.id: no does not fit int`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p := compiled(t, head+"tables: "+tc.tables+"\n")
			e := events(t, p, "shop", tc.body)[0]
			if got := strings.Join(lines(p.Map(e, "db")), " | "); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if again := strings.Join(lines(p.Map(e, "db")), " | "); again != tc.want {
				t.Errorf("the second time %s", again)
			}
		})
	}
}

// TestF6HashOverWhatCanBeRead: the hash is over the event and the mapping, not
// over what an expression says.
func TestF6HashOverWhatCanBeRead(t *testing.T) {
	version := func(columns, set, body string) merge.Version {
		p := compiled(t, head+fmt.Sprintf("tables:\n  t:\n    key: {id: text}\n    columns: {%s}\n    events:\n    - from: shop\n      key: {id: event.u}\n      set:\n        %s\n", columns, strings.ReplaceAll(set, ", ", "\n        ")))
		out := p.Map(events(t, p, "shop", body)[0], "db")
		if len(out.Changes) != 1 {
			t.Fatal(lines(out))
		}
		return out.Changes[0].Version
	}
	body := `{"u":"1","a":"x","b":"y","at":"2026-01-01T00:00:00Z"}`
	one := version("a: text", "a: event.a", body)
	if two := version("a: text, b: text", "a: upper(event.a), b: 'type == \"x\" ? event.b : id'", body); two != one {
		t.Errorf("a column more changes the version: %s, %s", one, two)
	}
	if other := version("a: text", "a: event.a", strings.Replace(body, `"b":"y"`, `"b":"z"`, 1)); other == one {
		t.Error("another event has the same version")
	}
}

func TestRanksAndTargets(t *testing.T) {
	p := compiled(t, head+`
tables:
  line: {key: {id: text}, columns: {p: {type: text, references: payment, missing: ensure}}, events: [{from: shop, key: {id: event.id}, set: {p: event.p}}]}
  payment: {key: {id: text}, columns: {u: {type: text, references: user, missing: ensure}}, events: [{from: shop, key: {id: event.id}, set: {u: event.u}}]}
  user: {name: public.users, key: {id: text}, columns: {}}
  alone: {key: {id: text}, columns: {}}
`)
	var got []string
	for _, x := range p.Tables {
		got = append(got, fmt.Sprintf("%d %s %s %s", x.Rank, x.Config.Text, x.Name, x.Target))
	}
	want := []string{"0 alone alone db", "0 user public.users db", "1 payment payment db", "2 line line db"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"db"}, p.Targets()); d != "" {
		t.Error(d)
	}
}

// TestF14NoIdentity: a counter needs to know an event again.
func TestF14NoIdentity(t *testing.T) {
	_, problems := Compile(parsed(t, head+"tables: {t: {key: {id: text}, columns: {n: {type: int, merge: count}}, events: [{from: whatsapp, key: {id: event.from}, set: {n: true}}]}}\n"))
	want := "tables.t.events[0].set.n: count takes each event once, and events of whatsapp have no identity to know a second delivery by. Give sources.whatsapp an id:, what tells one event from every other."
	if err := problems.Err(); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

// TestProblems: what is known to be wrong without an event.
func TestProblems(t *testing.T) {
	cases := []struct{ name, columns, mapping, want string }{
		{"a number into timestamp", "a: timestamp", "set: {a: 5}", "tables.t.events[0].set.a: gives a number, which does not fit timestamp. Write timestamp(…) around it."},
		{"a comparison into int", "a: int", "set: {a: event.x == 1}", "tables.t.events[0].set.a: gives true or false, which does not fit int."},
		{"a time into date", "a: date", "set: {a: time}", "tables.t.events[0].set.a: gives a time, which does not fit date. Say which day, as in string(time).substring(0, 10)."},
		{"a literal that does not fit", "a: text(3)", `set: {a: '"abcd"'}`, "tables.t.events[0].set.a: 4 characters into text(3)"},
		{"a literal that is no rung", "a: {type: text, merge: {ladder: [x, y]}}", `set: {a: '"z"'}`, "tables.t.events[0].set.a: \"z\" is not a rung of the ladder [x y]."},
		{"a constant that cannot be computed", "a: numeric", "set: {a: 1 / 3}", "tables.t.events[0].set.a: a number without an end as a decimal: round it, as in round(x / 3, 2)"},
		{"when is a text", "a: int", `when: '"x"', set: {a: 1}`, "tables.t.events[0].when: gives text, and has to be true or false"},
		{"when may be absent", "a: int", `when: "event.?x", set: {a: 1}`, "tables.t.events[0].when: may be absent, and has to be true or false. Write .orValue(false) after it."},
		{"unset in a version", "a: int", `version: ['type == "a" ? time : unset'], set: {a: 1}`, "tables.t.events[0].version[0]: unset is not allowed in a version"},
		{"a version of a list", "a: int", `version: ["[1]"], set: {a: 1}`, "tables.t.events[0].version[0]: is a list; a version is made of times and whole numbers"},
		{"an unknown name", "a: int", "set: {a: evnt.x}", "tables.t.events[0].set.a: `evnt` is not a name Hookfold knows. Did you mean event? For the text evnt write '\"evnt\"'."},
		{"a fetch without one", "a: int", "set: {a: fetched.x}", "tables.t.events[0].set.a: fetched is not known here: it is of a mapping's fetch:, and there is none"},
		{"an element without a list", "a: int", "set: {a: item.x}", "tables.t.events[0].set.a: item is not known here: it is of one element of a mapping's each:, and this expression is of none"},
		{"each is no list", "a: int", "each: type, set: {a: 1}", "tables.t.events[0].each: gives text, and has to be a list"},
		{"NULL fits", "a: int", "set: {a: null}", ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, problems := Compile(parsed(t, head+fmt.Sprintf("tables: {t: {key: {id: text}, columns: {%s}, events: [{from: shop, key: {id: event.id}, %s}]}}\n", tc.columns, tc.mapping)))
			got := ""
			for _, p := range problems.List {
				got += p.Path + ": " + p.Text
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestF23NoRowColumnNoRowVersion: a change that feeds no column of scope row
// leaves the row's version alone.
func TestF23NoRowColumnNoRowVersion(t *testing.T) {
	p := compiled(t, head+`
tables:
  t:
    key: {id: text}
    columns: {a: text, b: {type: text, scope: b}, c: {type: int, merge: max}}
    events:
      - {from: shop, type: b, key: {id: event.u}, set: {b: event.b}}
      - {from: shop, type: c, key: {id: event.u}, set: {c: event.c}}
`)
	table := p.Table("t").Table.Table
	for _, body := range []string{`{"type":"b","u":"1","b":"x","at":"2026-01-01T00:00:00Z"}`, `{"type":"c","u":"1","c":5}`} {
		out := p.Map(events(t, p, "shop", body)[0], "db")
		if len(out.Changes) != 1 {
			t.Fatal(lines(out))
		}
		if row := merge.Lift(out.Changes[0])[0]; row.Scopes[0] != "" || table.Scopes()[0] != merge.RowScope {
			t.Errorf("%s moves the row's version to %s", body, row.Scopes[0])
		}
	}
}
