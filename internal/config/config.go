// Package config reads a config file into typed structs that keep their place
// in the file, strictly: every key is known, every problem is reported with its
// line and column, all at once.
//
// A file is read in three steps. The YAML is read into a tree; where that fails
// because an expression lacks quotes, the scanner says so and puts them in, so
// that the rest is read too. Sections, each a table of its keys, then turn the
// tree into a Config; the reference in docs/config.md is written from the same
// tables. At last what one part says about another is checked: names, keys,
// references, scopes. Expressions are not compiled here.
package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookfold/hookfold/merge"
)

// Config is a whole config.
type Config struct {
	// File is the name of the file as it was given.
	File string
	// Listen is the address for webhooks, Admin the one for health and metrics.
	Listen, Admin string
	Journal       Journal
	// Sources, Targets, Tables and Lanes are in the order of the file.
	Sources []*Source
	Targets []*Target
	Tables  []*Table
	Lanes   []*Lane
	Fetches []*Fetch
	Tests   []*Test
}

// Pos is a place in the file; the zero Pos is the file as a whole.
type Pos struct{ Line, Column int }

// Expr is a CEL expression and where it stands.
type Expr struct {
	Text string
	// Pos is where the scalar begins; Quoted says that this is a quotation mark,
	// so that the text begins one column further.
	Pos    Pos
	Quoted bool
	// Path is tables.booking.events[0].set.status.
	Path string
}

// Name is a name or literal and where it stands.
type Name struct {
	Text string
	Pos  Pos
	Path string
}

// Journal says where deliveries are kept, and for how long.
type Journal struct {
	URL Name
	// Keep is the age from which settled deliveries are removed; default 30
	// days, 0 is never. MaxSize is the size of the journal in bytes from which the oldest
	// settled deliveries are removed; 0, the default, is unlimited.
	Keep    time.Duration
	MaxSize int64
	// Index says that the journal remembers which deliveries are about which
	// rows.
	Index bool
}

// Source is one entry of sources.
type Source struct {
	Name
	Preset      Name
	Secrets     []Secret
	VerifyToken string
	Verify      *Verify
	// URL is the public URL of the source, for schemes that sign it.
	URL    string
	Format string // json (default) or form
	// Split, ID, Type, Time and When are nil where not given. An ID may be a
	// list: its parts make the identity, and a null part means none.
	Split, Type, Time, When *Expr
	ID                      []Expr
	// Handshake gives the answer to a request that is no delivery; nil is none.
	Handshake *Expr
	Zone      *time.Location
	// MaxAhead is how far an event's time may lie ahead of its receipt; default
	// 24h, negative for no limit.
	MaxAhead time.Duration
	// Tolerance is how far the signed time may lie from the clock; 0 takes the
	// preset's, negative is off.
	Tolerance time.Duration
	// MaxBody is the most bytes of a request; default 5 MiB.
	MaxBody int64
	// BadText is replace (default: NUL and invalid UTF-8 become U+FFFD) or dead.
	BadText string
}

// Secret is one secret of a source, already expanded.
type Secret struct {
	Value string
	Until time.Time
	Pos   Pos
}

// Verify is the scheme of an http source.
type Verify struct {
	Pos             Pos
	Kind            string // hmac, basic, bearer, header, none
	Hash            string // sha256, sha1, sha512
	Header          string
	Encoding        string // hex, base64
	Prefix          string
	Signed          string
	TimestampHeader string
	IDHeader        string
	Username        string
}

// Table is one entry of tables.
type Table struct {
	Name
	// Target is the target's name, the only one if it was left out.
	Target Name
	// Physical is the table's name in the database; default its name here.
	Physical Name
	Key      []Column
	Columns  []Column
	// VersionsPerColumn is versions: column.
	VersionsPerColumn bool
	// Beside is keep_versions: beside; BesideAt is where it says so.
	Beside   bool
	BesideAt Pos
	// Guarded is guard: trigger; GuardAt is where it says so.
	Guarded bool
	GuardAt Pos
	// UnsafeUnique are the unique indexes besides the key that the table may have on
	// MySQL.
	UnsafeUnique []Name
	Parents      []Reference
	// OnDelete is nil where nothing deletes rows.
	OnDelete *OnDelete
	Events   []*Mapping
}

