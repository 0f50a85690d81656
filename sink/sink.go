// Package sink is the contract of the databases in which rows land. sinktest is
// the suite that every sink passes: package merge says what the rows must be.
package sink

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookfold/hookfold/merge"
)

// Table is a table of a config together with where it lives.
type Table struct {
	*merge.Table
	// Name is the table's name in the database, with its schema if it is not
	// the default one: public.booking.
	Name string
	// UnsafeUnique are the unique indexes besides the key, by name or by column,
	// that the table may have on MySQL.
	UnsafeUnique []string
	// Versions says where versions live.
	Versions Placement
	// Guard says what keeps rows right.
	Guard Guard
}

// Guard says what keeps the rows of a table right.
type Guard uint8

const (
	// ByStatement: the statements that the sink writes with. Nobody else writes
	// the columns that Hookfold maps.
	ByStatement Guard = iota
	// ByTrigger: a guard trigger in the database, which joins whatever is
	// written. A sink may leave the joining to it.
	ByTrigger
)

// Placement says where the versions of a table's rows live.
type Placement uint8

const (
	// InRow keeps versions in columns of the table: row_version,
	// <scope>_version and <column>__first.
	InRow Placement = iota
	// Beside keeps them in the table hookfold_versions of the same database,
	// for tables that may not be altered.
	Beside
)

// Sink writes folded rows into one database. It is safe for concurrent use.
type Sink interface {
	// Apply joins a batch into the database in one transaction: afterwards each
	// row is the join of what it was and of the batch's, and either the whole
	// batch is in or nothing of it. Applying a batch again changes nothing. An
	// error is an *Error, or a *BatchError where the sink knows which rows are
	// at fault; anything else counts as Retry.
	Apply(ctx context.Context, b *Batch) (*Result, error)

	// Inspect reads the live schema of a table.
	Inspect(ctx context.Context, t *Table) (*Live, error)

	// Read returns the rows of a table that have these keys, as they live, in
	// the order of the keys and nil where there is none. With nil keys it
	// returns all rows, sorted by key.
	Read(ctx context.Context, t *Table, keys []merge.Key) ([]*merge.Row, error)

	// Page reads every row of a table as it lives, a page of at most limit rows at
	// a time: the first page, or with the cursor of the page before the one behind
	// it. The cursor that it returns is "" when there is no row behind. The order
	// is the database's own. A row that is inserted or removed meanwhile may be
	// seen or not, every other is seen once; one whose key is NULL is not seen.
	Page(ctx context.Context, t *Table, after Cursor, limit int) (rows []*merge.Row, next Cursor, err error)

	// Plan returns the statements that bring the live schema in line with the
	// tables, and none if it is: additive only, in the order to be run.
	Plan(ctx context.Context, tables []*Table) ([]string, error)

	// Execute runs statements of Plan.
	Execute(ctx context.Context, statements []string) error

	// Ping tells whether the database can be reached.
	Ping(ctx context.Context) error

	Close() error
}

// Cursor is a place between two pages, for the sink that gave it.
type Cursor string

// Knower is a Sink that can tell which rows it knows.
type Knower interface {
	// Known tells, in the order of the keys, of which rows of a table there is a
	// row or the memory of a delete. On a table with chains an identity of a
	// chain that has a row counts. A row that is known stays known, unless
	// somebody else removes it.
	Known(ctx context.Context, t *Table, keys []merge.Key) ([]bool, error)
}

// Rememberer is a Sink that can tell what it keeps beside rows.
type Rememberer interface {
	// Held gives what is kept of keys of a table that is not Local: rows, the
	// memory of deletes, complete lists, records of occupants, links. It may lock
	// the rows for as long as it reads them.
	Held(ctx context.Context, t *Table, keys []merge.Key) (*merge.Held, error)
	// Ledgers gives, in the order of the keys, what each event has added to the
	// counters of a row: by the column's place and the event's identity.
	Ledgers(ctx context.Context, t *Table, keys []merge.Key) ([]map[int]map[string]merge.Amount, error)
}

// Replacer is a Sink that can set rows to what is said of them, whatever they
// are: for rows that were written under other rules.
type Replacer interface {
	// Replaces tells whether it can do so on a table.
	Replaces(t *Table) bool
	// Replace sets what is kept of keys to what is said, in one transaction and
	// under the locks that Apply takes: values, versions, the memory of deletes.
	// Counters keep what the events that are not among those said have added, and
	// what they had before. Columns that the config does not map stay. A row that
	// nothing is said of is removed.
	Replace(ctx context.Context, t *Table, said *merge.Held, keys []merge.Key) error
}

