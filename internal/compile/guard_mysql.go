package compile

import (
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// mysqlGuard writes the triggers for MySQL and MariaDB. ON DUPLICATE KEY UPDATE
// runs the one before an insert, and then, if the key is there, the one before an
// update with the stored row and the one that comes. The first leaves
// @hookfold_upsert for the second: the row's key, and the time of the statement,
// which is the same in both.
func mysqlGuard(t *sink.Table, r *relation, live *sink.Live) *Guard {
	d := mysql{}
	name := func(event string) string {
		return besideTable(t.Name, func(table string) string { return fitName("hookfold_guard_" + table + "_" + event) })
	}
	g := &Guard{Parts: make([]GuardPart, 1)}
	for _, x := range []struct {
		event, when, body string
	}{
		{"update", "before update", mysqlUpdate(newGuardBody(d, mysqlTrigger{}, t, r, live))},
		{"insert", "before insert", mysqlInsert(newGuardBody(d, mysqlTrigger{}, t, r, live))},
		{"done", "after insert", "set @hookfold_upsert = null"},
	} {
		trigger := name(x.event)
		drop := "drop trigger if exists " + quoteTable(d, trigger)
		g.Parts[0].Triggers = append(g.Parts[0].Triggers, sink.Trigger{Name: TableName(trigger), Body: x.body, Enabled: true, Before: x.event != "done"})
		g.Install = append(g.Install, drop, fmt.Sprintf("create trigger %s %s on %s for each row\n%s", quoteTable(d, trigger), x.when, quoteTable(d, t.Name), x.body))
		g.Remove = append(g.Remove, drop)
	}
	return g
}

// mysqlGuardRefuses tells what a trigger cannot do on MySQL alone.
func mysqlGuardRefuses(t *sink.Table, instead string) []sink.Refusal {
	var out []sink.Refusal
	if t.Occupied {
		out = append(out, sink.Refusal{Part: sink.Guarding, Text: "the guard trigger of MySQL does not show occupants in their row. " + instead})
	}
	if t.OnDelete != merge.DeleteNone {
		out = append(out, sink.Refusal{Part: sink.Guarding, Text: "a delete of a row that is not there would have to leave out the INSERT, which a trigger of MySQL cannot. " + instead})
	}
	for _, c := range t.Columns {
		if c.Rule == merge.Union {
			out = append(out, sink.Refusal{Part: sink.Guarding, Text: fmt.Sprintf("column %s: union joins lists of JSON, which MySQL and MariaDB write differently, and a trigger is of one form for both. %s", c.Name, instead)})
		}
	}
	return out
}

// mysqlTrigger is the language of triggers.
type mysqlTrigger struct{}

func (mysqlTrigger) comes(name string) string { return "new." + mysql{}.quote(name) }
func (mysqlTrigger) was(name string) string   { return "old." + mysql{}.quote(name) }

func (x mysqlTrigger) assign(name, expr string) string {
	return "set " + x.comes(name) + " = " + expr + ";"
}

func (mysqlTrigger) given() string { return "nullif(@hookfold_set, '') is not null" }

func (mysqlTrigger) names(list []string, all bool) string {
	var out []string
	for _, n := range list {
		out = append(out, "find_in_set("+mysql{}.literal(n)+", replace(@hookfold_set, ' ', '')) > 0")
	}
	if all {
		return "(" + strings.Join(out, " and ") + ")"
	}
	return "(" + strings.Join(out, " or ") + ")"
}

func (mysqlTrigger) elseif() string { return "elseif" }

func (mysqlTrigger) refuse(text, _ string) string {
	return "set @hookfold_error = left(" + text + ", 128);\nsignal sqlstate '45000' set message_text = @hookfold_error;"
}

// mysqlStatement is what names of rows begin with: the statement and the table.
func mysqlStatement(w *guardBody) string {
	return "cast(concat(now(6), ' ', " + w.d.literal(w.t.Name+" ") + ") as binary)"
}

// mysqlRow names the row that a statement is about.
func mysqlRow(w *guardBody, of func(field) string) string {
	parts := []string{"now(6)", w.d.literal(w.t.Name)}
	for _, k := range w.r.key {
		parts = append(parts, "hex("+of(k)+")")
	}
	return "cast(concat_ws(' ', " + strings.Join(parts, ", ") + ") as binary)"
}

// mysqlBlock writes the body of a trigger. It has no comments: some clients leave
// them out, and the trigger would not be known again.
func mysqlBlock(w *guardBody, do func()) string {
	w.line("hookfold: begin")
	w.within(func() {
		w.when("@hookfold_guard = 'off'", func() { w.line("leave hookfold;") })
		do()
	})
	w.b.WriteString("end")
	return w.b.String()
}

func mysqlInsert(w *guardBody) string {
	return mysqlBlock(w, func() {
		w.line("set @hookfold_upsert = " + mysqlRow(w, w.in) + ";")
		w.meant(w.clear)
		w.fresh()
		w.touched()
	})
}

func mysqlUpdate(w *guardBody) string {
	return mysqlBlock(w, func() {
		byHand := "not (" + w.given() + ") and coalesce(@hookfold_guard, '') <> 'on'"
		if moved := w.moved(); moved != "" {
			byHand += "\n    and not (" + moved + ")"
		}
		w.line("if @hookfold_upsert = " + mysqlRow(w, w.at) + " then")
		w.line("    set @hookfold_upsert = null;\nelseif locate(" + mysqlStatement(w) + ", @hookfold_upsert) = 1 then")
		w.within(func() {
			w.line(w.refuse(w.d.literal("another row holds a unique value of the one that is inserted, and would be overwritten"), ""))
		})
		w.line("elseif " + byHand + " then\n    leave hookfold;\nend if;")
		w.meant(w.keep)
		w.join()
		w.touch()
	})
}
