package merge

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/apd/v3"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfold/hookfold/event"
)

// TypeKind is the kind of a column's type.
type TypeKind uint8

// The types a column can have.
const (
	Text TypeKind = iota
	Bool
	Int
	Numeric
	Float
	Timestamp
	Date
	UUID
	JSON
	Bytes
	TextArray
)

var typeNames = []string{"text", "bool", "int", "numeric", "float", "timestamp", "date", "uuid", "json", "bytes", "text[]"}

// Type is the type of a column, as a config declares it.
type Type struct {
	Kind TypeKind
	// Length is the most characters of a Text; 0 is unlimited.
	Length int
	// Precision and Scale are the most digits of a Numeric, in all and behind
	// the point; Precision 0 is unlimited.
	Precision, Scale int
}

// String returns the type as a config writes it.
func (t Type) String() string {
	switch {
	case t.Kind == Text && t.Length > 0:
		return fmt.Sprintf("text(%d)", t.Length)
	case t.Kind == Numeric && t.Precision > 0:
		return fmt.Sprintf("numeric(%d,%d)", t.Precision, t.Scale)
	}
	return typeNames[t.Kind]
}

var typeForm = regexp.MustCompile(`^(text|numeric)\(\s*(\d{1,7})\s*(?:,\s*(\d{1,4})\s*)?\)$`)

// ParseType reads a type as a config writes it: text, text(9), numeric(10,2),
// text[] and so on.
func ParseType(s string) (Type, error) {
	if i := slices.Index(typeNames, s); i >= 0 {
		return Type{Kind: TypeKind(i)}, nil
	}
	m := typeForm.FindStringSubmatch(s)
	if m == nil || m[1] == "text" && m[3] != "" {
		return Type{}, fmt.Errorf("%s is not a type. The types are: %s, text(n), numeric(p,s)", s, strings.Join(typeNames, ", "))
	}
	first, _ := strconv.Atoi(m[2])
	second, _ := strconv.Atoi(m[3])
	switch {
	case first == 0:
		return Type{}, fmt.Errorf("%s has no room for a value", s)
	case m[1] == "text":
		return Type{Kind: Text, Length: first}, nil
	case second > first:
		return Type{}, fmt.Errorf("%s has more digits behind the point than in all", s)
	}
	return Type{Kind: Numeric, Precision: first, Scale: second}, nil
}

// Value is the value of one column: NULL, or text in the canonical form of the
// column's type, so that equal values are equal bytes. Values are comparable.
// The zero Value is NULL.
type Value struct {
	text string
	ok   bool
}

// NullValue is NULL.
var NullValue = Value{}

// IsNull tells whether the value is NULL.
func (v Value) IsNull() bool { return !v.ok }

// Text returns the canonical text, "" for NULL.
//
// By type: text as it is; bool "true" or "false"; int and numeric their digits
// without needless zeros or an exponent; float the shortest that reads back;
// timestamp 2006-01-02T15:04:05.000000Z in UTC; date 2006-01-02; uuid lower
// case with hyphens; json without space, members sorted, numbers as received;
// bytes \x and hexadecimal digits; text[] a JSON list.
func (v Value) Text() string { return v.text }

// String renders the value for a person.
func (v Value) String() string {
	if !v.ok {
		return "NULL"
	}
	return v.text
}

// ErrBadText says that a text holds what most databases cannot store: NUL, or
// bytes that are not UTF-8.
var ErrBadText = errors.New("holds NUL or text that is not UTF-8")

// MaxText is the most bytes a value may have.
const MaxText = 16 << 20

// ParseValue makes a value of a type from text. What does not fit the type is
// an error that says why ("15 characters into text(9)"); nothing is rounded or
// cut, but for times, which columns keep to the microsecond.
func ParseValue(t Type, s string) (Value, error) {
	if len(s) > MaxText {
		return Value{}, fmt.Errorf("%d bytes are more than a value may have (%d)", len(s), MaxText)
	}
	canonical, err := parse(t, s)
	if err != nil {
		return Value{}, err
	}
	return Value{text: canonical, ok: true}, nil
}

