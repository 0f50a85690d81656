package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

func itoa(n int) string { return strconv.Itoa(n) }

// verdicts judges a table, given the problems found in it.
func (c *checker) verdicts(t *mapping.Table, found []config.Problem) {
	name := t.Config.Text
	whole := Verdict{Table: name, OrderFree: true}
	unsound := slices.ContainsFunc(found, func(p config.Problem) bool { return p.Severity == config.Error })
	broken := slices.ContainsFunc(t.Mappings, (*mapping.Mapping).Broken)
	var columns []Verdict
	for i := range t.Table.Table.Columns {
		columns = append(columns, c.column(t, i))
	}
	var bad []string
	for _, v := range columns {
		if !v.OrderFree {
			bad = append(bad, v.Column)
		}
	}
	switch {
	case unsound || broken:
		whole.OrderFree, whole.Because, whole.Do, whole.fault = false, "its config has errors", "mend them", true
	case arrivals(t) != "":
		whole.OrderFree = false
		whole.Because = fmt.Sprintf("the version in %s is the order of arrival, so that whether a row is deleted depends on it", arrivals(t))
		whole.Do = "put a time or a counter of the event in version:"
	case len(bad) > 0:
		whole.OrderFree, whole.Because, whole.Do = false, and(bad)+" "+plural(len(bad), "does", "do"), "see there"
	case len(columns) == 0 && t.Remembers():
		whole.Because = "a row is there or not, as the newest says that there is of it"
	case len(columns) == 0:
		whole.Because = "rows are only inserted, by key, and never changed"
	case t.Chained:
		whole.Because = "the identities of a chain share the row of the first, which shows the last one, in whatever order their links come"
	case t.Table.Table.Occupied:
		whole.Because = "each occupant has a record of its own, and the row shows the newest"
	default:
		whole.Because = "every column is a join of what the events say"
	}
	if whole.OrderFree {
		whole.Because += remembers(t)
	}
	c.list = append(c.list, whole)
	c.list = append(c.list, columns...)
}

// Contested adds to the verdicts of a table what only its live schema tells:
// values that a unique index keeps apart belong to the row that comes first,
// until that lets go of them.
func (r *Report) Contested(t *mapping.Table, live *sink.Live) {
	for _, x := range contests(t, live) {
		for i := range r.Verdicts {
			v := &r.Verdicts[i]
			if v.Table == t.Config.Text && (v.Column == "" || slices.Contains(x.values, v.Column)) && v.OrderFree {
				v.Because += "; except " + x.String()
			}
		}
	}
}

// Depends tells why rows of a table may depend on arrival though the config has
// no error: "" if they may not. Errors are no reason: what they lead to is a
// fault.
func (r *Report) Depends(t *mapping.Table, live *sink.Live) string {
	var out []string
	for _, v := range r.Verdicts {
		if v.Table != t.Config.Text || v.OrderFree || v.fault {
			continue
		}
		if v.Column != "" {
			out = append(out, v.Column+": "+v.Because)
		} else if len(out) == 0 && arrivals(t) != "" {
			out = append(out, v.Because)
		}
	}
	for _, x := range contests(t, live) {
		out = append(out, x.String())
	}
	return strings.Join(out, "; ")
}

// contest is a unique index that keeps apart more than the table's key does.
type contest struct {
	values []string
	index  string
}

func (x contest) String() string {
	return fmt.Sprintf("contested values of %s (unique index %s): the row that comes first has one until it lets go of it, and another waits", and(x.values), x.index)
}

func contests(t *mapping.Table, live *sink.Live) []contest {
	var key []string
	for _, k := range t.Key {
		key = append(key, k.Name)
	}
	var out []contest
	for _, u := range live.Uniques {
		var values []string
		for _, name := range u.Columns {
			if t.Column(name) >= 0 {
				values = append(values, name)
			}
		}
		if len(values) == 0 || !slices.ContainsFunc(key, func(k string) bool { return !slices.Contains(u.Columns, k) }) {
			continue // with the whole key in it, it keeps nothing more apart
		}
		out = append(out, contest{values, u.Name})
	}
	return out
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// column judges one column.
func (c *checker) column(t *mapping.Table, i int) Verdict {
	col := t.Table.Table.Columns[i]
	v := Verdict{Table: t.Config.Text, Column: col.Name, OrderFree: true}
	switch col.Rule {
	case merge.Touch:
		v.Because = "touch tells when the row last changed, and is compared with nothing"
		return v
	case merge.Max, merge.Min:
		v.Because = fmt.Sprintf("the %s value wins", map[merge.Rule]string{merge.Max: "greatest", merge.Min: "smallest"}[col.Rule])
	case merge.Ladder:
		v.Because = "the highest rung wins: " + strings.Join(col.Rungs, " < ")
	case merge.Union:
		v.Because = "the set only grows"
	case merge.First:
		v.Because = "the value of the oldest version stays"
	case merge.Latest:
		v.Because = "the newest version wins: " + c.versionText(t, i)
	case merge.Sum:
		v.Because = "each event is added once, by its identity"
	case merge.Count:
		v.Because = "each event is counted once, by its identity"
	case merge.Chain:
		v.Because = "it is the first identity of the row's chain, in whatever order the links come"
	case merge.Flag:
		v.Because = "it shows whether a delete is newer than all that was written"
	}
	v.Because += runsOn(t, &col) + waits(t, col.Name)
	if m := skips(t, i); m != nil {
		v.OrderFree = false
		v.Because = fmt.Sprintf("what %s says is lost if the row is not there yet (if_missing: skip)", place(m))
		v.Do = "say if_missing: wait or insert"
	}
	for _, m := range t.Mappings {
		a := m.Columns[i]
		if m.Broken() || a == nil || a.Expr == nil {
			continue
		}
		versioned := col.Rule == merge.Latest || col.Rule == merge.First
		switch {
		case versioned && arrival(m):
			v.OrderFree = false
			v.Because = fmt.Sprintf("its version in %s is the order of arrival", place(m))
			v.Do = "put a time or a counter of the event in version:, or use ladder, min or max"
		case a.Expr.Reads&(expr.Position|expr.Received) != 0 && !(col.Rule == merge.Min || m.Source.HasID() && a.Expr.Reads&expr.Position == 0):
			v.OrderFree = false
			v.Because = fmt.Sprintf("its value in %s is another each time the event arrives", place(m))
			v.Do = "use a time of the event, or merge: min"
		}
	}
	return v
}

func (c *checker) versionText(t *mapping.Table, i int) string {
	var texts []string
	for _, m := range t.Mappings {
		if m.Broken() || m.Columns[i] == nil {
			continue
		}
		var parts []string
		for _, p := range m.Version {
			parts = append(parts, p.Expr.Text)
		}
		if text := strings.Join(parts, ", then "); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; or ")
}
