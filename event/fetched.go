package event

import (
	"net/http"
	"time"
)

// Fetched is what a fetch of the config has read for one event of a delivery. It
// is read before the event is mapped, kept with its delivery, and never changes.
type Fetched struct {
	// Index is the event's place in its delivery, Name the fetch in the config.
	Index int
	Name  string
	// Status is the HTTP status of the answer; 0 is no answer: the body is what
	// the config says in its place.
	Status int
	// At is when the read began, in UTC: what was read is at least as new.
	At time.Time
	// Header holds the few headers that are kept, in canonical form.
	Header http.Header
	// Body is the answer's body; empty if the object is not there.
	Body []byte
}

// FetchedFor returns what a fetch has read for an event of the delivery, or nil.
func (d *Delivery) FetchedFor(index int, name string) *Fetched {
	for i := range d.Fetched {
		if f := &d.Fetched[i]; f.Index == index && f.Name == name {
			return f
		}
	}
	return nil
}
