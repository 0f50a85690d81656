package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/testtarget"
)

// exampleEnv is the environment that every example can be run with.
func exampleEnv(url string) []string {
	env := append(os.Environ(), "DATABASE_URL="+url)
	for _, name := range []string{"CALENDLY_SIGNING_KEY", "META_APP_SECRET", "META_VERIFY_TOKEN", "HASURA_WEBHOOK_SECRET", "SUPABASE_WEBHOOK_SECRET", "WEBHOOK_SECRET", "STRIPE_WEBHOOK_SECRET", "SHOP_SECRET"} {
		env = append(env, name+"=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	}
	return env
}

// TestExamples replays the deliveries of each example, twice, and compares the
// rows with those that its rows.txt shows. Where there is a history too, it is
// imported before and after.
func TestExamples(t *testing.T) {
	examples, err := filepath.Glob("../examples/*/hookfold.yaml")
	if err != nil || len(examples) < 7 {
		t.Fatalf("%d examples, %v", len(examples), err)
	}
	for _, file := range examples {
		dir := filepath.Dir(file)
		orders := map[string][]string{"": {"deliveries.ndjson", "deliveries.ndjson"}}
		if _, err := os.Stat(filepath.Join(dir, "history.ndjson")); err == nil {
			orders = map[string][]string{
				"history-first": {"history.ndjson", "deliveries.ndjson", "deliveries.ndjson"},
				"history-last":  {"deliveries.ndjson", "history.ndjson", "history.ndjson"},
			}
		}
		for engine, database := range engines {
			for order, files := range orders {
				t.Run(filepath.Join(filepath.Base(dir), engine, order), func(t *testing.T) { runExample(t, file, database(t), files) })
			}
		}
	}
}

// TestExamplesThroughAPIs does the same through Hasura and Supabase REST, for the
// examples whose tables these keep.
func TestExamplesThroughAPIs(t *testing.T) {
	examples, err := filepath.Glob("../examples/*/hookfold.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range testtarget.Kinds {
		if kind.SQL {
			continue
		}
		kept := 0
		for _, file := range examples {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			target := kind.Open(t)
			of := strings.Replace(string(text), `{url: "${DATABASE_URL}"}`, target.Config, 1)
			path := writeFile(t, t.TempDir(), "hookfold.yaml", of)
			if tables, err := openTables(path, target.Rows, lookup(exampleEnv(target.Rows))); err != nil {
				t.Fatal(err)
			} else {
				tables.db.Close()
				if daemon.Limits(tables.plan).Err() != nil {
					continue
				}
			}
			kept++
			t.Run(filepath.Join(filepath.Base(filepath.Dir(file)), kind.Name), func(t *testing.T) {
				runConfig(t, path, filepath.Dir(file), target.Rows, []string{"deliveries.ndjson", "deliveries.ndjson"})
			})
		}
		if kept < 3 {
			t.Errorf("%s keeps the tables of %d examples", kind.Name, kept)
		}
	}
}

func runExample(t *testing.T, file, url string, files []string) {
	config, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	runConfig(t, config, filepath.Dir(config), url, files)
}

// runConfig runs a config with the files of an example's folder.
func runConfig(t *testing.T, config, dir, url string, files []string) {
	work := t.TempDir()
	env := exampleEnv(url)
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "--test"}, {"migrate", "--apply"}, {"check", "--connect"}} {
		if out, err := command(work, env, append(args, "-c", config)...); err != nil {
			t.Fatalf("hookfold %v: %v\n%s", args, err, out)
		}
	}
	for _, name := range files {
		out, err := command(work, env, "replay", filepath.Join(dir, name), "--json", "-c", config)
		var summary struct{ Dead, Waiting, Settled int }
		if jsonErr := json.Unmarshal([]byte(out), &summary); err != nil || jsonErr != nil || summary.Dead+summary.Waiting > 0 || summary.Settled == 0 {
			t.Fatalf("replay: %v %v\n%s", err, jsonErr, out)
		}
	}
	tables, err := openTables(config, url, lookup(env))
	if err != nil {
		t.Fatal(err)
	}
	defer tables.db.Close()
	have, err := tables.text(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	compareFile(t, filepath.Join(dir, "rows.txt"), have)
}

// lookup looks variables up in an environment; the last of a name counts.
func lookup(env []string) func(string) (string, bool) {
	values := map[string]string{}
	for _, e := range env {
		for i := range e {
			if e[i] == '=' {
				values[e[:i]] = e[i+1:]
				break
			}
		}
	}
	return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
}

// compareFile compares with a file that -update rewrites.
func compareFile(t *testing.T, path, have string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(have), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if have != string(want) {
		t.Errorf("%s differs (-update rewrites it). have:\n%s\nwant:\n%s", path, have, want)
	}
}
