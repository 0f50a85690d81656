package config

import (
	"strings"
	"testing"
)

func TestDigest(t *testing.T) {
	const text = `
version: 1
sources:
  shop: {preset: http, verify: bearer, secrets: ["${SECRET}"], zone: Europe/Berlin, id: event.id, type: event.type, time: event.at}
targets: {db: {url: "sqlite:rows.db"}}
tables:
  payment:
    key: {id: text}
    on_delete: {set: {gone: true}}
    columns: {amount: numeric, status: {type: text, merge: {ladder: [open, paid]}}}
    events: [{from: shop, key: {id: event.id}, set: {amount: event.amount, status: event.status}}, {from: shop, type: gone, key: {id: event.id}, delete: true}]
`
	of := func(text, secret string) uint64 {
		t.Helper()
		c, problems := Parse("x.yaml", []byte(text), Options{Env: func(string) (string, bool) { return secret, true }})
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		return Digest(c.Sources, c.Tables)
	}
	want := of(text, "a")
	if of(text, "b") != want || of("# moved\n"+text, "a") != want || of(text, "a") != want {
		t.Error("the digest depends on a secret, or on where things stand")
	}
	for _, x := range [][2]string{
		{"key: {id: event.id}, set", "key: {id: event.ref}, set"}, {"[open, paid]", "[paid, open]"}, {"payment:", "payments:"},
		{"gone: true", "gone: false"}, {"Europe/Berlin", "Europe/Paris"}, {"amount: numeric", "amount: text"}, {"type: gone", "type: went"},
	} {
		if of(strings.Replace(text, x[0], x[1], 1), "a") == want {
			t.Errorf("the digest does not tell %q from %q", x[1], x[0])
		}
	}
}
