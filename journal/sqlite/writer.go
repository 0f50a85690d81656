package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

const (
	maxCommit = 8 << 20   // bytes of deliveries in one transaction
	maxBlock  = 512 << 10 // bytes of deliveries in one block, unless it is one delivery

	maxBehind = 1000 // pages in the log that are not in the file yet

	tryAgainAfter = 10 * time.Millisecond // at the earliest, when somebody asks
	tryAgainEvery = time.Second           // when nobody asks
)

// writer is the goroutine that writes. Its fields are its own.
type writer struct {
	j *Journal
	// acked is the last position that was reported durable.
	acked event.Position
	// failed is the error after which the file must be checked, or nil.
	failed error
	tried  time.Time
}

func (w *writer) run() {
	defer close(w.j.stopped)
	ctx := context.Background()
	timer := time.NewTicker(tryAgainEvery)
	defer timer.Stop()
	for {
		var tick <-chan time.Time
		if w.failed != nil {
			tick = timer.C
		}
		select {
		case <-w.j.queue.ready:
		case <-tick:
			w.recover(ctx)
			continue
		}
		for {
			// Those whom the last commit woke get to add their next delivery.
			runtime.Gosched()
			appends, tasks, closed := w.j.queue.take(maxCommit)
			if closed {
				return
			}
			if len(appends)+len(tasks) == 0 {
				break
			}
			w.write(ctx, appends, tasks)
		}
	}
}

// write makes appends and tasks durable, or tells them why not.
func (w *writer) write(ctx context.Context, appends []*appending, tasks []*task) {
	full := errors.Is(w.failed, journal.ErrFull)
	if w.failed != nil && (full && len(appends) > 0 || time.Since(w.tried) >= tryAgainAfter) {
		w.recover(ctx)
	}
	if w.failed != nil {
		refuse(appends, nil, w.failed)
		appends = nil
		if !errors.Is(w.failed, journal.ErrFull) {
			refuse(nil, tasks, w.failed)
			return
		}
		// Consumers may still find room for their results, which then let old
		// deliveries go.
	}
	if len(appends) > 0 {
		if err := w.makeRoom(ctx); err != nil {
			w.fail(err)
			refuse(appends, nil, err)
			appends = nil
		}
	}
	for len(appends)+len(tasks) > 0 {
		bad, err := w.transact(ctx, appends, tasks)
		switch {
		case err == nil:
			return
		case bad >= 0:
			// The task itself is at fault: the others go on without it.
			tasks[bad].done <- err
			tasks = append(tasks[:bad:bad], tasks[bad+1:]...)
		case errors.Is(err, journal.ErrFull) && len(appends) > 0 && len(tasks) > 0:
			w.fail(err)
			refuse(appends, nil, err)
			appends = nil
		default:
			w.fail(err)
			refuse(appends, tasks, err)
			return
		}
	}
}

func refuse(appends []*appending, tasks []*task, err error) {
	for _, a := range appends {
		a.done <- err
	}
	for _, t := range tasks {
		t.done <- err
	}
}

// fail remembers an error of the file, after which nothing is accepted until
// recover has found it sound.
func (w *writer) fail(err error) {
	if errors.Is(err, journal.ErrBroken) || errors.Is(err, journal.ErrFull) {
		w.failed, w.tried = err, time.Now()
		w.j.setHealth(err)
	}
}

