package compile

import (
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Statement is a statement and what its parameters take from a row. How they
// travel is the dialect's: on PostgreSQL each parameter is an array of texts with
// an element per row; on SQLite a statement is for one row and each parameter one
// value.
type Statement struct {
	SQL string
	// Then are statements that have to follow in the same transaction, with the
	// same parameters; the rows that all of them write count.
	Then   []string
	Params []Param
}

// All are the statement and those that have to follow, in their order.
func (s Statement) All() []string { return append([]string{s.SQL}, s.Then...) }

func statement(list []string, params []Param) Statement {
	return Statement{SQL: list[0], Then: list[1:], Params: params}
}

// Statements are what a sink runs for one table.
type Statements struct {
	// Upsert joins rows into the table, Stub inserts rows of which nothing is
	// set but the key, Update joins into rows that are there, and Lock tells
	// which rows are there and keeps them so. On a table with occupants these
	// write only what belongs to the rows themselves.
	Upsert, Stub, Update, Lock Statement
	// Occupants is nil for a table without occupants.
	Occupants *OccupantStatements
	// Beside is nil for a table that keeps its versions in its rows.
	Beside *BesideStatements
	// Held is nil for a table that its statements join. Of one that is held, only
	// Held, Known and Required are there.
	Held *HeldStatements
	// Known tells of which keys there are rows, without locking them.
	Known Statement
	// Required are the columns without which a new row is refused.
	Required []Required
}

// Required is a column that is NOT NULL and has no default that counts.
type Required struct {
	// Name is the column's name.
	Name string
	// Column is its place among the table's columns, -1 if it is not mapped.
	Column int
}

// Compile makes the statements of a table as it lives. A table or column that
// is missing is a *MissingError. records is the live schema of the occupants'
// table, and only needed for a table with occupants.
func Compile(d Dialect, t *sink.Table, live, records *sink.Live) (*Statements, error) {
	if err := d.needsUnique(t, live, records); err != nil {
		return nil, err
	}
	if d.Held(t, live) {
		return compileHeld(d, t, live, records)
	}
	return compileWith(d.impl(), t, live, records)
}

// CompileJSON makes the same statements for PostgreSQL, but with their rows
// taken from what the expression rows names: a JSON list with an object per row,
// in it a text for each parameter, by its name, that is not NULL. They take no
// other parameter, so they can stand in a function.
func CompileJSON(t *sink.Table, live, records *sink.Live, rows string) (*Statements, error) {
	return compileWith(postgres{rows: rows}, t, live, records)
}

func compileWith(x dialect, t *sink.Table, live, records *sink.Live) (*Statements, error) {
	if !t.Local() {
		return nil, fmt.Errorf("table %s: deletes, complete lists, chains and counters cannot be decided by one row, and so have no statements of this kind", t.Name)
	}
	x = x.over(t, live, keyOf(t))
	r := own(t)
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
	s := &Statements{Required: required(t, r, live), Known: r.known(x, r.key)}
	if r.beside {
		s.Beside = compileBeside(x, t, r)
		s.Lock = r.lock(x)
		s.Stub = r.insert(x, true)
	} else {
		s.Upsert, s.Stub, s.Update, s.Lock = r.insert(x, false), r.insert(x, true), r.update(x), r.lock(x)
	}
	if t.Occupied {
		o := localRecords(t)
		if records == nil {
			records = &sink.Live{}
		}
		if err := o.bind(records); err != nil {
			return nil, err
		}
		if err := o.judges(x); err != nil {
			return nil, err
		}
		var err error
		if s.Occupants, err = compileOccupants(x, t, r, o, live, records); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// required lists the columns without which the database refuses a new row.
func required(t *sink.Table, r *relation, live *sink.Live) []Required {
	var out []Required
	for _, c := range live.Columns {
		if !c.NotNull || c.Generated || isKey(t, c.Name) {
			continue
		}
		i := t.Column(c.Name)
		if i < 0 {
			if c.Default == "" {
				out = append(out, Required{c.Name, -1})
			}
			continue
		}
		if rule := t.Columns[i].Rule; rule == merge.Touch || rule == merge.Flag || rule == merge.Chain || counter(rule) || rule == merge.Latest && c.Default != "" {
			continue
		}
		out = append(out, Required{c.Name, i})
	}
	return out
}

func isKey(t *sink.Table, name string) bool {
	for _, k := range t.Key {
		if k.Name == name {
			return true
		}
	}
	return false
}

// insert writes the upsert of a relation, or with stub an insert that leaves a
// row that is there alone.
func (r *relation) insert(d dialect, stub bool) Statement {
	u := r.upsertion(d, stub)
	return statement(d.upsert(u), u.params)
}

func (r *relation) upsertion(d dialect, stub bool) *upsert {
	u := &upsert{table: quoteTable(d, r.name), key: r.keyNames(d), matched: r.matched(d), params: r.params(false)}
	for _, f := range r.written() {
		u.columns = append(u.columns, d.quote(f.Name))
		u.exprs = append(u.exprs, r.fresh(d, f))
	}
	for _, f := range r.touch {
		u.columns = append(u.columns, d.quote(f.Name))
		u.exprs = append(u.exprs, d.now(f))
	}
	if !stub {
		at := func(f field) string { return d.resident(u.table, f) }
		moves := r.moves(d, d.incoming, at, at, true)
		u.set, u.differs = r.assignments(d, moves, at), condition(moves, true)
	}
	return u
}

// fresh is what a field of a new row gets.
func (r *relation) fresh(d dialect, f field) string {
	if f.Kind == CellParam && f.rule == merge.Latest && f.Live.Default != "" {
		for _, s := range r.scopes {
			if s.Index == f.scope {
				return fmt.Sprintf("case when %s is null then %s else %s end", d.raw(s), d.dflt(f), d.param(f))
			}
		}
	}
	return orZero(d, f)
}

// counter tells whether a rule adds up, so that nothing is zero.
func counter(r merge.Rule) bool { return r == merge.Sum || r == merge.Count }

// update writes the join into rows that are there.
func (r *relation) update(d dialect) Statement {
	params := r.params(r.beside)
	at := func(f field) string { return at(d, f) }
	versionOf := at
	if r.beside {
		versionOf = func(f field) string { return placed(r.storedOf(f)) }
	}
	moves := r.moves(d, placed, at, versionOf, !r.beside)
	if len(moves) == 0 {
		return Statement{}
	}
	var exprs []string
	all := r.fields()
	if r.beside {
		all = append(all, r.stored...)
	}
	for _, f := range all {
		exprs = append(exprs, taken(d, f)+" as "+place(f))
	}
	return Statement{SQL: d.update(&update{table: quoteTable(d, r.name), set: r.assignments(d, moves, at), from: d.excluded(exprs, params),
		on: r.sameKey(d, placed), differs: "(" + condition(moves, !r.beside) + ")"}), Params: params}
}

// lock writes the statement that tells which rows are there.
func (r *relation) lock(d dialect) Statement {
	var params []Param
	for _, f := range r.key {
		params = append(params, f.Param)
	}
	var on, firsts []string
	for _, f := range r.key {
		on = append(on, same(d, at(d, f), d.matched(f), f))
	}
	if r.beside {
		for _, f := range r.values {
			if f.rule == merge.First {
				firsts = append(firsts, at(d, f)+" is null")
			}
		}
	}
	return Statement{SQL: d.lock(quoteTable(d, r.name), strings.Join(on, " and "), firsts, params), Params: params}
}

// sameKey says that a row has the key of what comes in.
func (r *relation) sameKey(d dialect, in func(field) string) string {
	var on []string
	for _, f := range r.key {
		on = append(on, same(d, at(d, f), in(f), f))
	}
	return strings.Join(on, " and ")
}

// written are the fields that are columns of the relation.
func (r *relation) written() []field {
	if !r.beside {
		return r.fields()
	}
	return append(append([]field{}, r.key...), r.values...)
}

// taken is the parameter of a field, as an update needs it.
func taken(d dialect, f field) string {
	if f.Kind == KeyParam || f.Kind == IDParam || f.Kind == PartParam {
		return d.matched(f)
	}
	return d.param(f)
}

// matched are the parameters of the key.
func (r *relation) matched(d dialect) []string {
	var out []string
	for _, f := range r.key {
		out = append(out, d.matched(f))
	}
	return out
}

func (r *relation) keyNames(d dialect) []string {
	var out []string
	for _, f := range r.key {
		out = append(out, d.quote(f.Name))
	}
	return out
}

// params are the parameters of a statement that writes the relation, with
// stored those of the stored versions too.
func (r *relation) params(stored bool) []Param {
	var out []Param
	for _, f := range r.fields() {
		out = append(out, f.Param)
	}
	if stored {
		for _, f := range r.stored {
			out = append(out, f.Param)
		}
	}
	return out
}
