package sqlite

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// appending is a delivery that waits to be written.
type appending struct {
	frame    []byte
	received time.Time
	fetched  []event.Fetched
	position event.Position // set before done
	done     chan error     // has room for the outcome
}

// task is another write that waits, to be made in the same transaction.
type task struct {
	run  func(ctx context.Context, s *store) error
	done chan error
}

// queue holds what waits for the writer.
type queue struct {
	maxCount, maxBytes int
	ready              chan struct{} // has a token when there is something, or it is closed

	mu      sync.Mutex
	appends []*appending
	bytes   int
	tasks   []*task
	closed  bool
}

func (q *queue) init(maxCount, maxBytes int) {
	q.maxCount, q.maxBytes = maxCount, maxBytes
	q.ready = make(chan struct{}, 1)
}

// append puts deliveries behind each other, all of them or none.
func (q *queue) append(list ...*appending) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return journal.ErrClosed
	}
	bytes := 0
	for _, a := range list {
		bytes += len(a.frame)
	}
	if n := len(q.appends); n > 0 && (n+len(list) > q.maxCount || q.bytes+bytes > q.maxBytes) {
		return fmt.Errorf("%w: %d deliveries of %d bytes wait for the disk", journal.ErrOverloaded, n, q.bytes)
	}
	q.appends = append(q.appends, list...)
	q.bytes += bytes
	q.signal()
	return nil
}

func (q *queue) task(t *task) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return journal.ErrClosed
	}
	q.tasks = append(q.tasks, t)
	q.signal()
	return nil
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take returns what waits, of deliveries at most about maxBytes; closed is true
// once there will be nothing more.
func (q *queue) take(maxBytes int) (appends []*appending, tasks []*task, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.appends) && (n == 0 || bytes+len(q.appends[n].frame) <= maxBytes) {
		bytes += len(q.appends[n].frame)
		n++
	}
	appends, tasks = q.appends[:n:n], q.tasks
	if q.appends, q.tasks = q.appends[n:], nil; len(q.appends) == 0 {
		q.appends = nil
	}
	q.bytes -= bytes
	return appends, tasks, q.closed && n == 0 && len(tasks) == 0
}

// flag wakes whoever waits for it. The zero flag is ready.
type flag struct {
	mu sync.Mutex
	c  chan struct{}
}

// wait returns a channel that the next set closes.
func (f *flag) wait() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.c == nil {
		f.c = make(chan struct{})
	}
	return f.c
}

func (f *flag) set() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.c != nil {
		close(f.c)
		f.c = nil
	}
}
