package compile

import (
	"fmt"
	"slices"

	"github.com/hookfold/hookfold/sink"
)

// ProcedurePrefix is what the name of a table's procedure begins with.
const ProcedurePrefix = "hookfold_"

// ProcedureScript shows a person a procedure or function that joins one row into
// a table, for code of their own to call from anywhere and as often as it likes.
// Its parameters are named as the columns, versions among them; all but those of
// the key may be left out. Of live schemas that are not there it takes those
// that Hookfold would make.
func ProcedureScript(d Dialect, t *sink.Table, have Schemas) (string, error) {
	if d == SQLite {
		return "", fmt.Errorf("SQLite has no procedures. Run the statement that hookfold sql prints: it takes one row, with the same parameters")
	}
	if d == MySQL {
		return "", fmt.Errorf("MySQL has no procedures whose arguments go by name and may be left out. Run the statement that hookfold sql prints, or install the guard trigger")
	}
	if !t.Local() {
		return "", fmt.Errorf("table %s: deletes, complete lists, chains and counters are joined outside of the database, under locks. Rows that are marked as deleted can be written through a guard trigger (hookfold sql --guard-trigger)", t.Name)
	}
	if Beside(t) {
		return "", fmt.Errorf("table %s: its versions are kept beside (keep_versions: beside) and joined outside of the database", t.Name)
	}
	ideal, records := Ideal(d, t)
	live := ideal
	if have.Table != nil {
		live = merged(have.Table, ideal)
	}
	if have.Records != nil {
		records = merged(have.Records, records)
	}
	if d.base() == SQLServer {
		return sqlserverProcedure(t, live)
	}
	return postgresProcedure(t, live, records)
}

// argument is a parameter of a procedure: one column.
type argument struct {
	Param
	key bool
}

// arguments are the parameters of a table's procedure: the key, the occupant,
// the columns, then versions.
func arguments(t *sink.Table, of ...Statement) []argument {
	var keys, id, since, cells, versions []argument
	seen := map[string]bool{}
	for _, s := range of {
		for _, p := range s.Params {
			if seen[p.Name] {
				continue
			}
			seen[p.Name] = true
			switch p.Kind {
			case KeyParam:
				keys = append(keys, argument{p, true})
			case CellParam:
				cells = append(cells, argument{p, false})
			case IDParam:
				id = append(id, argument{p, false})
			case SinceParam:
				since = append(since, argument{p, false})
			default:
				versions = append(versions, argument{p, false})
			}
		}
	}
	return slices.Concat(keys, id, since, cells, versions)
}
