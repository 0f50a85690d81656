package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// rounds is how often a row that differs is looked at before it counts as one
// that changes all the time.
const rounds = 6

// Compare compares every table. It may be called again, when something was
// mended.
func (c *Check) Compare(ctx context.Context) (*Report, error) {
	r := &Report{Tables: make([]Table, len(c.o.Tables))}
	if err := c.notes.clear(ctx, suspects); err != nil {
		return nil, err
	}
	for i, t := range c.o.Tables {
		r.Tables[i].Name = t.Config.Text
		if err := c.compare(ctx, i, &r.Tables[i]); err != nil {
			return nil, fmt.Errorf("verify table %s: %w", t.Config.Text, err)
		}
	}
	for round := 1; ; round++ {
		again := false
		if err := c.catchUp(ctx); err != nil {
			return nil, err
		}
		for i, t := range c.o.Tables {
			more, err := c.again(ctx, i, &r.Tables[i], round == rounds)
			if err != nil {
				return nil, fmt.Errorf("verify table %s: %w", t.Config.Text, err)
			}
			again = again || more
		}
		if !again {
			break
		}
	}
	r.Whole, r.Open, r.Pending = c.whole, int64(c.waits), int64(c.last-c.done)
	return r, nil
}

// compare looks at all rows of both sides once, and notes those that differ.
func (c *Check) compare(ctx context.Context, i int, out *Table) error {
	live, said := &c.o.Tables[i].Table, c.fold.tables[i]
	met := int64(0)
	err := c.pages(ctx, c.o.Sink, live, func(rows []*merge.Row) error {
		keys := keysOf(rows)
		theirs, err := c.fold.sink.Read(ctx, said, keys)
		if err != nil {
			return err
		}
		pairs, err := c.pairs(ctx, i, keys, rows, theirs)
		if err != nil {
			return err
		}
		for j := range pairs {
			if theirs[j] != nil {
				met++
			}
		}
		out.Rows += int64(len(rows))
		c.o.Progress(Progress{Step: "compare", Table: out.Name, Done: out.Rows, Total: -1})
		return c.suspect(ctx, i, out, pairs)
	})
	if err != nil {
		return err
	}
	return c.lacking(ctx, i, out, met)
}

// lacking looks for rows that only the journal has, unless all of them were met.
func (c *Check) lacking(ctx context.Context, i int, out *Table, met int64) error {
	live, said := &c.o.Tables[i].Table, c.fold.tables[i]
	all := int64(0)
	if err := c.pages(ctx, c.fold.sink, said, func(rows []*merge.Row) error { all += int64(len(rows)); return nil }); err != nil || all == met {
		return err
	}
	return c.pages(ctx, c.fold.sink, said, func(rows []*merge.Row) error {
		keys := keysOf(rows)
		theirs, err := c.o.Sink.Read(ctx, live, keys)
		if err != nil {
			return err
		}
		var absent []*merge.Row
		for j := range rows {
			if theirs[j] == nil {
				absent = append(absent, rows[j])
			}
		}
		pairs, err := c.pairs(ctx, i, keysOf(absent), make([]*merge.Row, len(absent)), absent)
		if err != nil {
			return err
		}
		return c.suspect(ctx, i, out, pairs)
	})
}

func (c *Check) pages(ctx context.Context, s sink.Sink, t *sink.Table, f func([]*merge.Row) error) error {
	for after := sink.Cursor(""); ; {
		rows, next, err := s.Page(ctx, t, after, pageRows)
		if err == nil && len(rows) > 0 {
			err = f(rows)
		}
		if err != nil || next == "" {
			return err
		}
		after = next
	}
}

func keysOf(rows []*merge.Row) []merge.Key {
	keys := make([]merge.Key, len(rows))
	for i, r := range rows {
		keys[i] = r.Key
	}
	return keys
}

// pair is what both sides have of one key; either may be nil.
type pair struct {
	key             merge.Key
	live, said      *merge.Row
	counted, counts map[int]map[string]merge.Amount
}

