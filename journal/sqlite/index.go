package sqlite

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

var _ journal.Indexer = (*Journal)(nil)

// The data of a row of the index is its touches, sorted and each there once:
//
//	data  = uvarint count, then per touch:
//	        uvarint row, less the one before
//	        uvarint position, less the row's first one in the index
//
// so that one of a batch takes some five bytes.
func encodeTouches(first event.Position, touches []journal.Touch) []byte {
	b := binary.AppendUvarint(make([]byte, 0, 8+6*len(touches)), uint64(len(touches)))
	row := uint32(0)
	for _, t := range touches {
		b = binary.AppendUvarint(b, uint64(t.Row-row))
		b = binary.AppendUvarint(b, uint64(t.Position-first))
		row = t.Row
	}
	return b
}

// decodeTouches calls f for each touch up to row most.
func decodeTouches(first event.Position, data []byte, most uint32, f func(journal.Touch)) error {
	r := reader{b: data}
	row := uint64(0)
	for n := r.uvarint(); n > 0 && !r.failed; n-- {
		row += r.uvarint()
		p := r.uvarint()
		if row > uint64(most) || r.failed {
			break
		}
		f(journal.Touch{Row: uint32(row), Position: first + event.Position(p)})
	}
	if r.failed {
		return fmt.Errorf("%w: the index of rows from #%d on", errDamaged, first)
	}
	return nil
}

func sortTouches(touches []journal.Touch) []journal.Touch {
	slices.SortFunc(touches, func(a, b journal.Touch) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Position, b.Position))
	})
	return slices.Compact(touches)
}

// saveTouches stores what a batch tells of the rows it is about.
func (s *store) saveTouches(ctx context.Context, consumer string, l *lease, touches *journal.Touches) error {
	if touches == nil {
		return nil
	}
	rows := sortTouches(slices.Clone(touches.Rows))
	if l.items == nil {
		if len(rows) == 0 {
			return nil
		}
		return s.putTouches(ctx, consumer, touches.Plan, span{l.positions[0], l.positions[len(l.positions)-1]}, false, rows)
	}
	spans := spansOf(l.positions)
	for _, sp := range spans {
		in := rows
		if len(spans) > 1 {
			in = slices.Collect(func(yield func(journal.Touch) bool) {
				for _, t := range rows {
					if t.Position >= sp.first && t.Position <= sp.last && !yield(t) {
						return
					}
				}
			})
		}
		if err := s.putTouches(ctx, consumer, touches.Plan, sp, true, in); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) putTouches(ctx context.Context, consumer string, plan uint64, sp span, whole bool, rows []journal.Touch) error {
	_, err := s.exec(ctx, "put-touches", consumer, int64(plan), int64(sp.first), int64(sp.last), whole, encodeTouches(sp.first, rows))
	return err
}

// Find implements journal.Indexer.
func (j *Journal) Find(ctx context.Context, consumer string, plan uint64, rows []uint32) (found journal.Found, err error) {
	rows = slices.Compact(slices.Sorted(slices.Values(rows)))
	if len(rows) == 0 {
		return found, nil
	}
	most := rows[len(rows)-1]
	err = j.reading(func(s *store) (err error) {
		got, err := s.read.QueryContext(ctx, query("touches"), consumer, int64(plan))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, got.Close()) }()
		for got.Next() {
			var r journal.Range
			var whole bool
			var data []byte
			if err := got.Scan(&r.First, &r.Last, &whole, &data); err != nil {
				return err
			}
			if whole {
				found.Indexed = append(found.Indexed, r)
			}
			err := decodeTouches(r.First, data, most, func(t journal.Touch) {
				if _, ok := slices.BinarySearch(rows, t.Row); ok {
					found.Positions = append(found.Positions, t.Position)
				}
			})
			if err != nil {
				return err
			}
		}
		return got.Err()
	})
	if err != nil {
		return journal.Found{}, fmt.Errorf("look up rows: %w", err)
	}
	slices.Sort(found.Positions)
	found.Positions = slices.Compact(found.Positions)
	found.Indexed = joinRanges(found.Indexed)
	return found, nil
}

