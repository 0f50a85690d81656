// Package ndjson reads and writes deliveries as lines of JSON, for export and
// replay:
//
//	{"source":"calendly","body":{"event":"invitee.created"}}
//	{"source":"shop","received":"2026-11-29T12:51:08.25Z","headers":{"X-Shop":"7"},"raw":"a=1&b=2"}
//
// A line has a source and exactly one of
//
//	body        the JSON of the body; its bytes are the body, as they stand
//	raw         the body as text
//	raw_base64  the body's bytes in base64
//
// and may have received (RFC 3339), headers (a text or a list of texts by name),
// path (what followed /in/{source} in the URL), query, and fetched: what fetches
// have read for its events, so that they mean the same once more:
//
//	"fetched":[{"fetch":"invitee","event":0,"status":200,"at":"2026-11-29T12:51:09Z","body":{…}}]
//
// with event 0 and status 200 where they are not given, headers as above, and
// at most one of body, raw and raw_base64. Any other name is an error. A text that cannot be JSON, because it is not UTF-8, is written as
// {"base64":"…"}.
//
// What is written is read back the same, byte for byte: a body is written as
// body only if it is JSON in a single line without space around it, else as raw
// if it is UTF-8, else as raw_base64. A position in a journal is not written.
package ndjson

import (
	"fmt"
)

// DefaultMaxLine is the most bytes of a line unless the options say otherwise:
// enough for a body of 40 MiB in base64.
const DefaultMaxLine = 64 << 20

// LineError is the error of one line. The reader can go on with the next one.
type LineError struct {
	// Line is the number of the line, from 1.
	Line int
	// Reason says what is wrong with it and what to do.
	Reason string
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }
