package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Line renders an entry for a person, at a time:
//
//	dead  calendly #1042 invitee.created → booking: key ref is null (…)
//	wait  shop #7 evt_1 invoice.paid → lane billing: answered 500
//	wait  shop #31 invoice.created → invoice id=in_1: waits for customer id=cus_1, at most 24 h (since 4 s)
func Line(e journal.Entry, now time.Time) string { return line(e, now, 1) }

// Lines renders entries as Line does, and tells how many of them wait for the
// same.
func Lines(entries []journal.Entry, now time.Time) []string {
	type thing struct{ consumer, on string }
	crowd := map[thing]int{}
	for _, e := range entries {
		if e.State == journal.Waiting && e.On != "" {
			crowd[thing{e.Consumer, e.On}]++
		}
	}
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = line(e, now, crowd[thing{e.Consumer, e.On}])
	}
	return out
}

func line(e journal.Entry, now time.Time, crowd int) string {
	var b strings.Builder
	word := string(e.State)
	if e.State == journal.Waiting {
		word = "wait"
	}
	fmt.Fprintf(&b, "%-5s %s %s", word, e.Source, e.Ref)
	for _, s := range []string{e.ID, e.Type} {
		if s != "" {
			b.WriteString(" " + clip(s))
		}
	}
	lane, ofLane := strings.CutPrefix(e.Consumer, mapping.LanePrefix)
	switch {
	case e.Table != "":
		b.WriteString(" → ")
	case ofLane:
		b.WriteString(" → lane " + lane + ": ")
	default:
		b.WriteString(": ")
	}
	reasons := strings.Split(e.Reason, reasonSeparator)
	b.WriteString(strings.Join(reasons[:min(len(reasons), shownReasons)], reasonSeparator))
	if more := len(reasons) - shownReasons; more > 0 {
		fmt.Fprintf(&b, "%sand %d more", reasonSeparator, more)
	}
	if e.State != journal.Waiting {
		return b.String()
	}
	var about []string
	if since := now.Sub(e.Since); !e.Since.IsZero() && since >= time.Second {
		about = append(about, "since "+short(since))
	}
	if crowd > 1 {
		about = append(about, fmt.Sprintf("%d events wait for it", crowd))
	}
	if about != nil {
		b.WriteString(" (" + strings.Join(about, "; ") + ")")
	}
	return b.String()
}

// short renders a length of time in its greatest unit or two: 4 s, 24 h, 3 h 5 min.
func short(d time.Duration) string {
	d = d.Round(time.Second)
	var out []string
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if n := d / u.of; n > 0 && len(out) < 2 {
			out = append(out, fmt.Sprintf("%d %s", n, u.name))
			d -= n * u.of
		}
	}
	if out == nil {
		return "0 s"
	}
	return strings.Join(out, " ")
}

func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

// faultReason says what is wrong with a change that cannot be made, with its
// place first.
func faultReason(f mapping.Fault) string {
	place := f.Table
	if f.Column != "" {
		place += "." + f.Column
	}
	if place == "" || strings.HasPrefix(f.Reason, place+":") {
		return f.Reason
	}
	return place + ": " + f.Reason
}

// judge says what becomes of a change that a sink has refused by itself.
func (r *Runner) judge(c *merge.Change, err error) verdict {
	v := verdict{state: journal.Dead, table: c.Table.Name, key: c.Table.Show(c.Key)}
	err = first(err)
	message := err.Error()
	action := sink.ActionOf(err)
	var e *sink.Error
	if errors.As(err, &e) {
		v.on = e.On
	}
	name := c.Table.Name + " " + v.key
	if strings.HasPrefix(message, c.Table.Name+".") || strings.HasPrefix(message, c.Table.Name+":") || strings.HasPrefix(message, name) {
		name = "" // the message begins with the place
	}
	if action != sink.Reject { // also Retry: the target takes others, but not this one
		v.state = journal.Waiting
		v.reason = place(name, message)
		v.needs = r.needs(c, e)
		return v
	}
	v.on = ""
	v.reason = fmt.Sprintf("%s. When it is put right run: hookfold dead retry %d", strings.TrimSuffix(place(name, message), "."), c.From.Position)
	return v
}

