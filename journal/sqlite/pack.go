package sqlite

import (
	"context"
	"time"

	"github.com/hookfold/hookfold/event"
)

// When few deliveries come at a time, each has a block of its own, which
// compresses badly. Packing joins neighbours to blocks of some size. Deliveries
// are written once more for it, and only once: a group is joined when the next
// block no longer fits it.
const (
	packBlocks = 256      // blocks looked at in one step
	packBelow  = 16 << 10 // bytes of a block from which it is left as it is
	packTo     = 64 << 10 // bytes that the blocks of a group have at most, before they are joined
	// packSpan is how far the receipts in a group are apart at most, since a
	// block goes by its newest one when old deliveries are removed.
	packSpan = int64(time.Hour)
)

// pack joins small blocks, in short steps between appends.
func (j *Journal) pack(ctx context.Context) error {
	for more := true; more; {
		if err := j.do(ctx, func(ctx context.Context, s *store) (err error) {
			more, err = packStep(ctx, s)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// packStep joins the groups among the next blocks; false if there are no more.
func packStep(ctx context.Context, s *store) (more bool, err error) {
	from, err := s.number(ctx, "packed-up-to")
	if err != nil {
		return false, err
	}
	blocks, err := s.candidates(ctx, event.Position(from), packBlocks)
	if err != nil || len(blocks) == 0 {
		return false, err
	}
	var group []candidate
	size := int64(0)
	for _, b := range blocks {
		if n := len(group); n > 0 && (b.first != group[n-1].last()+1 || size+b.size > packTo || b.newest-group[0].newest > packSpan) {
			if err := s.join(ctx, group); err != nil {
				return false, err
			}
			group, size = nil, 0
		}
		if b.size >= packBelow {
			if err := s.join(ctx, group); err != nil {
				return false, err
			}
			group, size = nil, 0
			continue
		}
		group = append(group, b)
		size += b.size
	}
	if len(group) == packBlocks { // as many as are looked at in one step
		if err := s.join(ctx, group); err != nil {
			return false, err
		}
		group = nil
	}
	next := blocks[len(blocks)-1].last() + 1
	if len(group) > 0 {
		next = group[0].first
	}
	_, err = s.exec(ctx, "set-packed", int64(next))
	return len(blocks) == packBlocks, err
}

// join makes one block of neighbours.
func (s *store) join(ctx context.Context, group []candidate) error {
	if len(group) < 2 {
		return nil
	}
	var frames [][]byte
	joined := candidate{first: group[0].first, newest: group[0].newest}
	for _, c := range group {
		b, err := readBlock(ctx, s.conn, "block-at", int64(c.first))
		if err != nil {
			return err
		}
		frames = append(frames, b.frames...)
		joined.kept += c.kept
		joined.newest = max(joined.newest, c.newest)
		if _, err := s.exec(ctx, "delete-block", int64(c.first)); err != nil {
			return err
		}
	}
	_, err := s.exec(ctx, "insert-block", int64(joined.first), len(frames), joined.kept, joined.newest, sealBlock(joined.first, frames))
	return err
}
