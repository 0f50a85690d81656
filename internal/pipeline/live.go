package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/hookfold/hookfold/sink"
)

// lives caches the live schema of the tables of a target.
type lives struct {
	mu sync.Mutex
	of []known // in the order of Options.Tables
}

type known struct {
	live *sink.Live
	at   time.Time
}

// liveFor is how old the known schema of a table may be when a new change is
// turned away by it.
const liveFor = time.Second

// live returns the live schema of table i; with again, or while there is no such
// table, one that is fresh: not read before since. It waits for a target that is
// down.
func (r *Runner) live(ctx context.Context, i int, since time.Time, again bool) (live *sink.Live, fresh bool, err error) {
	now := r.o.Now()
	r.lives.mu.Lock()
	k := r.lives.of[i]
	r.lives.mu.Unlock()
	fresh = !k.at.Before(since)
	if k.live != nil && (fresh || k.live.Exists && !again) {
		return k.live, fresh, nil
	}
	err = r.persist(ctx, "read the schema of "+r.o.Tables[i].Name, func(ctx context.Context) error {
		var err error
		live, err = r.o.Sink.Inspect(ctx, r.o.Tables[i])
		return err
	})
	if err != nil {
		return nil, false, err
	}
	r.lives.mu.Lock()
	r.lives.of[i] = known{live: live, at: now}
	r.lives.mu.Unlock()
	return live, true, nil
}
