package check

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/internal/config"
)

// TestF16WhatWasFetchedHasOneClock: what a provider says of its times, and when
// this machine has read it, are never compared.
func TestF16WhatWasFetchedHasOneClock(t *testing.T) {
	// of gives the table t mappings of shop's events, the first of which fetches.
	of := func(fetch, mapping, more string) string {
		return "  t:\n    key: {id: text}\n    columns: {x: text}\n    events:\n    - {from: shop, fetch: f, key: {id: event.id}, " + mapping + "}\n" + more +
			"fetches:\n  f: {url: event.link, hosts: [a.example.com]" + fetch + "}\n"
	}
	plain := "    - {from: shop, type: plain, key: {id: event.id}, set: {x: event.x}}\n"
	const two = "one version is made of fetched_at, by the clock of this machine, and of shop's times or numbers. Two clocks do not tell what is newer: take fetched_at alone, or what the provider says of the object."
	for _, tc := range []struct {
		name, tables string
		want         []string
	}{
		{"when it was read", of("", "set: {x: fetched.x}", ""), nil},
		{"beside events", of("", "set: {x: fetched.x}", plain), []string{
			"error tables.t.events[1]: sets scope row by the clock of shop, events[0] (line 15) by the clock of local. Times of two clocks do not tell what is newer. If they are one clock, say clock: local here; else lead both versions with a rank, or give the columns of one a scope: of their own, or give fetch f a version: of what is in the answer."}},
		{"declared to be one", of("", "clock: shop, set: {x: fetched.x}", plain), nil},
		{"a version in the answer", of(", version: timestamp(fetched.at)", "set: {x: fetched.x}", plain), nil},
		{"both in one version", of("", "version: [timestamp(fetched.at), fetched_at], set: {x: fetched.x}", ""), []string{"error tables.t.events[0].version[1]: " + two}},
		{"both in one version, of the event", of(", version: [fetched_at, event.no]", "set: {x: fetched.x}", ""), []string{"error fetches.f.version[1]: " + two}},
		{"both in one expression", of("", `version: 'present(event.at) ? time : fetched_at', set: {x: fetched.x}`, ""), []string{"error tables.t.events[0].version: " + two}},
		{"a rank is no clock", of("", "version: [1, fetched_at], set: {x: fetched.x}", ""), nil},
		{"a version of the event", of("", "version: time, set: {x: fetched.x}", ""), []string{
			"warning tables.t.events[0].version: is the event's, and x is what was fetched: until the last event has come, a read for an older event may have seen a newer state than a later one shows. Leave version: out for that of the fetch."}},
		{"a version of the event for what is of the event", of("", "version: time, set: {x: event.x}", ""), nil},
		{"a key that is another each time", strings.Replace(of("", "set: {x: fetched.x}", ""), "{id: event.id}", "{id: string(fetched_at)}", 1), []string{
			"warning tables.t.events[0].key.id: is another each time the event comes: a redelivery would be about another row or occupant. Use what is in the event."}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, problems(t, tc.tables, config.Warning)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestGoneHasNoAnswer: a row that goes because its object is not there needs a
// key and a version without an answer.
func TestGoneHasNoAnswer(t *testing.T) {
	of := func(key, version string) string {
		return "  t:\n    key: {id: text}\n    on_delete: remove\n    columns: {x: text}\n    events:\n    - {from: shop, fetch: f, key: {id: " + key + "}, set: {x: fetched.x}}\n" +
			"fetches:\n  f: {url: event.link, hosts: [a.example.com], not_found: delete" + version + "}\n"
	}
	for _, tc := range []struct {
		tables string
		want   []string
	}{
		{of("event.id", ""), nil},
		{of("event.id", ", version: time"), []string{"warning fetches.f.version: is the event's, and x is what was fetched: until the last event has come, a read for an older event may have seen a newer state than a later one shows. Leave version: out for that of the fetch."}},
		{of("event.id", ", version: fetched.ver"), []string{"error fetches.f.version: is read from the answer, and an answer that the object is not there has none: by not_found: delete of fetch f such a row is deleted, and a delete needs a version too. Take fetched_at, or a version of the event."}},
		{of("fetched.id", ""), []string{"error tables.t.events[0].key.id: is read from the answer, and by not_found: delete of fetch f it has to be known which row goes where there is none. Take the key from the event."}},
	} {
		if d := cmp.Diff(tc.want, problems(t, tc.tables, config.Warning)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.tables, d)
		}
	}
	never := "  t: {key: {id: text}, columns: {x: text}, events: [{from: shop, fetch: f, key: {id: event.id}, set: {x: 'fetched_status == 404 ? \"gone\" : fetched.x'}}]}\nfetches: {f: {url: event.link, hosts: [a.example.com]}}\n"
	if got := strings.Join(problems(t, never, config.Note), "\n"); !strings.Contains(got, "is only ever evaluated with an answer 200 to 299: fetch f has not_found: retry. With not_found: value it sees 404 and 410.") {
		t.Error(got)
	}
}
