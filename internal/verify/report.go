package verify

// Kind is what a finding is about a row.
type Kind string

// The kinds of findings.
const (
	// Missing: the journal has the row and the database does not.
	Missing Kind = "missing"
	// Extra: the database has the row and the journal does not.
	Extra Kind = "extra"
	// Different: both have it, and columns differ.
	Different Kind = "different"
	// Unchecked: it differs, and that need not be wrong. It is no drift.
	Unchecked Kind = "unchecked"
)

// Side is which of the two is right.
type Side string

// The sides.
const (
	Journal Side = "journal"
	Unknown Side = "unknown"
)

// Finding is one row that differs.
type Finding struct {
	Kind Kind
	// Key shows the row's key, Why tells a person what is so and how it comes.
	Key, Why string
	// Right is the side that is right.
	Right Side
	// Columns are those that differ.
	Columns []Column
}

// Column is a column that differs.
type Column struct {
	Name string
	// Database and Journal are the values, nil for NULL.
	Database, Journal *string
	// DatabaseVersion and JournalVersion are the versions that decide, "" for a
	// column without one.
	DatabaseVersion, JournalVersion string
	// Why tells how it comes.
	Why string
	// Right is the side that is right.
	Right Side
}

// Table is what was found of one table.
type Table struct {
	Name string
	// Rows counts the live rows that were compared, Equal those that are as the
	// journal says.
	Rows, Equal int64
	// Missing, Extra and Different are drift.
	Missing, Extra, Different int64
	// Unchecked rows differ in what cannot be checked. Foreign rows are none of
	// Hookfold's: in a table in which somebody else inserts rows, or by
	// IgnoreExtra.
	Unchecked, Foreign int64
	// Findings are some of the rows that differ, in the order of their keys.
	Findings []Finding
}

// Drift counts the rows that are not as they must be.
func (t *Table) Drift() int64 { return t.Missing + t.Extra + t.Different }

func (t *Table) add(f Finding, most int) {
	switch f.Kind {
	case Missing:
		t.Missing++
	case Extra:
		t.Extra++
	case Different:
		t.Different++
	case Unchecked:
		t.Unchecked++
	default:
		t.Foreign++
		return
	}
	if len(t.Findings) < most {
		t.Findings = append(t.Findings, f)
	}
}

// Report is what was found.
type Report struct {
	Tables []Table
	// Whole says that the journal has kept every delivery it ever took.
	Whole bool
	// Open counts events that have not landed (waiting and dead), Pending
	// deliveries that are not yet written.
	Open, Pending int64
}

// Drift counts the rows that are not as they must be.
func (r *Report) Drift() int64 {
	var n int64
	for i := range r.Tables {
		n += r.Tables[i].Drift()
	}
	return n
}
