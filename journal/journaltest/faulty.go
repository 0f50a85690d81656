package journaltest

import (
	"context"
	"sync"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// Op names a call of a journal or of a consumer.
type Op string

// The calls that a Fault can be put on.
const (
	OpAppend        Op = "append"
	OpConsumer      Op = "consumer"
	OpGet           Op = "get"
	OpScan          Op = "scan"
	OpEntries       Op = "entries"
	OpRetry         Op = "retry"
	OpDrop          Op = "drop"
	OpState         Op = "state"
	OpFirstReceipts Op = "first-receipts"
	OpFirstFetched  Op = "first-fetched"
	OpRetain        Op = "retain"
	OpStats         Op = "stats"
	OpHealthy       Op = "healthy"
	OpNext          Op = "next"
	OpDue           Op = "due"
	OpDone          Op = "done"
	OpLag           Op = "lag"
)

// Fault is something that goes wrong with a call.
type Fault struct {
	// Op is the call.
	Op Op
	// Nth is which of these calls it hits, counted from 1 since the journal was
	// wrapped; 0 is every one.
	Nth int
	// Delay is how long the call takes longer, unless its context ends.
	Delay time.Duration
	// Gate, if not nil, holds the call until it is closed or the context ends.
	Gate <-chan struct{}
	// Err, if not nil, is what the call fails with: without having been made,
	// or with After once it has been, so that nobody can tell.
	Err   error
	After bool
}

// Faults are the faults of a wrapped journal. It is safe for concurrent use.
type Faults struct {
	mu     sync.Mutex
	faults []Fault
	calls  map[Op]int
}

// Add adds a fault. Of several for one call the first added counts.
func (f *Faults) Add(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, fault)
}

// Clear removes all faults.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
}

