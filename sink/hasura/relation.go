package hasura

import (
	"context"
	"errors"
	"strings"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// column is a column that is written, and what it takes from a row.
type column struct {
	compile.Param
	*gqlColumn
	rule merge.Rule
}

// value gives what the column takes from a row, in JSON, and false if it is
// NULL.
func (c *column) value(r *merge.Row) ([]byte, bool) {
	text, ok := c.Of(r)
	if !ok {
		return nil, false
	}
	return encode(c.gqlColumn, c.Type.Kind, text), true
}

// register is what moves together: the columns of a scope, or one column of any
// other rule, with the version that it keeps, if any.
type register struct {
	rule    merge.Rule
	scope   int // of a latest register
	columns []*column
	version *column
	rungs   []string
	// swap says that no guard with values decides it: it is read, joined, and
	// written where it still is what was read.
	swap bool
}

// relation is a live table that rows are joined into: that of the config, or
// that of its occupants' records.
type relation struct {
	table      *sink.Table
	name, root string
	fields     rootFields
	constraint string
	key        []*column
	registers  []register
	// shown are the columns that a projection writes, with occupant and
	// versions, and touch those that it moves.
	shown, identity []*column
	touch           []*column
	updates         bool // there is update_x
}

// tableState is what is known of a live table.
type tableState struct {
	own *relation
	// records is nil for a table without occupants.
	records *relation
	// live is the table's schema, as far as it is told.
	live *sink.Live
	// careful looks which rows are there before rows are inserted, since some
	// lack what only a new row needs.
	careful bool
}

// state looks a table up, once.
func (h *hasura) state(ctx context.Context, t *sink.Table) (*tableState, error) {
	k := tableKey{t.Table, t.Name}
	h.mu.Lock()
	have := h.tables[k]
	h.mu.Unlock()
	if have != nil {
		return have, nil
	}
	if err := sink.Refused(t, Refuses(t)); err != nil {
		return nil, operator("%v", err)
	}
	names := []string{t.Name}
	if t.Occupied {
		names = append(names, compile.OccupantsTable(t.Name))
	}
	var roots []string
	for _, n := range names {
		roots = append(roots, h.rootName(n))
		h.names.Store(h.rootName(n), n)
	}
	shown, err := h.introspect(ctx, roots)
	if err != nil {
		return nil, err
	}
	st := &tableState{live: shown[0].live()}
	in, known, err := h.lookIn(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	if known && in.Exists {
		st.live = &in.Live
	}
	if err := h.mustBeGuarded(ctx, t, st.live, shown); err != nil {
		return nil, err
	}
	st.own, err = h.bind(t, t.Name, shown[0], false)
	if err == nil && t.Occupied {
		st.records, err = h.bind(t, names[1], shown[1], true)
	}
	var missing *sink.Error
	if errors.As(err, &missing) && !known {
		missing.Message += h.byHand(ctx, t)
	}
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.tables[k] = st
	h.mu.Unlock()
	return st, nil
}

// byHand says what a person runs in Hasura's console where only GraphQL can be
// asked, "" if nothing is missing that SQL could add.
func (h *hasura) byHand(ctx context.Context, t *sink.Table) string {
	statements, err := h.Plan(ctx, []*sink.Table{t})
	if err != nil || len(statements) == 0 {
		return "" // the cause has been said
	}
	var sql, track []string
	for _, s := range statements {
		if strings.HasPrefix(s, "{") {
			track = append(track, s)
			continue
		}
		sql = append(sql, strings.Join(strings.Fields(s), " ")+";")
	}
	out := ""
	if sql != nil {
		out = `. Run in Hasura's console, under Data and SQL, with "Track this" ticked: ` + strings.Join(sql, " ")
	}
	if track != nil {
		out += ` (that tracks new tables too; as a call of /v1/metadata: ` + strings.Join(track, " ") + ")"
	}
	return out
}

// mustBeGuarded tells that a table whose rows are to be left to its guard trigger
// has none.
func (h *hasura) mustBeGuarded(ctx context.Context, t *sink.Table, live *sink.Live, shown []*gqlTable) error {
	if t.Guard != sink.ByTrigger || !live.Exists {
		return nil
	}
	var records *sink.Live
	if t.Occupied {
		records = shown[1].live()
		in, known, err := h.lookIn(ctx, compile.OccupantsTable(t.Name))
		if err != nil {
			return err
		}
		if known && in.Exists {
			records = &in.Live
		}
	}
	if why := compile.Unguarded(compile.Postgres, t, live, records); why != "" {
		return operator("table %s: %s; until then events wait", t.Name, why)
	}
	return nil
}

// forget drops what is known of live tables.
func (h *hasura) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.tables)
}

