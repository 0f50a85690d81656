package event

import (
	"strings"
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	const at = "2026-01-03T00:26:43Z"
	for _, c := range []struct {
		text string
		zone *time.Location
		want string // an instant, or a part of the error
	}{
		{"2026-01-03T00:26:43Z", nil, at},
		{"2026-01-03t00:26:43z", nil, at},
		{" 2026-01-03 01:26:43+01 ", nil, at},
		{"2026-01-02T19:26:43-0500", nil, at},
		{"20260103T002643Z", nil, at},
		{"20260103T012643+0100", nil, at},
		{"2026-01-03T00:26:43.123456789Z", nil, "2026-01-03T00:26:43.123456789Z"},
		{"Sat, 03 Jan 2026 00:26:43 GMT", nil, at},
		{"Fri, 02 Jan 2026 16:26:43 -0800", nil, at},
		{"Sat, 03 Jan 2026 00:26:43 PST", nil, "is not a time"},
		{"1767400003", nil, at},
		{"1767400003000", nil, at},
		{"1767400003000000", nil, at},
		{"1767400003000000000", nil, at},
		{"1767400003.5", nil, "2026-01-03T00:26:43.5Z"},
		{"-1", nil, "1969-12-31T23:59:59Z"},
		{"9223372036854775807", nil, "too far from 1970"},
		{"2026-01-03 01:26:43", berlin, at},
		{"20260103T012643", berlin, at},
		{"2026-01-03 01:26:43", nil, "has no offset"},
		{"2026-01-03", berlin, "2026-01-02T23:00:00Z"},
		{"", berlin, "an empty text is not a time"},
		{"tomorrow", berlin, "is not a time"},
	} {
		got, err := ParseTime(c.text, c.zone)
		switch {
		case err != nil && !strings.Contains(err.Error(), c.want):
			t.Errorf("%q: error %v, want %s", c.text, err, c.want)
		case err == nil && got.Format(time.RFC3339Nano) != c.want:
			t.Errorf("%q: %s, want %s", c.text, got.Format(time.RFC3339Nano), c.want)
		}
	}
}
