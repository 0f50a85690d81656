// Package journaltest is the suite that every store of a journal passes, and a
// wrapper that makes any journal fail on purpose.
//
// A store's test file has two lines for it:
//
//	func TestMain(m *testing.M) { journaltest.Main(m, open) }
//	func TestJournal(t *testing.T) { journaltest.Run(t, open) }
package journaltest

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// Opener opens the journal that belongs to a folder, a new one if there is none
// yet. A store that is not in files keeps in the folder whatever leads to it.
// An opened journal is closed before it is opened again, except by the death of
// its process.
type Opener func(dir string) (journal.Journal, error)

// Run tests a store. Its test binary must use Main.
func Run(t *testing.T, open Opener) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s *suite)
	}{
		{"AppendGivesPositionsInOrder", testPositions},
		{"DeliveriesComeBackAsTheyWere", testExactness},
		{"AppendedIsThereAfterReopening", testReopen},
		{"AppendAtTheSameTime", testConcurrentAppends},
		{"AppendWithEndedContext", testAppendContext},
		{"AppendKeepsNothingOfTheCaller", testAppendCopies},
		{"AcknowledgedSurvivesKill", testKill},
		{"ScanFromAPosition", testScan},
		{"AppendAllInOrder", testAppendAll},
		{"Progress", testProgress},
		{"GetOfWhatIsNotThere", testGetNotFound},
		{"NextInOrderWithinLimit", testNextOrder},
		{"NextWaits", testNextWaits},
		{"LeasesAreExclusive", testExclusive},
		{"DoneOutOfOrder", testOutOfOrder},
		{"DoneOfAnEndedLease", testDoneTwice},
		{"DoneOfForeignEvents", testDoneForeign},
		{"ReleasedIsLeasedAgain", testRelease},
		{"UndoneIsLeasedAgainAfterReopening", testLeaseAfterReopen},
		{"ConsumersAreIndependent", testConsumers},
		{"Lag", testLag},
		{"WaitingBecomesDueAndSettles", testWaiting},
		{"DeadIsRetried", testDead},
		{"DropForgets", testDrop},
		{"DropAndRetryWhileLeased", testLeasedEntryChanged},
		{"WholeDeliveryIsSplitLater", testWholeDelivery},
		{"DueWithinLimit", testDueLimit},
		{"WhatWasFetchedCountsForTheLimit", testFetchedLimit},
		{"EntriesByFilter", testFilter},
		{"EntriesSurviveReopening", testEntriesReopen},
		{"StateOfAnEvent", testState},
		{"EntriesOfOneKey", testPages},
		{"Marks", testMarks},
		{"EditsAreMarked", testEdits},
		{"Amend", testAmend},
		{"FirstReceiptsNeverChange", testReceipts},
		{"FetchedNeverChanges", testFetched},
		{"FetchedComesAlongWithAppend", testFetchedAppended},
		{"RetainRemovesFetched", testRetainFetched},
		{"RowsAreFound", testIndex},
		{"RowsAreFoundAfterARetry", testIndexRetry},
		{"RowsOfADroppedDelivery", testIndexRetain},
		{"RetainByAge", testRetainAge},
		{"RetainBySize", testRetainSize},
		{"RetainKeepsUnsettled", testRetainUnsettled},
		{"PositionsAreNotUsedAgain", testRetainPositions},
		{"NewConsumerAfterRetain", testRetainNewConsumer},
		{"Stats", testStats},
		{"CloseEndsEverything", testClose},
	} {
		t.Run(test.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			s := &suite{t: t, open: open, dir: t.TempDir()}
			defer s.close()
			s.reopen()
			test.run(t, s)
		})
	}
}

// patience is when a test that waits for something gives up.
const patience = 20 * time.Second

// suite is one test's journal.
type suite struct {
	t    *testing.T
	open Opener
	dir  string
	j    journal.Journal
	n    int
}

// reopen closes the journal, if it is open, and opens it.
func (s *suite) reopen() {
	s.t.Helper()
	s.close()
	j, err := s.open(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	s.j = j
}

func (s *suite) close() {
	s.t.Helper()
	if s.j == nil {
		return
	}
	if err := s.j.Close(); err != nil {
		s.t.Error("close:", err)
	}
	s.j = nil
}

func (s *suite) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	s.t.Cleanup(cancel)
	return ctx
}

// start is the receipt of the first delivery of a test; each further one comes a
// second later.
var start = time.Date(2026, 3, 29, 0, 59, 59, 123456789, time.UTC)

// append appends n deliveries, one after the other.
func (s *suite) append(n int) []*event.Delivery {
	s.t.Helper()
	ds := make([]*event.Delivery, n)
	for i := range ds {
		ds[i] = delivery(s.n)
		s.n++
		if err := s.j.Append(s.ctx(), ds[i]); err != nil {
			s.t.Fatal("append:", err)
		}
	}
	return ds
}