// needs are the rows that may end a wait that the target has asked for: the row
// of the change, and what the error names.
func (r *Runner) needs(c *merge.Change, e *sink.Error) []need {
	about := r.about(c)
	n := need{about: about, row: about}
	if e == nil {
		return []need{n}
	}
	id, isRow := r.rowNamed(e.On)
	table := slices.IndexFunc(r.o.Tables, func(t *sink.Table) bool { return t.Table.Name == e.On })
	switch {
	case isRow && id == about:
	case isRow && e.Why == sink.UniqueValue:
		n.row, n.holder = id, true
	case isRow:
		n.row, n.ask = id, askKnown
	case table >= 0:
		n.row, n.anyRow = rowID{table: table}, true
	case e.Why == sink.UniqueValue:
		n.row, n.anyRow = rowID{table: about.table}, true
	}
	return []need{n}
}

// rowNamed finds the row that a text names: a table of the config and its key as
// Table.Show gives it.
func (r *Runner) rowNamed(on string) (rowID, bool) {
	for i, t := range r.o.Tables {
		text, ok := strings.CutPrefix(on, t.Table.Name+" ")
		if !ok {
			continue
		}
		var parts []string
		rest := text
		for k := range t.Key {
			mark := t.Key[k].Name + "="
			if k > 0 {
				mark = ", " + mark
			}
			var before string
			if before, rest, ok = strings.Cut(rest, mark); !ok {
				break
			}
			if k > 0 {
				parts = append(parts, before)
			}
		}
		if id := (rowID{i, merge.NewKey(append(parts, rest)...)}); ok && t.Show(id.key) == text {
			return id, true
		}
	}
	return rowID{}, false
}

func place(name, text string) string {
	if name == "" {
		return text
	}
	return name + ": " + text
}

// absent says that a change waits for its row.
func (r *Runner) absent(c *merge.Change) verdict {
	key := c.Table.Show(c.Key)
	return verdict{
		state: journal.Waiting, table: c.Table.Name, key: key, on: c.Table.Name + " " + key,
		needs:  []need{{about: r.about(c), row: r.about(c), ask: askRow}},
		reason: fmt.Sprintf("%s %s: waits for this row, which the mapping does not insert (if_missing: wait)", c.Table.Name, key),
	}
}

// name is what a person knows an event by.
func (w *work) name(u unit) string {
	if it := &w.items[u.item]; it.id != "" {
		return clip(it.id)
	}
	return w.items[u.item].ref.String()
}

// entries gives what is unsettled, to be recorded, and counts.
func (r *Runner) entries(w *work, now time.Time, random func() float64) []journal.Entry {
	var out []journal.Entry
	w.unsettled = nil
	for i := range w.items {
		it := &w.items[i]
		if it.state == "" {
			w.stats.Settled++
			continue
		}
		reason := it.reason
		if it.more >= maxReasons {
			reason += fmt.Sprintf("%sand %d more", reasonSeparator, it.more-maxReasons+1)
		}
		e := journal.Entry{
			Consumer: r.o.Target, Ref: it.ref, State: it.state, Reason: reason, On: it.on,
			Source: it.source, ID: it.id, Type: it.typ, Table: it.table, Key: it.key,
			Since: now.UTC(), Attempts: 1,
		}
		was := journal.State("")
		if p := it.prior; p != nil {
			e.Attempts = p.Attempts + 1
			if it.ref.Index == p.Ref.Index || p.Ref.Index == event.WholeDelivery {
				e.Since, was = p.Since, p.State
			}
		}
		switch it.state {
		case journal.Waiting:
			e.Next = now.Add(r.o.Patience.Later(e.Attempts, random())).UTC()
			if len(it.wants) > 0 && len(it.needs) == 0 {
				e.Attempts, e.Next = it.tries, it.next.UTC()
			}
			if !it.until.IsZero() && it.until.Before(e.Next) {
				e.Next = it.until.UTC()
			}
			if was != journal.Waiting {
				w.stats.Waited++
			}
		case journal.Dead:
			if was != journal.Dead {
				w.stats.Died++
			}
		}
		out = append(out, e)
		w.unsettled = append(w.unsettled, i)
	}
	return out
}
