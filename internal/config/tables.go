package config

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/hookfold/hookfold/merge"
)

func tableKeys() section[Table] {
	return section[Table]{
		path: "tables.<table>",
		keys: []key[Table]{
			{name: "name", form: "`table`, `schema.table`", def: "the key above it", doc: "The table's name in the database.", read: readPhysical},
			{name: "target", form: "a target", def: "the only one", doc: "The database it is in.",
				read: func(v value, t *Table) { t.Target, _ = v.name("the name of a target") }},
			{name: "key", form: "columns and types", needed: "key: {id: text}", doc: "The columns that identify a row. The database needs a unique index on exactly these.", read: readKey},
			{name: "columns", form: "columns, and types or maps", def: "none: rows of the key only", doc: "The columns that Hookfold writes. It never touches another.", read: readColumns},
			{name: "versions", form: "`row`, `column`", def: "`row`", doc: "`row`: the `latest` columns that name no scope have one version, and each mapping sets all of them or none. `column`: each has a version of its own, for payloads that hold only what has changed.",
				read: func(v value, t *Table) {
					s, _ := v.one("row", "column")
					t.VersionsPerColumn = s == "column"
				}},
			{name: "keep_versions", form: "`row`, `beside`", def: "`row`", doc: "Where versions are stored: in columns of the table, as `row_version`, or in the table `hookfold_versions` beside it, for tables that must not be altered.",
				read: func(v value, t *Table) {
					s, _ := v.one("row", "beside")
					t.Beside = s == "beside"
				}},
			{name: "parents", form: "a list of references", def: "none", doc: "Rows of other tables that have to be there before a row of this one: the long form of a column's `references`.", read: readParents},
			{name: "events", form: "a list of mappings", def: "none: only other tables' references write it", doc: "Which events say something about a row, and what.", read: readEvents},
			{name: "on_delete", later: later("Until then leave deletes out with when:.")},
			{name: "unsafe_unique", later: later("It belongs to MySQL.")},
		},
	}
}

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
			{name: "merge", form: "`latest`, `first`, `max`, `min`, `union`, `touch`, `{ladder: […]}`", def: "`latest`",
				doc:  "How two values of the column become one. `latest`: the one of the newer version. `first`: of the older. `max`, `min`: by value. `ladder`: the higher rung. `union`: both lists' elements, each once, sorted. `touch`: the time of the last write that changed a value; no mapping sets it.",
				read: readMerge},
			{name: "unknown", form: "`ignore`, `dead`", def: "`dead`", doc: "What a value does that is no rung of the ladder: it says nothing, or its event is dead.", read: readUnknown},
			{name: "scope", form: "a name, or `key`", def: "`row`", doc: "Columns of one scope share a version, which is stored as `<scope>_version`; a mapping sets all of them or none. `key`, on tables with occupants: the column belongs to the row itself, whoever holds it.", read: readScope},
		}, referencesKeys()...),
	}
}

func typeKey() key[Column] {
	return key[Column]{name: "type", form: "`text`, `text(n)`, `bool`, `int`, `numeric`, `numeric(p,s)`, `float`, `timestamp`, `date`, `uuid`, `json`, `bytes`, `text[]`", needed: "type: text",
		doc: "What the column holds. An event with a value that does not fit is dead, before a database could round or cut it.", read: readType}
}

const untilWait = "Say missing: ensure, which inserts the parent with its key only, until its own event comes."

func referencesKeys() []key[Column] {
	return []key[Column]{
		{name: "references", form: "a table, or a map", def: "none", doc: "The table whose key this column holds; or another row of another table, by a map.", read: readReferences},
		{name: "missing", form: "`ensure`", def: "none: it has to be said", doc: "What happens while the parent is not there: it is inserted, key only. Waiting for it comes in a later version.",
			read: func(v value, c *Column) {
				if s, ok := readMissing(v); ok {
					c.reference().Missing = s
				}
			}},
		{name: "for", later: later(untilWait)},
	}
}

