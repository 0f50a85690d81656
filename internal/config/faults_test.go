package config

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestOneFaultIsOneProblem puts one fault at a time into the example and looks
// for its problem, at its place and without others that only follow from it.
func TestOneFaultIsOneProblem(t *testing.T) {
	oneFault(t, "testdata/example.yaml", testOptions(), 200)
	oneFault(t, "testdata/everything.yaml", testOptions(), 150)
}

func oneFault(t *testing.T, file string, o Options, least int) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := decode(data)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, p := range reference() {
		for _, r := range p.rows {
			known[r.name] = r.name != "id" && r.name != "order" // which are also a column and a table
		}
	}
	lines := strings.Split(string(data), "\n")
	// try replaces the text of a node, and returns the problems of that.
	try := func(n *yaml.Node, format string) ([]Problem, string) {
		line, at := lines[n.Line-1], n.Column-1
		end := at + len(n.Value)
		if !plain(n) {
			end += 2
		}
		changed := slices.Clone(lines)
		changed[n.Line-1] = line[:at] + fmt.Sprintf(format, line[at:end]) + line[end:]
		_, problems := Parse("f", []byte(strings.Join(changed, "\n")), o)
		return problems.List, fmt.Sprintf("%s\n%v", changed[n.Line-1], problems)
	}
	faults := 0
	var walk func(n *yaml.Node, free bool)
	walk = func(n *yaml.Node, free bool) {
		for i, c := range n.Content {
			isKey := n.Kind == yaml.MappingNode && i%2 == 0
			switch {
			case free || c.Kind != yaml.ScalarNode:
			case isKey && known[c.Value]:
				faults++
				if got, text := try(c, "%ss"); len(got) != 1 || got[0].Pos != (Pos{c.Line, c.Column}) || !strings.Contains(got[0].Text, "Did you mean "+c.Value+"?") {
					t.Errorf("a key misspelt: %s", text)
				}
			case !isKey:
				for _, fault := range []string{"[[%s]]", "{what: %s}"} {
					faults++
					if got, text := try(c, fault); len(got) == 0 || len(got) > 2 || got[0].Pos.Line != c.Line {
						t.Errorf("a value of a wrong kind: %s", text)
					}
				}
			}
			walk(c, free || !isKey && n.Kind == yaml.MappingNode && (strings.HasPrefix(n.Content[i-1].Value, "x-") || n.Content[i-1].Value == "body" || n.Content[i-1].Value == "fetched" || n.Content[i-1].Value == "expect"))
		}
	}
	walk(doc, false)
	if faults < least {
		t.Errorf("only %d faults", faults)
	}
}
