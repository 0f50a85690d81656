package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hookfold/hookfold/merge"
)

// FuzzParse checks that no text makes Parse panic, that every problem has a place
// in the file and a text of one line, and that a config without an error has
// what a config needs.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal("no corpus", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	starter, err := Starter(presets, "")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(starter)
	f.Fuzz(func(t *testing.T, data []byte) {
		parseAny(t, data, testOptions())
	})
}

func parseAny(t *testing.T, data []byte, o Options) {
	t.Helper()
	c, problems := Parse("f", data, o)
	lines := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + strings.Count(string(data), "\u0085") +
		strings.Count(string(data), "\u2028") + strings.Count(string(data), "\u2029") + 1
	for _, p := range problems.List {
		if p.Pos.Line < 1 || p.Pos.Line > lines+1 || p.Pos.Column < 1 || p.Pos.Column > len(data)+2 {
			t.Errorf("no place of the file: %v %s", p.Pos, p.Text)
		}
		if p.Text == "" || strings.ContainsAny(p.Text+p.Path, "\n\x00") || !utf8.ValidString(p.Text) {
			t.Errorf("no text of one line: %q %q", p.Path, p.Text)
		}
	}
	if problems.Err() != nil {
		return
	}
	if c == nil {
		t.Fatal("no error and no config")
	}
	for _, table := range c.Tables {
		refs, _ := references(table)
		for _, r := range refs {
			if r.Missing != "ensure" && (r.Missing != "wait" || r.For <= 0) {
				t.Errorf("%s does neither ensure nor wait", r.Path)
			}
		}
		if len(table.Key) == 0 || c.TargetNamed(table.Target.Text) == nil {
			t.Errorf("table %s has no key or no target", table.Text)
		}
		for _, m := range table.Events {
			if c.SourceNamed(m.From.Text) == nil || len(m.Key) != len(table.Key) {
				t.Errorf("%s has no source or no key", m.Path)
			}
			if m.deletes() != "" && (table.OnDelete == nil || table.OnDelete.Rule == merge.DeleteNone) {
				t.Errorf("%s deletes, and nothing says what that means", m.Path)
			}
			if m.Replaces != nil && (m.Each == nil || len(m.Replaces) == 0 || len(table.Group()) != len(m.Replaces)) {
				t.Errorf("%s replaces no group", m.Path)
			}
			if m.Chain != nil && m.Chain.Previous == nil && m.Chain.Next == nil || m.Occupant != nil && m.Occupant.ID.Text == "" && !table.Chained() {
				t.Errorf("%s has no identity", m.Path)
			}
			for _, a := range m.Set {
				if a.Expr.Text == "" {
					t.Errorf("%s has an empty expression", a.Column.Path)
				}
			}
		}
	}
}
