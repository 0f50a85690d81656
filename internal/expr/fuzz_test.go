package expr

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
)

// FuzzEval compiles any text and evaluates it over any body: neither panics, and
// both end soon.
func FuzzEval(f *testing.F) {
	for _, text := range []string{
		`event.a.b[0]["c"]`, `event.?a.?b[?0].orValue("x")`, `type == "a" ? time : unset`, `coalesce(event.a, event.?b, 1)`,
		`round(event.n / 3, 2) * 1.05`, `timestamp(event.at, "Europe/Berlin") + duration("1h")`, `rank(type, ["a*", "b"])`,
		`event.l.map(x, x.a).filter(y, present(y)).join(",")`, `json(event.s).a`, `lower(event.s).replace("a", "bb").split("")`,
		`"%s %d %f %x".format([event.s, event.n, event.n, event.n])`, `event.l.sortBy(x, x.a)[0]`, `sha256(raw)`, `headers["a"] + query.b`,
		`lists.range(10).map(i, i * i)`, `event.l.exists(x, x == event.n)`, `{"a": event.a}["a"]`, `regex.replace(event.s, "(a+)+$", "b")`,
		`event.?a.optMap(v, v + 1).orValue(5)`, `dyn(event) == event`, `event.l.flatten().distinct().sort()`, `-event.n % 7`, `bytes(event.s)`,
		`has(event.a.b)`, `1e300 * 1e300`, `event.n in event.l`, `duration(event.s)`, `"a".substring(event.n)`, `event.l.slice(0, 1)`,
	} {
		f.Add(text, []byte(`{"a":{"b":[{"c":1}]},"n":12.50,"at":"2026-01-01 00:00:00","l":[{"a":"x"},{"a":"y"}],"s":"{\"a\":[1]}"}`))
	}
	c := compiler(f)
	f.Fuzz(func(t *testing.T, text string, body []byte) {
		start := time.Now()
		p, problems := c.Compile(text, ForMapping)
		if (p == nil) == (len(problems) == 0) {
			t.Fatalf("program %v, problems %v", p, problems)
		}
		if p == nil {
			return
		}
		j, err := event.ParseJSON(body)
		if err != nil {
			return
		}
		d := &event.Delivery{Body: body, Header: http.Header{"A": {"b"}}, Query: "b=1"}
		in := &Input{}
		in.Reset(&event.Event{Delivery: d, Type: "a", Body: j, Envelope: j}, time.UTC)
		v, err := p.Eval(in)
		if (v == nil) == (err == nil) {
			t.Fatalf("%s gives %v, %v", text, v, err)
		}
		if err != nil && strings.Contains(err.Error(), "internal error") {
			t.Fatalf("%s panics: %v", text, err)
		}
		if err == nil {
			Describe(v)
			_, _ = Text(v)
		}
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("%q took %s", text, took)
		}
	})
}
