package postgrest

import (
	"fmt"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

const instead = "give this target the database's own url (postgres://…; Supabase shows one under Connect)"

// Refuses tells why a table cannot be kept in a mode, and what to do; nil if it
// can.
func Refuses(t *sink.Table, mode Mode) error {
	say := func(format string, args ...any) error {
		return fmt.Errorf("table %s: %s", t.Table.Name, fmt.Sprintf(format, args...))
	}
	switch {
	case t.Versions == sink.Beside:
		return say("keep_versions: beside is not written through the REST API. Let Hookfold add its columns to the table (leave keep_versions out), or %s", instead)
	case t.OnDelete != merge.DeleteNone:
		return say("on_delete needs the memory of deletes to be locked before a row is written, which the REST API does not do yet. Map the delete to a column (a text status, or a bool in a scope of its own) and filter by it, or %s", instead)
	case t.Group != nil:
		return say("replaces (complete lists) needs the list's version to be locked before its rows are written, which the REST API does not do yet. Keep the list in one json column, or %s", instead)
	case !t.Local():
		return say("chains and counters need their links or amounts to be locked before a row is written, which the REST API does not do yet. For a chain carry a stable key and name an occupant, for a counter keep a row per event and add up when you read, or %s", instead)
	case mode == RPC:
		return nil
	}
	rpc := "Use mode: rpc, which needs one migration (hookfold migrate prints it)"
	if t.Occupied {
		return say("occupants are joined and then shown, which takes one transaction, and in mode rest each request is its own. %s", rpc)
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		switch {
		case c.Rule == merge.Union:
			return say("column %s: union adds to what is stored, and in mode rest a request can only replace it. %s", c.Name, rpc)
		case c.Rule == merge.Touch:
			return say("column %s: touch moves when a value changes, and in mode rest a request cannot compare all values with what is stored. %s, or map a time of the event with merge: max", c.Name, rpc)
		case (c.Rule == merge.Max || c.Rule == merge.Min) && (c.Type.Kind == merge.Text || c.Type.Kind == merge.JSON || c.Type.Kind == merge.TextArray):
			return say("column %s: %s of %s is by bytes, and in mode rest the database compares by the column's collation. %s, or use a column of a number or a time", c.Name, c.Rule, c.Type, rpc)
		}
	}
	return nil
}
