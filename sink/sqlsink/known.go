package sqlsink

import (
	"context"
	"time"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// The sink is one that can be asked, and that can forget.
var (
	_ sink.Knower = (*sqlSink)(nil)
	_ sink.Purger = (*sqlSink)(nil)
)

// Known is sink.Knower's.
func (s *sqlSink) Known(ctx context.Context, t *sink.Table, keys []merge.Key) ([]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.BatchTimeout)
	defer cancel()
	out, err := s.known(ctx, t, keys)
	if err != nil {
		s.forget() // perhaps the table has changed since it was looked at
		if out, err = s.known(ctx, t, keys); err != nil {
			return nil, s.judged(err, t.Name)
		}
	}
	return out, nil
}

func (s *sqlSink) known(ctx context.Context, t *sink.Table, keys []merge.Key) ([]bool, error) {
	st, err := s.state(ctx, t)
	if err != nil {
		return nil, err
	}
	out := make([]bool, len(keys))
	if len(keys) == 0 {
		return out, nil
	}
	h := st.statements.Held
	err = s.read(ctx, func(c conn) error {
		asked := keys
		if h != nil && t.Chained {
			if asked, err = roots(ctx, c, h, t, keys); err != nil {
				return err
			}
		}
		items := itemsOfKeys(asked)
		found := func(n int, _ []cell) error {
			out[n] = true
			return nil
		}
		if err := c.query(ctx, st.statements.Known, items, found); err != nil || h == nil {
			return err
		}
		if t.Occupied {
			return c.query(ctx, h.KnownRecord, items, found)
		}
		if h.Tombstones == nil {
			return nil
		}
		buried := map[merge.Key]bool{}
		err := c.sideRows(ctx, h.Tombstones.Get, compile.TableName(t.Name), keyTexts(asked), func(cols []cell) error {
			k, err := compile.ParseKeyText(cols[0].text)
			buried[k] = true
			return err
		})
		for i, k := range asked {
			out[i] = out[i] || buried[k]
		}
		if err != nil {
			return err
		}
		// Where a read sees what others commit meanwhile, a row may have taken the
		// place of its delete between the two.
		return c.query(ctx, st.statements.Known, items, found)
	})
	return out, err
}

// roots gives the keys of the chains that identities belong to.
func roots(ctx context.Context, c conn, h *compile.HeldStatements, t *sink.Table, keys []merge.Key) ([]merge.Key, error) {
	ids := make([]string, len(keys))
	for i, k := range keys {
		ids[i] = string(k)
	}
	root := map[merge.Key]merge.Key{}
	err := c.sideRows(ctx, h.Aliases.Get, compile.TableName(t.Name), texts(ids), func(cols []cell) error {
		root[merge.Key(cols[0].text)] = merge.Key(cols[1].text)
		return nil
	})
	out := make([]merge.Key, len(keys))
	for i, k := range keys {
		out[i] = k
		if r, ok := root[k]; ok {
			out[i] = r
		}
	}
	return out, err
}

// purgeAtOnce is how many deletes one transaction forgets.
const purgeAtOnce = 5000

// Purge is sink.Purger's.
func (s *sqlSink) Purge(ctx context.Context, t *sink.Table, before time.Time) (int, error) {
	total := 0
	for {
		n, err := s.purge(ctx, t, before)
		total += n
		if err != nil || n < purgeAtOnce {
			return total, err
		}
	}
}

func (s *sqlSink) purge(ctx context.Context, t *sink.Table, before time.Time) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.BatchTimeout)
	defer cancel()
	st, err := s.state(ctx, t)
	if err != nil {
		return 0, s.judged(err, t.Name)
	}
	h := st.statements.Held
	if h == nil || h.Tombstones == nil {
		return 0, nil
	}
	n := 0
	err = s.transact(ctx, func(c conn) error {
		name := compile.TableName(t.Name)
		n = 0
		// One purge of a table at a time: purged_upto must not fall.
		if err := c.lock(ctx, []lock{wholeTable(t)}); err != nil {
			return err
		}
		var upto merge.Version
		var keys []string
		err := c.all(ctx, h.Oldest, []any{name, before, purgeAtOnce}, func(cols []cell) error {
			keys = append(keys, cols[0].text)
			upto = max(upto, merge.Version(cols[1].text))
			return nil
		})
		if err != nil || keys == nil {
			return err
		}
		if n, err = c.side(ctx, h.Tombstones.Drop, name, texts(keys)); err != nil {
			return err
		}
		err = c.sideRows(ctx, h.Meta.Get, name, nil, func(cols []cell) error {
			upto = max(upto, merge.Version(cols[0].text))
			return nil
		})
		if err != nil {
			return err
		}
		_, err = c.side(ctx, h.Meta.Put, name, texts([]string{string(upto)}))
		return err
	})
	if err != nil {
		return 0, s.judged(err, t.Name)
	}
	return n, nil
}
