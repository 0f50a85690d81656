package compile

import (
	"fmt"
	"slices"
	"strings"
)

// What PostgreSQL and SQLite say alike.

// from is what an upsert takes its rows from: its source, or the parameters.
func (u *upsert) from(params string) string {
	if u.source == "" {
		return params
	}
	return "(" + u.source + ") as p"
}

// rest says which rows of the source an upsert takes, in which order.
func (u *upsert) rest() string {
	if u.where == "" {
		return u.order
	}
	return "\nwhere " + u.where + u.order
}

// onConflict writes what becomes of rows that are there.
func onConflict(d dialect, u *upsert) string {
	sql := "\non conflict (" + strings.Join(u.key, ", ") + ") do "
	if len(u.set) == 0 {
		return sql + "nothing"
	}
	sql += "update set\n    " + listed(d, u.set)
	switch {
	case u.guard != "" && u.differs != "":
		return sql + "\nwhere " + u.guard + "\n  and " + u.differs
	case u.guard+u.differs != "":
		return sql + "\nwhere " + u.guard + u.differs
	}
	return sql
}

// updateFrom writes an update that joins a subquery.
func updateFrom(d dialect, u *update) string {
	return fmt.Sprintf("update %s as t\nset %s\nfrom %s\nwhere %s", u.table, listed(d, u.set), u.from,
		strings.Join(slices.DeleteFunc([]string{u.on, u.guard, u.differs}, func(s string) bool { return s == "" }), "\n  and "))
}

// newerRow compares lists as rows.
func newerRow(a, b []string) string {
	return fmt.Sprintf("(%s)\n    >= (%s)", strings.Join(a, ", "), strings.Join(b, ", "))
}
