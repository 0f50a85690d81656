package pipeline

import (
	"errors"
	"fmt"
	"log/slog"
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
//	wait  shop #31 invoice.created → invoice id=in_1: waits for customer id=cus_1 (since 4s)
func Line(e journal.Entry, now time.Time) string {
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
	if e.Table != "" {
		b.WriteString(" → ")
	} else {
		b.WriteString(": ")
	}
	b.WriteString(e.Reason)
	if since := now.Sub(e.Since); e.State == journal.Waiting && !e.Since.IsZero() && since >= time.Second {
		fmt.Fprintf(&b, " (since %s)", since.Round(time.Second))
	}
	return b.String()
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
	if strings.HasPrefix(message, c.Table.Name+".") || strings.HasPrefix(message, c.Table.Name+":") {
		name = "" // the message begins with the place
	}
	if action != sink.Reject { // also Retry: the target takes others, but not this one
		v.state = journal.Waiting
		v.reason = place(name, message)
		return v
	}
	v.reason = fmt.Sprintf("%s. When it is put right run: hookfold dead retry %d", strings.TrimSuffix(place(name, message), "."), c.From.Position)
	return v
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
		reason: fmt.Sprintf("%s %s: waits for this row, which the mapping does not insert (if_missing: wait)", c.Table.Name, key),
	}
}

// tellTie tells of two events that a version cannot tell apart.
func (r *Runner) tellTie(w *work, a, b unit) {
	x, y := a.change, b.change
	taken := w.name(a)
	if y.Version > x.Version {
		taken = w.name(b)
	}
	r.log.Line(slog.LevelWarn, "tie", func() string {
		return fmt.Sprintf("tie   %s → %s %s: two different events have the version %s (%s, %s); %s was taken, the same in every order. Make version finer.",
			w.items[b.item].source, y.Table.Name, y.Table.Show(y.Key), y.Version.Show(), w.name(a), w.name(b), taken)
	})
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
	for i := range w.items {
		it := &w.items[i]
		if it.state == "" {
			w.stats.Settled++
			continue
		}
		reason := it.reason
		if it.more >= maxReasons {
			reason += fmt.Sprintf("; and %d more", it.more-maxReasons+1)
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
			if was != journal.Waiting {
				w.stats.Waited++
			}
		case journal.Dead:
			if was != journal.Dead {
				w.stats.Died++
			}
		}
		out = append(out, e)
	}
	return out
}
