// Package journal is the contract of the durable log of deliveries, and of what
// became of their events. DESIGN.md in this folder shows how three stores keep
// it; journaltest is the suite that every store passes.
package journal

import (
	"context"
	"errors"
	"time"

	"github.com/hookfold/hookfold/event"
)

// Journal is a durable log of deliveries. It is safe for concurrent use.
type Journal interface {
	// Append makes a delivery durable, with what it has Fetched, and sets its Position. It returns nil
	// only once the delivery would survive a loss of power; calls made at the
	// same time share one commit. On an error the delivery is not promised
	// (though it may be there). ErrFull, ErrOverloaded and ErrBroken are in the
	// chain of the error where they apply.
	Append(ctx context.Context, d *event.Delivery) error

	// Consumer returns the consumer of a name, which it creates at the
	// beginning of the journal the first time. Each target has one. A name has
	// one consumer at a time in a process.
	Consumer(ctx context.Context, name string) (Consumer, error)

	// Get returns one delivery, or ErrNotFound.
	Get(ctx context.Context, p event.Position) (*event.Delivery, error)

	// Scan calls f for each retained delivery from position from on, in order,
	// until f returns an error, which Scan returns. Deliveries appended
	// meanwhile may be seen or not.
	Scan(ctx context.Context, from event.Position, f func(*event.Delivery) error) error

	// Entries lists the events that are waiting or dead, oldest first.
	Entries(ctx context.Context, filter Filter) ([]Entry, error)

	// Retry makes the entries that match due at once, whatever their state, and
	// returns how many there were.
	Retry(ctx context.Context, filter Filter) (int, error)

	// Drop forgets the entries that match: a person has decided that they need
	// not land. It returns how many there were.
	Drop(ctx context.Context, filter Filter) (int, error)

	// Dropped lists the events of a consumer that were dropped, in their order, as
	// long as their deliveries are retained: nothing or only a part of what they
	// say has landed.
	Dropped(ctx context.Context, consumer string) ([]event.Ref, error)

	// Progress tells up to which position every delivery is done for a consumer:
	// each of its events is settled or an entry. It is 0 for a consumer that is
	// not known.
	Progress(ctx context.Context, consumer string) (event.Position, error)

	// State tells what became of an event for a consumer.
	State(ctx context.Context, consumer string, r event.Ref) (State, error)

	// FirstReceipts returns, for each identity, when and where it was first
	// received, recording the given ones for identities not seen before. The
	// answer for one identity never changes while it is kept. A journal that is
	// open for reading records nothing, and gives those back as they are.
	FirstReceipts(ctx context.Context, ids []Receipt) ([]Receipt, error)

	// FirstFetched returns, for each event and fetch, what was read for it first,
	// recording the given one where there is none yet. It is kept as long as the
	// delivery, which must be in the journal, and comes with it from then on, in
	// Fetched. The answer for one event and fetch never changes.
	FirstFetched(ctx context.Context, reads []Fetched) ([]Fetched, error)

	// Retain removes deliveries by age and size, oldest first, but none that a
	// consumer has yet to settle, or that has a waiting or dead event.
	Retain(ctx context.Context, keep Retention, now time.Time) (Removed, error)

	// Stats describes the journal.
	Stats(ctx context.Context) (Stats, error)

	// Healthy returns nil if Append would be tried, else why not.
	Healthy() error

	// Close finishes appends under way and closes the journal.
	Close() error
}

// Waker is a Journal that makes many entries due in one commit.
type Waker interface {
	// Wake makes the entries of a consumer due at once that are of these events,
	// and returns how many there were. Unlike Retry it leaves their state: a dead
	// one of which a part waits is tried again and stays dead.
	Wake(ctx context.Context, consumer string, refs []event.Ref) (int, error)
}

// Appender is a Journal that appends many deliveries in their order.
type Appender interface {
	// AppendAll makes deliveries durable in the order given, sharing as few
	// commits as it can, and sets their Positions. On an error those that have no
	// Position are not promised; the errors are those of Append.
	AppendAll(ctx context.Context, list []*event.Delivery) error
}

// Lanes is a Journal that keeps what ordered delivery needs beside entries.
type Lanes interface {
	// Park sets the entries that match aside, whatever their state: they are dead,
	// and wait for nothing. It returns how many there were.
	Park(ctx context.Context, filter Filter) (int, error)
	// SetMark keeps a value by name, durably; an empty one is removed. Names of
	// a consumer's own begin with its name and a slash, and go with it.
	SetMark(ctx context.Context, name, value string) error
	// Marks returns all marks. The value of EditsMark changes whenever Retry, Drop
	// or Park has changed an entry.
	Marks(ctx context.Context) (map[string]string, error)
}

// EditsMark is the name of the mark that tells that a person has changed entries.
const EditsMark = "edits"

// Amender is a Consumer whose user sees to it that an event is in one hand at a
// time, and so needs no lease to record what became of an entry.
type Amender interface {
	// Amend records all of an amendment or nothing.
	Amend(ctx context.Context, a Amendment) error
}

