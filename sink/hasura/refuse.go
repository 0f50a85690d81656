package hasura

import (
	"fmt"
	"regexp"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

const instead = "give this target the database's own url (postgres://…)"

var graphQLName = regexp.MustCompile(`^[_A-Za-z][_0-9A-Za-z]*$`)

// Refuses tells what cannot be kept of a table through GraphQL.
func Refuses(t *sink.Table) []sink.Refusal {
	var out []sink.Refusal
	say := func(part sink.Part, column, format string, args ...any) {
		out = append(out, sink.Refusal{Part: part, Column: column, Text: fmt.Sprintf(format, args...)})
	}
	if t.Versions == sink.Beside {
		say(sink.KeepVersions, "", "keep_versions: beside needs a lock on the versions, which no mutation can take. Let the versions live in the table (leave keep_versions out), or %s", instead)
	}
	if t.Group != nil {
		say(sink.Lists, "", "replaces (complete lists) needs the list's version to be locked before its rows are written, which no mutation can do. Keep the list in one json column, or %s", instead)
	}
	if t.OnDelete != merge.DeleteNone {
		say(sink.DeleteRule, "", "on_delete needs the memory of deletes to be locked before a row is written, which no mutation can do. Map the delete to a column (a text status, or a bool in a scope of its own) and filter by it, or %s", instead)
	}
	if t.Chained {
		say(sink.Chains, "", "chain needs the links to be locked before a row is written, which no mutation can do. Carry a stable key and name an occupant, or %s", instead)
	}
	for _, k := range t.Key {
		switch {
		case k.Type.Kind == merge.JSON || k.Type.Kind == merge.TextArray:
			say(sink.AColumn, k.Name, "key column %s: %s cannot be a key", k.Name, k.Type)
		case !graphQLName.MatchString(k.Name):
			say(sink.AColumn, k.Name, "column %s: Hasura shows no column of such a name. Rename it, or %s", k.Name, instead)
		}
	}
	for i := range t.Columns {
		switch c := &t.Columns[i]; {
		case c.Rule == merge.Sum || c.Rule == merge.Count:
			say(sink.AColumn, c.Name, "column %s: merge: %s needs its ledger and its total in one step, which no mutation can do. Keep a row per event and add up when you read, or %s", c.Name, c.Rule, instead)
		case c.Rule == merge.Chain:
			say(sink.AColumn, c.Name, "column %s: merge: chain needs the links to be locked, which no mutation can do. To write it, %s", c.Name, instead)
		case c.Rule == merge.Flag: // it belongs to on_delete
		case !graphQLName.MatchString(c.Name):
			say(sink.AColumn, c.Name, "column %s: Hasura shows no column of such a name. Rename it, or %s", c.Name, instead)
		}
	}
	return out
}
