package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/testdb"
)

// What a trial has left that was killed is removed when serve starts.
func TestStartRemovesWhatTrialsLeft(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	old := filepath.Join(os.TempDir(), "hookfold_prove_old")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	alive := filepath.Join(old, "alive")
	if err := os.WriteFile(alive, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(alive, long, long); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, testdb.SQLite(t))
	r.start()
	r.stop() // waits for what was begun
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	if !strings.Contains(r.log.String(), "trials that were killed") {
		t.Errorf("it is not told: %s", r.log)
	}
}

// A trial is made where tables can be copied; an API says where to look.
func TestOpenTrial(t *testing.T) {
	database, file := testdb.Schema(t), testdb.SQLite(t)
	own := map[string]string{"user": "select 1"}
	for name, c := range map[string]struct {
		target, sink string
		own          map[string]string
		place, fails string
	}{
		"its own":               {target: `url: "` + database + `"`, place: "the database of target db"},
		"another":               {target: `url: "` + database + `"`, sink: file, place: "the database of --sink"},
		"no database":           {target: `url: "` + database + `"`, sink: "ftp://x", fails: "there is no database for this URL"},
		"Hasura":                {target: `url: "hasura+http://127.0.0.1:1/v1/graphql"`, fails: "say --sink with the URL of the database behind it"},
		"Hasura elsewhere":      {target: `url: "hasura+http://127.0.0.1:1/v1/graphql"`, sink: database, place: "the database of --sink"},
		"Supabase":              {target: `url: "supabase+http://127.0.0.1:1", key: k`, fails: "say --sink"},
		"Supabase behind":       {target: `url: "supabase+http://127.0.0.1:1", key: k, direct_url: "` + database + `"`, place: "the database at direct_url, not through the API"},
		"own statement":         {target: `url: "` + file + `"`, own: own, place: "the database of target db"},
		"own, on PostgreSQL":    {target: `url: "` + database + `"`, own: own, fails: "could write anywhere"},
		"own, somewhere else":   {target: `url: "` + database + `"`, own: own, sink: database, place: "the database of --sink"},
		"own, for a held table": {target: `url: "` + file + `"`, own: map[string]string{"gone": "select 1"}, fails: "more than one statement"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, problems := config.Parse("hookfold.yaml", []byte(`
version: 1
journal: sqlite:unused.db
sources: {shop: {preset: http, verify: none, id: event.id, type: event.type, time: event.at}}
targets: {db: {`+c.target+`}, held: {url: "`+file+`"}}
tables:
  user: {target: db, key: {id: text}, columns: {name: text}, events: [{from: shop, type: user, key: {id: event.user}, set: {name: event.name}}]}
  gone: {target: held, key: {id: text}, columns: {name: text}, on_delete: remove, events: [{from: shop, type: gone, key: {id: event.user}, delete: true}]}
`), config.Options{})
			if problems.Err() != nil {
				t.Fatal(problems)
			}
			plan, problems := mapping.Compile(cfg)
			if problems.Err() != nil {
				t.Fatal(problems)
			}
			target := "db"
			if c.own["gone"] != "" {
				target = "held"
			}
			x, err := OpenTrial(t.Context(), plan, target, c.sink, c.own)
			switch {
			case err != nil && (c.fails == "" || !strings.Contains(err.Error(), c.fails)):
				t.Fatal(err)
			case err != nil:
				return
			case c.fails != "":
				t.Errorf("it is opened, at %s", x.Place)
			case x.Place != c.place:
				t.Errorf("it is at %s", x.Place)
			}
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
