// Package lane decides in which order events go to somebody's own code: strictly
// one at a time per key, in order, many keys side by side. It has no goroutine,
// reads no clock and does no I/O: package run gives it events, asks what may
// begin, and tells what came of it.
//
// Each key has a line of events. The event at its head may be tried; if that
// fails, it is tried again later, and its line stands still meanwhile, alone.
// The first events of a line may be stored: entries of the journal. Of these a
// line holds only the first few (a page), and how many more there are, so that a
// key that is stuck for a week costs little memory. What is not stored is fresh:
// its delivery is leased. All that is stored comes before all that is fresh.
package lane

import (
	"time"

	"github.com/hookfold/hookfold/event"
)

// Item is an event on its way through a lane.
type Item struct {
	Ref event.Ref
	Key string
	// Version orders the events of a key, with Received, where the lane's order
	// is that of versions; else it is "".
	Version  string
	Received time.Time
	// Source, ID and Type name the event.
	Source, ID, Type string
	// Stored tells that it is an entry of the journal.
	Stored bool
	// Attempts counts the tries that failed; Since is when the first one did.
	Attempts int
	Since    time.Time
	// Next is when it may be tried, Reason why it could not be before.
	Next   time.Time
	Reason string
	// Held tells that it waits for something else than its turn, without having
	// been tried; Dead that it holds its key until a person decides.
	Held, Dead bool
	// HeldSince is since when it is held.
	HeldSince time.Time
	// Data is of whoever runs the lane.
	Data any

	gone, again bool
}

// stuck tells whether the line behind the item stands still because of it.
func (it *Item) stuck() bool { return it.Attempts > 0 || it.Held || it.Dead }

// Sequence is a number that stays with an event and grows in the order of
// acceptance.
func Sequence(r event.Ref) int64 { return int64(r.Position)*perDelivery + int64(r.Index) }

// perDelivery is more than the events of one delivery.
const perDelivery = 100_000

// PausedMark, after the name of a lane's consumer, is the journal's mark that
// tells why the lane is paused.
const PausedMark = "/paused"

// Kind is what became of a try.
type Kind uint8

// The kinds of outcomes.
const (
	// Done: the event is through, and leaves its line.
	Done Kind = iota
	// Again: the try failed; there is another at Outcome.At.
	Again
	// Hold: it was not tried; it is looked at again at Outcome.At.
	Hold
	// Die: it is dead, and holds its key.
	Die
	// Park: it is dead, and leaves its line.
	Park
)

// Outcome is what became of a try.
type Outcome struct {
	Kind Kind
	At   time.Time
	// Reason is for a person; for Done it is not used.
	Reason string
}
