package config

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// variableForm is a variable as expand knows it.
var variableForm = regexp.MustCompile(`\$\{(?:[A-Za-z_][A-Za-z0-9_]*|file:[^}]*)\}`)

// expr reads an expression. Scalars that YAML takes for a number, true, false
// or null are literals, and so expressions as they stand.
func (v value) expr() (Expr, bool) {
	if v.l.bad[v.node] {
		return Expr{}, false
	}
	switch {
	case v.isMap():
		v.failMapAsExpr()
	case v.isList():
		v.fail("is a list, but has to be an expression. For a list in an expression put quotes around the whole: '[a, b]'.")
	case strings.TrimSpace(v.node.Value) == "":
		v.fail("has no value; it has to be an expression, as in event.id. For NULL write null.")
	case v.cutOff():
	case variableForm.MatchString(v.node.Value):
		v.fail("%s is not expanded in an expression: a value of the environment must not become code.", show(variableForm.FindString(v.node.Value)))
	default:
		text := v.node.Value
		if plain(v.node) {
			text = literal(v.node)
		}
		quoted := v.node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 && !v.l.mended[v.pos()]
		return Expr{Text: text, Pos: v.pos(), Quoted: quoted, Path: v.path}, true
	}
	return Expr{}, false
}

// literal returns a plain scalar as the expression it means: YAML knows True and
// ~ as well.
func literal(n *yaml.Node) string {
	switch n.ShortTag() {
	case "!!bool":
		return strings.ToLower(n.Value)
	case "!!null":
		return "null"
	}
	return n.Value
}

func (v value) exprTo(to **Expr) {
	if e, ok := v.expr(); ok {
		*to = &e
	}
}

// exprs reads one expression, or a list of them.
func (v value) exprs(to *[]Expr) {
	items, ok := v.oneOrMore()
	if ok && len(items) == 0 {
		v.fail("is an empty list. Leave the key out, or give at least one expression.")
		return
	}
	for _, item := range items {
		if e, ok := item.expr(); ok {
			*to = append(*to, e)
		}
	}
}

// failMapAsExpr says why an expression has become a map.
func (v value) failMapAsExpr() {
	c := v.node.Content
	if len(c) == 2 && c[0].Kind == yaml.ScalarNode && c[1].Kind == yaml.ScalarNode && strings.Contains(c[0].Value, "?") {
		text := c[0].Value + ": " + c[1].Value
		v.fail("%s", colon(text, show(quote(text))))
		return
	}
	v.fail("is a map, but has to be an expression. For a map in an expression put quotes around the whole: '{\"a\": 1}'.")
}

// quote puts a text in quotes as YAML takes them.
func quote(s string) string {
	return "'" + strings.ReplaceAll(strings.TrimSpace(s), "'", "''") + "'"
}

// cutOff reports plain text of which YAML has taken only a part: up to a comma
// inside [ ] or { }, or up to what it takes for a comment.
func (v value) cutOff() bool {
	if !opens(v.node) {
		return false
	}
	switch {
	case v.inside == '[':
		v.fail("`%s` is cut off: inside [ ] a comma separates items. Put quotes around the whole expression.", show(v.node.Value))
	case v.inside == '{':
		v.fail("`%s` is cut off: inside { } a comma separates keys. Put quotes around the whole expression.", show(v.node.Value))
	case v.node.LineComment != "":
		v.fail("`%s` is cut off: YAML takes what follows \" #\" for a comment. Put single quotes around the whole expression.", show(v.node.Value))
	default:
		return false
	}
	return true
}

// rest returns how many of the nodes that follow a plain text in a flow list or
// map are what a comma has cut off from it.
func rest(n *yaml.Node, follow []*yaml.Node) int {
	if !opens(n) {
		return 0
	}
	text := n.Value
	for i, f := range follow {
		if !plain(f) {
			return 0
		}
		if f.Value != "" { // a key without a value has an empty one
			text += ", " + f.Value
		}
		if balance(text) == 0 {
			return i + 1
		}
	}
	return 0
}

// opens tells whether a scalar opens a bracket or a quote that it does not close.
func opens(n *yaml.Node) bool {
	return plain(n) && balance(n.Value) > 0
}

// balance counts the brackets that a text opens and does not close; it is
// negative if it closes one that it has not opened. An open quote counts as one.
func balance(s string) int {
	depth, least := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
			least = min(least, depth)
		case '"', '\'':
			end := closing(s, i)
			if end < 0 {
				return depth + 1
			}
			i = end
		}
	}
	if least < 0 {
		return least
	}
	return depth
}

// closing returns the place of the quote that closes the one at i, or -1.
func closing(s string, i int) int {
	for j := i + 1; j < len(s); j++ {
		switch s[j] {
		case '\\':
			j++
		case s[i]:
			return j
		}
	}
	return -1
}

// assignments reads a map of columns and expressions. With rest it may have the
// key "*", whose expression goes there.
func (v value) assignments(rest **Expr, to *[]Assignment) {
	entries, ok := v.entries("columns and expressions, as in {id: event.id}")
	if !ok {
		return
	}
	*to = []Assignment{}
	for _, e := range entries {
		x, ok := e.val.expr()
		if e.name == "*" && rest != nil {
			if ok {
				*rest = &x
			}
			continue
		}
		// A column whose expression is wrong is still one that has been given.
		*to = append(*to, Assignment{Column: Name{Text: e.name, Pos: e.key.pos(), Path: e.key.path}, Expr: x})
	}
}