// joinRanges sorts ranges and joins those that meet.
func joinRanges(ranges []journal.Range) []journal.Range {
	slices.SortFunc(ranges, func(a, b journal.Range) int { return cmp.Compare(a.First, b.First) })
	var out []journal.Range
	for _, r := range ranges {
		if n := len(out); n > 0 && r.First <= out[n-1].Last+1 {
			out[n-1].Last = max(out[n-1].Last, r.Last)
			continue
		}
		out = append(out, r)
	}
	return out
}

// When few deliveries come at a time, each batch leaves a small row in the
// index. Retain joins neighbours, and drops what is about no delivery any more.
const (
	indexRows  = 512     // rows of the index looked at in one step
	indexBelow = 2 << 10 // bytes from which a row is left as it is
)

// tidyIndex goes over the index in short steps between appends, and forgets what
// was dropped of deliveries that are gone.
func (j *Journal) tidyIndex(ctx context.Context) error {
	err := j.do(ctx, func(ctx context.Context, s *store) error {
		if _, err := s.exec(ctx, "undrop"); err != nil {
			return err
		}
		_, err := s.exec(ctx, "drop-touches")
		return err
	})
	for from := int64(0); err == nil && from >= 0; {
		err = j.do(ctx, func(ctx context.Context, s *store) (err error) {
			from, err = s.joinTouches(ctx, from)
			return err
		})
	}
	return err
}

// indexed is a row of the index.
type indexed struct {
	id       int64
	consumer string
	plan     int64
	of       span
	whole    bool
	data     []byte
}

// joinTouches joins neighbours among the next rows of the index from an id on,
// and returns where to go on; -1 if there are no more.
func (s *store) joinTouches(ctx context.Context, from int64) (next int64, err error) {
	rows, err := s.smallTouches(ctx, from)
	if err != nil || len(rows) == 0 {
		return -1, err
	}
	type group struct {
		consumer string
		plan     int64
		whole    bool
	}
	groups := map[group][]indexed{}
	for _, r := range rows {
		g := group{r.consumer, r.plan, r.whole}
		groups[g] = append(groups[g], r)
	}
	for g, list := range groups {
		slices.SortFunc(list, func(a, b indexed) int { return cmp.Compare(a.of.first, b.of.first) })
		for len(list) > 0 {
			n := 1
			for n < len(list) && (!g.whole || list[n].of.first == list[n-1].of.last+1) {
				n++
			}
			if err := s.joinIndexed(ctx, list[:n]); err != nil {
				return -1, err
			}
			list = list[n:]
		}
	}
	if len(rows) < indexRows {
		return -1, nil
	}
	return rows[len(rows)-1].id + 1, nil
}

func (s *store) smallTouches(ctx context.Context, from int64) (out []indexed, err error) {
	st, err := s.stmt(ctx, "small-touches")
	if err != nil {
		return nil, err
	}
	rows, err := st.QueryContext(ctx, from, indexBelow, indexRows)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r indexed
		if err := rows.Scan(&r.id, &r.consumer, &r.plan, &r.of.first, &r.of.last, &r.whole, &r.data); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// joinIndexed puts rows of the index into the place of one.
func (s *store) joinIndexed(ctx context.Context, list []indexed) error {
	if len(list) < 2 {
		return nil
	}
	of := list[0].of
	var all []journal.Touch
	for _, r := range list {
		of.last = max(of.last, r.of.last)
		if err := decodeTouches(r.of.first, r.data, ^uint32(0), func(t journal.Touch) { all = append(all, t) }); err != nil {
			return err
		}
		if _, err := s.exec(ctx, "delete-touches", r.id); err != nil {
			return err
		}
	}
	return s.putTouches(ctx, list[0].consumer, uint64(list[0].plan), of, list[0].whole, sortTouches(all))
}
