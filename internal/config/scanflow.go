package config

import "strings"

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
	if n := len(s.found); len(stack) > 0 && (n == 0 || s.found[n-1].text != openQuote) {
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
		s.find(i, 0, openQuote)
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
			s.find(i, 0, openQuote)
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
	case strings.Contains(value, "?") || strings.Contains(value, ": ") || strings.HasSuffix(value, ":"):
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
	return `this expression holds "?", which YAML reads as a key inside [ ] and { }.`
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
	const enough = 16 * MaxSize // brackets inside brackets are looked at again
	var open []byte
	for j := i; j < len(s.text); j++ {
		if s.work++; s.work > enough {
			return len(s.text)
		}
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
