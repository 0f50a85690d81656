package sqlsink

import (
	"context"
	"slices"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

var _ sink.Rememberer = (*sqlSink)(nil)

// Held is sink.Rememberer's.
func (s *sqlSink) Held(ctx context.Context, t *sink.Table, keys []merge.Key) (*merge.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.BatchTimeout)
	defer cancel()
	st, err := s.state(ctx, t)
	if err != nil {
		return nil, err
	}
	if st.statements.Held == nil {
		return merge.NewHeld(t.Table, nil, nil, nil), nil
	}
	g := sink.Group{Table: t}
	for _, it := range itemsOfKeys(keys) {
		g.Rows = append(g.Rows, it.row)
	}
	var held *merge.Held
	err = s.transact(ctx, func(c conn) error {
		w := (&applier{conn: c, ctx: ctx, dialect: s.dialect()}).holder(g, st)
		if err := w.read(); err != nil {
			return err
		}
		if err := w.readLedgers(keys); err != nil {
			return err
		}
		sets := make([]merge.Set, 0, len(w.sets))
		for _, x := range w.sets {
			sets = append(sets, x)
		}
		held = merge.NewHeld(t.Table, w.parts(), sets, w.links)
		return nil
	})
	if err != nil {
		return nil, s.judged(err, t.Name)
	}
	return held, nil
}

// Ledgers is sink.Rememberer's.
func (s *sqlSink) Ledgers(ctx context.Context, t *sink.Table, keys []merge.Key) ([]map[int]map[string]merge.Amount, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.BatchTimeout)
	defer cancel()
	place := map[merge.Key]int{}
	for i, k := range keys {
		place[k] = i
	}
	out := make([]map[int]map[string]merge.Amount, len(keys))
	st, err := s.state(ctx, t)
	if err != nil {
		return nil, err
	}
	h := st.statements.Held
	if h == nil || h.Ledger == nil || len(keys) == 0 {
		return out, nil
	}
	err = s.read(ctx, func(c conn) error {
		return c.sideRows(ctx, h.LedgerOf, compile.TableName(t.Name), keyTexts(keys), func(cols []cell) error {
			k, err := compile.ParseKeyText(cols[0].text)
			if err != nil {
				return err
			}
			i, asked := place[k]
			column := t.Column(cols[1].text)
			if !asked || column < 0 {
				return nil // a counter that the config does not have any more
			}
			if out[i] == nil {
				out[i] = map[int]map[string]merge.Amount{}
			}
			if out[i][column] == nil {
				out[i][column] = map[string]merge.Amount{}
			}
			out[i][column][cols[2].text] = merge.Amount{Version: merge.Version(cols[3].text), Value: valueOf(merge.Type{Kind: merge.Numeric}, cols[4])}
			return nil
		})
	})
	if err != nil {
		return nil, s.judged(err, t.Name)
	}
	return out, nil
}

// counting are the keys of a batch that counts something, whose rows are not
// there: a person may have removed them, and what was counted is still known.
func (w *holder) counting() []merge.Key {
	var out []merge.Key
	for _, r := range w.g.Rows {
		k := r.Key
		if w.table.Chained {
			k = merge.NewKey(w.chains.Root(string(k)))
		}
		if w.rows[k] == nil && w.records[record{k, ""}] == nil && slices.ContainsFunc(r.Cells, func(c merge.Cell) bool { return c.Ledger != nil }) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
