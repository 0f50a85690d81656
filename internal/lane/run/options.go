// Package run takes the events of a journal through a lane: it leases deliveries,
// finds which of their events the lane takes and under which key, lets package
// lane say which may be tried, tries each, and records what became of it.
//
//	take      lease the next deliveries, as long as there is room
//	order     which events, of which key; an event whose identity has come before
//	          is through already
//	begin     at most one per key, at most so many at a time
//	deliver   ├ done → out of its line
//	          ├ failed → again later; its key waits, alone
//	          ├ nobody there → the whole lane pauses, and the try does not count
//	          └ given up → dead; a person decides
//	record    a delivery is done when its events are; what is stuck becomes an
//	          entry of the journal, so that the rest goes on
//
// What is in memory is bounded: so many deliveries leased ahead, and of each
// stuck key a page of entries.
//
// Before a try begins it is on disk until when tries may be under way (guard),
// so that after a crash nothing begins while an old request may still be at work.
package run

import (
	"context"
	"log/slog"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/lane"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal"
)

// Journal is what a runner needs of a journal.
type Journal interface {
	journal.Lanes
	Consumer(ctx context.Context, name string) (journal.Consumer, error)
	Get(ctx context.Context, p event.Position) (*event.Delivery, error)
	Entries(ctx context.Context, filter journal.Filter) ([]journal.Entry, error)
	FirstReceipts(ctx context.Context, ids []journal.Receipt) ([]journal.Receipt, error)
	Stats(ctx context.Context) (journal.Stats, error)
}

// Deliverer gives a message to somebody's code once.
type Deliverer interface {
	Deliver(ctx context.Context, m *lane.Message) lane.Answer
}

// Options configure a Runner.
type Options struct {
	// Name is the lane's name, Consumer that of its journal consumer. Required, as
	// are Journal, Events, Order and Deliver.
	Name, Consumer string
	Journal        Journal
	// Events splits a delivery; Order tells whether the lane takes an event, under
	// which key and version, or why it cannot tell.
	Events func(d *event.Delivery) (*mapping.Split, error)
	Order  func(e *event.Event) (o mapping.Ordered, wanted bool, reason string)
	// Source is the name of the lane's source: deliveries of others are passed
	// over.
	Source  string
	Deliver Deliverer
	// Settled tells whether the rows of an event are settled, or what it waits
	// for; nil does not ask.
	Settled func(ctx context.Context, r event.Ref) (ok bool, waits string, err error)
	// Lines says how many keys at a time, and in which order. Policy says what to do
	// about a failure.
	Lines  lane.Options
	Policy lane.Policy
	// Timeout is how long a try may take. Guard tells that a try may go on somewhere
	// when this process has died, so that the next process has to wait for that.
	Timeout time.Duration
	Guard   bool
	// Down are the pauses of the whole lane while nobody can be reached. Default
	// 100 ms to 30 s.
	Down pipeline.Backoff
	// Ahead bounds what is leased ahead. Default 2,000 deliveries (20,000 with
	// Lines.ByVersion) and 16 MiB.
	Ahead journal.Limit
	// Batch bounds one lease. After a crash up to so many events that are through
	// come again. Default 32 deliveries and 1 MiB.
	Batch journal.Limit
	// Keys is how many keys may have entries before nothing new is taken. Default
	// 10,000.
	Keys int
	// History gives a new lane what was in the journal before it too.
	History bool
	// Visible is how old a delivery is that waits for a stuck key before it becomes
	// an entry. Default 1 s. Poll is how often to look for what a person has
	// changed. Default 0.5 s.
	Visible, Poll time.Duration
	// Log gets a line for what fails, in bounded number; nil is silent.
	Log *slog.Logger
	// Observer is told of every try; nil is nobody.
	Observer Observer
	// Now is the clock; default time.Now. Random gives numbers in [0, 1).
	Now    func() time.Time
	Random func() float64
}

// Observer is told of what a lane does, for metrics. It must be quick and safe
// for concurrent use.
type Observer interface {
	// Tried tells of a try: done, failed, down, busy or gone.
	Tried(lane, result string, took time.Duration)
	// Ended tells of events that are through, dead or passed over: settled, dead,
	// skipped, repeated.
	Ended(lane, state string, events int)
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Down == (pipeline.Backoff{}) {
		o.Down = pipeline.Backoff{First: 100 * time.Millisecond, Most: 30 * time.Second}
	}
	if o.Policy.Pauses == nil {
		o.Policy.Pauses = pipeline.Backoff{First: time.Second, Most: 10 * time.Minute}
	}
	if o.Ahead.Deliveries <= 0 {
		if o.Ahead.Deliveries = 2000; o.Lines.ByVersion {
			o.Ahead.Deliveries = 20_000
		}
	}
	if o.Ahead.Bytes <= 0 {
		o.Ahead.Bytes = 16 << 20
	}
	if o.Batch.Deliveries <= 0 {
		o.Batch.Deliveries = 32
	}
	if o.Batch.Bytes <= 0 {
		o.Batch.Bytes = 1 << 20
	}
	if o.Keys <= 0 {
		o.Keys = 10_000
	}
	if o.Visible <= 0 {
		o.Visible = time.Second
	}
	if o.Poll <= 0 {
		o.Poll = time.Second / 2
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
