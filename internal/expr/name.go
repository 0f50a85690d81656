package expr

import (
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
)

// Names is a set of the names that an expression can read.
type Names uint32

// The names of the language. Each is what a user writes in lower case.
const (
	Event         Names = 1 << iota // the event itself
	Type                            // its type
	ID                              // its identity
	Time                            // when it happened
	Received                        // when it was first received
	Source                          // the name of its source
	Position                        // its place in the journal
	Envelope                        // what stood around it
	Body                            // the whole body of the delivery
	Raw                             // the exact bytes of the body
	Headers                         // the request's headers
	Query                           // the request's query
	Path                            // what follows /in/{source}
	Item                            // an element of the mapping's list
	Index                           // its place in the list
	UnsetName                       // says nothing
	Fetched                         // what the mapping's fetch has read
	FetchedStatus                   // the HTTP status of its answer
	FetchedAt                       // when the read began

	// OfFetch are the names that an expression knows where a fetch has been made.
	OfFetch = Fetched | FetchedStatus | FetchedAt

	ofDelivery = Received | Source | Body | Raw | Headers | Query | Path

	// ForMapping are the names of a mapping's expressions.
	ForMapping = Event | Type | ID | Time | Position | Envelope | UnsetName | ofDelivery
	// ForElement are those of a mapping with a list, for each of its elements.
	ForElement = ForMapping | Item | Index
	// ForWhen are the names of a source's when:. What a source says of an event
	// must be the same each time the event comes, so none of it reads received.
	ForWhen = ForMapping &^ (Received | Position | UnsetName)
	// ForEvent are the names with which a source tells an event's type and time.
	ForEvent = Event | Envelope | ofDelivery&^Received
	// ForID are those with which it tells an event's identity. Its position is
	// the same each time that a delivery is mapped, but not when it is sent again.
	ForID = ForEvent | Type | Time | Position
	// ForHandshake are those with which a source answers a request that is no
	// delivery.
	ForHandshake = Source | Body | Raw | Headers | Query | UnsetName
	// ForSplit are the names with which a source finds its events.
	ForSplit = ofDelivery &^ Received
)

type nameInfo struct {
	text string
	bit  Names
	typ  *cel.Type
	tree bool // has members to be walked by a path
}

var names = []nameInfo{
	{"event", Event, cel.DynType, true},
	{"type", Type, cel.StringType, false},
	{"id", ID, cel.StringType, false},
	{"time", Time, cel.TimestampType, false},
	{"received", Received, cel.TimestampType, false},
	{"source", Source, cel.StringType, false},
	{"position", Position, cel.IntType, false},
	{"envelope", Envelope, cel.DynType, true},
	{"body", Body, cel.DynType, true},
	{"raw", Raw, cel.BytesType, false},
	{"headers", Headers, cel.DynType, true},
	{"query", Query, cel.DynType, true},
	{"path", Path, cel.StringType, false},
	{"item", Item, cel.DynType, true},
	{"index", Index, cel.IntType, false},
	{"unset", UnsetName, cel.DynType, false},
	{"fetched", Fetched, cel.DynType, true},
	{"fetched_status", FetchedStatus, cel.IntType, false},
	{"fetched_at", FetchedAt, cel.TimestampType, false},
}

func nameNamed(text string) (nameInfo, bool) {
	i := slices.IndexFunc(names, func(n nameInfo) bool { return n.text == text })
	if i < 0 {
		return nameInfo{}, false
	}
	return names[i], true
}

// Texts returns the names of the set as a user writes them.
func (n Names) Texts() []string {
	var out []string
	for _, info := range names {
		if n&info.bit != 0 {
			out = append(out, info.text)
		}
	}
	return out
}

func (n Names) String() string { return strings.Join(n.Texts(), ", ") }

// Nearest returns the candidate that a misspelt word most likely means, or "".
func Nearest(word string, candidates []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, c := range candidates {
		if d := distance(word, c, least); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance counts the letters to change, or returns limit if that many are not
// enough.
func distance(a, b string, limit int) int {
	if len(a) > 200 || len(b) > 200 || max(len(a)-len(b), len(b)-len(a)) >= limit {
		return limit
	}
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := prev[0]
		prev[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, prev[j], prev[j-1])
			}
			diagonal, prev[j] = prev[j], cost
		}
	}
	return min(prev[len(b)], limit)
}
