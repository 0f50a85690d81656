package pipeline

import (
	"sync"
	"time"
)

// Health is what a runner knows of its target.
type Health struct {
	// Up says that the target has answered, and that the last try did not fail
	// through a fault of its own, or of the journal.
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
	// proven tells that the target has answered.
	proven bool
}

// up tells how the target was before.
func (h *health) up() (before Health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, h.bad, h.proven = h.bad, Health{}, true
	return before
}

func (h *health) isProven() bool { h.mu.Lock(); defer h.mu.Unlock(); return h.proven }

func (h *health) down(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bad.Tries == 0 {
		h.bad.Since = h.now()
	}
	h.bad.Tries++
	h.bad.Error = err.Error()
}

func (h *health) read() Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.bad
	out.Up = h.proven && out.Tries == 0
	return out
}
