package cli

import (
	"fmt"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/source"
)

// read loads and compiles the config. The plan may be used only if the
// problems have no error.
func (a *app) read() (*mapping.Plan, *config.Problems) {
	var presets []string
	for _, p := range source.Presets() {
		presets = append(presets, p.Name)
	}
	cfg, problems := config.Load(a.config, config.Options{Env: a.Getenv, Presets: presets})
	if cfg == nil {
		return nil, problems
	}
	plan, more := mapping.Compile(cfg)
	problems.List = append(problems.List, more.List...)
	problems.Sort()
	return plan, problems
}

// plan loads a config that has to be right. Warnings are printed.
func (a *app) plan() (*mapping.Plan, error) {
	plan, problems := a.read()
	if problems.Err() != nil {
		return nil, &failure{code: Usage, err: configError{problems}, try: "hookfold check -c " + a.config}
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
