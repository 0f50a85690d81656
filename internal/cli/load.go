package cli

import (
	"fmt"
	"slices"

	"github.com/hookfold/hookfold/internal/check"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/source"
)

// read loads and compiles the config. The report holds everything that was
// found, and is never nil; the plan may be used only if the report has no
// error.
func (a *app) read() (*mapping.Plan, *check.Report) {
	var presets []string
	for _, p := range source.Presets() {
		presets = append(presets, p.Name)
	}
	cfg, problems := config.Load(a.config, config.Options{Env: a.Getenv, Presets: presets})
	if cfg == nil {
		return nil, &check.Report{Problems: problems}
	}
	plan, compiled := mapping.Compile(cfg)
	report := check.Run(plan)
	found := slices.Clone(problems.List)
	for _, more := range slices.Concat(compiled.List, report.Problems.List) {
		if more.Path == "" || !problems.Touches(more.Path) { // else its cause is reported already
			found = append(found, more)
		}
	}
	report.Problems.List = found
	report.Problems.Sort()
	return plan, report
}

// plan loads a config that has to be right.
func (a *app) plan() (*mapping.Plan, error) {
	plan, report := a.read()
	if report.Problems.Err() != nil {
		return nil, &failure{code: Usage, err: configError{report.Problems}, try: "hookfold check -c " + a.config}
	}
	return plan, nil
}

// configError prints the errors of a config below a heading.
type configError struct{ problems *config.Problems }

func (e configError) Error() string {
	text := "the config cannot be used:"
	n := 0
	for _, p := range e.problems.List {
		if p.Severity == config.Error {
			n++
			text += "\n  " + e.problems.Line(p)
		}
	}
	if n == 1 {
		return fmt.Sprintf("the config cannot be used: %s", text[len("the config cannot be used:\n  "):])
	}
	return text
}
