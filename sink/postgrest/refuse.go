package postgrest

import (
	"fmt"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

const instead = "give this target the database's own url (postgres://…; Supabase shows one under Connect)"

// Refuses tells what cannot be kept of a table in a mode.
func Refuses(t *sink.Table, mode Mode) []sink.Refusal {
	var out []sink.Refusal
	say := func(part sink.Part, column, format string, args ...any) {
		out = append(out, sink.Refusal{Part: part, Column: column, Text: fmt.Sprintf(format, args...)})
	}
	if t.Versions == sink.Beside {
		say(sink.KeepVersions, "", "keep_versions: beside is not written through the REST API. Let Hookfold add its columns to the table (leave keep_versions out), or %s", instead)
	}
	if t.Group != nil {
		say(sink.Lists, "", "replaces (complete lists) needs the list's version to be locked before its rows are written, which the REST API does not do yet. Keep the list in one json column, or %s", instead)
	}
	if t.OnDelete != merge.DeleteNone {
		say(sink.DeleteRule, "", "on_delete needs the memory of deletes to be locked before a row is written, which the REST API does not do yet. Map the delete to a column (a text status, or a bool in a scope of its own) and filter by it, or %s", instead)
	}
	if t.Chained {
		say(sink.Chains, "", "a chain needs its links to be locked before a row is written, which the REST API does not do yet. Carry a stable key and name an occupant, or %s", instead)
	}
	const rpc = "Use mode: rpc, which needs one migration (hookfold migrate prints it)"
	const guard = rpc + ", or say guard: trigger"
	if t.Occupied && !t.Chained && mode == REST {
		say(sink.Occupants, "", "occupants are joined and then shown, which takes one transaction, and in mode rest each request is its own. %s", rpc)
	}
	for i := range t.Columns {
		switch c := &t.Columns[i]; {
		case c.Rule == merge.Sum || c.Rule == merge.Count:
			say(sink.AColumn, c.Name, "column %s: merge: %s needs its amounts to be locked before a row is written, which the REST API does not do yet. Keep a row per event and add up when you read, or %s", c.Name, c.Rule, instead)
		case c.Rule == merge.Chain:
			say(sink.AColumn, c.Name, "column %s: merge: chain needs its links to be locked before a row is written, which the REST API does not do yet. To write it, %s", c.Name, instead)
		case mode != REST || t.Guard == sink.ByTrigger:
		case c.Rule == merge.Union:
			say(sink.AColumn, c.Name, "column %s: union adds to what is stored, and in mode rest a request can only replace it. %s", c.Name, guard)
		case c.Rule == merge.Touch:
			say(sink.AColumn, c.Name, "column %s: touch moves when a value changes, and in mode rest a request cannot compare all values with what is stored. %s, or map a time of the event with merge: max", c.Name, guard)
		case (c.Rule == merge.Max || c.Rule == merge.Min) && (c.Type.Kind == merge.Text || c.Type.Kind == merge.JSON || c.Type.Kind == merge.TextArray):
			say(sink.AColumn, c.Name, "column %s: %s of %s is by bytes, and in mode rest the database compares by the column's collation. %s, or use a column of a number or a time", c.Name, c.Rule, c.Type, guard)
		}
	}
	return out
}
