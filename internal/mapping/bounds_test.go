package mapping

import (
	"strings"
	"testing"

	"github.com/hookfold/hookfold/event"
)

// What is small while an expression makes it may be large when it is written.
func TestWhatIsWrittenIsBounded(t *testing.T) {
	list := "[" + strings.TrimSuffix(strings.Repeat(`{"a":1},`, 10_000), ",") + "]"
	body := `{"k":"a","v":1,"o":` + list + `,"t":["` + strings.Repeat("t", 20_000) + `"]}`
	eight := "[x,x,x,x,x,x,x,x]"
	config := func(source, columns, rest string) string {
		return head + "  many: {preset: http, verify: none" + source + "}\ntables:\n  item:\n    key: {k: text}\n    columns: {" + columns + "}\n    events: [{from: many, version: 'event.?v.orValue(1)', " + rest + "}]\n"
	}
	for _, c := range []struct{ name, config, want string }{
		{"json", config("", "p: json", "key: {k: event.k}, set: {p: 'event.o.map(x, event.o)'}"), "32 MiB"},
		{"nested", config("", "p: json", "key: {k: event.k}, set: {p: '[event.o].map(x, "+eight+").map(x, "+eight+").map(x, "+eight+")'}"), "32 MiB"},
		{"texts", config("", "p: 'text[]'", "key: {k: event.k}, set: {p: 'event.o.map(x, event.t[0])'}"), "32 MiB"},
		{"each", config("", "p: text", "each: 'event.o.map(x, [event.o])', key: {k: string(index)}, set: {p: event.k}"), "32 MiB of elements"},
		{"split", config(", split: 'body.o.map(x, [body.o])'", "p: text", "key: {k: string(position)}, set: {p: '\"a\"'}"), "32 MiB of them"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := compiled(t, c.config)
			split, err := p.Source("many").Events(&event.Delivery{Source: "many", Position: 1, Body: []byte(body)})
			reason := ""
			if err != nil {
				reason = err.Error()
			} else if out := p.Map(split.Events[0], "db"); len(out.Faults) > 0 {
				reason = out.Faults[len(out.Faults)-1].Reason
			}
			if !strings.Contains(reason, c.want) {
				t.Errorf("%q, want %q", reason, c.want)
			}
		})
	}
}
