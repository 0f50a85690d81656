package cases

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"
)

const docsFile = "../../docs/cases.md"

const docsHead = `# Cases

<!-- Written by: go test ./e2e/cases -run TestDocs -update -->

Failures that people have met with webhooks and told of in public, each run as a scenario through the real program:
requests over HTTP, the journal on disk, the pipeline, and rows in the databases named here, in every order that the case
allows (24 of them by chance where there are more; make cases tries up to 720), with deliveries doubled and
cut into batches by chance. The scenarios are in [e2e/cases](../e2e/cases); a line in
` + "*italics*" + ` says what is scaled down, or otherwise not literally as it was told.
Hasura and Supabase REST are doubles over PostgreSQL, and get fewer orders: CI runs each case through one of them by chance,
make cases through all. Where one is not named, it refuses the config with the line ([databases.md](databases.md)), or the case
leads the database itself.

`

// TestDocs compares docs/cases.md with the scenarios and the lists.
func TestDocs(t *testing.T) {
	var b strings.Builder
	b.WriteString(docsHead)
	passing, waiting, failing := 0, 0, 0
	var rows strings.Builder
	for _, variants := range all(t) {
		state, pass := states(variants)
		switch pass {
		case passes:
			passing++
		case fails:
			failing++
		default:
			waiting++
		}
		title := fmt.Sprintf("[%s](%s)", cell(variants[0].Title), variants[0].Source)
		for _, s := range variants {
			if s.Note != "" && (s.variant == "" || s.Note != variants[0].Note) {
				title += "<br>*" + strings.TrimPrefix(s.variant+": ", ": ") + cell(s.Note) + "*"
			}
		}
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", variants[0].id, title, state)
	}
	fmt.Fprintf(&b, "%d cases pass with all their variants, %d wait in part or whole for a feature, %d fail in part or whole by a known fault.\n\n", passing, waiting, failing)
	b.WriteString("| case | what happens | state |\n| --- | --- | --- |\n")
	b.WriteString(rows.String())
	want := b.String()
	if *update {
		if err := os.WriteFile(docsFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("docs/cases.md is not what the scenarios say: run go test ./e2e/cases -run TestDocs -update")
	}
}

// The states of a case as a whole.
const (
	passes = iota
	waits
	fails
)

// states tells of each variant whether it passes, and where.
func states(variants []*scenario) (text string, worst int) {
	type group struct {
		state string
		names []string
	}
	var groups []group
	for _, s := range variants {
		state, grade := s.state()
		worst = max(worst, grade)
		name := cmp.Or(s.variant, "the case")
		if n := len(groups); n > 0 && groups[n-1].state == state {
			groups[n-1].names = append(groups[n-1].names, name)
			continue
		}
		groups = append(groups, group{state, []string{name}})
	}
	var out []string
	for _, g := range groups {
		line := g.state
		if len(variants) > 1 {
			line = strings.Join(g.names, ", ") + ": " + g.state
		}
		out = append(out, line)
	}
	return strings.Join(out, "<br>"), worst
}

func (s *scenario) state() (string, int) {
	if need := s.needs(); need != "" {
		return "needs " + cell(need), waits
	}
	if fault, ok := knownFaults[s.name()]; ok {
		return "**fails**: " + cell(fault), fails
	}
	if n, ok := s.named(); ok {
		return "runs where `" + n.variable + "` names a server; elsewhere " + n.elsewhere, waits
	}
	var on []string
	for _, e := range everywhere {
		if e.takes(s) {
			on = append(on, e.name)
		}
	}
	return "passes on " + strings.Join(on, ", "), passes
}

func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "*", "\\*", "<", "&lt;").Replace(text)
}
