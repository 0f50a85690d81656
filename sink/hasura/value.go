package hasura

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfold/hookfold/merge"
)

// encode writes a canonical text for a column of the live schema. Everything is
// sent as a string, which Hasura leaves to PostgreSQL to read, digit for digit;
// but for JSON, truth values and GraphQL's own Int. Arrays too are sent as
// PostgreSQL writes them: of a list Hasura makes such a text itself, and loses
// line breaks in it.
func encode(c *gqlColumn, kind merge.TypeKind, text string) []byte {
	switch {
	case c.scalar == "json" || c.scalar == "jsonb":
		if kind == merge.JSON || kind == merge.TextArray || kind == merge.Bool || kind == merge.Int || kind == merge.Numeric || kind == merge.Float {
			return []byte(text)
		}
	case kind == merge.TextArray && c.array():
		return quoteJSON(arrayLiteral([]byte(text)))
	case c.scalar == "Boolean" && kind == merge.Bool, c.scalar == "Int" && (kind == merge.Int || kind == merge.Numeric):
		return []byte(text)
	}
	return quoteJSON(text)
}

// array says that a column is an array of PostgreSQL: [String!], or _text where
// Hasura is told to show arrays as scalars.
func (c *gqlColumn) array() bool { return c.list || strings.HasPrefix(c.scalar, "_") }

func quoteJSON(s string) []byte {
	b, _ := jsontext.AppendQuote(nil, s)
	return b
}

// arrayLiteral writes a JSON list of texts as PostgreSQL writes arrays.
func arrayLiteral(list []byte) string {
	var items []*string
	if json.Unmarshal(list, &items) != nil {
		return string(list)
	}
	var b strings.Builder
	b.WriteByte('{')
	for i, s := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		if s == nil {
			b.WriteString("NULL")
			continue
		}
		b.WriteByte('"')
		for j := 0; j < len(*s); j++ {
			if (*s)[j] == '"' || (*s)[j] == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte((*s)[j])
		}
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

// again writes what was read of a column as what is to be compared with it.
func again(c *gqlColumn, raw json.RawMessage) []byte {
	if c.array() && len(raw) > 0 && raw[0] == '[' {
		return quoteJSON(arrayLiteral(raw))
	}
	return raw
}

// textOf gives what was read as text, and false for NULL.
func textOf(kind merge.TypeKind, raw json.RawMessage) (string, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return "", false
	}
	if kind == merge.JSON || raw[0] != '"' {
		return string(raw), true
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw), true
	}
	return s, true
}

// valueOf gives what was read as a value. What is not of the column's type comes
// as the text that it is.
func valueOf(t merge.Type, c *gqlColumn, raw json.RawMessage) merge.Value {
	s, ok := textOf(t.Kind, raw)
	if !ok {
		return merge.NullValue
	}
	if t.Kind == merge.Timestamp && c.scalar == "timestamp" && !strings.HasSuffix(s, "Z") {
		s += "Z" // a column without a zone holds UTC
	}
	t.Length, t.Precision = 0, 0
	v, err := merge.ParseValue(t, s)
	if err != nil {
		v, _ = merge.ParseValue(merge.Type{Kind: merge.Text}, s)
	}
	return v
}

// ordered says that PostgreSQL orders a column's values as package merge does.
// Texts it orders by a collation, which GraphQL does not tell, and the values of
// an enum by their place.
func ordered(c *gqlColumn, kind merge.TypeKind) bool {
	if c.list {
		return false
	}
	switch kind {
	case merge.Int, merge.Numeric, merge.Float:
		return c.scalar == "Int" || c.scalar == "bigint" || c.scalar == "smallint" || c.scalar == "numeric" || c.scalar == "float8" || c.scalar == "Float"
	case merge.Timestamp:
		return c.scalar == "timestamptz" || c.scalar == "timestamp"
	case merge.Date:
		return c.scalar == "date"
	case merge.UUID:
		return c.scalar == "uuid"
	case merge.Bool:
		return c.scalar == "Boolean"
	case merge.Bytes:
		return c.scalar == "bytea"
	}
	return false
}
