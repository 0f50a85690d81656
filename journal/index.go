package journal

import (
	"context"

	"github.com/hookfold/hookfold/event"
)

// Indexer is a Journal that remembers which deliveries are about which rows.
type Indexer interface {
	// Find looks up rows in what Done was told of them by batches of one plan. A
	// lookup may name a delivery that is not about the rows, but never leaves out
	// one that a batch told of.
	Find(ctx context.Context, consumer string, plan uint64, rows []uint32) (Found, error)
}

// Found is what an Indexer knows of some rows.
type Found struct {
	// Positions are deliveries that may be about the rows, in order of
	// acceptance.
	Positions []event.Position
	// Indexed are the ranges of positions of which the index of the plan knows
	// everything, in order and apart from each other. Elsewhere only a look at the
	// deliveries tells.
	Indexed []Range
}

// Range is the positions from First to Last.
type Range struct{ First, Last event.Position }

// Touch says that an event of a delivery is about a row.
type Touch struct {
	// Row is a hash of the row's name.
	Row      uint32
	Position event.Position
}

// Touches are the rows that the events of a batch are about.
type Touches struct {
	// Plan stands for the config by which the rows were told; not 0.
	Plan uint64
	// Rows are in any order, and may name one thing twice.
	Rows []Touch
}
