package config

import (
	"slices"
	"strings"

	"github.com/hookfold/hookfold/merge"
)

// cross checks what one part of the config says about another.
func (l *loader) cross(c *Config) {
	for _, t := range c.Tables {
		l.crossTarget(c, t)
	}
	l.crossNames(c)
	l.crossFetches(c)
	for _, t := range c.Tables {
		l.mergeKeyColumns(t)
		l.takeDeletedAt(t)
	}
	for _, t := range c.Tables {
		l.crossColumns(t)
		for _, m := range t.Events {
			l.crossMapping(c, t, m)
		}
		l.crossReferences(c, t)
		l.crossLists(t)
		l.crossChains(t)
		l.crossCounters(c, t)
		l.crossDeletes(c, t)
	}
	for _, x := range c.Lanes {
		l.crossLane(c, x)
	}
	l.crossCycles(c)
	l.crossCalled(c)
	l.crossTests(c)
}

func (l *loader) crossTarget(c *Config, t *Table) {
	switch n := t.Target; {
	case n.Text != "" && c.TargetNamed(n.Text) == nil && l.reportedAt("targets"):
	case n.Text != "" && c.TargetNamed(n.Text) == nil:
		l.report(n.Pos, n.Path, "`%s` is not a target.%s", l.shown(n), didYouMean(n.Text, namesOf(c.Targets)))
	case n.Text != "" || l.Touches(t.Path+".target") || l.unread[t.Path+".target"]:
	case len(c.Targets) == 1:
		t.Target = c.Targets[0].Name
	case len(c.Targets) == 0 && (l.Touches("targets") || l.unread["targets"] || t != c.Tables[0]):
	case len(c.Targets) == 0:
		l.report(t.Pos, t.Path, "needs a target, and there is none. Add targets: {db: {url: \"${DATABASE_URL}\"}}.")
	default:
		l.report(t.Pos, t.Path, "needs target:, one of %s.", list(namesOf(c.Targets)))
	}
}

// The names of tables that Hookfold makes: those of a target begin with
// sideTables, and the records of a table's occupants have its name and
// occupantsTable.
const (
	sideTables     = "hookfold_"
	occupantsTable = "_occupants"
)

// crossNames refuses two tables that are one in the database, and those that
// Hookfold makes itself.
func (l *loader) crossNames(c *Config) {
	type place struct{ target, name string }
	seen, records := map[place]*Table{}, map[place]*Table{}
	for _, t := range c.Tables {
		if t.Occupied() {
			records[place{t.Target.Text, t.Physical.Text + occupantsTable}] = t
		}
	}
	for _, t := range c.Tables {
		own := t.Physical.Text[strings.LastIndexByte(t.Physical.Text, '.')+1:]
		of := records[place{t.Target.Text, t.Physical.Text}]
		switch {
		case strings.HasPrefix(strings.ToLower(own), sideTables):
			l.report(t.Physical.Pos, t.Physical.Path, "%s is the name of a table that Hookfold keeps for itself: they all begin with %s. Call yours otherwise.", l.shown(t.Physical), sideTables)
			continue
		case of != nil:
			l.report(t.Physical.Pos, t.Physical.Path, "%s is where Hookfold keeps the records of the occupants of %s (line %d). Call yours otherwise.", l.shown(t.Physical), of.Text, of.Pos.Line)
			continue
		case t.Occupied() && len(own)+len(occupantsTable) > nameLength:
			l.report(t.Physical.Pos, t.Physical.Path, "the records of its occupants are kept in the table %s, and that name is longer than 63 bytes. Give it a shorter name.", clip(own+occupantsTable))
		}
		p := place{t.Target.Text, t.Physical.Text}
		if first, ok := seen[p]; ok {
			l.report(t.Physical.Pos, t.Physical.Path, "%s is the table of %s (line %d) already. One table of the database is one table here: put all its events there.", l.shown(t.Physical), first.Text, first.Pos.Line)
			continue
		}
		seen[p] = t
	}
}

