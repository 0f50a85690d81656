package source

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// keyring holds the secrets of a source, each read into a key of type K.
type keyring[K any] struct{ keys []ringKey[K] }

type ringKey[K any] struct {
	key   K
	until time.Time
}

func (k ringKey[K]) live(now time.Time) bool { return k.until.IsZero() || now.Before(k.until) }

// newKeyring reads secrets. missing completes "secrets is missing: give …".
func newKeyring[K any](secrets []Secret, missing string, read func(text string) (K, error)) (keyring[K], error) {
	var ring keyring[K]
	if len(secrets) == 0 {
		return ring, errors.New("secrets is missing: give " + missing)
	}
	for i, s := range secrets {
		switch {
		case s.Value == "":
			return ring, fmt.Errorf("secrets[%d] is empty: with an empty key anybody could sign", i)
		case strings.TrimSpace(s.Value) != s.Value:
			return ring, fmt.Errorf("secrets[%d] begins or ends with white space: if it comes from a file, remove the line break at its end", i)
		}
		key, err := read(s.Value)
		if err != nil {
			return ring, fmt.Errorf("secrets[%d] %w", i, err)
		}
		ring.keys = append(ring.keys, ringKey[K]{key, s.Until})
	}
	return ring, nil
}

// textKey reads a secret whose text is the key.
func textKey(text string) ([]byte, error) { return []byte(text), nil }

// outcome is what trying the keys of a ring came to.
type outcome struct {
	matched bool
	// live and gone count the keys that are accepted and that have run out.
	live, gone int
	// lastGone is when the last of the keys that have run out did.
	lastGone time.Time
	// goneMatch is when the key ran out that would have matched.
	goneMatch time.Time
}

// try calls match for every key, whatever it returned before, so that the time
// taken does not tell which key matched.
func (r keyring[K]) try(now time.Time, match func(K) bool) outcome {
	var o outcome
	for _, k := range r.keys {
		ok := match(k.key)
		if k.live(now) {
			o.live++
			o.matched = o.matched || ok
			continue
		}
		o.gone++
		if k.until.After(o.lastGone) {
			o.lastGone = k.until
		}
		if ok {
			o.goneMatch = k.until
		}
	}
	return o
}

// first returns the first key that is accepted at a time.
func (r keyring[K]) first(at time.Time) (key K, err error) {
	for _, k := range r.keys {
		if k.live(at) {
			return k.key, nil
		}
	}
	return key, fmt.Errorf("%w: every secret has run out", ErrUnsigned)
}
