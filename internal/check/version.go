package check

import (
	"regexp"
	"slices"
	"time"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/merge"
)

// versioned checks that a mapping that needs a version has one, and reports what
// its version cannot do.
func (c *checker) versioned(m *mapping.Mapping) {
	s := m.Source
	if !m.Versioned() {
		if m.VersionGiven && !m.Counts() {
			c.add(config.Note, m.Version[0].Expr.At.Pos, m.Version[0].Expr.At.Path, "is not used: this mapping sets no column that needs a version.")
		}
		return
	}
	if !m.VersionGiven && !s.HasTime() {
		c.add(config.Error, m.Table.Config.Pos, m.Table.Config.Path,
			"needs a version%s, and source %s has no time. Give version:, for example [position] (order of arrival)%s.", whyVersion(m), s.Name, orRule(m))
		return
	}
	for _, p := range m.Version {
		pos, path := p.Expr.At.Pos, p.Expr.At.Path
		switch {
		case p.ByPosition() || p.Expr.Reads&expr.Position != 0:
			c.add(config.Note, pos, path, "order of arrival: a provider that reorders is not corrected.")
		case p.Expr.Reads&expr.Received != 0 && !s.HasID():
			c.add(config.Warning, pos, path, "is arrival-ordered: source %s gives its events no identity, so an event that comes again counts as newer. Give the source an id:, or put a time of the event in the version.", s.Name)
		case p.Expr.Reads&expr.Received != 0:
			c.add(config.Note, pos, path, "received is the first receipt of an event's identity: a provider that reorders is not corrected.")
		case p.Kind == 0:
			c.add(config.Note, pos, path, "nothing tells whether %s is a time or a number, so its value does. Write timestamp(…) or int(…) around it, and a value of the other kind is dead instead of out of order.", p.Expr.Text)
		}
	}
	c.grain(m)
}

// whyVersion says why a mapping needs a version where its columns do not tell.
func whyVersion(m *mapping.Mapping) string {
	switch {
	case feedsColumn(m):
		return ""
	case m.Table.Remembers():
		return " to be compared with deletes"
	}
	return " for the parents that it inserts, to be compared with their deletes"
}

func orRule(m *mapping.Mapping) string {
	if feedsColumn(m) && !m.Table.Remembers() {
		return ", or use ladder, min or max"
	}
	return ""
}

func feedsColumn(m *mapping.Mapping) bool {
	for r := range m.Table.Registers() {
		if !r.Existence && m.Feeds(r) {
			return true
		}
	}
	return false
}

// once are event types that tell of a thing only once, so that nothing in one
// second can be out of order.
var once = map[string][]string{
	"whatsapp": {"message.*"},
	"stripe":   {"*.created", "*.deleted", "*.paid", "*.succeeded", "*.completed"},
	"calendly": {"invitee.created"},
}

// grain warns of a version that is only a time that is too coarse.
func (c *checker) grain(m *mapping.Mapping) {
	s := m.Source
	if len(m.Version) != 1 || m.Version[0].Expr.Text != "time" || s.Config.Time != nil || !s.Preset.HasTime || !c.contended(m) {
		return
	}
	e := m.Version[0].Expr
	whole := time.Duration(s.Preset.Grain) >= time.Second
	switch {
	case m.OccupantID != nil && !whole: // the occupant orders what the time cannot
	case s.Preset.TimeCaution != "":
		c.add(config.Warning, e.At.Pos, e.At.Path, "is only the time. %s: %s.", s.Preset.Name, s.Preset.TimeCaution)
	case whole:
		c.add(config.Warning, e.At.Pos, e.At.Path, "is only the time. %s: time has whole seconds, which cannot order events of one second; add a second element, for example rank(type, [\"…\"]).", s.Preset.Name)
	}
}

