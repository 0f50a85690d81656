package source

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hookfold/hookfold/event"
)

const (
	// MaxInflated is the most bytes that a gzip body may unpack to.
	MaxInflated = 32 << 20
	// MaxFormFields is the most fields of a form.
	MaxFormFields = 10_000
	// MaxEvents is the most events of one delivery.
	MaxEvents = 100_000
)

// ReadBody reads the body of a delivery as a format says; "" is FormatJSON. A
// body with Content-Encoding: gzip is unpacked first, to at most MaxInflated
// bytes. A form becomes an object in the order of its fields: a field's text,
// or the list of its texts if it stands more than once. Names with brackets nest,
// as parseForm says. Bytes of a form that are not UTF-8 are kept, as they are in
// JSON.
func ReadBody(d *event.Delivery, f Format) (event.JSON, error) {
	body, err := unpack(d)
	if err != nil {
		return event.JSON{}, err
	}
	switch f {
	case FormatJSON, "":
		return event.ParseJSON(body)
	case FormatForm:
		return parseForm(body)
	}
	return event.JSON{}, fmt.Errorf("format %q is not known: it is json or form", f)
}

func unpack(d *event.Delivery) ([]byte, error) {
	coding := strings.ToLower(strings.TrimSpace(strings.Join(d.Header.Values("Content-Encoding"), ",")))
	switch coding {
	case "", "identity":
		return d.Body, nil
	case "gzip", "x-gzip":
	default:
		return nil, errors.New("the body's Content-Encoding is neither gzip nor identity: have the sender send it plain")
	}
	z, err := gzip.NewReader(bytes.NewReader(d.Body))
	if err != nil {
		return nil, fmt.Errorf("the body is not the gzip that its Content-Encoding says: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(z, MaxInflated+1))
	if err != nil {
		return nil, fmt.Errorf("unpack gzip body: %w", err)
	}
	if len(out) > MaxInflated {
		return nil, fmt.Errorf("the gzip body unpacks to more than %s", count(MaxInflated, "byte"))
	}
	return out, nil
}

// appendText appends a JSON string. Bytes that are not UTF-8 stay as they are:
// what becomes of them is decided where they are written.
func appendText(out []byte, text string) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ':
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
