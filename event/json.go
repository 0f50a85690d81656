package event

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Kind is the kind of a JSON value.
type Kind uint8

// The kinds of a JSON value. Missing is the kind of the zero JSON: nothing is
// there, which is not the same as null.
const (
	Missing Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// String names the kind as a user would read it in an error.
func (k Kind) String() string {
	return [...]string{"nothing", "null", "true or false", "a number", "text", "a list", "an object"}[k]
}

// JSON is one JSON value over the bytes it came in. An object or a list is
// indexed when it is first entered, and numbers keep their digits. The zero
// JSON is Missing. Text with invalid UTF-8 is accepted here: what becomes of it
// is the policy of whoever writes it (see Raw). Of two members with one name
// the last one counts.
//
// A JSON is not safe for use from several goroutines at once.
type JSON struct{ n *node }

type node struct {
	raw     []byte
	kind    Kind
	entered bool
	names   []string
	values  []JSON
	index   map[string]int // only for objects with many members
}

const (
	maxDepth      = 1000 // nesting allowed in a document
	indexFrom     = 12   // members from which an object gets a map
	kindOfNothing = "an empty body"
)

// ParseJSON reads one document and nothing after it. The JSON keeps a reference
// to b, which must not change afterwards.
func ParseJSON(b []byte) (JSON, error) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(b)) == 0 {
		return JSON{}, errors.New(kindOfNothing + " is not JSON")
	}
	dec := jsontext.NewDecoder(bytes.NewReader(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for depth := 0; ; {
		tok, err := dec.ReadToken()
		if err != nil {
			return JSON{}, fmt.Errorf("not JSON: %w", err)
		}
		switch tok.Kind() {
		case '{', '[':
			if depth++; depth > maxDepth {
				return JSON{}, fmt.Errorf("JSON nested more than %d deep", maxDepth)
			}
		case '}', ']':
			depth--
		}
		if depth == 0 {
			break
		}
	}
	if rest := bytes.TrimSpace(b[dec.InputOffset():]); len(rest) > 0 {
		return JSON{}, fmt.Errorf("not one JSON document: more text follows at byte %d", dec.InputOffset())
	}
	return valid(bytes.TrimSpace(b)), nil
}

// valid wraps bytes that are known to hold exactly one JSON value.
func valid(raw []byte) JSON { return JSON{&node{raw: raw, kind: kindOf(raw)}} }

func kindOf(raw []byte) Kind {
	switch raw[0] {
	case 'n':
		return Null
	case 't', 'f':
		return Bool
	case '"':
		return String
	case '[':
		return Array
	case '{':
		return Object
	}
	return Number
}

// Kind returns the kind of the value.
func (j JSON) Kind() Kind {
	if j.n == nil {
		return Missing
	}
	return j.n.kind
}

// Raw returns the bytes of the value, as received; nil if Missing.
func (j JSON) Raw() []byte {
	if j.n == nil {
		return nil
	}
	return j.n.raw
}

// Bool returns the value of a Bool.
func (j JSON) Bool() bool { return j.Kind() == Bool && j.n.raw[0] == 't' }

// Digits returns the text of a Number exactly as received.
func (j JSON) Digits() string {
	if j.Kind() != Number {
		return ""
	}
	return string(j.n.raw)
}

// Text returns the unescaped text of a String. Bytes that are not UTF-8 and
// lone surrogates are returned as U+FFFD; WellFormed tells of them.
func (j JSON) Text() string {
	if j.Kind() != String {
		return ""
	}
	return unquote(j.n.raw)
}

// WellFormed tells whether a String holds neither NUL nor anything that is not
// Unicode text, which most databases cannot store.
func (j JSON) WellFormed() bool {
	if j.Kind() != String {
		return true
	}
	return !badText(j.n.raw)
}

// Scalar returns the text of a String, the digits of a Number, or "true" and
// "false"; ok is false for every other kind.
func (j JSON) Scalar() (text string, ok bool) {
	switch j.Kind() {
	case String:
		return j.Text(), true
	case Number, Bool:
		return string(j.n.raw), true
	}
	return "", false
}

// Get returns the member of an Object, or Missing.
func (j JSON) Get(name string) JSON {
	if j.Kind() != Object {
		return JSON{}
	}
	n := j.enter()
	if n.index != nil {
		if i, ok := n.index[name]; ok {
			return n.values[i]
		}
		return JSON{}
	}
	for i := len(n.names) - 1; i >= 0; i-- {
		if n.names[i] == name {
			return n.values[i]
		}
	}
	return JSON{}
}

// Path follows members by name from the value; Missing as soon as one is.
func (j JSON) Path(names ...string) JSON {
	for _, name := range names {
		j = j.Get(name)
	}
	return j
}

// Len returns the number of elements of an Array or of members of an Object.
func (j JSON) Len() int {
	if k := j.Kind(); k != Array && k != Object {
		return 0
	}
	return len(j.enter().values)
}

// At returns element i of an Array, or Missing.
func (j JSON) At(i int) JSON {
	if j.Kind() != Array {
		return JSON{}
	}
	if n := j.enter(); i >= 0 && i < len(n.values) {
		return n.values[i]
	}
	return JSON{}
}

// Names returns the names of the members of an Object, in the order received
// and each once. The caller must not change it.
func (j JSON) Names() []string {
	if j.Kind() != Object {
		return nil
	}
	return j.enter().names
}

func (j JSON) enter() *node {
	n := j.n
	if n.entered {
		return n
	}
	n.entered = true
	dec := jsontext.NewDecoder(bytes.NewReader(n.raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	must := func(err error) {
		if err != nil {
			panic("event: JSON checked by ParseJSON does not parse: " + err.Error())
		}
	}
	_, err := dec.ReadToken()
	must(err)
	for dec.PeekKind() != '}' && dec.PeekKind() != ']' {
		if n.kind == Object {
			name, err := dec.ReadValue()
			must(err)
			n.names = append(n.names, unquote(name))
		}
		v, err := dec.ReadValue()
		must(err)
		// ReadValue's bytes are only good until the next call; the same bytes
		// stand in raw, where they stay.
		end := dec.InputOffset()
		n.values = append(n.values, valid(n.raw[end-int64(len(v)):end]))
	}
	if n.kind == Object {
		n.dropRepeated()
	}
	return n
}

// dropRepeated keeps the last of the members that share a name, and makes the
// index of a large object.
func (n *node) dropRepeated() {
	at := make(map[string]int, len(n.names))
	names, values := n.names[:0:0], n.values[:0:0]
	for i, name := range n.names {
		if k, ok := at[name]; ok {
			values[k] = n.values[i]
			continue
		}
		at[name] = len(names)
		names, values = append(names, name), append(values, n.values[i])
	}
	n.names, n.values = names, values
	if len(names) >= indexFrom {
		n.index = at
	}
}

func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1])
	}
	// AppendUnquote replaces what is not valid and reports it; the text is
	// whole all the same.
	b, _ := jsontext.AppendUnquote(nil, raw)
	return string(b)
}

// badText tells whether a JSON string literal holds NUL, invalid UTF-8 or a
// lone surrogate.
func badText(raw []byte) bool {
	if bytes.IndexByte(raw, '\\') < 0 {
		return !utf8.Valid(raw)
	}
	b, err := jsontext.AppendUnquote(nil, raw)
	return err != nil || bytes.IndexByte(b, 0) >= 0
}

// Quote returns text as a JSON String. Anything that is not UTF-8 becomes
// U+FFFD.
func Quote(text string) JSON {
	b, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(text, "\uFFFD"))
	return valid(b)
}
