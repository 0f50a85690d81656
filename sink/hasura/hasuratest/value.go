package hasuratest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

var integerBits = map[string]int{"int2": 16, "int4": 32, "int8": 64}

// literal writes a value of a column in SQL: strings are taken for any type and
// left to PostgreSQL, other JSON only where the type has a use for it.
func (v *view) literal(c *column, value any, path string) (string, *failure) {
	text, isNull, f := v.text(c, value, path)
	switch {
	case f != nil:
		return "", f
	case isNull:
		return "null::" + c.typ, nil
	}
	return "(" + quote(text) + ")::" + c.typ, nil
}

func (v *view) text(c *column, value any, path string) (text string, isNull bool, f *failure) {
	bad := func(format string, args ...any) (string, bool, *failure) {
		return "", false, failf(path, "parse-failed", format, args...)
	}
	if value == nil {
		return "", true, nil
	}
	if c.internal == "json" || c.internal == "jsonb" {
		return aeson(value), false, nil
	}
	if c.array && v.arrays {
		list, ok := value.([]any)
		if s, isText := value.(string); isText {
			return s, false, nil
		}
		if !ok {
			return bad("parsing [] failed, expected Array, but encountered %s", kindOf(value))
		}
		element := &column{internal: strings.TrimPrefix(c.internal, "_"), typ: strings.TrimSuffix(c.typ, "[]")}
		parts := make([]string, len(list))
		for i, x := range list {
			s, isNull, f := v.text(element, x, fmt.Sprintf("%s[%d]", path, i))
			if f != nil {
				return "", false, f
			}
			parts[i] = "null"
			if !isNull {
				parts[i] = aeson(s)
			}
		}
		return "{" + strings.Join(parts, ",") + "}", false, nil
	}
	switch x := value.(type) {
	case string:
		return x, false, nil
	case bool:
		if c.internal == "bool" {
			return strconv.FormatBool(x), false, nil
		}
	case json.Number:
		if bits := integerBits[c.internal]; bits > 0 {
			n, ok := new(big.Rat).SetString(x.String())
			if !ok || !n.IsInt() || n.Num().BitLen() >= bits {
				return bad("The value %s lies outside the bounds or is not an integer. Maybe it is a float, or is there integer overflow?", x)
			}
			return n.Num().String(), false, nil
		}
		if slices.Contains([]string{"numeric", "float4", "float8", "money"}, c.internal) {
			return x.String(), false, nil
		}
	}
	switch c.internal {
	case "text", "varchar", "citext", "bpchar":
		return bad("parsing Text failed, expected String, but encountered %s", kindOf(value))
	case "bool":
		return bad("parsing Bool failed, expected Bool, but encountered %s", kindOf(value))
	}
	return bad("A string is expected for type: %s", c.internal)
}

func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "String"
	case bool:
		return "Boolean"
	case json.Number:
		return "Number"
	case []any:
		return "Array"
	}
	return "Object"
}

// aeson writes JSON as Hasura writes it again: a number keeps its value but not
// the zeros behind its digits.
func aeson(v any) string {
	switch x := v.(type) {
	case json.Number:
		if !strings.ContainsAny(x.String(), ".eE") {
			return x.String()
		}
		n, ok := new(big.Rat).SetString(x.String())
		if !ok {
			return x.String()
		}
		if n.IsInt() && !strings.Contains(x.String(), ".") {
			return n.Num().String()
		}
		digits, _ := n.FloatPrec()
		return n.FloatString(max(digits, 1))
	case []any:
		parts := make([]string, len(x))
		for i := range x {
			parts[i] = aeson(x[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		var parts []string
		for k, y := range x {
			parts = append(parts, aeson(k)+":"+aeson(y))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // a decoded value
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// plain turns what gqlparser makes of literals into what it makes of JSON.
func plain(v any) any {
	switch x := v.(type) {
	case int64:
		return json.Number(strconv.FormatInt(x, 10))
	case int:
		return json.Number(strconv.Itoa(x))
	case float64:
		return json.Number(strconv.FormatFloat(x, 'g', -1, 64))
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = plain(x[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, y := range x {
			out[k] = plain(y)
		}
		return out
	}
	return v
}
