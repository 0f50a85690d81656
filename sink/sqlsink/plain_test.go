package sqlsink_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sinktest"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// plainSink is a writer that knows nothing of merging: it sends rows by plain
// upserts that overwrite every column. What makes its rows right is the guard
// trigger. Everything but Apply is sqlsink's.
type plainSink struct {
	sink.Sink
	pool  *pgxpool.Pool
	fault func() sinktest.Fault
}

// plainWriter opens a plain sink.
func plainWriter(t testing.TB, url string, fault func() sinktest.Fault) *plainSink {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &plainSink{open(t, url, nil, sqlsink.Options{}), pool, fault}
}

// Known is sink.Knower's.
func (p *plainSink) Known(ctx context.Context, t *sink.Table, keys []merge.Key) ([]bool, error) {
	return p.Sink.(sink.Knower).Known(ctx, t, keys)
}

// Apply is sink.Sink's: in one transaction, whatever is there is overwritten.
func (p *plainSink) Apply(ctx context.Context, b *sink.Batch) (*sink.Result, error) {
	res := &sink.Result{}
	at := sinktest.NoFault
	err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		for _, g := range b.Groups {
			if err := p.group(ctx, tx, g, res); err != nil {
				return err
			}
		}
		if p.fault != nil {
			if at = p.fault(); at == sinktest.BeforeCommit {
				return errors.New("the connection was cut")
			}
		}
		return nil
	})
	if err == nil && at == sinktest.AfterCommit {
		err = errors.New("the connection was cut")
	}
	var e *pgconn.PgError
	switch {
	case err == nil:
		return res, nil
	case errors.As(err, &e) && !strings.HasPrefix(e.Code, "40"):
		return nil, &sink.Error{Action: sink.Reject, Message: e.Message, Code: e.Code, Err: err}
	}
	return nil, err
}

func (p *plainSink) group(ctx context.Context, tx pgx.Tx, g sink.Group, res *sink.Result) error {
	live, err := p.Sink.Inspect(ctx, g.Table)
	if err != nil {
		return err
	}
	if !live.Exists {
		return &sink.Error{Action: sink.Retry, Message: "there is no table " + g.Table.Name}
	}
	var own, records []*merge.Row
	for _, r := range g.Rows {
		switch {
		case g.Table.Occupied && r.Occupant != nil:
			records = append(records, r)
		case r.IfMissing == merge.Insert:
			own = append(own, r)
		}
	}
	for _, upserts := range [][]*merge.Row{records, own} {
		for from := 0; from < len(upserts); from += 1000 {
			part := upserts[from:min(from+1000, len(upserts))]
			n, err := plainUpsert(ctx, tx, g.Table, live, part)
			if err != nil {
				return err
			}
			res.Written += n
			res.Unchanged += len(part) - n
		}
	}
	for _, r := range g.Rows {
		if r.IfMissing == merge.Insert {
			continue
		}
		n, err := plainUpdate(ctx, tx, g.Table, live, r)
		if err != nil {
			return err
		}
		if n < 0 && r.IfMissing == merge.Wait {
			res.Absent = append(res.Absent, sink.RowRef{Table: g.Table, Row: r})
			continue
		}
		res.Written += max(n, 0)
		res.Unchanged += 1 - max(n, 0)
	}
	return nil
}

// plainColumn is a column of a row as text, NULL if the row says nothing of it.
type plainColumn struct {
	name  string
	value *string
	list  string // of a text[], in its canonical form
}

