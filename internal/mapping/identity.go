package mapping

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/merge"
)

// counter checks that a column that takes each event once can know it again.
func (c *compiler) counter(out *Mapping, col *merge.Column, a *Assignment) {
	if col.Rule != merge.Sum && col.Rule != merge.Count {
		return
	}
	out.counts = true
	if s := out.Source; !s.HasID() && s.Preset.Name != "http" { // of http the loader has told it
		c.problems.Add(config.Error, a.At.Pos, a.At.Path,
			"%s takes each event once, and events of %s have no identity to know a second delivery by. Give sources.%s an id:, what tells one event from every other.", col.Rule, s.Preset.Name, s.Name)
	}
}

const maxIdentity = 200 // bytes of an event's id that a ledger keeps as it is

// identity names what an event adds to counters: its source and id; if several
// mappings of the table count it, the place among them; and the place in the
// list. It does not hold the mapping's name, so that a mapping may change without
// counting everything again.
func (v *evaluation) identity(m *Mapping) string {
	e := v.event
	if e.ID == "" {
		for i, a := range m.Columns {
			if rule := m.Table.Columns[i].Rule; a != nil && (rule == merge.Sum || rule == merge.Count) {
				v.fault(m, m.Table.Columns[i].Name, "%s takes each event once, and this one has no identity (sources.%s.id) to know a second delivery by", rule, m.Source.Name)
			}
		}
		return ""
	}
	id := e.ID
	if len(id) > maxIdentity || strings.Contains(id, "\x00") || !utf8.ValidString(id) {
		sum := sha256.Sum256([]byte(id))
		id = "sha256:" + hex.EncodeToString(sum[:])
	}
	id = m.Source.Name + "/" + idParts.Replace(id)
	if v.counted > 0 || m.Each != nil {
		id += fmt.Sprintf("/%d", v.counted)
	}
	if m.Each != nil {
		id += fmt.Sprintf("/%d", v.element)
	}
	return id
}

// Content stands for what an event says, for finding out whether another with its
// identity has said something else. It is nil where that does not matter: the
// config declares no identity, or a version tells which of the two counts.
func (s *Source) Content(e *event.Event, changes []*merge.Change) []byte {
	if len(s.Config.ID) == 0 || e.ID == "" || len(changes) == 0 || s.IDReads&expr.Position != 0 {
		return nil
	}
	for _, c := range changes {
		if c.Version != "" {
			return nil
		}
	}
	h := sha256.New()
	part := func(name string, j event.JSON) {
		text := string(j.Raw())
		if v, err := merge.ParseValue(merge.Type{Kind: merge.JSON}, text); err == nil {
			text = v.Text() // however it was written this time
		}
		fmt.Fprintf(h, "%q %q\n", name, text)
	}
	names := e.Body.Names()
	for _, name := range slices.Sorted(slices.Values(names)) {
		if !slices.Contains(s.Preset.Volatile, name) {
			part(name, e.Body.Get(name))
		}
	}
	if len(names) == 0 {
		part("", e.Body)
	}
	return h.Sum(nil)[:16]
}

// Conflict is the reason of an event whose identity has said something else
// before, in the event first.
func (s *Source) Conflict(e *event.Event, first event.Ref) string {
	return fmt.Sprintf("its id %s has come before with other contents (%s), and no version tells which of the two counts. Is sources.%s.id the identity of an event, and not of the thing it is about?", e.ID, first, s.Name)
}
