package sink

import (
	"context"
	"time"

	"github.com/hookfold/hookfold/merge"
)

// Once is a Sink that can run a statement of the user's own once for an event,
// however often it is asked to: the statement and the memory that it was run are
// one transaction.
type Once interface {
	// RunOnce runs a statement for an event unless it was run before, and tells
	// whether it ran it now. An error is an *Error; Reject says that the statement
	// or its values are at fault.
	RunOnce(ctx context.Context, s *OwnStatement, e OnceEvent, args []Arg) (ran bool, err error)
	// CheckOnce has the database read a statement without running it. The error
	// tells what is wrong with it there, such as a table that is missing.
	CheckOnce(ctx context.Context, s *OwnStatement) error
	// PlanOnce returns the statements that make the memory, none if it is there.
	PlanOnce(ctx context.Context) ([]string, error)
	// ForgetOnce forgets the events of a lane that were received before a time, and
	// tells how many: none of them may come again.
	ForgetOnce(ctx context.Context, lane string, before time.Time) (int64, error)
}

// OwnStatement is an SQL statement of the user's own.
type OwnStatement struct {
	// Parts are the texts between the places of parameters; Places holds for each
	// place which of the args stands there.
	Parts  []string
	Places []int
}

// OnceEvent names an event to the memory of what was run.
type OnceEvent struct {
	// Lane is the lane's name, ID the event's identity in it, at most 300 bytes.
	Lane, ID string
	// Key and Position are kept with it, for people. Received is in microseconds
	// since 1970.
	Key                string
	Position, Received int64
}

// Arg is the value of a parameter.
type Arg struct {
	Kind  merge.TypeKind
	Value merge.Value
}
