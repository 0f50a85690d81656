package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
)

// finder finds what is said about one row.
type finder struct {
	o       Options
	table   *mapping.Table
	history pipeline.History
	// said are the changes of deliveries that were read, those of the table.
	said map[event.Position][]change
	// touches are those of deliveries that no index tells of, sorted; looked tells
	// that they are known.
	touches []journal.Touch
	looked  bool
}

// find gives the changes about a row, in order of arrival. A chain is followed:
// what is about another identity of it is about the row too.
func (f *finder) find(ctx context.Context, key merge.Key) ([]change, error) {
	keys := map[merge.Key]bool{key: true}
	for {
		before := len(keys)
		if err := f.readAbout(ctx, keys); err != nil {
			return nil, err
		}
		for _, list := range f.said {
			for _, c := range list {
				for _, l := range c.Links {
					if o, n := merge.NewKey(l.Old), merge.NewKey(l.New); keys[o] || keys[n] {
						keys[o], keys[n] = true, true
					}
				}
			}
		}
		if len(keys) == before {
			return f.about(keys), nil
		}
	}
}

// about gives the changes about rows that were read.
func (f *finder) about(keys map[merge.Key]bool) []change {
	t := f.table.Table.Table
	var out []change
	for _, list := range f.said {
		for _, c := range list {
			mine := keys[c.Key]
			if c.Replaces {
				mine = t.Group != nil && slices.ContainsFunc(keysOf(keys), func(k merge.Key) bool { return t.GroupOf(k) == c.Key })
			}
			for _, l := range c.Links {
				mine = mine || keys[merge.NewKey(l.Old)]
			}
			if mine {
				out = append(out, c)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b change) int { return a.event.Ref().Compare(b.event.Ref()) })
	return out
}

func keysOf(keys map[merge.Key]bool) []merge.Key {
	out := make([]merge.Key, 0, len(keys))
	for k := range keys {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// readAbout reads the deliveries that may be about rows.
func (f *finder) readAbout(ctx context.Context, keys map[merge.Key]bool) error {
	t := f.table.Table.Table
	var rows []uint32
	for _, k := range keysOf(keys) {
		rows = append(rows, pipeline.RowHash(t, k))
		if t.Group != nil {
			rows = append(rows, pipeline.GroupHash(t, t.GroupOf(k)))
		}
	}
	var found journal.Found
	if ix, ok := f.o.Journal.(journal.Indexer); ok {
		var err error
		if found, err = ix.Find(ctx, f.table.Target, f.o.Plan.Digest(), rows); err != nil {
			return err
		}
	}
	if !f.looked {
		if err := f.look(ctx, found.Indexed); err != nil {
			return err
		}
		f.looked = true
	}
	for _, row := range rows {
		i, _ := slices.BinarySearchFunc(f.touches, row, func(t journal.Touch, row uint32) int { return cmp.Compare(t.Row, row) })
		for ; i < len(f.touches) && f.touches[i].Row == row; i++ {
			found.Positions = append(found.Positions, f.touches[i].Position)
		}
	}
	for _, p := range found.Positions {
		if _, known := f.said[p]; known {
			continue
		}
		d, err := f.o.Journal.Get(ctx, p)
		if errors.Is(err, journal.ErrNotFound) {
			f.said[p] = nil // removed by now
			continue
		}
		if err == nil {
			f.said[p], err = f.changes(ctx, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// changes gives what a delivery says about the table, with the parents there
// that it makes.
func (f *finder) changes(ctx context.Context, d *event.Delivery) ([]change, error) {
	said, err := f.history.Read(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("read #%d: %w", d.Position, err)
	}
	t := f.table.Table.Table
	var out []change
	for _, s := range said {
		for _, c := range s.Outcome.Changes {
			for _, p := range c.Parents {
				if p.Table == t && !p.Wait {
					out = append(out, change{merge.Stub(p, c), s.Event, true})
				}
			}
			if c.Table == t {
				out = append(out, change{c, s.Event, false})
			}
		}
	}
	return out, nil
}

// errStop ends a look through the journal.
var errStop = errors.New("stop")

// look goes through the deliveries that are in none of the ranges, and notes
// which rows they are about.
func (f *finder) look(ctx context.Context, indexed []journal.Range) error {
	stats, err := f.o.Journal.Stats(ctx)
	if err != nil || stats.Deliveries == 0 {
		return err
	}
	gaps := between(indexed, journal.Range{First: stats.First, Last: stats.Last})
	var done, all int64
	for _, g := range gaps {
		all += int64(g.Last - g.First + 1)
	}
	for _, g := range gaps {
		err := f.o.Journal.Scan(ctx, g.First, func(d *event.Delivery) error {
			if d.Position > g.Last {
				return errStop
			}
			if done++; f.o.Progress != nil {
				f.o.Progress(done, all)
			}
			said, err := f.history.Read(ctx, d)
			if err != nil {
				return fmt.Errorf("read #%d: %w", d.Position, err)
			}
			for _, s := range said {
				for _, c := range s.Outcome.Changes {
					pipeline.Touched(c, func(row uint32) {
						f.touches = append(f.touches, journal.Touch{Row: row, Position: d.Position})
					})
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			return err
		}
	}
	slices.SortFunc(f.touches, func(a, b journal.Touch) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Position, b.Position))
	})
	f.touches = slices.Compact(f.touches)
	return nil
}

// between gives what of a range is in none of some others, which are in order.
func between(ranges []journal.Range, all journal.Range) []journal.Range {
	var out []journal.Range
	from := all.First
	for _, r := range ranges {
		if r.First > from {
			out = append(out, journal.Range{First: from, Last: min(r.First-1, all.Last)})
		}
		from = max(from, r.Last+1)
	}
	if from <= all.Last {
		out = append(out, journal.Range{First: from, Last: all.Last})
	}
	return out
}
