package mapping

import (
	"slices"
	"time"

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
	// Delete, Each, Previous and Next are nil where the mapping has none.
	Delete, Each, Previous, Next *Expr
	// Fetch is the fetch that is made before the mapping speaks, or nil.
	Fetch *Fetch
	// Replaces gives the group's key, in the order of the table's Group, which is
	// empty where the list is of the whole table; nil if
	// the list is not complete.
	Replaces []*Expr

	when    *Expr
	rest    *Expr
	parents []*parentRef
	// Of the fetch, for the mapping's source.
	url, until, orElse *Expr
	headers            []eventHeader
	lost               bool    // it names a fetch that is none, or broken
	beside             []*Expr // what is evaluated of an event beside the mapping
	name               []byte
	names              expr.Names // that its expressions may read
	reads              expr.Names // beside what an event always has
	broken             bool
	// versioned says that its changes need a version, counts that it sets a
	// column that takes each event once.
	versioned, counts bool
}

// Versioned tells whether the mapping's changes need a version: it sets a column
// that has one, or what it says is compared with deletes.
func (m *Mapping) Versioned() bool { return m.versioned }

// Counts tells whether the mapping sets a column that takes each event once.
func (m *Mapping) Counts() bool { return m.counts }

// Deletes tells whether the mapping may delete rows, and DeletesOnly whether it
// does nothing else.
func (m *Mapping) Deletes() bool     { return m.Delete != nil }
func (m *Mapping) DeletesOnly() bool { return m.Delete != nil && m.Config.Delete.Text == "true" }

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
	// wait is how long to wait for it; 0 is to insert it.
	wait time.Duration
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

// LocalClock is the clock of versions that tell when a read began.
const LocalClock = "local"

// Clock names the clock of the mapping's versions.
func (m *Mapping) Clock() string {
	if m.Config.Clock.Text != "" {
		return m.Config.Clock.Text
	}
	if slices.ContainsFunc(m.Version, func(p *VersionPart) bool { return p.Expr.Reads&expr.FetchedAt != 0 }) {
		return LocalClock
	}
	if !slices.ContainsFunc(m.Version, func(p *VersionPart) bool { return p.Expr.Reads&^(expr.Position|expr.Received) != 0 || p.Expr.Constant }) {
		return "this journal" // whoever sends, positions are in one order
	}
	return m.Source.Name
}

// Exprs returns every expression of the mapping.
func (m *Mapping) Exprs() []*Expr {
	all := append(m.Deciding(), m.rest, m.url)
	all = append(all, m.beside...)
	for _, h := range m.headers {
		all = append(all, h.expr)
	}
	for _, p := range m.Version {
		all = append(all, p.Expr)
	}
	for _, a := range m.Columns {
		if a != nil && !a.Rest {
			all = append(all, a.Expr)
		}
	}
	return slices.DeleteFunc(all, func(e *Expr) bool { return e == nil })
}

// Deciding are the expressions that decide whether the mapping takes an event,
// and which rows it is about.
func (m *Mapping) Deciding() []*Expr {
	all := append([]*Expr{m.when, m.OccupantID, m.Since, m.Delete, m.Each, m.Previous, m.Next}, m.Key...)
	all = append(all, m.Replaces...)
	for _, p := range m.parents {
		all = append(all, p.exprs...)
	}
	return slices.DeleteFunc(all, func(e *Expr) bool { return e == nil })
}

// incomplete tells of a mapping that the loader could not read whole; it has
// reported why.
func (m *Mapping) incomplete() bool {
	lost := func(given *config.Expr, e *Expr) bool { return given != nil && e == nil }
	lacks := m.lost || slices.Contains(m.Key, nil) || slices.Contains(m.Replaces, nil) || len(m.Version) == 0 ||
		lost(m.Config.When, m.when) || lost(m.Config.Rest, m.rest) || lost(m.Config.Delete, m.Delete) || lost(m.Config.Each, m.Each)
	if o := m.Config.Occupant; o != nil {
		lacks = lacks || m.OccupantID == nil && !m.Table.Chained || lost(o.Since, m.Since)
	}
	if c := m.Config.Chain; c != nil {
		lacks = lacks || lost(c.Previous, m.Previous) || lost(c.Next, m.Next)
	}
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
	const beside = expr.FetchedAt | expr.Received | expr.Position | expr.Envelope | expr.Body | expr.Raw | expr.Headers | expr.Query | expr.Path
	for _, e := range m.Exprs() {
		m.reads |= e.Reads & beside
	}
}
