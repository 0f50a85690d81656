package demo

import (
	"cmp"
	"slices"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/witness"
	"github.com/hookfold/hookfold/merge"
)

// Report is what the demo found. Its JSON form is a contract.
type Report struct {
	// OK says that every row that Hookfold made is right.
	OK          bool    `json:"ok"`
	Seed        uint64  `json:"seed"`
	Events      int     `json:"events"`
	Requests    int     `json:"requests"`
	Connections int     `json:"connections"`
	Hookfold    Side    `json:"hookfold"`
	Naive       Side    `json:"check_then_write"`
	Tables      []Table `json:"tables"`
	Files       Files   `json:"files"`
	// Receive is the base URL of the server, while it runs.
	Receive string `json:"-"`
}

// Side is how one of the two servers did.
type Side struct {
	// Answers counts answers by status.
	Answers Answers `json:"answers"`
	// Errors counts the errors behind the answers that were not 200.
	Errors map[string]int `json:"errors,omitempty"`
	// AnsweredSeconds is the time to the last answer, SettledSeconds to the
	// last row.
	AnsweredSeconds float64 `json:"answered_seconds"`
	SettledSeconds  float64 `json:"settled_seconds"`
}

// Files tells where everything is.
type Files struct {
	Folder  string `json:"folder"`
	Config  string `json:"config"`
	Journal string `json:"journal"`
	Rows    string `json:"rows"`
	Naive   string `json:"check_then_write"`
}

// Table is how both did on one table.
type Table struct {
	Table string `json:"table"`
	// Rows is how many rows there must be.
	Rows     int      `json:"rows"`
	Hookfold Score    `json:"hookfold"`
	Naive    Score    `json:"check_then_write"`
	Late     Late     `json:"late"`
	Columns  []string `json:"columns"`
	Sample   []Sample `json:"sample"`
}

// Score counts rows; see witness.Verdict.
type Score struct {
	Right   int `json:"right"`
	Wrong   int `json:"wrong"`
	Missing int `json:"missing"`
	Doubled int `json:"doubled"`
	Extra   int `json:"extra"`
}

func score(v *witness.Verdict) Score {
	return Score{Right: v.Right, Wrong: v.Wrong, Missing: v.Missing, Doubled: v.Doubled, Extra: v.Extra}
}

// Late is what arrived after something that beats it.
type Late struct {
	// Changes is how many changes arrived, Repeats how many of them said
	// nothing new, Lost how many lost in at least one column.
	Changes  int    `json:"changes"`
	Repeats  int    `json:"repeats"`
	Lost     int    `json:"lost"`
	Examples []Loss `json:"examples"`
}

// Loss is one change that lost.
type Loss struct {
	Key    string `json:"key"`
	Event  string `json:"event"`
	Column string `json:"column"`
	Value  string `json:"value"`
	Reason string `json:"reason"`
}

// Sample is one row as both have it, NULL as null.
type Sample struct {
	Key      []string    `json:"key"`
	Hookfold []*string   `json:"hookfold"`
	Naive    [][]*string `json:"check_then_write"`
	// Wrong says what is wrong with the naive row, "" if nothing is.
	Wrong string `json:"wrong,omitempty"`
}

// late follows the changes of a table in the order of arrival.
func late(t *merge.Table, arrivals []*merge.Change, types map[event.Ref]string) Late {
	out := Late{Examples: []Loss{}}
	kinds := map[string]bool{}
	for _, step := range merge.Trace(t, arrivals) {
		out.Changes++
		if !step.Lost() {
			if !slices.ContainsFunc(step.Columns, func(c merge.ColumnFate) bool { return c.Fate == merge.Won }) {
				out.Repeats++
			}
			continue
		}
		out.Lost++
		for _, c := range step.Columns {
			if c.Fate != merge.Lost && c.Fate != merge.Hidden {
				continue
			}
			kind := types[step.Change.From] + string(c.Fate)
			if !kinds[kind] && len(out.Examples) < 3 {
				kinds[kind] = true
				out.Examples = append(out.Examples, Loss{
					Key: t.Show(step.Change.Key), Event: types[step.Change.From], Column: c.Column, Value: c.Value.String(), Reason: c.Reason,
				})
			}
			break
		}
	}
	return out
}

// tableReport puts together what is known of one table.
func tableReport(t *mapping.Table, ours, naive *witness.Verdict, arrivals []*merge.Change, types map[event.Ref]string) Table {
	out := Table{
		Table: t.Config.Text, Rows: ours.Want, Hookfold: score(ours), Naive: score(naive),
		Late: late(t.Table.Table, arrivals, types), Sample: []Sample{},
	}
	for _, k := range t.Key {
		out.Columns = append(out.Columns, k.Name)
	}
	for _, c := range t.Columns {
		out.Columns = append(out.Columns, c.Name)
	}
	most := 1
	if t.Occupied {
		most = 2 // the story is about these
	}
	out.Late.Examples = out.Late.Examples[:min(most, len(out.Late.Examples))]
	for _, k := range sampleKeys(ours, naive, most) {
		s := Sample{Key: k.Parts(), Naive: [][]*string{}, Wrong: naive.Diffs[k]}
		if rows := ours.Rows[k]; len(rows) > 0 {
			s.Hookfold = texts(rows[0])
		}
		for _, r := range naive.Rows[k] {
			s.Naive = append(s.Naive, texts(r))
		}
		out.Sample = append(out.Sample, s)
	}
	return out
}

// sampleKeys chooses the keys to show: those that the naive handler got most
// strikingly wrong, by rows that are there twice or by the first column.
func sampleKeys(ours, naive *witness.Verdict, most int) []merge.Key {
	keys := ours.Rows.Keys()
	weight := func(k merge.Key) int {
		rows, right := naive.Rows[k], ours.Rows[k]
		switch {
		case len(rows) > 1:
			return 0
		case naive.Diffs[k] == "":
			return 3
		case len(rows) == 1 && len(right) == 1 && len(rows[0]) > 0 && rows[0][0] != right[0][0]:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(keys, func(a, b merge.Key) int { return cmp.Compare(weight(a), weight(b)) })
	keys = keys[:min(most, len(keys))]
	slices.Sort(keys)
	return keys
}

func texts(r witness.Row) []*string {
	out := make([]*string, len(r))
	for i, v := range r {
		if !v.IsNull() {
			text := v.Text()
			out[i] = &text
		}
	}
	return out
}

// Answers counts the answers of a server by status.
type Answers map[int]int
