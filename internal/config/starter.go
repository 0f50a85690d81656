package config

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// The starter config is put together from these files: head.yaml,
// target-<target>.yaml, and of each preset <preset>.sources.yaml, <preset>.tables.yaml
// and, where there is one, <preset>.tests.yaml.
//
//go:embed starter/*.yaml
var starterFiles embed.FS

// StarterPresets returns the presets that Starter knows, by name.
func StarterPresets() []string {
	files, err := fs.Glob(starterFiles, "starter/*.sources.yaml")
	if err != nil {
		panic("config: " + err.Error()) // the pattern is not one
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(path.Base(f), ".sources.yaml")
	}
	return files
}

// StarterTargets returns the targets that Starter knows, by name.
func StarterTargets() []string {
	files, err := fs.Glob(starterFiles, "starter/target-*.yaml")
	if err != nil {
		panic("config: " + err.Error()) // the pattern is not one
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(path.Base(f), "target-"), ".yaml")
	}
	return files
}

// Starter returns a commented config to begin with: a source and an example
// table for each preset, and a target; "" is sqlite. Without a preset it is that
// of http. The error says which preset or target is not known.
func Starter(presets []string, target string) ([]byte, error) {
	if target == "" {
		target = "sqlite"
	}
	if targets := StarterTargets(); !slices.Contains(targets, target) {
		return nil, fmt.Errorf("%s is not a kind of target.%s", show(target), didYouMean(target, targets))
	}
	if len(presets) == 0 {
		presets = []string{presetHTTP}
	}
	var names []string
	known := StarterPresets()
	for _, p := range presets {
		if !slices.Contains(known, p) {
			return nil, fmt.Errorf("%s is not a preset.%s", show(p), didYouMean(p, known))
		}
		if !slices.Contains(names, p) {
			names = append(names, p)
		}
	}
	var out strings.Builder
	out.WriteString(starterPart("head"))
	for _, kind := range []struct{ name, head string }{
		{"sources", "sources:\n"},
		{"targets", ""},
		{"tables", "tables:\n"},
		{"tests", "# Run by hookfold check --test: in every order, each event twice.\ntests:\n"},
	} {
		body := starterPart(kind.name)
		if kind.name == "targets" {
			body = starterPart("target-" + target)
		}
		for _, n := range names {
			body += starterPart(n + "." + kind.name)
		}
		if body != "" {
			out.WriteString(kind.head + strings.TrimRight(body, "\n") + "\n\n")
		}
	}
	return []byte(strings.TrimRight(out.String(), "\n") + "\n"), nil
}

// starterPart returns one of the files, "" if there is none.
func starterPart(name string) string {
	data, err := starterFiles.ReadFile("starter/" + name + ".yaml")
	if err != nil {
		return "" // of a preset without tests; TestStarter looks for the others
	}
	return string(data)
}
