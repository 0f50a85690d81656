package lint

import (
	"bytes"
	"go/ast"
	"go/token"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The most lines of a file. A file that outgrows them holds two nouns.
const (
	maxSource = 450
	maxTest   = 700
)

func TestFilesStaySmall(t *testing.T) {
	for _, s := range sources(t) {
		lines, limit := bytes.Count(s.text, []byte("\n")), maxSource
		if s.isTest() {
			limit = maxTest
		}
		if lines > limit {
			t.Errorf("%s has %d lines, the limit is %d: which noun can move to a file of its own?", s.path, lines, limit)
		}
	}
}

func TestNoHiddenStart(t *testing.T) {
	drawers := []string{"util", "utils", "common", "helpers", "misc", "base"}
	for _, s := range sources(t) {
		if slices.Contains(drawers, path.Base(s.pkg())) {
			t.Errorf("%s: a package named %s says nothing about what is in it", s.path, path.Base(s.pkg()))
		}
		for _, d := range s.tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: func init: let main wire it", s.set.Position(f.Pos()))
			}
		}
	}
}

// Tests wait for signals, not for time to pass: a sleep is for a poll within a
// deadline, or says on its line why time itself is meant. They fail where
// something they need is missing. A suite for a server that few have may ask for a variable
// HOOKFOLD_TEST_…, which CI sets.
func TestTestsNeitherSleepNorSkip(t *testing.T) {
	for _, s := range sources(t) {
		if !s.isTest() {
			continue
		}
		s.uses(func(pkg, name string, at token.Position) {
			if pkg == "time" && name == "Sleep" && !slices.Contains(s.imports(), "testing/synctest") && !meant.Match(s.line(at)) {
				t.Errorf("%s: time.Sleep in a test: wait for a signal, or say on the line why not", at)
			}
			if len(pkg) == 1 && (name == "Skip" || name == "Skipf" || name == "SkipNow") && !bytes.Contains(s.line(at), []byte("HOOKFOLD_TEST_")) {
				t.Errorf("%s: a test that is skipped proves nothing", at)
			}
		})
	}
}

// meant is a line on which a sleep is meant.
var meant = regexp.MustCompile(`for .*deadline|// `)

// outside are references to places and papers that are no part of the project.
// The words are put together here so that this file does not hold them.
var outside = regexp.MustCompile(strings.Join([]string{
	`/wor` + `k/`, `\.\./shar` + `ed`, `\bshar` + `ed/(providers|model|cases)`,
	`DESI` + `GN §`, `\bCONF` + `IG\.md`, `\bSEMAN` + `TICS\.md`, `\bSTY` + `LE\.md`,
	`prox` + `y\.golang`, `/tm` + `p/hf`, `FIX` + `ME`, `TO` + `DO\b`,
}, "|"))

func TestNothingPointsOutside(t *testing.T) {
	for _, f := range tree(t) {
		if f.path == "go.sum" {
			continue
		}
		for i, line := range bytes.Split(f.text, []byte("\n")) {
			if m := outside.Find(line); m != nil {
				t.Errorf("%s:%d: %q has no place in the project", f.path, i+1, m)
			}
		}
	}
}

var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestLinksLead(t *testing.T) {
	there := map[string]bool{".": true}
	files := tree(t)
	for _, f := range files {
		for p := f.path; p != "."; p = path.Dir(p) {
			there[p] = true
		}
	}
	for _, f := range files {
		if !strings.HasSuffix(f.path, ".md") || strings.Contains(f.path, "testdata/") { // there lie parts of pages
			continue
		}
		for _, m := range markdownLink.FindAllStringSubmatch(string(f.text), -1) {
			u, err := url.Parse(m[1])
			if err != nil || u.Scheme != "" || u.Path == "" {
				continue
			}
			if to := path.Join(path.Dir(f.path), u.Path); !there[to] {
				t.Errorf("%s links to %s, which is not there", f.path, m[1])
			}
		}
	}
}
