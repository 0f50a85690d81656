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
	// work counts the bytes that have been looked at more than once.
	work int
}

// finding is one thing that YAML cannot read. end is 0 if quotes around
// text[start:end] are no remedy.
type finding struct {
	pos        Pos
	start, end int
	text       string
}

var aliasForm = regexp.MustCompile(`^\*([A-Za-z0-9_-]+)\s*(#.*)?$`)

const openQuote = "this quote is never closed."

// find adds a finding, up to a bound.
func (s *scanner) find(start, end int, text string) {
	if len(s.found) == maxProblems {
		return
	}
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
	i = s.anchor(i, end)
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
	i = s.anchor(i, end)
	if i >= end || s.text[i] == '#' {
		return end
	}
	switch s.text[i] {
	case '|', '>':
		return s.block(end, column)
	case '"', '\'':
		j := s.closing(i, len(s.text))
		if j < 0 {
			s.find(i, 0, openQuote)
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

// anchor returns the place behind an anchor at i and the spaces after it.
func (s *scanner) anchor(i, end int) int {
	if i < end && s.text[i] == '&' {
		if n := strings.IndexByte(s.text[i:end], ' '); n >= 0 && s.text[i+1] != '&' {
			return s.spaces(i+n, end)
		}
	}
	return i
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
