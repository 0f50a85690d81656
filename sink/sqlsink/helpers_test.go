package sqlsink_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// col describes a column as a config does: "price numeric", "note text scope note",
// "origin text first", "step text ladder sent,read".
func col(t testing.TB, s string) merge.Column {
	t.Helper()
	w := strings.Fields(s)
	typ, err := merge.ParseType(w[1])
	if err != nil {
		t.Fatal(err)
	}
	c := merge.Column{Name: w[0], Type: typ, Scope: merge.RowScope}
	for i := 2; i < len(w); i++ {
		switch w[i] {
		case "scope":
			i++
			c.Scope = w[i]
		case "ladder":
			i++
			c.Rule, c.Rungs = merge.Ladder, strings.Split(w[i], ",")
		default:
			rule, ok := merge.ParseRule(w[i])
			if !ok {
				t.Fatalf("no rule %s", w[i])
			}
			c.Rule = rule
		}
	}
	if c.Rule != merge.Latest && c.Scope == merge.RowScope {
		c.Scope = ""
	}
	return c
}

// tableOf makes a table with a key, "id text", and columns.
func tableOf(t testing.TB, name, key string, columns ...string) *sink.Table {
	t.Helper()
	return &sink.Table{Name: name, Table: merge.NewTable(shape(t, name, key, columns...))}
}

func shape(t testing.TB, name, key string, columns ...string) merge.Table {
	t.Helper()
	m := merge.Table{Name: name}
	for _, k := range strings.Split(key, ", ") {
		c := col(t, k)
		m.Key = append(m.Key, merge.KeyColumn{Name: c.Name, Type: c.Type})
	}
	for _, c := range columns {
		m.Columns = append(m.Columns, col(t, c))
	}
	return m
}

// say makes a change: columns by name, nil is NULL, those not named are unset.
func say(t testing.TB, table *sink.Table, key string, version int64, set map[string]any) *merge.Change {
	t.Helper()
	c := &merge.Change{Table: table.Table, Key: merge.NewKey(strings.Split(key, "|")...), Cells: make([]merge.Cell, len(table.Columns))}
	c.Version = merge.NewVersion([]merge.Component{merge.IntOf(version)}, merge.Write, []byte(key), []byte(fmt.Sprint(set)))
	for name, v := range set {
		i := table.Column(name)
		if i < 0 {
			t.Fatalf("no column %s", name)
		}
		c.Cells[i].Set = true
		if v == nil {
			continue
		}
		var err error
		if c.Cells[i].Value, err = merge.ParseValue(table.Columns[i].Type, v.(string)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return c
}

func group(table *sink.Table, changes ...*merge.Change) sink.Group {
	return sink.Group{Table: table, Rows: merge.Fold(table.Table, changes)}
}

func write(t testing.TB, s sink.Sink, table *sink.Table, changes ...*merge.Change) *sink.Result {
	t.Helper()
	r, err := s.Apply(t.Context(), &sink.Batch{Groups: []sink.Group{group(table, changes...)}})
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	return r
}

// refused applies a change that cannot land, and returns the error.
func refused(t testing.TB, s sink.Sink, table *sink.Table, changes ...*merge.Change) *sink.Error {
	t.Helper()
	_, err := s.Apply(t.Context(), &sink.Batch{Groups: []sink.Group{group(table, changes...)}})
	return asError(t, err)
}

func asError(t testing.TB, err error) *sink.Error {
	t.Helper()
	var rows *sink.BatchError
	if errors.As(err, &rows) {
		return rows.Rows[0].Err
	}
	var e *sink.Error
	if !errors.As(err, &e) {
		t.Fatalf("apply: %v is not an error of package sink", err)
	}
	return e
}

// shown reads one row's columns as text, in the order of the table's.
func shown(t testing.TB, s sink.Sink, table *sink.Table, key string) string {
	t.Helper()
	rows, err := s.Read(t.Context(), table, []merge.Key{merge.NewKey(strings.Split(key, "|")...)})
	if err != nil {
		t.Fatal(err)
	}
	if rows[0] == nil {
		return "no row"
	}
	var out []string
	for i, c := range table.Columns {
		if c.Rule != merge.Touch {
			out = append(out, c.Name+"="+rows[0].Cells[i].Value.String())
		}
	}
	return strings.Join(out, " ")
}

func mustShow(t testing.TB, s sink.Sink, table *sink.Table, key, want string) {
	t.Helper()
	if got := shown(t, s, table, key); got != want {
		t.Errorf("%s %s:\n got %s\nwant %s", table.Name, key, got, want)
	}
}

// database is an engine's empty database.
type database struct {
	name string
	url  func(testing.TB) string
}

var databases = []database{{"postgres", testdb.Schema}, {"sqlite", testdb.SQLite}, {"mysql", testdb.MySQL}}

// eight are the options for eight writers at once. Nobody retries for them, so on an
// engine whose pace is not known each waits for its locks as long as it takes.
func eight(engine string) sqlsink.Options {
	o := sqlsink.Options{Connections: 8}
	if engine == "sqlserver" {
		o.LockTimeout = 30 * time.Second
	}
	return o
}

// withSQLServer are all databases and, where one is named, a T-SQL engine.
func withSQLServer() []database {
	if os.Getenv(testdb.SQLServerVar) == "" {
		return databases
	}
	return append(databases[:len(databases):len(databases)], database{"sqlserver", testdb.SQLServer})
}

// onEach runs a test on every engine, with the tables made as Plan says.
func onEach(t *testing.T, run func(t *testing.T, open func(tables ...*sink.Table) sink.Sink)) {
	onThose(t, databases, run)
}

func onThose(t *testing.T, list []database, run func(t *testing.T, open func(tables ...*sink.Table) sink.Sink)) {
	for _, d := range list {
		t.Run(d.name, func(t *testing.T) {
			run(t, func(tables ...*sink.Table) sink.Sink {
				s := open(t, d.url(t), tables, eight(d.name))
				bring(t, s, tables...)
				return s
			})
		})
	}
}

// bring runs what Plan says.
func bring(t testing.TB, s sink.Sink, tables ...*sink.Table) {
	t.Helper()
	statements, err := s.Plan(t.Context(), tables)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Execute(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

// run executes statements of a test's own, in the words of the sink's database.
func run(t testing.TB, s sink.Sink, statements ...string) {
	t.Helper()
	if sqlsink.DialectOf(s) == compile.MySQL {
		for i, text := range statements {
			statements[i] = inMySQL(text)
		}
	}
	if err := s.Execute(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

// indexed finds columns of text that are part of an index.
var indexed = regexp.MustCompile(` text (not null|primary key|unique|references)`)

// inMySQL writes a statement of PostgreSQL and SQLite as MySQL takes it: text in
// an index has a length, and a key compares bytes.
func inMySQL(text string) string {
	text = indexed.ReplaceAllString(text, " varchar(100) character set utf8mb4 collate utf8mb4_bin $1")
	return strings.ReplaceAll(text, " numeric ", " decimal(65,30) ")
}
