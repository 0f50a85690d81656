package config

import "github.com/hookfold/hookfold/merge"

func mappingKeys() section[Mapping] {
	return section[Mapping]{
		path: "tables.<table>.events[]",
		keys: []key[Mapping]{
			{name: "from", form: "a source", needed: "from: shop", doc: "Whose events.",
				read: func(v value, m *Mapping) { m.From, _ = v.name("the name of a source") }},
			{name: "type", form: "a text, or a list of them", def: "every type", doc: "The events' types; `*` stands for any run of characters, as in `invoice.*`.", read: readTypes},
			{name: "when", form: "an expression", def: "always", doc: "Which of these events: one for which it is false says nothing.",
				read: func(v value, m *Mapping) { v.exprTo(&m.When) }},
			{name: "key", form: "columns and expressions", needed: "key: {id: event.id}", doc: "The row: an expression for each column of the table's key. An event whose key is null is dead.",
				read: func(v value, m *Mapping) { v.assignments(nil, &m.Key) }},
			{name: "occupant", form: "a map", def: "none", doc: "The identity that the event is about, where several may hold one row in turn.",
				read: func(v value, m *Mapping) {
					m.Occupant = &Occupant{}
					occupantKeys().read(v, m.Occupant)
				}},
			{name: "version", form: "an expression, or a list of them", def: "the event's time", doc: "What is newer: times and integers, compared from the left. `[position]` is the order of arrival.",
				read: func(v value, m *Mapping) { v.exprs(&m.Version) }},
			{name: "set", form: "columns and expressions", def: "nothing: the row is there", doc: "The columns' values. `\"*\": event` takes every column that is not named from a member of the same name. A bare `true`, `5` or `null` is that value.",
				read: func(v value, m *Mapping) { v.assignments(&m.Rest, &m.Set) }},
			{name: "if_missing", form: "`insert`, `wait`, `skip`", def: "`insert`", doc: "What happens if the row is not there: it is inserted, or the event waits until somebody else inserts it, or it says nothing.",
				read: func(v value, m *Mapping) {
					switch s, _ := v.one("insert", "wait", "skip"); s {
					case "wait":
						m.IfMissing = merge.Wait
					case "skip":
						m.IfMissing = merge.Skip
					}
				}},
			{name: "clock", form: "a name", def: "the source", doc: "Whose clock the versions are read from. Mappings of one scope have to share a clock.",
				read: func(v value, m *Mapping) { m.Clock, _ = v.name("the name of a clock") }},
			{name: "delete", later: later("Until then leave deletes out with when:.")},
			{name: "each", later: later("")},
			{name: "replaces", later: later("")},
			{name: "fetch", later: later("")},
			{name: "chain", later: later("")},
		},
	}
}

func occupantKeys() section[Occupant] {
	return section[Occupant]{
		path: "tables.<table>.events[].occupant", doc: "The row shows its newest occupant: the one with the greatest `since`, then the greatest `id`. An event about another occupant changes only what is remembered of that one.",
		keys: []key[Occupant]{
			{name: "id", form: "an expression", needed: "id: event.payload.uri", doc: "The occupant's identity.",
				read: func(v value, o *Occupant) { o.ID, _ = v.expr() }},
			{name: "since", form: "an expression", def: "unknown: older than any known", doc: "Since when it holds the row, where the event knows it.",
				read: func(v value, o *Occupant) { v.exprTo(&o.Since) }},
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
		if mappingKeys().read(item, m) != nil {
			t.Events = append(t.Events, m)
		}
	}
}

func readTypes(v value, m *Mapping) {
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
			m.Types = append(m.Types, n)
		}
		seen[n.Text] = true
	}
}
