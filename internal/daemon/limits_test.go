package daemon_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/mapping"
)

const limited = `version: 1
sources:
  shop: {preset: http, verify: none, id: event.id, time: event.at}
targets:
  db: %s
tables:
  marked:
    key: {id: text}
    on_delete: mark
    columns: {v: text}
    events: [{from: shop, key: {id: event.id}, set: {v: event.v}, delete: event.gone}]
  listed:
    key: {order: text, no: int}
    on_delete: remove
    columns: {sku: text}
    events: [{from: shop, each: event.lines, replaces: {order: event.id}, key: {order: event.id, no: index}, set: {sku: item}}]
  parcel:
    key: {no: text}
    columns: {v: text}
    events: [{from: shop, key: {no: event.no}, chain: {previous: event.old}, set: {v: event.v}}]
  total:
    key: {id: text}
    columns: {sum: {type: numeric, merge: sum}, n: {type: int, merge: count}}
    events: [{from: shop, key: {id: event.of}, set: {sum: event.amount, n: 1}}]
  beside:
    key: {id: text}
    keep_versions: beside
    columns: {"first name": text}
    events: [{from: shop, key: {id: event.id}, set: {"first name": event.name}}]
  held:
    key: {id: text}
    columns: {v: text, tags: {type: "text[]", merge: union, scope: key}, at: {type: timestamp, merge: touch}}
    events: [{from: shop, key: {id: event.id}, occupant: {id: event.who, since: event.at}, set: {v: event.v, tags: event.tags}}]
  both:
    key: {id: text}
    keep_versions: beside
    on_delete: mark
    columns: {v: text}
    events: [{from: shop, key: {id: event.id}, set: {v: event.v}, delete: event.gone}]
`

// Every target says at load what it cannot do, at the place that asks for it.
func TestLimits(t *testing.T) {
	everywhere := []string{"9:16 tables.marked.on_delete", "14:16 tables.listed.on_delete", "16:57 tables.listed.events[0].replaces",
		"20:55 tables.parcel.events[0].chain", "23:15 tables.total.columns.sum", "23:49 tables.total.columns.n", "27:20 tables.beside.keep_versions",
		"36:20 tables.both.keep_versions", "37:16 tables.both.on_delete"}
	for target, want := range map[string][]string{
		`"sqlite:rows.db"`:                                            {"36:20 tables.both.keep_versions"},
		`"postgres://u@h/d"`:                                          {"36:20 tables.both.keep_versions"},
		`"hasura+http://localhost"`:                                   append([]string{"28:15 tables.beside.columns.first name"}, everywhere...),
		`{url: "supabase+https://x.supabase.co", key: k}`:             everywhere,
		`{url: "supabase+https://x.supabase.co", key: k, mode: rest}`: append([]string{"32:24 tables.held.columns.tags", "32:74 tables.held.columns.at", "33:48 tables.held.events[0].occupant"}, everywhere...),
	} {
		cfg, problems := config.Parse("f", fmt.Appendf(nil, limited, target), config.Options{})
		if problems.Err() != nil {
			t.Fatal(problems)
		}
		plan, problems := mapping.Compile(cfg)
		if problems.Err() != nil {
			t.Fatal(problems)
		}
		got, told := map[string]bool{}, daemon.Limits(plan)
		for _, p := range told.List {
			got[fmt.Sprintf("%d:%d %s", p.Pos.Line, p.Pos.Column, strings.ReplaceAll(p.Path, `"`, ""))] = true
			if !strings.Contains(p.Text, " cannot keep this: ") || p.Severity != config.Error {
				t.Errorf("%+v", p)
			}
		}
		expected := map[string]bool{}
		for _, w := range want {
			expected[w] = true
		}
		if d := cmp.Diff(expected, got); d != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", target, d, told)
		}
	}
}
