package lint

import (
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// levels is the architecture: a package may import packages of lower levels
// only. A new package gets a place here first; a name goes before a pattern.
var levels = [][]string{
	{"event"},
	{"source", "merge", "internal/expr"},
	{"converge", "merge/mergetest", "journal", "sink", "internal/config", "internal/ndjson", "internal/calm", "internal/backoff"},
	{"journal/*", "internal/enrich", "internal/enrich/enrichtest", "internal/compile", "internal/mapping", "internal/testdb", "internal/tdstest", "journal/journaltest", "sink/sinktest", "internal/witness"},
	{"internal/check", "sink/*", "sink/*/*test", "internal/ingest", "internal/pipeline"},
	{"internal/lane"},
	{"internal/lane/*"},
	{"internal/metrics", "internal/prove", "internal/refold", "internal/testtarget"},
	{"internal/daemon", "internal/explain", "internal/verify"},
	{"internal/demo"},
	{"internal/cli"},
	{"cmd/hookfold", "examples/lanes", "e2e", "e2e/cases", "internal/lint", "bench"},
}

func level(pkg string) int {
	for _, same := range []func(name string) bool{
		func(name string) bool { return name == pkg },
		func(name string) bool { ok, err := path.Match(name, pkg); return ok && err == nil },
	} {
		if i := slices.IndexFunc(levels, func(l []string) bool { return slices.ContainsFunc(l, same) }); i >= 0 {
			return i
		}
	}
	return -1
}

// Every package has one place in levels, and every place a package.
func TestLevelsNameThePackages(t *testing.T) {
	packages := map[string]bool{}
	for _, s := range sources(t) {
		packages[s.pkg()] = true
	}
	seen := map[string]bool{}
	for _, l := range levels {
		for _, name := range l {
			if seen[name] {
				t.Errorf("%s is in levels twice", name)
			}
			seen[name] = true
			used := false
			for p := range packages {
				ok, err := path.Match(name, p)
				used = used || ok && err == nil
			}
			if !used {
				t.Errorf("levels name %s, and there is no such package", name)
			}
		}
	}
}

// docs/architecture.md says of every package what it is for.
func TestPackagesAreDescribed(t *testing.T) {
	var page string
	packages := map[string]bool{}
	for _, f := range tree(t) {
		if f.path == "docs/architecture.md" {
			page = string(f.text)
		}
		if strings.HasSuffix(f.path, ".go") && !f.isTest() && !strings.Contains(f.path, "testdata/") {
			packages[f.pkg()] = true
		}
	}
	_, table, _ := strings.Cut(page, "| --- |")
	for p := range packages {
		if n := strings.Count(table, "\n| `"+p+"` |"); n != 1 {
			t.Errorf("the table of docs/architecture.md has %d lines for %s", n, p)
		}
	}
}

func TestImportsGoOneWay(t *testing.T) {
	for _, s := range sources(t) {
		from := level(s.pkg())
		if from < 0 {
			t.Errorf("%s: package %s has no level: give it a place in levels", s.path, s.pkg())
			continue
		}
		if s.isTest() {
			continue // a test may look further, cycles excepted
		}
		for _, imp := range s.imports() {
			to := level(imp)
			if to >= from && imp != s.pkg() {
				t.Errorf("%s imports %s: level %d may import only lower levels, and that is level %d", s.path, imp, from, to)
			}
		}
	}
}

// pure packages compute and nothing else.
var pure = []string{"merge", "converge", "internal/compile"}

func TestPurePackagesDoNoIO(t *testing.T) {
	banned := []string{"os", "net", "net/http", "database/sql", "io/fs", "log", "log/slog", "math/rand"}
	for _, s := range sources(t) {
		if s.isTest() || !slices.Contains(pure, s.pkg()) {
			continue
		}
		for _, imp := range s.imports() {
			if slices.Contains(banned, imp) {
				t.Errorf("%s imports %s: package %s does no I/O", s.path, imp, s.pkg())
			}
		}
		s.uses(func(pkg, name string, at token.Position) {
			if pkg == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After"}, name) {
				t.Errorf("%s: time.%s: package %s reads no clock", at, name, s.pkg())
			}
		})
	}
}
