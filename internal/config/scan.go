package config

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// scanner looks through text that is not YAML for what people write when they
// mean it to be: expressions that need quotes. It follows lines, keys, quotes,
// brackets and block texts, and takes what stands in the place of a value for
// an expression with balanced brackets and quotes. It is only run when the YAML
// library has given up, and only explains.
type scanner struct {
	text    string
	anchors map[string]bool
	found   []finding
}

// finding is one thing that YAML cannot read. end is 0 if quotes around
// text[start:end] are no remedy.
type finding struct {
	pos        Pos
	start, end int
	text       string
}

var aliasForm = regexp.MustCompile(`^\*([A-Za-z0-9_-]+)\s*(#.*)?$`)

func (s *scanner) find(start, end int, text string) {
	before := s.text[:start]
	line := strings.LastIndexByte(before, '\n') + 1
	s.found = append(s.found, finding{
		pos:   Pos{strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[line:]) + 1},
		start: start, end: end, text: text,
	})
}

// lineEnd returns the place of the line break at or after i.
func (s *scanner) lineEnd(i int) int {
	if n := strings.IndexByte(s.text[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(s.text)
}

// spaces returns the first place at or after i, before end, that is no space.
func (s *scanner) spaces(i, end int) int {
	for i < end && (s.text[i] == ' ' || s.text[i] == '\r') {
		i++
	}
	return i
}

func (s *scanner) scan() {
	for i := 0; i < len(s.text); {
		end := s.lineEnd(i)
		i = s.line(i, end) + 1
	}
}

// line looks at the line from i to end and returns the end of what it has read,
// which may be further down.
func (s *scanner) line(from, end int) int {
	i := s.spaces(from, end)
	if i < end && s.text[i] == '\t' {
		if strings.TrimSpace(s.text[i:end]) != "" {
			s.find(i, 0, "there is a tab here. Indent with spaces.")
		}
		return end
	}
	if rest := s.text[i:end]; rest == "" || rest[0] == '#' || rest[0] == '%' || strings.HasPrefix(s.text[from:end], "---") || strings.HasPrefix(s.text[from:end], "...") {
		return end
	}
	column := i - from
	for i < end && s.text[i] == '-' && (i+1 == end || s.text[i+1] == ' ') {
		i = s.spaces(i+1, end)
	}
	if i < end && s.text[i] != '[' && s.text[i] != '{' {
		if after, ok := s.key(i, end); ok {
			column = i - from
			i = s.spaces(after, end)
		}
	}
	return s.value(i, end, column)
}

// key returns the place after the colon of a key that begins at i.
func (s *scanner) key(i, end int) (after int, ok bool) {
	if q := s.text[i]; q == '"' || q == '\'' {
		j := s.closing(i, end)
		if j < 0 {
			return 0, false
		}
		j = s.spaces(j+1, end)
		return j + 1, j < end && s.text[j] == ':'
	}
	for j := i; j < end; j++ {
		switch {
		case s.text[j] == ':' && (j+1 == end || s.text[j+1] == ' '):
			return j + 1, true
		case s.text[j] == '#' && s.text[j-1] == ' ':
			return 0, false
		}
	}
	return 0, false
}

// closing returns the place of the quote that closes the one at i, before end,
// as YAML sees it, or -1.
func (s *scanner) closing(i, end int) int {
	q := s.text[i]
	for j := i + 1; j < end; j++ {
		switch {
		case q == '"' && s.text[j] == '\\':
			j++
		case s.text[j] != q:
		case q == '\'' && j+1 < end && s.text[j+1] == q:
			j++
		default:
			return j
		}
	}
	return -1
}

// value looks at a value in block style; column is where its key stands.
func (s *scanner) value(i, end, column int) int {
	if i < end && s.text[i] == '&' {
		if n := strings.IndexByte(s.text[i:end], ' '); n >= 0 && s.text[i+1] != '&' {
			i = s.spaces(i+n, end)
		}
	}
	if i >= end || s.text[i] == '#' {
		return end
	}
	switch s.text[i] {
	case '|', '>':
		return s.block(end, column)
	case '"', '\'':
		j := s.closing(i, len(s.text))
		if j < 0 {
			s.find(i, 0, "this quote is never closed.")
			return len(s.text)
		}
		end = s.lineEnd(j)
		s.trailing(i, j+1, end)
		return end
	case '[', '{':
		j := s.flow(i)
		if j < 0 {
			return len(s.text)
		}
		end = s.lineEnd(j)
		s.trailing(i, j, end)
		return end
	}
	stop := s.comment(i, end)
	if s.special(i, stop) {
		return end
	}
	value := s.text[i:stop]
	if strings.Contains(value, ": ") || strings.HasSuffix(value, ":") {
		s.find(i, stop, colon(value))
	}
	return end
}

// comment returns the end of what stands between i and end before a comment.
func (s *scanner) comment(i, end int) int {
	if n := strings.Index(s.text[i:end], " #"); n >= 0 {
		end = i + n
	}
	return i + len(strings.TrimRight(s.text[i:end], " \r"))
}

// block skips the lines of a block text.
func (s *scanner) block(end, column int) int {
	for end < len(s.text) {
		next := s.lineEnd(end + 1)
		first := s.spaces(end+1, next)
		if first < next && first-(end+1) <= column {
			return end
		}
		end = next
	}
	return end
}

// trailing reports text between i and end, behind a value that began at start
// and should be all.
func (s *scanner) trailing(start, i, end int) {
	j := s.spaces(i, end)
	if j >= end || s.text[j] == '#' && j > i {
		return
	}
	value := strings.TrimRight(s.text[start:end], " \r")
	s.find(start, start+len(value), "YAML takes `"+show(s.text[start:i])+"` for the whole value, but there is more. Put single quotes around all of it: "+show(quote(value))+".")
}

// special reports a plain value whose first character means something in YAML.
func (s *scanner) special(i, stop int) bool {
	value := s.text[i:stop]
	if value == "" {
		return false
	}
	fix := " Put quotes around it: " + show(quote(value)) + "."
	switch value[0] {
	case '*':
		m := aliasForm.FindStringSubmatch(value)
		if m != nil && s.anchors[m[1]] {
			return false
		}
		if m != nil {
			s.find(i, stop, "*"+m[1]+" stands for a value that is marked &"+m[1]+", and there is none above. If it is text:"+fix[4:])
			return true
		}
		s.find(i, stop, "a value that begins with * is an alias in YAML."+fix)
	case '!':
		s.find(i, stop, "a value that begins with ! is a tag in YAML."+fix)
	case '&':
		s.find(i, stop, "a value that begins with & is an anchor in YAML."+fix)
	case '@', '`', '%':
		s.find(i, stop, "a value cannot begin with "+value[:1]+" in YAML."+fix)
	default:
		return false
	}
	return true
}

// colon says what is wrong with a value that holds ": ".
func colon(value string) string {
	if strings.ContainsAny(value, `?("`) || strings.Contains(value, "==") {
		return "this expression holds \": \", which YAML reads as a new key. Put single quotes around it: " + show(quote(value)) + "."
	}
	return "this value holds \": \", which YAML reads as a new key. Put single quotes around it: " + show(quote(value)) + "."
}

// flow looks at a flow list or map that begins at i, and returns the place
// behind it, or -1 if it has no end.
func (s *scanner) flow(i int) int {
	type open struct {
		at     int
		value  bool // in a map: a key has been read
		closed byte
	}
	var stack []open
	for j := i; j < len(s.text); {
		top := len(stack) - 1
		switch c := s.text[j]; {
		case c == ' ' || c == '\n' || c == '\r' || c == '\t':
			j++
		case c == '#' && (s.text[j-1] == ' ' || s.text[j-1] == '\n'):
			j = s.lineEnd(j)
		case c == '[':
			stack = append(stack, open{at: j, value: true, closed: ']'})
			j++
		case c == '{':
			stack = append(stack, open{at: j, closed: '}'})
			j++
		case c == ',':
			stack[top].value = stack[top].closed == ']'
			j++
		case c == ']' || c == '}':
			if c != stack[top].closed {
				s.find(j, 0, "this "+string(c)+" closes nothing: "+string(stack[top].closed)+" is open.")
				return -1
			}
			from := stack[top].at
			stack = stack[:top]
			j++
			if top == 0 {
				return j
			}
			j = s.afterItem(from, j)
		case c == ':' && !stack[top].value:
			stack[top].value = true
			j++
		case c == '&' && j+1 < len(s.text) && s.text[j+1] != '&':
			for j < len(s.text) && !strings.ContainsRune(" \n,]}", rune(s.text[j])) {
				j++
			}
		case !stack[top].value:
			j = s.flowKey(j)
		default:
			j = s.flowValue(j)
		}
	}
	if len(stack) > 0 {
		c := stack[len(stack)-1]
		s.find(c.at, 0, "this "+s.text[c.at:c.at+1]+" is never closed with "+string(c.closed)+".")
	}
	return -1
}

// flowKey returns the place behind a key in a flow map.
func (s *scanner) flowKey(i int) int {
	if q := s.text[i]; q == '"' || q == '\'' {
		if j := s.closing(i, len(s.text)); j >= 0 {
			return j + 1
		}
		s.find(i, 0, "this quote is never closed.")
		return len(s.text)
	}
	for j := i; j < len(s.text); j++ {
		switch c := s.text[j]; {
		case c == ',' || c == '}' || c == ']' || c == '{' || c == '[' || c == '\n':
			return max(j, i+1)
		case c == ':' && (j+1 == len(s.text) || strings.ContainsRune(" \n,[]{}", rune(s.text[j+1]))):
			return max(j, i+1)
		}
	}
	return len(s.text)
}

// flowValue looks at an item of a flow list or a value of a flow map, and returns
// the place behind it.
func (s *scanner) flowValue(i int) int {
	if q := s.text[i]; q == '"' || q == '\'' {
		j := s.closing(i, len(s.text))
		if j < 0 {
			s.find(i, 0, "this quote is never closed.")
			return len(s.text)
		}
		return s.afterItem(i, j+1)
	}
	j := s.expressionEnd(i)
	value := strings.TrimRight(s.text[i:j], " \r\n")
	stop := i + len(value)
	fix := " Put quotes around it: " + show(quote(value)) + "."
	switch {
	case s.special(i, stop):
	case strings.Contains(value, "${"):
		s.find(i, stop, "{ begins a map inside [ ] and { }."+fix)
	case strings.Contains(value, "? ") || strings.Contains(value, ": ") || strings.HasSuffix(value, ":"):
		s.find(i, stop, colonOrQuestion(value)+fix)
	case strings.ContainsAny(value, "[]{}"):
		s.find(i, stop, "brackets begin a list or a map inside [ ] and { }, so this expression is cut off."+fix)
	}
	return max(j, i+1)
}

func colonOrQuestion(value string) string {
	if strings.Contains(value, ": ") {
		return `this expression holds ": ", which YAML reads as a new key.`
	}
	return `this expression holds "? ", which YAML reads as a key.`
}

// afterItem looks at what follows an item that ended before i with a quote or a
// bracket: a comma, a colon or the end; anything else belongs to an expression.
func (s *scanner) afterItem(start, i int) int {
	j := i
	for j < len(s.text) && strings.IndexByte(" \t\r\n", s.text[j]) >= 0 {
		j++
	}
	if j == len(s.text) || strings.IndexByte(",]}:#", s.text[j]) >= 0 {
		return i
	}
	end := s.expressionEnd(start)
	value := strings.TrimRight(s.text[start:end], " \r\n")
	if end <= i {
		return i
	}
	// What has been found inside it is part of it.
	for len(s.found) > 0 && s.found[len(s.found)-1].start >= start {
		s.found = s.found[:len(s.found)-1]
	}
	s.find(start, start+len(value), "YAML takes `"+show(s.text[start:i])+"` for the whole value, but there is more. Put single quotes around all of it: "+show(quote(value))+".")
	return end
}

// expressionEnd returns the end of an expression that begins at i inside a flow
// list or map: the next comma or closing bracket outside its own brackets and
// quotes.
func (s *scanner) expressionEnd(i int) int {
	depth := 0
	for j := i; j < len(s.text); j++ {
		switch s.text[j] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth == 0 {
				return j
			}
			depth--
		case ',':
			if depth == 0 {
				return j
			}
		case '"', '\'':
			if n := closing(s.text[:s.lineEnd(j)], j); n >= 0 {
				j = n
			}
		}
	}
	return s.lineEnd(i)
}
