package verify

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/internal/refold"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// fold is what the journal says, as rows of a scratch database.
type fold struct {
	c      *Check
	sink   sink.Sink
	tables []*sink.Table // in the order of Options.Tables
	place  map[*merge.Table]int
	// mixed are tables in which some changes insert rows and others do not.
	mixed []bool

	mu    sync.Mutex
	noted map[set]map[int][]note // not yet in the notes
	count int
	err   error
}

func openFold(ctx context.Context, c *Check) (*fold, error) {
	f := &fold{c: c, place: map[*merge.Table]int{}, noted: map[set]map[int][]note{}}
	for i, t := range c.o.Tables {
		f.place[t.Table.Table] = i
		f.tables = append(f.tables, &sink.Table{Table: t.Table.Table, Name: fmt.Sprintf("fold_%d", i)})
		f.mixed = append(f.mixed, foreign(t))
	}
	s, err := sqlsink.Open(ctx, "sqlite:"+filepath.Join(c.dir, "fold.db"), nil, sqlsink.Options{Volatile: true, AnyAge: true})
	if err != nil {
		return nil, err
	}
	f.sink = s
	for _, t := range f.tables { // by itself each: hookfold_ tables are told apart by the table's name
		statements, err := s.Plan(ctx, []*sink.Table{t})
		if err == nil {
			err = s.Execute(ctx, statements)
		}
		if err != nil {
			return f, fmt.Errorf("make a scratch database: %w", err)
		}
	}
	return f, nil
}

// foreign tells of a table in which somebody else inserts rows, too.
func foreign(t *mapping.Table) bool {
	return slices.ContainsFunc(t.Mappings, func(m *mapping.Mapping) bool { return m.Config.IfMissing != merge.Insert })
}

// take folds the events from a position on that the target has written, and
// those that had not landed the last time and have since. What has not landed is
// noted.
func (f *fold) take(ctx context.Context, before map[event.Ref]journal.State, from event.Position) error {
	c := f.c
	landed := map[event.Ref]bool{}
	var only []event.Position
	for ref := range before {
		if _, still := c.open[ref]; !still {
			landed[ref] = true
			if ref.Position < from && !slices.Contains(only, ref.Position) {
				only = append(only, ref.Position)
			}
		}
	}
	slices.Sort(only)
	total := int64(c.last-from) + 1 + int64(len(only))
	_, err := refold.Run(ctx, refold.Options{
		Journal: c.o.Journal, Target: c.o.Target, Sink: f.sink, Tables: f.tables, Sources: pipeline.Sources(c.o.Plan),
		Only: only, From: from, To: c.last,
		Map: func(e *event.Event) mapping.Outcome { return f.mapEvent(ctx, e, from, landed) },
		Progress: func(n int64, _ string) {
			c.o.Progress(Progress{Step: "fold", Done: n, Total: total})
		},
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flush(ctx)
	if err == nil {
		err = f.err
	}
	return err
}

// mapEvent says what an event means for the tables that are compared, if it has
// landed.
func (f *fold) mapEvent(ctx context.Context, e *event.Event, from event.Position, landed map[event.Ref]bool) mapping.Outcome {
	c := f.c
	ref := e.Ref()
	if ref.Position < from && !landed[ref] {
		return mapping.Outcome{} // it was folded before
	}
	var changes []*merge.Change
	for _, x := range c.o.Plan.Map(e, c.o.Target).Changes {
		for _, p := range x.Parents {
			if _, compared := f.place[p.Table]; compared && !p.Wait {
				changes = append(changes, merge.Stub(p, x))
			}
		}
		if _, compared := f.place[x.Table]; compared {
			changes = append(changes, x)
		}
	}
	_, open := c.open[ref]
	open = open || ref.Position > c.done
	f.mu.Lock()
	defer f.mu.Unlock()
	out := mapping.Outcome{Wanted: true}
	for _, x := range changes {
		i := f.place[x.Table]
		switch {
		case open:
			f.note(ctx, loose, i, note{key: x.Key, about: ref.String()})
			continue
		case f.mixed[i] && x.IfMissing == merge.Insert:
			f.note(ctx, inserted, i, note{key: x.Key})
		}
		y := *x
		y.Parents, y.IfMissing = nil, merge.Insert
		out.Changes = append(out.Changes, &y)
	}
	return out
}

const notesAtOnce = 5000

func (f *fold) note(ctx context.Context, s set, table int, n note) {
	if f.noted[s] == nil {
		f.noted[s] = map[int][]note{}
	}
	f.noted[s][table] = append(f.noted[s][table], n)
	if f.count++; f.count >= notesAtOnce {
		f.flush(ctx)
	}
}

func (f *fold) flush(ctx context.Context) {
	for s, tables := range f.noted {
		for table, list := range tables {
			if err := f.c.notes.put(ctx, s, table, list...); err != nil && f.err == nil {
				f.err = err
			}
		}
	}
	clear(f.noted)
	f.count = 0
}
