package demo

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Verdict compares the rows of one table with the rows that package merge
// computes from the list of events, read from the database by plain SQL.
type Verdict struct {
	// Want counts the rows there must be. Right + Wrong + Missing = Want.
	Want, Right, Wrong, Missing int
	// Doubled counts keys with more than one row; they are among the wrong.
	Doubled int
	// Extra counts rows with a key that there must not be.
	Extra int
	// Rows are the rows as they live, by key; Diffs tells what is wrong, per
	// key.
	Rows  map[merge.Key][]row
	Diffs map[merge.Key]string
}

// OK says that every row is right.
func (v *Verdict) OK() bool { return v.Right == v.Want && v.Extra == 0 }

// row is the values of the mapped columns.
type row []merge.Value

func judge(ctx context.Context, db *sql.DB, t *sink.Table, want []*merge.Row) (*Verdict, error) {
	have, err := rowsOf(ctx, db, t)
	if err != nil {
		return nil, err
	}
	v := &Verdict{Want: len(want), Rows: have, Diffs: map[merge.Key]string{}}
	known := map[merge.Key]bool{}
	for _, w := range want {
		known[w.Key] = true
		switch rows := have[w.Key]; len(rows) {
		case 0:
			v.Missing++
			v.Diffs[w.Key] = "no row"
		case 1:
			if d := difference(t, rows[0], w); d != "" {
				v.Wrong++
				v.Diffs[w.Key] = d
			} else {
				v.Right++
			}
		default:
			v.Wrong++
			v.Doubled++
			v.Diffs[w.Key] = fmt.Sprintf("%d rows of one key", len(rows))
		}
	}
	for k := range have {
		if !known[k] {
			v.Extra++
		}
	}
	return v, nil
}

// difference names the columns that are not as they must be.
func difference(t *sink.Table, have row, want *merge.Row) string {
	var out []string
	for i, c := range t.Columns {
		if c.Rule != merge.Touch && have[i] != want.Cells[i].Value {
			out = append(out, fmt.Sprintf("%s is %s, not %s", c.Name, have[i], want.Cells[i].Value))
		}
	}
	return strings.Join(out, "; ")
}

// rowsOf reads a table by plain SQL.
func rowsOf(ctx context.Context, db *sql.DB, t *sink.Table) (map[merge.Key][]row, error) {
	var columns []string
	var types []merge.Type
	for _, k := range t.Key {
		columns, types = append(columns, `"`+k.Name+`"`), append(types, k.Type)
	}
	for _, c := range t.Columns {
		columns, types = append(columns, `"`+c.Name+`"`), append(types, c.Type)
	}
	rows, err := db.QueryContext(ctx, fmt.Sprintf(`select %s from "%s"`, strings.Join(columns, ", "), t.Name))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", t.Name, err)
	}
	defer rows.Close()
	out := map[merge.Key][]row{}
	for rows.Next() {
		cells := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, fmt.Errorf("read %s: %w", t.Name, err)
		}
		values := make(row, len(cells))
		for i, c := range cells {
			if !c.Valid {
				continue
			}
			if values[i], err = merge.ParseValue(types[i], c.String); err != nil {
				return nil, fmt.Errorf("read %s.%s: %w", t.Name, columns[i], err)
			}
		}
		key := make([]string, len(t.Key))
		for i := range key {
			key[i] = values[i].Text()
		}
		k := merge.NewKey(key...)
		out[k] = append(out[k], values[len(key):])
	}
	return out, rows.Err()
}
