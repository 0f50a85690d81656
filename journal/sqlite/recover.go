package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// recover tries to leave the state of failure. A file whose write failed is
// closed and opened again, so that nothing that is only in this process's
// memory counts; all of its log is written to the file once more and synced,
// since after a failed sync the system may take pages for written that are
// not; and what was promised must be there. Then a write of some size must
// succeed.
func (w *writer) recover(ctx context.Context) {
	w.tried = time.Now()
	if err := w.tryRecover(ctx); err != nil {
		w.failed = err
		w.j.setHealth(err)
		return
	}
	w.failed = nil
	w.j.setHealth(nil)
	w.j.appended(w.acked)
}

func (w *writer) tryRecover(ctx context.Context) error {
	j := w.j
	if errors.Is(w.failed, journal.ErrBroken) {
		if err := w.reopen(ctx); err != nil {
			return err
		}
	}
	// First what is in the log, so that tries do not make it longer.
	if _, _, err := j.file.log(ctx, "empty-log"); err != nil {
		return j.file.writeError(err)
	}
	if err := w.makeRoom(ctx); err != nil {
		return err
	}
	for _, name := range []string{"probe-write", "probe-clear"} {
		if _, err := j.file.exec(ctx, name); err != nil {
			return j.file.writeError(err)
		}
	}
	return nil
}

func (w *writer) reopen(ctx context.Context) error {
	j := w.j
	j.filing.Lock()
	defer j.filing.Unlock()
	if j.file != nil {
		_ = j.file.close() // what it says of the failed write is known
		j.file = nil
	}
	broken := func(err error) error {
		return fmt.Errorf("%w: %s: %w; look at its disk", journal.ErrBroken, j.path, err)
	}
	s, err := openStore(j.path, j.options)
	if err != nil {
		return broken(err)
	}
	last, err := verify(ctx, s)
	if err == nil && last < w.acked {
		err = fmt.Errorf("deliveries up to #%d were accepted, but the file ends at #%d: restore it, or start again to go on without them", w.acked, last)
	}
	if err != nil {
		return errors.Join(broken(err), s.close())
	}
	w.acked = last
	j.file = s
	j.cache.clear()
	return nil
}

// verify writes the log of a file that was opened again into it, and returns
// its last position.
func verify(ctx context.Context, s *store) (event.Position, error) {
	_, busy, err := s.log(ctx, "empty-log")
	if err != nil {
		return 0, fmt.Errorf("write out the log: %w", err)
	}
	if busy {
		return 0, errors.New("write out the log: another process is reading the journal; this is tried again")
	}
	b, err := s.readBlock(ctx, "newest-block")
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return 0, err
	}
	next, err := s.number(ctx, "next-position")
	if err != nil {
		return 0, err
	}
	if b != nil && b.last() >= event.Position(next) {
		return 0, fmt.Errorf("%w: the newest block ends at #%d", errDamaged, b.last())
	}
	return event.Position(next) - 1, nil
}
