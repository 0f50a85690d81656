package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// What a batch is limited to where the caller's limit has no positive value.
const (
	defaultDeliveries = 1000
	defaultBytes      = 8 << 20
)

// consumer implements journal.Consumer. Deliveries go from the journal to ready,
// and to a lease; a lease that is released goes to released; all of these are
// bounded by the limits of the batches under way and one block.
type consumer struct {
	j    *Journal
	name string
	wake flag // set when there may be something for Next

	mu       sync.Mutex
	done     progress
	cursor   event.Position // the next position to read from the journal
	ready    []item         // read, in order
	released []item         // leased before and given back, in order
	leases   map[*lease]struct{}
	retried  map[event.Position]struct{} // deliveries that Due has leased
	dec      decoder
	ended    bool
}

var _ journal.Consumer = (*consumer)(nil)

type item struct {
	delivery *event.Delivery
	bytes    int
}

// lease is what a batch carries. Its items are set for a batch of Next, its
// entries for one of Due, with asked beside them.
type lease struct {
	of        *consumer
	positions []event.Position // sorted
	items     []item
	entries   []journal.Entry
	asked     []int64
	// finishing is set while Done writes; known is what was done before.
	finishing bool
	known     progress
}

// Consumer implements journal.Journal.
func (j *Journal) Consumer(ctx context.Context, name string) (journal.Consumer, error) {
	if name == "" {
		return nil, errors.New("a consumer needs a name")
	}
	c := &consumer{j: j, name: name, leases: make(map[*lease]struct{}), retried: make(map[event.Position]struct{})}
	j.mu.Lock()
	switch _, taken := j.consumers[name]; {
	case j.closed:
		j.mu.Unlock()
		return nil, journal.ErrClosed
	case taken:
		j.mu.Unlock()
		return nil, fmt.Errorf("consumer %s is open already: close it first", name)
	}
	j.consumers[name] = c // reserves the name
	j.mu.Unlock()
	err := j.do(ctx, func(ctx context.Context, s *store) error {
		done, err := s.progressOf(ctx, name)
		if errors.Is(err, sql.ErrNoRows) {
			if _, err := s.exec(ctx, "new-consumer", name); err != nil {
				return err
			}
			done, err = s.progressOf(ctx, name)
		}
		if err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.done, c.cursor = done, done.done+1
		return nil
	})
	if err != nil {
		j.forget(c)
		return nil, fmt.Errorf("open consumer %s: %w", name, err)
	}
	return c, nil
}

// progressOf reads the stored progress of a consumer on the writing connection.
func (s *store) progressOf(ctx context.Context, name string) (progress, error) {
	st, err := s.stmt(ctx, "consumer")
	if err != nil {
		return progress{}, err
	}
	var done event.Position
	var above []byte
	if err := st.QueryRowContext(ctx, name).Scan(&done, &above); err != nil {
		return progress{}, err
	}
	return decodeProgress(done, above)
}

func (j *Journal) forget(c *consumer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.consumers[c.name] == c {
		delete(j.consumers, c.name)
	}
}

