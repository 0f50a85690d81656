package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/source"
)

var update = flag.Bool("update", false, "write docs/presets.md anew")

// markdown escapes text for a page.
var markdown = strings.NewReplacer("<", "&lt;", `\`, `\\`, "*", `\*`, "|", `\|`)

// presetPage is the page of one preset, from what the code says of itself.
func presetPage(p *source.Preset) string {
	var out strings.Builder
	title, doc, _ := strings.Cut(p.Doc, "\n")
	fmt.Fprintf(&out, "## %s\n\n%s\n\n", p.Name, markdown.Replace(title))
	table := false // within lines that are set apart, such as a table
	for _, line := range strings.Split(strings.TrimSpace(doc), "\n") {
		if apart := strings.HasPrefix(line, "  "); apart != table {
			out.WriteString(map[bool]string{true: "\n```\n", false: "```\n\n"}[apart])
			table = apart
		}
		label, text, ok := strings.Cut(line, ": ")
		switch {
		case table:
			fmt.Fprintf(&out, "%s\n", line)
		case ok && !strings.ContainsAny(label, ".( "):
			fmt.Fprintf(&out, "* **%s**: %s\n", label, markdown.Replace(text))
		default:
			fmt.Fprintf(&out, "* %s\n", markdown.Replace(line))
		}
	}
	if table {
		out.WriteString("```\n")
	}
	out.WriteString("\n")
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&out, "| %s | %s |\n", name, text)
		}
	}
	out.WriteString("| | |\n| --- | --- |\n")
	configured := p.Name == "http"
	says := func(has bool) string {
		return map[bool]string{true: "yes", false: map[bool]string{true: "as `id:` and `time:` of the source say", false: "no"}[configured]}[has]
	}
	row("events have an identity", says(p.HasID))
	row("events have a time", says(p.HasTime))
	if p.HasTime {
		row("its step", time.Duration(p.Grain).String())
	}
	row("beware", markdown.Replace(strings.TrimSuffix(p.TimeCaution, ":")))
	types := "any"
	if p.Types != nil {
		types = "`" + strings.Join(p.Types, "`, `") + "`"
	}
	row("types", types)
	var samples []string
	for _, s := range p.Samples {
		samples = append(samples, strings.TrimPrefix(s.Name, p.Name+"/"))
	}
	if samples != nil {
		row("samples", "`"+strings.Join(samples, "`, `")+"`")
	}
	return out.String()
}

const presetsHead = `# The presets

<!-- Written by: go test ./internal/cli -run TestPresetPages -update -->

A preset knows a provider: how its requests are signed, which events they hold, and what ` + "`event`, `type`, `id`, `time` and" + `
` + "`envelope`" + ` are in expressions. Where a preset has no identity or no time there is none, unless the source says ` + "`id:` or" + `
` + "`time:`" + ` itself. Samples are bodies as the provider sends them: ` + "`hookfold send SOURCE SAMPLE`" + ` signs and sends one,
` + "`tests:`" + ` name them as ` + "`PRESET/SAMPLE`" + `, and ` + "`hookfold check`" + ` tries every mapping on them.

`

const fetchesHead = `
## Ready fetches

What [fetches](fetch.md) of a config may name as their ` + "`preset:`" + `, which gives what the config does not say itself. The rate is what
the provider allows at least at the time of writing; a config says ` + "`rate:`" + ` by its own plan.

| preset | reads | URL | hosts | needs | version | rate |
| --- | --- | --- | --- | --- | --- | --- |
`

// fetchesPage is the table of the ready fetches.
func fetchesPage() string {
	var out strings.Builder
	out.WriteString(fetchesHead)
	for _, f := range source.Fetches() {
		needs := "`headers: {" + f.Auth + ": …}`"
		if f.Auth == source.AuthBearer {
			needs = "`bearer:`"
		}
		version := "`fetched_at`"
		if f.Version != nil {
			version = "`" + strings.Join(f.Version, "`, `") + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | `%s` | `%s` | %s | %s | %d in %s |\n", f.Name, f.Doc, f.URL, strings.Join(f.Hosts, "`, `"), needs, version, f.Rate, perWord(f.Per))
	}
	return out.String()
}

func perWord(d time.Duration) string {
	return map[time.Duration]string{time.Second: "a second", time.Minute: "a minute", time.Hour: "an hour"}[d]
}

// TestPresetPages keeps docs/presets.md equal to what the presets say of
// themselves.
func TestPresetPages(t *testing.T) {
	got := presetsHead
	for i, p := range source.Presets() {
		if i > 0 {
			got += "\n"
		}
		got += presetPage(p)
	}
	got += fetchesPage()
	const file = "../../docs/presets.md"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got, -update writes it anew):\n%s", file, d)
	}
}
