package postgrest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

const (
	pageRows  = 1000 // which is also the most that Supabase gives
	keysBytes = 4000 // of keys in one URL
)

// Read is sink.Sink's. All rows are read page by page, so what is written
// meanwhile may be seen or not. A stored value that is not of the column's type
// comes as the text that it is.
func (s *rest) Read(ctx context.Context, t *sink.Table, keys []merge.Key) ([]*merge.Row, error) {
	have, err := s.look(ctx, []*sink.Table{t})
	if err != nil {
		return nil, asError(err)
	}
	r, err := s.reader(t, have.live(t.Name))
	if err != nil {
		return nil, operator("%w", err)
	}
	if keys == nil {
		return sorted(r.all(ctx))
	}
	byKey, err := r.keys(ctx, keys)
	if err != nil {
		return nil, asError(located(err, t))
	}
	out := make([]*merge.Row, len(keys))
	for i, k := range keys {
		out[i] = byKey[k]
	}
	return out, nil
}

func sorted(rows []*merge.Row, err error) ([]*merge.Row, error) {
	if err != nil {
		return nil, asError(err)
	}
	slices.SortFunc(rows, func(a, b *merge.Row) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return rows, nil
}

// Known is sink.Knower's.
func (s *rest) Known(ctx context.Context, t *sink.Table, keys []merge.Key) ([]bool, error) {
	rows, err := s.Read(ctx, t, keys)
	if err != nil {
		return nil, err
	}
	out := make([]bool, len(rows))
	for i, r := range rows {
		out[i] = r != nil
	}
	return out, nil
}

// reader reads rows of one table.
type reader struct {
	s      *rest
	t      *sink.Table
	live   *sink.Live
	fields []compile.Param
}

func (s *rest) reader(t *sink.Table, live *sink.Live) (*reader, error) {
	how, err := compile.Read(compile.Postgres, t, live)
	if err != nil {
		return nil, err
	}
	return &reader{s: s, t: t, live: live, fields: how.Fields}, nil
}

// get reads rows, and tells how many there are: the API may give fewer.
func (r *reader) get(ctx context.Context, filters ...filter) (rows []*merge.Row, total int, err error) {
	var columns []string
	for _, f := range r.fields {
		column := columnIn(f.Name)
		if c := r.live.Column(f.Name); isJSON(c) || strings.HasPrefix(c.Base, "character(") || c.Base == "character" || c.Base == "bpchar" {
			column += "::text" // the JSON value null is not NULL; a cast takes off the spaces that fill a text up
		}
		columns = append(columns, column)
	}
	schema, name := r.s.address(r.t)
	query := append([]filter{{"select", strings.Join(columns, ",")}}, filters...)
	res, err := r.s.do(ctx, request{method: http.MethodGet, path: name, profile: schema, query: query, prefer: "timezone=UTC, count=exact"})
	if err != nil {
		return nil, 0, err
	}
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(res.body, &list); err != nil {
		return nil, 0, &fault{judged: operator("the REST API answered rows in a way that is not known: %w", err)}
	}
	for _, x := range list {
		rows = append(rows, r.row(x))
	}
	_, count, _ := strings.Cut(res.header.Get("Content-Range"), "/")
	if total, err = strconv.Atoi(count); err != nil {
		return nil, 0, &fault{judged: operator("the REST API does not tell how many rows there are (Content-Range: %s)", res.header.Get("Content-Range"))}
	}
	return rows, total, nil
}

// keys reads rows by key.
func (r *reader) keys(ctx context.Context, keys []merge.Key) (map[merge.Key]*merge.Row, error) {
	out := map[merge.Key]*merge.Row{}
	for len(keys) > 0 {
		n, size := 0, 0
		for n < len(keys) && n < pageRows/2 && (n == 0 || size+len(escape(string(keys[n]))) < keysBytes) {
			size += len(escape(string(keys[n]))) + 6*len(r.t.Key)
			n++
		}
		for asked := keys[:n]; len(asked) > 0; {
			rows, total, err := r.get(ctx, keysFilter(r.t, asked))
			if err != nil {
				return nil, err
			}
			for _, x := range rows {
				out[x.Key] = x
			}
			if len(rows) == 0 || len(rows) >= total {
				break
			}
			asked = slices.DeleteFunc(slices.Clone(asked), func(k merge.Key) bool { return out[k] != nil })
		}
		keys = keys[n:]
	}
	return out, nil
}

// page reads rows from behind a key on, as the database orders keys, and tells
// whether there are more.
func (r *reader) page(ctx context.Context, last *merge.Key, limit int) (rows []*merge.Row, more bool, err error) {
	var order []string
	for _, k := range r.t.Key {
		order = append(order, columnIn(k.Name)+".asc")
	}
	filters := []filter{{"order", strings.Join(order, ",")}, {"limit", fmt.Sprint(min(max(limit, 1), pageRows))}}
	if last != nil {
		filters = append([]filter{after(r.t, *last)}, filters...)
	}
	rows, total, err := r.get(ctx, filters...)
	if err != nil {
		return nil, false, located(err, r.t)
	}
	return rows, len(rows) > 0 && len(rows) < total, nil
}

// all reads every row.
func (r *reader) all(ctx context.Context) ([]*merge.Row, error) {
	var out []*merge.Row
	var last *merge.Key
	for {
		rows, more, err := r.page(ctx, last, pageRows)
		if err != nil {
			return nil, err
		}
		if out = append(out, rows...); !more {
			return out, nil
		}
		last = &rows[len(rows)-1].Key
	}
}

// Page is sink.Sink's. A cursor is the key of the last row.
func (s *rest) Page(ctx context.Context, t *sink.Table, after sink.Cursor, limit int) ([]*merge.Row, sink.Cursor, error) {
	have, err := s.look(ctx, []*sink.Table{t})
	if err != nil {
		return nil, "", asError(err)
	}
	r, err := s.reader(t, have.live(t.Name))
	if err != nil {
		return nil, "", operator("%w", err)
	}
	var last *merge.Key
	if after != "" {
		k, err := compile.ParseKeyText(string(after))
		if err != nil {
			return nil, "", fmt.Errorf("read a page of %s: %w", t.Name, err)
		}
		last = &k
	}
	rows, more, err := r.page(ctx, last, limit)
	if err != nil || !more {
		return rows, "", asError(err)
	}
	return rows, sink.Cursor(compile.KeyText(rows[len(rows)-1].Key)), nil
}

// row makes a row of an object.
func (r *reader) row(x map[string]json.RawMessage) *merge.Row {
	t := r.t
	out := &merge.Row{Cells: make([]merge.Cell, len(t.Columns)), Scopes: make([]merge.Version, len(t.Scopes())), Written: true}
	var key []string
	var since, id string
	for _, p := range r.fields {
		text, ok := textOf(x[p.Name])
		if ok && p.Type.Kind == merge.Timestamp && strings.HasSuffix(r.live.Column(p.Name).Base, "without time zone") {
			text += "Z" // what is written there is UTC
		}
		switch p.Kind {
		case compile.KeyParam:
			key = append(key, valueOf(p.Type, text, ok).Text())
		case compile.CellParam:
			out.Cells[p.Index] = merge.Cell{Value: valueOf(p.Type, text, ok), Set: ok, Version: out.Cells[p.Index].Version}
		case compile.ScopeParam:
			out.Scopes[p.Index] = merge.Version(text)
		case compile.FirstParam:
			out.Cells[p.Index].Version = merge.Version(text)
		case compile.SinceParam:
			since = text
		case compile.IDParam:
			id = text
		}
	}
	out.Key = merge.NewKey(key...)
	if id != "" {
		out.Occupant = &merge.Occupant{ID: id, Since: merge.Component(since)}
	}
	for i, name := range t.Scopes() {
		if !t.Occupied || name != merge.KeyScope {
			out.Seen = max(out.Seen, out.Scopes[i])
		}
	}
	for i := range out.Cells {
		if s := t.ScopeOf(i); s >= 0 && out.Scopes[s] != "" || out.Cells[i].Version != "" {
			out.Cells[i].Set = true
		}
	}
	return out
}

// textOf gives a value of an answer as text, false if it is NULL.
func textOf(raw json.RawMessage) (string, bool) {
	s := string(raw)
	if s == "" || s == "null" {
		return "", false
	}
	if s[0] != '"' {
		return s, true
	}
	var text string
	json.Unmarshal(raw, &text) // it was read once already
	return text, true
}

func valueOf(t merge.Type, s string, ok bool) merge.Value {
	if !ok {
		return merge.NullValue
	}
	t.Length, t.Precision = 0, 0
	v, err := merge.ParseValue(t, s)
	if err != nil {
		v, _ = merge.ParseValue(merge.Type{Kind: merge.Text}, s)
	}
	return v
}
