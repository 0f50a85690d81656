package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/internal/check"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/mapping"
)

// load loads the config, without compiling it.
func (a *app) load() (*config.Config, *config.Problems) {
	return config.Load(a.config, a.options())
}

func (a *app) options() config.Options {
	return config.Options{Env: a.Getenv, Presets: presetNames()}
}

// read loads and compiles the config. The report holds everything that was
// found, and is never nil; the plan may be used only if the report has no
// error.
func (a *app) read() (*mapping.Plan, *check.Report) {
	return compiled(a.load())
}

func compiled(cfg *config.Config, problems *config.Problems) (*mapping.Plan, *check.Report) {
	if cfg == nil {
		return nil, &check.Report{Problems: problems}
	}
	plan, wrong := mapping.Compile(cfg)
	report := check.Run(plan)
	found := slices.Clone(problems.List)
	for _, more := range slices.Concat(wrong.List, report.Problems.List, daemon.Limits(plan).List) {
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
		return nil, a.unusable(report.Problems)
	}
	return plan, nil
}

// tables loads a config that has to be right, for a command that looks at tables
// only: the variables of signing secrets and tokens need not be set.
func (a *app) tables() (*mapping.Plan, error) {
	o := a.options()
	o.WithoutSecrets = true
	plan, report := compiled(config.Load(a.config, o))
	if report.Problems.Err() != nil {
		return nil, a.unusable(report.Problems)
	}
	return plan, nil
}

func (a *app) unusable(problems *config.Problems) error {
	return &failure{code: Usage, err: configError{problems}, try: "hookfold check -c " + a.config}
}

// journalConfig loads a config of which only the journal is to be used. Whatever
// else it lacks, such as the variables that hold secrets, is no matter then; but
// a problem of the file as a whole is, since it may be that the journal's own key
// was not understood.
func (a *app) journalConfig() (*config.Config, error) {
	cfg, problems := a.load()
	whole := func(p config.Problem) bool { return p.Severity == config.Error && !strings.ContainsAny(p.Path, ".[") }
	if cfg == nil || problems.Touches("journal") || slices.ContainsFunc(problems.List, whole) {
		return nil, a.unusable(problems)
	}
	return cfg, nil
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
