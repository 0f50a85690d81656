package ndjson

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfold/hookfold/event"
)

// Writer writes deliveries, a line each and each in one Write.
type Writer struct {
	out io.Writer
	buf []byte
}

// NewWriter writes to w. The caller buffers where that helps.
func NewWriter(w io.Writer) *Writer { return &Writer{out: w} }

// Write writes one delivery. The error is the underlying writer's, or says that
// the delivery could not be read back: it names no source, or has a header
// whose name is not text, or what was fetched for it does not say when.
func (w *Writer) Write(d *event.Delivery) error {
	if d.Source == "" {
		return fmt.Errorf("write delivery #%d: it names no source", d.Position)
	}
	for name := range d.Header {
		if !utf8.ValidString(name) {
			return fmt.Errorf("write delivery #%d: the header name %q is not text", d.Position, name)
		}
	}
	for i := range d.Fetched {
		if err := writable(&d.Fetched[i]); err != nil {
			return fmt.Errorf("write delivery #%d: %w", d.Position, err)
		}
	}
	w.buf = append(appendDelivery(w.buf[:0], d), '\n')
	_, err := w.out.Write(w.buf)
	return err
}

func appendDelivery(b []byte, d *event.Delivery) []byte {
	b = appendText(append(b, `{"source":`...), d.Source)
	if !d.Received.IsZero() {
		b = append(b, `,"received":"`...)
		b = d.Received.UTC().AppendFormat(b, time.RFC3339Nano)
		b = append(b, '"')
	}
	if d.Path != "" {
		b = appendText(append(b, `,"path":`...), d.Path)
	}
	if d.Query != "" {
		b = appendText(append(b, `,"query":`...), d.Query)
	}
	b = appendHeader(b, d.Header)
	b = appendFetched(b, d.Fetched)
	return append(appendBody(b, d.Body, inLine), '}')
}

func appendHeader(b []byte, h http.Header) []byte {
	if len(h) == 0 {
		return b
	}
	b = append(b, `,"headers":{`...)
	for i, name := range slices.Sorted(maps.Keys(h)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, name), ':')
		b = appendValues(b, h[name])
	}
	return append(b, '}')
}

func appendValues(b []byte, values []string) []byte {
	if len(values) == 1 {
		return appendText(b, values[0])
	}
	b = append(b, '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, v)
	}
	return append(b, ']')
}

func appendBody(b, body []byte, in around) []byte {
	switch {
	case embeds(body, in):
		return append(append(b, `,"body":`...), body...)
	case utf8.Valid(body):
		return appendText(append(b, `,"raw":`...), string(body))
	}
	b = append(b, `,"raw_base64":"`...)
	return append(base64.StdEncoding.AppendEncode(b, body), '"')
}

// around is what stands before and after a body in its line.
type around struct {
	before, after string
	find          func(doc event.JSON) event.JSON
}

var inLine = around{`{"body":`, `}`, func(doc event.JSON) event.JSON { return doc.Get("body") }}

// embeds tells whether a body, put into a line as it is, is read back the same:
// it is one JSON value in UTF-8, with nothing around it and no line break, and
// stays readable so far down.
func embeds(body []byte, in around) bool {
	if !utf8.Valid(body) || bytes.ContainsAny(body, "\r\n") {
		return false
	}
	wrapped := slices.Concat([]byte(in.before), body, []byte(in.after))
	doc, err := event.ParseJSON(wrapped)
	return err == nil && bytes.Equal(in.find(doc).Raw(), body)
}

// appendText appends a JSON text, or {"base64":"…"} for what is not UTF-8.
func appendText(b []byte, text string) []byte {
	if !utf8.ValidString(text) {
		b = append(b, `{"base64":"`...)
		return append(base64.StdEncoding.AppendEncode(b, []byte(text)), `"}`...)
	}
	b, _ = jsontext.AppendQuote(b, text) // fails only on what is not UTF-8
	return b
}
