package merge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// Version orders the changes of one scope. It is text of one width per scope,
// compared as bytes. "" is no version (NULL), older than every other.
type Version string

// ChangeKind is the part of a version behind its tuple.
type ChangeKind byte

// The kinds of a change, in the order in which they win one instant.
const (
	Write  ChangeKind = '0'
	Delete ChangeKind = '1'
)

// ComponentKind is the kind of one element of a version's tuple. All versions
// of a scope have the same kinds in the same places, or their comparison would
// mean nothing.
type ComponentKind byte

// The kinds of a component.
const (
	TimeComponent ComponentKind = 't'
	IntComponent  ComponentKind = 'i'
)

// A Component is one encoded element of a version's tuple.
type Component string

const (
	timeLayout   = "2006-01-02T15:04:05.000000000Z"
	timeWidth    = len(timeLayout)
	intWidth     = 20
	hashWidth    = 16
	separator    = "/"
	intZeroPoint = 1 << 63
)

// TimeOf encodes an instant, with nine digits of a second, in UTC. Years before
// 0001 and after 9999 do not fit.
func TimeOf(t time.Time) (Component, error) {
	t = t.UTC()
	if y := t.Year(); y < 1 || y > 9999 {
		return "", fmt.Errorf("a version cannot hold the year %d", y)
	}
	return Component(t.Format(timeLayout)), nil
}

// IntOf encodes an integer.
func IntOf(n int64) Component {
	return Component(fmt.Sprintf("%0*d", intWidth, uint64(n)+intZeroPoint))
}

// NullOf encodes a component that is NULL: older than any value of its kind.
func NullOf(kind ComponentKind) Component {
	width := intWidth
	if kind == TimeComponent {
		width = timeWidth
	}
	return Component(strings.Repeat("0", width))
}

// NewVersion makes the version of a change from its tuple, its kind and the
// parts that its mapping can read (the mapping's name, the index in a list, the
// event's body): equal parts mean the same event under the same mapping.
func NewVersion(tuple []Component, kind ChangeKind, readable ...[]byte) Version {
	h := sha256.New()
	for _, part := range readable {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	var b strings.Builder
	for _, c := range tuple {
		b.WriteString(string(c))
		b.WriteString(separator)
	}
	b.WriteByte(byte(kind))
	b.WriteString(separator)
	b.WriteString(hex.EncodeToString(sum[:hashWidth/2]))
	return Version(b.String())
}

// Tuple returns the encoded tuple: what the user declared, without kind and
// hash. Two versions with one tuple are a tie, decided by the rest.
func (v Version) Tuple() string {
	if n := len(v) - hashWidth - 3; n > 0 {
		return string(v[:n])
	}
	return ""
}

// Show renders the version's tuple for a person: 2026-01-01T00:00:00Z/1.
func (v Version) Show() string {
	if v == "" {
		return "no version"
	}
	parts := strings.Split(v.Tuple(), separator)
	for i, p := range parts {
		parts[i] = Component(p).show()
	}
	return strings.Join(parts, separator)
}

// Time returns the first time in the version's tuple; ok is false if there is
// none.
func (v Version) Time() (at time.Time, ok bool) {
	for _, part := range strings.Split(v.Tuple(), separator) {
		if len(part) == timeWidth {
			if at, err := time.Parse(timeLayout, part); err == nil {
				return at, true
			}
		}
	}
	return time.Time{}, false
}

func (c Component) show() string {
	if strings.Trim(string(c), "0") == "" {
		return "null"
	}
	if len(c) == timeWidth {
		if t, err := time.Parse(timeLayout, string(c)); err == nil {
			return t.Format(time.RFC3339Nano)
		}
	}
	var n uint64
	if _, err := fmt.Sscanf(string(c), "%d", &n); err == nil {
		return fmt.Sprint(int64(n - intZeroPoint))
	}
	return string(c)
}
