package expr

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"cel.dev/cel-go/common/types/ref"

	"github.com/hookfold/hookfold/event"
)

const sample = `{
  "id": 9007199254740993, "code": "1001", "number": 1001, "price": 129.90, "big": 12345678901234567890123,
  "at": "2026-01-01T10:00:00+02:00", "local": "2026-06-01 12:00:00", "epoch": 1767225600, "millis": 1767225600123,
  "none": null, "yes": true, "text": "Größe", "user-id": "u7",
  "nested": {"a": {"b": "deep"}, "list": [1, 2, 3]},
  "errors": [{"code": 131026, "title": "undeliverable"}],
  "tags": ["b", "a"], "prices": [2.50, 1, 0.5, 1.0], "embedded": "{\"x\": [1, 2.50]}", "lines": [{"sku": "s1", "cents": 1999}, {"sku": "s2", "cents": 501}]
}`

func input(t testing.TB) *Input {
	t.Helper()
	body, err := event.ParseJSON([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC)
	d := &event.Delivery{
		Position: 42, Source: "shop", Path: "/eu", Query: "a=1&b=x%20y", Body: []byte(sample), Received: at,
		Header: http.Header{"X-Tenant": {"acme"}},
	}
	in := &Input{}
	in.Reset(&event.Event{Delivery: d, ID: "evt_1", Type: "payment.made", Time: at, Body: body, Envelope: body}, time.UTC)
	return in
}

func compiler(t testing.TB) *Compiler {
	t.Helper()
	c, err := NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func show(v ref.Val) string { return describe(v) }

// TestValues evaluates expressions: each has the value that is written, or an
// error that holds what is written after "error:".
func TestValues(t *testing.T) {
	cases := []struct{ expr, want string }{
		// names and paths
		{`event.code`, `the text "1001"`},
		{`event.nested.a.b`, `the text "deep"`},
		{`event["user-id"]`, `the text "u7"`},
		{"event.`user-id`", `the text "u7"`},
		{`event.errors[0].code`, `the number 131026`},
		{`event.nested.list[1]`, `the number 2`},
		{`event.nested.list[size(event.nested.list) - 1]`, `the number 3`},
		{`type`, `the text "payment.made"`},
		{`id`, `the text "evt_1"`},
		{`time`, `the time 2026-01-01T08:00:00Z`},
		{`received`, `the time 2026-01-01T08:00:00Z`},
		{`source + path`, `the text "shop/eu"`},
		{`position`, `the number 42`},
		{`headers["x-tenant"]`, `the text "acme"`},
		{`headers["X-TENANT"]`, `the text "acme"`},
		{`present(headers["x-other"])`, `false`},
		{`query.b`, `the text "x y"`},
		{`body.code`, `the text "1001"`},
		{`envelope.code`, `the text "1001"`},
		{`size(raw) > 100`, `true`},
		{`event.nested`, `an object`},
		{`event.none`, `null`},
		// what is missing
		{`event.nope`, `error: no such field: event has no nope`},
		{`event.nested.a.c.d`, `error: no such field: event.nested.a has no c`},
		{`event.code.x`, `error: no such field: event.code is text, and has no x`},
		{`event.none.x`, `error: no such field: event.none is null, and has no x`},
		{`event.errors[3]`, `error: no such field: event.errors has 1 elements, and no [3]`},
		{`event.errors.code`, `error: say which element, event.errors[0].code`},
		{`lower(event.nope)`, `error: no such field: event has no nope`},
		{`json(event.embedded).y`, `error: no such field: y`},
		{`headers["x-other"]`, `error: no such field: headers has no x-other`},
		// nothing
		{`event.?nope`, `nothing (an optional that is not there)`},
		{`event.?nope.x.y`, `nothing (an optional that is not there)`},
		{`event.?none.x`, `nothing (an optional that is not there)`},
		{`event.?none`, `null`},
		{`event.?errors[0].?code`, `the number 131026`},
		{`event.nope.?x`, `error: no such field: event has no nope`},
		{`event.?nope.orValue("else")`, `the text "else"`},
		{`unset`, `unset`},
		{`type == "payment.made" ? time : unset`, `the time 2026-01-01T08:00:00Z`},
		{`type == "other" ? time : unset`, `unset`},
		{`type == "other" ? "x" : event.?nope`, `nothing (an optional that is not there)`},
		{`type == "other" ? 1 : type == "more" ? unset : event.?code`, `the text "1001"`},
		{`present(event.code)`, `true`},
		{`present(event.none)`, `false`},
		{`present(event.a.b.c)`, `false`},
		{`present(event.code.b)`, `false`},
		{`present(event.?nope)`, `false`},
		{`present(json(event.embedded).y)`, `false`},
		{`present(time)`, `true`},
		{`has(event.none)`, `true`},
		{`coalesce(event.nope, event.none, event.code)`, `the text "1001"`},
		{`coalesce(event.nope, lower(event.nope2), "x")`, `the text "x"`},
		{`coalesce(event.nope, event.none)`, `null`},
		{`coalesce(event.nope, event.nope2)`, `error: event has no nope2`},
		{`coalesce(event.?nope, 5)`, `the number 5`},
		{`coalesce(event.?code, 5)`, `the text "1001"`},
		{`coalesce(timestamp(event.code + "x"), 5)`, `error: is not a time`},
		// numbers
		{`1999 / 100 == 19.99`, `true`},
		{`1999 / 100`, `the number 19.99`},
		{`event.id`, `the number 9007199254740993`},
		{`event.id == 9007199254740993`, `true`},
		{`event.id == 9007199254740992.0`, `false`},
		{`event.id + 1`, `the number 9007199254740994`},
		{`event.price`, `the number 129.90`},
		{`event.price == 129.9`, `true`},
		{`event.price * 3`, `the number 389.7`},
		{`0.1 + 0.2 == 0.3`, `true`},
		{`event.big`, `the number 12345678901234567890123`},
		{`event.big + 1`, `the number 12345678901234567890124`},
		{`9223372036854775807 + 1`, `the number 9223372036854775808`},
		{`1 / 3`, `the number 1/3`}, // an error where it is written
		{`1 / 3 * 3 == 1`, `true`},
		{`string(1 / 3)`, `error: round it`},
		{`round(1 / 3, 2)`, `the number 0.33`},
		{`round(2.5, 0)`, `the number 3`},
		{`round(-2.5)`, `the number -3`},
		{`round(1250, -2)`, `the number 1300`},
		{`1 / 0`, `error: division by zero`},
		{`7 % 3`, `the number 1`},
		{`-event.price`, `the number -129.9`},
		{`-19.99`, `the number -19.99`},
		{`1.00000000000000000000000001 == 1.0`, `false`},
		{`event.price > 100 && event.price < 129.91`, `true`},
		{`5u == 5`, `true`},
		{`string(event.price)`, `the text "129.90"`},
		{`double("12.50") + 1`, `the number 13.5`},
		{`int("12") + int(1.9)`, `the number 13`},
		{`1e300 > 1.0`, `true`},
		// unlike kinds
		{`event.number == "1001"`, `error: cannot compare the number 1001 with the text "1001"`},
		{`event.code == event.number`, `error: cannot compare the text "1001" with the number 1001`},
		{`event.number != "1001"`, `error: cannot compare the number 1001 with the text "1001"`},
		{`event.at == time`, `error: cannot compare the text "2026-01-01T10:00:00+02:00" with the time 2026-01-01T08:00:00Z. Write timestamp(…)`},
		{`event.at < time`, `error: Write timestamp(…)`},
		{`timestamp(event.at) == time`, `true`},
		{`event.number in ["1001"]`, `error: cannot compare the number 1001`},
		{`event.code in ["1", "1001"]`, `true`},
		{`event.code in ["1"]`, `false`},
		{`"a" in event.tags`, `true`},
		{`"code" in event`, `true`},
		{`event.none == "x"`, `false`},
		{`event.none == null`, `true`},
		{`event.code + event.number`, `error: cannot add the text "1001" with the number 1001`},
		{`event.tags == ["b", "a"]`, `true`},
		{`event.errors[0] == {"code": 131026, "title": "undeliverable"}`, `true`},
		// times
		{`timestamp(event.epoch)`, `the time 2026-01-01T00:00:00Z`},
		{`timestamp(event.millis)`, `the time 2026-01-01T00:00:00.123Z`},
		{`timestamp(string(event.epoch))`, `the time 2026-01-01T00:00:00Z`},
		{`timestamp(event.local)`, `the time 2026-06-01T12:00:00Z`},
		{`timestamp(event.local, "Europe/Berlin")`, `the time 2026-06-01T10:00:00Z`},
		{`timestamp(event.local, event.code)`, `error: not a time zone`},
		{`timestamp(event.code + "x")`, `error: is not a time Hookfold can read`},
		{`timestamp(event.none)`, `null`},
		{`timestamp(event.?nope)`, `nothing (an optional that is not there)`},
		{`timestamp(event.?at)`, `the time 2026-01-01T08:00:00Z`},
		{`time + duration("90m")`, `the time 2026-01-01T09:30:00Z`},
		{`time.getFullYear()`, `the number 2026`},
		{`string(time)`, `the text "2026-01-01T08:00:00Z"`},
		{`int(time)`, `the number 1767254400`},
		// functions
		{`rank(type, ["payment.*", "x"])`, `the number 1`},
		{`rank(event.code, ["a", "1001"])`, `the number 2`},
		{`rank(event.code, ["a"])`, `error: rank: the text "1001" is not in the list`},
		{`json(event.embedded).x[1]`, `the number 2.50`},
		{`json(event.code + "{")`, `error: not one JSON document`},
		{`upper(event.text)`, `the text "GRÖßE"`},
		{`lower(event.none)`, `null`},
		{`sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"`, `true`},
		{`event.code.startsWith("10") && type.matches("^payment\\.")`, `true`},
		{`event.text.substring(0, 2)`, `the text "Gr"`},
		{`event.tags.join("|")`, `the text "b|a"`},
		{`event.tags.sort()[0]`, `the text "a"`},
		{`regex.extract(event.at, "^(\\d+)-").orValue("")`, `the text "2026"`},
		{`regex.extract(event.at, "^(X)")`, `nothing (an optional that is not there)`},
		{`"%s-%d".format([event.code, 5])`, `the text "1001-5"`},
		// macros
		{`event.lines.map(l, l.cents / 100)[0]`, `the number 19.99`},
		{`event.lines.filter(l, l.cents > 1000).size()`, `the number 1`},
		{`event.lines.exists(l, l.sku == "s2")`, `true`},
		{`event.lines.all(l, present(l.sku))`, `true`},
		{`event.lines.exists(l, present(l.nope))`, `false`},
		{`event.lines.map(id, id.sku).join(",")`, `the text "s1,s2"`},
		{`event.lines.map(l, l.nope)`, `error: no such field: nope`},
		{`event.?code.optMap(c, c + "!")`, `the text "1001!"`},
		{`event.lines.map(l, type + l.sku)[1]`, `the text "payment.mades2"`},
		{`event.lines.sortBy(l, l.cents)[0].sku`, `the text "s2"`},
		{`event.prices.sort()[0]`, `the number 0.5`},
		{`event.prices.sort() == [0.5, 1, 1.0, 2.50]`, `true`},
		{`event.prices.distinct().size()`, `the number 3`},
		{`[1, "a"].sort()`, `error: cannot compare`},
		{`"%s %.1f".format([event.price, event.price])`, `the text "129.90 129.9"`},
		{`"%.2f".format([event.big + 0.5])`, `error: format would round`},
		{`event.nested.size()`, `the number 2`},
		{`event.nested.map(k, k).join(",")`, `the text "a,list"`},
		{`event.nested.exists(k, size(event.nested[k]) == 3)`, `true`},
		{`time - timestamp(event.epoch) == duration("8h")`, `true`},
		{`event.lines.map(l, l.?nope.orValue(0))[0]`, `the number 0`},
		{`event.lines[0].?nope`, `nothing (an optional that is not there)`},
		{`event.?lines[0].sku`, `the text "s1"`},
		{`[event.?nope, event.?code].size()`, `the number 2`},
		{`[?event.?nope, ?event.?code].size()`, `the number 1`},
		{`event.code.contains("0") ? {"a": event.price} : null`, `an object`},
		// booleans
		{`!event.yes`, `false`},
		{`event.yes && event.code`, `error: cannot be used there`},
		{`event.nope == 1 || true`, `true`},
	}
	c, in := compiler(t), input(t)
	for _, tc := range cases {
		t.Run(tc.expr, func(t *testing.T) {
			p, problems := c.Compile(tc.expr, ForMapping)
			if len(problems) > 0 {
				t.Fatalf("does not compile: %v", problems)
			}
			v, err := p.Eval(in)
			want, isError := strings.CutPrefix(tc.want, "error: ")
			switch {
			case isError && err == nil:
				t.Errorf("gives %s, want an error with %q", show(v), want)
			case isError && !strings.Contains(err.Error(), want):
				t.Errorf("error %q, want one with %q", err, want)
			case !isError && err != nil:
				t.Errorf("error %q, want %s", err, want)
			case !isError && show(v) != want:
				t.Errorf("gives %s, want %s", show(v), want)
			}
		})
	}
}

// TestProblems compiles expressions that are wrong: each has the problem at the
// place that is written.
func TestProblems(t *testing.T) {
	cases := []struct {
		expr   string
		column int
		want   string
	}{
		{`canceled`, 1, "`canceled` is not a name Hookfold knows. For the text canceled write '\"canceled\"'."},
		{`type == "a" ? canceled : "b"`, 15, "`canceled` is not a name"},
		{`evnt.id`, 1, "Did you mean event?"},
		{`item.sku`, 1, "item is not known here: it is of one element"},
		{`fetched.a`, 1, "fetched is not known here: it is of a mapping's fetch:, and there is none"},
		{`event.lines.map(l, l.sku + x)`, 28, "`x` is not a name"},
		{`lowr(event.a)`, 5, "lowr() is not a function Hookfold knows. Did you mean lower()?"},
		{`type.foo`, 1, "type is text and has no foo"},
		{`unset + 1`, 1, "unset can only be a whole value"},
		{`event.a == unset`, 12, "unset can only be a whole value"},
		{`event.?a == "x"`, 10, "compares an optional with a plain value"},
		{`"x" == event.?a`, 5, "compares an optional with a plain value"},
		{`event.?a == event.b`, 10, "compares an optional with a plain value"},
		{`1 == "1"`, 3, "`==` compares number with text, which are never equal. Write string(…) around the number"},
		{`time == "2026-01-01"`, 6, "Write timestamp(…)"},
		{`time > 5`, 6, "compares time with number"},
		{`"a" + 1`, 5, "`+` cannot be used with text and number"},
		{`event.a = 1`, 9, "To compare write =="},
		{`event.a +`, 10, "ends too early"},
		{``, 1, "empty expression"},
		{`rank(type)`, 5, "rank cannot be used with (text)"},
		{`timestamp(event.local, "Mars/North")`, 24, "not a time zone"},
		{`event.null`, 7, `Write ["null"] for a member of that name.`},
		{`Foo{a: 1}`, 4, "makes a message"},
	}
	c := compiler(t)
	for _, tc := range cases {
		t.Run(tc.expr, func(t *testing.T) {
			_, problems := c.Compile(tc.expr, ForMapping)
			if len(problems) == 0 {
				t.Fatalf("compiles, want the problem %q", tc.want)
			}
			if p := problems[0]; !strings.Contains(p.Text, tc.want) || p.Column != tc.column || p.Line != 1 {
				t.Errorf("%d:%d: %s\nwant 1:%d: %s", p.Line, p.Column, p.Text, tc.column, tc.want)
			}
		})
	}
}

// TestLoopsTwice evaluates a loop again: nothing of the first run may be left.
func TestLoopsTwice(t *testing.T) {
	p, problems := compiler(t).Compile(`event.lines.map(l, l.sku).filter(s, s != "").join(",")`, ForMapping)
	if problems != nil {
		t.Fatal(problems)
	}
	for range 3 {
		v, err := p.Eval(input(t))
		if err != nil || show(v) != `the text "s1,s2"` {
			t.Fatalf("gives %v, %v", v, err)
		}
	}
}

// TestBounds evaluates expressions that would take all memory or time.
func TestBounds(t *testing.T) {
	cases := []struct{ expr, want string }{
		{`lists.range(100000).map(i, lists.range(100000).map(j, i * j))`, "costs too much"},
		{`lists.range(1000000000)`, "at most 100000 elements"},
		{`string(raw).replace("", string(raw)).replace('"', string(raw) + string(raw) + string(raw) + string(raw))`, "bytes of text"},
		{`string(raw).replace("", string(raw) + string(raw) + string(raw) + string(raw)).replace("e", "f")`, "too long to be searched"},
		{`lists.range(6000).distinct()`, "too long to compare"},
		{`lists.range(20000).map(i, string(raw).replace("", string(raw)))`, ""},
		{`lists.range(100000).map(i, "x").join(string(raw))`, "bytes of text"},
	}
	c := compiler(t)
	for _, tc := range cases {
		t.Run(tc.expr, func(t *testing.T) {
			p, problems := c.Compile(tc.expr, ForMapping)
			if problems != nil {
				t.Fatal(problems)
			}
			_, err := p.Eval(input(t))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// TestStatic is what is known before anything is evaluated.
func TestStatic(t *testing.T) {
	cases := []struct {
		expr          string
		kind          Kind
		unset, absent bool
		reads         string
	}{
		{`time`, KindTime, false, false, "time"},
		{`event.a`, KindAny, false, false, "event"},
		{`event.?a`, KindAny, false, true, "event"},
		{`type == "a" ? 1 : 0`, KindNumber, false, false, "type"},
		{`type == "a" ? time : unset`, KindTime, true, false, "type, time, unset"},
		{`type == "a" ? event.?a : "x"`, KindAny, false, true, "event, type"},
		{`rank(type, ["a"])`, KindNumber, false, false, "type"},
		{`timestamp(event.a)`, KindTime, false, false, "event"},
		{`coalesce(event.?a, "x")`, KindAny, false, false, "event"},
		{`coalesce("x", event.?a)`, KindAny, false, true, "event"},
		{`"x"`, KindText, false, false, ""},
		{`19.99`, KindNumber, false, false, ""},
		{`null`, KindNull, false, false, ""},
		{`event.a.b > 5`, KindBool, false, false, "event"},
	}
	c := compiler(t)
	for _, tc := range cases {
		t.Run(tc.expr, func(t *testing.T) {
			p, problems := c.Compile(tc.expr, ForMapping)
			if problems != nil {
				t.Fatal(problems)
			}
			if p.Kind != tc.kind || p.MaybeUnset != tc.unset || p.MaybeAbsent != tc.absent || p.Reads.String() != tc.reads {
				t.Errorf("kind %q unset %v absent %v reads %s; want %q %v %v %s", p.Kind, p.MaybeUnset, p.MaybeAbsent, p.Reads, tc.kind, tc.unset, tc.absent, tc.reads)
			}
		})
	}
}

func BenchmarkEval(b *testing.B) {
	c := compiler(b)
	for _, text := range []string{
		`event.nested.a.b`, `type == "payment.made" ? "canceled" : "active"`, `type == "payment.made" ? time : unset`,
		`event.?errors[0].?code`, `present(event.nested.a)`, `event.price / 100`, `timestamp(event.at)`, `rank(type, ["payment.*", "x"])`,
	} {
		b.Run(text, func(b *testing.B) {
			p, problems := c.Compile(text, ForMapping)
			if problems != nil {
				b.Fatal(problems)
			}
			in := input(b)
			b.ReportAllocs()
			for b.Loop() {
				in.spent = 0 // as if it were another event
				if _, err := p.Eval(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
