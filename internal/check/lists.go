package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/merge"
)

// elements warns of a list whose elements are all about one row.
func (c *checker) elements(m *mapping.Mapping) {
	reads := func(e *mapping.Expr) bool { return e != nil && e.Reads&(expr.Item|expr.Index) != 0 }
	if m.Each == nil || slices.ContainsFunc(m.Key, reads) || reads(m.OccupantID) {
		return
	}
	at := m.Each.At
	if m.Replaces != nil {
		c.add(config.Warning, at.Pos, at.Path, "the key reads neither item nor index, so that all elements are one row, and of them only the last counts.")
		return
	}
	if slices.ContainsFunc(m.Version, func(p *mapping.VersionPart) bool { return reads(p.Expr) }) {
		return
	}
	for r := range m.Table.Registers() {
		if !r.Existence && m.Feeds(r) {
			c.add(config.Warning, at.Pos, at.Path, "the key reads neither item nor index, so that all elements are one row and have one version: which of them counts means nothing. Put item or index into the key, or index at the end of the version.")
			return
		}
	}
}

// counters tells what the identity of a source cannot do for what is counted.
func (c *checker) counters(m *mapping.Mapping) {
	if !m.Counts() {
		return
	}
	for i, a := range m.Columns {
		if rule := m.Table.Columns[i].Rule; a == nil || rule != merge.Sum && rule != merge.Count {
			continue
		}
		if m.Source.IDReads&expr.Position != 0 {
			c.add(config.Note, a.At.Pos, a.At.Path, "the id of %s reads position: an event whose identity that is counts again when its sender sends it again.", m.Source.Name)
		}
		if unsigned(m.Source) {
			c.add(config.Note, a.At.Pos, a.At.Path, "the id of %s is read from what its signature does not cover: who has seen a delivery could send it again under another id. Prefer an id in the body.", m.Source.Name)
		}
	}
}

// unsigned tells whether the identity of a source's events comes from beside what
// is signed.
func unsigned(s *mapping.Source) bool {
	v := s.Config.Verify
	return v != nil && v.Kind == "hmac" && s.IDReads&(expr.Headers|expr.Query|expr.Path) != 0 && !strings.Contains(v.Signed, "{id}")
}

// deletes checks what a table says of deletes and complete lists.
func (c *checker) deletes(t *mapping.Table) {
	d := t.Config.OnDelete
	if d == nil {
		return
	}
	var own []string
	for _, s := range t.Scopes() {
		if s != merge.RowScope && s != merge.KeyScope {
			own = append(own, s)
		}
	}
	if d.Rule == merge.DeleteRemove && len(own) > 0 && slices.Contains(t.Scopes(), merge.RowScope) {
		c.add(config.Note, d.Pos, d.Path, "what scope %s says after a delete makes the row again without its other columns, which therefore have to allow NULL.", and(own))
	}
	for _, m := range t.Mappings {
		if d.Rule == merge.DeleteMark && m.Deletes() && !m.Broken() && !m.Source.HasTime() {
			c.add(config.Note, m.Delete.At.Pos, m.Delete.At.Path, "deleted_at stays NULL: source %s has no time.", m.Source.Name)
		}
	}
	for _, e := range t.Emptied {
		c.emptied(t, e)
	}
}

// emptied warns of rows that stay when their parent goes.
func (c *checker) emptied(t *mapping.Table, e *mapping.Emptied) {
	child := e.Child.Config
	if t.Group != nil {
		c.add(config.Warning, child.Pos, child.Path, "rows of %s that a list no longer names go without an event of their own, and what %s has of them stays. Give %s lists of its own, from the same events, whose replaces names what those of %s do.", t.Config.Text, child.Text, child.Text, t.Config.Text)
	}
	if e.Why == "" {
		return
	}
	for _, m := range t.Mappings {
		if !m.Deletes() || m.Broken() || slices.ContainsFunc(e.Child.Mappings, func(x *mapping.Mapping) bool { return x.Replaces != nil && sameEvents(m, x) }) {
			continue
		}
		severity := config.Warning
		if t.OnDelete == merge.DeleteRemove {
			severity = config.Error // they would be left without their parent
		}
		c.add(severity, m.Delete.At.Pos, m.Delete.At.Path, "the rows of %s stay: %s. Let its mapping with replaces take these events too, with an empty list: each: 'type == \"…\" ? [] : …'.", child.Text, e.Why)
	}
}

// sameEvents tells whether one mapping takes all the types of another.
func sameEvents(m, by *mapping.Mapping) bool {
	if m.Source != by.Source {
		return false
	}
	if len(m.Config.Types) == 0 {
		return len(by.Config.Types) == 0
	}
	return !slices.ContainsFunc(m.Config.Types, func(n config.Name) bool { return !by.Takes(n.Text) })
}

// remembers tells in the verdict of a table how its rows go.
func remembers(t *mapping.Table) string {
	var out string
	switch {
	case t.OnDelete == merge.DeleteNone:
	case t.Occupied:
		out += "; a delete is remembered in the record of its occupant"
	default:
		out += "; a delete is remembered, and an older write does not bring the row back"
	}
	if t.Group != nil {
		out += "; a complete list is remembered with its version, and removes what is older"
	}
	return out
}

// runsOn tells of a column that goes on from what a deleted row has held.
func runsOn(t *mapping.Table, col *merge.Column) string {
	switch col.Rule {
	case merge.Latest, merge.Touch, merge.Chain, merge.Flag:
		return ""
	}
	if t.OnDelete == merge.DeleteNone || t.OnDelete == merge.DeleteRemove || t.Occupied && t.OfKey(t.Column(col.Name)) {
		return ""
	}
	return ", and it goes on from there when a deleted row is made again"
}

// waits tells which parents a column waits for, or has inserted.
func waits(t *mapping.Table, column string) string {
	for _, cols := range [][]config.Column{t.Config.Key, t.Config.Columns} {
		for _, col := range cols {
			if col.Text != column || col.References == nil {
				continue
			}
			if col.References.Missing == "ensure" {
				return fmt.Sprintf("; its row of %s is inserted if it is missing", col.References.Table.Text)
			}
			return fmt.Sprintf("; its event waits until its row of %s is known", col.References.Table.Text)
		}
	}
	return ""
}

// arrivals names the mappings that say when a row is gone by the order of
// arrival.
func arrivals(t *mapping.Table) string {
	var out []string
	if t.Remembers() {
		for _, m := range t.Feeders(mapping.Register{Existence: true}) {
			if arrival(m) {
				out = append(out, placeIn(t, m))
			}
		}
	}
	return strings.Join(out, ", ")
}

// skips returns the first mapping that sets a column and says nothing where the
// row is missing, or nil.
func skips(t *mapping.Table, column int) *mapping.Mapping {
	for _, m := range t.Mappings {
		if !m.Broken() && m.Columns[column] != nil && m.Config.IfMissing == merge.Skip {
			return m
		}
	}
	return nil
}
