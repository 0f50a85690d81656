// Package calm writes log lines, but no more than an operator can read: what is
// wrong with one request or event is mostly wrong with a thousand.
package calm

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Burst is how many lines of one kind are written at once. After that it is one
// a second, and a line tells how many were left out before it.
const Burst = 20

// Logger is a log of bounded rate per kind of line. Kinds must come from a
// bounded set. It is safe for concurrent use.
type Logger struct {
	log *slog.Logger
	now func() time.Time

	mu    sync.Mutex
	kinds map[string]*bucket
}

type bucket struct {
	tokens  float64
	at      time.Time
	leftOut int
}

// New returns a logger over another, by a clock.
func New(log *slog.Logger, now func() time.Time) *Logger {
	return &Logger{log: log, now: now, kinds: map[string]*bucket{}}
}

// Line writes a line of a kind if it is its turn; only then is text called.
func (l *Logger) Line(level slog.Level, kind string, text func() string) {
	ctx := context.Background()
	if !l.log.Enabled(ctx, level) {
		return
	}
	leftOut, ok := l.take(kind)
	switch {
	case !ok:
	case leftOut > 0:
		l.log.Log(ctx, level, text(), "left_out", leftOut)
	default:
		l.log.Log(ctx, level, text())
	}
}

func (l *Logger) take(kind string) (leftOut int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	b := l.kinds[kind]
	if b == nil {
		b = &bucket{tokens: Burst, at: now}
		l.kinds[kind] = b
	}
	b.tokens = min(Burst, b.tokens+now.Sub(b.at).Seconds())
	b.at = now
	if b.tokens < 1 {
		b.leftOut++
		return 0, false
	}
	b.tokens--
	leftOut, b.leftOut = b.leftOut, 0
	return leftOut, true
}
