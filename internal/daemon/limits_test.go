package daemon_test

import (
	"fmt"
	"slices"
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

const guardedTables = `
version: 1
journal: sqlite:hookfold.db
sources: {shop: {preset: http, verify: none, type: event.type, time: event.at, id: event.id}}
targets: {db: %s}
tables:
  plain:   {guard: trigger, key: {id: text}, columns: {v: text, tags: {type: "text[]", merge: union}}, events: [{from: shop, type: p, key: {id: event.k}, set: {v: event.v, tags: event.t}}]}
  counted:
    guard: trigger
    key: {id: text}
    columns: {n: {type: int, merge: count}}
    events: [{from: shop, type: c, key: {id: event.k}, set: {n: 1}}]
  gone:
    guard: trigger
    key: {id: text}
    on_delete: remove
    columns: {v: text}
    events: [{from: shop, type: g, key: {id: event.k}, set: {v: event.v}}, {from: shop, type: d, key: {id: event.k}, delete: true}]
  slot:
    guard: trigger
    key: {id: text}
    columns: {v: text}
    events: [{from: shop, type: s, if_missing: wait, key: {id: event.k}, occupant: {id: event.o}, set: {v: event.v}}]
`

// A guard trigger is refused where it cannot be right, at its line.
func TestGuardLimits(t *testing.T) {
	for target, want := range map[string]string{
		`"postgres://u@h/d"`: "9:12 counted, 14:12 gone, 20:12 slot",
		`"sqlite:rows.db"`:   "7:20 plain, 9:12 counted, 14:12 gone, 20:12 slot",
	} {
		cfg, problems := config.Parse("f", fmt.Appendf(nil, guardedTables, target), config.Options{})
		if problems.Err() != nil {
			t.Fatal(problems)
		}
		plan, problems := mapping.Compile(cfg)
		if problems.Err() != nil {
			t.Fatal(problems)
		}
		var got []string
		for _, p := range daemon.Limits(plan).List {
			got = append(got, fmt.Sprintf("%d:%d %s", p.Pos.Line, p.Pos.Column, strings.TrimSuffix(strings.TrimPrefix(p.Path, "tables."), ".guard")))
		}
		if s := strings.Join(slices.Compact(got), ", "); s != want {
			t.Errorf("%s: %s, want %s", target, s, want)
		}
	}
}
