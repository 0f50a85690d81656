// Package backoff says how long to wait before something that failed is tried
// again: by a policy of growing pauses, and by what a server asks for.
package backoff

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Policy is a policy of growing pauses with full jitter: before try n+1 a
// random time between nothing and First·2ⁿ⁻¹, at most Most. Jitter keeps those
// who failed together from coming back together.
type Policy struct {
	First, Most time.Duration
}

// Ceiling returns the longest pause after n failures (n from 1).
func (b Policy) Ceiling(n int) time.Duration {
	d := b.First
	for i := 1; i < n && d < b.Most; i++ {
		d *= 2
	}
	return min(d, b.Most)
}

// Pause returns the pause after n failures, for a random number in [0, 1).
func (b Policy) Pause(n int, random float64) time.Duration {
	return time.Duration(random * float64(b.Ceiling(n)))
}

// Later returns the pause after n failures where no pause would be of no use:
// between half the ceiling and the ceiling.
func (b Policy) Later(n int, random float64) time.Duration {
	c := b.Ceiling(n)
	return c/2 + time.Duration(random*float64(c-c/2))
}

// maxAsked is the longest pause that a server is believed to want.
const maxAsked = 24 * time.Hour

// RetryAfter reads the header Retry-After at a time: seconds, with a fraction as
// some servers send them, or a date. ok is false if it has none that can be read.
// What is past is no pause, and more than a day counts as one.
func RetryAfter(h http.Header, now time.Time) (pause time.Duration, ok bool) {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, ok := Seconds(text); ok {
		return min(seconds, maxAsked), true
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, at.Sub(now)), maxAsked), true
	}
	return 0, false
}

// Seconds reads a number of seconds that is not negative, with a fraction or
// without.
func Seconds(text string) (time.Duration, bool) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0) || strings.ContainsAny(text, "xXpP_nN") {
		return 0, false
	}
	return time.Duration(min(n, float64(1<<33)) * float64(time.Second)), true
}
