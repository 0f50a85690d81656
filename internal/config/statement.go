package config

import (
	"errors"
	"strings"
)

// Statement is an SQL statement of the user's own, cut at its parameters.
type Statement struct {
	Pos  Pos
	Path string
	// Parts are the texts between the parameters, one more than there are places
	// of parameters; Places names the parameter at each place.
	Parts, Places []string
}

// Text writes the statement with its parameters as the database wants them.
func (s *Statement) Text(param func(name string) string) string {
	var b strings.Builder
	for i, part := range s.Parts {
		b.WriteString(part)
		if i < len(s.Places) {
			b.WriteString(param(s.Places[i]))
		}
	}
	return b.String()
}

var (
	errOpenQuote   = errors.New("opens a quote or a comment that it does not close")
	errTwo         = errors.New("holds more than one statement: a lane runs one for each event. Put the others into a function, or into a lane of their own")
	errNoStatement = errors.New("holds no statement")
)

// cutStatement finds the parameters (:name) of a statement, outside of quotes
// and comments. It knows the quotes of PostgreSQL, SQLite, MySQL and SQL Server
// but brackets, and casts (x::text).
func cutStatement(text string) (s Statement, err error) {
	text = strings.TrimRight(strings.TrimSpace(text), "; \t\r\n")
	if text == "" {
		return s, errNoStatement
	}
	from := 0
	for i := 0; i < len(text); {
		end, err := skipQuoted(text, i)
		switch {
		case err != nil:
			return s, err
		case end > i:
			i = end
		case text[i] == ';':
			return s, errTwo
		case strings.HasPrefix(text[i:], "::"):
			i += 2
		case text[i] == ':' && i+1 < len(text) && isNameStart(text[i+1]) && (i == 0 || !isNamePart(text[i-1])):
			end := i + 1
			for end < len(text) && isNamePart(text[end]) {
				end++
			}
			s.Parts, s.Places = append(s.Parts, text[from:i]), append(s.Places, text[i+1:end])
			i, from = end, end
		default:
			i++
		}
	}
	s.Parts = append(s.Parts, text[from:])
	return s, nil
}

// skipQuoted returns where a quoted text or a comment ends that begins at i; i
// itself if none does.
func skipQuoted(s string, i int) (int, error) {
	closed := func(from int, by string) (int, error) {
		if end := strings.Index(s[from:], by); end >= 0 {
			return from + end + len(by), nil
		}
		return 0, errOpenQuote
	}
	switch rest := s[i:]; {
	case rest[0] == '\'' || rest[0] == '"' || rest[0] == '`':
		escapes := rest[0] == '\'' && i > 0 && (s[i-1] == 'E' || s[i-1] == 'e') && (i == 1 || !isNamePart(s[i-2]))
		for j := i + 1; j < len(s); j++ {
			if escapes && s[j] == '\\' {
				j++
			} else if s[j] == rest[0] { // a doubled quote opens the next text at once
				return j + 1, nil
			}
		}
		return 0, errOpenQuote
	case strings.HasPrefix(rest, "--"):
		if end := strings.IndexByte(rest, '\n'); end >= 0 {
			return i + end + 1, nil
		}
		return len(s), nil
	case strings.HasPrefix(rest, "/*"):
		return closed(i+2, "*/")
	case rest[0] == '$' && (i == 0 || !isNamePart(s[i-1])):
		end := 1
		for end < len(rest) && isNamePart(rest[end]) {
			end++
		}
		if end < len(rest) && rest[end] == '$' && (end == 1 || isNameStart(rest[1])) {
			return closed(i+end+1, rest[:end+1])
		}
	}
	return i, nil
}

func isNameStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func isNamePart(c byte) bool { return isNameStart(c) || c >= '0' && c <= '9' }
