package compile

import (
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/merge"
)

// pages adds the statements that read every row a page at a time, in the order
// that the database has of keys, so that its index gives it.
func (r *Reading) pages(d dialect, key []field) {
	r.First, r.Next = d.page(r.All, key, false), d.page(r.All, key, true)
}

// order is the ORDER BY of a page.
func order(d dialect, key []field) string {
	names := make([]string, len(key))
	for i, f := range key {
		names[i] = at(d, f)
	}
	return "\norder by " + strings.Join(names, ", ")
}

// behind says that a row comes after the one whose key the parameters give, as
// one comparison of both keys.
func behind(d dialect, key []field, text func(n int, f field) string) string {
	var columns, params []string
	for i, f := range key {
		columns = append(columns, at(d, f))
		params = append(params, text(i+1, f))
	}
	return fmt.Sprintf("\nwhere (%s) > (%s)", strings.Join(columns, ", "), strings.Join(params, ", "))
}

func (d postgres) page(all string, key []field, after bool) string {
	n := 1
	if after {
		all += behind(d, key, func(n int, f field) string { return fmt.Sprintf("$%d::text::%s", n, castType(f.Live)) })
		n += len(key)
	}
	return all + order(d, key) + fmt.Sprintf("\nlimit $%d::int", n)
}

func (d sqlite) page(all string, key []field, after bool) string {
	n := 1
	if after {
		all += behind(d, key, func(n int, f field) string {
			switch f.Type.Kind {
			case merge.Int, merge.Bool:
				return fmt.Sprintf("cast(?%d as integer)", n)
			case merge.Float:
				return fmt.Sprintf("cast(?%d as real)", n)
			case merge.Bytes:
				return fmt.Sprintf("unhex(substr(?%d, 3))", n)
			}
			return fmt.Sprintf("?%d", n)
		})
		n += len(key)
	}
	return all + order(d, key) + fmt.Sprintf("\nlimit ?%d", n)
}
