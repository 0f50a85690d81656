package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// mostCulprits bounds the rows that one call looks for.
const mostCulprits = 500

// culprits finds the rows of a batch that the database refuses, when it has
// refused the batch as a whole: it writes parts of it in a transaction, each
// from a savepoint, by halves. It returns a result if all parts went in, since
// then only their way through one statement was in the way; else an error that
// names the rows, or the fault as it was if no row can be named.
func (s *sqlSink) culprits(ctx context.Context, b *sink.Batch, f *fault) (*sink.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.BatchTimeout)
	defer cancel()
	most := mostCulprits
	if f.locked {
		most = mostHeld
	}
	states := make([]*tableState, len(b.Groups))
	single := rowsIn(b.Groups) == 1
	for i, g := range b.Groups {
		st, err := s.state(ctx, g.Table)
		if err != nil {
			return nil, f.Error
		}
		states[i] = st
		if single && len(g.Rows) == 1 && !f.locked {
			s.name(ctx, f, g.Table, st, g.Rows[0], b)
			return nil, f.Error
		}
	}
	p := &prober{s: s, b: b, states: states, most: most}
	err := s.transact(ctx, func(c conn) error {
		p.applier = &applier{conn: c, ctx: ctx, anyAge: s.opts.AnyAge, dialect: s.dialect()}
		if f.locked {
			if err := c.hasten(ctx, tablesOf(b)); err != nil {
				return err
			}
		}
		if err := c.lock(ctx, locks(b.Groups, states)); err != nil {
			return err
		}
		if err := c.defers(ctx, false); err != nil { // the commit would not tell the rows
			return err
		}
		for i, g := range b.Groups {
			if len(g.Sets)+len(g.Links) > 0 {
				if err := p.part(i, nil, g); err != nil {
					return err // these are no rows
				}
			}
			if err := p.rows(i, g.Rows); err != nil {
				return err
			}
		}
		if len(p.found) > 0 {
			return errFound
		}
		return nil
	})
	switch {
	case err == nil:
		return &p.applier.result, nil
	case len(p.found) == 0:
		if f.Why == sink.NeedsParent { // a link or a list makes rows go
			for i, g := range b.Groups {
				if len(g.Sets)+len(g.Links) > 0 && nameChildren(f, g.Table, s.childOf(f, states[i], b)) {
					break
				}
			}
		}
		return nil, f.Error
	}
	out := &sink.BatchError{}
	for _, x := range p.found {
		s.name(ctx, x.fault, x.Table, x.st, x.Row, b)
		x.Err = x.fault.Error
		out.Rows = append(out.Rows, x.RowError)
	}
	return nil, out
}

var errFound = errors.New("some rows were refused")

func tablesOf(b *sink.Batch) []*sink.Table {
	out := make([]*sink.Table, len(b.Groups))
	for i, g := range b.Groups {
		out[i] = g.Table
	}
	return out
}

func rowsIn(groups []sink.Group) int {
	n := 0
	for _, g := range groups {
		n += len(g.Rows) + len(g.Sets) + len(g.Links)
	}
	return n
}

// culprit is a row that was refused.
type culprit struct {
	sink.RowError
	fault *fault
	st    *tableState
}

type prober struct {
	*applier
	s      *sqlSink
	b      *sink.Batch
	states []*tableState
	found  []culprit
	most   int // rows to be found
}

// rows writes what can be written of rows of one group.
func (p *prober) rows(i int, rows []*merge.Row) error {
	if len(rows) == 0 || len(p.found) >= p.most {
		return nil
	}
	err := p.part(i, rows, sink.Group{})
	if err == nil {
		return nil
	}
	if len(rows) > 1 {
		half := len(rows) / 2
		if err := p.rows(i, rows[:half]); err != nil {
			return err
		}
		return p.rows(i, rows[half:])
	}
	f := p.s.fault(err)
	if f == nil {
		var known *sink.BatchError
		if !errors.As(err, &known) {
			return err
		}
		f = &fault{Error: known.Rows[0].Err}
	}
	if f.locked {
		f = &fault{Error: lockedRow(p.b.Groups[i].Table, rows[0], f)}
	}
	if f.Action == sink.Retry {
		return err
	}
	p.found = append(p.found, culprit{sink.RowError{RowRef: sink.RowRef{Table: p.b.Groups[i].Table, Row: rows[0]}}, f, p.states[i]})
	return nil
}

// part writes some of a group, and takes it back if it cannot.
func (p *prober) part(i int, rows []*merge.Row, of sink.Group) error {
	if err := p.savepoint(p.ctx); err != nil {
		return err
	}
	before := p.result
	g := sink.Group{Table: p.b.Groups[i].Table, Rows: rows, Sets: of.Sets, Links: of.Links}
	err := p.write([]sink.Group{g}, p.states[i:i+1])
	if err == nil && len(p.faults) > 0 {
		err = &sink.BatchError{Rows: p.faults}
	}
	if err == nil {
		return p.release(p.ctx)
	}
	p.result, p.faults, p.broken = before, nil, nil
	if back := p.rollback(p.ctx); back != nil {
		return back
	}
	return err
}

// name says of a fault what its row waits for, as well as can be told.
func (s *sqlSink) name(ctx context.Context, f *fault, t *sink.Table, st *tableState, r *merge.Row, b *sink.Batch) {
	switch f.Why {
	case sink.NeedsParent:
		s.nameParent(ctx, f, t, st, r, b)
	case sink.UniqueValue:
		s.nameHolder(ctx, f, t, st, r)
	}
}

