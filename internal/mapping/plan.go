// Package mapping turns events into changes: it compiles a config's expressions
// once, and then says, for each event, what it means for which rows. It reads no
// clock and does no I/O.
package mapping

import (
	"runtime/debug"
	"slices"
	"sync"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/source"
)

// Plan is a compiled config. It is safe for concurrent use, but one event must
// not be mapped by two goroutines at once, because its JSON is read lazily.
type Plan struct {
	// Config is what the plan was compiled from.
	Config *config.Config
	// Sources are in the order of the config.
	Sources []*Source
	// Tables are in the order in which they are written: parents before
	// children, then by name.
	Tables []*Table
	// Lanes are in the order of the config.
	Lanes []*Lane
	// Fetches are in the order of the config.
	Fetches []*Fetch

	bySource map[string]*Source
}

// Digest stands for what the plan makes of events: two programs of one build
// whose configs say the same of sources, fetches and tables have the same. It is never 0.
func (p *Plan) Digest() uint64 {
	return config.Digest(build(), p.Config.Sources, p.Config.Fetches, p.Config.Tables)
}

// build names the build of this program, "" if it has no name.
var build = sync.OnceValue(func() (name string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			name = s.Value
		}
	}
	return info.Main.Version + " " + name
})

// Source returns a source by name, or nil.
func (p *Plan) Source(name string) *Source { return p.bySource[name] }

// Table returns a table by its name in the config, or nil.
func (p *Plan) Table(name string) *Table {
	for _, t := range p.Tables {
		if t.Config.Text == name {
			return t
		}
	}
	return nil
}

// Lane returns a lane by name, or nil.
func (p *Plan) Lane(name string) *Lane {
	for _, l := range p.Lanes {
		if l.Name == name {
			return l
		}
	}
	return nil
}

// Targets returns the names of the targets that have a table, in the order of
// the config.
func (p *Plan) Targets() []string {
	var names []string
	for _, t := range p.Config.Targets {
		if slices.ContainsFunc(p.Tables, func(x *Table) bool { return x.Target == t.Text }) {
			names = append(names, t.Text)
		}
	}
	return names
}

// RunsIn tells whether a lane runs a statement in a target.
func (p *Plan) RunsIn(target string) bool {
	return slices.ContainsFunc(p.Lanes, func(l *Lane) bool { return l.Config.SQL != nil && l.Config.SQL.Target.Text == target })
}

// SinkTargets returns the names of the targets that have a table, or in which a
// lane runs a statement, in the order of the config.
func (p *Plan) SinkTargets() []string {
	var names []string
	tables := p.Targets()
	for _, t := range p.Config.Targets {
		if p.RunsIn(t.Text) || slices.Contains(tables, t.Text) {
			names = append(names, t.Text)
		}
	}
	return names
}

// Source is a source at run time.
type Source struct {
	Name string
	// Source verifies and splits; its preset made it.
	source.Source
	Config *config.Source
	Preset *source.Preset
	// NeedsFirstReceipt says that an expression reads received, so that
	// event.FirstReceived must be the first receipt of the event's identity
	// before the event is mapped.
	NeedsFirstReceipt bool
	// IDReads are the names that the config's expressions of the events'
	// identity read.
	IDReads expr.Names

	when     *Expr
	mappings map[string][]*Mapping // by target, in the order of the tables
	slots    int                   // results of one event
	typed    bool                  // every event has a type, as the config says
	readBody func(*event.Delivery) (event.JSON, error)
	pool     sync.Pool // of *evaluation
	broken   bool
}

// Split is what a delivery holds.
type Split struct {
	// Events are the events to be mapped. Their FirstReceived is the delivery's
	// receipt.
	Events []*event.Event
	// Skipped counts events that the source's when: turned away.
	Skipped int
	// Faults are events of which the source's when: could not be told.
	Faults []EventFault
}

// EventFault is an event that cannot be mapped at all.
type EventFault struct {
	Event  *event.Event
	Reason string
}

// Table is a table at run time.
type Table struct {
	sink.Table
	// Target is the name of the target it lives in.
	Target string
	// Rank is 0 for a table without parents, else one more than the greatest
	// rank of its parents.
	Rank   int
	Config *config.Table
	// Mappings are in the order of the config.
	Mappings []*Mapping
	// Stubs are the mappings, of any table, whose changes insert rows here for
	// want of a parent, and Emptying those whose deletes empty groups of rows
	// here.
	Stubs, Emptying []*Mapping
	// Emptied are the tables of which a delete here empties a group.
	Emptied []*Emptied

	ignores []bool              // per column: an unknown rung says nothing
	since   merge.ComponentKind // of occupants; 0 goes by the value
}

// Remembers tells whether the table remembers deletes, so that every change of
// it has a version to be compared with them.
func (t *Table) Remembers() bool { return t.OnDelete != merge.DeleteNone || t.Group != nil }

// Emptied is a table whose rows are replaced, a group at a time, by lists of a
// parent: with the parent its group is gone.
type Emptied struct {
	Child *Table
	// From holds for each part of the group's key its place in the parent's.
	From []int
	// Why tells why a delete of the parent cannot empty the group, "" if it does.
	Why string
}

// Outcome is what one event means for one target.
type Outcome struct {
	// Changes are in the order of the tables, then of their mappings.
	Changes []*merge.Change
	// Faults are changes that cannot be made. Their reasons make the event
	// dead; the other changes land all the same.
	Faults []Fault
	// Reads are what has to be read before some mappings can speak: none of what
	// these say is among Changes, and the event is not settled.
	Reads []*Read
	// Wanted says that at least one mapping of the target took the event; if
	// not, the event is skipped and counted.
	Wanted bool
	// Replaced counts texts in which NUL or text that is not UTF-8 was
	// replaced, and Ignored the rungs that no ladder knows and that unknown:
	// ignore has passed over.
	Replaced, Ignored int
}

// Fault is a change that cannot be made.
type Fault struct {
	// Table is the table's name in the config, Column the column at fault, ""
	// where it is not one column.
	Table, Column string
	Reason        string
	// Mapping is the mapping's place in the config, and Missing tells that the
	// event lacks a field that the mapping reads.
	Mapping string
	Missing bool
}