// transact runs one transaction and then tells everyone. bad is the task whose
// own fault an error is, else -1.
func (w *writer) transact(ctx context.Context, appends []*appending, tasks []*task) (bad int, err error) {
	s := w.j.file
	if _, err := s.exec(ctx, "begin"); err != nil {
		return -1, s.writeError(err)
	}
	rollback := func(err error) error {
		if _, rerr := s.exec(ctx, "rollback"); rerr != nil && resultCode(rerr)&0xff != 1 { // 1: it was rolled back already
			return errors.Join(err, rerr)
		}
		return err
	}
	blocks, next, err := w.insert(ctx, appends)
	if err != nil {
		return -1, rollback(s.brokenUnless(err))
	}
	for i, t := range tasks {
		if err := t.run(ctx, s); err != nil {
			werr := s.writeError(err)
			if known(werr) {
				return -1, rollback(werr)
			}
			return i, rollback(err)
		}
	}
	if _, err := s.exec(ctx, "commit"); err != nil {
		return -1, rollback(s.brokenUnless(err))
	}
	w.acked = next - 1
	for _, b := range blocks {
		w.j.cache.add(b)
	}
	if len(appends) > 0 {
		w.j.appended(w.acked)
	}
	refuse(appends, tasks, nil)
	w.checkpoint(ctx)
	return -1, nil
}

// checkpoint writes the log into the file when it has grown. It does not come
// with the commit, as SQLite would have it by itself: an error here says nothing
// of what was committed.
func (w *writer) checkpoint(ctx context.Context) {
	s := w.j.file
	behind, _, err := s.log(ctx, "log-size")
	if err == nil && behind > maxBehind {
		_, _, err = s.log(ctx, "checkpoint")
	}
	if err = s.writeError(err); err != nil && !errors.Is(err, journal.ErrOverloaded) {
		w.fail(err)
	}
}

// insert writes deliveries as blocks and gives them positions.
func (w *writer) insert(ctx context.Context, appends []*appending) (blocks []*block, next event.Position, err error) {
	next = w.acked + 1
	for len(appends) > 0 {
		b := &block{first: next}
		newest := int64(math.MinInt64)
		for i := 0; i < len(appends) && (i == 0 || b.bytes+len(appends[i].frame) <= maxBlock); i++ {
			a := appends[i]
			a.position = next
			next++
			b.frames = append(b.frames, a.frame)
			b.bytes += len(a.frame)
			newest = max(newest, nanoseconds(a.received))
			if err := w.j.putFetched(ctx, a.position, a.fetched); err != nil {
				return nil, 0, err
			}
		}
		appends = appends[len(b.frames):]
		sealed := sealBlock(b.first, b.frames)
		if _, err := w.j.file.exec(ctx, "insert-block", int64(b.first), len(b.frames), len(b.frames), newest, sealed); err != nil {
			return nil, 0, err
		}
		blocks = append(blocks, b)
	}
	return blocks, next, nil
}

// makeRoom keeps the file below its greatest size: the oldest settled
// deliveries make room for new ones.
func (w *writer) makeRoom(ctx context.Context) error {
	limit := w.j.options.MaxBytes
	if limit <= 0 {
		return nil
	}
	s := w.j.file
	for from := event.Position(1); ; {
		used, _, err := s.used(ctx)
		if err != nil {
			return s.writeError(err)
		}
		if used < limit {
			return nil
		}
		if from == 0 {
			return fmt.Errorf("%w: %s has reached its greatest size, %d bytes, and nothing more in it is settled: raise max_size, or see to what is waiting or dead", journal.ErrFull, w.j.path, limit)
		}
		var n removal
		step := &task{done: make(chan error, 1), run: func(ctx context.Context, s *store) (err error) {
			n, err = retainStep(ctx, s, retention{before: math.MinInt64, bytes: limit - limit/64}, from)
			return err
		}}
		if _, err := w.transact(ctx, nil, []*task{step}); err != nil {
			return err
		}
		w.j.cache.forget(n.upTo)
		from = n.next
	}
}

// nanoseconds returns a time as nanoseconds since 1970, as near as they go.
func nanoseconds(t time.Time) int64 {
	const limit = math.MaxInt64 / int64(time.Second)
	switch s := t.Unix(); {
	case s >= limit:
		return math.MaxInt64
	case s <= -limit:
		return math.MinInt64
	}
	return t.UnixNano()
}
