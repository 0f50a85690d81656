package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/hookfold/hookfold/sink"
)

// Health is what a runner knows of its target.
type Health struct {
	// Up says that the last try did not fail through the target's fault. It is
	// true until there is a try.
	Up bool
	// Error is the last fault of the target, Since when it began, Tries how
	// often it was met since; empty while Up.
	Error string
	Since time.Time
	Tries int
}

type health struct {
	mu  sync.Mutex
	now func() time.Time
	bad Health
}

func (h *health) up() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bad = Health{}
}

func (h *health) down(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bad.Tries == 0 {
		h.bad.Since = h.now()
	}
	h.bad.Tries++
	h.bad.Error = err.Error()
	var e *sink.Error
	if errors.As(err, &e) {
		h.bad.Error = e.Error()
	}
}

func (h *health) read() Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.bad
	out.Up = out.Tries == 0
	return out
}

// calm writes the lines of a runner, of each kind a few at once and then one a
// second, which tells how many were left out: what is wrong with one event is
// mostly wrong with a thousand.
type calm struct {
	log *slog.Logger
	now func() time.Time

	mu    sync.Mutex
	kinds map[string]*calmKind
}

type calmKind struct {
	tokens  float64
	at      time.Time
	leftOut int
}

const calmBurst = 20

func newCalm(log *slog.Logger, now func() time.Time) *calm {
	return &calm{log: log, now: now, kinds: map[string]*calmKind{}}
}

// may tells whether a line of a kind is to be written, before it is made.
func (c *calm) may(kind string, level slog.Level) (leftOut int, ok bool) {
	if !c.log.Enabled(context.Background(), level) {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	k := c.kinds[kind]
	if k == nil {
		k = &calmKind{tokens: calmBurst, at: now}
		c.kinds[kind] = k
	}
	k.tokens = min(calmBurst, k.tokens+now.Sub(k.at).Seconds())
	k.at = now
	if k.tokens < 1 {
		k.leftOut++
		return 0, false
	}
	k.tokens--
	leftOut, k.leftOut = k.leftOut, 0
	return leftOut, true
}

func (c *calm) warn(kind, text string) { c.line(slog.LevelWarn, kind, text) }

func (c *calm) line(level slog.Level, kind, text string) {
	leftOut, ok := c.may(kind, level)
	switch {
	case !ok:
	case leftOut > 0:
		c.log.Log(context.Background(), level, text, "left_out", leftOut)
	default:
		c.log.Log(context.Background(), level, text)
	}
}
