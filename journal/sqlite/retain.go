package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

const (
	retainBlocks = 64  // blocks looked at in one step of removing
	receiptParts = 256 // slices in which old receipts are removed

	// keptFree is how much of the file may be free for what comes next before
	// space is given back to the disk: a tenth, and some megabytes.
	keptFreePart  = 10
	keptFreeBytes = 4 << 20
)

// retention is what a step keeps: with before, only deliveries received at or
// after it; with bytes, no more than that in the file.
type retention struct {
	before int64 // nanoseconds since 1970; math.MinInt64 keeps all
	bytes  int64 // 0 keeps all
}

// removal is what a step did.
type removal struct {
	journal.Removed
	next event.Position // where the next step goes on; 0 if there is nothing more
	upTo event.Position // the last position of the blocks it changed
}

// Retain implements journal.Journal. It works in short steps between appends.
// Of a block that holds deliveries to keep and others, the others are removed.
// Receipts of identities are removed by age only.
func (j *Journal) Retain(ctx context.Context, keep journal.Retention, now time.Time) (journal.Removed, error) {
	total := journal.Removed{}
	want := retention{before: math.MinInt64, bytes: keep.Bytes}
	if keep.Age > 0 {
		want.before = nanoseconds(now.Add(-keep.Age))
	}
	if keep.Age <= 0 && keep.Bytes <= 0 {
		return total, nil
	}
	for from := event.Position(1); from > 0; {
		var n removal
		err := j.do(ctx, func(ctx context.Context, s *store) (err error) {
			n, err = retainStep(ctx, s, want, from)
			return err
		})
		if err != nil {
			return total, fmt.Errorf("remove old deliveries: %w", err)
		}
		j.cache.forget(n.upTo)
		total.Deliveries += n.Deliveries
		total.Bytes += n.Bytes
		from = n.next
	}
	if keep.Age > 0 {
		for part := range receiptParts {
			low := append([]byte{byte(part)}, bytes.Repeat([]byte{0}, 15)...)
			high := append([]byte{byte(part)}, bytes.Repeat([]byte{255}, 15)...)
			err := j.do(ctx, func(ctx context.Context, s *store) error {
				_, err := s.exec(ctx, "delete-receipts", low, high, want.before)
				return err
			})
			if err != nil {
				return total, fmt.Errorf("remove old receipts: %w", err)
			}
		}
	}
	if err := j.pack(ctx); err != nil {
		return total, fmt.Errorf("pack small blocks: %w", err)
	}
	if err := j.tidyIndex(ctx); err != nil {
		return total, fmt.Errorf("tidy the index of rows: %w", err)
	}
	for again := true; again; {
		err := j.do(ctx, func(ctx context.Context, s *store) (err error) {
			again, err = shrinkStep(ctx, s)
			return err
		})
		if err != nil {
			return total, fmt.Errorf("give space back: %w", err)
		}
	}
	return total, nil
}

// retainStep removes what it may of the next few blocks, in the transaction
// under way.
func retainStep(ctx context.Context, s *store, want retention, from event.Position) (n removal, err error) {
	used, _, err := s.used(ctx)
	if err != nil {
		return n, err
	}
	before := used
	settled, err := s.number(ctx, "settled-up-to")
	if err != nil {
		return n, err
	}
	rows, err := s.candidates(ctx, from, retainBlocks)
	if err != nil {
		return n, err
	}
	if len(rows) == retainBlocks {
		n.next = rows[len(rows)-1].last() + 1
	}
	for _, b := range rows {
		tooOld := b.newest < want.before
		tooMuch := want.bytes > 0 && used > want.bytes
		if b.last() > event.Position(settled) || !tooOld && !tooMuch {
			n.next = 0
			break
		}
		removed, err := s.removeFrom(ctx, b)
		if err != nil {
			return n, err
		}
		if removed > 0 {
			n.Deliveries += removed
			n.upTo = b.last()
			if used, _, err = s.used(ctx); err != nil {
				return n, err
			}
		}
	}
	if n.Deliveries > 0 {
		if _, err := s.exec(ctx, "count-removed", n.Deliveries, int64(n.upTo)+1); err != nil {
			return n, err
		}
	}
	n.Bytes = max(0, before-used)
	return n, nil
}

// candidate is a block, without its data.
type candidate struct {
	first       event.Position
	count, kept int64
	newest      int64
	size        int64 // of the data as stored
}

func (b candidate) last() event.Position { return b.first + event.Position(b.count) - 1 }

func (s *store) candidates(ctx context.Context, from event.Position, limit int) (found []candidate, err error) {
	st, err := s.stmt(ctx, "oldest-blocks")
	if err != nil {
		return nil, err
	}
	rows, err := st.QueryContext(ctx, int64(from), limit)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var b candidate
		if err := rows.Scan(&b.first, &b.count, &b.kept, &b.newest, &b.size); err != nil {
			return nil, err
		}
		found = append(found, b)
	}
	return found, rows.Err()
}

// removeFrom removes the deliveries of a block but those that have entries.
func (s *store) removeFrom(ctx context.Context, c candidate) (removed int64, err error) {
	held, err := s.held(ctx, c)
	if err != nil {
		return 0, err
	}
	if len(held) < int(c.kept) {
		if err := s.removeFetched(ctx, c, held); err != nil {
			return 0, err
		}
	}
	if len(held) == 0 {
		_, err := s.exec(ctx, "delete-block", int64(c.first))
		return c.kept, err
	}
	if int64(len(held)) >= c.kept {
		return 0, nil
	}
	b, err := readBlock(ctx, s.conn, "block-at", int64(c.first))
	if err != nil {
		return 0, err
	}
	frames := make([][]byte, len(b.frames))
	for _, p := range held {
		frames[p-b.first] = b.frame(p)
	}
	_, err = s.exec(ctx, "shrink-block", int64(c.first), len(held), sealBlock(c.first, frames))
	return c.kept - int64(len(held)), err
}

func (s *store) held(ctx context.Context, c candidate) (positions []event.Position, err error) {
	st, err := s.stmt(ctx, "held")
	if err != nil {
		return nil, err
	}
	rows, err := st.QueryContext(ctx, int64(c.first), int64(c.last()))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var p event.Position
		if err := rows.Scan(&p); err != nil {
			return nil, err
		}
		positions = append(positions, p)
	}
	return positions, rows.Err()
}

// shrinkStep gives some free pages back to the disk; false if enough of them
// are.
func shrinkStep(ctx context.Context, s *store) (again bool, err error) {
	used, free, err := s.used(ctx)
	if err != nil || free <= keptFreeBytes+used/keptFreePart {
		return false, err
	}
	rows, err := s.conn.QueryContext(ctx, query("vacuum"))
	if err != nil {
		return false, err
	}
	for rows.Next() { // each row is one page given back
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return false, err
	}
	_, left, err := s.used(ctx)
	return left < free, err
}

// forget drops the blocks that begin at or before p.
func (c *cache) forget(p event.Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.blocks) > 0 && c.blocks[0].first <= p {
		c.bytes -= c.blocks[0].cost()
		c.blocks = c.blocks[1:]
	}
}
