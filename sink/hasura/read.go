package hasura

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

const (
	keysPerQuery = 500
	rowsPerQuery = 2000
)

// lookUp reads columns of the rows that have one of the keys; of records, those
// of all occupants.
func (h *hasura) lookUp(ctx context.Context, r *relation, keys []merge.Key, columns string) ([]answerRow, error) {
	var out []answerRow
	for chunk := range slices.Chunk(keys, keysPerQuery) {
		rows, err := h.selectAll(ctx, selection{r, r.among(chunk), columns, ""})
		if err != nil {
			return nil, err
		}
		out = append(out, rows[0]...)
	}
	return out, nil
}

// among says that the row that is there has one of the keys.
func (r *relation) among(keys []merge.Key) exp {
	if n := len(r.table.Key); n == 1 {
		var b []byte
		for _, k := range keys {
			b = append(append(b, ','), encode(r.key[0].gqlColumn, r.key[0].Type.Kind, k.Parts()[0])...)
		}
		return is(r.key[0].name, "_in", append(append([]byte{'['}, b[min(1, len(b)):]...), ']'))
	}
	var list []exp
	for _, k := range keys {
		var all []exp
		for i, text := range k.Parts() {
			all = append(all, is(r.key[i].name, "_eq", encode(r.key[i].gqlColumn, r.key[i].Type.Kind, text)))
		}
		list = append(list, allOf(all...))
	}
	return anyOf(list...)
}

// selection is one root field of a query.
type selection struct {
	r       *relation
	where   exp
	columns string
	more    string // further arguments
}

// selectRows runs selections in one request; each sees the database at a moment
// of its own.
func (h *hasura) selectRows(ctx context.Context, list ...selection) ([][]answerRow, error) {
	var heads, fields []string
	vars := []byte{'{'}
	for i, s := range list {
		heads = append(heads, fmt.Sprintf("$w%d:%s_bool_exp!", i, s.r.root))
		fields = append(fields, fmt.Sprintf("r%[1]d:%[2]s(where:$w%[1]d%[3]s){%[4]s}", i, s.r.fields.query, s.more, s.columns))
		if i > 0 {
			vars = append(vars, ',')
		}
		vars = append(append(vars, fmt.Sprintf(`"w%d":`, i)...), s.where...)
	}
	data, err := h.graphql(ctx, "query("+strings.Join(heads, " ")+"){"+strings.Join(fields, " ")+"}", append(vars, '}'))
	if err != nil {
		return nil, err
	}
	out := make([][]answerRow, len(list))
	for i := range list {
		if err := json.Unmarshal(data[fmt.Sprint("r", i)], &out[i]); err != nil {
			return nil, operator("Hasura's answer to a query is not as expected: %v", err)
		}
	}
	return out, nil
}

// selectAll is selectRows for all rows there are: a role may be shown only some
// at once, and is not told.
func (h *hasura) selectAll(ctx context.Context, list ...selection) ([][]answerRow, error) {
	limited := h.opts.Role != "" || h.opts.JWT != nil
	for i := range list {
		if limited {
			list[i].more = " order_by:[" + list[i].r.order() + "]"
		}
	}
	out, err := h.selectRows(ctx, list...)
	if err != nil || !limited {
		return out, err
	}
	for i, s := range list {
		for page := out[i]; len(page) > 0; {
			next := s
			next.where = allOf(s.where, s.r.behind(page[len(page)-1]))
			more, err := h.selectRows(ctx, next)
			if err != nil {
				return nil, err
			}
			if s.r.sameEnd(page, more[0]) {
				return nil, errStuck
			}
			page = more[0]
			out[i] = append(out[i], page...)
		}
	}
	return out, nil
}

// readColumns are the columns of a table's rows as they are read.
func (r *relation) readColumns() []*column {
	out := slices.Clone(r.key)
	for i := range r.registers {
		g := &r.registers[i]
		out = append(out, g.columns...)
		if g.version != nil {
			out = append(out, g.version)
		}
	}
	out = append(append(out, r.shown...), r.touch...)
	return append(out, r.identity...)
}

func columnNames(list []*column) string {
	var names []string
	for _, c := range list {
		names = append(names, c.name)
	}
	return strings.Join(names, " ")
}

// row makes a row of what was read.
func (r *relation) row(columns []*column, from answerRow) *merge.Row {
	t := r.table
	out := &merge.Row{Written: true, Cells: make([]merge.Cell, len(t.Columns)), Scopes: make([]merge.Version, len(t.Scopes()))}
	var key []string
	var occupant merge.Occupant
	for _, c := range columns {
		v := valueOf(c.Type, c.gqlColumn, from[c.name])
		switch c.Kind {
		case compile.KeyParam:
			key = append(key, v.Text())
		case compile.CellParam:
			out.Cells[c.Index].Value, out.Cells[c.Index].Set = v, !v.IsNull()
		case compile.ScopeParam:
			out.Scopes[c.Index] = merge.Version(v.Text())
		case compile.FirstParam:
			out.Cells[c.Index].Version = merge.Version(v.Text())
		case compile.SinceParam:
			occupant.Since = merge.Component(v.Text())
		case compile.IDParam:
			occupant.ID = v.Text()
			if !v.IsNull() {
				out.Occupant = &occupant
			}
		}
	}
	out.Key = merge.NewKey(key...)
	for s := range out.Scopes {
		out.Seen = max(out.Seen, out.Scopes[s])
	}
	for i := range out.Cells {
		c := &out.Cells[i]
		if s := t.ScopeOf(i); s >= 0 && out.Scopes[s] != "" || c.Version != "" {
			c.Set = true
		}
	}
	return out
}