func parse(t Type, s string) (string, error) {
	switch t.Kind {
	case Text:
		return s, checkText(t, s)
	case Bool:
		if s != "true" && s != "false" {
			return "", misfit(t, s)
		}
		return s, nil
	case Int:
		return parseInt(s)
	case Numeric:
		return parseNumeric(t, s)
	case Float:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return "", misfit(t, s)
		}
		return strconv.FormatFloat(f+0, 'g', -1, 64), nil // -0 + 0 is 0
	case Timestamp:
		return parseTimestamp(t, s)
	case Date:
		if d, err := time.Parse(time.DateOnly, s); err == nil {
			return d.Format(time.DateOnly), nil
		}
		return "", misfit(t, s)
	case UUID:
		return parseUUID(s)
	case JSON:
		return parseJSON(s)
	case Bytes:
		if !strings.HasPrefix(s, `\x`) {
			return "", misfit(t, s)
		}
		b, err := hex.DecodeString(s[2:])
		if err != nil {
			return "", misfit(t, s)
		}
		return `\x` + hex.EncodeToString(b), nil
	case TextArray:
		list, err := decodeList(s)
		if err != nil {
			return "", misfit(t, s)
		}
		return encodeList(list), nil
	}
	panic("merge: a type of no known kind")
}

func misfit(t Type, s string) error {
	return fmt.Errorf("%s does not fit %s", clip(s), t)
}

// clip shortens a value for a message.
func clip(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}

func checkText(t Type, s string) error {
	if strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
		return ErrBadText
	}
	if n := utf8.RuneCountInString(s); t.Length > 0 && n > t.Length {
		return fmt.Errorf("%d characters into %s", n, t)
	}
	return nil
}

func parseInt(s string) (string, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return strconv.FormatInt(n, 10), nil
	}
	whole, err := parseNumeric(Type{Kind: Numeric}, s) // 1e3 and 5.0 are integers too
	if err == nil {
		if n, err := strconv.ParseInt(whole, 10, 64); err == nil {
			return strconv.FormatInt(n, 10), nil
		}
	}
	return "", misfit(Type{Kind: Int}, s)
}

const maxDigits = 1000 // of a number written out, on either side of the point

func parseNumeric(t Type, s string) (string, error) {
	d, _, err := apd.NewFromString(s)
	if err != nil || d.Form != apd.Finite {
		return "", misfit(t, s)
	}
	if d.IsZero() {
		return "0", nil
	}
	d.Reduce(d)
	behind := max(0, -int64(d.Exponent))
	before := d.NumDigits() + int64(d.Exponent)
	if before > maxDigits || behind > maxDigits {
		return "", fmt.Errorf("a number with more than %d digits", maxDigits)
	}
	if t.Precision > 0 && (behind > int64(t.Scale) || before > int64(t.Precision-t.Scale)) {
		return "", misfit(t, s)
	}
	return d.Text('f'), nil
}

const (
	timestampLayout = "2006-01-02T15:04:05.000000Z"
)

// TimestampValue makes the value of a timestamp column, to the microsecond.
func TimestampValue(at time.Time) (Value, error) {
	at = at.UTC()
	if y := at.Year(); y < 1 || y > 9999 {
		return Value{}, fmt.Errorf("the year %d does not fit timestamp", y)
	}
	return Value{text: at.Truncate(time.Microsecond).Format(timestampLayout), ok: true}, nil
}

func parseTimestamp(t Type, s string) (string, error) {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return "", fmt.Errorf("the number %s into %s: write timestamp(x) to read it as the time since 1970", s, t)
	}
	at, err := event.ParseTime(s, nil)
	if err != nil {
		return "", err
	}
	v, err := TimestampValue(at)
	return v.text, err
}

var uuidForm = regexp.MustCompile(`^\{?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})\}?$`)

func parseUUID(s string) (string, error) {
	m := uuidForm.FindStringSubmatch(strings.ToLower(s))
	if m == nil {
		return "", misfit(Type{Kind: UUID}, s)
	}
	return strings.Join(m[1:], "-"), nil
}

