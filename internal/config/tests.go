package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

func testKeys() section[Test] {
	return section[Test]{
		path: "tests[]",
		keys: []key[Test]{
			{name: "name", form: "text", needed: "name: a late cancel does not touch the new booking", doc: "What the test shows.",
				read: func(v value, t *Test) { t.Name, _ = v.name("text that says what the test shows") }},
			{name: "send", form: "a list of deliveries", needed: "send: [calendly/invitee.created]", doc: "What is sent: samples of presets by name, or deliveries.", read: readSend},
			{name: "expect", form: "tables, and lists of rows", needed: "expect: {booking: [{ref: lead_1, status: active}]}", doc: "The rows that there are then: for each table all of them, with the columns that matter. Values as they are stored; `null` is NULL.", read: readExpect},
		},
	}
}

func deliveryKeys() section[Delivery] {
	return section[Delivery]{
		path: "tests[].send[]", doc: "A text in its place is the name of a sample, as in `calendly/invitee.created`. Tests expand no `${NAME}`.",
		keys: []key[Delivery]{
			{name: "sample", form: "the name of a sample", def: "`body` or `raw`", doc: "What is sent, as in `calendly/invitee.created`, where there is more to say of it.",
				read: func(v value, d *Delivery) {
					d.Sample, _ = v.raw("the name of a sample, as in calendly/invitee.created")
				}},
			{name: "source", form: "a source", def: "needed, but with `sample`", doc: "Who sends it.",
				read: func(v value, d *Delivery) { d.Source, _ = v.raw("the name of a source") }},
			{name: "body", form: "any value", def: "`raw`", doc: "The body, which is sent as JSON.", read: readBody},
			{name: "raw", form: "text", def: "`body`", doc: "The body as it is.",
				read: func(v value, d *Delivery) {
					if s, ok := v.raw("the text of a body"); ok {
						d.Body = []byte(s)
					}
				}},
			{name: "headers", form: "names and texts", def: "none", doc: "Headers that parts of the event are read from.", read: readHeaders},
			{name: "fetched", form: "fetches and bodies", def: "none", doc: "What fetches read for its events, by name: the body of the answer, null if the object is not there. They are read in the order of the list.",
				read: readFetched},
		},
	}
}

func readTests(v value, c *Config) {
	items, ok := v.items()
	if !ok {
		return
	}
	for _, item := range items {
		t := &Test{}
		if testKeys().read(item, t) != nil {
			c.Tests = append(c.Tests, t)
		}
	}
}

func readSend(v value, t *Test) {
	items, ok := v.items()
	if ok && len(items) == 0 {
		v.fail("is an empty list; it has to hold a delivery, as in [calendly/invitee.created].")
	}
	for _, item := range items {
		d := Delivery{Pos: item.pos(), Path: item.path}
		if !item.isMap() {
			if s, ok := item.raw("the name of a sample, as in calendly/invitee.created, or a map with source and body"); ok {
				d.Sample = s
				t.Send = append(t.Send, d)
			}
			continue
		}
		got := deliveryKeys().read(item, &d)
		_, body := got["body"]
		raw, both := got["raw"]
		_, sample := got["sample"]
		_, source := got["source"]
		switch {
		case got == nil || item.broken():
		case sample && (body || both):
			got["sample"].fail("is given beside a body. Keep one.")
		case sample:
			t.Send = append(t.Send, d)
		case !source && !v.l.unread[join(item.path, "source")]:
			item.failWhole("needs source:, for example source: shop")
		case !source:
		case body && both:
			raw.fail("is given beside body. Keep one.")
		case !body && !both:
			item.failWhole("needs body:, for example body: {id: 1}, or raw: and the exact text.")
		default:
			t.Send = append(t.Send, d)
		}
	}
}

func readBody(v value, d *Delivery) {
	var out bytes.Buffer
	if v.writeJSON(&out, 0) {
		d.Body = out.Bytes()
	}
}

func readFetched(v value, d *Delivery) {
	entries, ok := v.entries("fetches and what they read, as in {order: {state: paid}}")
	if !ok {
		return
	}
	d.Fetched = map[string][]byte{}
	for _, e := range entries {
		var out bytes.Buffer
		if e.val.writeJSON(&out, 0) {
			d.Fetched[e.name] = out.Bytes()
		}
	}
}

