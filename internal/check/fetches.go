package check

import (
	"slices"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/internal/mapping"
)

// ofProvider are the names by whose values a provider's clock is read.
const ofProvider = expr.Event | expr.Time | expr.Envelope | expr.Body | expr.Raw | expr.Item | expr.Fetched

// fetched checks that the versions of a mapping with a fetch can tell what was
// read, and by one clock.
func (c *checker) fetched(m *mapping.Mapping) {
	if m.Fetch == nil {
		return
	}
	gone := m.Fetch.Config.NotFound == config.NotFoundDelete
	local, other := -1, -1
	tells := false
	for i, p := range m.Version {
		reads := p.Expr.Reads
		tells = tells || reads&expr.OfFetch != 0
		switch {
		case reads&expr.FetchedAt == 0 && reads&ofProvider != 0:
			other = i
		case reads&expr.FetchedAt != 0 && reads&ofProvider == 0:
			local = i
		case reads&expr.FetchedAt != 0:
			c.twoClocks(m, p.Expr)
			return
		}
		if gone && reads&expr.Fetched != 0 {
			c.add(config.Error, p.Expr.At.Pos, p.Expr.At.Path, "is read from the answer, and an answer that the object is not there has none: by not_found: delete of fetch %s such a row is deleted, and a delete needs a version too. Take fetched_at, or a version of the event.", m.Fetch.Name)
			return
		}
	}
	if local >= 0 && other >= 0 {
		c.twoClocks(m, m.Version[max(local, other)].Expr)
		return
	}
	if gone {
		for _, e := range m.Key {
			if e.Reads&expr.Fetched != 0 {
				c.add(config.Error, e.At.Pos, e.At.Path, "is read from the answer, and by not_found: delete of fetch %s it has to be known which row goes where there is none. Take the key from the event.", m.Fetch.Name)
			}
		}
	}
	c.seesStatus(m)
	if !tells && m.Versioned() {
		c.staleVersion(m)
	}
}

func (c *checker) twoClocks(m *mapping.Mapping, e *mapping.Expr) {
	c.add(config.Error, e.At.Pos, e.At.Path, "one version is made of fetched_at, by the clock of this machine, and of %s's times or numbers. Two clocks do not tell what is newer: take fetched_at alone, or what the provider says of the object.", m.Source.Name)
}

// staleVersion warns of values that were read and have the version of the event:
// a read for an older event may well have seen more.
func (c *checker) staleVersion(m *mapping.Mapping) {
	for i, a := range m.Columns {
		if a == nil || a.Expr == nil || a.Expr.Reads&expr.Fetched == 0 || m.Table.Table.Table.ScopeOf(i) < 0 {
			continue
		}
		e := m.Version[0].Expr
		c.add(config.Warning, e.At.Pos, e.At.Path, "is the event's, and %s is what was fetched: until the last event has come, a read for an older event may have seen a newer state than a later one shows. Leave version: out for that of the fetch.", a.At.Text)
		return
	}
}

// seesStatus notes a status that is asked for and never comes.
func (c *checker) seesStatus(m *mapping.Mapping) {
	if m.Fetch.Config.NotFound == config.NotFoundValue || m.Fetch.Config.NotFound == config.NotFoundDelete || m.Fetch.Config.OrElse != nil {
		return
	}
	for _, e := range m.Exprs() {
		if e.Reads&expr.FetchedStatus != 0 || slices.ContainsFunc(e.Paths, func(p *expr.PathRef) bool { return p.IsStatus() && len(e.Paths) == 1 && e.Kind == expr.KindBool }) {
			c.add(config.Note, e.At.Pos, e.At.Path, "is only ever evaluated with an answer 200 to 299: fetch %s has not_found: %s. With not_found: value it sees 404 and 410.", m.Fetch.Name, m.Fetch.Config.NotFound)
		}
	}
}
