// Package sqlite keeps a journal in one SQLite file: the default, for one
// process on one machine.
//
// One goroutine writes. It gathers whatever waits while the previous commit is
// under way, and writes it in one transaction with one fsync: deliveries as one
// block (see block.go), and the results of consumers beside them. A consumer
// costs one row; only events that are waiting or dead have rows of their own.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// Access says what a process may do with a journal.
type Access int

// The kinds of access. Any number of processes may be Operator or Reader
// beside one Owner.
const (
	// Owner may do everything. One process at a time can be it.
	Owner Access = iota
	// Operator may read, and change entries by Retry and Drop.
	Operator
	// Reader may read.
	Reader
)

// Options for Open.
type Options struct {
	// Access says what may be done; default Owner. Only an Owner makes a file
	// that is not there, or brings an old one up to date.
	Access Access
	// MaxBytes is the size of the journal's file from which Append first
	// removes the oldest settled deliveries and, if there are none, fails with
	// ErrFull. 0, the default, is no limit. The write-ahead log beside the file,
	// some megabytes, is not counted.
	MaxBytes int64
	// QueueDeliveries and QueueBytes are the most deliveries, and bytes of
	// deliveries, that wait to be written before Append fails with
	// ErrOverloaded; default 8192 and 64 MiB. One delivery may always wait.
	QueueDeliveries int
	QueueBytes      int
	// CacheBytes is how much of what was appended last is kept in memory for
	// consumers; default 16 MiB, negative for none.
	CacheBytes int

	// For tests: the SQLite file system to use, and how long to wait for another
	// process's lock; default 5 seconds.
	vfs  string
	busy time.Duration
}

func (o Options) withDefaults() Options {
	if o.QueueDeliveries <= 0 {
		o.QueueDeliveries = 8192
	}
	if o.QueueBytes <= 0 {
		o.QueueBytes = 64 << 20
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 16 << 20
	}
	if o.busy <= 0 {
		o.busy = 5 * time.Second
	}
	return o
}

// Journal is a journal in a SQLite file. It implements journal.Journal.
type Journal struct {
	path    string
	options Options
	lock    *lock // nil unless Owner
	cache   cache
	// fetches is set once anything was fetched; an Owner need not look before.
	fetches atomic.Bool

	// filing guards the open file: it is held for reading by whoever reads, and
	// for writing by the writer when it opens the file again.
	filing sync.RWMutex
	file   *store // nil when it could not be opened again

	queue   queue
	stopped chan struct{} // closed when the writer has ended
	closing chan struct{} // closed by Close

	mu        sync.Mutex
	last      event.Position // the last that was appended
	consumers map[string]*consumer
	unhealthy error
	closed    bool
	closeErr  error
}

var (
	_ journal.Journal  = (*Journal)(nil)
	_ journal.Appender = (*Journal)(nil)
)

// Open opens the journal in the file at path. With Owner it makes the file if
// there is none; its folder must be there, on a local disk.
func Open(path string, options Options) (*Journal, error) {
	path, err := realPath(path)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{
		path:      path,
		options:   options.withDefaults(),
		stopped:   make(chan struct{}),
		closing:   make(chan struct{}),
		consumers: make(map[string]*consumer),
	}
	j.cache.limit = j.options.CacheBytes
	j.queue.init(j.options.QueueDeliveries, j.options.QueueBytes)
	if options.Access == Owner {
		if j.lock, err = takeLock(path); err != nil {
			return nil, err
		}
	}
	if j.file, err = openStore(path, j.options); err != nil {
		return nil, errors.Join(err, j.unlock())
	}
	if options.Access != Owner {
		close(j.stopped)
		return j, nil
	}
	next, err := j.file.number(context.Background(), "next-position")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open journal %s: %w", path, err), j.file.close(), j.unlock())
	}
	any, err := j.file.number(context.Background(), "any-fetched")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open journal %s: %w", path, err), j.file.close(), j.unlock())
	}
	j.fetches.Store(any > 0)
	j.last = event.Position(next) - 1
	w := &writer{j: j, acked: j.last}
	go w.run()
	return j, nil
}

// realPath follows links, so that a journal has one lock by whatever name it
// is opened.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	}
	return path, nil // it is not there yet
}

func (j *Journal) unlock() error {
	if j.lock == nil {
		return nil
	}
	return j.lock.release()
}

// Path is the journal's file, without links.
func (j *Journal) Path() string { return j.path }

// do has the writer run f in its next transaction and waits for the outcome.
func (j *Journal) do(ctx context.Context, f func(ctx context.Context, s *store) error) error {
	if j.options.Access != Owner {
		return errors.New("the journal is open for reading only")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	t := &task{run: f, done: make(chan error, 1)}
	if err := j.queue.task(t); err != nil {
		return err
	}
	return <-t.done
}

// Healthy implements journal.Journal.
func (j *Journal) Healthy() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return journal.ErrClosed
	}
	return j.unhealthy
}

func (j *Journal) setHealth(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unhealthy = err
}

// Close implements journal.Journal. It ends the consumers too. Calls after the
// first one return what that returned.
func (j *Journal) Close() error {
	j.mu.Lock()
	first := !j.closed
	j.closed = true
	consumers := make([]*consumer, 0, len(j.consumers))
	for _, c := range j.consumers {
		consumers = append(consumers, c)
	}
	j.mu.Unlock()
	if !first {
		<-j.closing
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.closeErr
	}
	for _, c := range consumers {
		c.end()
	}
	j.queue.close()
	<-j.stopped
	j.filing.Lock()
	var err error
	if j.file != nil {
		err = j.file.close()
		j.file = nil
	}
	j.cache.clear()
	j.filing.Unlock()
	err = errors.Join(err, j.unlock())
	j.mu.Lock()
	j.closeErr = err
	j.mu.Unlock()
	close(j.closing)
	return err
}

// reading calls f with the open file.
func (j *Journal) reading(f func(s *store) error) error {
	j.filing.RLock()
	defer j.filing.RUnlock()
	if j.file == nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.closed {
			return journal.ErrClosed
		}
		return j.unhealthy
	}
	return f(j.file)
}

// appended tells consumers of new deliveries up to last.
func (j *Journal) appended(last event.Position) {
	j.mu.Lock()
	j.last = last
	consumers := make([]*consumer, 0, len(j.consumers))
	for _, c := range j.consumers {
		consumers = append(consumers, c)
	}
	j.mu.Unlock()
	for _, c := range consumers {
		c.wake.set()
	}
}

// LastPosition is that of the last delivery that was appended by this process, or
// before it: every delivery up to it has been received. It is 0 where there is
// none, and for a journal that is open for reading.
func (j *Journal) LastPosition() event.Position { return j.lastPosition() }

func (j *Journal) lastPosition() event.Position {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}
