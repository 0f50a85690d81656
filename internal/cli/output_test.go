package cli

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func none(string) (string, bool) { return "", false }

func TestGrid(t *testing.T) {
	g := grid{head: []string{"table", "rows>", "what"}}
	on := style{on: true}
	g.add("booking", "2", on.good("right"))
	g.add("größe", "1,300", "wrong")
	var b bytes.Buffer
	g.print(&b, "  ", style{})
	want := "  table     rows  what\n  booking      2  \x1b[32mright\x1b[0m\n  größe    1,300  wrong\n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %s, want %s", n, got, want)
		}
	}
	if got := plural(1, "row") + plural(1200, "row"); got != "1 row1,200 rows" {
		t.Error(got)
	}
}

func TestColours(t *testing.T) {
	env := func(name, value string) func(string) (string, bool) {
		return func(n string) (string, bool) { return value, n == name }
	}
	for name, c := range map[string]struct {
		terminal bool
		getenv   func(string) (string, bool)
		want     bool
	}{
		"terminal":          {true, none, true},
		"pipe":              {false, none, false},
		"NO_COLOR":          {true, env("NO_COLOR", "1"), false},
		"NO_COLOR is empty": {true, env("NO_COLOR", ""), true},
		"dumb terminal":     {true, env("TERM", "dumb"), false},
	} {
		if got := newStyle(c.terminal, c.getenv).on; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// run runs a command line in a world without a terminal.
func run(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Run(args, World{In: strings.NewReader(""), Out: &o, Err: &e, Getenv: none})
	return code, o.String(), e.String()
}

func TestUsage(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
		err  string
	}{
		"no command":             {nil, Fine, ""},
		"unknown command":        {[]string{"serv"}, Usage, "hookfold: there is no command serv. Did you mean serve or send?\nTry: hookfold --help\n"},
		"help of unknown":        {[]string{"help", "nope"}, Usage, "hookfold help: there is no command nope\nTry: hookfold --help\n"},
		"unknown flag":           {[]string{"version", "--x"}, Usage, "hookfold version: unknown flag: --x\nTry: hookfold version --help\n"},
		"too many":               {[]string{"version", "a", "b"}, Usage, "hookfold version: needs no arguments, and was given 2 arguments\nTry: hookfold version --help\n"},
		"group without a verb":   {[]string{"dead"}, Usage, "hookfold dead: say what to do: list, show, retry or drop\nTry: hookfold dead list\n"},
		"group with another one": {[]string{"dead", "lst"}, Usage, "hookfold dead: there is no command lst. Did you mean list?\nTry: hookfold dead list\n"},
		"later verb":             {[]string{"polish"}, Usage, "hookfold: there is no command polish\nTry: hookfold --help\n"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, errOut := run(t, c.args...)
			if code != c.code || errOut != c.err {
				t.Errorf("exit %d, %q; want %d, %q", code, errOut, c.code, c.err)
			}
		})
	}
}

func TestParseRef(t *testing.T) {
	for text, ok := range map[string]bool{"1042": true, "#1042": true, "#1042.3": true, "0": false, "x": false, "1.": false, "1.-2": false, "": false} {
		if _, _, err := parseRef(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	if p, i, err := parseRef("#1042.3"); err != nil || p != 1042 || *i != 3 {
		t.Errorf("%d %v %v", p, i, err)
	}
}

func TestWrap(t *testing.T) {
	var b bytes.Buffer
	a := &app{World: World{Out: &b}}
	a.wrap("    ", "2", strings.TrimSpace(strings.Repeat("twelve-chars ", 12)))
	for _, line := range strings.Split(strings.TrimSpace(b.String()), "\n") {
		if len(line) > textWidth || !strings.HasSuffix(line, "chars") {
			t.Errorf("%q", line)
		}
	}
	if n := strings.Count(b.String(), "\n"); n != 3 {
		t.Errorf("%d lines\n%s", n, b.String())
	}
}

// The demo is read on terminals of 80 columns too. Only the command lines may be
// longer: they hold the path of a folder.
func TestTheDemoFitsATerminal(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	code, out, errOut := run(t, "demo")
	if code != Fine {
		t.Fatal(out, errOut)
	}
	text, _, _ := strings.Cut(out, "Try next")
	for _, line := range strings.Split(text, "\n") {
		if utf8.RuneCountInString(line) > textWidth {
			t.Errorf("%d characters: %s", utf8.RuneCountInString(line), line)
		}
	}
	// What the README promises: a booking that takes place, and is canceled there.
	if !regexp.MustCompile(`(?m)^ Hookfold  lead_\d+  active .*\n naive     lead_\d+  canceled `).MatchString(out) {
		t.Errorf("no booking ends up canceled:\n%s", out)
	}
}

// What migrate prints can be pasted where SQL is run.
func TestShownStatement(t *testing.T) {
	for in, want := range map[string]string{
		"create table t (id int)":   "create table t (id int);",
		`{"type":"pg_track_table"}`: `-- then track the table in Hasura, by its console or by POST /v1/metadata: {"type":"pg_track_table"}`,
		"create trigger x before update on t for each row\nhookfold: begin\n    set new.a = 1;\nend": "delimiter //\ncreate trigger x before update on t for each row\nhookfold: begin\n    set new.a = 1;\nend//\ndelimiter ;",
	} {
		if got := shownStatement(in); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
