package config

import (
	"strings"
	"unicode"
	"unicode/utf8"
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
					t.Beside, t.BesideAt = s == "beside", v.pos()
				}},
			{name: "guard", form: "`statement`, `trigger`", def: "`statement`", doc: "What keeps rows right. `statement`: the statements that Hookfold writes with; nobody else writes the columns it maps. `trigger`: a trigger of the database, which joins whatever a writer sends, so that other programs may write them too; `migrate` makes it, and `hookfold sql --guard-trigger` prints it.",
				read: func(v value, t *Table) {
					s, _ := v.one("statement", "trigger")
					t.Guarded, t.GuardAt = s == "trigger", v.pos()
				}},
			{name: "parents", form: "a list of references", def: "none", doc: "Rows of other tables that have to be there before a row of this one: the long form of a column's `references`.", read: readParents},
			{name: "on_delete", form: "`mark`, `remove`, or a map", def: "none: no mapping deletes", doc: "What becomes of a row that is deleted. `mark` keeps it, and fills its column `deleted_at` with the time of the event. `remove` removes it. Either way it is remembered that it is deleted and since when, so that no late event brings it back. Needed where a mapping has `delete` or `replaces`.", read: readOnDelete},
			{name: "events", form: "a list of mappings", def: "none: only other tables' references write it", doc: "Which events say something about a row, and what.", read: readEvents},
			{name: "unsafe_unique", form: "a list of indexes", def: "none", doc: "On MySQL, the unique indexes besides the key that the table may have, each by its name or its column. MySQL takes any unique index for the key, so a table that has others is refused unless they are named here. Then it is written by other statements: a row whose value another row has waits, and never writes that one.",
				read: readUnsafeUnique},
		},
	}
}

func readTable(v value, t *Table) {
	t.Physical = t.Name
	tableKeys().read(v, t)
}

func readUnsafeUnique(v value, t *Table) {
	list, ok := v.items()
	if !ok {
		return
	}
	for _, x := range list {
		if n, ok := x.name("the name of a unique index, or of its column"); ok {
			t.UnsafeUnique = append(t.UnsafeUnique, n)
		}
	}
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
