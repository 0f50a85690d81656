package mapping

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/merge"
)

// Rules are what the stored rows of a table were written by. What is stored under
// one rule, or compared by versions of one shape, means nothing under another.
type Rules struct {
	// Key, Version, Occupant, OnDelete and Group are the shape of the table: the
	// types of its key, the kinds of a version's elements, whether rows have
	// occupants or chains, what a delete does, what lists replace.
	Key      string `json:"key"`
	Version  string `json:"version,omitempty"`
	Occupant string `json:"occupant,omitempty"`
	OnDelete string `json:"on_delete,omitempty"`
	Group    string `json:"replaces,omitempty"`
	// Columns are the merge rules by column.
	Columns map[string]string `json:"columns"`
}

// RebuildHint is what the reason of an event ends in, before the table's name,
// that waits for its table to be rebuilt.
const RebuildHint = "run: hookfold rebuild "

var componentNames = map[merge.ComponentKind]string{merge.TimeComponent: "time", merge.IntComponent: "number", 0: "any"}

// Rules gives the rules of the table as the config says them.
func (t *Table) Rules() Rules {
	r := Rules{Columns: map[string]string{}}
	var key []string
	for _, k := range t.Key {
		key = append(key, k.Name+" "+k.Type.String())
	}
	r.Key = strings.Join(key, ", ")
	for _, m := range slices.Concat(t.Mappings, t.Stubs, t.Emptying) {
		if !m.Versioned() && m.Table == t {
			continue
		}
		var kinds []string
		for _, p := range m.Version {
			if p.position {
				kinds = append(kinds, "number", "number")
				continue
			}
			kinds = append(kinds, componentNames[p.Kind])
		}
		r.Version = strings.Join(kinds, ", ")
		break // all of a table are of one shape
	}
	switch {
	case t.Chained:
		r.Occupant = "chain"
	case t.Occupied:
		r.Occupant = "occupant"
	}
	if t.OnDelete != merge.DeleteNone {
		r.OnDelete = []string{"", "mark", "remove", "set"}[t.OnDelete]
	}
	var group []string
	for _, at := range t.Group {
		group = append(group, t.Key[at].Name)
	}
	if t.Group != nil {
		r.Group = "(" + strings.Join(group, ", ") + ")"
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		switch c.Rule {
		case merge.Touch, merge.Flag: // nothing of them enters a join
			continue
		case merge.Ladder:
			r.Columns[c.Name] = fmt.Sprintf("ladder %q", c.Rungs)
		case merge.Latest:
			r.Columns[c.Name] = "latest, scope " + c.Scope
		default:
			r.Columns[c.Name] = c.Rule.String()
			if c.Scope == merge.KeyScope {
				r.Columns[c.Name] += ", scope key"
			}
		}
	}
	return r
}

// Text is how rules are kept.
func (r Rules) Text() string {
	b, _ := json.Marshal(r) // texts only
	return string(b)
}

// ParseRules reads what Text wrote.
func ParseRules(text string) (r Rules, err error) {
	err = json.Unmarshal([]byte(text), &r)
	return r, err
}

// Broken tells why rows that were written by other rules cannot be written by
// these any more, "" if they can: a column may come or go, and a ladder may get
// further rungs at its top.
func (r Rules) Broken(was Rules) string {
	for _, x := range []struct{ what, now, then string }{
		{"the key", r.Key, was.Key}, {"the shape of the version", r.Version, was.Version}, {"occupant:", r.Occupant, was.Occupant},
		{"on_delete", r.OnDelete, was.OnDelete}, {"replaces", r.Group, was.Group},
	} {
		if x.now != x.then && !(x.then == "" && x.what == "the shape of the version") {
			return fmt.Sprintf("%s was %s and is %s", x.what, orNothing(x.then), orNothing(x.now))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Columns)) {
		now, then := r.Columns[name], was.Columns[name]
		if then == "" || now == then || strings.HasPrefix(now, "ladder ") && strings.HasPrefix(now, strings.TrimSuffix(then, "]")+" ") {
			continue
		}
		return fmt.Sprintf("the rule of column %s was %s and is %s", name, then, now)
	}
	return ""
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
