package config

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/merge"
)

// crossLists checks what mappings say is complete.
func (l *loader) crossLists(t *Table) {
	var first *Mapping
	for _, m := range t.Events {
		switch {
		case m.Replaces == nil:
		case first != nil:
			l.report(m.ReplacesAt, m.Path+".replaces", "the mapping on line %d replaces rows of %s already, and two lists could not both be complete. Put them into one mapping: type: takes a list, and each: a condition.", first.Pos.Line, t.Text)
		case t.Occupied():
			l.report(m.ReplacesAt, m.Path+".replaces", "%s has occupants, of which a complete list can name one and not the others, so a row that it names could be taken for gone. Leave out occupant: (line %d), or let the list's rows have a table of their own.", t.Text, occupantLine(t))
		default:
			first = m
			l.crossReplaces(t, m)
		}
	}
}

// occupantLine returns the line of the first mapping with an occupant, or with a
// chain.
func occupantLine(t *Table) int {
	for _, m := range t.Events {
		if m.Occupant != nil || m.Chain != nil {
			return m.Pos.Line
		}
	}
	return t.Pos.Line
}

// crossReplaces checks that the rows of a list are told apart from those of any
// other by their key: else a row that no list names any more could come back
// under another parent.
func (l *loader) crossReplaces(t *Table, m *Mapping) {
	if l.reportedAt(t.Path+".key") || len(t.Key) == 0 {
		return
	}
	for _, a := range m.Replaces {
		switch name := a.Column.Text; {
		case slices.Contains(columnNames(t.Key), name):
		case slices.Contains(columnNames(t.Columns), name):
			l.report(a.Column.Pos, a.Column.Path, "is not part of the key of %s, so that a row which one list no longer names could come back in another. Make it part of the key.", t.Text)
		default:
			l.report(a.Column.Pos, a.Column.Path, "is not a column of the key of %s.%s", t.Text, didYouMean(name, columnNames(t.Key)))
		}
	}
	if l.Touches(m.Path + ".replaces") {
		return
	}
	if len(m.Replaces) == len(t.Key) {
		l.report(m.ReplacesAt, m.Path+".replaces", "names the whole key of %s, so that a list could hold only one row. Name the columns that all rows of a list have in common.", t.Text)
	}
	slices.SortStableFunc(m.Replaces, func(a, b Assignment) int {
		return cmp.Compare(slices.Index(columnNames(t.Key), a.Column.Text), slices.Index(columnNames(t.Key), b.Column.Text))
	})
	l.warnOfParents(t, m)
}

var ofItem = regexp.MustCompile(`\b(item|index)\b`)

// warnOfParents warns of a list that is given by a part of its parent's key: if
// that part does not tell parents apart, nor does the key tell their rows apart.
func (l *loader) warnOfParents(t *Table, m *Mapping) {
	if len(m.Replaces) == 0 {
		return
	}
	refs, _ := references(t)
	for _, r := range refs {
		if l.Touches(r.Path) || l.Touches(m.Path+".key") || slices.ContainsFunc(m.Replaces, func(a Assignment) bool { return !says(r.Key, a.Expr) }) {
			continue
		}
		var lack []string
		for _, a := range r.Key {
			if !says(m.Key, a.Expr) && !ofItem.MatchString(a.Expr.Text) {
				lack = append(lack, a.Column.Text)
			}
		}
		if len(lack) > 0 {
			l.Add(Warning, m.ReplacesAt, m.Path+".replaces", "the key of %s has nothing for %s of its parent %s. If two parents may have all else alike, their rows are taken for each other: then add it to the key and to replaces.", t.Text, list(lack), r.Table.Text)
		}
	}
}

// crossChains checks tables whose identities follow each other.
func (l *loader) crossChains(t *Table) {
	shows := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Rule == merge.Chain })
	links := slices.IndexFunc(t.Events, func(m *Mapping) bool { return m.Chain != nil })
	if shows >= 0 && links < 0 && !l.unsure(t.Path+".events") {
		c := t.Columns[shows]
		l.report(c.Pos, c.Path, "shows the first identity of a chain, and no mapping of %s says what follows what. Give one chain:, as in chain: {previous: event.old_id}.", t.Text)
	}
	if links >= 0 && len(t.Key) > 0 && !l.Touches(t.Path+".key") && (len(t.Key) > 1 || t.Key[0].Type.Kind != merge.Text) {
		m := t.Events[links]
		var key []string
		for _, k := range t.Key {
			key = append(key, k.Text+": "+k.Type.String())
		}
		l.report(m.Chain.Pos, m.Chain.Path, "an identity that others follow is the whole key, as text, and the key of %s is {%s}.", t.Text, strings.Join(key, ", "))
	}
	for _, m := range t.Events {
		o := m.Occupant
		switch {
		case o == nil || l.Touches(o.Path) || l.unread[o.Path+".id"]:
		case t.Chained() && o.ID.Text != "":
			l.report(o.ID.Pos, o.ID.Path, "on a table with chains the key is the identity. Leave id: out.")
		case !t.Chained() && o.ID.Text == "":
			l.report(o.Pos, o.Path, "needs id:, for example id: event.payload.uri")
		}
	}
}

// crossCounters checks that what is counted can be counted once.
func (l *loader) crossCounters(c *Config, t *Table) {
	for _, col := range t.Columns {
		if col.Rule != merge.Sum && col.Rule != merge.Count || l.Touches(col.Path) {
			continue
		}
		if t.Occupied() && col.Scope.Text != merge.KeyScope {
			l.report(col.Pos, col.Path, "%s goes on whoever holds the row. Give it scope: key.", col.Rule)
		}
		for _, m := range t.Events {
			s := c.SourceNamed(m.From.Text)
			if s == nil || s.Preset.Text != presetHTTP || len(s.ID) > 0 || l.unsure(s.Path+".id") {
				continue
			}
			at, path := Pos{}, ""
			if m.Rest != nil {
				at, path = m.Rest.Pos, m.Rest.Path
			}
			for _, a := range m.Set {
				if a.Column.Text == col.Text {
					at, path = a.Column.Pos, a.Column.Path
				}
			}
			if path != "" {
				l.report(at, path, "%s takes each event once, and events of %s have no identity to know a second delivery by. Give sources.%s an id:, for example id: event.id.", col.Rule, s.Text, s.Text)
			}
		}
	}
}
