package postgrest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

const postRows = 2000 // of one POST

// step applies a batch in mode rest, request by request. Every register of a row
// only ever moves forward, so a step that comes late, twice or between those of
// another writer does no harm, and one that stored values already have passed is
// left out.
func (s *rest) step(ctx context.Context, b *sink.Batch, states []*tableState) (*sink.Result, error) {
	steps := make([]*stepper, len(b.Groups))
	missing := &sink.BatchError{}
	for i, g := range b.Groups {
		r, err := s.reader(g.Table, states[i].live)
		if err != nil {
			return nil, operator("%w", err)
		}
		steps[i] = &stepper{rest: s, reader: r, table: g.Table, live: states[i].live, written: map[*merge.Row]bool{}}
		if err := steps[i].sort(ctx, g.Rows, missing); err != nil {
			return nil, located(err, g.Table)
		}
	}
	if missing.Rows != nil { // and nothing is written
		return nil, missing
	}
	res := &sink.Result{}
	for i, g := range b.Groups {
		if err := steps[i].write(ctx); err != nil {
			return nil, located(err, g.Table)
		}
		res.Absent = append(res.Absent, steps[i].absent...)
		written := len(steps[i].written) + steps[i].joined
		res.Written += written
		res.Unchanged += len(g.Rows) - written - len(steps[i].absent)
	}
	return res, nil
}

// stepper writes the rows of one table.
type stepper struct {
	*rest
	reader *reader
	table  *sink.Table
	live   *sink.Live

	insert  []*merge.Row // to be inserted if they are not there
	there   []*merge.Row // that are there, and must not be inserted
	absent  []sink.RowRef
	written map[*merge.Row]bool
	joined  int // rows that the guard trigger has changed
}

// sort tells which rows may be inserted. Rows are not removed, so one that is
// there stays.
func (w *stepper) sort(ctx context.Context, rows []*merge.Row, missing *sink.BatchError) error {
	required := w.required()
	var asked []merge.Key
	for _, r := range rows {
		if r.IfMissing != merge.Insert || len(lacks(required, r)) > 0 {
			asked = append(asked, r.Key)
		}
	}
	found, err := w.reader.keys(ctx, asked)
	if err != nil {
		return err
	}
	inserted := map[merge.Key]bool{}
	for _, r := range rows {
		columns := lacks(required, r)
		switch {
		case r.IfMissing == merge.Insert && len(columns) == 0:
			w.insert = append(w.insert, r)
			inserted[r.Key] = true
		case found[r.Key] != nil || r.IfMissing != merge.Insert && inserted[r.Key]:
			w.there = append(w.there, r)
		case r.IfMissing == merge.Wait:
			w.absent = append(w.absent, sink.RowRef{Table: w.table, Row: r})
		case r.IfMissing == merge.Insert:
			missing.Rows = append(missing.Rows, sink.RowError{RowRef: sink.RowRef{Table: w.table, Row: r}, Err: lacksOf(w.table, r, columns)})
		}
	}
	return nil
}

// required lists the columns without which a new row is refused. A NOT NULL
// column that is not mapped may have a default that the API does not show.
func (w *stepper) required() []compile.Required {
	var out []compile.Required
	for _, c := range w.live.Columns {
		i := w.table.Column(c.Name)
		if c.NotNull && i >= 0 && !(w.table.Columns[i].Rule == merge.Latest && c.Default != "") {
			out = append(out, compile.Required{Name: c.Name, Column: i})
		}
	}
	return out
}