// nameParent finds the row that a foreign key misses, or says which table still
// names a row that is to go.
func (s *sqlSink) nameParent(ctx context.Context, f *fault, t *sink.Table, st *tableState, r *merge.Row, b *sink.Batch) {
	for _, ref := range st.live.References {
		if f.constraint != "" && ref.Name != f.constraint {
			continue
		}
		values, ok := compile.ValuesOf(t, st.live, r, ref.Columns)
		if !ok {
			continue
		}
		parent := s.configured(ref.To, b)
		key, isKey := keyIn(parent, ref, values)
		if f.constraint == "" && isKey { // the database does not say which: the one whose parent is not there
			if known, err := s.Known(ctx, parent, []merge.Key{key}); err != nil || known[0] {
				continue
			}
		}
		if isKey {
			f.On = parent.Table.Name + " " + parent.Show(key)
		} else {
			f.On = ref.To + " " + pairs(ref.ToColumns, values)
		}
		f.Message = fmt.Sprintf("%s %s: it refers to %s by %s, and there is no such row yet", t.Table.Name, t.Show(r.Key), f.On, strings.Join(ref.Columns, ", "))
		return
	}
	nameChildren(f, t, s.childOf(f, st, b), r.Key)
}

// childOf finds the foreign key by which others name rows of a table, and names
// the other table as the config does.
func (s *sqlSink) childOf(f *fault, st *tableState, b *sink.Batch) *sink.Reference {
	for _, ref := range st.live.ReferencedBy {
		if f.constraint == "" || ref.Name == f.constraint {
			if c := s.configured(ref.Table, b); c != nil {
				ref.Table = c.Table.Name
			}
			return &ref
		}
	}
	return nil
}

// nameChildren says that rows of another table are in the way of rows that are
// to go.
func nameChildren(f *fault, t *sink.Table, ref *sink.Reference, key ...merge.Key) bool {
	if ref == nil {
		return false
	}
	which := ""
	for _, k := range key {
		which = " " + t.Show(k)
	}
	f.On = ref.Table
	f.Message = fmt.Sprintf("%s%s: the row is to go, and rows of %s still refer to it by %s", t.Table.Name, which, ref.Table, strings.Join(ref.Columns, ", "))
	return true
}

// keyIn gives the key of the row of a table of the config that a foreign key
// names, if it names it by its key.
func keyIn(parent *sink.Table, ref sink.Reference, values []string) (merge.Key, bool) {
	if parent == nil || len(parent.Key) != len(values) {
		return "", false
	}
	parts := make([]string, len(values))
	for i, k := range parent.Key {
		at := slices.IndexFunc(ref.ToColumns, func(name string) bool { return strings.EqualFold(name, k.Name) })
		if at < 0 {
			return "", false
		}
		v, err := merge.ParseValue(k.Type, values[at])
		if err != nil {
			return "", false
		}
		parts[i] = v.Text()
	}
	return merge.NewKey(parts...), true
}

func pairs(names, values []string) string {
	out := make([]string, len(names))
	for i := range names {
		out[i] = names[i] + "=" + values[i]
	}
	return strings.Join(out, ", ")
}

// configured finds the table of the config that lives under a name.
func (s *sqlSink) configured(live string, b *sink.Batch) *sink.Table {
	is := compile.SplitTable(live)
	same := func(t *sink.Table) bool {
		name := compile.SplitTable(t.Name)
		for i := 1; i <= min(len(is), len(name)); i++ {
			if !strings.EqualFold(is[len(is)-i], name[len(name)-i]) {
				return false
			}
		}
		return true
	}
	for _, t := range s.all {
		if same(t) {
			return t
		}
	}
	for _, g := range b.Groups {
		if same(g.Table) {
			return g.Table
		}
	}
	return nil
}

// nameHolder finds the row that has the value that a row wants.
func (s *sqlSink) nameHolder(ctx context.Context, f *fault, t *sink.Table, st *tableState, r *merge.Row) {
	f.On = t.Table.Name
	for _, u := range st.live.Uniques {
		if !violated(u, f) {
			continue
		}
		values, ok := compile.ValuesOf(t, st.live, r, u.Columns)
		lookup := compile.Lookup(s.dialect(), t, st.live, u.Columns)
		if !ok || lookup.SQL == "" {
			return
		}
		var holder merge.Key
		err := s.read(ctx, func(c conn) error {
			return c.query(ctx, lookup, []item{{row: r}}, func(_ int, cols []cell) error {
				parts := make([]string, len(cols))
				for i, x := range cols {
					parts[i] = valueOf(t.Key[i].Type, x).Text()
				}
				holder = merge.NewKey(parts...)
				return nil
			})
		})
		if err != nil || holder == "" || holder == r.Key {
			return
		}
		f.On = t.Table.Name + " " + t.Show(holder)
		f.Message = fmt.Sprintf("%s %s: %s is unique, and %s has it", t.Table.Name, t.Show(r.Key), pairs(u.Columns, values), t.Show(holder))
		return
	}
}

// violated tells whether a fault is of a unique index: PostgreSQL names the
// index, SQLite the columns.
func violated(u sink.Unique, f *fault) bool {
	if f.constraint != "" {
		parts := compile.SplitTable(u.Name)
		return parts[len(parts)-1] == f.constraint
	}
	return slices.EqualFunc(u.Columns, f.columns, strings.EqualFold)
}