// References are the table's references to its parents, by columns and by
// parents:.
func (t *Table) References() []Reference {
	out := slices.Clone(t.Parents)
	for _, c := range slices.Concat(t.Key, t.Columns) {
		if c.References != nil {
			out = append(out, *c.References)
		}
	}
	return out
}

// OnDelete says what becomes of a row that is deleted.
type OnDelete struct {
	Pos  Pos
	Path string
	Rule merge.DeleteRule
	// Set gives what columns show while the row is deleted, with merge.DeleteSet.
	Set []Shown
}

// Shown is what a column shows while its row is deleted.
type Shown struct {
	Literal
	// Type is the declared column's or, of a column that is not declared, that
	// of the literal.
	Type  merge.Type
	Value merge.Value
	// Flag tells that the column is not declared: it has the rule merge.Flag.
	Flag bool
}

// Column is a column of a table: of its key, or mapped.
type Column struct {
	Name
	Type merge.Type
	// The rest is not used for a key's column, but for References.
	Rule  merge.Rule
	Rungs []string
	// UnknownIgnore is unknown: ignore of a ladder; else an unknown rung makes
	// the event dead.
	UnknownIgnore bool
	// Scope is the scope as written, "" if none was.
	Scope      Name
	References *Reference
}

// Reference names a parent: the row that a column, or a list of key
// expressions, points at.
type Reference struct {
	Pos     Pos
	Path    string
	Table   Name
	Missing string // wait (default) or ensure
	// For is how long to wait, with Missing wait; default 24h.
	For time.Duration
	// Key gives the parent's key by expression; nil if the column's own value
	// is the key.
	Key []Assignment
}

// Mapping is one entry of a table's events.
type Mapping struct {
	Pos  Pos
	Path string
	From Name
	// Types are patterns with * over the event's type; none is every type.
	Types    []Name
	When     *Expr
	Key      []Assignment
	Occupant *Occupant
	// Delete tells which events delete the row; nil is none, and the text true
	// is all.
	Delete *Expr
	// Each is a list, of which each element makes a change; nil is none.
	// Replaces names the rows that it is all of, by columns of the key, in the
	// key's order; nil is none, and without a column it is the whole table.
	// ReplacesAt is where it is said.
	Each       *Expr
	Replaces   []Assignment
	ReplacesAt Pos
	Chain      *Chain
	// Version is nil for the default, the event's time.
	Version []Expr
	// Set gives each column's expression; Rest is the object of "*", nil if
	// there is none.
	Set  []Assignment
	Rest *Expr
	// IfMissing is insert (default), wait or skip.
	IfMissing merge.Missing
	// Clock names the clock of the mapping's versions; default its source.
	Clock Name
	// Fetch names the fetch that is made before its events are mapped; no text is
	// none.
	Fetch Name
}

// Assignment gives a column an expression.
type Assignment struct {
	Column Name
	Expr   Expr
}

// Occupant is the identity that a mapping's events are about.
type Occupant struct {
	Pos  Pos
	Path string
	// ID has no text on a table whose Chained is true: there the key is the
	// identity.
	ID    Expr
	Since *Expr
}

// Chain says which identity took the place of which: that of the key came after
// Previous, or before Next. One of the two may be nil.
type Chain struct {
	Pos            Pos
	Path           string
	Previous, Next *Expr
}

// Test is one entry of tests.
type Test struct {
	Name
	// Send names samples (calendly/invitee.created) or gives whole deliveries.
	Send []Delivery
	// Expect holds, per table, rows with the columns that are to be compared.
	Expect []Expected
}

