package pipeline

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/hookfold/hookfold/event"
)

// skipped remembers what was told of events that no mapping wants.
type skipped struct {
	mu   sync.Mutex
	told map[Skip]bool
}

// maxTold bounds the pairs of source and type of which is told: types come from
// outside.
const maxTold = 1000

// first tells whether it is the first time.
func (s *skipped) first(x Skip) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told[x] || len(s.told) >= maxTold {
		return false
	}
	if s.told == nil {
		s.told = map[Skip]bool{}
	}
	s.told[Skip{Source: x.Source, Type: strings.Clone(x.Type)}] = true
	return true
}

// tellSkip tells once per source and type that no mapping wants its events.
func (r *Runner) tellSkip(x Skip, at event.Ref) {
	if !r.skipped.first(x) {
		return
	}
	if x.Type == "" {
		r.log.Line(slog.LevelWarn, "skip", func() string {
			return fmt.Sprintf("skip  %s %s: an event without a type, which no mapping of target %s wants. Others like it are only counted.", x.Source, at, r.o.Target)
		})
		return
	}
	r.log.Line(slog.LevelInfo, "skip", func() string {
		return fmt.Sprintf("skip  %s %s: no mapping of target %s wants %s. Others like it are only counted.", x.Source, at, r.o.Target, clip(x.Type))
	})
}