// plainColumns are a row's columns, first its key: what an own writer would
// send.
func plainColumns(t *sink.Table, r *merge.Row) []plainColumn {
	var out []plainColumn
	text := func(name, s string, ok bool) {
		c := plainColumn{name: name}
		if ok {
			c.value = &s
		}
		out = append(out, c)
	}
	for i, part := range r.Key.Parts() {
		text(t.Key[i].Name, part, true)
	}
	if t.Occupied && r.Occupant != nil {
		text(compile.OccupantColumn, r.Occupant.ID, true)
		text(compile.SinceColumn, string(r.Occupant.Since), r.Occupant.Since != "")
	}
	mine := func(i int) bool { return !t.Occupied || t.OfKey(i) == (r.Occupant == nil) }
	for i := range t.Columns {
		c, cell := &t.Columns[i], r.Cells[i]
		switch {
		case c.Rule == merge.Touch || c.Rule == merge.Flag || !mine(i):
			continue
		case c.Rule == merge.First:
			text(compile.FirstColumn(c.Name), string(cell.Version), cell.Set && cell.Version != "")
		}
		s := cell.Value.Text()
		if c.Type.Kind == merge.TextArray {
			s = pgArray(cell.Value)
		}
		text(c.Name, s, cell.Set && !cell.Value.IsNull())
		out[len(out)-1].list = cell.Value.Text()
	}
	for i, v := range r.Scopes {
		if !mine(t.ScopeColumns(i)[0]) {
			continue
		}
		text(compile.ScopeColumn(t.Scopes()[i]), string(v), v != "")
	}
	if t.OnDelete != merge.DeleteNone {
		text(compile.SeenColumn, string(r.Seen), r.Seen != "")
		text(compile.DeleteColumn, string(r.Deleted), r.Deleted != "")
	}
	if t.OnDelete == merge.DeleteMark {
		text(compile.DeletedAtColumn, r.DeletedAt.Text(), !r.DeletedAt.IsNull())
	}
	return out
}

func pgArray(v merge.Value) string {
	var out []string
	if v.IsNull() {
		return ""
	}
	for _, s := range v.List() {
		out = append(out, `"`+strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(s)+`"`)
	}
	return "{" + strings.Join(out, ",") + "}"
}

// typeOf is the type of a column; the table of records has no other.
func typeOf(live *sink.Live, name string) string {
	if c := live.Column(name); c != nil {
		return c.Type
	}
	return "text"
}

func plainUpsert(ctx context.Context, tx pgx.Tx, t *sink.Table, live *sink.Live, rows []*merge.Row) (int, error) {
	var names, arrays, casts, set []string
	var args []any
	for c, column := range plainColumns(t, rows[0]) {
		names = append(names, pgx.Identifier{column.name}.Sanitize())
		arrays = append(arrays, fmt.Sprintf("$%d::text[]", c+1))
		casts = append(casts, fmt.Sprintf("v.p%d::%s", c+1, typeOf(live, column.name)))
		set = append(set, fmt.Sprintf("%s = excluded.%[1]s", names[c]))
		list := make([]*string, len(rows))
		for i, r := range rows {
			list[i] = plainColumns(t, r)[c].value
		}
		args = append(args, list)
	}
	var key, places []string
	for _, k := range t.Key {
		key = append(key, pgx.Identifier{k.Name}.Sanitize())
	}
	table := t.Name
	if t.Occupied && rows[0].Occupant != nil {
		table = compile.OccupantsTable(t.Name)
		key = append(key, compile.OccupantColumn)
	}
	for c := range names {
		places = append(places, fmt.Sprintf("p%d", c+1))
	}
	tag, err := tx.Exec(ctx, fmt.Sprintf("insert into %s (%s) select %s from unnest(%s) as v (%s) on conflict (%s) do update set %s", compile.Postgres.QuoteTable(table),
		strings.Join(names, ", "), strings.Join(casts, ", "), strings.Join(arrays, ", "), strings.Join(places, ", "), strings.Join(key, ", "), strings.Join(set, ", ")), args...)
	return int(tag.RowsAffected()), err
}

// plainUpdate overwrites a row that is there; -1 is that there is none.
func plainUpdate(ctx context.Context, tx pgx.Tx, t *sink.Table, live *sink.Live, r *merge.Row) (int, error) {
	var set, on []string
	var args []any
	for c, column := range plainColumns(t, r) {
		is := fmt.Sprintf("%s = $%d::text::%s", pgx.Identifier{column.name}.Sanitize(), c+1, live.Column(column.name).Type)
		if c < len(t.Key) {
			on = append(on, is)
		}
		set = append(set, is)
		args = append(args, column.value)
	}
	table, where := compile.QuoteTable(t.Name), strings.Join(on, " and ")
	var there bool
	if err := tx.QueryRow(ctx, fmt.Sprintf("select exists (select from %s where %s)", table, where), args[:len(on)]...).Scan(&there); err != nil || !there {
		return -1, err
	}
	if _, err := tx.Exec(ctx, "set local hookfold.guard = 'on'"); err != nil {
		return 0, err
	}
	tag, err := tx.Exec(ctx, fmt.Sprintf("update %s set %s where %s", table, strings.Join(set, ", "), where), args...)
	return int(tag.RowsAffected()), err
}
