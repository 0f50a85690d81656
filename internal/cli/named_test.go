package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const namedConfig = `version: 1
journal: sqlite:DIR/journal.db
sources: {shop: {preset: http, verify: none, id: event.id, time: event.at}}
targets: {db: {url: "sqlite:DIR/rows.db"}}
tables:
  place: {key: {ref: text}, columns: {name: text}, events: [{from: shop, key: {ref: event.ref}, set: {name: event.name}}]}
  seat: {key: {ref: text}, columns: {name: text}, events: [{from: shop, key: {ref: event.ref}, set: {name: event.name}}]}
`

// The tables of a config are printed and made without the secrets that only
// receiving needs, but never by a database's URL that is not there.
func TestTablesWithoutSecrets(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "hookfold.yaml")
	write := func(url string) {
		t.Helper()
		text := strings.Replace(strings.ReplaceAll(namedConfig, "DIR", dir), "verify: none,", `verify: bearer, secrets: ["${SHOP_TOKEN}"],`, 1)
		text += "lanes: {l: {from: shop, key: event.ref, post: \"http://127.0.0.1:1/\", secret: \"${LANE_SECRET}\", headers: {X-Key: \"${KEY}\"}}}\n"
		text += "fetches: {f: {url: '\"https://example.com/\" + event.ref', bearer: \"${TOKEN}\"}}\n"
		if err := os.WriteFile(config, []byte(strings.Replace(text, "sqlite:"+dir+"/rows.db", url, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("sqlite:" + dir + "/rows.db")
	for _, c := range []struct {
		args string
		code int
	}{{"sql place", Fine}, {"migrate", NotSo}, {"migrate --apply", Fine}, {"check", Usage}, {"serve", Usage}} {
		if code, out, errOut := run(t, append(strings.Fields(c.args), "-c", config)...); code != c.code || strings.Contains(out+errOut, "whsec_") {
			t.Errorf("%s: exit %d, want %d\n%s%s", c.args, code, c.code, out, errOut)
		}
	}
	write("${DATABASE_URL}")
	for _, args := range []string{"sql", "migrate"} {
		if code, _, errOut := run(t, args, "-c", config); code != Usage || !strings.Contains(errOut, "the environment variable DATABASE_URL is not set") {
			t.Errorf("%s: exit %d\n%s", args, code, errOut)
		}
	}
}

// A name that is mistyped on a command line is told, with those that there are.
func TestMistypedNames(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "hookfold.yaml")
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(namedConfig, "DIR", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"explain seat reff=1":         "reff=1 is no part of the key of seat: write ref=…",
		"explain seat ref=1 reff=1":   "reff=1 is no part of the key of seat: write ref=…",
		"explain seats ref=1":         "the config has no table seats. Its tables are: place, seat",
		"sql seats":                   "the config has no table seats. Its tables are: place, seat",
		"sql --guard-trigger":         "no table of the config says guard: trigger. Name a table: place, seat",
		"sql seat --dialect oracle":   "there is no dialect oracle. The dialects are: postgres, sqlite, mysql, sqlserver, supabase",
		"sql seat --procedure":        "hookfold sql: SQLite has no procedures.",
		"dead list":                   "open journal: there is no journal to read at " + dir + "/journal.db; check the path, or start the server once to make it (no such file or directory)",
		"init --target mariad -c x":   "mariad is not a kind of target. Did you mean mariadb?",
		"verify seats":                "the config has no table seats. Its tables are: place, seat",
		"prove - --key a=1 --table x": "the config has no table x",
	} {
		args := strings.Fields(args)
		if args[0] != "init" {
			args = append(args, "-c", config)
		}
		if _, out, errOut := run(t, args...); !strings.Contains(errOut, want) {
			t.Errorf("%s:\n%s%swant %s", strings.Join(args, " "), out, errOut, want)
		}
	}
}