func parseJSON(s string) (string, error) {
	if !utf8.ValidString(s) || strings.Contains(s, `\u0000`) && hasNUL(s) {
		return "", ErrBadText
	}
	v := jsontext.Value(s)
	err := v.Format(jsontext.AllowDuplicateNames(true), jsontext.ReorderRawObjects(true),
		jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false), jsontext.PreserveRawStrings(false))
	if err != nil {
		return "", misfit(Type{Kind: JSON}, s)
	}
	if err := checkNumbers(v); err != nil {
		return "", err
	}
	return string(v), nil
}

// checkNumbers refuses a document with a number that a database would write out
// in more than maxDigits digits: 1E100000 is eight bytes here and 100 kB there.
func checkNumbers(doc []byte) error {
	if !bytes.ContainsAny(doc, "eE") {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(doc), jsontext.AllowDuplicateNames(true))
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return nil // the end: the document has been checked
		}
		if tok.Kind() != '0' {
			continue
		}
		if text := tok.String(); strings.ContainsAny(text, "eE") {
			if _, err := parseNumeric(Type{Kind: Numeric}, text); err != nil {
				return fmt.Errorf("it holds the number %s, which would be written out in more than %d digits", clip(text), maxDigits)
			}
		}
	}
}

// hasNUL tells whether a JSON document holds an escaped NUL, and not only an
// escaped backslash before u0000.
func hasNUL(s string) bool {
	dec := jsontext.NewDecoder(strings.NewReader(s), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return false
		}
		if tok.Kind() == '"' && strings.IndexByte(tok.String(), 0) >= 0 {
			return true
		}
	}
}

// BytesValue makes the value of a bytes column.
func BytesValue(b []byte) Value { return Value{text: `\x` + hex.EncodeToString(b), ok: true} }

// TextArrayValue makes the value of a text[] column.
func TextArrayValue(list []string) (Value, error) {
	for _, s := range list {
		if err := checkText(Type{}, s); err != nil {
			return Value{}, err
		}
	}
	return Value{text: encodeList(list), ok: true}, nil
}

func encodeList(list []string) string {
	b := []byte{'['}
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b, _ = jsontext.AppendQuote(b, s)
	}
	return string(append(b, ']'))
}

func decodeList(s string) ([]string, error) {
	j, err := event.ParseJSON([]byte(s))
	if err != nil || j.Kind() != event.Array {
		return nil, errors.New("not a list")
	}
	list := make([]string, j.Len())
	for i := range list {
		x := j.At(i)
		if x.Kind() != event.String {
			return nil, errors.New("not a list of texts")
		}
		if !x.WellFormed() {
			return nil, ErrBadText
		}
		list[i] = x.Text()
	}
	return list, nil
}

// List returns the elements of a text[] value.
func (v Value) List() []string {
	list, _ := decodeList(v.text)
	return list
}

// unionOf joins two text[] values as sets, sorted by bytes.
func unionOf(a, b Value) Value {
	all := append(a.List(), b.List()...)
	slices.Sort(all)
	return Value{text: encodeList(slices.Compact(all)), ok: true}
}

// Compare orders two values of a type, as max and min do: numbers by size,
// times by instant, text by bytes. NULL is below all.
func Compare(t Type, a, b Value) int {
	if !a.ok || !b.ok {
		return btoi(a.ok) - btoi(b.ok)
	}
	switch t.Kind {
	case Int, Numeric:
		return decimal(a.text).Cmp(decimal(b.text))
	case Float:
		x, _ := strconv.ParseFloat(a.text, 64)
		y, _ := strconv.ParseFloat(b.text, 64)
		return cmp.Compare(x, y)
	}
	return strings.Compare(a.text, b.text)
}

func decimal(s string) *apd.Decimal {
	d, _, err := apd.NewFromString(s)
	if err != nil {
		panic("merge: " + s + " is no canonical number")
	}
	return d
}
