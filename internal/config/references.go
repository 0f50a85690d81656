package config

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

func referencesKeys() []key[Column] {
	return []key[Column]{
		{name: "references", form: "a table, or a map", def: "none", doc: "The table whose key this column holds; or another row of another table, by a map.", read: readReferences},
		{name: "missing", form: "`wait`, `ensure`", def: "`wait`", doc: "What happens while the parent is not there. `wait`: the event waits for it, and is dead after `for`. `ensure`: the parent is inserted, with its key only, until its own event comes.",
			read: func(v value, c *Column) {
				if s, ok := readMissing(v); ok {
					c.reference().Missing = s
				}
			}},
		{name: "for", form: "a length of time", def: "`24h`", doc: "How long to wait for the parent.",
			read: func(v value, c *Column) { readFor(v, c.reference()) }},
	}
}

func referenceKeys() section[Reference] {
	return section[Reference]{
		path: "tables.<table>.columns.<column>.references, tables.<table>.parents[]", doc: "A text in the place of `references` is the `table`.",
		keys: []key[Reference]{
			{name: "table", form: "a table", needed: "table: conversation", doc: "The parent's table, by its name in this file.",
				read: func(v value, r *Reference) { r.Table, _ = v.name("the name of a table") }},
			{name: "key", form: "columns and expressions", def: "the column's own value", doc: "The parent's key. If a part is null there is no parent.",
				read: func(v value, r *Reference) { v.assignments(nil, &r.Key) }},
			{name: "missing", form: "`wait`, `ensure`", def: "`wait`", doc: "As `missing` of the column.",
				read: func(v value, r *Reference) { r.Missing, _ = readMissing(v) }},
			{name: "for", form: "a length of time", def: "`24h`", doc: "As `for` of the column.", read: readFor},
			{name: "column", later: later("A reference is to what the parent's key holds, and not to what the database makes up: give the child a column for that key.")},
		},
	}
}

func readMissing(v value) (string, bool) { return v.one("ensure", "wait") }

func (c *Column) reference() *Reference {
	if c.References == nil {
		c.References = &Reference{}
	}
	return c.References
}

func readReferences(v value, c *Column) {
	r := c.reference()
	r.Pos, r.Path = v.pos(), v.path
	if !v.isMap() {
		r.Table, _ = v.name("the name of a table")
		return
	}
	referenceKeys().read(v, r)
}

func readParents(v value, t *Table) {
	items, ok := v.items()
	if !ok {
		return
	}
	for _, item := range items {
		r := Reference{Pos: item.pos(), Path: item.path}
		got := referenceKeys().read(item, &r)
		if got == nil || item.broken() {
			continue
		}
		if _, ok := got["key"]; !ok {
			item.fail("needs key:, for example key: {id: event.user}")
			continue
		}
		if !settleReference(item, &r, got) {
			continue
		}
		t.Parents = append(t.Parents, r)
	}
}

// readFor reads how long to wait for a parent.
func readFor(v value, r *Reference) {
	var d time.Duration
	v.duration("", &d)
	switch {
	case v.broken():
	case d < time.Second:
		v.fail("`%s` is too short: at least 1s.", show(v.node.Value))
	default:
		r.For = d
	}
}

// checkReference checks that the keys of a column's reference belong together.
func checkReference(c *Column, got map[string]value) {
	at, has := got["references"]
	for _, name := range []string{"missing", "for"} {
		said, ok := got[name]
		switch {
		case ok && !has:
			said.fail("belongs to references:, which is not there.")
			c.References = nil
			return
		case ok && slices.ContainsFunc(at.node.Content, func(n *yaml.Node) bool { return n.Value == name }):
			said.fail("is given twice: here and under references. Keep one.")
			return
		}
	}
	if has {
		settleReference(at, c.References, got)
	}
}

// settleReference gives a reference what it does not say, and tells whether it
// can be used.
func settleReference(v value, r *Reference, got map[string]value) bool {
	if r.Missing == "ensure" && r.For != 0 {
		if f, ok := got["for"]; ok {
			v = f
		}
		v.fail("for: is how long to wait for a parent, and missing: ensure does not wait. Leave it out.")
		return false
	}
	if r.Missing == "" {
		r.Missing = "wait"
	}
	if r.Missing == "wait" && r.For == 0 {
		r.For = defaultWait
	}
	return true
}
