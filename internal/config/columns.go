package config

import (
	"slices"
	"strings"

	"github.com/hookfold/hookfold/merge"
)

func keyColumnKeys() section[Column] {
	return section[Column]{
		path: "tables.<table>.key.<column>", doc: "A text in its place is the `type`. A number and its text are one key in a `text` column.",
		keys: append([]key[Column]{typeKey()}, referencesKeys()...),
	}
}

func columnKeys() section[Column] {
	return section[Column]{
		path: "tables.<table>.columns.<column>", doc: "A text in its place is the `type`. A column of the key may stand here once more, to say what it references.",
		keys: append([]key[Column]{
			typeKey(),
			{name: "merge", form: "`latest`, `first`, `max`, `min`, `union`, `sum`, `count`, `chain`, `touch`, `{ladder: […]}`", def: "`latest`",
				doc:  "How two values of the column become one. `latest`: the one of the newer version. `first`: of the older. `max`, `min`: by value. `ladder`: the higher rung. `union`: both lists' elements, each once, sorted. `sum`: what the events set, added up, each event once. `count`: the events that set anything but `false` or null. `chain`: the first identity of the key's chain; no mapping sets it. `touch`: the time of the last write that changed a value; no mapping sets it.",
				read: readMerge},
			{name: "unknown", form: "`ignore`, `dead`", def: "`dead`", doc: "What a value does that is no rung of the ladder: it says nothing, or its event is dead.", read: readUnknown},
			{name: "scope", form: "a name, or `key`", def: "`row`", doc: "Columns of one scope share a version, which is stored as `<scope>_version`; a mapping sets all of them or none. `key`, on tables with occupants: the column belongs to the row itself, whoever holds it, as those of `sum` and `count` have to.", read: readScope},
		}, referencesKeys()...),
	}
}

func typeKey() key[Column] {
	return key[Column]{name: "type", form: "`text`, `text(n)`, `bool`, `int`, `numeric`, `numeric(p,s)`, `float`, `timestamp`, `date`, `uuid`, `json`, `bytes`, `text[]`", needed: "type: text",
		doc: "What the column holds. An event with a value that does not fit is dead, before a database could round or cut it.", read: readType}
}

func mergeKeys() section[Column] {
	return section[Column]{
		path: "tables.<table>.columns.<column>.merge",
		keys: []key[Column]{
			{name: "ladder", form: "a list of texts", def: "none", doc: "The rungs, lowest first. NULL and what stands in the table already and is no rung are below all.", read: readLadder},
			{name: "unknown", form: "`ignore`, `dead`", def: "`dead`", doc: "As `unknown` of the column.", read: readUnknown},
		},
	}
}

// readColumnMap reads a map from columns to a type, or a map of their keys.
func readColumnMap(v value, keys section[Column], then func(*Column, map[string]value)) []Column {
	entries, ok := v.entries("columns and their types, as in {id: text}")
	if !ok {
		return nil
	}
	var out []Column
	for _, e := range entries {
		if why := badIdentifier(e.name); why != "" {
			e.key.fail("cannot be the name of a column: %s.", why)
			continue
		}
		c := Column{Name: Name{Text: e.name, Pos: e.key.pos(), Path: e.key.path}}
		if !e.val.isMap() {
			readType(e.val, &c)
			out = append(out, c)
			continue
		}
		got := keys.read(e.val, &c)
		if !e.val.broken() {
			checkReference(&c, got)
			if then != nil {
				then(&c, got)
			}
		}
		if c.References != nil && c.References.Table.Text == "" {
			c.References = nil
		}
		out = append(out, c)
	}
	return out
}

// typesElsewhere are what databases call the types that are called otherwise
// here.
var typesElsewhere = map[string]string{
	"string": "text", "varchar": "text", "char": "text", "citext": "text", "enum": "text", "nvarchar": "text",
	"integer": "int", "bigint": "int", "smallint": "int", "serial": "int", "int4": "int", "int8": "int", "number": "numeric or int",
	"boolean": "bool", "timestamptz": "timestamp", "datetime": "timestamp", "time": "timestamp", "decimal": "numeric", "money": "numeric",
	"jsonb": "json", "object": "json", "double": "float", "real": "float", "bytea": "bytes", "blob": "bytes", "array": "text[]", "list": "text[]",
}

var typeNames = []string{"text", "bool", "int", "numeric", "float", "timestamp", "date", "uuid", "json", "bytes", "text[]"}