// Calls returns how often a call was made.
func (f *Faults) Calls(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// call makes a call with its fault.
func (f *Faults) call(ctx context.Context, op Op, make func() error) error {
	fault := f.next(op)
	if fault.Delay > 0 {
		timer := time.NewTimer(fault.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if fault.Gate != nil {
		select {
		case <-fault.Gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if fault.Err != nil && !fault.After {
		return fault.Err
	}
	if err := make(); err != nil {
		return err
	}
	return fault.Err
}

func (f *Faults) next(op Op) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls = make(map[Op]int)
	}
	f.calls[op]++
	for _, fault := range f.faults {
		if fault.Op == op && (fault.Nth == 0 || fault.Nth == f.calls[op]) {
			return fault
		}
	}
	return Fault{}
}

// Faulty wraps a journal so that its calls, and those of its consumers, suffer
// faults. Release and Close never do. A delivery or a batch that a failed call
// made is not returned; a batch is then released.
func Faulty(j journal.Journal, faults *Faults) journal.Journal { return &faulty{j, faults} }

type faulty struct {
	journal.Journal
	faults *Faults
}

func (f *faulty) Append(ctx context.Context, d *event.Delivery) error {
	c := *d
	err := f.faults.call(ctx, OpAppend, func() error { return f.Journal.Append(ctx, &c) })
	if err == nil {
		d.Position = c.Position
	}
	return err
}

func (f *faulty) Consumer(ctx context.Context, name string) (journal.Consumer, error) {
	c, err := result(f.faults, ctx, OpConsumer, func() (journal.Consumer, error) { return f.Journal.Consumer(ctx, name) })
	if err != nil {
		if c != nil {
			_ = c.Close() // the caller is told that there is none
		}
		return nil, err
	}
	return &faultyConsumer{c, f.faults}, nil
}

func (f *faulty) Get(ctx context.Context, p event.Position) (*event.Delivery, error) {
	return value(result(f.faults, ctx, OpGet, func() (*event.Delivery, error) { return f.Journal.Get(ctx, p) }))
}

func (f *faulty) Scan(ctx context.Context, from event.Position, see func(*event.Delivery) error) error {
	return f.faults.call(ctx, OpScan, func() error { return f.Journal.Scan(ctx, from, see) })
}

func (f *faulty) Entries(ctx context.Context, filter journal.Filter) ([]journal.Entry, error) {
	return value(result(f.faults, ctx, OpEntries, func() ([]journal.Entry, error) { return f.Journal.Entries(ctx, filter) }))
}

func (f *faulty) Retry(ctx context.Context, filter journal.Filter) (int, error) {
	return value(result(f.faults, ctx, OpRetry, func() (int, error) { return f.Journal.Retry(ctx, filter) }))
}

func (f *faulty) Drop(ctx context.Context, filter journal.Filter) (int, error) {
	return value(result(f.faults, ctx, OpDrop, func() (int, error) { return f.Journal.Drop(ctx, filter) }))
}

func (f *faulty) State(ctx context.Context, consumer string, r event.Ref) (journal.State, error) {
	return value(result(f.faults, ctx, OpState, func() (journal.State, error) { return f.Journal.State(ctx, consumer, r) }))
}

func (f *faulty) FirstReceipts(ctx context.Context, ids []journal.Receipt) ([]journal.Receipt, error) {
	return value(result(f.faults, ctx, OpFirstReceipts, func() ([]journal.Receipt, error) { return f.Journal.FirstReceipts(ctx, ids) }))
}

func (f *faulty) FirstFetched(ctx context.Context, reads []journal.Fetched) ([]journal.Fetched, error) {
	return value(result(f.faults, ctx, OpFirstFetched, func() ([]journal.Fetched, error) { return f.Journal.FirstFetched(ctx, reads) }))
}

func (f *faulty) Retain(ctx context.Context, keep journal.Retention, now time.Time) (journal.Removed, error) {
	return value(result(f.faults, ctx, OpRetain, func() (journal.Removed, error) { return f.Journal.Retain(ctx, keep, now) }))
}

func (f *faulty) Stats(ctx context.Context) (journal.Stats, error) {
	return value(result(f.faults, ctx, OpStats, func() (journal.Stats, error) { return f.Journal.Stats(ctx) }))
}

func (f *faulty) Healthy() error {
	return f.faults.call(context.Background(), OpHealthy, func() error { return f.Journal.Healthy() })
}

type faultyConsumer struct {
	journal.Consumer
	faults *Faults
}

func (f *faultyConsumer) Next(ctx context.Context, limit journal.Limit) (*journal.Batch, error) {
	return f.batch(result(f.faults, ctx, OpNext, func() (*journal.Batch, error) { return f.Consumer.Next(ctx, limit) }))
}

func (f *faultyConsumer) Due(ctx context.Context, now time.Time, limit journal.Limit) (*journal.Batch, error) {
	return f.batch(result(f.faults, ctx, OpDue, func() (*journal.Batch, error) { return f.Consumer.Due(ctx, now, limit) }))
}

func (f *faultyConsumer) batch(b *journal.Batch, err error) (*journal.Batch, error) {
	if err != nil && b != nil {
		f.Consumer.Release(b)
	}
	return value(b, err)
}

func (f *faultyConsumer) Done(ctx context.Context, b *journal.Batch, unsettled []journal.Entry) error {
	return f.faults.call(ctx, OpDone, func() error { return f.Consumer.Done(ctx, b, unsettled) })
}

func (f *faultyConsumer) Lag(ctx context.Context) (n int64, oldest time.Time, err error) {
	err = f.faults.call(ctx, OpLag, func() (err error) {
		n, oldest, err = f.Consumer.Lag(ctx)
		return err
	})
	return n, oldest, err
}

// result is call for a call that returns something. What it returns is there
// even where a fault follows.
func result[T any](f *Faults, ctx context.Context, op Op, make func() (T, error)) (v T, err error) {
	err = f.call(ctx, op, func() (err error) {
		v, err = make()
		return err
	})
	return v, err
}

// value leaves out what a failed call returned.
func value[T any](v T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return v, nil
}
