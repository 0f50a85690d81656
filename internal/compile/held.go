package compile

import (
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// HeldStatements are what a sink runs for a table that is held. It locks
// first, in a statement of its own, and only then reads: what is read cannot
// change any more, so the joined rows are stored without a condition, but for
// rows that are as they are to be.
type HeldStatements struct {
	// Rows reads rows by key and locks them; Group reads those of groups, by the
	// groups' keys. They give, after the place of the parameters on PostgreSQL,
	// the columns of Fields.
	Rows, Group Statement
	Fields      []Param
	// Keys reads the keys of all rows, of a table whose lists are of the whole of
	// it; then there is no Group.
	Keys string
	// Insert makes new rows, Update changes those that are there, and Delete
	// removes rows by key.
	Insert, Update, Delete Statement
	// Rekey gives a row another key, so that what the config does not map stays.
	// Its key parameters are the old and the new identity.
	Rekey Statement
	// Records reads the records of keys, RecordGroup those of groups; PutRecord
	// stores records, and DropRecords removes all those of keys. They are empty
	// for a table without occupants.
	Records, RecordGroup, PutRecord, DropRecords Statement
	RecordFields                                 []Param
	// KnownRecord tells of which keys there are records.
	KnownRecord Statement
	// Tombstones, Sets, Links, Aliases, Ledger and Meta are nil where a table
	// does not need them.
	Tombstones, Sets, Links, Aliases, Ledger, Meta *SideStatements
	// Claim, Hold and Save are those of BesideStatements, empty for a table that
	// keeps its versions in its rows.
	Claim, Hold, Save string
	// Members reads aliases by root, After links by what they replace, and
	// LedgerOf and DropLedger take all entries of keys.
	Members, After, LedgerOf, DropLedger string
	// Oldest locks and reads tombstones that were stored before a time, a number of
	// them at most: their keys and versions. Its parameters are the table, the time
	// and the number.
	Oldest string
}

// LockClass is the first half of Hookfold's advisory locks on PostgreSQL, "hook",
// and Buckets is how many of them the keys of all tables share, so that a batch
// of any size fits the database's table of locks.
const (
	LockClass = 0x686f6f6b
	Buckets   = 1024
)

// LockSQL takes PostgreSQL's locks until the transaction ends: their class, and
// their numbers in order.
const LockSQL = "select pg_advisory_xact_lock($1::int4, b) from unnest($2::int4[]) as b"

// heldRow is a table that is held, all columns of its rows.
func heldRow(t *sink.Table) *relation {
	r := layout(t, t.Name, func(int) bool { return true })
	r.beside = Beside(t)
	if t.Occupied && !r.beside {
		r.more = append(r.more, plainField(SinceParam, SinceColumn, versionType), plainField(IDParam, OccupantColumn, versionType))
	}
	if t.OnDelete != merge.DeleteNone {
		r.more = append(r.more, plainField(SeenParam, SeenColumn, versionType))
	}
	if marks(t) {
		r.more = append(r.more, plainField(DeleteParam, DeleteColumn, versionType))
	}
	if t.OnDelete == merge.DeleteMark {
		r.more = append(r.more, plainField(DeletedAtParam, DeletedAtColumn, timeType))
	}
	r.number()
	return r
}

// heldRecords is the table of the records of a table that is held: those
// of its occupants, and that of the row itself, whose occupant is ”.
func heldRecords(t *sink.Table) *relation {
	r := layout(t, OccupantsTable(t.Name), func(i int) bool {
		rule := t.Columns[i].Rule
		return rule != merge.Touch && rule != merge.Flag && rule != merge.Chain
	})
	r.key = append(r.key, plainField(PartParam, OccupantColumn, versionType))
	r.more = append(r.more, plainField(SinceParam, SinceColumn, versionType))
	if t.OnDelete != merge.DeleteNone {
		r.more = append(r.more, plainField(SeenParam, SeenColumn, versionType), plainField(DeleteParam, DeleteColumn, versionType),
			plainField(DeleteTimeParam, DeletedAtColumn, timeType))
	}
	r.number()
	return r
}

func plainField(kind ParamKind, name string, typ merge.Type) field {
	return field{Param: Param{Kind: kind, Name: name, Type: typ}, scope: -1}
}

// Refuses tells what a SQL sink cannot keep of a table.
func Refuses(t *sink.Table) []sink.Refusal {
	if !t.Local() && t.Versions == sink.Beside {
		return []sink.Refusal{{Part: sink.KeepVersions, Text: "keep_versions: beside does not go with deletes, complete lists, chains and counters. Let Hookfold add its columns to the table (leave keep_versions out), or write into a table of its own and show both in a view"}}
	}
	if !t.Occupied {
		return nil
	}
	var out []sink.Refusal
	fields := heldRecords(t).fields()
	for i, f := range fields {
		for _, g := range fields[:i] {
			if strings.EqualFold(f.Name, g.Name) {
				out = append(out, sink.Refusal{Part: sink.AColumn, Column: f.Name, Text: fmt.Sprintf("a column of it is called %s, and the table of its occupants' records, %s, has a column of its own under this name. Rename it", f.Name, OccupantsTable(t.Name))})
			}
		}
	}
	return out
}

// Replacing makes the statements that set the rows of a table that is Local to
// what is said of them, as those of other tables do.
func Replacing(d Dialect, t *sink.Table, live *sink.Live) (*Statements, error) {
	if t.Occupied || t.Versions != sink.InRow {
		return nil, fmt.Errorf("table %s: rows with occupants, or with versions beside, cannot be replaced", t.Name)
	}
	return compileHeld(d, t, live, nil)
}

func compileHeld(d Dialect, t *sink.Table, live, records *sink.Live) (*Statements, error) {
	if err := sink.Refused(t, Refuses(t)); err != nil {
		return nil, err
	}
	plain := d.impl()
	x := plain.over(t, live, keyOf(t))
	r := heldRow(t)
	if err := r.bind(live); err != nil {
		return nil, err
	}
	if err := r.judges(x); err != nil {
		return nil, err
	}
	if m, ok := x.(mysql); ok {
		if err := m.unsafe(t, live); err != nil {
			return nil, err
		}
	}
	h := &HeldStatements{Fields: r.reading(), Insert: r.insert(x, true), Update: r.replace(x, t), Delete: r.remove(x, r.key)}
	h.Rows = r.read(x, r.key, true)
	s := &Statements{Held: h, Known: r.known(x, r.key), Required: required(t, r, live)}
	if r.beside {
		h.Claim, h.Hold, h.Save = x.versions(quoteTable(x, VersionsTable(t.Name)))
	}
	var group []field
	var grouped []string
	for i, at := range t.Group {
		f := r.key[at]
		f.Index, f.n = i, i+1
		group, grouped = append(group, f), append(grouped, f.Name)
	}
	switch {
	case group != nil:
		h.Group = r.read(plain.over(t, live, grouped), group, true)
	case t.Group != nil:
		h.Keys = r.keys(x)
	}
	if t.Chained {
		h.Rekey = r.rekey(x)
	}
	if t.Occupied {
		if records == nil {
			records = &sink.Live{}
		}
		o := heldRecords(t)
		if err := o.bind(records); err != nil {
			return nil, err
		}
		keys := o.key[:len(o.key)-1]
		h.RecordFields = o.reading()
		x := plain.over(t, records, keyOf(t)) // all records of a key
		h.Records, h.KnownRecord, h.DropRecords = o.read(x, keys, false), o.known(x, keys), o.remove(x, keys)
		h.PutRecord = o.put(plain.over(t, records, append(keyOf(t), OccupantColumn)))
		if group != nil {
			h.RecordGroup = o.read(plain.over(t, records, grouped), group, false)
		}
	}
	h.sides(d, t)
	return s, nil
}

func (h *HeldStatements) sides(d Dialect, t *sink.Table) {
	if buries(t) {
		s := tombstones(d, t)
		h.Tombstones, h.Meta = s.statements(), metaOf(d, t).statements()
		h.Oldest = d.impl().oldest(s)
	}
	if t.Group != nil {
		h.Sets = setsOf(d, t).statements()
	}
	if Linked(t.Table) {
		l, a := linksOf(d, t), aliasesOf(d, t)
		h.Links, h.Aliases = l.statements(), a.statements()
		h.Members = a.get([]field{a.values[0]})
		h.After = l.get([]field{l.key[0]})
	}
	if counts(t) {
		s := ledgerOf(d, t)
		h.Ledger = s.statements()
		h.LedgerOf = s.get(s.key[:1:1])
		h.DropLedger = d.impl().sideDrop(s, s.key[:1:1])
	}
}

func (d postgres) oldest(s *side) string {
	return fmt.Sprintf("select key, %s from %s\nwhere table_name = $1 and %s < $2::timestamptz\norder by key limit $3::int for update",
		DeleteColumn, quoteTable(d, s.name), s.stamp)
}

func (d sqlite) oldest(s *side) string {
	return fmt.Sprintf("select key, %s from %s\nwhere table_name = ?1 and %s < ?2\norder by key limit ?3", DeleteColumn, quoteTable(d, s.name), s.stamp)
}

// reading are the fields that a row is read by, in their order.
func (r *relation) reading() []Param {
	var out []Param
	for _, f := range append(r.written(), r.touch...) {
		out = append(out, f.Param)
	}
	return out
}

// keys selects the keys of all rows.
func (r *relation) keys(d dialect) string {
	var columns []string
	for _, f := range r.key {
		columns = append(columns, d.read(at(d, f), f))
	}
	return fmt.Sprintf("select %s from %s as t", strings.Join(columns, ", "), quoteTable(d, r.name))
}

// read selects rows by some columns of the key.
func (r *relation) read(d dialect, by []field, lock bool) Statement {
	var columns []string
	for _, f := range append(r.written(), r.touch...) {
		columns = append(columns, d.read(at(d, f), f))
	}
	on, params := r.by(d, by)
	return Statement{SQL: d.byKey(strings.Join(columns, ", "), quoteTable(d, r.name), on, params, lock), Params: params}
}

func (r *relation) known(d dialect, by []field) Statement {
	on, params := r.by(d, by)
	return Statement{SQL: d.byKey(d.read(at(d, by[0]), by[0]), quoteTable(d, r.name), on, params, false), Params: params}
}

func (r *relation) by(d dialect, by []field) (on string, params []Param) {
	var conditions []string
	for _, f := range by {
		conditions = append(conditions, same(d, at(d, f), d.matched(f), f))
		params = append(params, f.Param)
	}
	return strings.Join(conditions, " and "), params
}

func (r *relation) remove(d dialect, by []field) Statement {
	on, params := r.by(d, by)
	return Statement{SQL: d.remove(quoteTable(d, r.name), on, params), Params: params}
}

// rekey gives the row of one identity the key of another.
func (r *relation) rekey(d dialect) Statement {
	old, with := r.key[0], r.key[0]
	old.Name, with.Name = "old", "new"
	with.Index, with.n = 1, 2
	params := []Param{old.Param, with.Param}
	exprs := []string{d.matched(old) + " as " + place(old), d.param(with) + " as " + place(with)}
	return Statement{SQL: d.update(&update{table: quoteTable(d, r.name), set: []assignment{{r.key[0].Name, placed(with)}},
		from: d.excluded(exprs, params), on: same(d, at(d, r.key[0]), placed(old), old)}), Params: params}
}

// stores are the columns that are not part of the key.
func (r *relation) stores() []field { return r.written()[len(r.key):] }

// put stores rows of a relation whatever is there.
func (r *relation) put(d dialect) Statement {
	u := &upsert{table: quoteTable(d, r.name), key: r.keyNames(d), matched: r.matched(d), params: r.params(false)}
	for _, f := range r.fields() {
		u.columns = append(u.columns, d.quote(f.Name))
		u.exprs = append(u.exprs, d.param(f))
	}
	var differ []string
	for _, f := range r.stores() {
		u.set = append(u.set, assignment{f.Name, d.incoming(f)})
		differ = append(differ, d.distinct(d.incoming(f), d.resident(u.table, f), f))
	}
	u.differs = strings.Join(differ, "\n   or ")
	return statement(d.upsert(u), u.params)
}

// replace writes the update of rows that are there. A latest column that
// nothing has set keeps the DEFAULT that it got, where it may not be NULL or
// belongs to the row itself.
func (r *relation) replace(d dialect, t *sink.Table) Statement {
	var exprs, differ, values []string
	var set []assignment
	for _, f := range r.fields() {
		expr := orZero(d, f)
		if f.Kind == KeyParam {
			expr = d.matched(f)
		}
		if f.Kind == CellParam && f.rule == merge.Latest && f.Live.NotNull && f.Live.Default != "" {
			expr = "coalesce(" + expr + ", " + d.dflt(f) + ")"
		}
		exprs = append(exprs, expr+" as "+place(f))
	}
	for _, f := range r.stores() {
		becomes := placed(f)
		if f.Kind == CellParam && f.rule == merge.Latest && t.Occupied && t.OfKey(f.Index) {
			becomes = fmt.Sprintf("case when %s is null then %s else %s end", placed(r.named(ScopeColumn(t.Scopes()[f.scope]))), at(d, f), placed(f))
		}
		set = append(set, assignment{f.Name, becomes})
		differ = append(differ, d.distinct(becomes, at(d, f), f))
		if f.Kind == CellParam || f.Kind == DeletedAtParam {
			values = append(values, d.distinct(becomes, at(d, f), f))
		}
	}
	if set == nil {
		return Statement{}
	}
	var touch []assignment
	for _, f := range r.touch {
		if values != nil {
			touch = append(touch, assignment{f.Name, fmt.Sprintf("case when %s then %s else %s end", strings.Join(values, "\n      or "), d.now(f), at(d, f))})
		}
	}
	if d.sequential() { // as long as nothing has changed
		set = append(touch, set...)
	} else {
		set = append(set, touch...)
	}
	params := r.params(false)
	return Statement{SQL: d.update(&update{table: quoteTable(d, r.name), set: set, from: d.excluded(exprs, params),
		on: r.sameKey(d, placed), differs: "(" + strings.Join(differ, "\n   or ") + ")"}), Params: params}
}

// orZero is the parameter of a field; a counter that may not be NULL is 0 where
// nothing was counted, which adds nothing to what is.
func orZero(d dialect, f field) string {
	if f.Kind == CellParam && counter(f.rule) && f.Live.NotNull {
		return "coalesce(" + d.param(f) + ", 0)"
	}
	return d.param(f)
}

func (d postgres) remove(table, on string, params []Param) string {
	return fmt.Sprintf("delete from %s as t\nusing %s\nwhere %s", table, d.from(params), on)
}

func (sqlite) remove(table, on string, _ []Param) string {
	return fmt.Sprintf("delete from %s as t where %s", table, on)
}