func readType(v value, c *Column) {
	s, ok := v.text("a type, as in text or timestamp")
	if !ok || v.cutOff() {
		return
	}
	t, err := merge.ParseType(s)
	if err == nil {
		c.Type = t
		return
	}
	base, length, _ := strings.Cut(strings.ToLower(s), "(")
	hint := ""
	switch other := typesElsewhere[strings.TrimSpace(base)]; {
	case (other == "text" || other == "numeric") && length != "":
		hint = other + "(" + length
	case other != "":
		hint = other
	default:
		hint = nearest(s, typeNames)
	}
	if hint != "" {
		hint = " Did you mean " + hint + "?"
	}
	v.fail("%s.%s", strings.Replace(err.Error(), s, show(v.node.Value), 1), hint)
}

var ruleNames = []string{"latest", "first", "min", "max", "ladder", "union", "touch", "sum", "count", "chain"}

func readMerge(v value, c *Column) {
	if v.isMap() {
		for _, n := range v.node.Content {
			if n.Value != merge.Ladder.String() && slices.Contains(ruleNames, n.Value) {
				v.fail("%s takes nothing: write merge: %s.", n.Value, n.Value)
				return
			}
		}
		got := mergeKeys().read(v, c)
		if _, ok := got["ladder"]; !ok && got != nil && !v.broken() {
			v.fail("has no rule. Write merge: {ladder: [sent, delivered, read]}, or the name of a rule.")
		}
		c.Rule = merge.Ladder
		return
	}
	s, ok := v.text("a merge rule")
	if !ok {
		return
	}
	rule, known := merge.ParseRule(s)
	switch {
	case !known:
		v.fail("`%s` is not a merge rule.%s", show(v.node.Value), didYouMean(s, ruleNames))
	case rule == merge.Ladder:
		v.fail("a ladder needs its rungs, lowest first: merge: {ladder: [sent, delivered, read]}.")
	default:
		c.Rule = rule
	}
}

func readLadder(v value, c *Column) {
	items, ok := v.items()
	if !ok {
		return
	}
	if len(items) == 0 {
		v.fail("is a ladder without rungs. Give them lowest first: [sent, delivered, read].")
	}
	for _, item := range items {
		s, ok := item.text("a rung of the ladder")
		if ok && slices.Contains(c.Rungs, s) {
			item.fail("`%s` is on the ladder twice. Keep one.", show(item.node.Value))
			continue
		}
		if ok {
			c.Rungs = append(c.Rungs, s)
		}
	}
}

func readUnknown(v value, c *Column) {
	s, _ := v.one("ignore", "dead")
	c.UnknownIgnore = s == "ignore"
}

func readScope(v value, c *Column) {
	n, ok := v.name("the name of a scope")
	if !ok {
		return
	}
	if why := badIdentifier(n.Text); why != "" {
		v.fail("`%s` cannot be the name of a scope: %s.", show(v.node.Value), why)
		return
	}
	c.Scope = n
}

// checkColumn checks that the keys of a column belong together.
func checkColumn(c *Column, got map[string]value) {
	if u, ok := got["unknown"]; ok && c.Rule != merge.Ladder {
		u.fail("belongs to a ladder, and the column's rule is %s.", c.Rule)
	}
	if s, ok := got["scope"]; ok && c.Rule != merge.Latest && c.Scope.Text != merge.KeyScope {
		s.fail("only columns of rule latest have a scope; %s needs no version that others share. Leave it out.", c.Rule)
	}
	want := ""
	switch kind := c.Type.Kind; {
	case c.Rule == merge.Ladder && kind != merge.Text:
		want = "text"
	case c.Rule == merge.Union && kind != merge.TextArray:
		want = "text[]"
	case (c.Rule == merge.Sum || c.Rule == merge.Count) && kind != merge.Int && kind != merge.Numeric:
		want = "int or numeric, which are exact"
	case c.Rule == merge.Chain && kind != merge.Text:
		want = "text"
	case c.Rule == merge.Touch && kind != merge.Timestamp:
		want = "timestamp"
	case (c.Rule == merge.Max || c.Rule == merge.Min) && (kind == merge.JSON || kind == merge.TextArray):
		want = "a type with an order, such as int, numeric, timestamp or text"
	}
	if want != "" {
		got["merge"].fail("%s is for %s, and the column is %s.", c.Rule, want, c.Type)
	}
}
