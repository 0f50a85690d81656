package sqlsink_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/merge/mergetest"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// TestGuardTriggerWithAllKindsOfWriters lets eight writers send the same changes
// in every form there is, among them Hookfold itself, while people write a column
// that Hookfold does not map: the rows are those of merge, and nothing of the
// people's is lost.
func TestGuardTriggerWithAllKindsOfWriters(t *testing.T) {
	for _, shape := range []mergetest.Shape{{}, {OnDelete: merge.DeleteMark}, {OnDelete: merge.DeleteSet}} {
		t.Run(shape.Name(), func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 0))
			m := mergetest.EveryRule(shape)
			columns := slices.DeleteFunc(slices.Clone(m.Columns), func(c merge.Column) bool { return c.Rule == merge.Sum || c.Rule == merge.Count })
			table := &sink.Table{Name: "all", Guard: sink.ByTrigger, Table: merge.NewTable(merge.Table{Name: "all", Key: m.Key, Columns: columns, OnDelete: m.OnDelete})}
			url := testdb.Schema(t)
			s := open(t, url, nil, sqlsink.Options{Connections: 4})
			bring(t, s, table)
			testdb.Exec(t, url, `alter table "all" add column extra int default 0`)
			live, err := s.Inspect(t.Context(), table)
			if err != nil {
				t.Fatal(err)
			}
			var changes []*merge.Change
			for h := range 15 {
				for _, c := range mergetest.Changes(rnd, table.Table, 8) {
					c.Key = merge.NewKey(fmt.Sprint(h, ".", c.Key))
					changes = append(changes, c)
				}
			}
			var wg sync.WaitGroup
			errs := make([]error, 8)
			added := make([]int64, len(errs))
			for w := range errs {
				wg.Go(func() {
					f := &freely{Sink: s, url: url, table: table, live: live, rnd: rand.New(rand.NewPCG(seed, uint64(w)+1))}
					errs[w] = f.write(t, changes, w)
					added[w] = f.added
				})
			}
			wg.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			got, err := s.Read(t.Context(), table, nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(plainRows(table, merge.Rows(table.Table, changes)), plainRows(table, got)); d != "" {
				t.Errorf("rows are not those of merge (-want +got):\n%s", d)
			}
			c := testdb.Connect(t, t.Context(), url)
			defer c.Close(t.Context())
			var want, sum int64
			for _, n := range added {
				want += n
			}
			if err := c.QueryRow(t.Context(), `select sum(extra) from "all"`).Scan(&sum); err != nil || sum != want || want == 0 {
				t.Errorf("people added %d, and %d is there, %v", want, sum, err)
			}
		})
	}
}

// plainRows show rows as an own writer would send them.
func plainRows(t *sink.Table, list []*merge.Row) []string {
	var out []string
	for _, r := range list {
		if x := *r; true {
			if !x.Gone() {
				x.DeletedAt = merge.NullValue
			}
			r = &x
		}
		var b strings.Builder
		for _, c := range plainColumns(t, r) {
			if c.value != nil {
				fmt.Fprintf(&b, "%s=%s ", c.name, *c.value)
			}
		}
		out = append(out, b.String())
	}
	slices.Sort(out)
	return out
}

// freely writes changes in forms by chance.
type freely struct {
	sink.Sink
	url   string
	table *sink.Table
	live  *sink.Live
	rnd   *rand.Rand
	added int64 // by hand
}

func (f *freely) write(t *testing.T, all []*merge.Change, w int) error {
	ctx := t.Context()
	c, err := pgx.Connect(ctx, f.url)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	var mine []*merge.Change
	for i, x := range all {
		if i%8 == w || f.rnd.IntN(4) == 0 {
			mine = append(mine, x)
		}
	}
	f.rnd.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
	for _, x := range mine {
		row := merge.Fold(f.table.Table, []*merge.Change{x})[0]
		for {
			err := f.one(ctx, c, row)
			var e *pgconn.PgError
			if errors.As(err, &e) && strings.HasPrefix(e.Code, "40") || sink.ActionOf(err) == sink.Retry && !errors.As(err, &e) && err != nil {
				continue
			}
			if err != nil {
				return err
			}
			break
		}
		if f.rnd.IntN(3) == 0 {
			if err := f.byHand(ctx, c, string(x.Key)); err != nil {
				return err
			}
		}
	}
	return nil
}

