package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/merge"
)

// deletedAt is the column that on_delete: mark fills.
const deletedAt = "deleted_at"

func onDeleteKeys() section[OnDelete] {
	return section[OnDelete]{
		path: "tables.<table>.on_delete",
		keys: []key[OnDelete]{
			{name: "set", form: "columns and values", needed: "set: {deleted: true}", doc: "The row stays, and shows these values while it is deleted. A column that is declared under `columns` has to be of rule `latest`; one that is not gets the type of the value, and shows the opposite of a `bool`, or else NULL, while the row is not deleted.", read: readShown},
		},
	}
}

func readOnDelete(v value, t *Table) {
	const want = "mark, remove or {set: {…}}, as in {set: {deleted: true}}"
	d := &OnDelete{Pos: v.pos(), Path: v.path}
	t.OnDelete = d
	if v.isMap() {
		d.Rule = merge.DeleteSet
		onDeleteKeys().read(v, d)
		return
	}
	s, ok := v.text(want)
	switch {
	case !ok:
	case s == "mark":
		d.Rule = merge.DeleteMark
	case s == "remove":
		d.Rule = merge.DeleteRemove
	default:
		v.fail("is `%s`, but has to be %s.%s", show(v.node.Value), want, meant(s, []string{"mark", "remove"}))
	}
}

func readShown(v value, d *OnDelete) {
	entries, ok := v.entries("columns and values, as in {deleted: true}")
	if ok && len(entries) == 0 {
		v.fail("is empty: nothing would show that a row is deleted. Write a column and a value, as in {deleted: true}.")
	}
	for _, e := range entries {
		if why := badIdentifier(e.name); why != "" {
			e.key.fail("cannot be the name of a column: %s.", why)
			continue
		}
		if l, ok := e.literal(); ok {
			d.Set = append(d.Set, Shown{Literal: l, Type: typeOfLiteral(e.val)})
		}
	}
}

// typeOfLiteral returns the type that a value has by itself.
func typeOfLiteral(v value) merge.Type {
	switch {
	case v.isMap() || v.isList():
		return merge.Type{Kind: merge.JSON}
	case plain(v.node):
		switch v.node.ShortTag() {
		case "!!bool":
			return merge.Type{Kind: merge.Bool}
		case "!!int":
			return merge.Type{Kind: merge.Int}
		case "!!float":
			return merge.Type{Kind: merge.Numeric}
		}
	}
	return merge.Type{Kind: merge.Text}
}

// takeDeletedAt takes deleted_at out of the columns of a table whose deletes
// mark: Hookfold fills it, whether it is declared or not.
func (l *loader) takeDeletedAt(t *Table) {
	if !t.marks() {
		return
	}
	ours := func(c Column) bool { return strings.EqualFold(c.Text, deletedAt) }
	wrong := func(c Column) {
		l.report(c.Pos, c.Path, "is what on_delete: mark fills with the time of the delete. Declare it as deleted_at: timestamp, leave it out, or call yours otherwise.")
	}
	for _, k := range t.Key {
		if ours(k) {
			wrong(k)
		}
	}
	t.Columns = slices.DeleteFunc(t.Columns, func(c Column) bool {
		if !ours(c) {
			return false
		}
		if (c.Text != deletedAt || c.Type.Kind != merge.Timestamp || c.Rule != merge.Latest || c.Scope.Text != "" || c.References != nil) && !l.Touches(c.Path) {
			wrong(c)
		}
		return true
	})
}

func (t *Table) marks() bool { return t.OnDelete != nil && t.OnDelete.Rule == merge.DeleteMark }

// deletes says what the mapping does that needs on_delete, "" if nothing.
func (m *Mapping) deletes() string {
	switch {
	case m.Delete != nil:
		return "delete"
	case m.Replaces != nil:
		return "replaces"
	}
	return ""
}

func (l *loader) crossDeletes(c *Config, t *Table) {
	d := t.OnDelete
	i := slices.IndexFunc(t.Events, func(m *Mapping) bool { return m.deletes() != "" })
	switch {
	case i < 0 && d == nil:
	case d == nil && l.unread[t.Path+".on_delete"]:
	case d == nil:
		m := t.Events[i]
		l.report(t.Pos, t.Path, "has a mapping with %s (line %d) but no on_delete. Say on_delete: mark (fills deleted_at), remove, or {set: {…}}.", m.deletes(), m.Pos.Line)
	case i < 0 && !l.unsure(t.Path+".events"):
		l.report(d.Pos, d.Path, "nothing deletes rows of %s: no mapping has delete or replaces. Leave on_delete out, or add such a mapping, as in {from: shop, type: order.deleted, key: {id: event.id}, delete: true}.", t.Text)
	}
	switch {
	case d == nil || l.Touches(d.Path):
	case d.Rule == merge.DeleteRemove:
		l.crossWaits(t)
		l.crossRemove(c, t)
	case d.Rule == merge.DeleteMark && t.Occupied():
		l.crossWaits(t)
	case d.Rule == merge.DeleteSet:
		if t.Occupied() {
			l.crossWaits(t)
		}
		for i := range d.Set {
			l.crossShown(t, &d.Set[i])
		}
	}
}

