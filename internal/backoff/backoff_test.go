package backoff

import (
	"net/http"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	b := Policy{First: 50 * time.Millisecond, Most: 30 * time.Second}
	for _, c := range []struct {
		n    int
		want time.Duration
	}{{1, 50 * time.Millisecond}, {2, 100 * time.Millisecond}, {5, 800 * time.Millisecond}, {10, 25600 * time.Millisecond}, {11, 30 * time.Second}, {1 << 30, 30 * time.Second}} {
		if got := b.Ceiling(c.n); got != c.want {
			t.Errorf("ceiling after %d failures is %s, want %s", c.n, got, c.want)
		}
	}
	if got := b.Pause(11, 0.5); got != 15*time.Second {
		t.Errorf("full jitter: %s", got)
	}
	if got := b.Pause(11, 0); got != 0 {
		t.Errorf("full jitter begins at nothing: %s", got)
	}
	if got := b.Later(11, 0); got != 15*time.Second {
		t.Errorf("later begins at half: %s", got)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"2": 2 * time.Second, "2.0": 2 * time.Second, " 0.25 ": 250 * time.Millisecond, "0": 0,
		"Sun, 29 Nov 2026 12:00:07 GMT": 7 * time.Second, "Sunday, 29-Nov-26 12:01:00 GMT": time.Minute,
		"Sun, 29 Nov 2026 11:00:00 GMT": 0, "99999999999999999999": 24 * time.Hour, "Sun, 29 Nov 2099 12:00:00 GMT": 24 * time.Hour,
		"": -1, "-1": -1, "soon": -1, "NaN": -1, "Inf": -1, "0x10": -1, "1e400": -1,
	} {
		got, ok := RetryAfter(http.Header{"Retry-After": {text}}, now)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
