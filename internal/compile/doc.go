// Package compile says to a database what package merge says is right: it turns
// the merge rules of a table into statements, a file per dialect. It does no
// I/O. Golden files in testdata show every dialect side by side.
//
// # One form for all values
//
// A statement takes a row's values as text in the canonical form of their type
// and casts them to the live type of the column, so that enums, domains, 64-bit
// integers and decimals arrive exactly. NULL versions say what is not set: a
// scope is set if its version is not NULL, a first column if its own version is
// not NULL, and every other rule ignores NULL. No flags travel.
//
// # One statement per table and batch
//
// The row that is stored and the row that comes are joined by the database, in
// the one statement that locks the stored row. With t the stored row and
// excluded the one that comes, every column has a condition under which it
// moves:
//
//	latest  excluded.version >= coalesce(t.version, '')
//	first   excluded.version <= t.version; or neither a version nor a value is stored
//	max     excluded.value > t.value, or t.value is NULL
//	min     excluded.value < t.value, or t.value is NULL
//	ladder  the rung of excluded.value > the rung of t.value, or t.value is NULL
//	union   the union of both differs from t.value
//
// and a row for which no value and no version would change is not written.
// Versions, and texts under max, min and union, are compared as bytes whatever
// the collation of their column.
//
// A row that is new gets NULL in the columns that nothing has set, so that no
// DEFAULT enters a join; only a latest column, whose version tells that it was
// not set, gets its DEFAULT.
//
// # Tables that one row does not decide
//
// Deletes, complete lists, chains and counters need more than the row: whether a
// late write shows depends on a delete that removed the row, or on a list that
// lacked it. A statement sees other rows as they were when it began, so it
// cannot decide by them. Such a table (merge.Table.Local is false) is written in
// steps of one transaction: it takes locks, in a statement of its own, then reads
// all that the batch concerns, package merge joins the batch, and what has
// changed is stored. The locks are numbers that stand for keys, groups or a whole
// table with chains; every writer takes them in ascending order before it reads
// anything. SQLite's BEGIN IMMEDIATE is one such lock for all.
//
// A database whose SQL cannot decide exactly what a rule asks for writes such
// tables in these steps too, whatever they are (Dialect.Held): T-SQL joins neither
// occupants, nor unions, nor max and min of text.
//
// What a row cannot remember itself stands beside it, in the same schema:
//
//	hookfold_tombstones  deletes of rows that are not there
//	hookfold_sets        when a group was complete
//	hookfold_links       which identity follows which, and
//	hookfold_aliases     the key of each one's chain
//	hookfold_ledger      what each event added to a counter
//	hookfold_meta        up to which version deletes were forgotten
//	<table>_occupants    a record per occupant, and with an empty occupant_id what
//	                     belongs to the row whoever occupies it
package compile
