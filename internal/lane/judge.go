package lane

import (
	"fmt"
	"time"
)

// Answer is what came back from one try.
type Answer struct {
	// OK tells that the event is through.
	OK bool
	// Down tells that nobody could be reached, so that no key is at fault: the
	// whole lane pauses, and the try does not count.
	Down bool
	// Busy tells that the whole lane should wait: for After, if that is given.
	Busy bool
	// Gone tells that nobody wants the lane's events any more.
	Gone bool
	// After is how long the other side asks to wait, 0 if it does not.
	After time.Duration
	// Reason is for a person: what was answered.
	Reason string
}

// Backoff gives the longest pause after n failures.
type Backoff interface {
	Pause(n int, random float64) time.Duration
}

// Policy says what to do about a try that failed.
type Policy struct {
	// Retry is how long an event is tried again, from its first failure; negative
	// is for ever.
	Retry time.Duration
	// Parks sets a dead event aside, so that its key goes on.
	Parks bool
	// Pauses are between tries of an event.
	Pauses Backoff
}

func tries(n int) string {
	if n == 1 {
		return "1 try"
	}
	return fmt.Sprintf("%d tries", n)
}

// maxAfter bounds what another side may ask to wait.
const maxAfter = time.Hour

// Judge tells what becomes of an item after an answer, for a random number in
// [0, 1). until, if not zero, is before when the whole lane begins nothing.
func (p Policy) Judge(it *Item, a Answer, now time.Time, random float64) (o Outcome, until time.Time) {
	after := min(a.After, maxAfter)
	switch {
	case a.OK:
		return Outcome{Kind: Done}, until
	case a.Gone, a.Down:
		return Outcome{Kind: Hold, At: now, Reason: a.Reason}, until
	case a.Busy && after > 0:
		until = now.Add(after)
	}
	since := it.Since
	if since.IsZero() {
		since = now
	}
	if p.Retry >= 0 && now.Sub(since) >= p.Retry && (it.Attempts > 0 || p.Retry == 0) {
		kind, then := Die, "It holds its key until a person decides: hookfold lane"
		if p.Parks {
			kind, then = Park, "It was set aside; its key goes on"
		}
		return Outcome{Kind: kind, Reason: fmt.Sprintf("%s (%s). %s", a.Reason, tries(it.Attempts+1), then)}, until
	}
	pause := max(p.Pauses.Pause(it.Attempts+1, random), after)
	return Outcome{Kind: Again, At: now.Add(pause), Reason: a.Reason}, until
}