// delivery makes the nth delivery of a test.
func delivery(n int) *event.Delivery {
	return &event.Delivery{
		Source:   "shop",
		Path:     "/orders",
		Query:    fmt.Sprintf("n=%d", n),
		Header:   http.Header{"Content-Type": {"application/json"}, "X-Request": {fmt.Sprint(n)}},
		Body:     fmt.Appendf(nil, `{"id":%d,"note":"a body of some length, so that sizes mean something"}`, n),
		Received: start.Add(time.Duration(n) * time.Second),
	}
}

func (s *suite) consumer(name string) journal.Consumer {
	s.t.Helper()
	c, err := s.j.Consumer(s.ctx(), name)
	if err != nil {
		s.t.Fatal("consumer:", err)
	}
	return c
}

func (s *suite) next(c journal.Consumer, n int) *journal.Batch {
	s.t.Helper()
	b, err := c.Next(s.ctx(), journal.Limit{Deliveries: n, Bytes: 1 << 20})
	if err != nil {
		s.t.Fatal("next:", err)
	}
	return b
}

// nextAll leases n deliveries in as few batches as the store gives.
func (s *suite) nextAll(c journal.Consumer, n int) (bs []*journal.Batch) {
	s.t.Helper()
	for n > 0 {
		b := s.next(c, n)
		bs = append(bs, b)
		n -= len(b.Deliveries)
	}
	return bs
}

// nothing checks that Next has nothing to lease.
func (s *suite) nothing(c journal.Consumer) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if b, err := c.Next(ctx, journal.Limit{Deliveries: 1}); err == nil {
		s.t.Fatalf("next leased %v, want nothing", positions(b.Deliveries))
	}
}

func (s *suite) due(c journal.Consumer, now time.Time, n int) *journal.Batch {
	s.t.Helper()
	b, err := c.Due(s.ctx(), now, journal.Limit{Deliveries: n, Bytes: 1 << 20})
	if err != nil {
		s.t.Fatal("due:", err)
	}
	return b
}

func (s *suite) done(c journal.Consumer, b *journal.Batch, unsettled ...journal.Entry) {
	s.t.Helper()
	if err := c.Done(s.ctx(), b, unsettled); err != nil {
		s.t.Fatal("done:", err)
	}
}

// settle is done with n deliveries, of which the given ones are unsettled.
func (s *suite) settle(c journal.Consumer, n int, unsettled ...journal.Entry) {
	s.t.Helper()
	for _, b := range s.nextAll(c, n) {
		var mine []journal.Entry
		for _, e := range unsettled {
			for _, d := range b.Deliveries {
				if d.Position == e.Ref.Position {
					mine = append(mine, e)
				}
			}
		}
		s.done(c, b, mine...)
	}
}

func (s *suite) entries(f journal.Filter) []journal.Entry {
	s.t.Helper()
	es, err := s.j.Entries(s.ctx(), f)
	if err != nil {
		s.t.Fatal("entries:", err)
	}
	return es
}

func (s *suite) state(consumer string, r event.Ref, want journal.State) {
	s.t.Helper()
	got, err := s.j.State(s.ctx(), consumer, r)
	if err != nil {
		s.t.Fatal("state:", err)
	}
	if got != want {
		s.t.Errorf("event %s of %s is %s, want %s", r, consumer, got, want)
	}
}

func (s *suite) scan(from event.Position) (ds []*event.Delivery) {
	s.t.Helper()
	if err := s.j.Scan(s.ctx(), from, func(d *event.Delivery) error {
		ds = append(ds, d)
		return nil
	}); err != nil {
		s.t.Fatal("scan:", err)
	}
	return ds
}

func waiting(consumer string, d *event.Delivery, index int, next time.Time) journal.Entry {
	return journal.Entry{
		Consumer: consumer, Ref: event.Ref{Position: d.Position, Index: index}, State: journal.Waiting,
		Reason: "its customer is not there yet", On: "customer id=cus_1", Source: d.Source, ID: "evt_1", Type: "invoice.paid",
		Table: "invoice", Key: "id=in_1", Since: start, Attempts: 1, Next: next,
	}
}

func dead(consumer string, d *event.Delivery, index int) journal.Entry {
	e := waiting(consumer, d, index, time.Time{})
	e.State, e.Reason, e.On = journal.Dead, "no such field: event.total", ""
	return e
}

func positions(ds []*event.Delivery) []event.Position {
	ps := make([]event.Position, len(ds))
	for i, d := range ds {
		ps[i] = d.Position
	}
	return ps
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
