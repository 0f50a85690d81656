package compile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

var timeType = merge.Type{Kind: merge.Timestamp}

// side is a table that stands beside all tables of a schema and remembers what
// their rows cannot. Its first column is table_name.
type side struct {
	name   string
	d      Dialect
	key    []field // behind table_name
	values []field
	// stamp is the column that takes the time at which an entry was stored, ""
	// if there is none.
	stamp string
	// index is a column by which entries are found too, "" if there is none.
	index string
	// locks says that it is the table of locks, which has a column n and no other.
	locks bool
}

// SideStatements are what a sink runs on one of these tables. The first
// parameter is the table's name as TableName gives it; the others are named by
// the columns: on PostgreSQL arrays with an element per entry, on SQLite single
// values.
type SideStatements struct {
	// Get reads entries by the whole key, and gives key and values.
	Get string
	// Put stores entries, key and values; those that are there are replaced.
	Put string
	// Drop removes entries by the whole key.
	Drop string
}

// TableName is how tables beside name a table: without its schema, in which
// they stand too.
func TableName(name string) string {
	parts := SplitTable(name)
	return parts[len(parts)-1]
}

// KeyText is how tables beside write a key: as a JSON list of its parts.
func KeyText(k merge.Key) string {
	b, _ := json.Marshal(k.Parts()) // a list of valid texts
	return string(b)
}

// ParseKeyText reads what KeyText wrote.
func ParseKeyText(s string) (merge.Key, error) {
	var parts []string
	if err := json.Unmarshal([]byte(s), &parts); err != nil {
		return "", fmt.Errorf("%q is not a key: %w", s, err)
	}
	return merge.NewKey(parts...), nil
}

func sideOf(d Dialect, t *sink.Table, name string, key, values []string, stamp string) *side {
	s := &side{name: besideTable(t.Name, func(string) string { return "hookfold_" + name }), d: d, stamp: stamp}
	make1 := func(name string, key bool) field {
		typ := versionType
		switch name {
		case DeletedAtColumn, "at":
			typ = timeType
		case "amount":
			typ = merge.Type{Kind: merge.Numeric}
		}
		c := d.impl().entry(name, typ, key)
		return field{Param: Param{Name: name, Type: typ, Live: &c.live}, scope: -1}
	}
	n := 1
	for _, k := range key {
		f := make1(k, true)
		n++
		f.n = n
		s.key = append(s.key, f)
	}
	for _, v := range values {
		f := make1(v, false)
		n++
		f.n = n
		s.values = append(s.values, f)
	}
	return s
}

func tombstones(d Dialect, t *sink.Table) *side {
	return sideOf(d, t, "tombstones", []string{"key"}, []string{DeleteColumn, DeletedAtColumn}, "stored_at")
}

func setsOf(d Dialect, t *sink.Table) *side {
	return sideOf(d, t, "sets", []string{"group_key"}, []string{"version", "at"}, "")
}

func linksOf(d Dialect, t *sink.Table) *side {
	return sideOf(d, t, "links", []string{"old", "new"}, nil, "")
}

func aliasesOf(d Dialect, t *sink.Table) *side {
	s := sideOf(d, t, "aliases", []string{"identity"}, []string{"root"}, "")
	s.index = "root"
	return s
}

func ledgerOf(d Dialect, t *sink.Table) *side {
	return sideOf(d, t, "ledger", []string{"key", "column_name", "identity"}, []string{"version", "amount"}, "")
}

func metaOf(d Dialect, t *sink.Table) *side {
	return sideOf(d, t, "meta", nil, []string{"purged_upto"}, "")
}

// locksOf is the table whose rows are locks: one column.
func locksOf(d Dialect, t *sink.Table) *side {
	return &side{name: LocksTable(t.Name), d: d, locks: true}
}

