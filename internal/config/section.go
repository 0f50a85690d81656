package config

import (
	"slices"
	"strings"
)

// section declares a map of the config: the keys it may have. Both reading and
// the reference in docs/config.md come from it.
type section[T any] struct {
	// path is where such a map stands: tables.<table>.events[].
	path string
	// doc is what the reference says of it.
	doc  string
	keys []key[T]
}

// key declares one key of a section.
type key[T any] struct {
	name string
	// form says what the value may be, def what it is if the key is left out;
	// doc what the key means.
	form, def, doc string
	// of are the kinds of targets that have the key; nil is all.
	of []Kind
	// needed is an example of the key, and makes it one that has to be there.
	needed string
	// later marks a key of a later version, which is refused; the text says what
	// to do until then, and may be empty.
	later *string
	read  func(v value, to *T)
}

// kinds lists the kinds of targets that have the key.
func (k key[T]) kinds() string {
	var out []string
	for _, x := range k.of {
		out = append(out, string(x))
	}
	return list(out)
}

// later makes the mark of a key that this version does not have.
func later(instead string) *string { return &instead }

const notYet = "is not in this version of Hookfold yet."

// failLater refuses a thing of a later version.
func (v value) failLater(instead string) {
	if instead != "" {
		instead = " " + instead
	}
	v.fail("%s%s", notYet, instead)
}

// read reads a map into to, key by key in the order of the file. It returns the
// values by key, nil if the value is no map.
func (s section[T]) read(v value, to *T) map[string]value {
	entries, ok := v.entries("the keys here are " + list(s.names(false)))
	if !ok {
		return nil
	}
	got := map[string]value{}
	meantFor := map[string]bool{}
	for _, e := range entries {
		i := slices.IndexFunc(s.keys, func(k key[T]) bool { return k.name == e.name })
		switch {
		case i >= 0 && s.keys[i].later != nil:
			e.key.failLater(*s.keys[i].later)
		case i >= 0:
			got[e.name] = e.val
			s.keys[i].read(e.val, to)
		case s.path == "" && strings.HasPrefix(e.name, "x-"):
		default:
			near := nearest(e.name, s.names(true))
			meantFor[near] = true
			v.l.unread[join(v.path, near)] = true
			e.key.fail("is not a key Hookfold knows here.%s", didYouMeanKey(near, s.names(false)))
		}
	}
	for _, k := range s.keys {
		if _, ok := got[k.name]; !ok && k.needed != "" && !meantFor[k.name] {
			v.failWhole("needs %s, for example %s", k.name+":", k.needed)
		}
	}
	return got
}

func didYouMeanKey(near string, names []string) string {
	if near != "" {
		return " Did you mean " + near + "?"
	}
	return " The keys here are " + list(names) + "."
}

// names returns the section's keys, those of a later version if they are wanted.
func (s section[T]) names(later bool) []string {
	var out []string
	for _, k := range s.keys {
		if later || k.later == nil {
			out = append(out, k.name)
		}
	}
	return out
}