// contended tells whether several events may set a versioned column of one row.
func (c *checker) contended(m *mapping.Mapping) bool {
	always := false // one that every event of the mapping sets
	alone := true
	for r := range m.Table.Registers() {
		if r.Existence || !m.Feeds(r) {
			continue
		}
		for _, i := range r.Columns {
			if a := m.Columns[i]; a != nil && a.Expr != nil {
				always = always || !a.Expr.MaybeUnset && !a.Expr.MaybeAbsent
			}
		}
		for _, other := range m.Table.Mappings {
			alone = alone && (other == m || !other.Feeds(r))
		}
	}
	types := m.Config.Types
	told := alone && len(types) == 1 && slices.ContainsFunc(once[m.Source.Preset.Name], func(glob string) bool { return expr.Glob(glob, types[0].Text) })
	return always && !told
}

// stable warns of keys, occupants and columns whose value is another each time
// an event comes.
func (c *checker) stable(m *mapping.Mapping) {
	for _, e := range append(slices.Concat(m.Key, m.Replaces), m.OccupantID, m.Since, m.Previous, m.Next) {
		if e != nil && changes(m, e) {
			c.add(config.Warning, e.At.Pos, e.At.Path, "is another each time the event comes: a redelivery would be about another row or occupant. Use what is in the event.")
		}
	}
	for i, a := range m.Columns {
		if a == nil || a.Expr == nil || a.Rest || a.Expr.Reads&expr.Received == 0 || m.Source.HasID() {
			continue
		}
		if m.Table.Table.Table.Columns[i].Rule != merge.Min {
			c.add(config.Warning, a.Expr.At.Pos, a.Expr.At.Path, "reads received, and source %s gives its events no identity: an event that comes again has another value. Use merge: min, or give the source an id:.", m.Source.Name)
		}
	}
}

func componentKind(e *mapping.Expr) merge.ComponentKind {
	switch e.Kind {
	case expr.KindTime, expr.KindText:
		return merge.TimeComponent
	case expr.KindNumber:
		return merge.IntComponent
	}
	return 0
}

// shape gives the kinds of a version's elements; position has two.
func shape(m *mapping.Mapping) []merge.ComponentKind {
	var kinds []merge.ComponentKind
	for _, p := range m.Version {
		kinds = append(kinds, p.Kind)
		if p.ByPosition() {
			kinds = append(kinds, merge.IntComponent)
		}
	}
	return kinds
}

// shapes checks that all versions that are compared with one another have the
// same elements.
func (c *checker) shapes(t *mapping.Table) {
	reported := map[*mapping.Mapping]bool{}
	for r := range t.Registers() {
		var first *mapping.Mapping
		for _, m := range t.Feeders(r) {
			if first == nil {
				first = m
				continue
			}
			if !reported[m] {
				reported[m] = c.sameShape(t, r, first, m)
			}
		}
	}
}

func (c *checker) sameShape(t *mapping.Table, r mapping.Register, first, m *mapping.Mapping) (reported bool) {
	a, b := shape(first), shape(m)
	pos, path := m.Config.Pos, m.Config.Path+".version"
	if m.VersionGiven {
		pos = m.Version[0].Expr.At.Pos
	}
	other := placeIn(m.Table, first)
	why := "All mappings of a table that set " + r.Name + " give the same number and kinds, or the comparison means nothing."
	if r.Existence {
		why = "A delete is compared with all that is said of a row" + insertedToo(t, first, m) + ": all give the same number and kinds, or the comparison means nothing."
	}
	if len(a) != len(b) {
		c.add(config.Error, pos, path, "has %s, %s has %d. %s", elements(m, len(b)), other, len(a), why)
		return true
	}
	for i := range a {
		if a[i] != b[i] && a[i] != 0 && b[i] != 0 {
			if m.VersionGiven && i < len(m.Version) {
				pos = m.Version[i].Expr.At.Pos
			}
			c.add(config.Error, pos, path, "element %d is %s, in %s it is %s. %s", i, kindName(b[i]), other, kindName(a[i]), why)
			return true
		}
	}
	return false
}

