package event

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
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
	members []member       // of an object, or of a list without names
	index   map[string]int // only for objects with many members
}

// member is a member of an object, or an element of a list: where its name (a
// string literal) and its value stand in the bytes of what holds it. Its node
// is made when it is first asked for, so that a list of many small elements
// costs little more than its bytes.
type member struct {
	name, nameEnd, value, valueEnd uint32
	node                           *node
}

const (
	indexFrom = 12   // members from which an object gets a map
	maxDepth  = 1000 // nesting allowed in a document
	maxBytes  = 1<<32 - 1
)

// ParseJSON reads one document and nothing after it. The JSON keeps a reference
// to b, which must not change afterwards.
func ParseJSON(b []byte) (JSON, error) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	b = bytes.Trim(b, " \t\r\n")
	if len(b) == 0 {
		return JSON{}, errors.New("an empty body is not JSON")
	}
	if len(b) > maxBytes {
		return JSON{}, fmt.Errorf("a document of %d bytes is too long", len(b))
	}
	if err := checkJSON(b); err != nil {
		return JSON{}, err
	}
	return valid(b), nil
}

// checkJSON tells whether b is one document, not nested too deep.
func checkJSON(b []byte) error {
	options := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	if jsontext.Value(b).IsValid(options...) {
		if depth(b) > maxDepth {
			return fmt.Errorf("JSON nested more than %d deep", maxDepth)
		}
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(b), options...)
	if err := dec.SkipValue(); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("not JSON: it ends in the middle, after %d bytes", len(b))
		}
		if syntax := new(jsontext.SyntacticError); errors.As(err, &syntax) && syntax.Err != nil {
			return fmt.Errorf("not JSON: at byte %d: %w", syntax.ByteOffset, syntax.Err)
		}
		return fmt.Errorf("not JSON: %w", err)
	}
	return fmt.Errorf("not one JSON document: more text follows at byte %d", dec.InputOffset())
}

// valid wraps bytes that are known to hold exactly one JSON value.
func valid(raw []byte) JSON { return JSON{&node{raw: raw, kind: kindOf(raw)}} }

// at returns member i.
func (n *node) at(i int) JSON {
	m := &n.members[i]
	if m.node == nil {
		raw := n.raw[m.value:m.valueEnd:m.valueEnd]
		m.node = &node{raw: raw, kind: kindOf(raw)}
	}
	return JSON{m.node}
}

// name returns the name of member i. It may be part of raw.
func (n *node) name(i int) []byte {
	m := &n.members[i]
	return unquote(n.raw[m.name:m.nameEnd])
}

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
	return string(unquote(j.n.raw))
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
			return n.at(i)
		}
		return JSON{}
	}
	for i := range n.members {
		if string(n.name(i)) == name {
			return n.at(i)
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
	return len(j.enter().members)
}

// At returns element i of an Array, or Missing.
func (j JSON) At(i int) JSON {
	if j.Kind() != Array {
		return JSON{}
	}
	if n := j.enter(); i >= 0 && i < len(n.members) {
		return n.at(i)
	}
	return JSON{}
}

// Names returns the names of the members of an Object, in the order received
// and each once.
func (j JSON) Names() []string {
	if j.Kind() != Object {
		return nil
	}
	n := j.enter()
	names := make([]string, len(n.members))
	for i := range names {
		names[i] = string(n.name(i))
	}
	return names
}

func (j JSON) enter() *node {
	n := j.n
	if n.entered {
		return n
	}
	n.entered = true
	// ParseJSON has checked the bytes, so finding the ends of values is enough.
	for at := skipSpace(n.raw, 1); n.raw[at] != '}' && n.raw[at] != ']'; {
		var m member
		if n.kind == Object {
			end := skipString(n.raw, at)
			m.name, m.nameEnd = uint32(at), uint32(end)
			at = skipSpace(n.raw, skipSpace(n.raw, end)+1) // over the colon
		}
		end := skipValue(n.raw, at)
		m.value, m.valueEnd = uint32(at), uint32(end)
		n.members = append(n.members, m)
		if at = skipSpace(n.raw, end); n.raw[at] == ',' {
			at = skipSpace(n.raw, at+1)
		}
	}
	if n.kind == Object {
		n.dropRepeated()
	}
	return n
}

// dropRepeated keeps the last of the members that share a name, and makes the
// index of a large object.
func (n *node) dropRepeated() {
	if len(n.members) < indexFrom {
		for i := 1; i < len(n.members); i++ {
			for k := range i {
				if bytes.Equal(n.name(k), n.name(i)) {
					n.members[k] = n.members[i]
					n.members = slices.Delete(n.members, i, i+1)
					i--
					break
				}
			}
		}
		return
	}
	n.index = make(map[string]int, len(n.members))
	kept := n.members[:0]
	for i, m := range n.members {
		name := string(n.name(i))
		if k, ok := n.index[name]; ok {
			kept[k] = m
			continue
		}
		n.index[name] = len(kept)
		kept = append(kept, m)
	}
	n.members = kept
}

// depth tells how deep a document is nested.
func depth(b []byte) int {
	deepest, now := 0, 0
	for at := 0; at < len(b); at++ {
		switch b[at] {
		case '"':
			at = skipString(b, at) - 1
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
	}
	return deepest
}

// skipSpace returns the place of the first byte from at that is not white
// space.
func skipSpace(raw []byte, at int) int {
	for raw[at] == ' ' || raw[at] == '\n' || raw[at] == '\r' || raw[at] == '\t' {
		at++
	}
	return at
}

// skipValue returns the place behind the value that begins at at.
func skipValue(raw []byte, at int) int {
	switch raw[at] {
	case '"':
		return skipString(raw, at)
	case '{', '[':
		for depth := 0; ; at++ {
			switch raw[at] {
			case '"':
				at = skipString(raw, at) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return at + 1
				}
			}
		}
	}
	for at < len(raw) && raw[at] != ',' && raw[at] != '}' && raw[at] != ']' && raw[at] > ' ' {
		at++
	}
	return at
}

// skipString returns the place behind the text that begins at at.
func skipString(raw []byte, at int) int {
	for at++; ; at++ {
		at += bytes.IndexByte(raw[at:], '"')
		back := at
		for raw[back-1] == '\\' {
			back--
		}
		if (at-back)%2 == 0 {
			return at + 1
		}
	}
}

// unquote returns the text of a string literal. It may be part of raw.
func unquote(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return raw[1 : len(raw)-1]
	}
	// AppendUnquote replaces what is not valid and reports it; the text is
	// whole all the same.
	b, _ := jsontext.AppendUnquote(nil, raw)
	return b
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
