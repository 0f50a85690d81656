package run

import (
	"context"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/lane"
)

// slowMarks is a journal to which a write of a mark takes a while, by the clock.
type slowMarks struct {
	Journal
	takes time.Duration
	now   *time.Time
	left  int
}

func (j *slowMarks) SetMark(context.Context, string, string) error {
	if j.left > 0 {
		j.left--
		*j.now = j.now.Add(j.takes)
	}
	return nil
}

// A try that begins is covered for as long as it may take, also if it took long
// to write that down; if that goes on, none begins.
func TestAGuardReachesFarEnough(t *testing.T) {
	for _, slow := range []int{0, 1, 2, 3} {
		now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
		j := &slowMarks{takes: 10 * time.Second, now: &now, left: slow}
		r := New(Options{
			Name: "l", Consumer: "lane:l", Journal: j, Timeout: 15 * time.Second, Guard: true,
			Deliver: nil, Lines: lane.Options{Concurrency: 1}, Now: func() time.Time { return now },
		})
		err := r.guard.extend(t.Context(), r)
		if fails := slow == guardTries; (err != nil) != fails {
			t.Errorf("%d slow writes: %v", slow, err)
		}
		if err == nil && r.guard.until.Before(now.Add(r.o.Timeout)) {
			t.Errorf("%d slow writes: a try may be at work for %s longer than is written down", slow, now.Add(r.o.Timeout).Sub(r.guard.until))
		}
	}
}