func (w *stepper) write(ctx context.Context) error {
	if w.guarded(w.table) {
		return w.upsertAll(ctx)
	}
	left, err := w.insertAll(ctx)
	if err != nil {
		return err
	}
	left = append(left, w.there...)
	keys := make([]merge.Key, len(left))
	for i, r := range left {
		keys[i] = r.Key
	}
	stored, err := w.reader.keys(ctx, slices.Compact(keys))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	free := make(chan struct{}, w.opts.Parallel)
	for _, r := range left {
		free <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-free }()
			moved, err := w.move(ctx, r, stored[r.Key])
			if err != nil {
				cancel(err)
			}
			if moved {
				mu.Lock()
				defer mu.Unlock()
				w.written[r] = true
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// insertAll inserts the rows that are not there, and returns the others. A
// request holds rows that set the same scopes: the columns of others are left to
// their defaults, and no other column is.
func (w *stepper) insertAll(ctx context.Context) (left []*merge.Row, err error) {
	shapes := map[string][]*merge.Row{}
	for _, r := range w.insert {
		shape := ""
		for _, v := range r.Scopes {
			shape += "01"[min(len(v), 1):][:1]
		}
		shapes[shape] = append(shapes[shape], r)
	}
	for _, shape := range slices.Sorted(mapKeys(shapes)) {
		for part := range slices.Chunk(shapes[shape], postRows) {
			rest, err := w.post(ctx, part)
			if err != nil {
				return nil, err
			}
			left = append(left, rest...)
		}
	}
	slices.SortFunc(left, func(a, b *merge.Row) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return left, nil
}

func mapKeys(m map[string][]*merge.Row) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// post inserts rows, and returns those that were there.
func (w *stepper) post(ctx context.Context, rows []*merge.Row) ([]*merge.Row, error) {
	var body []map[string]any
	for _, r := range rows {
		body = append(body, w.object(r))
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	if len(text) > w.opts.MaxRequestBytes && len(rows) > 1 {
		left, err := w.post(ctx, rows[:len(rows)/2])
		if err != nil {
			return nil, err
		}
		more, err := w.post(ctx, rows[len(rows)/2:])
		return append(left, more...), err
	}
	var key []string
	for _, k := range w.table.Key {
		key = append(key, columnIn(k.Name))
	}
	schema, name := w.address(w.table)
	res, err := w.do(ctx, request{method: http.MethodPost, path: name, profile: schema, body: text,
		query:  []filter{{"on_conflict", strings.Join(key, ",")}, {"select", strings.Join(key, ",")}},
		prefer: "resolution=ignore-duplicates, return=representation"})
	if err != nil {
		return nil, err
	}
	var fresh []map[string]json.RawMessage
	if err := json.Unmarshal(res.body, &fresh); err != nil {
		return nil, &fault{judged: operator("the REST API answered an insert in a way that is not known: %w", err)}
	}
	inserted := map[merge.Key]bool{}
	for _, x := range fresh {
		var parts []string
		for _, k := range w.table.Key {
			text, ok := textOf(x[k.Name])
			parts = append(parts, valueOf(k.Type, text, ok).Text())
		}
		inserted[merge.NewKey(parts...)] = true
	}
	var left []*merge.Row
	for _, r := range rows {
		if inserted[r.Key] {
			w.written[r] = true
		} else {
			left = append(left, r)
		}
	}
	return left, nil
}

// object is a new row: the key, the scopes that are set with their versions, and
// every other column, as NULL if it is not set.
func (w *stepper) object(r *merge.Row) map[string]any {
	out := map[string]any{}
	for i, part := range r.Key.Parts() {
		out[w.table.Key[i].Name] = part
	}
	for i := range w.table.Columns {
		if s := w.table.ScopeOf(i); s >= 0 && r.Scopes[s] == "" {
			continue
		}
		w.set(out, r, i)
	}
	for s, v := range r.Scopes {
		if v != "" {
			out[compile.ScopeColumn(w.table.Scopes()[s])] = string(v)
		}
	}
	return out
}

// set gives a column, and a first column's version, to an object.
func (w *stepper) set(out map[string]any, r *merge.Row, i int) {
	c, cell := &w.table.Columns[i], r.Cells[i]
	if c.Rule == merge.First {
		out[compile.FirstColumn(c.Name)] = nil
		if cell.Set {
			out[compile.FirstColumn(c.Name)] = string(cell.Version)
		}
	}
	out[c.Name] = nil
	if !cell.Set || cell.Value.IsNull() {
		return
	}
	text, live := cell.Value.Text(), w.live.Column(c.Name)
	switch {
	case isJSON(live), c.Type.Kind == merge.TextArray && strings.HasSuffix(live.Base, "[]"):
		out[c.Name] = json.RawMessage(text)
	default:
		out[c.Name] = text // the database reads it exactly, as the type of the column
	}
}

// move moves the registers of a row that is there.
func (w *stepper) move(ctx context.Context, r, stored *merge.Row) (moved bool, err error) {
	if stored == nil {
		return false, &fault{judged: &sink.Error{Action: sink.Retry, Message: fmt.Sprintf("%s %s: the row was there and is gone", w.table.Table.Name, w.table.Show(r.Key))}}
	}
	for s, v := range r.Scopes {
		if v == "" {
			continue
		}
		guard, ok := w.scopeGuard(r, stored, s)
		if !ok {
			continue
		}
		column := compile.ScopeColumn(w.table.Scopes()[s])
		object := map[string]any{column: string(v)}
		for _, i := range w.table.ScopeColumns(s) {
			w.set(object, r, i)
		}
		did, err := w.patch(ctx, r.Key, object, guard)
		if err != nil {
			return moved, err
		}
		moved = moved || did
	}
	for i, cell := range r.Cells {
		guard, ok := w.cellGuard(i, cell, stored.Cells[i])
		if !cell.Set || w.table.ScopeOf(i) >= 0 || !ok {
			continue
		}
		object := map[string]any{}
		w.set(object, r, i)
		did, err := w.patch(ctx, r.Key, object, guard)
		if err != nil {
			return moved, err
		}
		moved = moved || did
	}
	return moved, nil
}

// scopeGuard is what has to be stored for a scope to move; false if what is
// stored already is as new. At the same version columns move that the config has
// gained.
func (w *stepper) scopeGuard(r, stored *merge.Row, s int) (filter, bool) {
	column, v := compile.ScopeColumn(w.table.Scopes()[s]), r.Scopes[s]
	switch have := stored.Scopes[s]; {
	case v > have:
		return either(isNull(column), is(column, "lt", string(v))), true
	case v == have && slices.ContainsFunc(w.table.ScopeColumns(s), func(i int) bool {
		return r.Cells[i].Set && r.Cells[i].Value != stored.Cells[i].Value
	}):
		return filter{columnIn(column), "eq." + string(v)}, true
	}
	return filter{}, false
}

// cellGuard is scopeGuard for a column that is not latest.
func (w *stepper) cellGuard(i int, cell, stored merge.Cell) (filter, bool) {
	c := &w.table.Columns[i]
	text := cell.Value.Text()
	empty := stored.Value.IsNull()
	switch c.Rule {
	case merge.First:
		version := compile.FirstColumn(c.Name)
		switch have := stored.Version; {
		case have == "" && empty, have != "" && cell.Version < have:
			return either(is(version, "gt", string(cell.Version)), all(isNull(version), isNull(c.Name))), true
		case have == cell.Version && cell.Value != stored.Value:
			return filter{columnIn(version), "eq." + string(have)}, true
		}
	case merge.Max:
		return either(isNull(c.Name), is(c.Name, "lt", text)), empty || merge.Compare(c.Type, cell.Value, stored.Value) > 0
	case merge.Min:
		return either(isNull(c.Name), is(c.Name, "gt", text)), empty || merge.Compare(c.Type, cell.Value, stored.Value) < 0
	case merge.Ladder:
		rung := slices.Index(c.Rungs, text)
		if rung < 0 {
			return filter{c.Name, "is.null"}, empty
		}
		return either(isNull(c.Name), columnIn(c.Name)+".not.in."+list(c.Rungs[rung:])), empty || slices.Index(c.Rungs, stored.Value.Text()) < rung
	}
	return filter{}, false
}

// patch writes columns of one row if its guard holds, and tells whether it did.
// The count is right where return=representation is not.
func (w *stepper) patch(ctx context.Context, k merge.Key, object map[string]any, guard filter) (bool, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return false, err
	}
	schema, name := w.address(w.table)
	for try := 1; ; try++ {
		res, err := w.do(ctx, request{method: http.MethodPatch, path: name, profile: schema, body: body,
			query: append(keyFilters(w.table, k), guard), prefer: "return=minimal, count=exact"})
		if f, ok := err.(*fault); ok && f.again && try < tries && wait(ctx, try) == nil {
			continue
		}
		if err != nil {
			return false, err
		}
		return !strings.HasSuffix(res.header.Get("Content-Range"), "/0"), nil
	}
}
