package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// block is a block as its frames, which are nil where a delivery was removed.
// It is never changed.
type block struct {
	first  event.Position
	frames [][]byte
	bytes  int
}

func (b *block) last() event.Position { return b.first + event.Position(len(b.frames)) - 1 }

// frame returns the frame at a position, nil if it is not, or no longer, there.
func (b *block) frame(p event.Position) []byte {
	if p < b.first || p > b.last() {
		return nil
	}
	if f := b.frames[p-b.first]; len(f) > 0 {
		return f
	}
	return nil
}

func newBlock(first int64, data []byte) (*block, error) {
	frames, err := openBlock(event.Position(first), data)
	if err != nil {
		return nil, fmt.Errorf("read deliveries from #%d on: %w", first, err)
	}
	b := &block{first: event.Position(first), frames: frames}
	for _, f := range frames {
		b.bytes += len(f)
	}
	return b, nil
}

// queryer is a *sql.DB or a *sql.Conn.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// readBlock reads the block that a query names on a connection that reads, or
// on the writing one if there is no other.
func (s *store) readBlock(ctx context.Context, name string, args ...any) (*block, error) {
	return readBlock(ctx, s.read, name, args...)
}

func readBlock(ctx context.Context, q queryer, name string, args ...any) (*block, error) {
	var first int64
	var data []byte
	err := q.QueryRowContext(ctx, query(name), args...).Scan(&first, &data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, journal.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return newBlock(first, data)
}

// blocksFrom returns blocks in order, beginning with the one that holds p or
// else the next, until they hold enough. None is the end of the journal.
func (s *store) blocksFrom(ctx context.Context, p event.Position, deliveries, bytes int) (blocks []*block, err error) {
	rows, err := s.read.QueryContext(ctx, query("blocks-from"), int64(p))
	if err != nil {
		return nil, fmt.Errorf("read deliveries from #%d on: %w", p, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for deliveries > 0 && bytes > 0 && rows.Next() {
		var first int64
		var data sql.RawBytes
		if err := rows.Scan(&first, &data); err != nil {
			return nil, fmt.Errorf("read deliveries from #%d on: %w", p, err)
		}
		b, err := newBlock(first, data)
		if err != nil {
			return nil, err
		}
		// Blocks of what was appended compress some four times; a plain one
		// shares memory with the row, which is only lent.
		if len(data) > 1 && data[1] == methodPlain {
			b = b.clone()
		}
		blocks = append(blocks, b)
		deliveries -= len(b.frames)
		bytes -= b.bytes
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read deliveries from #%d on: %w", p, err)
	}
	return blocks, nil
}

func (b *block) clone() *block {
	c := &block{first: b.first, frames: make([][]byte, len(b.frames)), bytes: b.bytes}
	for i, f := range b.frames {
		c.frames[i] = slices.Clone(f)
	}
	return c
}

// blocks is blocksFrom, but from memory if it can be.
func (j *Journal) blocks(ctx context.Context, p event.Position, deliveries, bytes int) (blocks []*block, err error) {
	if blocks = j.cache.from(p, deliveries, bytes); len(blocks) > 0 {
		return blocks, nil
	}
	err = j.reading(func(s *store) (err error) {
		blocks, err = s.blocksFrom(ctx, p, deliveries, bytes)
		return err
	})
	return blocks, err
}

// Get implements journal.Journal.
func (j *Journal) Get(ctx context.Context, p event.Position) (*event.Delivery, error) {
	deliveries, err := j.deliveries(ctx, []event.Position{p})
	if err != nil {
		return nil, err
	}
	return deliveries[0], nil
}

// deliveries reads deliveries by their positions, which are sorted.
func (j *Journal) deliveries(ctx context.Context, positions []event.Position) ([]*event.Delivery, error) {
	var dec decoder
	b := &block{}
	deliveries := make([]*event.Delivery, len(positions))
	for i, p := range positions {
		if p < b.first || p > b.last() {
			if cached := j.cache.from(p, 1, 1); len(cached) > 0 {
				b = cached[0]
			} else if err := j.reading(func(s *store) (err error) {
				b, err = s.readBlock(ctx, "block-at", int64(p))
				return err
			}); err != nil {
				return nil, fmt.Errorf("delivery #%d: %w", p, err)
			}
		}
		frame := b.frame(p)
		if frame == nil {
			return nil, fmt.Errorf("delivery #%d: %w", p, journal.ErrNotFound)
		}
		var err error
		if deliveries[i], err = dec.frame(p, frame); err != nil {
			return nil, err
		}
	}
	return deliveries, j.withFetched(ctx, deliveries)
}

// Scan implements journal.Journal.
func (j *Journal) Scan(ctx context.Context, from event.Position, f func(*event.Delivery) error) error {
	var dec decoder
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		var blocks []*block
		if err := j.reading(func(s *store) (err error) {
			blocks, err = s.blocksFrom(ctx, from, 1000, 1<<20)
			return err
		}); err != nil || len(blocks) == 0 {
			return err
		}
		for _, b := range blocks {
			var all []*event.Delivery
			for i, frame := range b.frames {
				p := b.first + event.Position(i)
				if p < from || len(frame) == 0 {
					continue
				}
				d, err := dec.frame(p, frame)
				if err != nil {
					return err
				}
				all = append(all, d)
			}
			for some := range slices.Chunk(all, fetchedAtOnce) {
				if err := j.withFetched(ctx, some); err != nil {
					return err
				}
				for i, d := range some {
					some[i] = nil
					if err := f(d); err != nil {
						return err
					}
				}
			}
			from = b.last() + 1
		}
	}
}

// Stats implements journal.Journal. Its Bytes are those of the file that hold
// something.
func (j *Journal) Stats(ctx context.Context) (st journal.Stats, err error) {
	err = j.reading(func(s *store) error {
		conn, err := s.read.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
			return err
		}
		defer conn.ExecContext(context.WithoutCancel(ctx), query("rollback"))
		var removed, next, size, pages, free int64
		if err := conn.QueryRowContext(ctx, query("totals")).Scan(&removed, &next, &st.Waiting, &st.Dead); err != nil {
			return err
		}
		for name, n := range map[string]*int64{"page-size": &size, "page-count": &pages, "free-count": &free} {
			if err := conn.QueryRowContext(ctx, query(name)).Scan(n); err != nil {
				return err
			}
		}
		st.Bytes = size * (pages - free)
		if st.Deliveries = next - 1 - removed; st.Deliveries == 0 {
			return nil
		}
		oldest, err := readBlock(ctx, conn, "oldest-block")
		if err != nil {
			return err
		}
		newest, err := readBlock(ctx, conn, "newest-block")
		if err != nil {
			return err
		}
		st.First = oldest.first + event.Position(slices.IndexFunc(oldest.frames, func(f []byte) bool { return len(f) > 0 }))
		for st.Last = newest.last(); newest.frame(st.Last) == nil && st.Last > newest.first; {
			st.Last--
		}
		return nil
	})
	if err != nil {
		return journal.Stats{}, fmt.Errorf("read what is in the journal: %w", err)
	}
	return st, nil
}

// cache keeps the blocks that were appended last, without gaps.
type cache struct {
	limit int

	mu     sync.Mutex
	blocks []*block
	bytes  int
}

// add adds a block that was committed. One that is larger than the cache
// leaves it empty.
func (c *cache) add(b *block) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocks = append(c.blocks, b)
	c.bytes += b.cost()
	n := 0
	for c.bytes > c.limit && n < len(c.blocks) {
		c.bytes -= c.blocks[n].cost()
		c.blocks[n] = nil
		n++
	}
	c.blocks = c.blocks[n:]
}

// cost is about the memory that a block takes.
func (b *block) cost() int { return b.bytes + 24*len(b.frames) + 100 }

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocks, c.bytes = nil, 0
}

// from returns blocks in order, beginning with the one that holds p, until
// they hold enough; none if p is not in the cache.
func (c *cache) from(p event.Position, deliveries, bytes int) []*block {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.blocks) == 0 || p < c.blocks[0].first || p > c.blocks[len(c.blocks)-1].last() {
		return nil
	}
	i, found := slices.BinarySearchFunc(c.blocks, p, func(b *block, p event.Position) int {
		return int(max(-1, min(1, b.first-p)))
	})
	if !found {
		i--
	}
	end := i
	for end < len(c.blocks) && deliveries > 0 && bytes > 0 {
		deliveries -= len(c.blocks[end].frames)
		bytes -= c.blocks[end].bytes
		end++
	}
	return slices.Clone(c.blocks[i:end])
}
