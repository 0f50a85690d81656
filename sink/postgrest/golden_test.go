package postgrest_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/postgrest"
	"github.com/hookfold/hookfold/sink/postgrest/postgresttest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test ./sink/postgrest -run Golden -update writes it", err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, d)
	}
}

// examples are the tables whose migrations are shown.
func examples(t *testing.T) map[string][]*sink.Table {
	return map[string][]*sink.Table{
		"status": {tableOf(t, "message_status", "message_id text", "status text ladder sent,failed,delivered,read", "sent_at timestamp min", "error int scope error")},
		"payment": {
			tableOf(t, "app_user", "id uuid"),
			tableOf(t, "payment", "id text", "user_id uuid", "amount numeric", "origin text first", "top numeric max", "tags text[] union"),
		},
		"booking": {booking(t)},
	}
}

func none(string) *sink.Live { return nil }

func TestGoldenMigration(t *testing.T) {
	for name, tables := range examples(t) {
		got, err := postgrest.Migration(tables, none, postgrest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "migration_"+name+".sql", got)
	}
}

// The printed text, run by itself as a person would, is all that is needed, also
// a second time.
func TestMigrationIsAllThatIsNeeded(t *testing.T) {
	for name, tables := range examples(t) {
		t.Run(name, func(t *testing.T) {
			p := postgresttest.New(t, postgresttest.Options{})
			text, err := postgrest.Migration(tables, none, postgrest.Options{Key: p.Key, Schema: p.Schema})
			if err != nil {
				t.Fatal(err)
			}
			p.Exec(t, text)
			s := open(t, p, tables, postgrest.Options{})
			if left, err := s.Plan(t.Context(), tables); err != nil || len(left) != 0 {
				t.Errorf("it leaves %q, %v", left, err)
			}
			for _, table := range tables {
				key := "k"
				if table.Key[0].Type.Kind == merge.UUID {
					key = "0f7d2c1e-5b3a-4c9d-8e6f-2a1b3c4d5e6f"
				}
				if r := write(t, s, table, say(t, table, key, 1, nil)); r.Written != 1 {
					t.Errorf("%s: %+v", table.Name, r)
				}
			}
		})
	}
}

var hashed = regexp.MustCompile(`(hookfold_[a-z_]+_)[0-9a-f]{12}`)

// requests shows what was sent since the last time, and what came back.
func requests(p *postgresttest.Project) string {
	var b strings.Builder
	for _, x := range p.Double.Exchanges() {
		fmt.Fprintf(&b, "%s %s\n", x.Method, x.URI)
		if x.Prefer != "" {
			fmt.Fprintf(&b, "Prefer: %s\n", x.Prefer)
		}
		if x.Body != "" {
			fmt.Fprintf(&b, "%s\n", x.Body)
		}
		fmt.Fprintf(&b, "→ %d %s\n\n", x.Status, x.ContentRange)
	}
	return strings.ReplaceAll(hashed.ReplaceAllString(b.String(), "${1}…"), " \n\n", "\n\n")
}

func TestGoldenRequests(t *testing.T) {
	table := tableOf(t, "item", "tenant text, no int", "name text", "due timestamp", "note json scope note", "origin text first", "top numeric max", "step text ladder sent,delivered,read")
	changes := []*merge.Change{
		say(t, table, "a,b|1", 5, map[string]any{"name": "it's (\"new\")", "due": "2026-05-06T09:00:00+02:00", "step": "delivered"}),
		say(t, table, "a,b|2", 5, map[string]any{"note": `{"a":[1]}`, "origin": "first", "top": "12.50"}),
	}
	later := []*merge.Change{
		say(t, table, "a,b|1", 7, map[string]any{"name": "newer", "due": nil, "step": "read", "top": "3"}),
		say(t, table, "a,b|2", 4, map[string]any{"note": `{}`, "origin": "earlier", "top": "99"}),
	}
	for name, mode := range map[string]postgrest.Mode{"rpc": postgrest.RPC, "rest": postgrest.REST, "guarded": postgrest.REST} {
		t.Run(name, func(t *testing.T) {
			if table.Guard = sink.ByStatement; name == "guarded" {
				table.Guard = sink.ByTrigger
			}
			p := postgresttest.New(t, postgresttest.Options{})
			s := open(t, p, []*sink.Table{table}, postgrest.Options{Mode: mode, Parallel: 1})
			bring(t, s, table)
			write(t, s, table, changes...) // the description is read once
			p.Double.Exchanges()
			p.Exec(t, "delete from item")
			write(t, s, table, changes...)
			write(t, s, table, changes...)
			write(t, s, table, later...)
			golden(t, "requests_"+name+".txt", requests(p))
			mustShow(t, s, table, "a,b|1", "name=newer due=NULL note=NULL origin=NULL top=3 step=read")
			mustShow(t, s, table, "a,b|2", `name=NULL due=NULL note={"a":[1]} origin=earlier top=99 step=NULL`)
		})
	}
}

// Supabase's gateway wants the key twice, and the API is under /rest/v1.
func TestSupabase(t *testing.T) {
	p := postgresttest.New(t, postgresttest.Options{APIKey: "the key"})
	table := tableOf(t, "item", "id text", "n int max")
	s, err := postgrest.Open(t.Context(), "supabase+"+p.API, []*sink.Table{table}, postgrest.Options{Key: p.Key, Schema: p.Schema, Direct: p.Database})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	bring(t, s, table)
	write(t, s, table, say(t, table, "k", 1, map[string]any{"n": "1"}))
	mustShow(t, s, table, "k", "n=1")
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	for _, x := range p.Double.Exchanges() {
		if !strings.HasPrefix(x.URI, "/rest/v1/") {
			t.Errorf("%s %s", x.Method, x.URI)
		}
	}
	p.Double.Inject(func(r *http.Request) postgresttest.Fault {
		if r.Header.Get("apikey") != p.Key || r.Header.Get("Authorization") != "Bearer "+p.Key {
			t.Error("the key is not sent as the gateway wants it")
		}
		return nil
	})
	write(t, s, table, say(t, table, "k", 2, map[string]any{"n": "2"}))
}