// sides are the tables that a table needs beside it.
func sides(d Dialect, t *sink.Table) []*side {
	var out []*side
	if buries(t) {
		out = append(out, tombstones(d, t), metaOf(d, t))
	}
	if t.Group != nil {
		out = append(out, setsOf(d, t))
	}
	if Linked(t.Table) {
		out = append(out, linksOf(d, t), aliasesOf(d, t))
	}
	if counts(t) {
		out = append(out, ledgerOf(d, t))
	}
	if d == MySQL && !t.Local() {
		out = append(out, locksOf(d, t))
	}
	return out
}

// AllTables names a table and all that stand beside it and keep what belongs to
// it. Those beside may be shared with other tables.
func AllTables(d Dialect, t *sink.Table) []string {
	out := SideTables(d, t)
	if Beside(t) {
		out = append(out, VersionsTable(t.Name))
	}
	if t.Occupied {
		out = append(out, OccupantsTable(t.Name))
	}
	return append(out, t.Name)
}

// SideTables names the tables beside that a table needs.
func SideTables(d Dialect, t *sink.Table) []string {
	var out []string
	for _, s := range sides(d, t) {
		out = append(out, s.name)
	}
	return out
}

// marks tells whether a row remembers its own delete.
func marks(t *sink.Table) bool {
	return t.OnDelete == merge.DeleteMark || t.OnDelete == merge.DeleteSet
}

// buries tells whether deletes of rows that are not there are remembered beside
// the table. Where rows have occupants, their records remember.
func buries(t *sink.Table) bool { return t.OnDelete != merge.DeleteNone && !t.Occupied }

// Linked tells whether a table keeps links between identities.
func Linked(t *merge.Table) bool {
	return t.Chained || slices.ContainsFunc(t.Columns, func(c merge.Column) bool { return c.Rule == merge.Chain })
}

func counts(t *sink.Table) bool {
	return slices.ContainsFunc(t.Columns, func(c merge.Column) bool { return counter(c.Rule) })
}

func (s *side) fields() []field { return append(append([]field{}, s.key...), s.values...) }

func (s *side) ddl() []string {
	d := s.d.impl()
	if s.locks {
		return []string{d.createTable(quoteTable(d, s.name), []string{d.quote("n") + " int not null", "primary key (" + d.quote("n") + ")"}, true)}
	}
	var lines []string
	add := func(c column, refuses bool) {
		if refuses {
			c = notNull(c)
		}
		lines = append(lines, d.quote(c.name)+" "+c.ddl)
	}
	add(d.entry("table_name", versionType, true), true)
	names := []string{"table_name"}
	for i, f := range s.fields() {
		key := i < len(s.key)
		add(d.entry(f.Name, f.Type, key), key || f.Type.Kind != merge.Timestamp)
		if key {
			names = append(names, f.Name)
		}
	}
	if s.stamp != "" {
		add(d.column(s.stamp, timeType), true)
	}
	lines = append(lines, "primary key ("+quoted(d, names)+")")
	index := ""
	if s.index != "" {
		columns := []string{"table_name", s.index}
		if index = d.index(s.index, s.name, columns); index == "" {
			lines = append(lines, "key "+d.quote(s.index)+" ("+quoted(d, columns)+")")
		}
	}
	out := []string{d.createTable(quoteTable(d, s.name), lines, true)}
	if index != "" {
		out = append(out, index)
	}
	return out
}

// statements writes the statements of the table.
func (s *side) statements() *SideStatements {
	d := s.d.impl()
	return &SideStatements{Get: s.get(s.key), Put: d.sidePut(s), Drop: d.sideDrop(s, s.key)}
}

// get reads entries by some of the key's columns.
func (s *side) get(by []field) string {
	for i := range by {
		by[i].n = i + 2
	}
	return s.d.impl().sideGet(s, by)
}

// shown are a side's columns as they are read.
func (s *side) shown(d dialect) string {
	var out []string
	for _, f := range s.fields() {
		out = append(out, d.read(at(d, f), f))
	}
	return strings.Join(out, ", ")
}

