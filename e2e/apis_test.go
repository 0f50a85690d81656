package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/internal/testtarget"
	"github.com/hookfold/hookfold/internal/witness"
)

const oneTable = `version: 1
sources: {shop: {preset: http, verify: none, time: event.at}}
targets:
  db: {url: "TARGET"}
tables:
  app_user:
    key: {id: text}
    columns: {email: text}
    events: [{from: shop, key: {id: event.id}, set: {email: event.email}}]
`

// project is a folder with a config for a target behind an API.
type project struct {
	t   *testing.T
	dir string
	testtarget.Target
	secrets []string
}

var secretKey = regexp.MustCompile(`(?:admin_secret|key|direct_url): "?([^",}]+)`)

func newProject(t *testing.T, kind string) *project {
	t.Helper()
	p := &project{t: t, dir: t.TempDir(), Target: testtarget.Named(t, kind)}
	for _, m := range secretKey.FindAllStringSubmatch(p.Config, -1) {
		p.secrets = append(p.secrets, m[1])
	}
	p.write(p.Config)
	return p
}

// write writes the config with a target.
func (p *project) write(target string) {
	p.t.Helper()
	writeFile(p.t, p.dir, "hookfold.yaml", testtarget.Target{Config: target}.In(oneTable))
}

// run runs a command, whose output has to hold a text and no secret, and which
// ends well or not. It is run again for a while: an API sees a change of the
// schema a moment later.
func (p *project) run(well bool, want string, args ...string) string {
	p.t.Helper()
	out := ""
	_, err := become(want, func(context.Context) (string, error) {
		var err error
		if out, err = command(p.dir, os.Environ(), args...); (err == nil) == well && strings.Contains(out, want) {
			return want, nil
		}
		return "", fmt.Errorf("hookfold %v: %w, want %q\n%s", args, err, want, out)
	})
	if err != nil {
		p.t.Error(err)
	}
	for _, s := range p.secrets {
		if strings.Contains(out, s) {
			p.t.Errorf("hookfold %v prints %q:\n%s", args, s, out)
		}
	}
	return out
}

// What a newcomer does with a target behind an API, who has the endpoint and the
// secret.
func TestAPIs(t *testing.T) {
	for _, kind := range []string{"hasura", "supabase-rpc", "supabase-rest"} {
		t.Run(kind, func(t *testing.T) {
			p := newProject(t, kind)
			p.run(true, "The config is right.", "check")
			p.run(false, "there is no such table", "check", "--connect")
			p.run(false, "create table app_user (", "migrate")
			p.run(true, "-- applied", "migrate", "--apply")
			p.run(true, "so are the live tables", "check", "--connect")
			p.run(true, "Nothing to do.", "migrate")
			p.write(strings.NewReplacer("s3cret", "wr0ng", `key: "`, `key: "wr0ng.`).Replace(p.Config))
			p.run(false, "target", "check", "--connect")
		})
	}
}

// Who has a Supabase project's key and no database URL pastes the migration into
// its SQL editor, and is told when another one is due.
func TestSupabaseByHand(t *testing.T) {
	for _, args := range [][]string{{"migrate"}, {"sql", "--dialect", "supabase"}} {
		p := newProject(t, "supabase-rpc")
		config, direct, _ := strings.Cut(p.Config, ", direct_url")
		p.write(config + "}")
		p.run(false, "Supabase's SQL editor", "migrate", "--apply")
		testdb.Exec(t, p.Rows, p.run(args[0] == "sql", "create table app_user (", args...))
		p.run(true, "so are the live tables", "check", "--connect")
		testdb.Exec(t, p.Rows, "alter table app_user alter column email type varchar(99)", "notify pgrst, 'reload schema'")
		p.run(false, "of the migration are to be run", "check", "--connect")
		testdb.Exec(t, p.Rows, p.run(false, "create or replace function", "migrate"))
		p.run(true, "so are the live tables", "check", "--connect")
		p.secrets = append(p.secrets, direct)
	}
}

// What migrate prints for Hasura can be pasted where SQL is run; tables then have
// to be tracked, which it says.
func TestHasuraByHand(t *testing.T) {
	p := newProject(t, "hasura")
	out := p.run(false, "-- then track the table in Hasura", "migrate")
	testdb.Exec(t, p.Rows, out)
	p.run(false, "Track it", "check", "--connect")
	p.run(true, "-- applied 1 statement", "migrate", "--apply")
	p.run(true, "so are the live tables", "check", "--connect")
}

// The way of a newcomer from nothing to a row, who has an API's address and its
// secret.
func TestNewcomers(t *testing.T) {
	for target, kind := range map[string]string{"supabase": "supabase-rpc", "hasura": "hasura"} {
		t.Run(target, func(t *testing.T) {
			p := newProject(t, kind)
			if err := os.Remove(filepath.Join(p.dir, "hookfold.yaml")); err != nil {
				t.Fatal(err)
			}
			field := func(name string) string {
				m := regexp.MustCompile(name + `: "?([^",}]+)`).FindStringSubmatch(p.Config)
				if m == nil {
					return ""
				}
				return m[1]
			}
			_, url, _ := strings.Cut(field("url"), "+")
			for name, value := range map[string]string{
				"CALENDLY_SIGNING_KEY": "any", "SUPABASE_URL": url, "SUPABASE_SERVICE_KEY": field("key"),
				"HASURA_URL": url, "HASURA_ADMIN_SECRET": field("admin_secret"),
			} {
				t.Setenv(name, value)
			}
			p.run(true, "Wrote hookfold.yaml", "init", "calendly", "--target", target)
			file := filepath.Join(p.dir, "hookfold.yaml")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			own := strings.NewReplacer(":8080", ":0", ":8081", ":0", `key: "${SUPABASE`, "schema: "+field("schema")+"\n    key: \"${SUPABASE").Replace(string(text))
			writeFile(t, p.dir, "hookfold.yaml", own)
			p.run(true, "The config is right.", "check", "--test")
			if target == "supabase" {
				testdb.Exec(t, p.Rows, p.run(false, "Supabase's SQL editor", "migrate"))
			} else {
				p.run(true, "-- applied", "migrate", "--apply")
			}
			p.run(true, "so are the live tables", "check", "--connect")
			s := start(t, p.dir, os.Environ())
			p.run(true, "200", "send", "calendly", "reschedule.new.invitee.created", "reschedule.inverted.old.invitee.canceled", "--to", s.Receive)
			db, err := witness.Open(p.Rows)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			const want = "lead_48213|active\n"
			if have, err := become(want, func(ctx context.Context) (string, error) {
				return query(ctx, db, "select ref, status from booking")
			}); err != nil {
				t.Errorf("%v: %s\n%s", err, have, s.log.String())
			}
		})
	}
}
