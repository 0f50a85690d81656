package event

import (
	"fmt"
	"math/big"
	"strings"
	"time"
)

// Layouts of ISO 8601 and RFC 3339 times that carry an offset, and of those
// that do not. Go reads a fraction of any length after the seconds.
var (
	withOffset = []string{
		"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07",
		"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z0700", "2006-01-02 15:04:05Z07",
		"2006-01-02T15:04Z07:00", "2006-01-02 15:04:05 Z07:00", "2006-01-02 15:04:05 -0700 MST",
		"20060102T150405Z07:00", "20060102T150405Z0700",
		// Of names of zones only these are told: PST alone would be read as UTC.
		time.RFC1123Z, "Mon, 02 Jan 2006 15:04:05 GMT", "Mon, 02 Jan 2006 15:04:05 UTC",
	}
	zoneless = []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02", "20060102T150405"}
)

// ParseTime reads a time as providers send them: ISO 8601 with any offset or
// precision, or the seconds, milliseconds, microseconds or nanoseconds since
// 1970 (told apart by their size, good for the years 1973 to 5138), with or
// without a fraction. A time without an offset is read in zone; with a nil zone
// it is an error. The result is in UTC.
func ParseTime(text string, zone *time.Location) (time.Time, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return time.Time{}, fmt.Errorf("an empty text is not a time")
	}
	if isNumber(text) {
		return epoch(text)
	}
	norm := text
	if len(norm) > 10 && norm[10] == 't' {
		norm = norm[:10] + "T" + norm[11:]
	}
	norm = strings.TrimSuffix(norm, "z")
	if len(norm) < len(text) {
		norm += "Z"
	}
	for _, layout := range withOffset {
		if t, err := time.Parse(layout, norm); err == nil {
			return t.UTC(), nil
		}
	}
	for _, layout := range zoneless {
		in := zone
		if in == nil {
			in = time.UTC
		}
		if t, err := time.ParseInLocation(layout, norm, in); err == nil {
			if zone == nil {
				return time.Time{}, fmt.Errorf("%q has no offset: say which zone it is in (zone: on the source, or timestamp(x, \"Europe/Berlin\"))", text)
			}
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time Hookfold can read (ISO 8601, or seconds or milliseconds since 1970)", clip(text))
}

func isNumber(s string) bool {
	digits := false
	for i, c := range s {
		switch {
		case c >= '0' && c <= '9':
			digits = true
		case c == '-' && i == 0 || c == '.' && digits:
		default:
			return false
		}
	}
	return digits
}

// units tells the unit of a number of units since 1970 by its size.
var units = []struct {
	below int64
	per   int64 // nanoseconds
}{
	{1e11, 1e9}, {1e14, 1e6}, {1e17, 1e3}, {1 << 62, 1},
}

func epoch(text string) (time.Time, error) {
	r, ok := new(big.Rat).SetString(text)
	if !ok || len(text) > 40 {
		return time.Time{}, fmt.Errorf("%q is not a time", clip(text))
	}
	size := new(big.Rat).Abs(r)
	for _, u := range units {
		if size.Cmp(new(big.Rat).SetInt64(u.below)) < 0 {
			r.Mul(r, new(big.Rat).SetInt64(u.per))
			ns := new(big.Int).Div(r.Num(), r.Denom())
			sec, frac := new(big.Int).DivMod(ns, big.NewInt(1e9), new(big.Int))
			return time.Unix(sec.Int64(), frac.Int64()).UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is too far from 1970 to be a time", clip(text))
}

func clip(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}
