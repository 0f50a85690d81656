package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// moved is a place from which the text of a line stands further to the right
// than in the file, because syntax has put quotes around a value before it.
type moved struct{ line, from, by int }

func (l *loader) posOf(n *yaml.Node) Pos {
	p := Pos{n.Line, n.Column}
	for _, m := range l.moved {
		if m.line == n.Line && n.Column > m.from {
			p.Column = max(m.from, p.Column-m.by)
		}
	}
	return Pos{max(p.Line, 1), max(p.Column, 1)}
}

// syntax reads YAML and returns its map, nil if there is none. Values that YAML
// cannot read because they need quotes are reported and read as if they had
// them, so that the rest of the file is checked too.
func (l *loader) syntax(data []byte) *yaml.Node {
	if !l.readable(data) {
		return nil
	}
	doc, err := decode(data)
	if err != nil {
		var found bool
		if data, found = l.mend(data, err); data == nil {
			return nil
		}
		if doc, err = decode(data); err != nil {
			if !found {
				l.reportSyntax(data, err)
			}
			return nil
		}
	}
	if len(doc.Content) == 0 || kindOf(doc.Content[0]) == "empty" {
		l.report(Pos{1, 1}, "", "is empty. hookfold init writes a config to start from.")
		return nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		l.report(l.posOf(root), "", "is %s, but has to be a map that begins with version: 1.", kindOf(root))
		return nil
	}
	return root
}

var errSecond = errors.New("a second document")

// decode reads one YAML document.
func decode(data []byte) (doc *yaml.Node, err error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	doc = new(yaml.Node)
	if err := d.Decode(doc); err != nil {
		if errors.Is(err, io.EOF) {
			return &yaml.Node{}, nil
		}
		return nil, err
	}
	var more yaml.Node
	switch err := d.Decode(&more); {
	case errors.Is(err, io.EOF):
		return doc, nil
	case err != nil:
		return nil, err
	}
	return nil, errSecond
}

// readable checks the bytes: their number, and that they are text.
func (l *loader) readable(data []byte) bool {
	if len(data) > MaxSize {
		l.report(Pos{1, 1}, "", "has %d bytes, and a config at most %d.", len(data), MaxSize)
		return false
	}
	line, column := 1, 1
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			l.report(Pos{line, column}, "", "this byte (0x%02x) is not UTF-8. Save the file as UTF-8.", data[i])
			return false
		case r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f || r >= 0x80 && r < 0xa0 && r != 0x85:
			l.report(Pos{line, column}, "", "this is a control character (U+%04X), which YAML does not allow. Remove it.", r)
			return false
		case r == '\n':
			line, column = line+1, 0
		}
		i += n
		column++
	}
	return true
}

// mend reports the values that YAML cannot read, and returns the text with
// quotes around those that only lack them. The text is nil if it cannot go on.
func (l *loader) mend(data []byte, err error) (mended []byte, found bool) {
	s := &scanner{text: string(data), anchors: anchors(data)}
	s.scan()
	const most = 20 // a file of another language would have one on each line
	for i, f := range s.found {
		if i == most {
			break
		}
		l.report(f.pos, "", "%s", f.text)
	}
	if len(s.found) == 0 {
		l.reportSyntax(data, err)
		return nil, false
	}
	var out strings.Builder
	at := 0
	for _, f := range s.found {
		if f.end == 0 || f.start < at {
			continue
		}
		value := s.text[f.start:f.end]
		quoted := quote(value)
		out.WriteString(s.text[at:f.start])
		out.WriteString(quoted)
		l.mended[f.pos] = true
		at = f.end
		l.moved = append(l.moved, moved{f.pos.Line, f.pos.Column, utf8.RuneCountInString(quoted) - utf8.RuneCountInString(value)})
	}
	out.WriteString(s.text[at:])
	return []byte(out.String()), true
}

var (
	yamlLine   = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	anchorGone = regexp.MustCompile(`unknown anchor '(.*)' referenced`)
	anchorForm = regexp.MustCompile(`&([A-Za-z0-9_-]+)`)
)

func anchors(data []byte) map[string]bool {
	out := map[string]bool{}
	for _, m := range anchorForm.FindAllSubmatch(data, -1) {
		out[string(m[1])] = true
	}
	return out
}

