package config

import (
	"slices"
	"strings"
)

// references returns every reference of a table, with the column that holds it,
// nil for one of parents.
func references(t *Table) (refs []*Reference, columns []*Column) {
	for _, cols := range [][]Column{t.Key, t.Columns} {
		for i := range cols {
			if r := cols[i].References; r != nil {
				refs, columns = append(refs, r), append(columns, &cols[i])
			}
		}
	}
	for i := range t.Parents {
		refs, columns = append(refs, &t.Parents[i]), append(columns, nil)
	}
	return refs, columns
}

func (l *loader) crossReferences(c *Config, t *Table) {
	refs, columns := references(t)
	for i, r := range refs {
		if r.Table.Text == "" {
			continue
		}
		parent := c.TableNamed(r.Table.Text)
		switch {
		case parent == nil && l.reportedAt("tables"):
		case parent == nil:
			l.report(r.Table.Pos, r.Table.Path, "`%s` is not a table of this config.%s", l.shown(r.Table), didYouMean(r.Table.Text, namesOf(c.Tables)))
		case parent.Target.Text != t.Target.Text && parent.Target.Text != "" && t.Target.Text != "":
			l.report(r.Table.Pos, r.Table.Path, "%s is in target %s, and %s in %s: a row and its parent are written in one transaction, so they have to be in one database.", parent.Text, parent.Target.Text, t.Text, t.Target.Text)
		case len(r.Key) > 0:
			l.crossKey(parent.Text, parent.Key, r.Key, r.Pos, r.Path+".key", parent.Path+".key")
		case columns[i] == nil || len(parent.Key) == 0 || l.Touches(parent.Path+".key") || l.Touches(columns[i].Path):
		case len(parent.Key) > 1:
			l.report(r.Pos, r.Path, "the key of %s has %d columns, %s, and one column cannot hold it. Write references: {table: %s, key: {…}}.", parent.Text, len(parent.Key), list(columnNames(parent.Key)), parent.Text)
		case parent.Key[0].Type.Kind != columns[i].Type.Kind:
			l.report(r.Pos, r.Path, "%s is %s, and the key of %s is %s. Give both one type.", columns[i].Text, columns[i].Type, parent.Text, parent.Key[0].Type)
		}
	}
}

// crossCycles refuses tables that are, over others, parents of themselves: none
// of them could be written first. Rows of one table may have each other for
// parents.
func (l *loader) crossCycles(c *Config) {
	const visiting, done = 1, 2
	state := map[*Table]int{}
	var path []string
	var visit func(t *Table)
	visit = func(t *Table) {
		state[t] = visiting
		path = append(path, t.Text)
		refs, _ := references(t)
		for _, r := range refs {
			parent := c.TableNamed(r.Table.Text)
			switch {
			case parent == nil || state[parent] == done:
			case parent == t && len(r.Key) == 0 && slices.ContainsFunc(t.Key, func(k Column) bool { return k.References == r }):
				l.report(r.Table.Pos, r.Table.Path, "this is the key of %s itself, so that each row would be its own parent. Leave the reference out.", t.Text)
			case parent == t:
			case state[parent] == visiting:
				circle := append(slices.Clone(path[slices.Index(path, parent.Text):]), parent.Text)
				l.report(r.Table.Pos, r.Table.Path, "the references %s make a circle, so no table could be written first. Leave one of them out.", strings.Join(circle, " → "))
			default:
				visit(parent)
			}
		}
		path = path[:len(path)-1]
		state[t] = done
	}
	for _, t := range c.Tables {
		if state[t] == 0 {
			visit(t)
		}
	}
}