// Purger is a Sink that remembers deletes apart from rows, and can forget them.
type Purger interface {
	// Purge forgets the deletes of a table's rows that it has kept since before a
	// time, and tells how many. Rows stay as they are, and so do deletes that a
	// row or an occupant's record remembers. From then on a change is refused
	// (Reject) that is not newer than what was forgotten and whose row is not
	// there: nothing can tell any more whether the row was deleted after it. The
	// caller takes care that no event from before that time is still to come.
	Purge(ctx context.Context, t *Table, before time.Time) (int, error)
}

// Batch is what one transaction writes: groups in the order to be written,
// parents before children, and in each group rows sorted by key as merge.Folder
// gives them.
type Batch struct {
	Groups []Group
	// Park says that rows of the batch may take unique values from each other.
	// A sink that can first sets the columns of unique indexes to NULL, where
	// they may be NULL, in the rows that the batch is going to change, in the
	// same transaction. The rows afterwards are the same as without it. A sink
	// that cannot do it leaves it, and fails as without it.
	Park bool
}

// Group is what a batch says of one table.
type Group struct {
	Table *Table
	Rows  []*merge.Row
	// Sets and Links are of tables that are not Local: a sink joins them before
	// the rows, as merge.Held does.
	Sets  []merge.Set
	Links []merge.Link
}

// Result tells what a batch did.
type Result struct {
	// Written counts rows that were inserted or changed, Unchanged those that
	// were already as new or newer.
	Written, Unchanged int
	// Absent lists rows of IfMissing Wait for which there is no row: they were
	// not written.
	Absent []RowRef
}

// RowRef names a row of a batch.
type RowRef struct {
	Table *Table
	Row   *merge.Row
}

// Action is what a caller does about an error.
type Action uint8

const (
	// Retry the same batch after a pause: the fault lies with the database or
	// the way to it.
	Retry Action = iota
	// Wait: the row needs something that another event may bring.
	Wait
	// Reject: the row cannot land without a person.
	Reject
)

// Why is the kind of constraint that a row has to wait for.
type Why string

// The kinds of constraints that another event may satisfy.
const (
	// NeedsParent: On is the row that the database misses.
	NeedsParent Why = "foreign key"
	// UniqueValue: On is the row that holds the value.
	UniqueValue Why = "unique"
	// NotNull: a column that another event of the same row may bring.
	NotNull Why = "not null"
	// Locked: another session of the database holds the row, or one that it needs.
	Locked Why = "lock"
)

// Error is an error of a sink that says what to do about it.
type Error struct {
	Action Action
	// Message tells a person what is wrong, with the name of the table, column
	// or constraint, and what to do.
	Message string
	// Code is the database's own (SQLSTATE 22003), "" if it has none.
	Code string
	// On is what a Wait waits for, "" if the database does not tell: a row, as
	// the table's name in the config, a space and Table.Show of its key; the name
	// of a table in the config, any row of which may be it; or any other text,
	// for a person.
	On string
	// Why tells what kind of constraint makes it Wait, "" if it is another.
	Why Why
	// After is how long to wait at least before a Retry.
	After time.Duration
	Err   error
}