// advice says what to do about what the YAML library says.
var advice = []struct{ says, text string }{
	{"mapping values are not allowed", "a key is not allowed here. Is the line indented too far, or has the key above it a value already?"},
	{"did not find expected key", "this line does not belong to the lines above it. Indent it as much as its neighbours."},
	{"did not find expected '-' indicator", "this line does not belong to the list above it. Indent it as much as its neighbours, and begin it with -."},
	{"could not find expected ':'", "this line is no key with a value. Write key: value, with a space after the colon."},
	{"block sequence entries are not allowed", "a list item (-) is not allowed here. Put it on a line of its own, below its key."},
	{"did not find expected ',' or ']'", "this list is not closed, or an item of it needs quotes."},
	{"did not find expected ',' or '}'", "this map is not closed, or a value of it needs quotes."},
	{"unexpected end of stream", "a quote or bracket that is opened is never closed."},
	{"tab", "there is a tab here. Indent with spaces."},
	{"document start", "a config is one document: this line does not belong to it."},
}

// reportSyntax reports an error of the YAML library at its line.
func (l *loader) reportSyntax(data []byte, err error) {
	if errors.Is(err, errSecond) {
		l.report(secondDocument(data), "", "a second document begins here. A config is one: remove the line ---, or what follows it.")
		return
	}
	if m := anchorGone.FindStringSubmatch(err.Error()); m != nil {
		l.report(placeOf(data, "*"+m[1]), "", "*%s is an alias for a value that is marked &%s further up, and there is none above it.", m[1], m[1])
		return
	}
	m := yamlLine.FindStringSubmatch(strings.TrimSpace(err.Error()))
	if m == nil {
		m = []string{"", "", err.Error()}
	}
	text := "is not YAML: " + m[2] + "."
	for _, a := range advice {
		if strings.Contains(m[2], a.says) {
			text = a.text
			break
		}
	}
	l.report(failing(data, err), "", "%s", text)
}

// failing finds the place of a syntax error, which the library gives by line
// and sometimes one off: the first line with which the text fails in this way.
func failing(data []byte, err error) Pos {
	lines := bytes.SplitAfter(data, []byte("\n"))
	number := 0
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		for _, c := range m[1] {
			number = min(number*10+int(c-'0'), len(lines))
		}
		number = max(number, 1)
		for n := max(1, number-1); n <= min(len(lines), number+2); n++ {
			_, again := decode(bytes.Join(lines[:n], nil))
			if again == nil {
				continue
			}
			if o := yamlLine.FindStringSubmatch(again.Error()); o != nil && o[2] == m[2] {
				number = n
				break
			}
		}
	}
	number = max(1, min(number, len(lines)))
	line := lines[number-1]
	indent := len(line) - len(bytes.TrimLeft(line, " \t-"))
	return Pos{number, indent + 1}
}

// placeOf returns the place of the first occurrence of a text.
func placeOf(data []byte, text string) Pos {
	before, _, _ := strings.Cut(string(data), text)
	return Pos{strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1}
}

func secondDocument(data []byte) Pos {
	content := false
	for i, line := range strings.Split(string(data), "\n") {
		if strings.HasPrefix(line, "---") && content {
			return Pos{i + 1, 1}
		}
		t := strings.TrimSpace(line)
		content = content || t != "" && t[0] != '#' && t[0] != '%'
	}
	return Pos{1, 1}
}

// refuseTags reports YAML tags. Nothing here needs one, and one that is written
// by accident (an expression that begins with !) empties its value.
func (l *loader) refuseTags(n *yaml.Node, path string) {
	for i, c := range n.Content {
		at := path
		switch {
		case n.Kind == yaml.SequenceNode:
			at = fmt.Sprintf("%s[%d]", path, i)
		case i%2 == 1:
			at = join(path, n.Content[i-1].Value)
		}
		l.refuseTags(c, at)
	}
	if n.Style&yaml.TaggedStyle == 0 {
		return
	}
	l.bad[n] = true
	if n.Kind == yaml.ScalarNode && !strings.HasPrefix(n.Tag, "!!") {
		expression := n.Tag
		if n.Value != "" {
			expression += " " + n.Value
		}
		l.report(l.posOf(n), path, "`%s` is read as a YAML tag, and what follows it as the value. Put single quotes around the whole expression: %s.", show(n.Tag), show(quote(expression)))
		return
	}
	l.report(l.posOf(n), path, "`%s` is a YAML tag, and this file has none. Leave it out.", show(n.Tag))
}
