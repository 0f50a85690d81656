package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// What a row may depend on, beside its events.
const (
	onOrder    = "the order of arrival"
	onReceipt  = "how often and when events arrive"
	onPresence = "whether the row is there when events arrive"
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
	var bad, on []string
	for _, v := range columns {
		if !v.OrderFree {
			bad = append(bad, v.Column)
			if !slices.Contains(on, v.On) {
				on = append(on, v.On)
			}
		}
	}
	unsteady := unsteady(t)
	switch {
	case unsound || broken:
		whole.OrderFree, whole.On, whole.Because, whole.Do, whole.fault = false, "more than its events", "its config has errors", "mend them", true
	case unsteady != "":
		whole.OrderFree, whole.On, whole.Because, whole.Do = false, onReceipt, unsteady, "use what is in the event"
	case arrivals(t) != "":
		whole.OrderFree, whole.On = false, onOrder
		whole.Because = fmt.Sprintf("the version in %s is the order of arrival, so that whether a row is deleted depends on it", arrivals(t))
		whole.Do = "put a time or a counter of the event in version:"
	case len(bad) > 0:
		whole.OrderFree, whole.On, whole.Because, whole.Do = false, and(on), and(bad)+" "+plural(len(bad), "does", "do"), "see there"
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

// changes tells whether an expression may have another value each time an event
// arrives.
func changes(m *mapping.Mapping, e *mapping.Expr) bool {
	return e.Reads&(expr.Position|expr.FetchedAt) != 0 || e.Reads&expr.Received != 0 && !m.Source.HasID()
}

// unsteady tells which mappings may take an event one time and not another, or
// be about another row each time; "" if none does.
func unsteady(t *mapping.Table) string {
	var out []string
	for _, m := range t.Mappings {
		if i := slices.IndexFunc(m.Deciding(), func(e *mapping.Expr) bool { return changes(m, e) }); i >= 0 {
			out = append(out, fmt.Sprintf("%s in %s", m.Deciding()[i].Text, place(m)))
		}
	}
	if out == nil {
		return ""
	}
	return and(out) + " may be another each time an event arrives, and decides which rows it is about"
}

// Contested adds to the verdicts of a table what only its live schema tells:
// values that a unique index keeps apart belong to the row that comes first,
// until that lets go of them; and what triggers do is not known.
func (r *Report) Contested(t *mapping.Table, live *sink.Live) {
	if names := foreign(live.Triggers); names != nil {
		for i := range r.Verdicts {
			if v := &r.Verdicts[i]; v.Table == t.Config.Text && v.Column == "" && v.OrderFree {
				v.Because += fmt.Sprintf("; except what %s %s %s of a row, which is not judged", plural(len(names), "trigger", "triggers"), and(names), plural(len(names), "makes", "make"))
			}
		}
	}
	for _, x := range contests(t, live) {
		for i := range r.Verdicts {
			v := &r.Verdicts[i]
			if v.Table == t.Config.Text && (v.Column == "" || slices.Contains(x.values, v.Column)) && v.OrderFree {
				v.Because += "; except " + x.String()
			}
		}
	}
}

// foreign are the names of triggers that are not a guard's.
func foreign(triggers []sink.Trigger) []string {
	var out []string
	for _, g := range triggers {
		if g.Enabled && g.Before && !compile.IsGuard(g.Name) {
			out = append(out, g.Name)
		}
	}
	return out
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
		} else if unsteady(t) != "" || arrivals(t) != "" {
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
		v.OrderFree, v.On = false, onPresence
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
			v.OrderFree, v.On = false, onOrder
			v.Because = fmt.Sprintf("its version in %s is the order of arrival", place(m))
			v.Do = "put a time or a counter of the event in version:, or use ladder, min or max"
		case changes(m, a.Expr) && col.Rule != merge.Min:
			v.OrderFree, v.On = false, onReceipt
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
