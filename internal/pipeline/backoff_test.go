package pipeline

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	b := Backoff{First: 50 * time.Millisecond, Most: 30 * time.Second}
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