// Known is sink.Knower's: tables that remember deletes are refused, so it is the
// rows that are there.
func (h *hasura) Known(ctx context.Context, t *sink.Table, keys []merge.Key) ([]bool, error) {
	st, err := h.state(ctx, t)
	if err != nil {
		return nil, public(err)
	}
	rows, err := h.lookUp(ctx, st.own, slices.Compact(slices.Sorted(slices.Values(keys))), st.own.keyNames())
	if err != nil {
		return nil, public(err)
	}
	there := map[merge.Key]bool{}
	for _, x := range rows {
		k, _ := st.own.keyOf(x)
		there[k] = true
	}
	out := make([]bool, len(keys))
	for i, k := range keys {
		out[i] = there[k]
	}
	return out, nil
}

// Read is sink.Sink's. A stored value that is not of the column's type comes as
// the text that it is.
func (h *hasura) Read(ctx context.Context, t *sink.Table, keys []merge.Key) ([]*merge.Row, error) {
	st, err := h.state(ctx, t)
	if err != nil {
		return nil, public(err)
	}
	columns := st.own.readColumns()
	if keys != nil {
		rows, err := h.lookUp(ctx, st.own, slices.Compact(slices.Sorted(slices.Values(keys))), columnNames(columns))
		if err != nil {
			return nil, public(err)
		}
		byKey := map[merge.Key]*merge.Row{}
		for _, x := range rows {
			r := st.own.row(columns, x)
			byKey[r.Key] = r
		}
		out := make([]*merge.Row, len(keys))
		for i, k := range keys {
			out[i] = byKey[k]
		}
		return out, nil
	}
	var out []*merge.Row
	for after := sink.Cursor(""); ; {
		rows, next, err := h.Page(ctx, t, after, rowsPerQuery)
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
		if next == "" {
			break
		}
		after = next
	}
	slices.SortFunc(out, func(a, b *merge.Row) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return out, nil
}

// Page is sink.Sink's. The role may see fewer rows at once than are asked for, so
// only a page without rows is the last. A cursor is the last row, as it came.
func (h *hasura) Page(ctx context.Context, t *sink.Table, after sink.Cursor, limit int) ([]*merge.Row, sink.Cursor, error) {
	st, err := h.state(ctx, t)
	if err != nil {
		return nil, "", public(err)
	}
	columns := st.own.readColumns()
	where := exp("{}")
	var before answerRow
	if after != "" {
		if err := json.Unmarshal([]byte(after), &before); err != nil {
			return nil, "", fmt.Errorf("read a page of %s: %q is no cursor of it", t.Name, after)
		}
		where = st.own.behind(before)
	}
	found, err := h.selectRows(ctx, selection{st.own, where, columnNames(columns), fmt.Sprintf(" order_by:[%s] limit:%d", st.own.order(), min(max(limit, 1), rowsPerQuery))})
	if err != nil || len(found[0]) == 0 {
		return nil, "", public(err)
	}
	last := answerRow{}
	for _, c := range st.own.key {
		last[c.name] = found[0][len(found[0])-1][c.name]
	}
	if before != nil && st.own.sameEnd([]answerRow{before}, []answerRow{last}) {
		return nil, "", public(errStuck)
	}
	next, err := json.Marshal(last)
	if err != nil {
		return nil, "", public(err)
	}
	var out []*merge.Row
	for _, x := range found[0] {
		out = append(out, st.own.row(columns, x))
	}
	return out, sink.Cursor(next), nil
}

var errStuck = operator("Hasura gives the same rows again when it is asked for those behind them")

// sameEnd tells whether two pages end alike, which no two pages do.
func (r *relation) sameEnd(a, b []answerRow) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	x, xid := r.keyOf(a[len(a)-1])
	y, yid := r.keyOf(b[len(b)-1])
	return x == y && xid == yid
}

func (r *relation) order() string {
	var list []string
	for _, c := range r.key {
		list = append(list, "{"+c.name+":asc}")
	}
	return strings.Join(list, " ")
}

// behind says that a row comes after the last one that was read, in the order of
// the database.
func (r *relation) behind(last answerRow) exp {
	var ways []exp
	var same []exp
	for _, c := range r.key {
		v := encode(c.gqlColumn, c.Type.Kind, valueOf(c.Type, c.gqlColumn, last[c.name]).Text())
		ways = append(ways, allOf(append(slices.Clone(same), is(c.name, "_gt", v))...))
		same = append(same, is(c.name, "_eq", v))
	}
	return anyOf(ways...)
}
