package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

var errUnset = errors.New("is not set")

// expand replaces ${NAME} by an environment variable and ${file:path} by what a
// file holds, without the line break at its end. $${ stands for ${ itself. What
// is put in is not looked at again. Errors name the variable or the file, never
// a value.
func (l *loader) expand(s string) (string, error) {
	var out strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			out.WriteString(s)
			return out.String(), nil
		}
		if i > 0 && s[i-1] == '$' {
			out.WriteString(s[:i-1])
			out.WriteString("${")
			s = s[i+2:]
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if end < 0 {
			return "", errors.New("${ is not closed with }. For the text ${ itself write $${")
		}
		out.WriteString(s[:i])
		v, err := l.lookup(s[i+2 : i+end])
		if err != nil {
			return "", err
		}
		out.WriteString(v)
		s = s[i+end+1:]
	}
}

func (l *loader) lookup(name string) (string, error) {
	if path, ok := strings.CutPrefix(name, "file:"); ok {
		data, err := l.o.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("the file %s cannot be read: %v", show(path), cause(err))
		}
		s := strings.TrimSuffix(string(data), "\n")
		return strings.TrimSuffix(s, "\r"), nil
	}
	if !variable.MatchString(name) {
		return "", fmt.Errorf("${%s} is neither ${NAME}, an environment variable, nor ${file:/path}. For the text ${ itself write $${", show(name))
	}
	v, ok := l.o.Env(name)
	if !ok {
		return "", fmt.Errorf("the environment variable %s %w", name, errUnset)
	}
	return v, nil
}
