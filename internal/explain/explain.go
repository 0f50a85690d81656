// Package explain tells how a row came to be what it is: which events touched
// it, what each wanted and what became of that, and whether the row as it lives
// in its database is what they make together. It reads, and writes nothing.
package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Options say what is asked, and of whom.
type Options struct {
	// Journal holds the deliveries. One that is a journal.Indexer is asked where
	// they are; of any other all are read.
	Journal Journal
	// Plan is the config, compiled, and Map what events mean for the table's
	// target.
	Plan *mapping.Plan
	Map  func(e *event.Event) mapping.Outcome
	// Sink is where the row lives; nil leaves the live row out.
	Sink Reader
	// Progress is told how far a look through the journal is; nil is nobody.
	Progress func(done, all int64)
}

// Journal is what is needed of a journal.Journal.
type Journal interface {
	Get(ctx context.Context, p event.Position) (*event.Delivery, error)
	Scan(ctx context.Context, from event.Position, f func(*event.Delivery) error) error
	Entries(ctx context.Context, filter journal.Filter) ([]journal.Entry, error)
	FirstReceipts(ctx context.Context, ids []journal.Receipt) ([]journal.Receipt, error)
	Stats(ctx context.Context) (journal.Stats, error)
	State(ctx context.Context, consumer string, r event.Ref) (journal.State, error)
	Dropped(ctx context.Context, consumer string) ([]event.Ref, error)
}

// Dropped is the state of an event that a person has dropped.
const Dropped journal.State = "dropped"

// Reader is what is needed of a sink.Sink.
type Reader interface {
	Read(ctx context.Context, t *sink.Table, keys []merge.Key) ([]*merge.Row, error)
}

// Story is how a row came to be.
type Story struct {
	Table *mapping.Table
	// Asked is the key that was asked for. Key is the row's: on a table whose rows
	// follow chains it is that of the chain.
	Asked, Key merge.Key
	// Identities are those of the row's chain, Key first; nil without a chain.
	Identities []string
	// Chapters are the events that are about the row, in order of arrival.
	Chapters []Chapter
	// Folded is the row that the settled events make, nil if it is none; Live is
	// the one in the database.
	Folded, Live *merge.Row
	// Columns compare the two, and are empty if neither is there.
	Columns []Column
	// Looked tells whether the database was asked for the live row.
	Looked bool
	// First is the first delivery that the journal still holds, 0 if it holds none.
	First event.Position
	// Oldest is when that was received.
	Oldest time.Time
}

// Chapter is what one event says about the row.
type Chapter struct {
	Ref      event.Ref
	Source   string
	ID, Type string
	Received time.Time
	// Mapping is the place in the config that says it.
	Mapping string
	// State is journal.Settled, Waiting, Dead or Pending, or Dropped. Of all but the
	// first Reason tells why, and nothing of it is in the row.
	State  journal.State
	Reason string
	// Made says that the event is about another row, which names this one as its
	// parent.
	Made bool
	// Step is what became of it, when it arrived.
	Step merge.Step
}

// Column compares one column of the row.
type Column struct {
	Name string
	Rule merge.Rule
	// Folded and Live are its values; Set tells whether any event has set it.
	Set          bool
	Folded, Live merge.Value
	// Differs says that the live value is not what the events make.
	Differs bool
	// From is the last event whose value the column has, nil if none is known.
	From *event.Ref
}

// Explain tells the story of a row. An error is one of reading: the journal, or
// the database.
func Explain(ctx context.Context, o Options, table *mapping.Table, key merge.Key) (*Story, error) {
	f := &finder{o: o, table: table, history: pipeline.History{Journal: o.Journal, Sources: pipeline.Sources(o.Plan), Map: o.Map}, said: map[event.Position][]change{}}
	changes, err := f.find(ctx, key)
	if err != nil {
		return nil, err
	}
	s := &Story{Table: table, Asked: key}
	if err := s.tell(ctx, o, changes); err != nil {
		return nil, err
	}
	stats, err := o.Journal.Stats(ctx)
	if err != nil {
		return nil, err
	}
	if stats.Deliveries > 0 {
		d, err := o.Journal.Get(ctx, stats.First)
		if err != nil && !errors.Is(err, journal.ErrNotFound) {
			return nil, err
		}
		if s.First = stats.First; d != nil {
			s.Oldest = d.Received
		}
	}
	return s, s.look(ctx, o.Sink)
}

// change is a change with the event that says it.
type change struct {
	*merge.Change
	event *event.Event
	made  bool
}

