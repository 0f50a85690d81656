package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// parseGood parses a config that has no problem.
func parseGood(t *testing.T, text string) *Config {
	t.Helper()
	c, problems := Parse("hookfold.yaml", []byte(text), testOptions())
	if len(problems.List) > 0 {
		t.Fatal(problems)
	}
	return c
}

func TestDefaults(t *testing.T) {
	c := parseGood(t, "version: 1\nsources: {shop: {preset: http, verify: none}}\n")
	want := &Config{
		File: "hookfold.yaml", Listen: "127.0.0.1:8080", Admin: "127.0.0.1:8081",
		Journal: Journal{URL: Name{Text: "sqlite:hookfold.db", Path: "journal"}, Keep: 720 * time.Hour, Index: true},
		Sources: []*Source{{
			Name:   Name{Text: "shop", Pos: Pos{2, 11}, Path: "sources.shop"},
			Preset: Name{Text: "http", Pos: Pos{2, 26}, Path: "sources.shop.preset"},
			Verify: &Verify{Pos: Pos{2, 40}, Kind: "none"},
			Format: "json", MaxAhead: 24 * time.Hour, MaxBody: 5 << 20, BadText: "replace",
		}},
	}
	if d := cmp.Diff(want, c); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestEnvironmentNeverBecomesYAML(t *testing.T) {
	c := parseGood(t, `version: 1
listen: "${LISTEN}"
sources:
  shop: {preset: http, verify: bearer, secrets: ["${NESTED}", "a${SECRET}b", "$${SECRET}", "${file:/run/secrets/shop}", "${file:/run/secrets/two}", "${YAML}"]}
`)
	want := []string{"${SECRET}", "as3cr3tb", "${SECRET}", "from a file", "a", "x]\nlisten: 1"}
	var got []string
	for _, s := range c.Sources[0].Secrets {
		got = append(got, s.Value)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if c.Listen != "127.0.0.1:9000" {
		t.Errorf("listen is %q", c.Listen)
	}
}

func TestVerifyShapes(t *testing.T) {
	data, err := os.ReadFile("testdata/verify-good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := parseGood(t, string(data))
	want := map[string]Verify{
		"a": {Kind: "hmac", Hash: "sha1", Header: "X-Sig", Encoding: "hex"},
		"b": {Kind: "basic", Username: "me"},
		"c": {Kind: "bearer"},
		"d": {Kind: "header", Header: "X-Key"},
		"e": {Kind: "none"},
		"f": {Kind: "hmac", Hash: "sha512", Header: "S", Encoding: "base64", Prefix: "v1,", Signed: "{id}.{timestamp}.{body}", TimestampHeader: "T", IDHeader: "I"},
		"g": {Kind: "header", Header: "X-Webhook-Secret"},
	}
	got := map[string]Verify{}
	for _, s := range c.Sources {
		v := *s.Verify
		v.Pos = Pos{}
		got[s.Text] = v
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if f := c.SourceNamed("f"); f.Tolerance >= 0 || f.MaxAhead >= 0 {
		t.Errorf("off is %v and %v, want negative", f.Tolerance, f.MaxAhead)
	}
}

func TestSizesAndDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{"300s": 5 * time.Minute, "1h30m": 90 * time.Minute, "30d": 720 * time.Hour, "250ms": 250 * time.Millisecond, "106751d": 106751 * 24 * time.Hour} {
		c := parseGood(t, "version: 1\nsources: {shop: {preset: http, verify: none, tolerance: "+text+"}}\n")
		if got := c.Sources[0].Tolerance; got != want {
			t.Errorf("%s is %v", text, got)
		}
	}
	for text, want := range map[string]int64{"1MiB": 1 << 20, "20GB": 20e9, "3 TB": 3e12, "2GiB": 2 << 30, "1048576B": 1 << 20} {
		c := parseGood(t, "version: 1\njournal: {url: \"sqlite:j\", max_size: "+text+"}\nsources: {shop: {preset: http, verify: none}}\n")
		if got := c.Journal.MaxSize; got != want {
			t.Errorf("%s is %v", text, got)
		}
	}
}

func TestMergeKeys(t *testing.T) {
	data, err := os.ReadFile("testdata/anchors-good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := parseGood(t, string(data))
	two, three := c.SourceNamed("two"), c.SourceNamed("three")
	if two.Format != "form" || two.MaxBody != 1<<20 || two.Zone != time.UTC {
		t.Errorf("of several merged maps the first counts: %+v", two)
	}
	if three.Format != "json" || three.Verify.Kind != "none" {
		t.Errorf("a map's own key counts before a merged one: %+v", three)
	}
}

func TestBounds(t *testing.T) {
	bomb := "version: 1\nx-0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 10; i++ {
		bomb += fmt.Sprintf("x-%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	bomb += "sources: {shop: {preset: http, verify: none}}\ntests: [{name: x, send: [{source: shop, body: *a9}], expect: {}}]\n"
	keys := "version: 1\nsources:\n"
	for i := range 500 {
		keys += fmt.Sprintf("  s%d: {nonsense: 1}\n", i)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"aliases of aliases":   {bomb, "more than 200000 values"},
		"an alias of itself":   {"version: 1\nsources: {shop: {preset: http, verify: none}}\ntests: [{name: x, send: [{source: shop, body: &a [*a]}], expect: {}}]\n", "in a circle"},
		"brackets in brackets": {"a: " + strings.Repeat("[", 250_000) + strings.Repeat("x]y", 250_000), "closed"},
		"a large file":         {"version: 1\n#" + strings.Repeat("x", MaxSize), "at most 1048576"},
		"problem upon problem": {keys, "more problems than these 100"},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			_, problems := Parse("hookfold.yaml", []byte(tc.text), testOptions())
			if !strings.Contains(problems.Error(), tc.want) {
				t.Errorf("got %s, want %s", problems, tc.want)
			}
			if len(problems.List) > maxProblems+1 {
				t.Errorf("%d problems", len(problems.List))
			}
			if took := time.Since(begin); took > time.Minute { // a loaded machine may be slow; what is not bounded takes hours
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "hookfold.yaml")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if c, problems := Load(file, Options{}); c != nil || problems.Error() != file+":1:1: there is no such file. hookfold init writes one to start from" {
		t.Errorf("without a file: %v", problems)
	}
	write("hookfold.yaml", "version: 1\nsources: {shop: {preset: http, verify: bearer, secrets: [\"${file:secret}\"]}}\n")
	if _, problems := Load(file, Options{}); problems.Err() == nil || !strings.Contains(problems.Error(), "secret cannot be read: no such file") {
		t.Errorf("without the secret: %v", problems)
	}
	write("secret", "of the folder\r\n")
	c, problems := Load(file, Options{})
	if problems.Err() != nil || c.Sources[0].Secrets[0].Value != "of the folder" || c.File != file {
		t.Errorf("%+v %v", c, problems)
	}
	write("secret", strings.Repeat("x", maxSecretFile+1))
	if _, problems := Load(file, Options{}); !strings.Contains(problems.Error(), "more than 65536 bytes") {
		t.Errorf("with a large secret: %v", problems)
	}
}

func TestTouches(t *testing.T) {
	p := &Problems{}
	p.Add(Error, Pos{1, 1}, "tables.booking.events[0].set.status", "x")
	p.Add(Warning, Pos{1, 1}, "tables.user", "x")
	for path, want := range map[string]bool{
		"tables.booking": true, "tables.booking.events[0]": true, "tables.booking.events[0].set.status": true,
		"tables.booking.events[1]": false, "tables.book": false, "tables.user": false, "tables.booking.events[0].set.stat": false,
	} {
		if p.Touches(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
	if p.Err() == nil || (&Problems{List: p.List[1:]}).Err() != nil {
		t.Error("an error is one, a warning is none")
	}
}

func TestCauseHidesThePath(t *testing.T) {
	err := &fs.PathError{Op: "open", Path: "/x", Err: errors.New("no")}
	if got := cause(fmt.Errorf("wrapped: %w", err)).Error(); got != "no" {
		t.Error(got)
	}
}