// insertedToo says how a mapping of another table comes to speak of rows of t.
func insertedToo(t *mapping.Table, ms ...*mapping.Mapping) string {
	for _, m := range ms {
		switch {
		case m.Table == t:
		case m.Deletes() && slices.Contains(t.Emptying, m):
			return ", and a delete of " + m.Table.Config.Text + " empties its lists in " + t.Config.Text
		default:
			return ", and " + m.Table.Config.Text + " inserts rows of " + t.Config.Text + " that are missing"
		}
	}
	return ""
}

func elements(m *mapping.Mapping, n int) string {
	text := map[bool]string{true: "1 element", false: itoa(n) + " elements"}[n == 1]
	if !m.VersionGiven {
		text += " (the default, time)"
	}
	return text
}

// clocks checks that the versions of one register are read from one clock.
func (c *checker) clocks(t *mapping.Table) {
	reported := map[*mapping.Mapping]bool{}
	for r := range t.Registers() {
		var first *mapping.Mapping
		for _, m := range t.Feeders(r) {
			first = orFirst(first, m)
			if m.Clock() == first.Clock() || ranked(m) && ranked(first) && !sameRank(m, first) || apart(m, first) || reported[m] {
				continue
			}
			reported[m] = true
			c.add(config.Error, m.Config.Pos, m.Config.Path,
				"sets %s by the clock of %s, %s by the clock of %s. Times of two clocks do not tell what is newer. If they are one clock, say clock: %s here; else lead both versions with a rank%s.",
				r.Name, m.Clock(), placeIn(m.Table, first), first.Clock(), first.Clock(), otherScope(r)+inAnswer(m, first))
		}
	}
}

// inAnswer tells how mappings come to share a clock of which one says when
// something was fetched.
func inAnswer(ms ...*mapping.Mapping) string {
	for _, m := range ms {
		if m.Fetch != nil && m.Clock() == mapping.LocalClock {
			return ", or give fetch " + m.Fetch.Name + " a version: of what is in the answer"
		}
	}
	return ""
}

func otherScope(r mapping.Register) string {
	if r.Existence {
		return ", or put source into the key"
	}
	return ", or give the columns of one a scope: of their own"
}

// apart tells of two mappings whose rows never meet, because a part of their
// keys is always different: the name of the source, or two literals.
func apart(a, b *mapping.Mapping) bool {
	if a.Table != b.Table {
		return false
	}
	for i, x := range a.Key {
		y := b.Key[i]
		if x.Text == "source" && y.Text == "source" && a.Source != b.Source {
			return true
		}
		if p, q := constantText(x), constantText(y); p != "" && q != "" && p != q {
			return true
		}
	}
	return false
}

var quoted = regexp.MustCompile(`^\s*["']([^"'\\]*)["']\s*$`)

// constantText returns the text that an expression is, "" if it is none.
func constantText(e *mapping.Expr) string {
	if m := quoted.FindStringSubmatch(e.Text); m != nil {
		return m[1]
	}
	return ""
}

var literalInt = regexp.MustCompile(`^-?[0-9]+$`)

// ranked tells whether a version is led by a number that the config gives.
func ranked(m *mapping.Mapping) bool {
	if len(m.Version) == 0 {
		return false
	}
	lead := m.Version[0].Expr
	return literalInt.MatchString(lead.Text) || lead.Kind == expr.KindNumber && lead.Reads&^(expr.Type|expr.Source|expr.Event) == 0 && !m.Version[0].ByPosition()
}

// sameRank tells of two versions that are led by the same literal, which keeps
// nothing apart.
func sameRank(a, b *mapping.Mapping) bool {
	x, y := a.Version[0].Expr.Text, b.Version[0].Expr.Text
	return x == y && literalInt.MatchString(x)
}

// arrival tells whether an element of a version comes from arrival.
func arrival(m *mapping.Mapping) bool {
	return slices.ContainsFunc(m.Version, func(p *mapping.VersionPart) bool {
		return p.Expr.Reads&(expr.Position|expr.Received) != 0
	})
}
