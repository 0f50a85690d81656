package merge

import "slices"

// joinDeletes takes the greater delete. Two deletes of one version come from
// one event.
func joinDeletes(a, b *Row) (Version, Value) {
	switch {
	case a.Deleted > b.Deleted:
		return a.Deleted, a.DeletedAt
	case a.Deleted == b.Deleted && a.DeletedAt.text >= b.DeletedAt.text:
		return a.Deleted, a.DeletedAt
	}
	return b.Deleted, b.DeletedAt
}

// Gone tells whether the row is deleted: its delete is newer than all of its
// writes. A delete is newer than a write of its own instant.
func (r *Row) Gone() bool { return r.Deleted != "" && r.Deleted > r.Seen }

// Shown gives the row as its table shows it, or nil if it shows none: a row of
// which nothing but a delete is known, or one that is removed. What is newer
// than the delete stays. A scope that is older shows what OnDelete says, or where
// rows are removed nothing, as if it had never been spoken of. What belongs to the row whoever occupies it is
// not touched by an occupant's delete.
//
// What Shown hides can never come back: the delete only grows, and a value that
// wins must be newer than it. So a sink may forget it.
func (t *Table) Shown(r *Row) *Row {
	if !r.Written || r.Gone() && t.OnDelete == DeleteRemove {
		return nil
	}
	if r.Deleted == "" && !t.flagged() {
		return r
	}
	out := *r
	out.Cells, out.Scopes = slices.Clone(r.Cells), slices.Clone(r.Scopes)
	for i := range t.Columns {
		col := &t.Columns[i]
		switch s := t.scopeOf[i]; {
		case t.Occupied && t.OfKey(i): // it outlives the occupant that is deleted
		case col.Rule == Flag:
			out.Cells[i] = Cell{Set: true, Value: t.Flag(col, r.Gone())}
		case s < 0 || r.Deleted == "" || r.Deleted <= r.Scopes[s]:
		case t.OnDelete == DeleteRemove:
			out.Cells[i], out.Scopes[s] = Cell{}, ""
		case col.OnDelete != nil:
			out.Cells[i] = Cell{Set: true, Value: *col.OnDelete}
		}
	}
	return &out
}

func (t *Table) flagged() bool {
	for i := range t.Columns {
		if t.Columns[i].Rule == Flag {
			return true
		}
	}
	return false
}

// Flag gives what a Flag column shows: its OnDelete while the row is deleted,
// else the opposite of a bool, and NULL for any other type.
func (t *Table) Flag(c *Column, gone bool) Value {
	switch {
	case gone:
		return *c.OnDelete
	case c.Type.Kind == Bool && c.OnDelete.text == "true":
		return Value{text: "false", ok: true}
	case c.Type.Kind == Bool:
		return Value{text: "true", ok: true}
	}
	return NullValue
}

// Set is what complete lists say of a group: that it is complete as of a
// version. A row of the group is deleted by it if it is older.
type Set struct {
	Group   Key
	Version Version
	At      Value
}

// JoinSets takes the newer of two sets of one group.
func JoinSets(a, b Set) Set {
	if a.Version > b.Version || a.Version == b.Version && a.At.text >= b.At.text {
		return a
	}
	return b
}

// Under gives a row as its group's set leaves it: deleted if it is older.
func (s Set) Under(r *Row) *Row {
	if s.Version <= r.Deleted {
		return r
	}
	out := *r
	out.Deleted, out.DeletedAt = s.Version, s.At
	return &out
}