// crossWaits refuses changes that depend on whether a row is there where a
// delete takes the row away: before or after the delete they would say something
// else.
func (l *loader) crossWaits(t *Table) {
	for _, m := range t.Events {
		if m.IfMissing != merge.Insert {
			l.report(m.Pos, m.Path+".if_missing", "whether the row is there would depend on what has come first, since a delete can take it away (on_delete, line %d). Say if_missing: insert, or keep the row: on_delete: mark or {set: {…}} on a table without occupants.", t.OnDelete.Pos.Line)
		}
	}
}

// crossRemove refuses to remove rows of which more than their columns has to be
// known afterwards.
func (l *loader) crossRemove(c *Config, t *Table) {
	var kept []string
	for _, col := range t.Columns {
		switch col.Rule {
		case merge.First, merge.Max, merge.Min, merge.Ladder, merge.Union, merge.Sum, merge.Count:
			kept = append(kept, fmt.Sprintf("%s of %s", col.Rule, col.Text))
		}
	}
	if len(kept) > 0 {
		l.report(t.OnDelete.Pos, t.OnDelete.Path, "remove forgets what a row has held, and %s would have to go on from it when a late event makes the row again. Say mark or {set: {…}}, or make them latest.", list(kept))
	}
	var children []string
	for _, child := range c.Tables {
		refs, _ := references(child)
		if l.unsure(child.Path + ".events") {
			continue
		}
		if slices.ContainsFunc(refs, func(r *Reference) bool { return r.Table.Text == t.Text && !replaced(child, r) }) {
			children = append(children, fmt.Sprintf("%s (line %d)", child.Text, child.Pos.Line))
		}
	}
	if len(children) > 0 {
		l.report(t.OnDelete.Pos, t.OnDelete.Path, "rows of %s are parents in %s, which would be left without them. Say mark or {set: {…}}. Only children that go with their parent, by replaces: and the column that references it, let it be removed.", t.Text, list(children))
	}
}

// replaced tells whether rows of a child are replaced together by the parent
// that a reference names, so that they go when it does.
func replaced(child *Table, r *Reference) bool {
	for _, i := range child.Group() {
		if child.Key[i].References == r {
			return true
		}
	}
	for _, m := range child.Events {
		if m.Replaces != nil && len(r.Key) > 0 {
			return !slices.ContainsFunc(r.Key, func(a Assignment) bool { return !says(m.Replaces, a.Expr) })
		}
	}
	return false
}

// says tells whether one of the assignments has the same expression.
func says(list []Assignment, x Expr) bool {
	return slices.ContainsFunc(list, func(a Assignment) bool {
		return strings.TrimSpace(a.Expr.Text) == strings.TrimSpace(x.Text)
	})
}

// crossShown gives a column of on_delete: {set: …} its type and value.
func (l *loader) crossShown(t *Table, s *Shown) {
	at, path := s.Column.Pos, s.Column.Path
	wrong := func(format string, args ...any) { l.report(at, path, format, args...) }
	if l.reportedAt(t.Path+".columns") || l.reportedAt(t.Path+".key") {
		return
	}
	i := slices.IndexFunc(t.Columns, func(c Column) bool { return strings.EqualFold(c.Text, s.Column.Text) })
	switch {
	case i >= 0 && t.Columns[i].Text != s.Column.Text:
		wrong("is %s in %s.columns. Databases may take the two for one: write them alike.", t.Columns[i].Text, t.Path)
		return
	case slices.Contains(columnNames(t.Key), s.Column.Text):
		wrong("is part of the key of %s, and a row that is deleted keeps its key. Leave it out.", t.Text)
		return
	case i >= 0 && l.Touches(t.Columns[i].Path):
		return
	case i >= 0 && t.Columns[i].Rule != merge.Latest:
		wrong("is a column of rule %s, whose value a delete does not change. Name one of rule latest, or one that is not declared, as in {deleted: true}.", t.Columns[i].Rule)
		return
	case i >= 0 && t.Columns[i].Scope.Text == merge.KeyScope:
		wrong("belongs to the row whoever holds it (scope: key), and a delete is about one occupant. Name another column.")
		return
	case i >= 0 && s.Type.Kind == merge.JSON && t.Columns[i].Type.Kind != merge.JSON && t.Columns[i].Type.Kind != merge.TextArray:
		wrong("is a map or a list, and the column is %s.", t.Columns[i].Type)
		return
	case i >= 0:
		s.Type = t.Columns[i].Type
	case s.Null || s.Type.Kind == merge.JSON:
		wrong("is not a column of %s, and its value does not tell its type. Declare it under %s.columns.", t.Text, t.Path)
		return
	default:
		s.Flag = true
		if why, ok := ownColumns(t)[strings.ToLower(s.Column.Text)]; ok && !t.Beside && !l.unsure(t.Path+".keep_versions") {
			wrong("%s", ownColumn(why))
			return
		}
	}
	if s.Null {
		return
	}
	value, err := merge.ParseValue(s.Type, s.Text)
	if err != nil {
		wrong("%s cannot be the value of a column of type %s: %v.", show(s.Text), s.Type, err)
		return
	}
	s.Value = value
}