// Next implements journal.Consumer. A limit that is not positive is 1000
// deliveries and 8 MiB.
func (c *consumer) Next(ctx context.Context, limit journal.Limit) (*journal.Batch, error) {
	limit = withDefaults(limit)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		wake := c.wake.wait() // before looking, so that nothing is missed
		b, err := c.take(ctx, limit)
		if b != nil || err != nil {
			return b, err
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func withDefaults(l journal.Limit) journal.Limit {
	if l.Deliveries <= 0 {
		l.Deliveries = defaultDeliveries
	}
	if l.Bytes <= 0 {
		l.Bytes = defaultBytes
	}
	return l
}

// take leases what there is; nil if there is nothing.
func (c *consumer) take(ctx context.Context, limit journal.Limit) (*journal.Batch, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, journal.ErrClosed
	}
	l := &lease{of: c}
	bytes := 0
	// pick moves items to the lease as far as the limit goes.
	pick := func(from []item) []item {
		n := 0
		for n < len(from) && len(l.items) < limit.Deliveries && (len(l.items) == 0 || bytes+from[n].bytes <= limit.Bytes) {
			bytes += from[n].bytes
			l.items = append(l.items, from[n])
			n++
		}
		if n == len(from) {
			return nil
		}
		return from[n:]
	}
	c.released = pick(c.released)
	for len(c.released) == 0 {
		c.ready = pick(c.ready)
		if len(c.ready) > 0 || len(l.items) >= limit.Deliveries || len(l.items) > 0 && bytes >= limit.Bytes {
			break
		}
		more, err := c.load(ctx, limit.Deliveries-len(l.items), limit.Bytes-bytes)
		if err != nil {
			c.giveBack(l)
			return nil, err
		}
		if !more {
			break
		}
	}
	if len(l.items) == 0 {
		return nil, nil
	}
	b := &journal.Batch{Lease: l, Deliveries: make([]*event.Delivery, len(l.items))}
	for i, it := range l.items {
		b.Deliveries[i] = it.delivery
	}
	n, err := c.j.fetchedWithin(ctx, b.Deliveries, limit.Bytes-bytes)
	if err != nil {
		c.giveBack(l)
		return nil, fmt.Errorf("consumer %s: %w", c.name, err)
	}
	c.giveBack(&lease{of: c, items: l.items[n:]})
	b.Deliveries, l.items = b.Deliveries[:n], l.items[:n]
	for _, d := range b.Deliveries {
		l.positions = append(l.positions, d.Position)
	}
	c.leases[l] = struct{}{}
	return b, nil
}

// load reads the next blocks into ready; false if the journal has no more. A
// gap, which Retain may leave to a new consumer, counts as done.
func (c *consumer) load(ctx context.Context, deliveries, bytes int) (bool, error) {
	if c.cursor > c.j.lastPosition() {
		return false, nil
	}
	blocks, err := c.j.blocks(ctx, c.cursor, deliveries, bytes)
	if err != nil {
		return false, fmt.Errorf("consumer %s: %w", c.name, err)
	}
	if len(blocks) == 0 { // all that was left is removed
		c.done.add(span{c.cursor, c.j.lastPosition()})
		c.cursor = c.j.lastPosition() + 1
	}
	for _, b := range blocks {
		c.done.add(span{c.cursor, b.first - 1})
		for p := max(c.cursor, b.first); p <= b.last(); p++ {
			frame := b.frame(p)
			if frame == nil {
				c.done.add(span{p, p})
			} else if !c.done.has(p) {
				d, err := c.dec.frame(p, frame)
				if err != nil {
					return false, fmt.Errorf("consumer %s: %w", c.name, err)
				}
				c.ready = append(c.ready, item{d, len(frame)})
			}
			c.cursor = p + 1
		}
	}
	return len(blocks) > 0, nil
}

// Due implements journal.Consumer. It passes over entries of deliveries that
// are leased.
func (c *consumer) Due(ctx context.Context, now time.Time, limit journal.Limit) (*journal.Batch, error) {
	limit = withDefaults(limit)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, journal.ErrClosed
	}
	l := &lease{of: c}
	if err := c.j.reading(func(s *store) error { return c.due(ctx, s, now, limit.Deliveries, l) }); err != nil {
		return nil, fmt.Errorf("consumer %s: read what is due: %w", c.name, err)
	}
	if len(l.entries) == 0 {
		return &journal.Batch{Lease: l}, nil
	}
	deliveries, bytes := make([]*event.Delivery, 0, len(l.positions)), 0
	for i, p := range l.positions {
		ds, err := c.j.deliveries(ctx, l.positions[i:i+1])
		if err != nil {
			return nil, fmt.Errorf("consumer %s: entry of #%d: %w", c.name, p, err)
		}
		if bytes += len(ds[0].Body) + fetchedBytes(ds[0]); i > 0 && bytes > limit.Bytes {
			l.cut(l.positions[:i])
			break
		}
		deliveries = append(deliveries, ds[0])
	}
	for _, p := range l.positions {
		c.retried[p] = struct{}{}
	}
	c.leases[l] = struct{}{}
	return &journal.Batch{Deliveries: deliveries, Entries: slices.Clone(l.entries), Lease: l}, nil
}

// due fills a lease with the entries that are due, of at most so many
// deliveries, in order of acceptance.
func (c *consumer) due(ctx context.Context, s *store, now time.Time, most int, l *lease) (err error) {
	rows, err := s.read.QueryContext(ctx, query("due"), c.name, nanoseconds(now))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	chosen := make(map[event.Position]struct{})
	type found struct {
		entry journal.Entry
		asked int64
	}
	var all []found
	for rows.Next() {
		e, asked, err := scanEntry(rows)
		if err != nil {
			return err
		}
		p := e.Ref.Position
		if _, leased := c.retried[p]; leased || !c.done.has(p) {
			continue
		}
		if _, ok := chosen[p]; !ok {
			if len(chosen) == most {
				break
			}
			chosen[p] = struct{}{}
			l.positions = append(l.positions, p)
		}
		all = append(all, found{e, asked})
	}
	slices.Sort(l.positions)
	slices.SortFunc(all, func(a, b found) int { return a.entry.Ref.Compare(b.entry.Ref) })
	for _, f := range all {
		l.entries, l.asked = append(l.entries, f.entry), append(l.asked, f.asked)
	}
	return rows.Err()
}

// cut leaves a lease of Due with the entries of the first positions.
func (l *lease) cut(positions []event.Position) {
	l.positions = positions
	n := len(l.entries)
	for n > 0 && l.entries[n-1].Ref.Position > positions[len(positions)-1] {
		n--
	}
	l.entries, l.asked = l.entries[:n], l.asked[:n]
}

// Lag implements journal.Consumer.
func (c *consumer) Lag(ctx context.Context) (int64, time.Time, error) {
	c.mu.Lock()
	ended, oldest := c.ended, c.done.done+1
	n := int64(c.j.lastPosition()-c.done.done) - c.done.count()
	c.mu.Unlock()
	if ended {
		return 0, time.Time{}, journal.ErrClosed
	}
	if n <= 0 {
		return 0, time.Time{}, nil
	}
	blocks, err := c.j.blocks(ctx, oldest, 1, 1)
	if err != nil || len(blocks) == 0 {
		return n, time.Time{}, err
	}
	for p := max(oldest, blocks[0].first); p <= blocks[0].last(); p++ {
		if frame := blocks[0].frame(p); frame != nil {
			d, err := new(decoder).frame(p, frame)
			if err != nil {
				return n, time.Time{}, err
			}
			return n, d.Received, nil
		}
	}
	return n, time.Time{}, nil
}

// Close implements journal.Consumer.
func (c *consumer) Close() error {
	c.end()
	c.j.forget(c)
	return nil
}

func (c *consumer) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.ready, c.released = nil, nil
	clear(c.leases)
	clear(c.retried)
	c.wake.set()
}