func (e *Error) Error() string {
	if e.Code != "" {
		return fmt.Sprintf("%s (%s)", e.Message, e.Code)
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// BatchError is an error of a batch of which the sink knows the rows at fault.
// Nothing of the batch was written.
type BatchError struct {
	Rows []RowError
}

// RowError is one row at fault.
type RowError struct {
	RowRef
	Err *Error
}

func (e *BatchError) Error() string {
	if len(e.Rows) == 1 {
		return e.Rows[0].Err.Error()
	}
	return fmt.Sprintf("%d rows cannot be written; the first: %v", len(e.Rows), e.Rows[0].Err)
}

// ActionOf returns what to do about an error of Apply: Retry for an error that
// is not of this package.
func ActionOf(err error) Action {
	var e *Error
	if errors.As(err, &e) {
		return e.Action
	}
	return Retry
}

// Live is the live schema of one table.
type Live struct {
	// Exists tells whether there is such a table; nothing else is set if not.
	Exists  bool
	Columns []LiveColumn
	// Uniques are the column lists of the unique indexes that can decide a
	// conflict (no partial or expression indexes), the primary key among them.
	Uniques []Unique
	// ReadOnly says why rows cannot be written, "" if they can.
	ReadOnly string
	// References are the table's foreign keys, and ReferencedBy those that name
	// its rows.
	References, ReferencedBy []Reference
	// Triggers are the triggers of the table that the database runs for each row
	// that is written, or for each statement, sorted by name; nil if the sink
	// cannot tell.
	Triggers []Trigger
	// FillsRows says that a trigger runs before an insert, so that a column that
	// is NOT NULL may be filled by it.
	FillsRows bool
}

// Trigger is a trigger of a live table.
type Trigger struct {
	// Name is the trigger's name, and Body the source of what it runs.
	Name, Body string
	// Enabled is false if it was switched off.
	Enabled bool
	// Before says that it runs before a row is inserted or updated, and so can
	// change it.
	Before bool
}

// Reference is a foreign key: columns of a table name rows of another.
type Reference struct {
	// Name is the constraint's name, "" where constraints have none.
	Name string
	// Table is the one whose Columns name the rows of To by ToColumns; both are
	// named as a query would.
	Table     string
	Columns   []string
	To        string
	ToColumns []string
	// CascadesUpdate says that the columns follow when the row that they name gets
	// another key.
	CascadesUpdate bool
}

// Unique is a unique index.
type Unique struct {
	Name    string
	Columns []string
	// Partial says that it is on beginnings of columns or on expressions: it may
	// refuse rows, but is no key. Only MySQL lists such ones.
	Partial bool
}

// LiveColumn is a live column.
type LiveColumn struct {
	Name string
	// Type is the type as the database writes it in a cast.
	Type string
	// Base is the type behind a domain, as the database writes it.
	Base string
	// Length is the most characters of a text type, or of the elements of a list;
	// 0 is unlimited. Units says what it counts.
	Length int
	Units  Units
	// Precision and Scale of a decimal type; Precision 0 is unlimited. On MySQL
	// Scale is also the digits of a second that a time keeps.
	Precision, Scale int
	// Bits is the size of an integer type, and of real on PostgreSQL; 0 if it is
	// none of them.
	Bits int
	// Unsigned says that an integer type has no negative numbers.
	Unsigned bool
	// MaxBytes is the most bytes of a text or binary type of MySQL; 0 is unlimited.
	MaxBytes int
	// Charset is the character set, and CollatedBy the collation, of a text type of
	// MySQL.
	Charset, CollatedBy string
	// Labels are the values of an enum, or of a list's elements.
	Labels []string
	// NotNull columns refuse NULL.
	NotNull bool
	// Default is the expression of the default, "" if there is none.
	Default string
	// Generated columns (always generated, or identity always) cannot be
	// written.
	Generated bool
	// Comment is the column's comment, where the sink reads comments.
	Comment string
	// Collation is the name of a collation under which different texts may be
	// equal, "" if there is none.
	Collation string
	// Pads says that texts which differ only in blanks at their end are equal.
	Pads bool

	// The rest is of SQL Server.

	// Collate is the collation of a text type, and CodePage its code page if it
	// cannot hold every character: 1252; 65001 is UTF-8.
	Collate  string
	CodePage int
	// DefaultName is the name of the default's constraint.
	DefaultName string
}

// Units are what the length of a text counts.
type Units uint8

// What the length of a text counts.
const (
	Characters Units = iota
	UTF16            // a character beyond the basic plane is two
	Bytes
)

// Column returns the live column of a name, or nil.
func (l *Live) Column(name string) *LiveColumn {
	for i := range l.Columns {
		if l.Columns[i].Name == name {
			return &l.Columns[i]
		}
	}
	return nil
}

// HasUnique tells whether a unique index is on exactly these columns.
func (l *Live) HasUnique(columns []string) bool {
	for _, u := range l.Uniques {
		if !u.Partial && sameSet(u.Columns, columns) {
			return true
		}
	}
	return false
}

func sameSet(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	in := strings.Join(a, "\x00") + "\x00"
	for _, x := range b {
		if !strings.Contains("\x00"+in, "\x00"+x+"\x00") {
			return false
		}
	}
	return true
}