// setCareful remembers that rows of tables lack what only a new row needs, and
// tells whether that is news.
func (h *hasura) setCareful(states []*tableState) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	news := false
	for _, st := range states {
		news = news || !st.careful
		st.careful = true
	}
	return news
}

func (h *hasura) isCareful(st *tableState) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return st.careful
}

// binder looks the columns of a relation up in what GraphQL shows.
type binder struct {
	r   *relation
	g   *gqlTable
	err error
}

// column binds one column; update says that it is not only inserted.
func (b *binder) column(p compile.Param, rule merge.Rule, update bool) *column {
	c := &column{Param: p, rule: rule, gqlColumn: b.g.columns[p.Name]}
	switch {
	case b.err != nil:
	case c.gqlColumn == nil:
		b.err = operator("table %s: Hasura shows no column %s. Add it (hookfold migrate shows how), reload the metadata, and let the role select, insert and update it; until then events wait", b.r.name, p.Name)
	case !c.insert || update && !c.update:
		b.err = operator("table %s: column %s may not be written: it is generated by the database, or the role may not insert and update it; until then events wait", b.r.name, p.Name)
	}
	return c
}

// bind makes the relation of a table, or of the records of its occupants.
func (h *hasura) bind(t *sink.Table, name string, g *gqlTable, records bool) (*relation, error) {
	r := &relation{table: t, name: name, root: g.root, fields: g.fields, updates: g.updates}
	h.called(g.fields, name)
	if !g.exists {
		return nil, operator("Hasura shows no table %s (as %s). Create it (hookfold migrate shows how), track it, and let the role select, insert and update it; until then events wait", name, g.root)
	}
	if !g.inserts {
		return nil, operator("table %s: the role may not insert into it, or it is a view; until then events wait", name)
	}
	b := &binder{r: r, g: g}
	keys := []string{}
	for i, k := range t.Key {
		r.key = append(r.key, b.column(compile.Param{Kind: compile.KeyParam, Index: i, Name: k.Name, Type: k.Type}, merge.Latest, false))
		keys = append(keys, k.Name)
	}
	if records {
		r.key = append(r.key, b.column(compile.Param{Kind: compile.IDParam, Name: compile.OccupantColumn}, merge.Latest, false))
		keys = append(keys, compile.OccupantColumn)
	}
	scopes := map[int]*register{}
	mine := func(i int) bool { return t.OfKey(i) != records }
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Rule == merge.Touch {
			if !records {
				r.touch = append(r.touch, b.column(compile.Param{Kind: compile.CellParam, Index: i, Name: c.Name, Type: c.Type}, c.Rule, true))
			}
			continue
		}
		if records && !mine(i) {
			continue
		}
		col := b.column(compile.Param{Kind: compile.CellParam, Index: i, Name: c.Name, Type: c.Type}, c.Rule, true)
		var version *column
		s := t.ScopeOf(i)
		switch {
		case c.Rule == merge.First:
			version = b.column(compile.Param{Kind: compile.FirstParam, Index: i, Name: compile.FirstColumn(c.Name)}, c.Rule, true)
		case s >= 0 && scopes[s] == nil:
			version = b.column(compile.Param{Kind: compile.ScopeParam, Index: s, Name: compile.ScopeColumn(t.Scopes()[s])}, c.Rule, true)
		}
		if b.err != nil {
			return nil, b.err
		}
		if !records && !mine(i) { // it belongs to occupants: only their projection writes it
			r.shown = append(r.shown, col)
			if version != nil {
				r.shown = append(r.shown, version)
				if s >= 0 {
					scopes[s] = &register{}
				}
			}
			continue
		}
		if s >= 0 {
			if scopes[s] == nil {
				scopes[s] = &register{rule: merge.Latest, scope: s, version: version}
			}
			scopes[s].columns = append(scopes[s].columns, col)
			continue
		}
		reg := register{rule: c.Rule, scope: -1, columns: []*column{col}, version: version, rungs: c.Rungs}
		switch c.Rule {
		case merge.Max, merge.Min:
			reg.swap = !ordered(col.gqlColumn, c.Type.Kind)
		case merge.Union:
			reg.swap = true
		}
		if reg.swap && col.scalar == "json" {
			return nil, operator("table %s: column %s is json, which PostgreSQL cannot compare. Make it jsonb: alter table %s alter column %s type jsonb;", name, c.Name, compile.QuoteTable(name), compile.Quote(c.Name))
		}
		r.registers = append(r.registers, reg)
	}
	var latest []register
	for s := range t.Scopes() {
		if reg := scopes[s]; reg != nil && reg.columns != nil {
			latest = append(latest, *reg)
		}
	}
	r.registers = append(latest, r.registers...)
	since := compile.Param{Kind: compile.SinceParam, Name: compile.SinceColumn}
	if records {
		// Sinces are of one width, so that every collation orders them alike.
		r.registers = append(r.registers, register{rule: merge.Max, scope: -1, columns: []*column{b.column(since, merge.Max, true)}})
	} else if t.Occupied {
		r.identity = []*column{b.column(since, merge.Latest, true), b.column(compile.Param{Kind: compile.IDParam, Name: compile.OccupantColumn}, merge.Latest, true)}
	}
	if b.err != nil {
		return nil, b.err
	}
	var err error
	r.constraint, err = h.constraintOn(g, name, keys)
	return r, err
}

