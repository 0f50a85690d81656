package sink

import "context"

// Scratcher is a Sink that can make places for trials beside its tables.
type Scratcher interface {
	// Scratch makes a place of its own with an empty copy of each table: as the
	// table lives, and as Plan would make it where it does not live yet. Nothing
	// that is done there touches the tables themselves. The caller closes it.
	Scratch(ctx context.Context, tables []*Table) (Scratch, error)

	// Sweep removes the places of processes that did not get to close theirs, and
	// tells how many. It leaves those that are in use, by whomever.
	Sweep(ctx context.Context) (int, error)
}

// Scratch is a Sink on a place for trials. What it holds may be lost with the
// power. Close removes the place.
type Scratch interface {
	Sink
	// Tables are the tables that it was made for, in their order, under the names
	// that they have there.
	Tables() []*Table
	// Notes tell a person what is not there as it is in the tables themselves:
	// triggers, foreign keys to tables that Hookfold does not write.
	Notes() []string
	// Empty removes all rows, and all that is remembered beside them.
	Empty(ctx context.Context) error
}
