package pipeline

import "time"

// Backoff is a policy of growing pauses with full jitter: before try n+1 a
// random time between nothing and First·2ⁿ⁻¹, at most Most. Jitter keeps those
// who failed together from coming back together.
type Backoff struct {
	First, Most time.Duration
}

// Ceiling returns the longest pause after n failures (n from 1).
func (b Backoff) Ceiling(n int) time.Duration {
	d := b.First
	for i := 1; i < n && d < b.Most; i++ {
		d *= 2
	}
	return min(d, b.Most)
}

// Pause returns the pause after n failures, for a random number in [0, 1).
func (b Backoff) Pause(n int, random float64) time.Duration {
	return time.Duration(random * float64(b.Ceiling(n)))
}

// Later returns the pause after n failures where no pause would be of no use:
// between half the ceiling and the ceiling.
func (b Backoff) Later(n int, random float64) time.Duration {
	c := b.Ceiling(n)
	return c/2 + time.Duration(random*float64(c-c/2))
}
