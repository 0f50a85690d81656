package mapping

import (
	"slices"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/merge"
)

// Mapping is one entry of a table's events, compiled.
type Mapping struct {
	Config *config.Mapping
	Table  *Table
	Source *Source
	// Key is in the order of the table's key.
	Key []*Expr
	// OccupantID and Since are nil where the mapping names no occupant, or not
	// since when.
	OccupantID, Since *Expr
	// Version is the tuple: the event's time, if the config gives none.
	Version      []*VersionPart
	VersionGiven bool
	// Columns is in the order of the table's columns; nil for a column that the
	// mapping does not set.
	Columns []*Assignment

	when    *Expr
	rest    *Expr
	parents []*parentRef
	name    []byte
	reads   expr.Names // beside what an event always has
	broken  bool
	// versioned says that it sets a column that needs a version.
	versioned bool
}

// Versioned tells whether the mapping sets a column that needs a version. If it
// does not, its changes have none.
func (m *Mapping) Versioned() bool { return m.versioned }

// Assignment is what a mapping says about one column.
type Assignment struct {
	// At is the column where it is set.
	At config.Name
	// Expr gives the value, or with Rest the object that has it as a member.
	Expr *Expr
	Rest bool
}

// VersionPart is one element of a version's tuple.
type VersionPart struct {
	Expr *Expr
	// Kind is 0 if nothing tells whether it is a time or a number; then the
	// value does.
	Kind merge.ComponentKind

	position bool
}

type parentRef struct {
	table *Table
	// The parent's key is that of a column, a part of the key, or exprs.
	column, key int
	exprs       []*Expr
}

// When returns the mapping's condition, or nil.
func (m *Mapping) When() *Expr { return m.when }

// Broken tells that one of its expressions did not compile.
func (m *Mapping) Broken() bool { return m.broken }

// Takes tells whether the mapping is for events of a type; its condition is
// apart.
func (m *Mapping) Takes(typ string) bool {
	return len(m.Config.Types) == 0 || slices.ContainsFunc(m.Config.Types, func(n config.Name) bool { return expr.Glob(n.Text, typ) })
}

// ByPosition tells whether an element of the version is the order of arrival.
func (p *VersionPart) ByPosition() bool { return p.position }

// Clock names the clock of the mapping's versions.
func (m *Mapping) Clock() string {
	if m.Config.Clock.Text != "" {
		return m.Config.Clock.Text
	}
	return m.Source.Name
}

// Exprs returns every expression of the mapping.
func (m *Mapping) Exprs() []*Expr {
	all := append([]*Expr{m.when, m.OccupantID, m.Since, m.rest}, m.Key...)
	for _, p := range m.Version {
		all = append(all, p.Expr)
	}
	for _, a := range m.Columns {
		if a != nil && !a.Rest {
			all = append(all, a.Expr)
		}
	}
	for _, p := range m.parents {
		all = append(all, p.exprs...)
	}
	return slices.DeleteFunc(all, func(e *Expr) bool { return e == nil })
}

// incomplete tells of a mapping that the loader could not read whole; it has
// reported why.
func (m *Mapping) incomplete() bool {
	lacks := slices.Contains(m.Key, nil) || len(m.Version) == 0 ||
		m.Config.When != nil && m.when == nil || m.Config.Rest != nil && m.rest == nil ||
		m.Config.Occupant != nil && (m.OccupantID == nil || m.Config.Occupant.Since != nil && m.Since == nil)
	for _, a := range m.Columns {
		lacks = lacks || a != nil && a.Expr == nil
	}
	for _, p := range m.parents {
		lacks = lacks || slices.Contains(p.exprs, nil)
	}
	return lacks
}

// readable finds out what the mapping reads that an event need not always have
// the same: it is part of what a version's hash is over.
func (m *Mapping) readable() {
	const beside = expr.Received | expr.Position | expr.Envelope | expr.Body | expr.Raw | expr.Headers | expr.Query | expr.Path
	for _, e := range m.Exprs() {
		m.reads |= e.Reads & beside
	}
}
