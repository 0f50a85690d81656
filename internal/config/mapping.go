package config

import "github.com/hookfold/hookfold/merge"

func mappingKeys() section[Mapping] {
	return section[Mapping]{
		path: "tables.<table>.events[]",
		keys: []key[Mapping]{
			{name: "from", form: "a source", needed: "from: shop", doc: "Whose events.",
				read: func(v value, m *Mapping) { m.From, _ = v.name("the name of a source") }},
			{name: "type", form: "a text, or a list of them", def: "every type", doc: "The events' types; `*` stands for any run of characters, as in `invoice.*`.",
				read: func(v value, m *Mapping) { readTypes(v, &m.Types) }},
			{name: "when", form: "an expression", def: "always", doc: "Which of these events: one for which it is false says nothing. One that reads `item` or `index` is asked of each element.",
				read: func(v value, m *Mapping) { v.exprTo(&m.When) }},
			{name: "key", form: "columns and expressions", needed: "key: {id: event.id}", doc: "The row: an expression for each column of the table's key. An event whose key is null is dead.",
				read: func(v value, m *Mapping) { v.assignments(nil, &m.Key) }},
			{name: "occupant", form: "a map", def: "none", doc: "The identity that the event is about, where several may hold one row in turn.",
				read: func(v value, m *Mapping) {
					m.Occupant = &Occupant{Pos: v.where(), Path: v.path}
					occupantKeys().read(v, m.Occupant)
				}},
			{name: "version", form: "an expression, or a list of them", def: "the event's time; with `fetch` the fetch's `version`", doc: "What is newer: times and integers, compared from the left. `[position]` is the order of arrival.",
				read: func(v value, m *Mapping) { v.exprs(&m.Version) }},
			{name: "set", form: "columns and expressions", def: "nothing: the row is there", doc: "The columns' values. `\"*\": event` takes every column that is not named from a member of the same name. A bare `true`, `5` or `null` is that value.",
				read: func(v value, m *Mapping) { v.assignments(&m.Rest, &m.Set) }},
			{name: "delete", form: "`true`, or an expression", def: "none: the events write", doc: "Which of the events delete the row: all, or those for which it is true, of which nothing is set. The table says `on_delete`. On a table with occupants the row goes if it is the one that holds it.",
				read: func(v value, m *Mapping) { v.exprTo(&m.Delete) }},
			{name: "each", form: "an expression", def: "none: one change", doc: "A list, whose elements make a change each: in the other expressions `item` is the element and `index` its place, from 0. An absent list says nothing, and null does not either. At most 10,000 elements.",
				read: func(v value, m *Mapping) { v.exprTo(&m.Each) }},
			{name: "replaces", form: "columns and expressions", def: "none: rows that the list does not name stay", doc: "The list is complete: rows that have these values in these columns of the key, are older, and are not in the list are deleted, as `on_delete` says. So an empty list deletes all of them, and so does a delete of the parent whose key these columns are. `{}` is a list that is complete for the whole table. If one element is at fault, the whole list says nothing; of two elements that are one row the later counts. One mapping of a table may say so.",
				read: func(v value, m *Mapping) {
					m.ReplacesAt = v.where()
					v.assignments(nil, &m.Replaces)
					switch {
					case len(m.Replaces) > 0:
						m.ReplacesAt = m.Replaces[0].Column.Pos
					case !v.broken():
						m.Replaces = []Assignment{}
					}
				}},
			{name: "chain", form: "a map", def: "none", doc: "Which identity took the place of which, where a thing gets a new one now and then. The identity is the table's key.",
				read: func(v value, m *Mapping) {
					m.Chain = &Chain{Pos: v.pos(), Path: v.path}
					chainKeys().read(v, m.Chain)
				}},
			{name: "if_missing", form: "`insert`, `wait`, `skip`", def: "`insert`", doc: "What happens if the row is not there: it is inserted, or the event waits until somebody else inserts it, or it says nothing.",
				read: func(v value, m *Mapping) {
					switch s, _ := v.one("insert", "wait", "skip"); s {
					case "wait":
						m.IfMissing = merge.Wait
					case "skip":
						m.IfMissing = merge.Skip
					}
				}},
			{name: "clock", form: "a name", def: "the source; `local` where a version reads `fetched_at`", doc: "Whose clock the versions are read from. Mappings of one scope have to share a clock.",
				read: func(v value, m *Mapping) { m.Clock, _ = v.name("the name of a clock") }},
			{name: "fetch", form: "a fetch", def: "none", doc: "The fetch, of `fetches`, that is made for each event before it is mapped; the expressions here then know `fetched`, `fetched_status` and `fetched_at`. The events wait for it, and others do not.",
				read: func(v value, m *Mapping) { m.Fetch, _ = v.name("the name of a fetch") }},
		},
	}
}

