package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// value is a place in the YAML tree: a node, aliases resolved, and how one gets
// there.
type value struct {
	l    *loader
	node *yaml.Node
	path string
	// key is the place of the key that has this value, zero for a list's item.
	key Pos
	// inside is '[' or '{' for an item or value of a flow list or map, where
	// YAML ends plain text at a comma.
	inside byte
}

// entry is a key of a map and its value.
type entry struct {
	name string
	key  value
	val  value
}

func (v value) pos() Pos { return v.l.posOf(v.node) }

// where is the place to name when something is wrong with the thing as a whole.
func (v value) where() Pos {
	if v.key != (Pos{}) {
		return v.key
	}
	return v.pos()
}

// fail reports an error at the value, and marks it so that nothing else is said
// about it.
func (v value) fail(format string, args ...any) {
	if v.l.bad[v.node] {
		return
	}
	v.l.bad[v.node] = true
	if !v.l.mended[v.pos()] {
		v.l.report(v.pos(), v.path, format, args...)
	}
}

// failWhole reports an error of the thing as a whole, at its key.
func (v value) failWhole(format string, args ...any) {
	v.l.report(v.where(), v.path, format, args...)
}

// broken tells whether a problem of the value or of a part of it is reported,
// perhaps where another alias for it stands.
func (v value) broken() bool { return v.l.Touches(v.path) || v.l.anyBad(v.node) }

func (l *loader) anyBad(n *yaml.Node) bool {
	return l.bad[n] || slices.ContainsFunc(n.Content, l.anyBad)
}

// step makes the value of a node at a path, and counts it: what an alias stands
// for is counted as often as it is used, so a few lines cannot become a million.
func (v value) step(n *yaml.Node, path string) value {
	for i := 0; n.Kind == yaml.AliasNode && n.Alias != nil && i < 100; i++ {
		n = n.Alias
	}
	next := value{l: v.l, node: n, path: path}
	if v.node.Style&yaml.FlowStyle != 0 {
		next.inside = '{'
		if v.node.Kind == yaml.SequenceNode {
			next.inside = '['
		}
	}
	v.l.values++
	if v.l.values == maxValues {
		v.l.report(v.pos(), "", "the config has more than %d values, counting what an alias stands for as often as it is used.", maxValues)
	}
	if v.l.values >= maxValues {
		v.l.bad[n] = true
	}
	return next
}

func join(path, name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r == '.' || r == '[' || r == ']' || r == '"' || !unicode.IsGraphic(r) || unicode.IsSpace(r)
	}) {
		name = strconv.Quote(clip(name))
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// clip shortens a text that is to be shown.
func clip(s string) string {
	const most = 60
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// show renders a text for a message: on one line, and not too long.
func show(s string) string {
	s = strings.TrimSpace(s)
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		s = strings.Trim(strconv.Quote(s), `"`)
	}
	return clip(s)
}

func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a map"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.ShortTag() == "!!null":
		return "empty"
	}
	return "text"
}

func (v value) isNull() bool {
	return v.node.Kind == yaml.ScalarNode && v.node.ShortTag() == "!!null"
}
func (v value) isMap() bool    { return v.node.Kind == yaml.MappingNode }
func (v value) isList() bool   { return v.node.Kind == yaml.SequenceNode }
func (v value) isScalar() bool { return v.node.Kind == yaml.ScalarNode }

// plain tells whether a node is text without quotes.
func plain(n *yaml.Node) bool {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	return n.Kind == yaml.ScalarNode && n.Style&quoted == 0
}

// items returns the items of a list.
func (v value) items() ([]value, bool) {
	if v.l.bad[v.node] {
		return nil, false
	}
	if !v.isList() {
		hint := ""
		if v.isScalar() && !v.isNull() {
			hint = " Put [ ] around it."
		}
		v.fail("is %s, but has to be a list.%s", kindOf(v.node), hint)
		return nil, false
	}
	var out []value
	for i, nodes := 0, v.node.Content; i < len(nodes); i++ {
		item := v.step(nodes[i], fmt.Sprintf("%s[%d]", v.path, len(out)))
		if cut := rest(nodes[i], nodes[i+1:]); item.inside != 0 && cut > 0 {
			item.cutOff()
			i += cut
		}
		out = append(out, item)
	}
	return out, true
}

// oneOrMore returns the items of a list, or the value itself as the only one.
func (v value) oneOrMore() ([]value, bool) {
	if v.isList() {
		return v.items()
	}
	return []value{v}, !v.l.bad[v.node]
}

// entries returns the keys and values of a map, without duplicates; keys that
// merge keys (<<) bring come last, and not where the map has them itself. want
// says what the map is for, as in "columns and their types".
func (v value) entries(want string) ([]entry, bool) {
	if v.l.bad[v.node] {
		return nil, false
	}
	if !v.isMap() {
		v.fail("is %s, but has to be a map: %s.", kindOf(v.node), want)
		return nil, false
	}
	seen := map[string]Pos{}
	out := v.collect(nil, seen, 0)
	return out, !v.l.bad[v.node]
}

