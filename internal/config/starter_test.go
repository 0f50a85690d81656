package config

import (
	"slices"
	"strings"
	"testing"
)

func TestStarter(t *testing.T) {
	if got := StarterPresets(); !slices.Equal(got, presets) {
		t.Fatalf("starters of %v, presets %v", got, presets)
	}
	checkStarter(t, testOptions())
	if twice, err := Starter([]string{"stripe", "stripe"}, ""); err != nil || strings.Count(string(twice), "preset: stripe") != 1 {
		t.Errorf("%s %v", twice, err)
	}
	if _, err := Starter([]string{"calendy"}, ""); err == nil || err.Error() != "calendy is not a preset. Did you mean calendly?" {
		t.Error(err)
	}
	data, err := Starter([]string{"calendly", "http"}, "")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/starter.txt", string(data))
}

// A starter for each target reads as one, with the variables that it names.
func TestStarterTargets(t *testing.T) {
	o := testOptions()
	values := map[string]string{"SUPABASE_URL": "https://x.supabase.co", "HASURA_URL": "https://h/v1/graphql"}
	o.Env = func(name string) (string, bool) {
		if v := values[name]; v != "" {
			return v, true
		}
		return "secret", true
	}
	kinds := map[string]Kind{"sqlite": SQLite, "postgres": PostgreSQL, "supabase": Supabase, "hasura": Hasura, "sqlserver": SQLServer, "mysql": MySQL, "mariadb": MySQL}
	for _, target := range StarterTargets() {
		values["DATABASE_URL"] = map[string]string{"postgres": "postgres://u@h/d", "mysql": "mysql://u@h/d", "mariadb": "mariadb://u@h/d", "sqlserver": "sqlserver://u@h?database=d"}[target]
		data, err := Starter([]string{"calendly"}, target)
		if err != nil {
			t.Fatal(err)
		}
		c, problems := Parse("hookfold.yaml", data, o)
		if len(problems.List) > 0 || kinds[target] == "" || c.Targets[0].Kind != kinds[target] {
			t.Errorf("%s: %v %+v", target, problems, c.Targets[0])
		}
	}
	if _, err := Starter(nil, "supbase"); err == nil || err.Error() != "supbase is not a kind of target. Did you mean supabase?" {
		t.Error(err)
	}
}

func checkStarter(t *testing.T, o Options) {
	t.Helper()
	o.Env = func(name string) (string, bool) { return "value of " + name, true }
	load := func(names ...string) *Config {
		t.Helper()
		data, err := Starter(names, "")
		if err != nil {
			t.Fatal(err)
		}
		c, problems := Parse("hookfold.yaml", data, o)
		if len(problems.List) > 0 {
			t.Fatalf("%v: %v", names, problems)
		}
		if len(c.Sources) != max(1, len(names)) || len(c.Tables) < len(c.Sources) {
			t.Errorf("%v: %d sources, %d tables", names, len(c.Sources), len(c.Tables))
		}
		return c
	}
	for _, p := range presets {
		if c := load(p); c.Sources[0].Preset.Text != p {
			t.Errorf("%s has a source of preset %s", p, c.Sources[0].Preset.Text)
		}
	}
	load(presets...)
	if c := load(); c.Sources[0].Preset.Text != "http" {
		t.Error("without a preset it is not http")
	}
	for _, p := range []string{"hasura", "supabase"} {
		if c := load(p); c.Tables[0].OnDelete == nil {
			t.Errorf("%s: no deletes", p)
		}
	}
}
