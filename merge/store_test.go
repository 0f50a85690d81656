package merge_test

import (
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
	return &lockedStore{h: NewHeld(t, nil, nil, nil), keys: map[Key]bool{}}
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

// lockedStore joins whole batches into what is held.
type lockedStore struct {
	h    *Held
	keys map[Key]bool
}

func (s *lockedStore) write(changes []*Change) {
	w := s.h.Write(FoldAll(changes[0].Table, changes))
	for _, k := range w.Touched {
		s.keys[k] = true
	}
}

func (s *lockedStore) shown() []*Row {
	var rows []*Row
	for k := range s.keys {
		if r := s.h.Shown(k); r != nil {
			rows = append(rows, r)
		}
	}
	return rows
}
