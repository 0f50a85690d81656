package run

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/lane"
	"github.com/hookfold/hookfold/journal"
)

// Further marks of a lane, after the name of its consumer.
const (
	// guardMark holds until when a try may be under way, and how long one takes.
	guardMark = "/until"
	// fromMark is the position up to which a lane passes events over: what was in
	// the journal before the lane was.
	fromMark = "/from"
)

// guard keeps on disk until when a try may be under way. A process that dies
// takes its end of a request with it, and not the other: for as long as that may
// be at work, the next process begins nothing.
type guard struct {
	mu    sync.Mutex
	until time.Time
	ours  bool // it was set by this process
}

// slack is how much longer than needed a guard is set, so that it is not set for
// each try.
func slack(timeout time.Duration) time.Duration { return max(time.Second/4, timeout/8) }

// guardTries is how often a guard is set for a try, if the disk is so slow that
// it does not reach far enough any more when it is written.
const guardTries = 3

// extend makes sure that a try may begin now.
func (g *guard) extend(ctx context.Context, r *Runner) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for range guardTries {
		needs := r.o.Now().Add(r.o.Timeout)
		if !needs.After(g.until) {
			return nil
		}
		until := needs.Add(slack(r.o.Timeout))
		value := fmt.Sprintf("%d %d", until.UnixNano(), r.o.Timeout+slack(r.o.Timeout))
		if err := r.o.Journal.SetMark(ctx, r.o.Consumer+guardMark, value); err != nil {
			return err
		}
		g.until, g.ours = until, true
	}
	if r.o.Now().Add(r.o.Timeout).After(g.until) {
		return fmt.Errorf("the journal takes longer than %s to write until when a request may be under way: look at its disk", slack(r.o.Timeout))
	}
	return nil
}

// clear tells that nothing is under way.
func (g *guard) clear(ctx context.Context, r *Runner) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ours {
		return nil
	}
	g.until, g.ours = time.Time{}, false
	return r.o.Journal.SetMark(ctx, r.o.Consumer+guardMark, "")
}

// readGuard gives until when tries of an earlier process may be under way. A
// clock that was set back since does not make the wait longer than a try.
func readGuard(mark string, now time.Time) time.Time {
	at, length, _ := strings.Cut(mark, " ")
	until, err := strconv.ParseInt(at, 10, 64)
	longest, err2 := strconv.ParseInt(length, 10, 64)
	if err != nil || err2 != nil {
		return time.Time{}
	}
	if limit := now.Add(time.Duration(longest)); time.Unix(0, until).After(limit) {
		return limit
	}
	return time.Unix(0, until)
}

// recall reads the lane's marks at the start.
func (r *Runner) recall(ctx context.Context) error {
	marks, err := r.o.Journal.Marks(ctx)
	if err != nil {
		return err
	}
	now := r.o.Now()
	if until := readGuard(marks[r.o.Consumer+guardMark], now); until.After(now) {
		r.s.HoldAll(until)
		r.log.Line(slog.LevelInfo, "guard", func() string {
			return fmt.Sprintf("hold  %s: an earlier process did not end it; its last requests may be at work for another %s", r.o.Consumer, until.Sub(now).Round(time.Millisecond))
		})
	}
	r.paused, r.edits = marks[r.o.Consumer+lane.PausedMark], marks[journal.EditsMark]
	from, known := marks[r.o.Consumer+fromMark]
	if known {
		p, err := strconv.ParseInt(from, 10, 64)
		r.from = event.Position(p)
		return err
	}
	if !r.o.History {
		stats, err := r.o.Journal.Stats(ctx)
		if err != nil {
			return err
		}
		r.from = stats.Last
	}
	return r.o.Journal.SetMark(ctx, r.o.Consumer+fromMark, strconv.FormatInt(int64(r.from), 10))
}

// watch looks for what a person has changed, until the runner stops.
func (r *Runner) watch() {
	tick := time.NewTicker(r.o.Poll)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-r.stopping:
			return
		}
		if err := r.look(r.taking); err != nil && r.taking.Err() == nil {
			r.log.Line(slog.LevelWarn, "persist", func() string { return fmt.Sprintf("down  %s: %v", r.o.Consumer, err) })
		}
	}
}

func (r *Runner) look(ctx context.Context) error {
	r.marks.Lock()
	defer r.marks.Unlock()
	marks, err := r.o.Journal.Marks(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if edits := marks[journal.EditsMark]; edits != r.edits {
		r.edits, r.reload = edits, true
		signal(r.record)
	}
	if paused := marks[r.o.Consumer+lane.PausedMark]; paused != r.paused {
		r.paused = paused
		signal(r.dispatch)
	}
	return nil
}

// pause lets nothing begin until a person resumes the lane.
func (r *Runner) pause(ctx context.Context, reason string) {
	r.marks.Lock()
	defer r.marks.Unlock()
	err := r.persist(ctx, "record that the lane is paused", func(ctx context.Context) error {
		return r.o.Journal.SetMark(ctx, r.o.Consumer+lane.PausedMark, reason)
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.paused = reason
	}
	r.log.Line(slog.LevelWarn, "paused", func() string {
		return fmt.Sprintf("pause %s: %s. Its events are kept; when they are wanted again: hookfold lane resume %s", r.o.Consumer, reason, r.o.Name)
	})
}
