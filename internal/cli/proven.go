package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/hookfold/hookfold/internal/ndjson"
	"github.com/hookfold/hookfold/internal/prove"
)

// proveJSON is what prove prints under --json.
type proveJSON struct {
	OK      bool         `json:"ok"`
	Targets []provenJSON `json:"targets"`
}

type provenJSON struct {
	Target     string       `json:"target"`
	OK         bool         `json:"ok"`
	Deliveries int          `json:"deliveries"`
	Events     int          `json:"events"`
	Orders     int          `json:"orders"`
	Arrivals   int          `json:"arrivals"`
	Crashes    int          `json:"crashes"`
	Seconds    float64      `json:"seconds"`
	Tables     []rowsJSON   `json:"tables"`
	Left       []entryJSON  `json:"left"`
	Notes      []string     `json:"notes"`
	Shown      *exampleJSON `json:"counterexample,omitempty"`
}

type rowsJSON struct {
	Table string `json:"table"`
	Rows  int    `json:"rows"`
	// Depends is why rows of the table may depend on arrival, as check says, and
	// Differed in how many orders they did.
	Depends  string `json:"depends,omitempty"`
	Differed int    `json:"differed,omitempty"`
	Example  string `json:"example,omitempty"`
}

type exampleJSON struct {
	Differences []prove.Difference `json:"differences"`
	Writers     int                `json:"writers"`
	Crash       bool               `json:"crash"`
	Again       bool               `json:"happened_again"`
	Steps       []stepJSON         `json:"steps"`
	File        string             `json:"file"`
}

type stepJSON struct {
	Delivery int64      `json:"delivery"`
	Batch    int        `json:"batch"`
	Again    bool       `json:"again"`
	Source   string     `json:"source"`
	Events   []saidJSON `json:"events"`
}

type saidJSON struct {
	ID      string     `json:"id,omitempty"`
	Type    string     `json:"type,omitempty"`
	Time    *time.Time `json:"time,omitempty"`
	Changes []string   `json:"changes"`
}

// leftShown is how many waiting or dead events are told of.
const leftShown = 100

// proven makes the answer of one target, and saves its counterexample.
func (a *app) proven(r *prove.Report, output string) (*provenJSON, error) {
	out := &provenJSON{
		Target: r.Target, OK: r.Counterexample == nil, Deliveries: r.Deliveries, Events: r.Events, Orders: r.Orders, Arrivals: r.Arrivals, Crashes: r.Crashes,
		Seconds: r.Took.Seconds(), Tables: []rowsJSON{}, Left: []entryJSON{}, Notes: append([]string{}, r.Notes...),
	}
	for _, table := range slices.Sorted(maps.Keys(r.Rows)) {
		x := rowsJSON{Table: table, Rows: r.Rows[table]}
		for _, d := range r.Depends {
			if d.Table == table {
				x.Depends, x.Differed, x.Example = d.Because, d.Orders, d.Example
			}
		}
		out.Tables = append(out.Tables, x)
	}
	for _, e := range r.Left[:min(leftShown, len(r.Left))] {
		e.Consumer = r.Target
		out.Left = append(out.Left, entryOf(e))
	}
	c := r.Counterexample
	if c == nil {
		return out, nil
	}
	file, err := save(c, output)
	if err != nil {
		return nil, fmt.Errorf("save the counterexample: %w\n%s", err, prove.Story(c))
	}
	out.Shown = &exampleJSON{Differences: c.Differences, Writers: c.Writers, Crash: c.Crash, Again: c.Shrunk, File: file, Steps: []stepJSON{}}
	for _, s := range c.Steps {
		step := stepJSON{Delivery: int64(s.Delivery), Batch: s.Batch, Again: s.Again, Source: s.Source, Events: []saidJSON{}}
		for _, e := range s.Events {
			said := saidJSON{ID: e.ID, Type: e.Type, Changes: append([]string{}, e.Changes...)}
			if !e.Time.IsZero() {
				at := e.Time.UTC()
				said.Time = &at
			}
			step.Events = append(step.Events, said)
		}
		out.Shown.Steps = append(out.Shown.Steps, step)
	}
	return out, nil
}

// save writes the deliveries of a counterexample for replay: to a file that is
// named, or to the next that is free. They may hold what is not for everybody.
func save(c *prove.Counterexample, name string) (string, error) {
	mode := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	try := name
	var f *os.File
	var err error
	for n := 1; ; n++ {
		if name == "" {
			mode, try = os.O_WRONLY|os.O_CREATE|os.O_EXCL, "counterexample.ndjson"
			if n > 1 {
				try = fmt.Sprintf("counterexample-%d.ndjson", n)
			}
		}
		f, err = os.OpenFile(try, mode, 0o600)
		if name != "" || !errors.Is(err, fs.ErrExist) || n == 1000 {
			break
		}
	}
	if err != nil {
		return "", err
	}
	w := ndjson.NewWriter(f)
	for _, d := range c.Deliveries {
		if err := w.Write(d); err != nil {
			return "", errors.Join(err, f.Close())
		}
	}
	return try, f.Close()
}

func (a *app) printProven(r *prove.Report, x *provenJSON, place string) {
	a.printf("%s with %s, in %s (%s arrivals, %s) in %s: %.1f s, %.0f orders a second\n", deliveries(int64(r.Deliveries)), plural(r.Events, "event"),
		plural(r.Orders, "order"), thousands(r.Arrivals), plural(r.Crashes, "crashed writer"), place, x.Seconds, float64(r.Orders)/max(x.Seconds, 0.001))
	for _, t := range x.Tables {
		switch {
		case t.Differed > 0:
			a.wrap("", "33", fmt.Sprintf("%s: other rows in %s, as check says: %s. One: %s", t.Table, plural(t.Differed, "order"), t.Depends, t.Example))
		case x.OK && t.Depends != "":
			a.wrap("", "33", fmt.Sprintf("%s: %s, the same in every order that was tried, though check says: %s", t.Table, plural(t.Rows, "row"), t.Depends))
		case x.OK && t.Rows > 0:
			a.printf("%s: %s, the same in every order\n", t.Table, plural(t.Rows, "row"))
		}
	}
	for _, n := range x.Notes {
		a.wrap("", "2", "In the copies "+n+".")
	}
	if len(r.Left) > 0 {
		a.printf("Waiting or dead when all has arrived, so nothing is proven of %s:\n", plural(len(r.Left), "event"))
		a.printEntries(r.Left[:min(20, len(r.Left))])
	}
	if x.OK {
		a.printf("%s\n", a.style.good("The rows are right in every order that was tried."))
		return
	}
	a.printf("%s\n%s", a.style.bad("The rows depend on how deliveries arrive:"), prove.Story(r.Counterexample))
	a.printf("Saved: %s\n", x.Shown.File)
}