// Amendment is what became of entries.
type Amendment struct {
	// Settled entries go.
	Settled []event.Ref
	// Changed entries take the place of those of the same events; one that is not
	// there any more, since a person has dropped it, stays away, and one that a
	// person has set aside (Lanes.Park) stays so.
	Changed []Entry
	// New entries are there from now on.
	New []Entry
}

// Consumer reads the journal for one target: each delivery is leased to exactly
// one caller at a time until it is done, and again after a crash, so what is
// done with it must be idempotent. It is safe for concurrent use.
type Consumer interface {
	// Next leases the next deliveries in order of acceptance, at least one and
	// within the limit. It waits until there is one or the context ends.
	Next(ctx context.Context, limit Limit) (*Batch, error)

	// Due leases entries whose time has come, waiting or made due by Retry. It
	// does not wait; no entries is an empty batch.
	Due(ctx context.Context, now time.Time, limit Limit) (*Batch, error)

	// Done records what became of a batch and ends its lease: the events of its
	// deliveries (for a batch of Due: its entries) that are not among the
	// unsettled are settled.
	Done(ctx context.Context, b *Batch, unsettled []Entry) error

	// Release ends the lease of a batch without a result: it will be leased
	// again.
	Release(b *Batch)

	// Lag tells how many deliveries are not yet done, and since when the oldest
	// one waits; zero if there is none.
	Lag(ctx context.Context) (deliveries int64, oldest time.Time, err error)

	// Close ends the consumer's leases.
	Close() error
}

// Batch is a lease on deliveries.
type Batch struct {
	// Deliveries are in order of acceptance.
	Deliveries []*event.Delivery
	// Entries, in a batch of Due, are the events to be tried; their deliveries
	// are in Deliveries, each once.
	Entries []Entry
	// Touches may be set before Done, for Find of an Indexer. Of a batch of Due
	// they are what was tried again, and complete nothing.
	Touches *Touches
	// Lease is the store's own.
	Lease any
}

// Limit bounds a batch. A single delivery may exceed Bytes.
type Limit struct {
	Deliveries int
	Bytes      int
}

// State is what became of an event.
type State string

// The states of an event.
const (
	Pending State = "pending"
	Settled State = "settled"
	Waiting State = "waiting"
	Dead    State = "dead"
)

// Entry is an event that is waiting or dead, for one consumer.
type Entry struct {
	Consumer string
	Ref      event.Ref
	State    State
	// Reason tells a person why, and what to do.
	Reason string
	// On is what a waiting event waits for ("customer id=cus_1"), "" if it only
	// waits for time to pass. A dead event has one if a part of it waits.
	On string
	// Source, ID, Type name the event; Table and Key the row, where known.
	Source, ID, Type string
	Table, Key       string
	// Since is when the entry came to be, Attempts how often it was tried.
	Since    time.Time
	Attempts int
	// Next is when a waiting entry is due; zero for a dead one.
	Next time.Time
}

// Filter chooses entries. Empty fields match all.
type Filter struct {
	Consumer string
	State    State
	Source   string
	Table    string
	// Key is that of the entry: of its row, or of its lane.
	Key string
	// After chooses the entries of events after this one, in order of acceptance.
	After event.Ref
	// Position, if not 0, chooses the entries of one delivery, and Index, if
	// not nil, of one event of it.
	Position event.Position
	Index    *int
	// Limit is the most entries that Entries returns; 0 is all.
	Limit int
}

// Receipt is the receipt of an event's identity.
type Receipt struct {
	Source, ID string
	Received   time.Time
	Ref        event.Ref
}

// Fetched is what a fetch has read for an event of the delivery at a position.
type Fetched struct {
	Position event.Position
	event.Fetched
}

// Retention says what to keep. Zero fields do not limit.
type Retention struct {
	Age   time.Duration
	Bytes int64
}

// Removed counts what Retain removed.
type Removed struct {
	Deliveries int64
	Bytes      int64
}

// Stats describes a journal.
type Stats struct {
	Deliveries    int64
	First, Last   event.Position
	Bytes         int64
	Waiting, Dead int64
}

// Errors of a journal.
var (
	// ErrFull says that the disk or the journal's allowed size is full.
	ErrFull = errors.New("the journal is full")
	// ErrOverloaded says that too many deliveries wait to be written.
	ErrOverloaded = errors.New("the journal is overloaded")
	// ErrBroken says that an earlier write failed in a way after which the
	// store cannot be trusted until it is opened again.
	ErrBroken = errors.New("the journal had a write error")
	// ErrNotFound says that a delivery is not, or no longer, in the journal.
	ErrNotFound = errors.New("not in the journal")
	// ErrInUse says that another process is the journal's owner.
	ErrInUse = errors.New("the journal is in use")
	// ErrClosed says that the journal is closed.
	ErrClosed = errors.New("the journal is closed")
)
