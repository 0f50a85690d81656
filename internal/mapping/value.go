package mapping

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/merge"
)

// valuer makes values of a source's results.
type valuer struct {
	zone *time.Location
	// dead is bad_text: dead.
	dead bool
}

// value makes the value of a column. bad counts the texts read for v that hold
// NUL or were not UTF-8; replaced counts those in which that was replaced.
func (o valuer) value(t merge.Type, v ref.Val, bad int) (out merge.Value, replaced int, err error) {
	if v == types.NullValue {
		return merge.NullValue, 0, nil
	}
	if bad > 0 && o.dead {
		return merge.NullValue, 0, errBadText
	}
	out, err = o.plain(t, v)
	if !errors.Is(err, merge.ErrBadText) {
		return out, bad, err
	}
	if o.dead {
		return merge.NullValue, 0, errBadText
	}
	clean, n, err := cleaned(v)
	if err != nil {
		return merge.NullValue, 0, err
	}
	out, err = o.plain(t, clean)
	return out, max(bad, n), err
}

var errBadText = fmt.Errorf("a text %w (bad_text: dead)", merge.ErrBadText)

func (o valuer) plain(t merge.Type, v ref.Val) (merge.Value, error) {
	switch t.Kind {
	case merge.JSON:
		text, err := encodeJSON(v)
		if err != nil {
			return merge.NullValue, err
		}
		return merge.ParseValue(t, text)
	case merge.Timestamp:
		return o.timestamp(t, v)
	case merge.Bytes:
		if b, ok := v.(types.Bytes); ok {
			return merge.BytesValue(b), nil
		}
	case merge.TextArray:
		if list, ok := v.(traits.Lister); ok {
			return textArray(list)
		}
	case merge.Text:
		if b, ok := v.(types.Bytes); ok {
			return merge.ParseValue(t, string(b))
		}
	case merge.Date:
		if _, ok := v.(types.Timestamp); ok {
			return merge.NullValue, fmt.Errorf("a time into date: say which day, as in string(time).substring(0, 10)")
		}
	}
	text, err := expr.Text(v)
	if err != nil {
		if _, isNumber := v.(*expr.Number); isNumber {
			return merge.NullValue, err
		}
		return merge.NullValue, fmt.Errorf("%s does not fit %s", expr.Describe(v), t)
	}
	return merge.ParseValue(t, text)
}

func (o valuer) timestamp(t merge.Type, v ref.Val) (merge.Value, error) {
	switch x := v.(type) {
	case types.Timestamp:
		return merge.TimestampValue(x.Time)
	case types.String:
		if digits(string(x)) {
			break
		}
		at, err := event.ParseTime(string(x), o.zone)
		if err != nil {
			return merge.NullValue, err
		}
		return merge.TimestampValue(at)
	case types.Int, *expr.Number:
	default:
		return merge.NullValue, fmt.Errorf("%s does not fit %s", expr.Describe(v), t)
	}
	return merge.NullValue, fmt.Errorf("%s into %s: write timestamp(x) to read it as the time since 1970", expr.Describe(v), t)
}

func digits(s string) bool {
	return strings.Trim(s, "0123456789.-+ ") == "" && strings.Count(s, "-") < 2
}

func textArray(list traits.Lister) (merge.Value, error) {
	var texts []string
	size := 0
	for i := list.Iterator(); i.HasNext() == types.True; {
		v := i.Next()
		text, err := expr.Text(v)
		if err != nil {
			return merge.NullValue, fmt.Errorf("%s does not fit into a list of texts", expr.Describe(v))
		}
		if size += len(text); size > maxWritten {
			return merge.NullValue, errTooLarge
		}
		texts = append(texts, text)
	}
	return merge.TextArrayValue(texts)
}

// maxWritten is the most bytes of JSON, or of a list of texts, that is made of
// what an expression has made: one list in another's every element is small until
// it is written out.
const maxWritten = 32 << 20

var errTooLarge = fmt.Errorf("a value of more than %d MiB: make less of it", maxWritten>>20)

