package pipeline

import (
	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
)

// Touched calls f with the hash of each row that a change is about, for
// journal.Find: its own, the parents that it makes, the identities that it
// links. What a complete list is about is its group.
func Touched(c *merge.Change, f func(row uint32)) {
	if c.Replaces {
		f(GroupHash(c.Table, c.Key))
	} else {
		f(RowHash(c.Table, c.Key))
	}
	for _, p := range c.Parents {
		if !p.Wait {
			f(RowHash(p.Table, p.Key))
		}
	}
	for _, l := range c.Links {
		f(RowHash(c.Table, merge.NewKey(l.Old)))
		f(RowHash(c.Table, merge.NewKey(l.New)))
	}
}

// RowHash is the hash of a row's name.
func RowHash(t *merge.Table, k merge.Key) uint32 {
	return fnv(fnv(fnvOffset, t.Name+"\x00"), string(k))
}

// GroupHash is the hash of the name of a group of rows.
func GroupHash(t *merge.Table, group merge.Key) uint32 {
	return fnv(fnv(fnvOffset, t.Name+"\x00\x00"), string(group))
}

// FNV-1a, https://www.rfc-editor.org/rfc/rfc9923, written out so that a text
// need not be copied.
const (
	fnvOffset = 2166136261
	fnvPrime  = 16777619
)

func fnv(h uint32, s string) uint32 {
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * fnvPrime
	}
	return h
}

// touch notes what a change is about.
func (r *Runner) touch(w *work, p event.Position, c *merge.Change) {
	if r.o.Plan == 0 {
		return
	}
	Touched(c, func(row uint32) { w.touches = append(w.touches, journal.Touch{Row: row, Position: p}) })
}

// touches are those of a batch of the journal, nil if rows are not indexed.
func (r *Runner) touches(rows []journal.Touch) *journal.Touches {
	if r.o.Plan == 0 {
		return nil
	}
	return &journal.Touches{Plan: r.o.Plan, Rows: rows}
}