func mergeKeys() section[Column] {
	return section[Column]{
		path: "tables.<table>.columns.<column>.merge",
		keys: []key[Column]{
			{name: "ladder", form: "a list of texts", def: "none", doc: "The rungs, lowest first. NULL and what stands in the table already and is no rung are below all.", read: readLadder},
			{name: "unknown", form: "`ignore`, `dead`", def: "`dead`", doc: "As `unknown` of the column.", read: readUnknown},
			{name: "sum", later: later("")},
			{name: "count", later: later("")},
			{name: "chain", later: later("")},
		},
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
			{name: "missing", form: "`ensure`", def: "none: it has to be said", doc: "As `missing` of the column.",
				read: func(v value, r *Reference) { r.Missing, _ = readMissing(v) }},
			{name: "column", later: later("Until then a reference is to the parent's key.")},
			{name: "for", later: later(untilWait)},
		},
	}
}

func readMissing(v value) (string, bool) {
	s, ok := v.one("ensure", "wait")
	if s == "wait" {
		v.failLater("missing: wait", untilWait)
		return "", false
	}
	return s, ok
}

func (c *Column) reference() *Reference {
	if c.References == nil {
		c.References = &Reference{}
	}
	return c.References
}

func readTable(v value, t *Table) {
	t.Physical = t.Name
	tableKeys().read(v, t)
}

func readPhysical(v value, t *Table) {
	n, ok := v.name("the name of a table, as in booking or public.booking")
	if !ok {
		return
	}
	parts := strings.Split(n.Text, ".")
	if len(parts) > 2 {
		v.fail("`%s` has more than one dot: write table or schema.table.", show(v.node.Value))
		return
	}
	for _, p := range parts {
		if why := badIdentifier(p); why != "" {
			v.fail("`%s` cannot be the name of a table: %s.", show(v.node.Value), why)
			return
		}
	}
	t.Physical = n
}

// badIdentifier says why a text cannot be a name in a database, or "".
func badIdentifier(s string) string {
	switch {
	case s == "":
		return "a part of it is empty"
	case len(s) > nameLength:
		return "it is longer than 63 bytes"
	case !utf8.ValidString(s):
		return "it is not UTF-8"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "it holds a control character"
	case strings.TrimSpace(s) != s:
		return "it begins or ends with a space"
	}
	return ""
}

func readKey(v value, t *Table) {
	t.Key = readColumnMap(v, keyColumnKeys(), nil)
	if len(t.Key) == 0 && v.isMap() && len(v.node.Content) == 0 {
		v.fail("is empty; it has to name at least one column, as in {id: text}.")
	}
}

func readColumns(v value, t *Table) {
	t.Columns = readColumnMap(v, columnKeys(), checkColumn)
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

func readMerge(v value, c *Column) {
	if v.isMap() {
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
	case s == "sum" || s == "count" || s == "chain":
		v.failLater("merge: "+s, "")
	case !known:
		v.fail("`%s` is not a merge rule.%s", show(v.node.Value), didYouMean(s, []string{"latest", "first", "min", "max", "ladder", "union", "touch"}))
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

func readReferences(v value, c *Column) {
	r := c.reference()
	r.Pos, r.Path = v.pos(), v.path
	if !v.isMap() {
		r.Table, _ = v.name("the name of a table")
		return
	}
	beside := r.Missing
	if got := referenceKeys().read(v, r); got != nil {
		if _, ok := got["missing"]; !ok {
			r.Missing = beside
		}
	}
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
		if r.Missing == "" {
			item.fail("missing: wait is what a reference does by itself, and %s %s", notYet, untilWait)
			continue
		}
		t.Parents = append(t.Parents, r)
	}
}

// checkReference checks that the keys of a column's reference belong together.
func checkReference(c *Column, got map[string]value) {
	missing, said := got["missing"]
	at, has := got["references"]
	switch {
	case said && !has:
		missing.fail("belongs to references:, which is not there.")
		c.References = nil
	case said && slices.ContainsFunc(at.node.Content, func(n *yaml.Node) bool { return n.Value == "missing" }):
		missing.fail("is given twice: here and under references. Keep one.")
	case has && c.References.Missing == "":
		at.fail("missing: wait is what a reference does by itself, and %s %s", notYet, untilWait)
	}
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
	case c.Rule == merge.Touch && kind != merge.Timestamp:
		want = "timestamp"
	case (c.Rule == merge.Max || c.Rule == merge.Min) && (kind == merge.JSON || kind == merge.TextArray):
		want = "a type with an order, such as int, numeric, timestamp or text"
	}
	if want != "" {
		got["merge"].fail("%s is for %s, and the column is %s.", c.Rule, want, c.Type)
	}
}