// speaks tells whether a row says anything of a register.
func (g *register) speaks(r *merge.Row) bool {
	if g.rule == merge.Latest {
		return r.Scopes[g.scope] != ""
	}
	if g.version != nil {
		_, ok := g.version.Of(r)
		return ok
	}
	_, ok := g.columns[0].Of(r)
	return ok
}

// object writes a row whole, as a new one has it: NULL for what is not said of a
// column of any rule but latest, so that no default counts as a value (F13).
// joined are values that stand for those of the row, by column; rec, if not nil,
// is the record that the row is to show.
func (r *relation) object(row *merge.Row, joined map[string][]byte, rec *merge.Row) []byte {
	b := []byte{'{'}
	put := func(name string, value []byte) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, name...)
		b = append(b, `":`...)
		b = append(b, value...)
	}
	write := func(c *column, unset string) {
		if v := joined[c.name]; v != nil {
			put(c.name, v)
		} else if v, ok := c.value(row); ok {
			put(c.name, v)
		} else if unset != "" {
			put(c.name, []byte(unset))
		}
	}
	for _, c := range r.key {
		write(c, "null")
	}
	for i := range r.registers {
		g := &r.registers[i]
		unset := "null"
		if g.rule == merge.Latest && !g.speaks(row) {
			unset = "" // the column's default
		}
		for _, c := range g.columns {
			write(c, unset)
		}
		if g.version != nil {
			write(g.version, "")
		}
	}
	if rec != nil {
		row = rec
		for _, c := range r.shown {
			unset := "null"
			if c.Kind == compile.CellParam {
				if s := r.table.ScopeOf(c.Index); s >= 0 && rec.Scopes[s] == "" {
					unset = ""
				}
			}
			write(c, unset)
		}
		for _, c := range r.identity {
			write(c, "null")
		}
	}
	for _, c := range r.touch {
		put(c.name, touched(c))
	}
	return append(b, '}')
}

// keyOf reads the key of a row out of an answer; of a record, that of its row.
func (r *relation) keyOf(row answerRow) (merge.Key, string) {
	var parts []string
	id := ""
	for _, c := range r.key {
		v := valueOf(c.Type, c.gqlColumn, row[c.name]).Text()
		if c.Kind == compile.IDParam {
			id = v
			continue
		}
		parts = append(parts, v)
	}
	return merge.NewKey(parts...), id
}

func (r *relation) keyNames() string {
	var out []string
	for _, c := range r.key {
		out = append(out, c.name)
	}
	return strings.Join(out, " ")
}