func occupantKeys() section[Occupant] {
	return section[Occupant]{
		path: "tables.<table>.events[].occupant", doc: "The row shows its newest occupant: the one with the greatest `since`, then the greatest `id`. An event about another occupant changes only what is remembered of that one.",
		keys: []key[Occupant]{
			{name: "id", form: "an expression", def: "needed, but on tables with chains, where the key is the identity", doc: "The occupant's identity.",
				read: func(v value, o *Occupant) { o.ID, _ = v.expr() }},
			{name: "since", form: "an expression", def: "unknown: older than any known", doc: "Since when it holds the row, where the event knows it.",
				read: func(v value, o *Occupant) { v.exprTo(&o.Since) }},
		},
	}
}

func chainKeys() section[Chain] {
	return section[Chain]{
		path: "tables.<table>.events[].chain", doc: "At least one of the two; null says nothing. The order in which links come does not matter. Without a column of rule `chain` a chain has one row: its key is the chain's first identity, and it shows the last one. With such a column every identity has its row, and the column shows the first identity.",
		keys: []key[Chain]{
			{name: "previous", form: "an expression", def: "unknown", doc: "The identity before the one of the key.",
				read: func(v value, c *Chain) { v.exprTo(&c.Previous) }},
			{name: "next", form: "an expression", def: "unknown", doc: "The identity after it.",
				read: func(v value, c *Chain) { v.exprTo(&c.Next) }},
		},
	}
}

func readEvents(v value, t *Table) {
	items, ok := v.items()
	if !ok {
		return
	}
	for _, item := range items {
		m := &Mapping{Pos: item.pos(), Path: item.path}
		if got := mappingKeys().read(item, m); got != nil {
			checkMapping(item, m, got)
			t.Events = append(t.Events, m)
		}
	}
}

func readTypes(v value, to *[]Name) {
	items, ok := v.oneOrMore()
	if ok && len(items) == 0 {
		v.fail("is an empty list. Leave the key out for every type.")
	}
	seen := map[string]bool{}
	for _, item := range items {
		n, ok := item.name("the type of an event, as in invoice.paid or invoice.*")
		switch {
		case !ok:
		case seen[n.Text]:
			item.fail("`%s` is given twice. Keep one.", show(item.node.Value))
		default:
			*to = append(*to, n)
		}
		seen[n.Text] = true
	}
}

// checkMapping checks that the keys of a mapping belong together.
func checkMapping(v value, m *Mapping, got map[string]value) {
	whole := m.Delete != nil && m.Delete.Text == "true"
	if d, ok := got["delete"]; ok && m.Delete != nil && plain(d.node) {
		switch d.node.ShortTag() {
		case "!!bool":
			if !whole {
				d.fail("is false, so that nothing is ever deleted. Leave it out.")
			}
		case "!!int", "!!float", "!!null":
			d.fail("is `%s`, but has to be true, or an expression that is true of the events that delete.", show(d.node.Value))
		}
	}
	if set, ok := got["set"]; ok && whole {
		set.failWhole("is never looked at: delete: true deletes the row with every event. Leave set out, or give delete an expression.")
	}
	if each, ok := got["replaces"]; ok {
		_, has := got["each"]
		switch {
		case each.broken():
		case !has && !v.l.unread[join(v.path, "each")]:
			each.failWhole("needs each:, the list that is complete, for example each: event.lines")
		case whole:
			each.failWhole("says that the list is complete, and delete: true deletes what it names. Leave one of the two out.")
		}
	}
	if c, ok := got["chain"]; ok && m.Chain.Previous == nil && m.Chain.Next == nil && !c.broken() {
		c.fail("says nothing. Give previous:, next: or both, as in {previous: event.old_id}.")
	}
}
