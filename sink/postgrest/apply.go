package postgrest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

const tries = 8 // of one batch inside Apply, when writers got into each other's way

// Apply is sink.Sink's. In mode rest a batch that fails may be in part; it is
// whole when it is applied again.
func (s *rest) Apply(ctx context.Context, b *sink.Batch) (*sink.Result, error) {
	refreshed := false
	for try := 1; ; try++ {
		res, err := s.try(ctx, b)
		if err == nil {
			return res, nil
		}
		var f *fault
		judged := errors.As(err, &f)
		switch {
		case ctx.Err() != nil:
			return nil, asError(err)
		case !refreshed && (!judged || f.schema): // perhaps the table has changed since it was looked at
			refreshed = true
			s.forget()
			continue
		case judged && f.again && try < tries:
			if wait(ctx, try) == nil {
				continue
			}
		}
		if judged && f.schema {
			s.forget()
		}
		if judged {
			s.name(f, b)
		}
		return nil, asError(err)
	}
}

// wait sleeps a short random time that grows with the tries.
func wait(ctx context.Context, try int) error {
	t := time.NewTimer(time.Duration(1+rand.IntN(10<<try)) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *rest) try(ctx context.Context, b *sink.Batch) (*sink.Result, error) {
	states := make([]*tableState, len(b.Groups))
	for i, g := range b.Groups {
		st, err := s.state(ctx, g.Table)
		if err != nil {
			return nil, located(err, g.Table)
		}
		states[i] = st
	}
	if err := s.misfits(b, states); err != nil {
		return nil, err
	}
	if s.opts.Mode == REST {
		return s.step(ctx, b, states)
	}
	return s.batch(ctx, b, states)
}

// located names the table in an error that came while it was written.
func located(err error, t *sink.Table) error {
	var f *fault
	if errors.As(err, &f) && !strings.Contains(f.Message, t.Name) {
		f.Message = "table " + t.Name + ": " + f.Message
	}
	return err
}

// misfits finds the values that the database would cut or round, or the way to
// it would change.
func (s *rest) misfits(b *sink.Batch, states []*tableState) error {
	var rows []sink.RowError
	for i, g := range b.Groups {
		for _, r := range g.Rows {
			err := compile.FitRow(states[i].live, g.Table.Table, r)
			if err == nil && s.opts.Mode == REST {
				err = jsonNull(g.Table.Table, r, states[i].live)
			}
			if err != nil {
				rows = append(rows, sink.RowError{RowRef: sink.RowRef{Table: g.Table, Row: r},
					Err: &sink.Error{Action: sink.Reject, Message: g.Table.Table.Name + "." + err.Error(), Err: err}})
			}
		}
	}
	if rows != nil {
		return &sink.BatchError{Rows: rows}
	}
	return nil
}

// jsonNull finds a JSON null, which a request of mode rest would write as NULL.
func jsonNull(t *merge.Table, r *merge.Row, live *sink.Live) error {
	for i, c := range r.Cells {
		if c.Set && !c.Value.IsNull() && c.Value.Text() == "null" && isJSON(live.Column(t.Columns[i].Name)) {
			return fmt.Errorf("%s: the JSON value null arrives as NULL in mode rest. Use mode: rpc, or map it to null", t.Columns[i].Name)
		}
	}
	return nil
}

func isJSON(c *sink.LiveColumn) bool { return c != nil && (c.Base == "json" || c.Base == "jsonb") }

// placed remembers of a list of a group which rows it is made of.
type placed map[string][]*merge.Row

// batch applies a batch by one call.
func (s *rest) batch(ctx context.Context, b *sink.Batch, states []*tableState) (*sink.Result, error) {
	var groups []map[string]any
	lists := make([]placed, len(b.Groups))
	total := 0
	for i, g := range b.Groups {
		w := &listing{st: states[i], table: g.Table, out: map[string]any{"function": states[i].function}, of: placed{}}
		w.group(g.Rows)
		groups, lists[i] = append(groups, w.out), w.of
		total += len(g.Rows)
	}
	if total == 0 {
		return &sink.Result{}, nil
	}
	body, err := json.Marshal(groups)
	if err != nil {
		return nil, err
	}
	text, err := s.call(ctx, applier(s.opts.Schema).name, "hookfold_batch", body)
	var f *fault
	if errors.As(err, &f) && f.code == stopped {
		answers, fault := readAnswers(f.details, len(groups))
		if fault != nil {
			return nil, fault
		}
		return nil, lacking(b, states, lists, answers)
	}
	if err != nil {
		if len(b.Groups) == 1 {
			err = located(err, b.Groups[0].Table)
		}
		return nil, err
	}
	answers, fault := readAnswers(string(text), len(groups))
	if fault != nil {
		return nil, fault
	}
	res := &sink.Result{}
	for i, a := range answers {
		res.Written += a.Written
		for list, places := range map[string][]int{listGuests: a.Guests, listVisits: a.Visits} {
			for _, n := range places {
				for _, r := range lists[i].same(list, n-1) {
					if r.IfMissing == merge.Wait {
						res.Absent = append(res.Absent, sink.RowRef{Table: b.Groups[i].Table, Row: r})
					}
				}
			}
		}
	}
	res.Unchanged = total - res.Written - len(res.Absent)
	return res, nil
}

// answer is what a writer answers: places count from 1.
type answer struct {
	Written                        int
	Partial, Guests, Visits, Shown []int
}

func readAnswers(text string, n int) ([]answer, *fault) {
	var out []answer
	if err := json.Unmarshal([]byte(text), &out); err != nil || len(out) != n {
		return nil, &fault{judged: operator("the function that writes batches answered something else than is known: run the migration again (hookfold migrate prints it)")}
	}
	return out, nil
}

// same gives the rows of the batch behind the n-th of a list: more than one where
// rows differ only in what they do when there is no row.
func (p placed) same(list string, n int) []*merge.Row {
	all := p[list]
	if n < 0 || n >= len(all) {
		return nil
	}
	out := []*merge.Row{all[n]}
	for _, r := range p[list+" too"] {
		if sameRow(r, all[n]) {
			out = append(out, r)
		}
	}
	return out
}

// listing sorts the rows of a group into lists.
type listing struct {
	st    *tableState
	table *sink.Table
	out   map[string]any
	of    placed
}

func (w *listing) group(rows []*merge.Row) {
	own := map[merge.Key]*merge.Row{}
	for _, r := range rows {
		if r.Occupant == nil && r.IfMissing == merge.Insert {
			own[r.Key] = r
		}
	}
	for _, r := range rows {
		switch s := w.st.statements; {
		case w.table.Occupied && r.Occupant != nil && r.IfMissing != merge.Insert:
			w.together(listVisits, s.Occupants.Join, r)
		case w.table.Occupied && r.Occupant != nil:
			w.add(listParts, s.Occupants.Join, r)
			shown := &merge.Row{Key: r.Key, Occupant: r.Occupant, Cells: make([]merge.Cell, len(r.Cells)), Scopes: make([]merge.Version, len(r.Scopes))}
			if mine := own[r.Key]; mine != nil { // so that a new row has what belongs to it at once
				shown.Cells, shown.Scopes = mine.Cells, mine.Scopes
			}
			w.write(listShown, s.Occupants.Project, shown)
			w.of[listShown] = append(w.of[listShown], r)
		case r.IfMissing != merge.Insert:
			w.together(listGuests, s.Upsert, r)
		case len(lacks(s.Required, r)) > 0:
			w.add(listPartial, s.Upsert, r)
		case !says(r):
			w.add(listStubs, s.Stub, r)
		default:
			w.add(listUpsert, s.Upsert, r)
		}
	}
}

func (w *listing) add(list string, s compile.Statement, r *merge.Row) {
	w.write(list, s, r)
	w.of[list] = append(w.of[list], r)
}

// together adds a row, joined with the one before it if both are one row: no key
// may come twice in a list.
func (w *listing) together(list string, s compile.Statement, r *merge.Row) {
	if n := len(w.of[list]); n > 0 && sameRow(w.of[list][n-1], r) {
		items := w.out[list].([]map[string]string)
		items[n-1] = item(s, merge.Join(w.table.Table, w.of[list][n-1], r))
		w.of[list+" too"] = append(w.of[list+" too"], r)
		return
	}
	w.add(list, s, r)
}

func (w *listing) write(list string, s compile.Statement, r *merge.Row) {
	items, _ := w.out[list].([]map[string]string)
	w.out[list] = append(items, item(s, r))
}

// item is a row as the function takes it: texts by the names of the parameters.
func item(s compile.Statement, r *merge.Row) map[string]string {
	out := map[string]string{}
	for _, p := range s.Params {
		text, ok := p.Of(r)
		if !ok {
			continue
		}
		if p.Type.Kind == merge.TextArray && p.Live != nil && strings.HasSuffix(p.Live.Base, "[]") {
			text = arrayText(text)
		}
		out[p.Name] = text
	}
	return out
}

// arrayText writes a text[] value, which is a JSON list, as PostgreSQL reads
// arrays.
func arrayText(list string) string {
	v, err := merge.ParseValue(merge.Type{Kind: merge.TextArray}, list)
	if err != nil {
		return list
	}
	var items []string
	for _, s := range v.List() {
		items = append(items, quoted(s))
	}
	return "{" + strings.Join(items, ",") + "}"
}

func sameRow(a, b *merge.Row) bool {
	return a.Key == b.Key && (a.Occupant == nil) == (b.Occupant == nil) && (a.Occupant == nil || a.Occupant.ID == b.Occupant.ID)
}

func says(r *merge.Row) bool {
	return slices.ContainsFunc(r.Cells, func(c merge.Cell) bool { return c.Set })
}

// lacks names the columns without which the database refuses a new row.
func lacks(required []compile.Required, r *merge.Row) []string {
	var out []string
	for _, q := range required {
		if q.Column >= 0 && r.Cells[q.Column].Set && !r.Cells[q.Column].Value.IsNull() {
			continue
		}
		out = append(out, q.Name)
	}
	return out
}

// lacking reports the rows that cannot be inserted yet.
func lacking(b *sink.Batch, states []*tableState, lists []placed, answers []answer) error {
	out := &sink.BatchError{}
	for i, a := range answers {
		t, required := b.Groups[i].Table, states[i].statements.Required
		for _, list := range []struct {
			name   string
			places []int
		}{{listPartial, a.Partial}, {listShown, a.Shown}} {
			for _, n := range list.places {
				if n < 1 || n > len(lists[i][list.name]) {
					continue
				}
				r := lists[i][list.name][n-1]
				columns := lacks(required, r)
				if list.name == listShown { // what belongs to the row itself may come with another part
					columns = slices.DeleteFunc(columns, func(name string) bool {
						return t.Column(name) >= 0 && t.OfKey(t.Column(name)) && belongs(b.Groups[i].Rows, r.Key, t.Column(name))
					})
				}
				if len(columns) == 0 {
					continue // an occupant that is not the newest; the newest is at fault
				}
				out.Rows = append(out.Rows, sink.RowError{RowRef: sink.RowRef{Table: t, Row: r}, Err: lacksOf(t, r, columns)})
			}
		}
	}
	if out.Rows == nil {
		return &sink.Error{Action: sink.Reject, Message: "rows lack columns that are NOT NULL"}
	}
	return out
}

// belongs tells whether a batch gives a column that belongs to the row itself.
func belongs(rows []*merge.Row, key merge.Key, column int) bool {
	return slices.ContainsFunc(rows, func(r *merge.Row) bool {
		return r.Key == key && r.Occupant == nil && r.Cells[column].Set && !r.Cells[column].Value.IsNull()
	})
}

func lacksOf(t *sink.Table, r *merge.Row, columns []string) *sink.Error {
	list := strings.Join(columns, ", ")
	message := fmt.Sprintf("%s %s: there is no such row yet, and a new one needs a value for %s (NOT NULL)", t.Table.Name, t.Show(r.Key), list)
	if !says(r) && r.Occupant == nil {
		message = fmt.Sprintf("%s %s cannot be inserted as a parent with its key alone: %s is NOT NULL and has no default that counts", t.Table.Name, t.Show(r.Key), list)
	}
	return &sink.Error{Action: sink.Wait, Message: message, On: t.Name + "." + columns[0], Why: sink.NotNull}
}
