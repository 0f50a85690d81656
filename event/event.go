// Package event holds the plain values that travel through Hookfold: a
// Delivery is one HTTP request as it was received, an Event is one thing that
// happened, split out of a delivery by its source. The package imports nothing
// else of Hookfold.
package event

import (
	"fmt"
	"net/http"
	"time"
)

// Position is the place of a delivery in its journal. It is unique in that
// journal, greater than zero, and grows in the order of acceptance. Zero means
// "not in a journal".
type Position int64

// Delivery is one HTTP request as received.
type Delivery struct {
	// Position is set by the journal that holds the delivery.
	Position Position
	// Source is the name of the configured source the request was sent to.
	Source string
	// Path is what followed /in/{source} in the URL: "" or a path beginning
	// with "/".
	Path string
	// Query is the raw query string, without "?".
	Query string
	// Header holds the headers worth keeping, in canonical form: all but
	// credentials and hop-by-hop headers.
	Header http.Header
	// Body is the exact bytes received. They are never changed.
	Body []byte
	// Received is the time of receipt, in UTC.
	Received time.Time
	// Fetched is what fetches have read for its events, by index and name. A
	// journal keeps what a delivery has when it is appended, and adds what comes
	// later.
	Fetched []Fetched
	// Memo is of whoever reads the delivery's events; journals leave it alone.
	Memo *Memo
}

// Ref names an event: its delivery's place in the journal and its own place in
// the delivery (from 0).
type Ref struct {
	Position Position
	Index    int
}

// WholeDelivery is the Index that stands for a delivery as a whole, one that
// could not be split into events.
const WholeDelivery = -1

// String prints #1042, or #1042.3 for an event that is not its delivery's
// first.
func (r Ref) String() string {
	if r.Index <= 0 {
		return fmt.Sprintf("#%d", r.Position)
	}
	return fmt.Sprintf("#%d.%d", r.Position, r.Index)
}

// Compare orders references by order of acceptance.
func (r Ref) Compare(o Ref) int {
	switch {
	case r.Position < o.Position:
		return -1
	case r.Position > o.Position:
		return 1
	}
	return r.Index - o.Index
}

// Event is one thing that happened, split out of a delivery by its source.
type Event struct {
	// Delivery is where the event came from; never nil.
	Delivery *Delivery
	// Index is the event's place in its delivery, from 0.
	Index int
	// ID is the event's identity in its source, stable over redeliveries.
	// "" means that the source gives none.
	ID string
	// Type is the event's type in the words of its source, "" for none.
	Type string
	// Time says when the event happened, by the clock of its source. The zero
	// Time means that the source gives none, or that TimeError is set.
	Time time.Time
	// TimeError tells why the event's time could not be read, "" if it could or
	// if there is none. Only what uses the time fails.
	TimeError string
	// FirstReceived is when the event's identity was first received; without an
	// identity it is the receipt of the delivery.
	FirstReceived time.Time
	// Body is the event itself, as its source's page describes it.
	Body JSON
	// Envelope is what stood around the event in its delivery.
	Envelope JSON
}

// Ref returns the event's name.
func (e *Event) Ref() Ref { return Ref{Position: e.Delivery.Position, Index: e.Index} }
