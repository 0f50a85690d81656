package source

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Tolerances of presets whose provider names one, or whose documented example
// code has one.
const (
	threeMinutes = 3 * time.Minute
	fiveMinutes  = 5 * time.Minute
)

func refuse(format string, args ...any) error {
	return &Refusal{Reason: fmt.Sprintf(format, args...)}
}

// proof is what a request was refused or believed by, told in the words of a
// refusal.
type proof struct {
	// what is checked: "signature", "bearer token".
	what string
	// facts stand in brackets after the mismatch: "body 1,204 bytes".
	facts []string
	// advice tells what to look at when no secret matches.
	advice string
}

// judge turns the outcome of trying the keys into nil or a refusal.
func (p proof) judge(o outcome) error {
	if o.matched {
		return nil
	}
	if !o.goneMatch.IsZero() {
		return refuse("the %s is right for a secret that ran out on %s. Has the sender still to change to the new one? Until then extend its until.",
			p.what, stamp(o.goneMatch))
	}
	if o.live == 0 {
		return refuse("every secret has run out (%s, the last on %s). Add the one that the sender uses now.", count(o.gone, "secret"), stamp(o.lastGone))
	}
	facts := p.facts
	if o.gone > 0 {
		facts = append(facts[:len(facts):len(facts)], strconv.Itoa(o.gone)+" more ran out")
	}
	text := p.what + " does not match any of " + count(o.live, "secret")
	if len(facts) > 0 {
		text += " (" + strings.Join(facts, ", ") + ")"
	}
	return refuse("%s. %s", text, p.advice)
}

func bodyFact(body []byte) string { return "body " + count(len(body), "byte") }

// ageFact tells how long ago a time was, or how far ahead it lies.
func ageFact(signed, now time.Time) string {
	if signed.After(now) {
		return "signed time " + seconds(signed.Sub(now)) + " ahead"
	}
	return "signed time " + seconds(now.Sub(signed)) + " ago"
}

// checkAge refuses a signed time outside the tolerance, in either direction. A
// negative tolerance switches the check off.
func checkAge(signed, now time.Time, tolerance time.Duration) error {
	age, side := now.Sub(signed), "past"
	if signed.After(now) {
		age, side = signed.Sub(now), "future"
	}
	if tolerance < 0 || age <= tolerance {
		return nil
	}
	return refuse("signed time is %s in the %s, tolerance is %s. Is the clock of this machine right? (now %s)",
		seconds(age), side, seconds(tolerance), stamp(now))
}

// tolerance returns the configured tolerance, or the preset's own.
func tolerance(configured, own time.Duration) time.Duration {
	if configured == 0 {
		return own
	}
	return configured
}

// signedSeconds reads a signed time: whole seconds since 1970, nothing but
// digits.
func signedSeconds(text string) (time.Time, bool) {
	if text == "" || len(text) > 12 {
		return time.Time{}, false
	}
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return time.Time{}, false
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(n, 0), err == nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// seconds prints 3,612 s, rounded up so that what is beyond a tolerance never
// reads as if it were within.
func seconds(d time.Duration) string {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return thousands(n) + " s"
}

// count prints 1 secret, 1,204 bytes.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return thousands(int64(n)) + " " + noun
}

// thousands prints a number that is not negative with commas.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