// byHand adds 1 to the column that is not mapped, as a person does.
func (f *freely) byHand(ctx context.Context, c *pgx.Conn, key string) error {
	for {
		tag, err := c.Exec(ctx, `update "all" set extra = extra + 1 where k = $1`, key)
		var e *pgconn.PgError
		if errors.As(err, &e) && strings.HasPrefix(e.Code, "40") {
			continue
		}
		f.added += tag.RowsAffected()
		return err
	}
}

func (f *freely) one(ctx context.Context, c *pgx.Conn, row *merge.Row) error {
	if f.rnd.IntN(5) == 0 {
		_, err := f.Apply(ctx, &sink.Batch{Groups: []sink.Group{{Table: f.table, Rows: []*merge.Row{row}}}})
		return err
	}
	return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		switch f.rnd.IntN(4) {
		case 0: // only what the event says
			return f.partly(ctx, tx, row)
		case 1: // everything, with nonsense in what is not meant
			return f.named(ctx, tx, row)
		case 2: // an UPDATE, if the row is there
			n, err := plainUpdate(ctx, tx, f.table, f.live, row)
			if err != nil || n >= 0 {
				return err
			}
			fallthrough
		default:
			_, err := plainUpsert(ctx, tx, f.table, f.live, []*merge.Row{row})
			return err
		}
	})
}

// partly sends only the columns that a row speaks of.
func (f *freely) partly(ctx context.Context, tx pgx.Tx, row *merge.Row) error {
	return f.send(ctx, tx, slices.DeleteFunc(plainColumns(f.table, row), func(c plainColumn) bool {
		i := f.table.Column(c.name)
		return c.value == nil && (i < 0 || !row.Cells[i].Set) // NULL may be what it says
	}))
}

// named sends every column, and names those that are meant: the others hold
// something else, under versions that would win.
func (f *freely) named(ctx context.Context, tx pgx.Tx, row *merge.Row) error {
	columns := plainColumns(f.table, row)
	said := map[string]bool{}
	scopes := map[string]bool{}
	for i, v := range row.Scopes {
		scopes[f.table.Scopes()[i]] = v != ""
	}
	var meant []string
	for i := range f.table.Columns {
		c := &f.table.Columns[i]
		if c.Rule == merge.Latest && scopes[c.Scope] || c.Rule != merge.Latest && row.Cells[i].Set {
			meant = append(meant, c.Name)
			said[c.Name], said[compile.FirstColumn(c.Name)], said[compile.ScopeColumn(c.Scope)] = true, true, true
		}
	}
	for i, c := range columns[len(f.table.Key):] {
		if nonsense := map[string]string{"a": "zzz", "b": "99999", "p": "zzz", "own": "zzz", "f": "zzz", "m": "99999", "n": "-99999", "x": "zzz", "l": "read", "u": "{zzz}", "topmost": "99999",
			"row_version": "9", "p_version": "9", "own_version": "9", "f__first": "!"}[c.name]; nonsense != "" && !said[c.name] {
			columns[len(f.table.Key)+i].value = &nonsense
		}
	}
	if _, err := tx.Exec(ctx, "select set_config('hookfold.set', $1, true)", "{"+strings.Join(meant, ",")+"}"); err != nil {
		return err
	}
	return f.send(ctx, tx, columns)
}

func (f *freely) send(ctx context.Context, tx pgx.Tx, columns []plainColumn) error {
	var names, values, set []string
	var args []any
	for i, c := range columns {
		name := pgx.Identifier{c.name}.Sanitize()
		names = append(names, name)
		values = append(values, fmt.Sprintf("$%d::text::%s", i+1, f.live.Column(c.name).Type))
		set = append(set, name+" = excluded."+name)
		args = append(args, c.value)
	}
	_, err := tx.Exec(ctx, fmt.Sprintf("insert into %s (%s) values (%s) on conflict (k) do update set %s", compile.QuoteTable(f.table.Name), strings.Join(names, ", "), strings.Join(values, ", "), strings.Join(set, ", ")), args...)
	return err
}