// encodeJSON writes a value as JSON; numbers keep their digits.
func encodeJSON(v ref.Val) (string, error) {
	var b strings.Builder
	if err := appendJSON(&b, v, 0); err != nil {
		return "", err
	}
	return b.String(), nil
}

func appendJSON(b *strings.Builder, v ref.Val, depth int) error {
	switch {
	case depth > 100:
		return errors.New("a value nested more than 100 deep")
	case b.Len() > maxWritten:
		return errTooLarge
	}
	switch x := v.(type) {
	case types.Null:
		b.WriteString("null")
	case *expr.Object:
		b.Write(x.Raw())
	case *expr.List:
		b.Write(x.Raw())
	case types.Bool, types.Int, *expr.Number:
		text, err := expr.Text(x)
		if err != nil {
			return err
		}
		b.WriteString(text)
	case types.String, types.Timestamp, types.Duration:
		text, err := expr.Text(x)
		if err != nil {
			return err
		}
		b.Write(event.Quote(text).Raw())
	case *types.Optional:
		if !x.HasValue() {
			b.WriteString("null")
			return nil
		}
		return appendJSON(b, x.GetValue(), depth+1)
	case traits.Lister:
		return appendList(b, x, depth)
	case traits.Mapper:
		return appendMap(b, x, depth)
	default:
		return fmt.Errorf("%s does not fit json", expr.Describe(v))
	}
	return nil
}

func appendList(b *strings.Builder, list traits.Lister, depth int) error {
	b.WriteByte('[')
	for i, n := list.Iterator(), 0; i.HasNext() == types.True; n++ {
		if n > 0 {
			b.WriteByte(',')
		}
		if err := appendJSON(b, i.Next(), depth+1); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	return nil
}

func appendMap(b *strings.Builder, m traits.Mapper, depth int) error {
	b.WriteByte('{')
	for i, n := m.Iterator(), 0; i.HasNext() == types.True; n++ {
		if n > 0 {
			b.WriteByte(',')
		}
		key := i.Next()
		name, err := expr.Text(key)
		if err != nil {
			return fmt.Errorf("%s cannot be a name in an object", expr.Describe(key))
		}
		b.Write(event.Quote(name).Raw())
		b.WriteByte(':')
		if err := appendJSON(b, m.Get(key), depth+1); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// cleaned replaces what no database can store in the texts of a value, and
// counts them.
func cleaned(v ref.Val) (ref.Val, int, error) {
	switch x := v.(type) {
	case types.String:
		return types.String(clean(string(x))), 1, nil
	case types.Bytes:
		return types.String(clean(string(x))), 1, nil
	}
	text, err := encodeJSON(v)
	if err != nil {
		return nil, 0, err
	}
	out, n, err := cleanJSON(text)
	if err != nil {
		return nil, 0, err
	}
	j, err := event.ParseJSON([]byte(out))
	if err != nil {
		return nil, 0, err
	}
	return expr.Wrap(j), n, nil
}

func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// cleanJSON replaces NUL, and what is not UTF-8, in the texts of a document.
func cleanJSON(text string) (string, int, error) {
	dec := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var b strings.Builder
	enc := jsontext.NewEncoder(&b, jsontext.AllowDuplicateNames(true))
	n := 0
	for {
		at := dec.InputOffset()
		tok, err := dec.ReadToken()
		if err != nil {
			break // the end: the document has been read before
		}
		if tok.Kind() != '"' {
			if err := enc.WriteToken(tok); err != nil {
				return "", 0, err
			}
			continue
		}
		s := tok.String()
		raw := strings.TrimLeft(text[at:dec.InputOffset()], " \t\r\n,:")
		if j, err := event.ParseJSON([]byte(raw)); err == nil && !j.WellFormed() {
			n++
		}
		if err := enc.WriteToken(jsontext.String(clean(s))); err != nil {
			return "", 0, err
		}
	}
	return strings.TrimSpace(b.String()), n, nil
}