func readHeaders(v value, d *Delivery) {
	entries, ok := v.entries("headers and their values, as in {X-Topic: order}")
	if !ok {
		return
	}
	d.Header = map[string]string{}
	for _, e := range entries {
		s, ok := e.val.raw("the text of a header")
		switch {
		case !headerForm.MatchString(e.name):
			e.key.fail("is not the name of a header: letters, digits and hyphens, as in X-Topic.")
		case ok:
			d.Header[e.name] = s
		}
	}
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$`)

// writeJSON writes a value as JSON: members in the order of the file, numbers
// digit by digit as they are written, dates as text.
func (v value) writeJSON(out *bytes.Buffer, depth int) bool {
	const deepest = 100
	switch {
	case v.l.bad[v.node]:
		return false
	case depth > deepest:
		v.fail("is nested more than %d deep, or in a circle.", deepest)
		return false
	case v.isMap():
		entries, ok := v.entries("")
		out.WriteByte('{')
		for i, e := range entries {
			if i > 0 {
				out.WriteByte(',')
			}
			writeText(out, e.name)
			out.WriteByte(':')
			ok = e.val.writeJSON(out, depth+1) && ok
		}
		out.WriteByte('}')
		return ok
	case v.isList():
		ok := true
		out.WriteByte('[')
		for i, n := range v.node.Content {
			if i > 0 {
				out.WriteByte(',')
			}
			ok = v.step(n, fmt.Sprintf("%s[%d]", v.path, i)).writeJSON(out, depth+1) && ok
		}
		out.WriteByte(']')
		return ok
	}
	switch tag := v.node.ShortTag(); {
	case tag == "!!null":
		out.WriteString("null")
	case tag == "!!bool":
		out.WriteString(strings.ToLower(v.node.Value))
	case tag != "!!int" && tag != "!!float":
		writeText(out, v.node.Value)
	case jsonNumber.MatchString(v.node.Value):
		out.WriteString(v.node.Value)
	default:
		v.fail("`%s` is no number in JSON. Write it in decimal digits, or put quotes around it for a text.", show(v.node.Value))
		return false
	}
	return true
}

func writeText(out *bytes.Buffer, s string) {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can always be encoded
	out.Truncate(out.Len() - 1)
}

func readExpect(v value, t *Test) {
	entries, ok := v.entries("tables and lists of rows, as in {booking: [{ref: lead_1, status: active}]}")
	if !ok {
		return
	}
	for _, e := range entries {
		x := Expected{Table: Name{Text: e.name, Pos: e.key.pos(), Path: e.key.path}}
		rows, _ := e.val.items()
		for _, r := range rows {
			columns, ok := r.entries("columns and values, as in {ref: lead_1}")
			row := []Literal{}
			for _, c := range columns {
				if l, good := c.literal(); good {
					row = append(row, l)
				}
			}
			if ok {
				x.Rows = append(x.Rows, row)
			}
		}
		t.Expect = append(t.Expect, x)
	}
}

// literal reads a column's expected value.
func (e entry) literal() (Literal, bool) {
	l := Literal{Column: Name{Text: e.name, Pos: e.key.pos(), Path: e.key.path}}
	v := e.val
	switch {
	case v.l.bad[v.node]:
		return l, false
	case v.isMap() || v.isList():
		var out bytes.Buffer
		ok := v.writeJSON(&out, 0)
		l.Text = out.String()
		return l, ok
	case v.isNull():
		if v.node.Value == "" {
			v.fail("has no value. For NULL write null, for an empty text \"\".")
			return l, false
		}
		l.Null = true
	case plain(v.node):
		l.Text = literal(v.node)
	default:
		l.Text = v.node.Value
	}
	return l, true
}

// crossSample finds the source that a sample is sent to: of those with the
// sample's preset, the one that is called like it, else the first.
func (l *loader) crossSample(c *Config, d *Delivery) {
	preset, _, _ := strings.Cut(d.Sample, "/")
	var used []string
	for _, s := range c.Sources {
		if s.Preset.Text == "" || l.reportedAt(s.Preset.Path) {
			return // there is a problem with it, and it may be the one
		}
		used = append(used, s.Preset.Text)
		if s.Preset.Text == preset && (d.Source == "" || s.Text == preset) {
			d.Source = s.Text
		}
	}
	if d.Source == "" {
		l.report(d.Pos, d.Path, "`%s` is not a sample of a source: none has the preset `%s`.%s", show(d.Sample), show(preset), didYouMean(preset, slices.Compact(slices.Sorted(slices.Values(used)))))
	}
}

// crossTests checks the names that tests use.
func (l *loader) crossTests(c *Config) {
	for _, t := range c.Tests {
		for i := range t.Send {
			d := &t.Send[i]
			for _, name := range slices.Sorted(maps.Keys(d.Fetched)) {
				if c.FetchNamed(name) == nil && !l.reportedAt("fetches") && !l.Touches("fetches."+name) {
					l.report(d.Pos, d.Path+".fetched", "`%s` is not a fetch.%s", show(name), didYouMean(name, namesOf(c.Fetches)))
				}
			}
			switch {
			case len(c.Sources) == 0:
			case d.Sample != "":
				l.crossSample(c, d)
			case d.Source != "" && c.SourceNamed(d.Source) == nil:
				l.report(d.Pos, d.Path, "`%s` is not a source.%s", show(d.Source), didYouMean(d.Source, namesOf(c.Sources)))
			}
		}
		for _, e := range t.Expect {
			table := c.TableNamed(e.Table.Text)
			if table == nil && len(c.Tables) == 0 && (l.Touches("tables") || l.unread["tables"]) {
				continue
			}
			if table == nil {
				l.report(e.Table.Pos, e.Table.Path, "is not a table of this config.%s", didYouMean(e.Table.Text, namesOf(c.Tables)))
				continue
			}
			if l.reportedAt(table.Path+".key") || l.reportedAt(table.Path+".columns") || l.unsure(table.Path+".on_delete") {
				continue
			}
			names := columnNames(table.Key, table.Columns)
			if d := table.OnDelete; d != nil {
				for _, s := range d.Set {
					if s.Flag {
						names = append(names, s.Column.Text)
					}
				}
				if table.marks() {
					names = append(names, deletedAt)
				}
			}
			for _, row := range e.Rows {
				for _, x := range row {
					if !slices.Contains(names, x.Column.Text) {
						l.report(x.Column.Pos, x.Column.Path, "is not a column of %s.%s", table.Text, didYouMean(x.Column.Text, names))
					}
				}
			}
		}
	}
}