// assigned is what ON CONFLICT does on PostgreSQL and SQLite.
func (s *side) assigned() string {
	names := []string{"table_name"}
	for _, f := range s.key {
		names = append(names, f.Name)
	}
	var set []string
	for _, f := range s.values {
		set = append(set, Quote(f.Name)+" = excluded."+Quote(f.Name))
	}
	if s.stamp != "" {
		set = append(set, s.stamp+" = excluded."+s.stamp)
	}
	if set == nil {
		return "on conflict (" + quoted(postgres{}, names) + ") do nothing"
	}
	return "on conflict (" + quoted(postgres{}, names) + ") do update set " + strings.Join(set, ", ")
}

func (s *side) columns() []string {
	names := []string{"table_name"}
	for _, f := range s.fields() {
		names = append(names, f.Name)
	}
	if s.stamp != "" {
		names = append(names, s.stamp)
	}
	return names
}

func (d postgres) sideFrom(fields []field) string {
	var arrays, names []string
	for _, f := range fields {
		arrays = append(arrays, fmt.Sprintf("$%d::text[]", f.n))
		names = append(names, place(f))
	}
	return fmt.Sprintf("unnest(%s) as v (%s)", strings.Join(arrays, ", "), strings.Join(names, ", "))
}

func (d postgres) sideOn(fields []field) string {
	on := "t.table_name = $1"
	for _, f := range fields {
		on += " and " + at(d, f) + " = " + d.raw(f)
	}
	return on
}

func (d postgres) sideGet(s *side, by []field) string {
	if len(by) == 0 {
		return fmt.Sprintf("select %s from %s as t where %s", s.shown(d), QuoteTable(s.name), d.sideOn(nil))
	}
	return fmt.Sprintf("select %s from %s join %s as t on %s", s.shown(d), d.sideFrom(by), QuoteTable(s.name), d.sideOn(by))
}

func (d postgres) sidePut(s *side) string {
	exprs := []string{"$1"}
	for _, f := range s.fields() {
		exprs = append(exprs, d.param(f))
	}
	if s.stamp != "" {
		exprs = append(exprs, "clock_timestamp()")
	}
	return fmt.Sprintf("insert into %s (%s)\nselect %s from %s\n%s", QuoteTable(s.name), quoted(d, s.columns()), strings.Join(exprs, ", "), d.sideFrom(s.fields()), s.assigned())
}

func (d postgres) sideDrop(s *side, by []field) string {
	if len(by) == 0 {
		return fmt.Sprintf("delete from %s as t where %s", QuoteTable(s.name), d.sideOn(nil))
	}
	return fmt.Sprintf("delete from %s as t using %s where %s", QuoteTable(s.name), d.sideFrom(by), d.sideOn(by))
}

func (d sqlite) sideOn(fields []field) string {
	on := "t.table_name = ?1"
	for _, f := range fields {
		on += " and " + at(d, f) + " = " + d.raw(f)
	}
	return on
}

func (d sqlite) sideGet(s *side, by []field) string {
	return fmt.Sprintf("select %s from %s as t where %s", s.shown(d), QuoteTable(s.name), d.sideOn(by))
}

func (d sqlite) sidePut(s *side) string {
	exprs := []string{"?1"}
	for _, f := range s.fields() {
		exprs = append(exprs, d.raw(f))
	}
	if s.stamp != "" {
		exprs = append(exprs, d.now(field{}))
	}
	return fmt.Sprintf("insert into %s (%s) values (%s)\n%s", QuoteTable(s.name), quoted(d, s.columns()), strings.Join(exprs, ", "), s.assigned())
}

func (d sqlite) sideDrop(s *side, by []field) string {
	return fmt.Sprintf("delete from %s as t where %s", QuoteTable(s.name), d.sideOn(by))
}
