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

// forget drops what has been found from a place on.
func (s *scanner) forget(start int) {
	for len(s.found) > 0 && s.found[len(s.found)-1].start >= start {
		s.found = s.found[:len(s.found)-1]
	}
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
		s.find(i, stop, colon(value, s.quoted(i, stop)))
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
	s.findMore(start, i, end)
}

// findMore reports a value from start to end of which YAML takes what stands
// before i for all.
func (s *scanner) findMore(start, i, end int) {
	end = start + len(strings.TrimRight(s.text[start:end], " \r\n"))
	s.find(start, end, "YAML takes "+s.shown(start, i)+" for the whole value, but there is more. Put single quotes around all of it: "+s.quoted(start, end)+".")
}

var (
	lastKey    = regexp.MustCompile(`([A-Za-z_]+):[^:]*$`)
	secretForm = regexp.MustCompile(`(?i)secret|token|password|^value$|^url$`)
)

// secret tells whether the text from i to end may be a secret, by what it looks
// like and by the key before it. No message may show one.
func (s *scanner) secret(i, end int) bool {
	value := s.text[i:end]
	key := lastKey.FindStringSubmatch(s.text[max(0, i-500):i])
	return strings.Contains(value, "://") || strings.Contains(value, "whsec_") ||
		key != nil && secretForm.MatchString(key[1]) && !strings.HasPrefix(value, "${")
}

func (s *scanner) quoted(i, end int) string {
	if s.secret(i, end) {
		return "'…'"
	}
	return show(quote(s.text[i:end]))
}

func (s *scanner) shown(i, end int) string {
	if s.secret(i, end) {
		return "a part of it"
	}
	return "`" + show(s.text[i:end]) + "`"
}

// special reports a plain value whose first character means something in YAML.
func (s *scanner) special(i, stop int) bool {
	value := s.text[i:stop]
	if value == "" {
		return false
	}
	fix := " Put single quotes around it: " + s.quoted(i, i+len(value)) + "."
	switch value[0] {
	case '*':
		m := aliasForm.FindStringSubmatch(value)
		if m != nil && s.anchors[m[1]] {
			return false
		}
		if m != nil {
			s.find(i, stop, "*"+m[1]+" is an alias in YAML, for a value marked &"+m[1]+", and there is none."+fix)
			return true
		}
		s.find(i, stop, "a value that begins with * is an alias in YAML."+fix)
	case '!':
		s.find(i, stop, "a value that begins with ! is a tag in YAML."+fix)
	case '&':
		s.find(i, stop, "a value that begins with & is an anchor in YAML."+fix)
	case '-':
		if !strings.HasPrefix(value, "- ") {
			return false
		}
		s.find(i, 0, "a list (-) begins on a line of its own, below its key.")
	case '@', '`', '%':
		s.find(i, stop, "a value cannot begin with "+value[:1]+" in YAML."+fix)
	default:
		return false
	}
	return true
}

// colon says what is wrong with a value that holds ": ".
func colon(value, quoted string) string {
	what := "value"
	if strings.ContainsAny(value, `?("`) || strings.Contains(value, "==") {
		what = "expression"
	}
	return "this " + what + " holds \": \", which YAML reads as a new key. Put single quotes around it: " + quoted + "."
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
			j = s.flowValue(j, stack[top].closed)
		}
	}
	if len(stack) > 0 {
		c := stack[len(stack)-1]
		s.forget(c.at) // what follows may have been read wrongly
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
func (s *scanner) flowValue(i int, closed byte) int {
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
	fix := " Put single quotes around it: " + s.quoted(i, i+len(value)) + "."
	switch {
	case s.special(i, stop):
	case strings.Contains(value, "${"):
		s.find(i, stop, "{ begins a map inside [ ] and { }."+fix)
	case strings.Contains(value, "? ") || strings.Contains(value, ": ") || strings.HasSuffix(value, ":"):
		s.find(i, stop, colonOrQuestion(value)+fix)
	case strings.Contains(value, ","):
		first, _, _ := strings.Cut(value, ",")
		where := "[ ] a comma separates items"
		if closed == '}' {
			where = "{ } a comma separates keys"
		}
		s.find(i, stop, s.shown(i, i+len(first))+" is cut off: inside "+where+"."+fix)
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
	if end <= i {
		return i
	}
	s.forget(start) // what has been found inside it is part of it
	s.findMore(start, i, end)
	return end
}

// expressionEnd returns the end of an expression that begins at i inside a flow
// list or map: the next comma or closing bracket outside its own brackets and
// quotes.
func (s *scanner) expressionEnd(i int) int {
	var open []byte
	for j := i; j < len(s.text); j++ {
		switch c := s.text[j]; c {
		case '(', '[', '{':
			open = append(open, map[byte]byte{'(': ')', '[': ']', '{': '}'}[c])
		case ')', ']', '}':
			if len(open) == 0 || open[len(open)-1] != c {
				return j
			}
			open = open[:len(open)-1]
		case ',':
			if len(open) == 0 {
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
