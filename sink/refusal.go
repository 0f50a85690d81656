package sink

import (
	"errors"
	"fmt"
)

// Part is a part of a table's config.
type Part string

// The parts of a table's config that a sink may refuse.
const (
	KeepVersions Part = "keep_versions"
	DeleteRule   Part = "on_delete"
	Lists        Part = "replaces"
	Chains       Part = "chain"
	Occupants    Part = "occupant"
	Guarding     Part = "guard"
	Uniques      Part = "unsafe_unique"
	// AColumn is a column, or a column of the key: Refusal.Column names it.
	AColumn Part = "column"
)

// Refusal says that a sink cannot keep a table as its config has it.
type Refusal struct {
	Part   Part
	Column string
	// Text says what cannot be done, and what to do instead.
	Text string
}

// Refused makes an error of what is refused of a table; nil if nothing is.
func Refused(t *Table, list []Refusal) error {
	var errs []error
	for _, r := range list {
		errs = append(errs, fmt.Errorf("table %s: %s", t.Table.Name, r.Text))
	}
	return errors.Join(errs...)
}