// tell writes the chapters, and folds the row.
func (s *Story) tell(ctx context.Context, o Options, changes []change) error {
	var settled []*merge.Change
	var of []int
	refs, err := o.Journal.Dropped(ctx, s.Table.Target)
	if err != nil {
		return err
	}
	dropped := map[event.Ref]bool{}
	for _, ref := range refs {
		dropped[ref] = true
	}
	for _, c := range changes {
		state, reason, err := s.state(ctx, o.Journal, c, dropped)
		if err != nil {
			return err
		}
		ch := Chapter{
			Ref: c.event.Ref(), Source: c.event.Delivery.Source, ID: c.event.ID, Type: c.event.Type, Received: c.event.Delivery.Received,
			Mapping: c.Mapping, State: state, Reason: reason, Made: c.made, Step: merge.Step{Change: c.Change, Key: c.Key},
		}
		if state == journal.Settled {
			settled, of = append(settled, c.Change), append(of, len(s.Chapters))
		}
		s.Chapters = append(s.Chapters, ch)
	}
	t := s.Table.Table.Table
	steps := merge.Trace(t, settled)
	for i, step := range steps {
		s.Chapters[of[i]].Step = step
	}
	links := merge.Links{}
	for _, c := range settled {
		for _, l := range c.Links {
			links[l] = true
		}
	}
	s.Key = s.Asked
	if len(links) > 0 {
		chains := merge.NewChains(links)
		root := chains.Root(string(s.Asked))
		s.Identities = chains.Members(root)
		if t.Chained {
			s.Key = merge.NewKey(root)
		}
	}
	for _, r := range merge.Rows(t, settled) {
		if r.Key == s.Key {
			s.Folded = r
		}
	}
	return nil
}

// state tells whether what an event says about this row has landed, and if not
// why.
func (s *Story) state(ctx context.Context, j Journal, c change, dropped map[event.Ref]bool) (journal.State, string, error) {
	e, err := s.entry(ctx, j, c)
	if err != nil {
		return "", "", err
	}
	ref := c.event.Ref()
	if e != nil {
		return e.State, e.Reason, nil
	}
	if dropped[ref] || dropped[event.Ref{Position: ref.Position, Index: event.WholeDelivery}] {
		return Dropped, "a person has dropped it", nil
	}
	state, err := j.State(ctx, s.Table.Target, ref)
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return "", "", err
	}
	if state == journal.Pending {
		return state, "target " + s.Table.Target + " has not come to it yet", nil
	}
	return journal.Settled, "", nil
}

// entry gives the entry of an event, if what it says about this row has not
// landed because of it.
func (s *Story) entry(ctx context.Context, j Journal, c change) (*journal.Entry, error) {
	ref := c.event.Ref()
	entries, err := j.Entries(ctx, journal.Filter{Consumer: s.Table.Target, Position: ref.Position})
	if err != nil {
		return nil, fmt.Errorf("read what waits or is dead: %w", err)
	}
	for i := range entries {
		e := &entries[i]
		whole := e.Ref.Index == event.WholeDelivery
		if e.Ref != ref && !whole {
			continue
		}
		about := e.Table == "" || e.Table == s.Table.Config.Text && (e.Key == "" || e.Key == s.Table.Show(c.Key))
		if whole || about {
			return e, nil
		}
	}
	return nil, nil
}

// look compares the folded row with the live one.
func (s *Story) look(ctx context.Context, from Reader) error {
	if from != nil {
		rows, err := from.Read(ctx, &s.Table.Table, []merge.Key{s.Key})
		if err != nil {
			return fmt.Errorf("read the row: %w", err)
		}
		s.Live, s.Looked = rows[0], true
	}
	if s.Folded == nil && s.Live == nil {
		return nil
	}
	t := s.Table.Table.Table
	for i := range t.Columns {
		c := Column{Name: t.Columns[i].Name, Rule: t.Columns[i].Rule}
		if s.Folded != nil {
			c.Set, c.Folded = s.Folded.Cells[i].Set, s.Folded.Cells[i].Value
		}
		if s.Live != nil {
			c.Live = s.Live.Cells[i].Value
		}
		c.Differs = s.differs(i, c)
		c.From = s.from(c)
		s.Columns = append(s.Columns, c)
	}
	if t.OnDelete == merge.DeleteMark {
		c := Column{Name: compile.DeletedAtColumn, Rule: merge.Flag, Set: s.Folded != nil, Folded: deletedAt(s.Folded), Live: deletedAt(s.Live)}
		c.Differs = s.Looked && s.Folded != nil && s.Live != nil && c.Folded != c.Live
		s.Columns = append(s.Columns, c)
	}
	return nil
}

// deletedAt is what a row that is kept when it is deleted shows.
func deletedAt(r *merge.Row) merge.Value {
	if r == nil || !r.Gone() {
		return merge.NullValue
	}
	return r.DeletedAt
}

// differs tells whether a live value is not what the events make. A column that
// no event has set may have any, and a counter one from before its first event;
// when a row last changed is known to its database alone.
func (s *Story) differs(i int, c Column) bool {
	t := s.Table.Table.Table
	if !s.Looked || s.Folded == nil || s.Live == nil || c.Folded == c.Live {
		return false
	}
	switch t.Columns[i].Rule {
	case merge.Touch, merge.Sum, merge.Count:
		return false
	}
	return c.Set
}

// from finds the last event whose value a column has.
func (s *Story) from(c Column) *event.Ref {
	for _, ch := range slices.Backward(s.Chapters) {
		if ch.State != journal.Settled {
			continue
		}
		for _, f := range ch.Step.Columns {
			if f.Column == c.Name && f.Value == c.Folded && f.Fate == merge.Won {
				return &ch.Ref
			}
		}
	}
	return nil
}

// Drift tells whether the live row is not what the settled events make: a column
// differs, or only one of the two is there. It can tell only of a row whose
// events the journal still holds.
func (s *Story) Drift() bool {
	if !s.Looked {
		return false
	}
	return (s.Folded == nil) != (s.Live == nil) || slices.ContainsFunc(s.Columns, func(c Column) bool { return c.Differs })
}