// mergeKeyColumns takes columns that repeat a column of the key out of the
// columns: they may only say what the key's column references.
func (l *loader) mergeKeyColumns(t *Table) {
	t.Columns = slices.DeleteFunc(t.Columns, func(c Column) bool {
		i := slices.IndexFunc(t.Key, func(k Column) bool { return k.Text == c.Text })
		if i < 0 {
			return false
		}
		k := &t.Key[i]
		switch {
		case l.Touches(c.Path) || l.Touches(k.Path):
		case c.References == nil:
			l.report(c.Pos, c.Path, "is part of the key (line %d), and needs no place under columns.", k.Pos.Line)
		case k.References != nil:
			l.report(c.References.Pos, c.References.Path, "is given twice: here and in the key (line %d). Keep one.", k.References.Pos.Line)
		case c.Type != k.Type:
			l.report(c.Pos, c.Path, "is %s here and %s in the key (line %d). Give it one type.", c.Type, k.Type, k.Pos.Line)
		case c.Rule != merge.Latest || c.Scope.Text != "":
			l.report(c.Pos, c.Path, "is part of the key (line %d), which has neither a merge rule nor a scope.", k.Pos.Line)
		default:
			k.References = c.References
		}
		return true
	})
}

// crossColumns refuses columns that Hookfold makes itself, and scopes that do
// not fit the table.
func (l *loader) crossColumns(t *Table) {
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Scope.Text == merge.KeyScope && !t.Occupied() && !l.unsure(t.Path+".events") {
			l.report(c.Scope.Pos, c.Scope.Path, "key is the scope of what belongs to a row whoever occupies it, and no mapping of %s has an occupant. Leave it out.", t.Text)
		}
	}
	if t.Beside || l.unsure(t.Path+".keep_versions") {
		return // what Hookfold keeps is in a table of its own
	}
	ours := ownColumns(t)
	for _, c := range slices.Concat(t.Key, t.Columns) {
		if why, ok := ours[strings.ToLower(c.Text)]; ok {
			l.report(c.Pos, c.Path, "%s", ownColumn(why))
		}
	}
	for _, c := range t.Columns {
		if name := versionColumn(t, &c); len(name) > nameLength {
			l.report(c.Pos, c.Path, "its version is kept in the column %s, and that name is longer than 63 bytes. Give it a shorter name or scope, or say keep_versions: beside.", clip(name))
		}
	}
}

func ownColumn(why string) string {
	return "is a column that Hookfold keeps for itself: " + why + ". Call yours otherwise, or say keep_versions: beside."
}

// versionColumn returns the name of the column that keeps a column's version, ""
// if that is the row's.
func versionColumn(t *Table, c *Column) string {
	switch {
	case c.Rule == merge.First:
		return c.Text + "__first"
	case c.Rule != merge.Latest:
		return ""
	case c.Scope.Text == merge.RowScope || c.Scope.Text == "" && !t.VersionsPerColumn:
		return ""
	case c.Scope.Text == "":
		return c.Text + "_version"
	}
	return c.Scope.Text + "_version"
}

// ownColumns returns the columns that Hookfold itself keeps in a table, in lower
// case, and what each is for.
func ownColumns(t *Table) map[string]string {
	ours := map[string]string{
		"row_version":    "the version of the row",
		"seen_version":   "the greatest version that any event of the row had",
		"delete_version": "the version of the row's deletion",
	}
	if t.Occupied() {
		ours["occupant_id"] = "the identity that holds the row"
		ours["occupant_since"] = "since when it does"
	}
	for _, c := range t.Columns {
		if name := versionColumn(t, &c); name != "" {
			ours[strings.ToLower(name)] = "the version of " + c.Text
		}
	}
	return ours
}

func (l *loader) crossMapping(c *Config, t *Table, m *Mapping) {
	if m.From.Text != "" && c.SourceNamed(m.From.Text) == nil && len(c.Sources) > 0 {
		l.report(m.From.Pos, m.From.Path, "`%s` is not a source.%s", l.shown(m.From), didYouMean(m.From.Text, namesOf(c.Sources)))
	}
	l.crossKey(t.Text, t.Key, m.Key, m.Pos, m.Path+".key", t.Path+".key")
	if l.reportedAt(t.Path + ".columns") {
		return
	}
	for _, a := range m.Set {
		l.crossSet(t, a)
	}
	if m.Rest != nil && len(t.Columns) == 0 {
		l.report(m.Rest.Pos, m.Rest.Path, "%s has no columns besides its key, so there is nothing to read.", t.Text)
	}
	if t.Occupied() && !t.Chained() && m.Occupant == nil && !l.Touches(m.Path) {
		l.crossOccupant(t, m)
	}
}

