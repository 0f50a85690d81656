package sqlsink

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Read is sink.Sink's. A stored value that is not of the column's type comes as
// the text that it is.
func (s *sqlSink) Read(ctx context.Context, t *sink.Table, keys []merge.Key) ([]*merge.Row, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.BatchTimeout)
	defer cancel()
	rows, err := s.readRows(ctx, t, keys)
	if err == nil {
		return rows, nil
	}
	if f := s.fault(located(err, t.Name)); f != nil && f.schema { // the table is not as it was
		s.forget()
		if rows, err = s.readRows(ctx, t, keys); err == nil {
			return rows, nil
		}
	}
	return nil, s.judged(err, t.Name)
}

// looked is the live schema of a table, as it was when it was last looked at.
func (s *sqlSink) looked(ctx context.Context, t *sink.Table) (*sink.Live, error) {
	s.mu.Lock()
	have := s.tables[keyOf(t)]
	s.mu.Unlock()
	if have != nil {
		return have.live, nil
	}
	return s.inspect(ctx, t.Name)
}

func (s *sqlSink) readRows(ctx context.Context, t *sink.Table, keys []merge.Key) ([]*merge.Row, error) {
	live, err := s.looked(ctx, t)
	if err != nil {
		return nil, err
	}
	how, err := compile.Read(s.dialect(), t, live)
	if err != nil {
		return nil, operator("%w", err)
	}
	var out []*merge.Row
	err = s.read(ctx, func(c conn) error {
		if keys == nil {
			err := c.all(ctx, how.All, nil, func(cols []cell) error {
				out = append(out, rowOf(t, how.Fields, cols))
				return nil
			})
			slices.SortFunc(out, func(a, b *merge.Row) int { return strings.Compare(string(a.Key), string(b.Key)) })
			if err != nil {
				return err
			}
			return s.besides(ctx, c, how, t, out, nil)
		}
		items := make([]item, len(keys))
		for i, k := range keys {
			items[i].row = &merge.Row{Key: k}
		}
		out = make([]*merge.Row, len(keys))
		if err := c.query(ctx, how.ByKey, items, func(n int, cols []cell) error {
			out[n] = rowOf(t, how.Fields, cols)
			out[n].Key = keys[n]
			return nil
		}); err != nil {
			return err
		}
		return s.besides(ctx, c, how, t, out, keys)
	})
	return out, err
}

// besides completes rows with the versions that lie beside them, of these keys
// or, with nil, of all.
func (s *sqlSink) besides(ctx context.Context, c conn, how *compile.Reading, t *sink.Table, rows []*merge.Row, keys []merge.Key) error {
	beside := map[string]map[string]string{}
	take := func(cols []cell) error {
		v := map[string]string{}
		if cols[1].ok && json.Unmarshal([]byte(cols[1].text), &v) == nil {
			beside[cols[0].text] = v
		}
		return nil
	}
	var err error
	switch {
	case how.Versions == "":
	case keys == nil:
		err = c.sideRows(ctx, how.Versions, t.Name, nil, take)
	default:
		err = c.sideRows(ctx, how.VersionsByKey, t.Name, keyTexts(keys), take)
	}
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r != nil {
			complete(t, r, beside[compile.KeyText(r.Key)])
		}
	}
	return nil
}

// rowOf makes a row of what was read.
func rowOf(t *sink.Table, fields []compile.Param, cols []cell) *merge.Row {
	r := &merge.Row{Cells: make([]merge.Cell, len(t.Columns)), Scopes: make([]merge.Version, len(t.Scopes()))}
	var key []string
	var since, id cell
	for i, p := range fields {
		c := cols[i]
		switch p.Kind {
		case compile.KeyParam:
			key = append(key, valueOf(p.Type, c).Text())
		case compile.CellParam:
			r.Cells[p.Index].Value = valueOf(p.Type, c)
			r.Cells[p.Index].Set = c.ok
		case compile.ScopeParam:
			r.Scopes[p.Index] = merge.Version(c.text)
		case compile.FirstParam:
			r.Cells[p.Index].Version = merge.Version(c.text)
		case compile.SinceParam:
			since = c
		case compile.IDParam, compile.PartParam:
			id = c
		case compile.SeenParam:
			r.Seen = merge.Version(c.text)
		case compile.DeleteParam:
			r.Deleted = merge.Version(c.text)
		case compile.DeletedAtParam, compile.DeleteTimeParam:
			r.DeletedAt = valueOf(p.Type, c)
		}
	}
	r.Key = merge.NewKey(key...)
	if id.text != "" {
		r.Occupant = &merge.Occupant{ID: id.text, Since: merge.Component(since.text)}
	}
	return r
}

// complete adds the versions that lie beside, and says which cells are set: a
// latest cell whose scope has a version, a first cell that has one, and every
// cell that is not NULL.
func complete(t *sink.Table, r *merge.Row, beside map[string]string) {
	for s, name := range t.Scopes() {
		if v := beside[compile.ScopeColumn(name)]; v != "" {
			r.Scopes[s] = merge.Version(v)
		}
		if !t.Occupied || name != merge.KeyScope {
			r.Seen = max(r.Seen, r.Scopes[s])
		}
	}
	r.Written = true
	for i := range r.Cells {
		c := &r.Cells[i]
		if v := beside[compile.FirstColumn(t.Columns[i].Name)]; v != "" {
			c.Version = merge.Version(v)
		}
		if s := t.ScopeOf(i); s >= 0 && r.Scopes[s] != "" || c.Version != "" {
			c.Set = true
		}
	}
	if id := beside[compile.OccupantColumn]; id != "" {
		r.Occupant = &merge.Occupant{ID: id, Since: merge.Component(beside[compile.SinceColumn])}
	}
}

func valueOf(t merge.Type, c cell) merge.Value {
	if !c.ok {
		return merge.NullValue
	}
	s := c.text
	if t.Kind == merge.Bool && (s == "0" || s == "1") { // SQLite has no type of its own for it
		s = map[string]string{"0": "false", "1": "true"}[s]
	}
	t.Length, t.Precision = 0, 0
	v, err := merge.ParseValue(t, s)
	if err != nil {
		v, _ = merge.ParseValue(merge.Type{Kind: merge.Text}, s)
	}
	return v
}
