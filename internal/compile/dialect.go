package compile

import (
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Dialect names a database's SQL.
type Dialect string

// The dialects.
const (
	Postgres Dialect = "postgres"
	SQLite   Dialect = "sqlite"
	// MySQL is MariaDB's too.
	MySQL     Dialect = "mysql"
	SQLServer Dialect = "sqlserver"
	// SQLServerMerge and SQLServerLocks are the other forms of SQL Server's upserts:
	// MERGE with HOLDLOCK, and statements with UPDLOCK and HOLDLOCK.
	SQLServerMerge Dialect = "sqlserver/merge"
	SQLServerLocks Dialect = "sqlserver/updlock"
)

// Dialects are all of them, in the order in which they are shown.
var Dialects = []Dialect{Postgres, SQLite, MySQL, SQLServer}

// heldVariant is what stands behind a dialect's name to hold every table.
const heldVariant = "/held"

// HoldAll is the dialect, but with every table written under locks, as if none
// were Local. It is for tests: what is held is right in every database when it is
// in one.
func (d Dialect) HoldAll() Dialect { return d + heldVariant }

// base is the dialect without a variant.
func (d Dialect) base() Dialect {
	name, _, _ := strings.Cut(string(d), "/")
	return Dialect(name)
}

// Held tells whether a table, as it lives, is written under locks: read, joined
// by package merge, and stored. Else the statements themselves join.
func (d Dialect) Held(t *sink.Table, live *sink.Live) bool {
	return d.holds(t) || d.base() == SQLServer && !sqlserver{}.decides(t, live)
}

// holds is Held, as far as it can be told without the live table.
func (d Dialect) holds(t *sink.Table) bool {
	return !t.Local() || strings.HasSuffix(string(d), heldVariant) || d.base() == SQLServer && (t.Occupied || Beside(t))
}

// dialect is what databases differ in. A relation is written by whole statements
// of the dialect's own (upsert, update, remove, …); the joins are expressions that
// statements of every dialect hold.
type dialect interface {
	// over is the dialect for a table of t as it lives, whose rows are found by a key
	// or by the beginning of one.
	over(t *sink.Table, live *sink.Live, key []string) dialect
	expressions
	writing
	reading
	schemas
}

// expressions are over columns and parameters.
type expressions interface {
	// quote writes a name as an identifier, literal a text.
	quote(name string) string
	literal(s string) string
	// incoming is a column of the row that comes, and resident of the row that is
	// there, in what an upsert of a table does with that.
	incoming(f field) string
	resident(table string, f field) string
	// sequential tells that an assignment sees what those before it have assigned.
	sequential() bool
	// param writes a field of v, the parameters, in the live type.
	param(f field) string
	// matched is param as it is compared with its own column.
	matched(f field) string
	// raw writes a field of v as it came.
	raw(f field) string
	// version prepares a version for a comparison as bytes.
	version(expr string) string
	// bytes gives a text as bytes.
	bytes(expr string, f field) string
	// distinct tells whether two values differ, NULL being a value.
	distinct(a, b string, f field) string
	// greater tells whether a > b by the type of the config.
	greater(a, b string, f field) string
	// newer tells whether a list of versions is not before another.
	newer(a, b []string) string
	// union joins two lists as sets, sorted by bytes.
	union(a, b string, f field) string
	// now is the time at this moment.
	now(f field) string
	// dflt is the default of a column, as an expression of its type.
	dflt(f field) string
	// convert turns a column of one table into the type of another's.
	convert(expr string, from, to field) string
	// read gives a column as it lives, on PostgreSQL as text that any session
	// writes alike.
	read(expr string, f field) string
}

// writing are statements that write. A statement that takes several is a list of
// them, run one after the other with the same parameters.
type writing interface {
	// upsert inserts rows, and joins into those that are there.
	upsert(u *upsert) []string
	// update joins rows into those that are there.
	update(u *update) string
	// excluded is a subquery of the parameters that an update joins.
	excluded(exprs []string, params []Param) string
	// remove deletes rows by key.
	remove(table, on string, params []Param) string
	// sidePut and sideDrop store and remove entries of a table beside.
	sidePut(s *side) string
	sideDrop(s *side, by []field) string
}

// reading are statements that read, and lock.
type reading interface {
	// lock selects which rows of the parameters are there, and locks them.
	lock(table string, on string, firsts []string, params []Param) string
	// byKey selects columns by key, and locks the rows with lock.
	byKey(columns, table, on string, params []Param, lock bool) string
	// page ends a query of every row so that it gives a page of them in the order
	// of the key. Its parameters are with after the parts, texts, of the key behind
	// which the page begins, as they were read, and then the most rows.
	page(all string, key []field, after bool) string
	// records selects what the records of occupants show, the newest of each
	// key, as a subquery.
	records(p *projection) string
	// inOrder is the ORDER BY that takes records in the order of the parameters.
	inOrder(p *projection) string
	// versions writes the statements on the table of versions, and readVersions
	// those that only read it.
	versions(table string) (claim, hold, save string)
	readVersions(table string) (all, byKey string)
	// skipLocked lets a statement that locks leave out what others hold.
	skipLocked(sql string) string
	// sideGet reads entries of a table beside, and oldest locks and reads the key
	// and the version of tombstones that were stored before a time.
	sideGet(s *side, by []field) string
	oldest(s *side) string
}

// schemas are what tables look like, and what a person is told of them.
type schemas interface {
	// column is a column of the config's type, and bytesColumn a text that is
	// compared as bytes: a version, or an identity.
	column(name string, t merge.Type) column
	bytesColumn(name string) column
	// keyed makes a column a part of a key that has so many, and copied gives it
	// the type that a live column has, but for what would refuse NULL.
	keyed(c column, parts int) column
	copied(c column, live *sink.LiveColumn) column
	// entry is a column of a table beside.
	entry(name string, t merge.Type, key bool) column
	// createTable makes a table, if it is not there yet where ifMissing says so;
	// addColumn adds a column to it.
	createTable(table string, lines []string, ifMissing bool) string
	addColumn(table string, c column) string
	// uniqueIndex makes the key of a table, by its name in the config, unique;
	// index makes an index under a name on a table beside, "" if it is a line of
	// the table.
	uniqueIndex(name string, key []string) string
	index(name, table string, columns []string) string
	// besideColumns are those of the table of versions.
	besideColumns() []column
	// primary is the name of a primary key.
	primary() string
	// fits tells whether a live column can hold, and merge, what the config says,
	// and unjudged why Hookfold cannot tell what a type takes, "" if it can.
	fits(t merge.Type, rule merge.Rule, c *sink.LiveColumn) verdict
	unjudged(c *sink.LiveColumn) string
	// keyDoubt says which keys are one in a column, "" if none are, and
	// keepsVersion whether a column can hold a version.
	keyDoubt(c *sink.LiveColumn) string
	keepsVersion(c *sink.LiveColumn) bool
	// longestName is the most bytes of a name, 0 if there is no limit.
	longestName() int
	// allowNull and dropDefault alter a column of a table.
	allowNull(table string, c *sink.LiveColumn) string
	dropDefault(table string, c *sink.LiveColumn) string
	// manner says how parameters travel, mark names one of them, and locks says
	// how a table that one row does not decide is locked.
	manner() string
	mark(n int) string
	locks(t *sink.Table) string
}

// upsert is what becomes of rows that come into a table.
type upsert struct {
	table string
	key   []string
	// columns of a new row, and what they get: expressions over source.
	columns, exprs []string
	// matched are what comes in for the key, as it is compared with it.
	matched []string
	// source is a subquery, p, or "" for the parameters; where and order say which
	// of its rows are taken, in which order.
	source, where, order string
	params               []Param
	// set is what a row that is there becomes; nil leaves it as it is.
	set []assignment
	// guard is the condition without which nothing may be set, "" if set decides
	// itself; differs says that something would change.
	guard, differs string
}

// update is what becomes of rows that are there: on joins them, as t, with the
// subquery excluded that from writes.
type update struct {
	table    string
	set      []assignment
	from, on string
	// guard and differs are as in an upsert.
	guard, differs string
}

func (d Dialect) impl() dialect {
	switch d.base() {
	case SQLite:
		return sqlite{}
	case MySQL:
		return mysql{}
	case SQLServer:
		_, form, _ := strings.Cut(string(d), "/")
		return sqlserver{form: form}
	}
	return postgres{}
}

// Product is the database's name.
func (d Dialect) Product() string {
	return map[Dialect]string{Postgres: "PostgreSQL", SQLite: "SQLite", MySQL: "MySQL", SQLServer: "SQL Server"}[d.base()]
}

// SkipLocked lets a statement that locks rows leave out those that another
// session holds.
func (d Dialect) SkipLocked(sql string) string { return d.impl().skipLocked(sql) }

// Quote writes a name as an identifier of the dialect.
func (d Dialect) Quote(name string) string { return d.impl().quote(name) }

// Literal writes a text as a literal of the dialect.
func (d Dialect) Literal(s string) string { return d.impl().literal(s) }

// QuoteTable writes the name of a table, which may have its schema in front.
func (d Dialect) QuoteTable(name string) string { return quoteTable(d.impl(), name) }