// reportedAt tells whether an error is reported at exactly this path, so that
// what is below it is not known. So it is if the key was misspelt.
func (l *loader) reportedAt(path string) bool {
	return l.unread[path] || slices.ContainsFunc(l.List, func(p Problem) bool { return p.Path == path && p.Severity == Error })
}

// unsure tells whether what is at a path, or a part of it, could not be read.
func (l *loader) unsure(path string) bool { return l.unread[path] || l.Touches(path) }

// crossKey checks that a key is given whole, and nothing else.
func (l *loader) crossKey(table string, key []Column, given []Assignment, pos Pos, path, keyPath string) {
	if len(key) == 0 || given == nil || l.reportedAt(keyPath) || l.reportedAt(path) {
		return
	}
	unknown := false
	for _, a := range given {
		if !slices.Contains(columnNames(key), a.Column.Text) {
			unknown = true
			l.report(a.Column.Pos, a.Column.Path, "is not a column of the key of %s.%s", table, didYouMean(a.Column.Text, columnNames(key)))
		}
	}
	var lack []string
	for _, k := range key {
		if !slices.ContainsFunc(given, func(a Assignment) bool { return a.Column.Text == k.Text }) {
			lack = append(lack, k.Text)
		}
	}
	if len(given) > 0 {
		pos = given[0].Column.Pos
	}
	if len(lack) > 0 && !unknown {
		l.report(pos, path, "lacks %s: a key is given whole, or it is none.", list(lack))
	}
}

func (l *loader) crossSet(t *Table, a Assignment) {
	i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Text == a.Column.Text })
	switch {
	case i >= 0 && (t.Columns[i].Rule == merge.Touch || t.Columns[i].Rule == merge.Chain):
		l.report(a.Column.Pos, a.Column.Path, "is set by Hookfold itself (merge: %s, line %d). Leave it out.", t.Columns[i].Rule, t.Columns[i].Pos.Line)
	case t.marks() && a.Column.Text == deletedAt:
		l.report(a.Column.Pos, a.Column.Path, "is set by Hookfold itself (on_delete: mark, line %d). Leave it out.", t.OnDelete.Pos.Line)
	case i >= 0:
	case slices.Contains(columnNames(t.Key), a.Column.Text):
		l.report(a.Column.Pos, a.Column.Path, "is part of the key of %s, which key: gives. Leave it out.", t.Text)
	default:
		l.report(a.Column.Pos, a.Column.Path, "is not a column of %s.%s Columns are declared under %s.columns, as in %s: text.", t.Text, meant(a.Column.Text, columnNames(t.Columns)), t.Path, a.Column.Text)
	}
}

// crossOccupant refuses a mapping without an occupant that sets what belongs to
// one: nobody could tell whose it is.
func (l *loader) crossOccupant(t *Table, m *Mapping) {
	if m.Delete != nil {
		l.report(m.Pos, m.Path, "deletes without saying which occupant, and other mappings of %s have one: the delete of a former one would take the row from the one that holds it. Give occupant:.", t.Text)
		return
	}
	var theirs []string
	for _, c := range t.Columns {
		if c.Scope.Text == merge.KeyScope || c.Rule == merge.Touch || c.Rule == merge.Chain {
			continue
		}
		if m.Rest != nil || slices.ContainsFunc(m.Set, func(a Assignment) bool { return a.Column.Text == c.Text }) {
			theirs = append(theirs, c.Text)
		}
	}
	if len(theirs) > 0 {
		l.report(m.Pos, m.Path, "sets %s without saying for which occupant, and other mappings of %s have one. Give occupant:, or the columns scope: key.", list(theirs), t.Text)
	}
}
