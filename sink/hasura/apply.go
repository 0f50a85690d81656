package hasura

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

const (
	tries = 8 // of one batch inside Apply, when writers got into each other's way

	// maxRows is the most rows of one field. Its guard names every row, so the
	// database's work grows with the square; measured, 50 to 100 cost least.
	maxRows = 64
	// maxFields is the most fields of one mutation: each is a statement.
	maxFields = 500
	// maxRounds bounds how often a row is read again because another writer got
	// to it first.
	maxRounds = 100
)

// Apply is sink.Sink's; see the package comment for what is one transaction.
func (h *hasura) Apply(ctx context.Context, b *sink.Batch) (*sink.Result, error) {
	refreshed := false
	for try := 1; ; {
		res, states, err := h.try(ctx, b)
		if err == nil {
			return res, nil
		}
		var f *fault
		if !errors.As(err, &f) || ctx.Err() != nil {
			return nil, public(err)
		}
		if f.Why == sink.NeedsParent {
			h.nameParent(f, states)
		}
		switch {
		case f.large && len(b.Groups) > 0 && h.shrink(f.size):
			continue
		case f.lacks && h.setCareful(states):
			continue
		case f.schema && !refreshed:
			refreshed = true
			h.forget()
			continue
		case f.again && try < tries && (!f.unexplained || try < tries/2):
			if pause(ctx, try) != nil {
				return nil, f.sinkError
			}
			try++
			continue
		}
		if f.schema {
			h.forget()
		}
		if f.large { // one row by itself
			f.Action = sink.Reject
			f.Message = fmt.Sprintf("a row makes a request of %d bytes, which is larger than what Hasura, or a proxy before it, takes. Raise that limit", f.size)
		}
		return nil, f.sinkError
	}
}

// nameParent has an error about a foreign key name the table of the config whose
// row is missing, if the catalog tells it.
func (h *hasura) nameParent(f *fault, states []*tableState) {
	for _, st := range states {
		for _, ref := range st.live.References {
			if ref.Name != f.On {
				continue
			}
			to := compile.SplitTable(ref.To)
			for _, t := range h.config {
				name := compile.SplitTable(t.Name)
				if slices.Equal(name, to) || len(name) == 1 && name[0] == to[len(to)-1] {
					f.On = t.Table.Name
					return
				}
			}
		}
	}
}

// shrink makes requests smaller, and tells whether that is possible.
func (h *hasura) shrink(size int) bool {
	was := h.limit()
	h.tooLarge(size)
	return h.limit() < was
}

// public gives an error as the contract has it.
func public(err error) error {
	var f *fault
	if errors.As(err, &f) {
		return f.sinkError
	}
	return err
}

// pause sleeps a short random time that grows with the tries.
func pause(ctx context.Context, try int) error {
	t := time.NewTimer(time.Duration(1+rand.IntN(10<<try)) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// try applies a batch once.
func (h *hasura) try(ctx context.Context, b *sink.Batch) (*sink.Result, []*tableState, error) {
	var states []*tableState
	for _, g := range b.Groups {
		st, err := h.state(ctx, g.Table)
		if err != nil {
			return nil, nil, err
		}
		states = append(states, st)
	}
	if err := misfits(b, states); err != nil {
		return nil, nil, err
	}
	a := &applier{hasura: h, ctx: ctx}
	for i, g := range b.Groups {
		if err := a.group(g, states[i]); err != nil {
			return nil, states, err
		}
	}
	if err := a.flush(); err != nil {
		return nil, states, err
	}
	for _, p := range a.parts {
		if p.done {
			a.result.Written++
		} else {
			a.result.Unchanged++
		}
	}
	return &a.result, states, nil
}

// misfits finds the values that the database would refuse, and those that
// Hasura would not hand on as they are.
func misfits(b *sink.Batch, states []*tableState) error {
	var rows []sink.RowError
	for i, g := range b.Groups {
		for _, r := range g.Rows {
			err := compile.FitRow(states[i].live, g.Table.Table, r)
			if err == nil {
				err = nullJSON(g.Table.Table, r)
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

func nullJSON(t *merge.Table, r *merge.Row) error {
	for i, c := range r.Cells {
		if t.Columns[i].Type.Kind == merge.JSON && c.Set && c.Value.Text() == "null" {
			return fmt.Errorf("%s: the JSON value null cannot be sent through Hasura, which takes it for NULL. Leave it out, or wrap it", t.Columns[i].Name)
		}
	}
	return nil
}

// applier writes one batch.
type applier struct {
	*hasura
	ctx    context.Context
	doc    document
	result sink.Result
	parts  []*part // of which the answers tell each by itself what became of it
}

// tally counts a part once, when everything is done.
func (a *applier) tally(p *part) {
	if !p.counted {
		p.counted = true
		a.parts = append(a.parts, p)
	}
}

// push appends a part to the mutation, and sends what there is before if it
// would grow too large.
func (a *applier) push(part *document) error {
	if len(a.doc.fields) > 0 && (a.doc.bytes()+part.size > a.limit() || len(a.doc.fields)+len(part.fields) > maxFields) {
		if err := a.flush(); err != nil {
			return err
		}
	}
	a.doc.add(part)
	return nil
}

func (a *applier) flush() error {
	doc := a.doc
	a.doc = document{}
	return doc.send(a.ctx, a.client)
}

// group writes the rows of one table.
func (a *applier) group(g sink.Group, st *tableState) error {
	var inserts, guests []*merge.Row
	for _, r := range g.Rows {
		if r.IfMissing == merge.Insert {
			inserts = append(inserts, r)
		} else {
			guests = append(guests, r)
		}
	}
	if len(guests) > 0 {
		there, err := a.presence(st.own, guests)
		if err != nil {
			return err
		}
		for _, r := range inserts {
			there[r.Key] = true
		}
		guests = slices.DeleteFunc(guests, func(r *merge.Row) bool {
			if there[r.Key] {
				return false
			}
			if r.IfMissing == merge.Wait {
				a.result.Absent = append(a.result.Absent, sink.RowRef{Table: g.Table, Row: r})
			} else {
				a.result.Unchanged++
			}
			return true
		})
		guests = a.together(g.Table.Table, guests)
	}
	if st.records != nil {
		return a.occupied(st, inserts, guests)
	}
	w := &writer{applier: a, r: st.own}
	return w.write(inserts, guests, a.isCareful(st))
}

// together joins rows that differ only in what they do when there is no row.
func (a *applier) together(t *merge.Table, rows []*merge.Row) []*merge.Row {
	var out []*merge.Row
	for _, r := range rows {
		if n := len(out); n > 0 && samePart(out[n-1], r) {
			out[n-1] = merge.Join(t, out[n-1], r)
			a.result.Unchanged++
			continue
		}
		out = append(out, r)
	}
	return out
}

func samePart(a, b *merge.Row) bool {
	return a.Key == b.Key && (a.Occupant == nil) == (b.Occupant == nil) && (a.Occupant == nil || a.Occupant.ID == b.Occupant.ID)
}

// presence tells which rows are there.
func (a *applier) presence(r *relation, rows []*merge.Row) (map[merge.Key]bool, error) {
	found, err := a.lookUp(a.ctx, r, keysOf(rows, func(r *merge.Row) merge.Key { return r.Key }), r.keyNames())
	out := map[merge.Key]bool{}
	for _, row := range found {
		k, _ := r.keyOf(row)
		out[k] = true
	}
	return out, err
}
