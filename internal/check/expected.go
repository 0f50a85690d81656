package check

import (
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/merge"
)

func canonical(header string) string { return textproto.CanonicalMIMEHeaderKey(header) }

// want is an expected value of a column.
type want struct {
	name  string
	value merge.Value
}

// rows compares the rows of a table with those that are expected: exactly these.
func (r *testRun) rows(t *mapping.Table, expected *config.Expected, rows []*merge.Row) {
	left := slices.Clone(rows)
	for _, literals := range expected.Rows {
		wants, ok := r.wants(t, literals)
		if !ok {
			continue
		}
		i := closest(t.Table.Table, wants, left)
		if i < 0 {
			r.differ("%s: there is no row %s", expected.Table.Text, showWants(wants))
			continue
		}
		for _, w := range wants {
			if got := valueOf(t.Table.Table, left[i], w.name); got != w.value {
				r.differ("%s %s: %s is %s, expected %s", expected.Table.Text, t.Table.Table.Show(left[i].Key), w.name, got, w.value)
			}
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, row := range left {
		r.differ("%s: there is a row %s that is not expected", expected.Table.Text, t.Table.Table.Show(row.Key))
	}
}

// wants reads the expected values by their columns' types.
func (r *testRun) wants(t *mapping.Table, literals []config.Literal) ([]want, bool) {
	var out []want
	ok := true
	for _, l := range literals {
		typ, err := typeOf(t.Table.Table, l.Column.Text)
		w := want{name: l.Column.Text}
		if err == nil && !l.Null {
			w.value, err = merge.ParseValue(typ, literalText(typ, l.Text))
		}
		if err != nil {
			r.differ("%s.%s: %v", t.Config.Text, l.Column.Text, err)
			ok = false
			continue
		}
		out = append(out, w)
	}
	return out, ok
}

// literalText lets a date stand for the beginning of its day in UTC.
func literalText(t merge.Type, s string) string {
	if t.Kind == merge.Timestamp && len(s) == len("2006-01-02") {
		return s + "T00:00:00Z"
	}
	return s
}

// deletedAt is the column that on_delete: mark fills.
const deletedAt = "deleted_at"

func typeOf(t *merge.Table, name string) (merge.Type, error) {
	for _, k := range t.Key {
		if k.Name == name {
			return k.Type, nil
		}
	}
	if name == deletedAt && t.OnDelete == merge.DeleteMark {
		return merge.Type{Kind: merge.Timestamp}, nil
	}
	if i := t.Column(name); i >= 0 {
		if t.Columns[i].Rule == merge.Touch {
			return merge.Type{}, fmt.Errorf("a touch column has the time of the last write, which a test cannot know")
		}
		return t.Columns[i].Type, nil
	}
	return merge.Type{}, fmt.Errorf("is not a column of %s", t.Name)
}

// closest finds the row that is meant: with the same key, as far as it is
// given, and the most equal values.
func closest(t *merge.Table, wants []want, rows []*merge.Row) int {
	best, most := -1, -1
	for i, row := range rows {
		equal, sameKey := 0, true
		for _, w := range wants {
			same := valueOf(t, row, w.name) == w.value
			if same {
				equal++
			}
			isKey := slices.ContainsFunc(t.Key, func(k merge.KeyColumn) bool { return k.Name == w.name })
			sameKey = sameKey && (same || !isKey)
		}
		if sameKey && equal > most {
			best, most = i, equal
		}
	}
	return best
}

// valueOf returns a column's value in a row; one that nothing has set is NULL.
func valueOf(t *merge.Table, row *merge.Row, name string) merge.Value {
	for i, k := range t.Key {
		if k.Name == name {
			v, err := merge.ParseValue(k.Type, row.Key.Parts()[i])
			if err != nil {
				return merge.NullValue
			}
			return v
		}
	}
	if name == deletedAt && t.OnDelete == merge.DeleteMark {
		if row.Gone() {
			return row.DeletedAt
		}
		return merge.NullValue
	}
	if i := t.Column(name); i >= 0 && row.Cells[i].Set {
		return row.Cells[i].Value
	}
	return merge.NullValue
}

func showWants(wants []want) string {
	var parts []string
	for _, w := range wants {
		parts = append(parts, w.name+"="+w.value.String())
	}
	return strings.Join(parts, ", ")
}
