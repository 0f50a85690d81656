package cli

import (
	"github.com/spf13/cobra"

	"github.com/hookfold/hookfold/internal/check"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/mapping"
)

// checkJSON is what check prints under --json.
type checkJSON struct {
	OK       bool            `json:"ok"`
	Config   string          `json:"config"`
	Problems []problemJSON   `json:"problems"`
	Verdicts []check.Verdict `json:"verdicts"`
	Tests    []testJSON      `json:"tests,omitempty"`
	// Connected says that the live databases were looked at.
	Connected bool `json:"connected"`
}

type problemJSON struct {
	Severity config.Severity `json:"severity"`
	Line     int             `json:"line,omitempty"`
	Column   int             `json:"column,omitempty"`
	Path     string          `json:"path,omitempty"`
	Text     string          `json:"text"`
}

type testJSON struct {
	OK bool `json:"ok"`
	*check.Result
}

func (a *app) check() *cobra.Command {
	var live, test, columns bool
	var seed uint64
	cmd := &cobra.Command{
		Use: "check", Short: "Is the config right, and does any row depend on the order of events?", Args: count(0, 0, "no arguments"),
		Long: "Reads the config, compiles its expressions, runs them over the samples of the\n" +
			"presets, and says of each table why its rows do not depend on the order of events,\n" +
			"or what makes them. Ends 2 if the config is wrong, 1 if a test fails or a live\n" +
			"table is not as it must be.",
		Example: "hookfold check --test --connect",
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, report := a.read()
			out := checkJSON{OK: report.Problems.Err() == nil, Config: a.config, Connected: live}
			code := Usage
			if out.OK {
				code, out.Verdicts = NotSo, report.Verdicts
				if test {
					out.Tests = runTests(plan, seed)
				}
				if live {
					found, err := connect(cmd.Context(), plan, report)
					if err != nil {
						return err
					}
					if found.down != nil {
						code = Usage
					}
					if err := brokenRules(cmd.Context(), plan, found); err != nil {
						return err
					}
					out.OK = found.Err() == nil
					report.Problems.List = append(report.Problems.List, found.List...)
				}
			}
			for _, t := range out.Tests {
				out.OK = out.OK && t.OK
			}
			return a.reportCheck(out, report, code, columns)
		},
	}
	cmd.Flags().BoolVar(&live, "connect", false, "compare with the live databases too")
	cmd.Flags().BoolVar(&columns, "columns", false, "say of each column why it does not depend on the order of events")
	cmd.Flags().BoolVar(&test, "test", false, "run the config's tests: in every order, each event twice")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "`number` that chooses orders where there are too many to try all")
	return cmd
}

func runTests(plan *mapping.Plan, seed uint64) []testJSON {
	out := []testJSON{}
	for _, r := range check.Test(plan, check.Options{Seed: seed}) {
		out = append(out, testJSON{OK: r.Passed(), Result: r})
	}
	return out
}

func (a *app) reportCheck(out checkJSON, report *check.Report, code int, columns bool) error {
	out.Problems = []problemJSON{}
	for _, p := range report.Problems.List {
		out.Problems = append(out.Problems, problemJSON{Severity: p.Severity, Line: p.Pos.Line, Column: p.Pos.Column, Path: p.Path, Text: p.Text})
	}
	if out.Verdicts == nil {
		out.Verdicts = []check.Verdict{}
	}
	if a.json {
		if err := a.printJSON(out); err != nil {
			return err
		}
	} else {
		a.printCheck(out, report, columns)
	}
	if out.OK {
		return nil
	}
	return &failure{code: code, err: errSaid.err}
}

func (a *app) printCheck(out checkJSON, report *check.Report, columns bool) {
	for _, p := range report.Problems.List {
		line := report.Problems.Line(p)
		switch p.Severity {
		case config.Error:
			line = a.style.bad(line)
		case config.Warning:
			line = a.style.warn(line)
		}
		a.printf("%s\n", line)
	}
	for _, v := range out.Verdicts {
		switch {
		case !v.OrderFree:
			a.printf("%s\n", a.style.warn(v.String()))
		case v.Column == "" || columns:
			a.printf("%s\n", v)
		}
	}
	for _, t := range out.Tests {
		word := a.style.good("pass")
		if !t.OK {
			word = a.style.bad("FAIL")
		}
		a.printf("%s  %s (%s in %s)\n", word, t.Name, plural(t.Events, "event"), plural(t.Orders, "order"))
		for _, d := range t.Differences {
			a.printf("      %s\n", d)
		}
		for _, n := range t.Notes {
			a.printf("      %s\n", a.style.dim(n))
		}
	}
	switch {
	case !out.OK:
		a.printf("%s\n", a.style.bad("Not right."))
	case out.Connected:
		a.printf("%s\n", a.style.good("The config is right, and so are the live tables."))
	default:
		a.printf("%s\n", a.style.good("The config is right."))
	}
}
