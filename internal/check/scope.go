package check

import (
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/merge"
)

// scopes checks that the mapping sets of each scope all columns or none, and
// that none of them can be left unset: they have one version.
func (c *checker) scopes(m *mapping.Mapping) {
	t := m.Table.Table.Table
	for s, scope := range t.Scopes() {
		columns := t.ScopeColumns(s)
		var set, missing []string
		for _, i := range columns {
			if m.Columns[i] != nil {
				set = append(set, t.Columns[i].Name)
			} else {
				missing = append(missing, t.Columns[i].Name)
			}
		}
		if len(set) == 0 {
			continue
		}
		if len(missing) > 0 {
			c.add(config.Error, m.Config.Pos, m.Config.Path,
				"sets %s but not %s, which %s the same version (scope %s): a newer event of this mapping would leave an older %s under a newer version. Set %s, or give one a scope: of its own, or use versions: column.",
				and(set), and(missing), has(missing), scope, missing[0], bothOrAll(len(columns)))
			continue
		}
		for _, i := range columns {
			c.mayBeUnset(m, m.Columns[i], t.Columns[i].Name, scope, len(columns))
		}
	}
}

func has(names []string) string {
	if len(names) > 1 {
		return "have"
	}
	return "has"
}

func bothOrAll(n int) string {
	if n == 2 {
		return "both"
	}
	return "all"
}

func (c *checker) mayBeUnset(m *mapping.Mapping, a *mapping.Assignment, name, scope string, columns int) {
	if a.Expr == nil {
		return
	}
	pos, path := a.Expr.At.Pos, a.Expr.At.Path
	switch {
	case scope == merge.RowScope && a.Expr.MaybeUnset && !a.Rest:
		c.add(config.Error, pos, path, "unset is not allowed in scope row: the row's version would rise while %s stays. Give %s a scope: of its own.", name, name)
	case scope == merge.RowScope && a.Expr.MaybeAbsent && !a.Rest:
		c.add(config.Note, pos, path, "where %s is absent, %s becomes NULL, also over a fuller older event. If absent is to say nothing, give %s a scope: of its own.", a.Expr.Text, name, name)
	case scope == merge.RowScope || columns == 1:
	case a.Rest:
		c.add(config.Error, pos, path, "scope %s has %d columns and one version, and %s of \"*\" may be lacking: the scope's version would rise while %s stays. Give each of its columns a scope: of its own.", scope, columns, name, name)
	case a.Expr.MaybeUnset || a.Expr.MaybeAbsent:
		what := "unset"
		if !a.Expr.MaybeUnset {
			what = "absent"
		}
		c.add(config.Error, pos, path, "scope %s has %d columns and one version, and %s may be %s: the scope's version would rise while %s stays. Give each of its columns a scope: of its own.", scope, columns, name, what, name)
	}
}

// occupants checks what the mappings of an occupant table say together.
func (c *checker) occupants(t *mapping.Table) {
	if !t.Table.Table.Occupied {
		return
	}
	var since, first *mapping.Mapping
	for _, m := range t.Mappings {
		if m.Broken() || m.Config.Occupant == nil {
			continue
		}
		first = orFirst(first, m)
		if m.Since == nil {
			continue
		}
		if since == nil {
			since = m
			continue
		}
		a, b := componentKind(since.Since), componentKind(m.Since)
		if a != 0 && b != 0 && a != b {
			c.add(config.Error, m.Since.At.Pos, m.Since.At.Path, "is %s, in %s it is %s. The newest occupant is the one with the greatest since: all have to be of one kind.", kindName(b), place(since), kindName(a))
		}
	}
	if since == nil && first != nil && !t.Chained {
		c.add(config.Warning, first.Config.Pos, first.Config.Path+".occupant", "no mapping says since: when an occupant holds the row, so the greatest id shows, not the newest. Add since:, the time at which the occupant came to be.")
	}
}

func orFirst(a, b *mapping.Mapping) *mapping.Mapping {
	if a != nil {
		return a
	}
	return b
}

func kindName(k merge.ComponentKind) string {
	switch k {
	case merge.TimeComponent:
		return "a time"
	case merge.IntComponent:
		return "a number"
	}
	return fmt.Sprintf("of kind %q", byte(k))
}

// rescheduled warns of rows of calendly that a late cancel could take from the
// invitee who holds them.
func (c *checker) rescheduled(m *mapping.Mapping) {
	if m.Source.Preset.Name != "calendly" || m.Table.Occupied || !m.Takes("invitee.canceled") || !feedsColumn(m) {
		return
	}
	for _, e := range m.Key {
		for _, p := range e.Paths {
			if name := p.String(); name == "event.payload.uri" || strings.HasPrefix(name, "event.payload.scheduled_event.") {
				return // a row for each invitee or meeting
			}
		}
	}
	c.add(config.Warning, m.Config.Pos, m.Config.Path, "calendly reschedules by canceling one invitee and creating another, in any order, and both are events of this row: a late cancel of the former would take it from the new one. Say occupant: {id: event.payload.uri, since: event.payload.created_at}.")
}