// Delivery is a delivery of a test: a sample by its name, or a body. Source is
// the source that it is sent to, for a sample too.
type Delivery struct {
	Pos    Pos
	Path   string
	Sample string
	Source string
	Body   []byte // JSON
	Header map[string]string
	// Fetched is what fetches read for its events: JSON by name, "null" if the
	// object is not there.
	Fetched map[string][]byte
}

// Expected is the expectation on one table: exactly these rows.
type Expected struct {
	Table Name
	Rows  [][]Literal
}

// Literal is a column's expected value; Null tells null from "".
type Literal struct {
	Column Name
	Text   string
	Null   bool
}

// Severity tells what a problem means.
type Severity string

// The severities of a problem. Errors keep a config from being used; warnings
// do not; notes only tell.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Problem is one thing that is wrong with a config.
type Problem struct {
	Severity Severity `json:"severity"`
	Pos      Pos      `json:"-"`
	// Path is tables.booking.events[0].set.status, "" for the file as a whole.
	Path string `json:"path,omitempty"`
	// Text says what is wrong and what to do.
	Text string `json:"text"`
}

// Problems is a list of problems, and an error if any of them is.
type Problems struct {
	File string
	List []Problem
}

// Add appends a problem.
func (p *Problems) Add(s Severity, pos Pos, path, format string, args ...any) {
	p.List = append(p.List, Problem{Severity: s, Pos: pos, Path: path, Text: fmt.Sprintf(format, args...)})
}

// Err returns the problems as an error if one of them is an Error, else nil.
func (p *Problems) Err() error {
	for _, x := range p.List {
		if x.Severity == Error {
			return p
		}
	}
	return nil
}

// Sort orders the problems by their place in the file.
func (p *Problems) Sort() {
	slices.SortStableFunc(p.List, func(a, b Problem) int {
		return cmp.Or(a.Pos.Line-b.Pos.Line, a.Pos.Column-b.Pos.Column)
	})
}

// Error lists the problems, a line each.
func (p *Problems) Error() string {
	lines := make([]string, len(p.List))
	for i, x := range p.List {
		lines[i] = p.Line(x)
	}
	return strings.Join(lines, "\n")
}

// Line renders a problem as file:line:column: path: text.
func (p *Problems) Line(x Problem) string {
	at := p.File
	if x.Pos.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", p.File, x.Pos.Line, x.Pos.Column)
	}
	text := x.Text
	if x.Path != "" {
		text = x.Path + ": " + text
	}
	if x.Severity != Error {
		text = string(x.Severity) + ": " + text
	}
	return at + ": " + text
}

// SourceNamed returns a source by name, or nil.
func (c *Config) SourceNamed(name string) *Source {
	for _, s := range c.Sources {
		if s.Text == name {
			return s
		}
	}
	return nil
}

// TableNamed returns a table by its name in the config, or nil.
func (c *Config) TableNamed(name string) *Table {
	for _, t := range c.Tables {
		if t.Text == name {
			return t
		}
	}
	return nil
}

// Chained tells whether identities that follow each other share one row.
func (t *Table) Chained() bool {
	return slices.ContainsFunc(t.Events, func(m *Mapping) bool { return m.Chain != nil }) &&
		!slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Rule == merge.Chain })
}

// Occupied tells whether rows have occupants, as those of a chain do.
func (t *Table) Occupied() bool {
	return t.Chained() || slices.ContainsFunc(t.Events, func(m *Mapping) bool { return m.Occupant != nil })
}

// Group returns the places in Key of the columns by which a list replaces rows,
// nil if none does; none of them is the whole table.
func (t *Table) Group() []int {
	for _, m := range t.Events {
		if m.Replaces == nil {
			continue
		}
		group := []int{}
		for i, k := range t.Key {
			if slices.ContainsFunc(m.Replaces, func(a Assignment) bool { return a.Column.Text == k.Text }) {
				group = append(group, i)
			}
		}
		return group
	}
	return nil
}

// TargetNamed returns a target by name, or nil.
func (c *Config) TargetNamed(name string) *Target {
	for _, t := range c.Targets {
		if t.Text == name {
			return t
		}
	}
	return nil
}
