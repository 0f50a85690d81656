package verify

import (
	"context"
	"fmt"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// judge tells what is to be said of a pair; nil is that both are the same.
func (c *Check) judge(ctx context.Context, i int, p *pair) (*Finding, error) {
	t := c.o.Tables[i]
	f := &Finding{Key: t.Show(p.key)}
	switch {
	case p.live == nil && p.said == nil:
		return nil, nil
	case p.live == nil:
		return f, c.missing(ctx, i, p, f)
	case p.said == nil:
		return f, c.extra(ctx, i, p, f)
	}
	x := comparer{t: t.Table.Table, live: p.live, said: p.said, whole: c.whole, counted: p.counted, counts: p.counts}
	columns, _ := x.compare()
	if len(columns) == 0 {
		return nil, nil
	}
	ref, err := c.loose(ctx, i, p.key)
	if err != nil {
		return nil, err
	}
	x.columns, x.loose = nil, ref
	var drift bool
	f.Columns, drift = x.compare()
	f.Kind, f.Right, f.Why = Different, Journal, f.Columns[0].Why
	if !drift {
		f.Kind, f.Right = Unchecked, Unknown
	}
	for _, col := range f.Columns {
		if drift && col.Right == Journal {
			f.Why = col.Why
			break
		}
	}
	return f, nil
}

// loose names an event about a row that has not landed, "" if there is none.
func (c *Check) loose(ctx context.Context, i int, k merge.Key) (string, error) {
	keys := []merge.Key{k}
	switch t := c.o.Tables[i].Table.Table; {
	case t.Chained:
		h, err := c.fold.sink.(sink.Rememberer).Held(ctx, c.fold.tables[i], keys)
		if err != nil {
			return "", err
		}
		for _, id := range h.Chains().Members(string(k)) {
			keys = append(keys, merge.NewKey(id))
		}
	case t.Group != nil:
		keys = append(keys, t.GroupOf(k))
	}
	for _, k := range keys {
		ref, err := c.notes.about(ctx, loose, i, k)
		if err != nil || ref != "" {
			return ref, err
		}
	}
	return "", nil
}

func (c *Check) unlanded(f *Finding, ref string) {
	f.Kind, f.Right, f.Why = Unchecked, Unknown, "cannot be checked: event "+ref+" is about this row too, and has not landed"
}

// missing judges a row that only the journal has.
func (c *Check) missing(ctx context.Context, i int, p *pair, f *Finding) error {
	t := c.o.Tables[i]
	f.Kind, f.Right, f.Why = Missing, Journal, "the row is not in the database: deleted outside Hookfold, or the database was set back"
	f.Columns = valuesOf(t.Table.Table, p.said, false)
	ref, err := c.loose(ctx, i, p.key)
	if err != nil {
		return err
	}
	if ref != "" {
		c.unlanded(f, ref)
		return nil
	}
	if foreign(t) {
		there, err := c.notes.has(ctx, inserted, i, p.key)
		if err != nil {
			return err
		}
		if !there {
			f.Kind, f.Right, f.Why = Unchecked, Unknown, "the row is somebody else's to insert, and is not there"
			return nil
		}
	}
	switch k, ok := c.o.Sink.(sink.Knower); {
	case t.OnDelete == merge.DeleteRemove && !t.Occupied && ok:
		known, err := k.Known(ctx, &t.Table, []merge.Key{p.key})
		if err != nil {
			return err
		}
		if known[0] {
			f.Kind, f.Right, f.Why = Unchecked, Unknown, "the database remembers a delete of the row whose event is not in the journal (any more)"
		}
	case t.Remembers() && !c.whole:
		f.Kind, f.Right, f.Why = Unchecked, Unknown, "cannot be checked: it may have been deleted by an event that the journal does not hold any more"
	}
	return nil
}

// extra judges a row that only the database has.
func (c *Check) extra(ctx context.Context, i int, p *pair, f *Finding) error {
	t := c.o.Tables[i]
	f.Kind, f.Right = Extra, Journal
	f.Columns = valuesOf(t.Table.Table, p.live, true)
	ref, err := c.loose(ctx, i, p.key)
	if err != nil {
		return err
	}
	if ref != "" {
		c.unlanded(f, ref)
		return nil
	}
	gone, deleted, err := c.deleted(ctx, i, p.key)
	if err != nil {
		return err
	}
	stamped := newest(p.live)
	switch {
	case gone && stamped > deleted && deleted != "":
		f.Kind, f.Right, f.Why = Unchecked, Unknown, "the row is newer than the delete that the journal has: its event is not in the journal (any more)"
	case gone:
		f.Why = fmt.Sprintf("the journal says that the row is deleted (%s), and it is there: inserted outside Hookfold", deleted.Show())
	case stamped != "":
		f.Kind, f.Right, f.Why = Unchecked, Unknown, "it was written by an event that is not in the journal (any more)"
	case foreign(t) || c.o.IgnoreExtra:
		f.Kind, f.Right, f.Why = "", Unknown, ""
	case t.Versioned() || c.whole:
		f.Why = "no event is about the row: inserted outside Hookfold, or there before it"
	default:
		f.Kind, f.Right, f.Why = Unchecked, Unknown, "no event in the journal is about the row, and the journal does not reach back to its beginning"
	}
	return nil
}

// newest is the greatest version that a live row carries, "" if it has none.
func newest(r *merge.Row) merge.Version {
	v := max(r.Seen, r.Deleted)
	for _, s := range r.Scopes {
		v = max(v, s)
	}
	for _, x := range r.Cells {
		v = max(v, x.Version)
	}
	if v == "" && r.Occupant != nil {
		v = merge.Version(r.Occupant.ID)
	}
	return v
}

// deleted tells whether the journal remembers a delete of a row that it does not
// show, and its version.
func (c *Check) deleted(ctx context.Context, i int, k merge.Key) (bool, merge.Version, error) {
	t := c.fold.tables[i]
	if t.Local() {
		return false, "", nil
	}
	h, err := c.fold.sink.(sink.Rememberer).Held(ctx, t, []merge.Key{k})
	if err != nil {
		return false, "", err
	}
	var v merge.Version
	for _, p := range h.Parts(k) {
		v = max(v, p.Deleted)
	}
	if t.Group != nil {
		v = max(v, h.Set(t.GroupOf(k)).Version)
	}
	if t.Chained && h.Chains().Root(string(k)) != string(k) {
		return true, v, nil
	}
	return v != "", v, nil
}

// valuesOf shows the values of a row that only one side has.
func valuesOf(t *merge.Table, r *merge.Row, live bool) []Column {
	var out []Column
	for i, x := range r.Cells {
		if x.Value.IsNull() || t.Columns[i].Rule == merge.Touch {
			continue
		}
		col := Column{Name: t.Columns[i].Name}
		if s := t.ScopeOf(i); s >= 0 {
			x.Version = r.Scopes[s]
		}
		if live {
			col.Database, col.DatabaseVersion = shown(x.Value), versionText(x.Version)
		} else {
			col.Journal, col.JournalVersion = shown(x.Value), versionText(x.Version)
		}
		out = append(out, col)
	}
	return out
}
