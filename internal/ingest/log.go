package ingest

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// calm writes the lines of refusals, but no more than an operator can read:
// whoever sends rubbish does not fill the log. Per source and answer it lets a
// few lines through at once and then one a second, which tells how many were
// left out.
type calm struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	seen map[calmKey]*calmState
}

type calmKey struct {
	source string
	status int
}

type calmState struct {
	tokens  float64
	at      time.Time
	leftOut int
}

const (
	calmBurst  = 20 // lines at once
	calmPerSec = 1  // lines a second after that
)

func newCalm(log *slog.Logger, now func() time.Time) *calm {
	return &calm{log: log, now: now, seen: map[calmKey]*calmState{}}
}

// line writes "401 stripe: reason", without the source if there is none. A
// status of 0 is written as "gone".
func (c *calm) line(level slog.Level, source string, status int, reason string) {
	if !c.log.Enabled(context.Background(), level) {
		return
	}
	leftOut, ok := c.take(calmKey{source, status})
	if !ok {
		return
	}
	answer := "gone"
	if status != 0 {
		answer = fmt.Sprint(status)
	}
	text := fmt.Sprintf("%s %s: %s", answer, source, reason)
	if source == "" {
		text = answer + " " + reason
	}
	if leftOut > 0 {
		c.log.Log(context.Background(), level, text, "left_out", leftOut)
		return
	}
	c.log.Log(context.Background(), level, text)
}

func (c *calm) take(k calmKey) (leftOut int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	s := c.seen[k]
	if s == nil {
		s = &calmState{tokens: calmBurst, at: now}
		c.seen[k] = s
	}
	s.tokens = min(calmBurst, s.tokens+now.Sub(s.at).Seconds()*calmPerSec)
	s.at = now
	if s.tokens < 1 {
		s.leftOut++
		return 0, false
	}
	s.tokens--
	leftOut, s.leftOut = s.leftOut, 0
	return leftOut, true
}
