package sqlsink

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

const buckets = compile.Buckets

// lock is one lock: a number that stands for keys, or for a whole table.
type lock struct {
	n int32
	// table is where a database keeps it that has no locks but rows: a table in
	// the schema of the tables that it is for.
	table string
}

// locks gives what a batch locks, in the order in which everybody locks. A table
// with links is locked as a whole, since a link may join any two of its rows;
// of other tables the groups or keys that are concerned.
func locks(groups []sink.Group, states []*tableState) []lock {
	set := map[lock]bool{}
	for i, g := range groups {
		switch t := g.Table; {
		case states[i].statements.Held == nil:
		case compile.Linked(t.Table):
			set[wholeTable(t)] = true
		default:
			for _, s := range g.Sets {
				set[lockOf(t, s.Group)] = true
			}
			for _, r := range g.Rows {
				if t.Group != nil {
					set[lockOf(t, t.GroupOf(r.Key))] = true
				} else {
					set[lockOf(t, r.Key)] = true
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b lock) int { return cmp.Or(cmp.Compare(a.n, b.n), strings.Compare(a.table, b.table)) })
}

func lockOf(t *sink.Table, key merge.Key) lock {
	return lock{bucket(t.Name, key), compile.LocksTable(t.Name)}
}

// wholeTable is the lock for all of a table.
func wholeTable(t *sink.Table) lock {
	return lock{buckets + bucket(t.Name, ""), compile.LocksTable(t.Name)}
}

func bucket(table string, key merge.Key) int32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s\x00%s", strings.ToLower(compile.TableName(table)), key)
	return int32(h.Sum32() % buckets)
}

// record names a stored row: on a table without occupants the part is "".
type record struct {
	key  merge.Key
	part string
}

func recordOf(r *merge.Row) record {
	if r.Occupant == nil {
		return record{r.Key, ""}
	}
	return record{r.Key, r.Occupant.ID}
}

// entry names what one event adds to a counter.
type entry struct {
	key      merge.Key
	column   int
	identity string
}

// tombstone is a delete that is remembered beside its table.
type tombstone struct {
	version merge.Version
	at      merge.Value
}

// holder writes the rows of one table that is held: it reads what the batch
// concerns, lets package merge join the batch, and stores what has changed.
type holder struct {
	*applier
	g     sink.Group
	table *sink.Table
	st    *tableState
	s     *compile.HeldStatements

	// What was read, as it is stored.
	rows    map[merge.Key]*merge.Row
	records map[record]*merge.Row
	tombs   map[merge.Key]tombstone
	sets    map[merge.Key]merge.Set
	links   merge.Links
	chains  *merge.Chains
	ledger  map[entry]merge.Amount
	purged  merge.Version
	beside  map[merge.Key]map[string]string // versions that lie beside, by name

	held  *merge.Held
	wrote merge.Written

	// What is to be done.
	rekeys, deletes, updates, inserts []item
	dropped                           []merge.Key // no record, no entry of these stays
	puts                              []item
	bury                              []merge.Key
	unbury                            []merge.Key
	post                              []entry
	moved                             []merge.Key // their versions lie beside
	changed                           map[merge.Key]bool
}

func (a *applier) holder(g sink.Group, st *tableState) *holder {
	return &holder{
		applier: a, g: g, table: g.Table, st: st, s: st.statements.Held,
		rows: map[merge.Key]*merge.Row{}, records: map[record]*merge.Row{}, tombs: map[merge.Key]tombstone{}, sets: map[merge.Key]merge.Set{},
		links: merge.Links{}, ledger: map[entry]merge.Amount{}, beside: map[merge.Key]map[string]string{}, changed: map[merge.Key]bool{},
	}
}

// join reads, and joins the batch into what it has read.
func (w *holder) join() error {
	if err := w.read(); err != nil {
		return err
	}
	rows := w.withinHorizon()
	w.held = merge.NewHeld(w.table.Table, w.parts(), slices.Collect(maps.Values(w.sets)), w.links)
	w.wrote = w.held.Write(merge.Batch{Rows: rows, Sets: w.g.Sets, Links: w.g.Links})
	for _, r := range w.wrote.Absent {
		w.result.Absent = append(w.result.Absent, sink.RowRef{Table: w.table, Row: r})
	}
	w.decide()
	w.count(rows)
	return nil
}

// decide compares what is held with what is stored.
func (w *holder) decide() {
	t := w.table
	for _, k := range w.wrote.Touched {
		w.keep(k)
	}
	if t.Chained {
		w.rename()
	}
	for _, k := range w.wrote.Touched {
		shown, was := w.held.Shown(k), w.rows[k]
		switch {
		case shown == nil && was == nil:
		case shown == nil:
			w.deletes = append(w.deletes, item{row: was})
			w.changed[k] = true
		case was == nil:
			w.moved = append(w.moved, k)
			if w.acceptable(k, shown, true) {
				w.inserts = append(w.inserts, item{row: shown})
			}
			w.changed[k] = true
		case !w.sameShown(was, shown):
			w.moved = append(w.moved, k)
			if w.acceptable(k, shown, false) {
				w.updates = append(w.updates, item{row: shown})
			}
			w.changed[k] = true
		}
	}
}

// keep finds what is to be remembered of a key beside its row.
func (w *holder) keep(k merge.Key) {
	parts := w.held.Parts(k)
	if w.table.Occupied {
		for _, p := range parts {
			if was := w.records[recordOf(p)]; was != p && (was == nil || !w.samePart(was, p)) {
				w.puts = append(w.puts, item{row: p})
				w.changed[k] = true
			}
		}
	} else {
		w.bury1(k, parts)
	}
	if parts == nil && w.table.Chained {
		w.dropped = append(w.dropped, k)
	}
	if w.s.Ledger == nil {
		return
	}
	for _, p := range parts {
		for i := range p.Cells {
			for id, a := range p.Cells[i].Ledger {
				e := entry{k, i, id}
				if w.ledger[e] != a {
					w.ledger[e] = a
					w.post = append(w.post, e)
					w.changed[k] = true
				}
			}
		}
	}
}

// bury1 decides about the tombstone of a key: there is one while a delete is
// known that neither the row nor the set of its group remembers.
func (w *holder) bury1(k merge.Key, parts []*merge.Row) {
	if w.s.Tombstones == nil {
		return
	}
	var want tombstone
	if len(parts) > 0 && !(parts[0].Written && w.marks()) {
		p := parts[0]
		want = tombstone{p.Deleted, p.DeletedAt}
		if w.table.Group != nil && p.Deleted <= w.held.Set(w.table.GroupOf(k)).Version {
			want = tombstone{}
		}
	}
	have := w.tombs[k]
	switch {
	case want == have:
	case want.version == "":
		w.unbury = append(w.unbury, k)
		w.changed[k] = true
	default:
		w.tombs[k] = want
		w.bury = append(w.bury, k)
		w.changed[k] = true
	}
}

// marks tells whether a row remembers its own delete.
func (w *holder) marks() bool {
	return w.table.OnDelete == merge.DeleteMark || w.table.OnDelete == merge.DeleteSet
}

// rename lets a row follow its key to the front of its chain, so that what the
// config does not map goes with it; a row that is there already stays.
func (w *holder) rename() {
	for _, k := range slices.Clone(w.wrote.Touched) {
		root := merge.NewKey(w.held.Chains().Root(string(k)))
		was := w.rows[k]
		if root == k || was == nil || w.rows[root] != nil || w.held.Shown(root) == nil {
			continue
		}
		w.rekeys = append(w.rekeys, item{row: &merge.Row{Key: merge.NewKey(string(k), string(root))}})
		moved := *was
		moved.Key = root
		w.rows[root] = &moved
		delete(w.rows, k)
		w.changed[root] = true
	}
}

// acceptable tells whether the database can take a row, and blames the rows of
// the batch if it cannot.
func (w *holder) acceptable(k merge.Key, shown *merge.Row, fresh bool) bool {
	check := &writer{table: w.table, s: w.st.statements}
	var columns []string
	if fresh && !w.st.live.FillsRows {
		columns = check.lacks(shown)
	}
	if columns == nil {
		if w.s.Ledger == nil {
			return true
		}
		err := compile.FitRow(w.st.live, w.table.Table, shown) // a total may have grown too great
		if err != nil {
			w.blame(k, func(*merge.Row) *sink.Error {
				return &sink.Error{Action: sink.Reject, Message: w.table.Table.Name + "." + err.Error(), Err: err}
			})
		}
		return err == nil
	}
	w.blame(k, func(r *merge.Row) *sink.Error { return check.lacking(r, columns) })
	return false
}

// blame reports the rows of the batch that concern a key, first those that say
// why.
func (w *holder) blame(k merge.Key, why func(r *merge.Row) *sink.Error) {
	n := len(w.faults)
	for _, r := range w.g.Rows {
		if w.rootOf(r.Key) == k {
			w.faults = append(w.faults, sink.RowError{RowRef: sink.RowRef{Table: w.table, Row: r}, Err: why(r)})
		}
	}
	if len(w.faults) == n { // a link or a set brought it about
		w.broken = why(&merge.Row{Key: k})
	}
}

func (w *holder) rootOf(k merge.Key) merge.Key {
	if !w.table.Chained {
		return k
	}
	return merge.NewKey(w.held.Chains().Root(string(k)))
}

// count tells how many rows of the batch changed something.
func (w *holder) count(rows []*merge.Row) {
	absent := map[*merge.Row]bool{}
	for _, r := range w.wrote.Absent {
		absent[r] = true
	}
	w.result.Unchanged += len(w.g.Rows) - len(rows)
	for _, r := range rows {
		switch {
		case absent[r]:
		case w.changed[w.rootOf(r.Key)]:
			w.result.Written++
		default:
			w.result.Unchanged++
		}
	}
	w.result.Written += len(w.wrote.Sets)
	w.result.Unchanged += len(w.g.Sets) - len(w.wrote.Sets)
	if w.wrote.Links != nil && len(rows) == 0 {
		w.result.Written++
	}
}

// sameShown tells whether two rows look alike in their table: unset is NULL, and
// a column that nothing has set may have kept its DEFAULT.
func (w *holder) sameShown(was, shown *merge.Row) bool {
	t := w.table
	if w.marks() && was.Deleted != shown.Deleted {
		return false
	}
	if t.OnDelete == merge.DeleteMark && (was.Gone() != shown.Gone() || was.Gone() && was.DeletedAt != shown.DeletedAt) {
		return false
	}
	return w.same(was, shown, func(i int) bool {
		s := t.ScopeOf(i)
		if s < 0 || shown.Cells[i].Set || shown.Scopes[s] != "" || was.Scopes[s] != "" {
			return true
		}
		c := w.st.live.Column(t.Columns[i].Name)
		return !(t.Occupied && t.OfKey(i)) && !(c.NotNull && c.Default != "")
	})
}

// samePart tells whether two records are stored alike.
func (w *holder) samePart(a, b *merge.Row) bool {
	return a.Deleted == b.Deleted && a.DeletedAt == b.DeletedAt && w.same(a, b, func(int) bool { return true })
}

func (w *holder) same(a, b *merge.Row, counts func(column int) bool) bool {
	t := w.table
	if (a.Occupant == nil) != (b.Occupant == nil) || a.Occupant != nil && *a.Occupant != *b.Occupant {
		return false
	}
	if t.OnDelete != merge.DeleteNone && a.Seen != b.Seen || !slices.Equal(a.Scopes, b.Scopes) {
		return false
	}
	for i := range a.Cells {
		x, y := &a.Cells[i], &b.Cells[i]
		if t.Columns[i].Rule != merge.Touch && (x.Value != y.Value && counts(i) || x.Version != y.Version) {
			return false
		}
	}
	return true
}