// pairs puts two lists of rows together, with what their counters have counted.
func (c *Check) pairs(ctx context.Context, i int, keys []merge.Key, live, said []*merge.Row) ([]pair, error) {
	out := make([]pair, len(keys))
	for j, k := range keys {
		out[j] = pair{key: k, live: live[j], said: said[j]}
	}
	t := c.o.Tables[i].Table.Table
	if !slices.ContainsFunc(t.Columns, func(x merge.Column) bool { return x.Rule == merge.Sum || x.Rule == merge.Count }) {
		return out, nil
	}
	for _, side := range []struct {
		of sink.Sink
		t  *sink.Table
		to func(*pair) *map[int]map[string]merge.Amount
	}{
		{c.o.Sink, &c.o.Tables[i].Table, func(p *pair) *map[int]map[string]merge.Amount { return &p.counted }},
		{c.fold.sink, c.fold.tables[i], func(p *pair) *map[int]map[string]merge.Amount { return &p.counts }},
	} {
		r, ok := side.of.(sink.Rememberer)
		if !ok {
			return nil, fmt.Errorf("the target cannot tell what its counters have counted")
		}
		all, err := r.Ledgers(ctx, side.t, keys)
		if err != nil {
			return nil, err
		}
		for j := range out {
			*side.to(&out[j]) = all[j]
		}
	}
	return out, nil
}

// suspect notes the pairs that differ, and counts the others.
func (c *Check) suspect(ctx context.Context, i int, out *Table, pairs []pair) error {
	var list []note
	for j := range pairs {
		f, err := c.judge(ctx, i, &pairs[j])
		if err != nil {
			return err
		}
		if f == nil {
			out.Equal++
			continue
		}
		list = append(list, note{pairs[j].key, pairs[j].print()})
	}
	return c.notes.put(ctx, suspects, i, list...)
}

// print tells one state of a pair from another.
func (p *pair) print() string {
	h := sha256.New()
	for _, r := range []*merge.Row{p.live, p.said} {
		if r == nil {
			fmt.Fprint(h, "none;")
			continue
		}
		fmt.Fprintf(h, "%q %q %q %q", r.Scopes, r.Seen, r.Deleted, r.DeletedAt.Text())
		if r.Occupant != nil {
			fmt.Fprintf(h, "%q", *r.Occupant)
		}
		for _, x := range r.Cells {
			fmt.Fprintf(h, "%v %q %q ", x.Value.IsNull(), x.Value.Text(), x.Version)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// again looks once more at the rows that differed. What is the same as the last
// time, though everything received until then is written, is a finding; what
// changes is looked at again, unless it is the last time.
func (c *Check) again(ctx context.Context, i int, out *Table, last bool) (more bool, err error) {
	var after *merge.Key
	for {
		list, err := c.notes.page(ctx, suspects, i, after, pageRows)
		if err != nil || len(list) == 0 {
			return more, err
		}
		keys := make([]merge.Key, len(list))
		for j, x := range list {
			keys[j] = x.key
		}
		after = &keys[len(keys)-1]
		live, err := c.o.Sink.Read(ctx, &c.o.Tables[i].Table, keys)
		if err != nil {
			return false, err
		}
		said, err := c.fold.sink.Read(ctx, c.fold.tables[i], keys)
		if err != nil {
			return false, err
		}
		pairs, err := c.pairs(ctx, i, keys, live, said)
		if err != nil {
			return false, err
		}
		var closed []merge.Key
		var still []note
		for j := range pairs {
			p := &pairs[j]
			f, err := c.judge(ctx, i, p)
			switch now := p.print(); {
			case err != nil:
				return false, err
			case f == nil:
				out.Equal++
				closed = append(closed, p.key)
			case now == list[j].about:
				out.add(*f, c.o.Findings)
				closed = append(closed, p.key)
				if err := c.drifted(ctx, i, p.key, f); err != nil {
					return false, err
				}
			case last:
				f.Kind, f.Right, f.Why = Unchecked, Unknown, "it changes while it is looked at"
				out.add(*f, c.o.Findings)
				closed = append(closed, p.key)
				if err := c.drifted(ctx, i, p.key, f); err != nil {
					return false, err
				}
			default:
				still = append(still, note{p.key, now})
			}
		}
		if err := c.notes.drop(ctx, suspects, i, closed...); err != nil {
			return false, err
		}
		if err := c.notes.put(ctx, suspects, i, still...); err != nil {
			return false, err
		}
		c.o.Progress(Progress{Step: "look again", Table: out.Name, Done: int64(len(list)), Total: -1})
		more = more || len(still) > 0
	}
}

// drifted keeps the keys of drift, for Repair.
func (c *Check) drifted(ctx context.Context, i int, k merge.Key, f *Finding) error {
	if f.Kind == Unchecked && !c.rebuild || f.Kind == "" {
		return nil
	}
	return c.notes.put(ctx, drift, i, note{key: k})
}
