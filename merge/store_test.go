package merge_test

import (
	"maps"
	"slices"

	. "github.com/hookfold/hookfold/merge"
)

// store keeps what a sink keeps of a table.
type store interface {
	write(changes []*Change)
	shown() []*Row
}

func newStore(t *Table) store {
	if t.Local() {
		return &localStore{t: t, stored: NewFolder(t)}
	}
	return &lockedStore{h: NewHeld(t, nil, nil, nil), rows: map[Key]*Row{}}
}

// localStore joins each row with what is stored of it, and projects at the end.
type localStore struct {
	t      *Table
	stored *Folder
}

func (s *localStore) write(changes []*Change) {
	for _, r := range Fold(s.t, changes) {
		s.stored.AddRow(r)
	}
}

func (s *localStore) shown() []*Row {
	parts := map[Key][]*Row{}
	for _, r := range s.stored.Rows() {
		parts[r.Key] = append(parts[r.Key], r)
	}
	var rows []*Row
	for _, p := range parts {
		rows = append(rows, Project(s.t, p, nil))
	}
	return rows
}

// lockedStore joins whole batches into what is held, and keeps the rows that
// show as a table does: only those of touched keys are looked at again.
type lockedStore struct {
	h    *Held
	rows map[Key]*Row
}

func (s *lockedStore) write(changes []*Change) {
	for _, k := range s.h.Write(FoldAll(changes[0].Table, changes)).Touched {
		if r := s.h.Shown(k); r != nil {
			s.rows[k] = r
		} else {
			delete(s.rows, k)
		}
	}
}

func (s *lockedStore) shown() []*Row { return slices.Collect(maps.Values(s.rows)) }
