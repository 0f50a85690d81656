package event

import (
	"os"
	"testing"
)

// BenchmarkReadFields parses a booking and reads eight of its fields, as a
// mapping does.
func BenchmarkReadFields(b *testing.B) {
	body, err := os.ReadFile("testdata/booking.json")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		j, err := ParseJSON(body)
		if err != nil {
			b.Fatal(err)
		}
		p := j.Get("payload")
		for _, path := range [][]string{{"uri"}, {"created_at"}, {"updated_at"}, {"status"}, {"tracking", "utm_term"},
			{"scheduled_event", "start_time"}, {"scheduled_event", "uri"}, {"email"}} {
			if p.Path(path...).Kind() == Missing {
				b.Fatal(path)
			}
		}
	}
}
