package hasuratest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

var operators = map[string]string{"_eq": "=", "_neq": "<>", "_lt": "<", "_lte": "<=", "_gt": ">", "_gte": ">="}

// where writes a bool_exp in SQL over the columns of the row that is there.
func (v *view) where(a *access, exp any, path string) (string, *failure) {
	object, ok := exp.(map[string]any)
	if exp == nil {
		return "true", nil
	}
	if !ok {
		return "", failf(path, "validation-failed", "expected an object for type '%s_bool_exp', but found %s", a.gql, kindOf(exp))
	}
	parts := []string{"true"}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		at := path + "." + name
		var s string
		var f *failure
		switch name {
		case "_and":
			s, f = v.list(a, object[name], at, " and ", "true")
		case "_or":
			s, f = v.list(a, object[name], at, " or ", "false")
		case "_not":
			if s, f = v.where(a, object[name], at); f == nil {
				s = "(not " + s + ")"
			}
		default:
			i := slices.IndexFunc(a.read, func(c *column) bool { return c.name == name })
			if i < 0 {
				return "", failf(at, "validation-failed", "field '%s' not found in type: '%s_bool_exp'", name, a.gql)
			}
			s, f = v.compare(a, a.read[i], object[name], at)
		}
		if f != nil {
			return "", f
		}
		parts = append(parts, s)
	}
	if len(parts) == 1 {
		return "(true)", nil
	}
	return "(" + strings.Join(parts[1:], " and ") + ")", nil
}

func (v *view) list(a *access, list any, path, between, empty string) (string, *failure) {
	items, ok := list.([]any)
	if !ok {
		items = []any{list} // a single value is taken for a list of one
	}
	if len(items) == 0 {
		return "(" + empty + ")", nil
	}
	var parts []string
	for i, x := range items {
		s, f := v.where(a, x, fmt.Sprintf("%s[%d]", path, i))
		if f != nil {
			return "", f
		}
		parts = append(parts, s)
	}
	return "(" + strings.Join(parts, between) + ")", nil
}

func (v *view) compare(a *access, c *column, exp any, path string) (string, *failure) {
	object, ok := exp.(map[string]any)
	if !ok {
		return "", failf(path, "validation-failed", "expected an object for type '%s'", v.comparison(c))
	}
	col := a.sql() + "." + ident(c.name)
	var parts []string
	for _, op := range slices.Sorted(maps.Keys(object)) {
		value := object[op]
		at := path + "." + op
		if value == nil {
			return "", failf(at, "validation-failed", "unexpected null value for type '%s'", c.scalar())
		}
		switch op {
		case "_is_null":
			b, ok := value.(bool)
			if !ok {
				return "", failf(at, "validation-failed", "expected a boolean for type 'Boolean', but found %s", kindOf(value))
			}
			parts = append(parts, col+map[bool]string{true: " is null", false: " is not null"}[b])
		case "_in", "_nin":
			items, ok := value.([]any)
			if !ok {
				items = []any{value}
			}
			var list []string
			for i, x := range items {
				if x == nil {
					return "", failf(at, "validation-failed", "unexpected null value for type '%s'", c.scalar())
				}
				s, f := v.literal(c, x, fmt.Sprintf("%s[%d]", at, i))
				if f != nil {
					return "", f
				}
				list = append(list, s)
			}
			not := map[string]string{"_in": "", "_nin": "not "}[op]
			if len(list) == 0 {
				parts = append(parts, map[string]string{"_in": "false", "_nin": "true"}[op])
				continue
			}
			parts = append(parts, fmt.Sprintf("(%s %sin (%s))", col, not, strings.Join(list, ", ")))
		default:
			sql, ok := operators[op]
			if !ok {
				return "", failf(at, "validation-failed", "field '%s' not found in type: '%s'", op, v.comparison(c))
			}
			s, f := v.literal(c, value, at)
			if f != nil {
				return "", f
			}
			parts = append(parts, fmt.Sprintf("(%s %s %s)", col, sql, s))
		}
	}
	if parts == nil {
		return "(true)", nil
	}
	return "(" + strings.Join(parts, " and ") + ")", nil
}