func (v value) collect(out []entry, seen map[string]Pos, depth int) []entry {
	var merges []value
	own := map[string]bool{}
	for nodes := v.node.Content; len(nodes) > 1; nodes = nodes[2:] {
		k, n := nodes[0], nodes[1]
		key := v.step(k, v.path)
		switch {
		case key.l.bad[key.node]:
			continue
		case k.ShortTag() == "!!merge":
			merges = append(merges, v.step(n, v.path))
			continue
		case !key.isScalar() || key.node.Value == "":
			if key.isScalar() {
				key.fail("a key cannot be empty.")
			} else {
				key.fail("a key has to be text, and is %s.", kindOf(key.node))
			}
			continue
		}
		name := key.node.Value
		key.path = join(v.path, name)
		if own[name] {
			key.fail("is given twice, first on line %d. Keep one.", seen[name].Line)
			continue
		}
		own[name] = true
		if _, ok := seen[name]; ok {
			continue
		}
		seen[name] = key.pos()
		val := v.step(n, key.path)
		val.key = key.pos()
		out = append(out, entry{name: name, key: key, val: val})
		if cut := rest(n, nodes[2:]); val.inside != 0 && cut > 0 {
			val.cutOff()
			nodes = nodes[(cut+1)/2*2:]
		}
	}
	for _, m := range merges {
		out = m.merge(out, seen, depth+1)
	}
	return out
}

// merge adds what a merge key brings: a map, or a list of maps.
func (v value) merge(out []entry, seen map[string]Pos, depth int) []entry {
	const deepest = 10
	switch {
	case v.l.bad[v.node]:
		return out
	case depth > deepest:
		v.fail("merge keys (<<) are nested more than %d deep, or in a circle.", deepest)
	case v.isMap():
		return v.collect(out, seen, depth)
	case v.isList():
		for _, n := range v.node.Content {
			out = v.step(n, v.path).merge(out, seen, depth+1)
		}
	default:
		v.fail("a merge key (<<) takes a map or a list of maps, mostly by alias: <<: *name.")
	}
	return out
}

// raw returns a scalar's text as it stands in the file.
func (v value) raw(want string) (string, bool) {
	if v.l.bad[v.node] {
		return "", false
	}
	switch {
	case !v.isScalar():
		v.fail("is %s, but has to be %s.", kindOf(v.node), want)
		return "", false
	case v.isNull():
		v.fail("has no value; it has to be %s.", want)
		return "", false
	}
	return v.node.Value, true
}

// text returns a scalar with ${NAME} and ${file:path} expanded, which is neither
// empty nor holds NUL.
func (v value) text(want string) (string, bool) {
	raw, ok := v.raw(want)
	if !ok {
		return "", false
	}
	s, err := v.l.expand(raw)
	if errors.Is(err, errUnset) && v.l.o.WithoutSecrets && credential.MatchString(v.path) {
		s, err = standIn, nil
	}
	switch {
	case err != nil:
		v.fail("%v.", err)
	case strings.TrimSpace(s) == "" && strings.Contains(raw, "${"):
		v.fail("%s is empty; it has to be %s.", show(raw), want)
	case strings.TrimSpace(s) == "":
		v.fail("is empty; it has to be %s.", want)
	case strings.ContainsRune(s, 0):
		v.fail("holds a NUL character, which no name, address or secret may have.")
	default:
		if s != raw {
			v.l.expanded[v.pos()] = raw
		}
		return s, true
	}
	return "", false
}

// shown renders a name for a message as it stands in the file: what the
// environment has put in its place is not shown.
func (l *loader) shown(n Name) string {
	if raw, ok := l.expanded[n.Pos]; ok {
		return show(raw)
	}
	return show(n.Text)
}

// name returns a text with its place.
func (v value) name(want string) (Name, bool) {
	s, ok := v.text(want)
	return Name{Text: s, Pos: v.pos(), Path: v.path}, ok
}

// one returns a text that is one of a few.
func (v value) one(names ...string) (string, bool) {
	want := "one of " + list(names)
	if len(names) == 1 {
		want = names[0]
	}
	s, ok := v.text(want)
	if !ok {
		return "", false
	}
	for _, n := range names {
		if s == n {
			return s, true
		}
	}
	v.fail("is `%s`, but has to be %s.%s", show(v.node.Value), want, meant(s, names))
	return "", false
}

// meant is didYouMean without the list of names.
func meant(s string, names []string) string {
	if n := nearest(s, names); n != "" {
		return " Did you mean " + n + "?"
	}
	return ""
}
