package daemon

import (
	"context"
	"fmt"
	"sync"

	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// rulesMark names the mark that keeps by which rules the rows of a table were
// written.
func rulesMark(t *mapping.Table) string { return t.Target + "/rules/" + t.Config.Text }

// BrokenRules tells of each table of a plan whose rows were written by rules
// that its rules do not go with: why, and what to do. A journal that has no such
// memory knows of none.
func BrokenRules(ctx context.Context, plan *mapping.Plan, j journal.Journal) (map[*mapping.Table]string, error) {
	broken := map[*mapping.Table]string{}
	marks, err := marksOf(ctx, j)
	if err != nil {
		return nil, err
	}
	for _, t := range plan.Tables {
		was, err := mapping.ParseRules(marks[rulesMark(t)])
		if marks[rulesMark(t)] == "" || err != nil {
			continue
		}
		if why := t.Rules().Broken(was); why != "" {
			broken[t] = fmt.Sprintf("%s: %s, and its rows were written by the former rule. To write them anew %s%s", t.Config.Text, why, mapping.RebuildHint, t.Config.Text)
		}
	}
	return broken, nil
}

func marksOf(ctx context.Context, j journal.Journal) (map[string]string, error) {
	l, ok := j.(journal.Lanes)
	if !ok {
		return nil, nil
	}
	return l.Marks(ctx)
}

// KeepRules remembers that the rows of tables are written by the rules of the
// config from now on.
func KeepRules(ctx context.Context, j journal.Journal, tables ...*mapping.Table) error {
	l, ok := j.(journal.Lanes)
	if !ok {
		return nil
	}
	marks, err := l.Marks(ctx)
	if err != nil {
		return err
	}
	for _, t := range tables {
		if text := t.Rules().Text(); marks[rulesMark(t)] != text {
			if err := l.SetMark(ctx, rulesMark(t), text); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkRules finds the tables that are not to be written until they are rebuilt,
// and remembers the rules of all others.
func (d *Daemon) checkRules(ctx context.Context) error {
	broken, err := BrokenRules(ctx, d.plan, d.journal)
	if err != nil {
		return err
	}
	var sound []*mapping.Table
	d.unruly = map[string]*unruly{}
	for _, t := range d.plan.Tables {
		why, is := broken[t]
		if !is {
			sound = append(sound, t)
			continue
		}
		d.o.Log.Error("a table is not written until it is rebuilt; its events wait. "+why, "table", t.Config.Text)
		u := d.unruly[t.Target]
		if u == nil {
			u = &unruly{journal: d.journal, why: map[*merge.Table]string{}, tables: map[*merge.Table]*mapping.Table{}}
			d.unruly[t.Target] = u
		}
		u.why[t.Table.Table], u.tables[t.Table.Table] = why, t
	}
	return KeepRules(ctx, d.journal, sound...)
}

// unruly is a sink some of whose tables are not to be written, until somebody has
// rebuilt them.
type unruly struct {
	sink.Sink
	journal journal.Journal

	mu     sync.Mutex
	why    map[*merge.Table]string
	tables map[*merge.Table]*mapping.Table
}

// Apply refuses rows of these tables: their events wait.
func (u *unruly) Apply(ctx context.Context, b *sink.Batch) (*sink.Result, error) {
	var rows []sink.RowError
	refused := ""
	for _, g := range b.Groups {
		why := u.refuses(ctx, g.Table.Table)
		if why == "" {
			continue
		}
		refused = why
		for _, r := range g.Rows {
			rows = append(rows, sink.RowError{RowRef: sink.RowRef{Table: g.Table, Row: r}, Err: &sink.Error{Action: sink.Wait, Message: why}})
		}
	}
	switch {
	case rows != nil:
		return nil, &sink.BatchError{Rows: rows}
	case refused != "":
		return nil, &sink.Error{Action: sink.Wait, Message: refused}
	}
	return u.Sink.Apply(ctx, b)
}

// refuses tells why a table is not written, "" if it is. It looks each time
// whether somebody has rebuilt it.
func (u *unruly) refuses(ctx context.Context, t *merge.Table) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.why[t] == "" {
		return ""
	}
	marks, err := marksOf(ctx, u.journal)
	for x, of := range u.tables {
		if err == nil && marks[rulesMark(of)] == of.Rules().Text() {
			delete(u.why, x)
		}
	}
	return u.why[t]
}

// Known is sink.Knower's.
func (u *unruly) Known(ctx context.Context, t *sink.Table, keys []merge.Key) ([]bool, error) {
	if k, ok := u.Sink.(sink.Knower); ok {
		return k.Known(ctx, t, keys)
	}
	rows, err := u.Read(ctx, t, keys)
	out := make([]bool, len(keys))
	for i := range rows {
		out[i] = rows[i] != nil
	}
	return out, err
}
