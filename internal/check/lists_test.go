package check

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/internal/config"
)

// user has deletes, and the mappings of its writes and of its deletes are given.
func user(write, gone string) string {
	return "  user:\n    key: {id: text}\n    on_delete: mark\n    columns: {name: text}\n    events:\n" +
		"    - {from: shop, key: {id: event.id}, " + write + ", set: {name: event.name}}\n    - {" + gone + ", key: {id: event.id}, delete: true}\n"
}

func TestSoundnessOfDeletesAndLists(t *testing.T) {
	visits := func(rest string) string {
		return user("type: user", "from: shop, type: gone") + "  visit: {key: {id: text}, columns: {user: {type: text, merge: max, references: user, missing: ensure}}, events: [{" + rest + ", key: {id: event.id}, set: {user: event.user}}]}\n"
	}
	lines := func(mapping string) string {
		return "  line: {key: {order: text, no: int}, on_delete: remove, columns: {sku: text}, events: [{from: shop, " + mapping + "}]}\n"
	}
	cases := []struct {
		name, tables string
		want         []string // errors and warnings
	}{
		{"sound", user("type: user", "from: shop, type: gone"), nil},
		{"F2 a delete whose version has another length", user("version: [time, 1]", "from: shop, type: gone"),
			[]string{"error tables.user.events[1].version: has 1 element (the default, time), events[0] (line 16) has 2. A delete is compared with all that is said of a row: all give the same number and kinds, or the comparison means nothing."}},
		{"F2 a delete whose version is of another kind", user("type: user", "from: shop, type: gone, version: int(event.n)"),
			[]string{"error tables.user.events[1].version: element 0 is a number, in events[0] (line 16) it is a time. A delete is compared"}},
		{"F2 a delete without a version", user("type: user", "from: bare, clock: shop"),
			[]string{"error tables.user: needs a version to be compared with deletes, and source bare has no time. Give version:, for example [position] (order of arrival)."}},
		{"F16 a delete by another clock", user("type: user", "from: bare, version: [timestamp(event.x)]"),
			[]string{"error tables.user.events[1]: sets the existence of its rows by the clock of bare, events[0] (line 16) by the clock of shop. Times of two clocks do not tell what is newer. If they are one clock, say clock: shop here; else lead both versions with a rank, or put source into the key."}},
		{"F16 sources that are apart by the key", "  user: {key: {from: text, id: text}, on_delete: mark, columns: {name: text}, events: [{from: shop, key: {from: source, id: event.id}, set: {name: event.name}}, {from: bare, version: [timestamp(event.x)], key: {from: source, id: event.id}, delete: true}]}\n", nil},
		{"F16 tenants that are apart by the key", "  user: {key: {from: text, id: text}, columns: {name: text}, events: [{from: shop, key: {from: '\"a\"', id: event.id}, set: {name: event.name}}, {from: bare, version: [timestamp(event.x)], key: {from: '\"b\"', id: event.id}, set: {name: event.name}}]}\n", nil},
		{"F16 tenants of one name", "  user: {key: {from: text, id: text}, columns: {name: text}, events: [{from: shop, key: {from: '\"a\"', id: event.id}, set: {name: event.name}}, {from: bare, version: [timestamp(event.x)], key: {from: \"'a'\", id: event.id}, set: {name: event.name}}]}\n",
			[]string{"error tables.user.events[1]: sets scope row by the clock of bare"}},
		{"F2 a write that feeds no scope needs the deletes' shape", user("type: user", "from: shop, type: gone") + "",
			nil},
		{"F8 a scope of its own is compared with deletes", "  user: {key: {id: text}, on_delete: mark, columns: {name: text, seen: {type: timestamp, scope: seen}}, events: [{from: shop, key: {id: event.id}, set: {name: event.name}}, {from: shop, type: seen, version: [time, 1], key: {id: event.id}, set: {seen: time}}, {from: shop, type: gone, key: {id: event.id}, delete: true}]}\n",
			[]string{"error tables.user.events[1].version: has 2 elements, events[0] (line 11) has 1. A delete is compared"}},
		{"F12 a parent that is inserted", visits("from: shop, type: visit"), nil},
		{"F12 a parent that is inserted without a version", visits("from: bare, clock: shop"),
			[]string{"error tables.visit: needs a version for the parents that it inserts, to be compared with their deletes, and source bare has no time. Give version:, for example [position] (order of arrival)."}},
		{"F12 a parent that is inserted with another shape", visits("from: shop, type: visit, version: [time, 1]"),
			[]string{"error tables.visit.events[0].version: has 2 elements, user.events[0] (line 16) has 1. A delete is compared with all that is said of a row, and visit inserts rows of user that are missing: all give"}},
		{"F12 a parent that is inserted by another clock", visits("from: bare, version: [timestamp(event.x)]"),
			[]string{"error tables.visit.events[0]: sets the existence of its rows by the clock of bare, user.events[0] (line 16) by the clock of shop."}},
		{"F10 a list", lines("each: event.lines, replaces: {order: event.id}, key: {order: event.id, no: index}, set: {sku: item.sku}"), nil},
		{"F10 a list of one row", lines("each: event.lines, replaces: {order: event.id}, key: {order: event.id, no: event.no}, set: {sku: item.sku}"),
			[]string{"warning tables.line.events[0].each: the key reads neither item nor index, so that all elements are one row, and of them only the last counts."}},
		{"a list of one row that is not complete", "  line: {key: {id: text}, columns: {sku: text}, events: [{from: shop, each: event.lines, key: {id: event.id}, set: {sku: item.sku}}]}\n",
			[]string{"warning tables.line.events[0].each: the key reads neither item nor index, so that all elements are one row and have one version: which of them counts means nothing. Put item or index into the key, or index at the end of the version."}},
		{"which is put in order", "  line: {key: {id: text}, columns: {sku: text}, events: [{from: shop, each: event.lines, version: [time, index], key: {id: event.id}, set: {sku: item.sku}}]}\n", nil},
		{"or is only counted", "  line: {key: {id: text}, columns: {n: {type: int, merge: sum}}, events: [{from: shop, each: event.lines, key: {id: event.id}, set: {n: item.n}}]}\n", nil},
		{"F10 a parent whose deletes have another shape than the list", `  order: {key: {id: text}, on_delete: remove, columns: {}, events: [{from: shop, type: gone, version: [time, 1], key: {id: event.id}, delete: true}]}
  line: {key: {order: {type: text, references: order}, no: int}, on_delete: remove, columns: {sku: text}, events: [{from: shop, each: event.lines, replaces: {order: event.id}, key: {order: event.id, no: index}, set: {sku: item.sku}}]}
`, []string{"error tables.order.events[0].version: has 2 elements, line.events[0] (line 12) has 1. A delete is compared with all that is said of a row, and a delete of order empties its lists in line: all give"}},
		{"F10 a parent that does not tell the whole list", `  order: {key: {id: text}, on_delete: remove, columns: {}, events: [{from: shop, type: gone, key: {id: event.id}, delete: true}]}
  line: {key: {tenant: text, order: {type: text, references: order}, no: int}, on_delete: remove, columns: {sku: text}, events: [{from: shop, type: saved, each: event.lines, replaces: {order: event.id, tenant: event.tenant}, key: {tenant: event.tenant, order: event.id, no: index}, set: {sku: item.sku}}]}
`, []string{"error tables.order.events[0].delete: the rows of line stay: the key of order does not tell tenant. Let its mapping with replaces take these events too, with an empty list: each: 'type == \"…\" ? [] : …'."}},
		{"F10 where the parent's row stays, its rows may", `  order: {key: {id: text}, on_delete: mark, columns: {}, events: [{from: shop, type: gone, key: {id: event.id}, delete: true}]}
  line: {key: {tenant: text, order: {type: text, references: order}, no: int}, on_delete: remove, columns: {sku: text}, events: [{from: shop, type: saved, each: event.lines, replaces: {order: event.id, tenant: event.tenant}, key: {tenant: event.tenant, order: event.id, no: index}, set: {sku: item.sku}}]}
`, []string{"warning tables.order.events[0].delete: the rows of line stay"}},
		{"F10 unless the list speaks for itself", `  order: {key: {id: text}, on_delete: remove, columns: {}, events: [{from: shop, type: gone, key: {id: event.id}, delete: true}]}
  line: {key: {tenant: text, order: {type: text, references: order}, no: int}, on_delete: remove, columns: {sku: text}, events: [{from: shop, type: [saved, gone], each: 'type == "gone" ? [] : event.lines', replaces: {order: event.id, tenant: event.tenant}, key: {tenant: event.tenant, order: event.id, no: index}, set: {sku: item.sku}}]}
`, nil},
		{"F10 lists of lists", `  order: {key: {id: text}, on_delete: mark, columns: {}, events: [{from: shop, type: gone, key: {id: event.id}, delete: true}]}
  line: {key: {order: {type: text, references: order}, no: text}, on_delete: mark, columns: {sku: text}, events: [{from: shop, type: saved, each: event.lines, replaces: {order: event.id}, key: {order: event.id, no: item.no}, set: {sku: item.sku}}]}
  part: {key: {order: text, line: text, no: int}, on_delete: mark, columns: {sku: text}, parents: [{table: line, key: {order: event.id, no: event.line}}], events: [{from: shop, type: line, each: event.parts, replaces: {order: event.id, line: event.line}, key: {order: event.id, line: event.line, no: index}, set: {sku: item.sku}}]}
`, []string{"warning tables.part: rows of line that a list no longer names go without an event of their own, and what part has of them stays."}},
		{"an element's field that is in no sample", "  t: {key: {id: text}, columns: {}, events: [{from: calendly, type: invitee.created, each: event.payload.questions_and_answers, key: {id: item.questoin}}]}\n",
			[]string{"warning tables.t.events[0].key.id: calendly/invitee.created would be dead"}}, // what is in it the preset's user says
		{"the least field of a list that there is", "  t: {key: {id: text, user: text}, columns: {}, events: [{from: calendly, type: invitee.created, each: event.payload.scheduled_event.event_memberships, key: {id: event.payload.uri, user: item.usr}}]}\n",
			[]string{"error tables.t.events[0].key.user: field item.usr is in none of the 2 elements of event.payload.scheduled_event.event_memberships in the samples of calendly invitee.created. There is item.user."}},
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

func TestVerdictsOfDeletesAndLists(t *testing.T) {
	p := compiled(t, head+`
  order:
    key: {id: text}
    on_delete: {set: {deleted: true}}
    columns: {total: {type: numeric, merge: sum}, n: {type: int, merge: count}, first: {type: text, merge: first}, tags: {type: "text[]", merge: union}, buyer: {type: text, references: user}, agent: {type: text, references: user, missing: ensure}}
    events:
    - {from: shop, type: order, key: {id: event.id}, set: {"*": event}}
    - {from: shop, type: gone, key: {id: event.id}, delete: true}
  user: {key: {id: text}, on_delete: mark, columns: {}, events: [{from: shop, type: user.gone, key: {id: event.u}, delete: true}]}
  line: {key: {order: text, no: int}, on_delete: remove, columns: {sku: text}, events: [{from: shop, each: event.lines, replaces: {order: event.id}, key: {order: event.id, no: index}, set: {sku: item.sku}}]}
  booking: {key: {uid: text}, columns: {at: timestamp}, events: [{from: shop, key: {uid: event.uid}, chain: {previous: event.old}, set: {at: event.start}}]}
  meeting: {key: {uid: text}, columns: {root: {type: text, merge: chain}}, events: [{from: shop, key: {uid: event.uid}, chain: {previous: event.old}}]}
  seat: {key: {no: int}, on_delete: mark, columns: {guest: text}, events: [{from: shop, key: {no: event.seat}, occupant: {id: event.b, since: time}, set: {guest: event.guest}}, {from: shop, type: gone, key: {no: event.seat}, occupant: {id: event.b}, delete: true}]}
  arrived: {key: {id: text}, on_delete: remove, columns: {a: {type: text, scope: a}}, events: [{from: bare, key: {id: event.id}, version: [position], set: {a: event.a}}, {from: bare, key: {id: event.id}, version: [position], delete: event.gone}]}
  skipped: {key: {id: text}, columns: {a: text}, events: [{from: shop, if_missing: skip, key: {id: event.id}, set: {a: event.a}}]}
`)
	var got []string
	for _, v := range Run(p).Verdicts {
		got = append(got, v.String())
	}
	const kept = ", and it goes on from there when a deleted row is made again"
	want := []string{
		"order: order-free because every column is a join of what the events say; a delete is remembered, and an older write does not bring the row back",
		"order.total: order-free because each event is added once, by its identity" + kept,
		"order.n: order-free because each event is counted once, by its identity" + kept,
		"order.first: order-free because the value of the oldest version stays" + kept,
		"order.tags: order-free because the set only grows" + kept,
		"order.buyer: order-free because the newest version wins: time; its event waits until its row of user is known",
		"order.agent: order-free because the newest version wins: time; its row of user is inserted if it is missing",
		"order.deleted: order-free because it shows whether a delete is newer than all that was written",
		"user: order-free because a row is there or not, as the newest says that there is of it; a delete is remembered, and an older write does not bring the row back",
		"line: order-free because every column is a join of what the events say; a delete is remembered, and an older write does not bring the row back; a complete list is remembered with its version, and removes what is older",
		"line.sku: order-free because the newest version wins: time",
		"booking: order-free because the identities of a chain share the row of the first, which shows the last one, in whatever order their links come",
		"booking.at: order-free because the newest version wins: time",
		"meeting: order-free because every column is a join of what the events say",
		"meeting.root: order-free because it is the first identity of the row's chain, in whatever order the links come",
		"seat: order-free because each occupant has a record of its own, and the row shows the newest; a delete is remembered in the record of its occupant",
		"seat.guest: order-free because the newest version wins: time",
		"arrived: depends on the order of arrival because the version in events[0] (line 24), events[1] (line 24) is the order of arrival, so that whether a row is deleted depends on it; put a time or a counter of the event in version:",
		"arrived.a: depends on the order of arrival because its version in events[0] (line 24) is the order of arrival; put a time or a counter of the event in version:, or use ladder, min or max",
		"skipped: depends on whether the row is there when events arrive because a does; see there",
		"skipped.a: depends on whether the row is there when events arrive because what events[0] (line 25) says is lost if the row is not there yet (if_missing: skip); say if_missing: wait or insert",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestNotesOfDeletesAndCounters(t *testing.T) {
	text := strings.Replace(head, "bare: {preset: http, verify: none}", `bare: {preset: http, verify: none, id: position}
  signed: {preset: http, verify: {hmac: sha256, header: X-Sig}, secrets: [k], id: 'headers["x-id"]'}`, 1)
	tables := `
  user: {key: {id: text}, on_delete: mark, columns: {}, events: [{from: bare, key: {id: event.id}, version: [int(event.v)], delete: true}]}
  item: {key: {id: text}, on_delete: remove, columns: {a: text, b: {type: text, scope: b}}, events: [{from: shop, key: {id: event.id}, set: {a: event.a, b: "event.?b"}}, {from: shop, type: gone, key: {id: event.id}, delete: true}]}
  credit: {key: {id: text}, columns: {n: {type: int, merge: sum}}, events: [{from: bare, key: {id: event.id}, version: [int(event.v)], set: {n: event.n}}, {from: signed, key: {id: event.id}, set: {n: event.n}}]}
`
	var got []string
	for _, p := range Run(compiled(t, text+tables)).Problems.List {
		got = append(got, string(p.Severity)+" "+p.Path+": "+p.Text)
	}
	want := []string{
		"note tables.user.events[0].delete: deleted_at stays NULL: source bare has no time.",
		"note tables.item.on_delete: what scope b says after a delete makes the row again without its other columns, which therefore have to allow NULL.",
		"note tables.credit.events[0].set.n: the id of bare reads position: an event whose identity that is counts again when its sender sends it again.",
		"note tables.credit.events[1].set.n: the id of signed is read from what its signature does not cover: who has seen a delivery could send it again under another id. Prefer an id in the body.",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestTestsOfDeletesListsAndChains(t *testing.T) {
	const tables = `
  order:
    key: {id: text}
    on_delete: mark
    columns: {total: {type: numeric, merge: sum}}
    events:
    - {from: shop, type: order, key: {id: event.order}, set: {total: event.n}}
    - {from: shop, type: gone, key: {id: event.order}, delete: true}
  line:
    key: {order: {type: text, references: order}, no: int}
    on_delete: remove
    columns: {sku: text}
    events:
    - {from: shop, type: order, each: "event.?lines", replaces: {order: event.order}, key: {order: event.order, no: item.no}, set: {sku: item.sku}}
    - {from: shop, type: line, key: {order: event.order, no: event.no}, set: {sku: event.sku}}
  booking:
    key: {uid: text}
    columns: {at: timestamp}
    events: [{from: shop, type: booking, key: {uid: event.uid}, chain: {previous: event.old}, set: {at: time}}]
`
	cases := []struct {
		name, test string
		want       []string
		notes      []string
	}{
		{"a list, and a late single row", `
    send:
      - {source: shop, body: {type: order, id: a, order: 1, n: 5, at: "2026-01-01T00:00:06Z", lines: []}}
      - {source: shop, body: {type: line, id: b, order: 1, no: 1, sku: late, at: "2026-01-01T00:00:05Z"}}
      - {source: shop, body: {type: line, id: c, order: 1, no: 2, sku: new, at: "2026-01-01T00:00:07Z"}}
    expect: {line: [{order: 1, no: 2, sku: new}], order: [{id: 1, total: 5, deleted_at: null}]}`, nil, nil},
		{"a deleted parent takes its rows along, and keeps the time of its delete", `
    send:
      - {source: shop, body: {type: order, id: a, order: 1, n: 5, at: "2026-01-01T00:00:06Z", lines: [{no: 1, sku: x}]}}
      - {source: shop, body: {type: gone, id: b, order: 1, at: "2026-01-01T00:00:06Z"}}
    expect: {line: [], order: [{id: 1, total: 5, deleted_at: "2026-01-01T00:00:06Z"}]}`, nil, nil},
		{"a child waits for its parent", `
    send:
      - {source: shop, body: {type: line, id: b, order: 1, no: 1, sku: x, at: "2026-01-01T00:00:05Z"}}
      - {source: shop, body: {type: gone, id: c, order: 1, at: "2026-01-01T00:00:01Z"}}
    expect: {line: [{order: 1, no: 1}], order: []}`, nil, nil},
		{"which never comes", `
    send: [{source: shop, body: {type: line, id: b, order: 1, no: 1, sku: x, at: "2026-01-01T00:00:05Z"}}]
    expect: {line: []}`, nil, []string{"send[0] line → line order=1, no=1: waits for order id=1, which no event of the test brings"}},
		{"a chain", `
    send:
      - {source: shop, body: {type: booking, id: a, uid: a, old: null, at: "2026-01-03T00:00:00Z"}}
      - {source: shop, body: {type: booking, id: b, uid: b, old: a, at: "2026-01-02T00:00:00Z"}}
      - {source: shop, body: {type: booking, id: c, uid: c, old: b, at: "2026-01-01T00:00:00Z"}}
    expect: {booking: [{uid: a, at: "2026-01-01T00:00:00Z"}]}`, nil, nil},
		{"what is wrong is told", `
    send: [{source: shop, body: {type: gone, id: b, order: 1, at: "2026-01-01T00:00:05Z"}}, {source: shop, body: {type: order, id: a, order: 1, n: 5, at: "2026-01-01T00:00:06Z"}}]
    expect: {order: [{id: 1, deleted_at: "2026-01-01T00:00:05Z"}]}`, []string{"order id=1: deleted_at is NULL, expected 2026-01-01T00:00:05.000000Z", "in the order send[0] gone, send[1] order"}, nil},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := Test(compiled(t, head+tables+"tests:\n  - name: x"+tc.test+"\n"), Options{})[0]
			if d := cmp.Diff(tc.want, r.Differences); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			if d := cmp.Diff(tc.notes, r.Notes); d != "" {
				t.Errorf("notes: -want +got\n%s", d)
			}
		})
	}
}
