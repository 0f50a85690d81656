package ndjson

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfold/hookfold/event"
)

// Reader reads deliveries line by line; it holds one line at a time.
type Reader struct {
	in   *bufio.Reader
	max  int
	line int
	buf  []byte
}

// NewReader reads from r. maxLine is the most bytes of a line, without its
// line break; 0 is DefaultMaxLine.
func NewReader(r io.Reader, maxLine int) *Reader {
	if maxLine <= 0 {
		maxLine = DefaultMaxLine
	}
	return &Reader{in: bufio.NewReaderSize(r, 64<<10), max: maxLine}
}

// Line is the number of the line that Next has read last, from 1.
func (r *Reader) Line() int { return r.line }

// Next returns the next delivery, or io.EOF. Empty lines are passed over. An
// error that is a *LineError concerns one line: Next can be called again for
// the one after it. Every other error is the underlying reader's.
func (r *Reader) Next() (*event.Delivery, error) {
	for {
		line, err := r.read()
		if err != nil {
			return nil, err
		}
		if r.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		d, err := parse(line)
		if err != nil {
			return nil, &LineError{r.line, err.Error()}
		}
		return d, nil
	}
}

// read returns the next line, which is good until the next call.
func (r *Reader) read() ([]byte, error) {
	r.buf = r.buf[:0]
	for begun, tooLong := false, false; ; {
		part, err := r.in.ReadSlice('\n')
		if len(part) > 0 && !begun {
			begun = true
			r.line++
		}
		if len(r.buf)+len(bytes.TrimSuffix(part, []byte("\n"))) > r.max {
			tooLong = true
			r.buf = r.buf[:0]
		}
		if !tooLong {
			r.buf = append(r.buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("after line %d: %w", r.line, err)
		case tooLong:
			return nil, &LineError{r.line, fmt.Sprintf("longer than %d bytes. Is it one delivery per line, with line breaks between them?", r.max)}
		case err != nil && len(r.buf) == 0:
			return nil, io.EOF
		}
		return r.buf, nil
	}
}

var names = []string{"source", "received", "path", "query", "headers", "fetched", "body", "raw", "raw_base64"}

// parse reads a line. The delivery shares nothing with it.
func parse(line []byte) (*event.Delivery, error) {
	doc, err := event.ParseJSON(line)
	if err != nil {
		return nil, fmt.Errorf(`%w. A line is {"source":"…","body":{…}}`, err)
	}
	if doc.Kind() != event.Object {
		return nil, fmt.Errorf(`it is %s. A line is {"source":"…","body":{…}}`, doc.Kind())
	}
	for _, name := range doc.Names() {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("%q is not known: a line has %s", clip(name), strings.Join(names, ", "))
		}
	}
	d := &event.Delivery{Header: http.Header{}}
	var found bool
	if d.Body, found, err = body(doc); err != nil {
		return nil, err
	}
	if !found {
		return nil, errors.New(`there is no body: give body (JSON), raw (text) or raw_base64; an empty body is "raw":""`)
	}
	for _, t := range []struct {
		name string
		to   *string
	}{{"source", &d.Source}, {"path", &d.Path}, {"query", &d.Query}} {
		if v := doc.Get(t.name); v.Kind() != event.Missing {
			if *t.to, err = text(v); err != nil {
				return nil, fmt.Errorf("%s %w", t.name, err)
			}
		}
	}
	if d.Source == "" {
		return nil, errors.New("source is missing: name the source that the delivery is for")
	}
	if d.Header, err = header(doc.Get("headers")); err != nil {
		return nil, err
	}
	if d.Fetched, err = fetched(doc.Get("fetched")); err != nil {
		return nil, err
	}
	if v := doc.Get("received"); v.Kind() != event.Missing {
		at, _ := v.Scalar()
		if d.Received, err = event.ParseTime(at, nil); err != nil {
			return nil, fmt.Errorf("received: %w", err)
		}
	}
	return d, nil
}

func body(doc event.JSON) (b []byte, is bool, err error) {
	found := 0
	if v := doc.Get("body"); v.Kind() != event.Missing {
		found++
		b = bytes.Clone(v.Raw())
	}
	if v := doc.Get("raw"); v.Kind() != event.Missing {
		found++
		s, textErr := plain(v)
		if b, err = []byte(s), textErr; err != nil {
			return nil, false, fmt.Errorf("raw %w", err)
		}
	}
	if v := doc.Get("raw_base64"); v.Kind() != event.Missing {
		found++
		if b, err = base64.StdEncoding.DecodeString(v.Text()); err != nil || v.Kind() != event.String {
			return nil, false, errors.New("raw_base64 is not base64 text")
		}
	}
	if found < 2 {
		return b, found == 1, nil
	}
	return nil, false, errors.New("there is more than one of body, raw and raw_base64: give one")
}

func header(v event.JSON) (http.Header, error) {
	h := http.Header{}
	if v.Kind() == event.Missing {
		return h, nil
	}
	if v.Kind() != event.Object {
		return nil, fmt.Errorf(`headers is %s: give an object, {"X-Name":"value"}`, v.Kind())
	}
	for _, name := range v.Names() {
		key, values := http.CanonicalHeaderKey(name), v.Get(name)
		if values.Kind() != event.Array {
			s, err := text(values)
			if err != nil {
				return nil, fmt.Errorf("headers.%s %w", clip(name), err)
			}
			h[key] = append(h[key], s)
			continue
		}
		if h[key] == nil {
			h[key] = []string{}
		}
		for i := range values.Len() {
			s, err := text(values.At(i))
			if err != nil {
				return nil, fmt.Errorf("headers.%s[%d] %w", clip(name), i, err)
			}
			h[key] = append(h[key], s)
		}
	}
	return h, nil
}

// text reads a text, or {"base64":"…"}.
func text(v event.JSON) (string, error) {
	if v.Kind() != event.Object {
		return plain(v)
	}
	b, err := base64.StdEncoding.DecodeString(v.Get("base64").Text())
	if err != nil || v.Len() != 1 || v.Get("base64").Kind() != event.String {
		return "", errors.New(`is not text: give "…", or {"base64":"…"}`)
	}
	return string(b), nil
}

// plain reads a text exactly, and so refuses what is not Unicode.
func plain(v event.JSON) (string, error) {
	if v.Kind() != event.String {
		return "", fmt.Errorf("is %s, not text", v.Kind())
	}
	b, err := jsontext.AppendUnquote(nil, v.Raw())
	if err != nil {
		return "", errors.New("holds what is not Unicode text, and so not known exactly: write it in base64")
	}
	return string(b), nil
}

func clip(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}
