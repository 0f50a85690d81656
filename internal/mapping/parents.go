package mapping

import (
	"slices"
	"strings"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/merge"
)

// parents compiles what a mapping's changes need to be there.
func (c *compiler) parents(out *Mapping) {
	t := out.Table.Config
	add := func(ref *config.Reference, column, key int) {
		parent := c.plan.Table(ref.Table.Text)
		if parent == nil || len(parent.Config.Key) == 0 {
			return
		}
		p := &parentRef{table: parent, column: column, key: key}
		if ref.Missing != "ensure" {
			p.wait = ref.For
		}
		if len(ref.Key) > 0 {
			p.exprs = make([]*Expr, len(parent.Key))
			for _, a := range ref.Key {
				if k := keyPlace(parent.Config, a.Column.Text); k >= 0 {
					p.exprs[k] = c.compile(out.Source, a.Expr, out.names)
				}
			}
		}
		out.parents = append(out.parents, p)
	}
	for i := range t.Parents {
		add(&t.Parents[i], -1, -1)
	}
	for i, k := range t.Key {
		if k.References != nil {
			add(k.References, -1, i)
		}
	}
	for _, col := range t.Columns {
		if col.References == nil {
			continue
		}
		if k := keyPlace(t, col.Text); k >= 0 {
			add(col.References, -1, k)
		} else if i := out.Table.Column(col.Text); out.Columns[i] != nil {
			add(col.References, i, -1)
		}
	}
}

// parent names a row that the change needs; NULL is no parent, and neither is
// the row itself.
func (v *evaluation) parent(m *Mapping, p *parentRef, c *merge.Change) (merge.Parent, bool) {
	out := merge.Parent{Table: p.table.Table.Table, Wait: p.wait > 0, For: p.wait}
	ok := true
	switch {
	case p.exprs != nil:
		out.Key, ok = v.key(m, p.exprs, p.table.Key, p.table.Config.Text+".", "")
	case p.key >= 0:
		parts := c.Key.Parts()
		if c.Key == "" || p.key >= len(parts) {
			return out, false
		}
		out.Key, ok = v.parentKey(m, p, m.Table.Key[p.key].Name, parts[p.key])
	case p.column < 0 || !c.Cells[p.column].Set || c.Cells[p.column].Value.IsNull():
		return out, false
	default:
		out.Key, ok = v.parentKey(m, p, m.Table.Columns[p.column].Name, c.Cells[p.column].Value.Text())
	}
	return out, ok && (p.table != m.Table || out.Key != c.Key)
}

func (v *evaluation) parentKey(m *Mapping, p *parentRef, column, text string) (merge.Key, bool) {
	val, err := merge.ParseValue(p.table.Key[0].Type, text)
	if err != nil {
		v.fault(m, column, "as the key of %s: %v", p.table.Config.Text, err)
		return "", false
	}
	return merge.NewKey(val.Text()), true
}

// kin finds out which mappings insert rows of other tables, and of which tables
// a delete empties groups.
func (c *compiler) kin() {
	for _, t := range c.plan.Tables {
		for _, m := range t.Mappings {
			for _, p := range m.parents {
				if p.wait == 0 && !slices.Contains(p.table.Stubs, m) {
					p.table.Stubs = append(p.table.Stubs, m)
				}
			}
		}
		if len(t.Group) > 0 {
			c.emptied(t)
		}
	}
}

// emptied finds the parents whose lists the rows of a table are: their deletes
// empty the group.
func (c *compiler) emptied(child *Table) {
	for _, col := range child.Config.Key {
		if col.References != nil {
			c.emptiedBy(child, col.References, col.Text)
		}
	}
	for _, col := range child.Config.Columns {
		if col.References != nil && (len(col.References.Key) > 0 || keyPlace(child.Config, col.Text) >= 0) {
			c.emptiedBy(child, col.References, col.Text)
		}
	}
	for i := range child.Config.Parents {
		c.emptiedBy(child, &child.Config.Parents[i], "")
	}
}

func (c *compiler) emptiedBy(child *Table, ref *config.Reference, column string) {
	parent := c.plan.Table(ref.Table.Text)
	if parent == nil || parent == child || parent.OnDelete == merge.DeleteNone {
		return
	}
	e := &Emptied{Child: child}
	var lacks []string
	for _, at := range child.Group {
		name := child.Key[at].Name
		place := -1
		switch {
		case len(ref.Key) == 0 && name == column:
			place = 0
		case len(ref.Key) > 0:
			place = keyGiven(parent.Config, ref, replacesExpr(child.Config, name))
		}
		if e.From = append(e.From, place); place < 0 {
			lacks = append(lacks, name)
		}
	}
	switch {
	case len(lacks) == len(e.From):
		return // it is not the parent's list
	case len(lacks) > 0:
		e.Why = "the key of " + parent.Config.Text + " does not tell " + strings.Join(lacks, ", ")
	case parent.Occupied:
		e.Why = "a delete of " + parent.Config.Text + " is about one occupant, not about its row"
	default:
		for _, m := range parent.Mappings {
			if m.Deletes() {
				child.Emptying = append(child.Emptying, m)
			}
		}
	}
	parent.Emptied = append(parent.Emptied, e)
}

func replacesExpr(t *config.Table, column string) string {
	for _, m := range t.Events {
		for _, a := range m.Replaces {
			if a.Column.Text == column {
				return strings.TrimSpace(a.Expr.Text)
			}
		}
	}
	return ""
}

// keyGiven returns the place in the parent's key of the column that a reference
// gives an expression, or -1.
func keyGiven(parent *config.Table, ref *config.Reference, text string) int {
	for _, a := range ref.Key {
		if text != "" && strings.TrimSpace(a.Expr.Text) == text {
			return keyPlace(parent, a.Column.Text)
		}
	}
	return -1
}

// empty gives what a delete of a parent says of its lists: that they are empty.
func (v *evaluation) empty(m *Mapping, c *merge.Change) []*merge.Change {
	var out []*merge.Change
	parts := c.Key.Parts()
	for _, e := range m.Table.Emptied {
		if e.Why != "" {
			continue
		}
		group := make([]string, len(e.From))
		ok := true
		for i, from := range e.From {
			col := e.Child.Key[e.Child.Group[i]]
			val, err := merge.ParseValue(col.Type, parts[from])
			if err != nil {
				v.fault(m, "", "as %s of %s: %v", col.Name, e.Child.Config.Text, err)
				ok = false
				break
			}
			group[i] = val.Text()
		}
		if ok {
			out = append(out, v.set(m, e.Child, merge.NewKey(group...), c.Version))
		}
	}
	return out
}

// set says that a group is complete as of a version.
func (v *evaluation) set(m *Mapping, t *Table, group merge.Key, version merge.Version) *merge.Change {
	return &merge.Change{
		Table: t.Table.Table, From: v.event.Ref(), Mapping: m.Config.Path, Key: group, Version: version,
		Replaces: true, DeletedAt: v.deletedAt(m, t, version), Cells: make([]merge.Cell, len(t.Columns)),
	}
}

// readsElement tells whether an expression is another for each element.
func readsElement(e *Expr) bool { return e != nil && e.Reads&(expr.Item|expr.Index) != 0 }
