// Package pipeline takes deliveries from the journal to the rows of one target:
//
//	take      lease the next deliveries, and take those of each source in turn
//	split     into events; a delivery that cannot be split is dead as a whole
//	map       each event into changes; what cannot be mapped is dead
//	fetch     what a mapping needs to have read: the event waits, is read for by a
//	          Fetcher apart from here, and is mapped when the answer is journaled
//	fit       each change by itself against the live columns
//	ready     each change by itself: are the parents known that it waits for?
//	fold      the changes of one row into one, with the parents they name
//	apply     one transaction per batch, parents before children
//	          ├ transient fault → back off, the same batch again
//	          ├ needs something first → the event waits, and is tried again
//	          └ one change's own fault → found by bisection, its event is dead
//	done      the journal records what became of each event
//
// Every step up to apply can be done again without harm, because applying a
// change twice changes nothing. So a crash at any point is healed by doing the
// batch again, and a batch that fails is cut up and its parts applied.
//
// Each target has a Runner of its own on its own journal consumer: a target
// that is stuck holds up itself and no other, and never the intake. Policies
// (Backoff, limits, bisection) are values and functions without goroutines;
// Runner owns the goroutines.
package pipeline

import (
	"context"
	"log/slog"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/backoff"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Journal is what a runner needs of a journal.Journal.
type Journal interface {
	Consumer(ctx context.Context, name string) (journal.Consumer, error)
	Entries(ctx context.Context, filter journal.Filter) ([]journal.Entry, error)
	Retry(ctx context.Context, filter journal.Filter) (int, error)
	FirstReceipts(ctx context.Context, ids []journal.Receipt) ([]journal.Receipt, error)
	FirstFetched(ctx context.Context, reads []journal.Fetched) ([]journal.Fetched, error)
}

// Sink is what a runner needs of a sink.Sink. One that is a sink.Knower as well,
// or has Read, is asked which rows that events wait for it knows.
type Sink interface {
	Apply(ctx context.Context, b *sink.Batch) (*sink.Result, error)
	Inspect(ctx context.Context, t *sink.Table) (*sink.Live, error)
	Ping(ctx context.Context) error
}

// Source is what a runner needs of a source.
type Source struct {
	// Events splits a delivery. An error means that it cannot be read as a
	// whole.
	Events func(d *event.Delivery) (*mapping.Split, error)
	// NeedsFirstReceipt says that FirstReceived must be the first receipt of
	// the event's identity before the event is mapped.
	NeedsFirstReceipt bool
	// Ahead tells why an event's time lies too far ahead of its FirstReceived to
	// be believed, "" if it does not. Nil believes all.
	Ahead func(e *event.Event) string
	// Content stands for what an event says, nil where it need not be compared
	// with what another event of its identity says; Conflict is the reason of one
	// that says something else than the first did. Nil compares nothing.
	Content  func(e *event.Event, changes []*merge.Change) []byte
	Conflict func(e *event.Event, first event.Ref) string
}

// Sources returns the sources of a plan, by name.
func Sources(p *mapping.Plan) map[string]Source {
	out := make(map[string]Source, len(p.Sources))
	for _, s := range p.Sources {
		out[s.Name] = Source{Events: s.Events, NeedsFirstReceipt: s.NeedsFirstReceipt, Ahead: s.Ahead, Content: s.Content, Conflict: s.Conflict}
	}
	return out
}

// Tables returns the tables of a plan that live in a target, parents first.
func Tables(p *mapping.Plan, target string) []*sink.Table {
	var out []*sink.Table
	for _, t := range p.Tables {
		if t.Target == target {
			out = append(out, &t.Table)
		}
	}
	return out
}

// Options configure a Runner.
type Options struct {
	// Target is the name of the target, and of its journal consumer. Required.
	Target string
	// Journal, Sink, Sources and Map are required. Map says what an event means
	// for the target.
	Journal Journal
	Sink    Sink
	Sources map[string]Source
	Map     func(e *event.Event) mapping.Outcome
	// Fetcher makes the reads that events need. Without one, events wait for what
	// is not in the journal.
	Fetcher Fetcher
	// Tables are the target's tables in the order to be written, parents before
	// children.
	Tables []*sink.Table
	// Plan stands for what Sources and Map make of events. The journal remembers
	// under it which deliveries are about which rows; 0 is that it need not.
	Plan uint64
	// Log gets a line for what died, what waits, ties, and a target that is
	// down, in bounded number; nil is silent.
	Log *slog.Logger
	// Observer is told of every batch; nil is nobody.
	Observer Observer
	// Landed is told of the changes of a transaction that is in, before anything
	// else is done about them; nil is nobody. A change may be told of again.
	Landed func([]*merge.Change)
	// Limit bounds a batch. Default 5,000 deliveries and 8 MiB.
	Limit journal.Limit
	// Events is the most events of a batch, if no single delivery has more.
	// Default 2,500.
	Events int
	// Made is how many bytes of changes are made before they are written: an
	// expression may make each event of a delivery as great as the delivery.
	// Default 16 MiB.
	Made int
	// Ahead bounds what is leased ahead, so that sources take turns. Default
	// 50,000 deliveries and 32 MiB.
	Ahead journal.Limit
	// Changes is the most changes of one transaction. Default 5,000.
	Changes int
	// Backoff is how long to wait between tries while the target, or the
	// journal, is down. Default 50 ms to 30 s.
	Backoff Backoff
	// Patience is how long an event that waits is left before it is tried
	// again, if nothing wakes it. Default 1 s to 5 min.
	Patience Backoff
	// Poll is how often to look for events that are due, and to ask the target for
	// rows that events wait for. Default 0.5 s.
	Poll time.Duration
	// Rest keeps events that wake each other from taking all the time there is:
	// so long nothing is tried again after some were woken. Default 0.2 s.
	Rest time.Duration
	// Stubborn is how often a batch may fail while the target answers a ping
	// before its changes are tried apart. Default 8.
	Stubborn int
	// Now is the clock; default time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Fetcher == nil {
		o.Fetcher = noFetcher{}
	}
	if o.Limit.Deliveries <= 0 {
		o.Limit.Deliveries = 5000
	}
	if o.Limit.Bytes <= 0 {
		o.Limit.Bytes = 8 << 20
	}
	if o.Events <= 0 {
		o.Events = 2500
	}
	if o.Made <= 0 {
		o.Made = 16 << 20
	}
	if o.Ahead.Deliveries <= 0 {
		o.Ahead.Deliveries = 50_000
	}
	if o.Ahead.Bytes <= 0 {
		o.Ahead.Bytes = 32 << 20
	}
	if o.Changes <= 0 {
		o.Changes = 5000
	}
	if o.Backoff == (Backoff{}) {
		o.Backoff = Backoff{First: 50 * time.Millisecond, Most: 30 * time.Second}
	}
	if o.Patience == (Backoff{}) {
		o.Patience = Backoff{First: time.Second, Most: 5 * time.Minute}
	}
	if o.Poll <= 0 {
		o.Poll = time.Second / 2
	}
	if o.Rest <= 0 {
		o.Rest = 200 * time.Millisecond
	}
	if o.Stubborn <= 0 {
		o.Stubborn = 8
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Observer is told of what a runner does, for metrics. It must be quick and
// safe for concurrent use.
type Observer interface {
	// Batch tells of a batch that is done.
	Batch(target string, r Report)
	// Fault tells of a try that failed through the target's own fault.
	Fault(target string)
}

// Report tells of one batch.
type Report struct {
	Stats
	// Skips counts the skipped events by source and type.
	Skips map[Skip]int64
	// Took is the time from lease to done.
	Took time.Duration
}

// Skip names events that no mapping of the target wanted.
type Skip struct{ Source, Type string }

// Stats counts what became of events.
type Stats struct {
	// Deliveries and Events were taken from the journal for the first time, or
	// again after a crash.
	Deliveries, Events int64
	// Skipped events were wanted by no mapping of the target.
	Skipped int64
	// Settled events have all their changes in the sink; Waited and Died count
	// the events that came to be waiting or dead.
	Settled, Waited, Died int64
	// Written rows were inserted or changed, Unchanged rows were already as new
	// or newer.
	Written, Unchanged int64
	// Replaced counts texts in which NUL or text that is not UTF-8 was
	// replaced, Ignored rungs that a ladder does not know and passes over.
	Replaced, Ignored int64
	// Ties counts different changes of one row that its version cannot tell
	// apart from an earlier one, as far as the earlier one is remembered: some
	// tens of thousands of changes back, and not beyond a restart.
	Ties int64
}

// Plus returns the sum of two counts.
func (s Stats) Plus(o Stats) Stats {
	return Stats{
		Deliveries: s.Deliveries + o.Deliveries, Events: s.Events + o.Events, Skipped: s.Skipped + o.Skipped,
		Settled: s.Settled + o.Settled, Waited: s.Waited + o.Waited, Died: s.Died + o.Died,
		Written: s.Written + o.Written, Unchanged: s.Unchanged + o.Unchanged,
		Replaced: s.Replaced + o.Replaced, Ignored: s.Ignored + o.Ignored, Ties: s.Ties + o.Ties,
	}
}

// Backoff is a policy of growing pauses.
type Backoff = backoff.Policy
