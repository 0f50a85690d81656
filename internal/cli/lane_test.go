package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/journal/sqlite"
)

const laneConfig = `
version: 1
journal: sqlite:DIR/hookfold.db
sources: {shop: {preset: http, verify: none, id: event.id}}
lanes:
  billing: {from: shop, key: event.key, post: "http://127.0.0.1:1/", secret: none}
  mail: {from: shop, key: event.key, post: "http://127.0.0.1:1/", secret: none}
`

// The statement of a lane is tried on the live database.
func TestCheckReadsStatements(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "hookfold.yaml")
	text := strings.ReplaceAll(laneConfig, "DIR", dir) + `  audit: {from: shop, key: event.key, sql: {statement: "insert into audit (id) values (:id)", with: {id: event.id}}}
targets: {db: {url: "sqlite:` + dir + `/rows.db"}}
`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := run(t, "migrate", "--apply", "-c", config); code != Fine {
		t.Fatal(out + errOut)
	}
	code, out, errOut := run(t, "check", "--connect", "-c", config)
	if want := "hookfold.yaml:8:56: lanes.audit.sql.statement: the statement fails: SQL logic error: no such table: audit"; code != NotSo || !strings.Contains(out+errOut, want) {
		t.Errorf("exit %d\n%s%swant %s", code, out, errOut, want)
	}
	edit(t, filepath.Join(dir, "rows.db"), "create table audit (id text)")
	if code, out, errOut := run(t, "check", "--connect", "-c", config); code != Fine {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}

// laneJournal makes a journal with entries of a lane: a is dead with two events
// behind it, b fails, c was set aside.
func laneJournal(t *testing.T, dir string) {
	t.Helper()
	j, err := sqlite.Open(filepath.Join(dir, "hookfold.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	ctx, now := t.Context(), time.Now()
	var entries []journal.Entry
	for _, e := range []journal.Entry{
		{Key: "a", State: journal.Dead, On: "lane billing key a", Reason: "answered 500", Attempts: 9},
		{Key: "b", State: journal.Waiting, Reason: "answered 503", Attempts: 2, Next: now.Add(time.Hour)},
		{Key: "a", State: journal.Waiting, On: "lane billing key a", Reason: "its turn has not come"},
		{Key: "c", State: journal.Dead, Reason: "answered 422", Attempts: 1},
		{Key: "a", State: journal.Waiting, On: "lane billing key a", Reason: "its turn has not come"},
	} {
		d := &event.Delivery{Source: "shop", Body: []byte(`{}`), Received: now}
		if err := j.Append(ctx, d); err != nil {
			t.Fatal(err)
		}
		e.Ref, e.Source, e.Since = event.Ref{Position: d.Position}, "shop", now
		entries = append(entries, e)
	}
	c, err := j.Consumer(ctx, "lane:billing")
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Next(ctx, journal.Limit{})
	if err == nil {
		err = c.Done(ctx, b, entries)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestLaneCommands(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "hookfold.yaml")
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(laneConfig, "DIR", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	laneJournal(t, dir)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"lane", Usage, "say what to do: list, retry, park, skip, pause or resume"},
		{"lane list nope", Usage, "the config has no lane nope. It has: billing, mail"},
		{"lane list --limit 0", Usage, "it is at least 1"},
		{"lane list", Fine, "lane billing: 2 keys stand still; 1 event set aside (hookfold dead list --target lane:billing)\n  a\n    dead  shop #1 → lane billing: answered 500\n    tried 9 times, 2 events behind it; a person decides: hookfold lane retry|park|skip billing a\n  b\n    wait  shop #2 → lane billing: answered 503"},
		{"lane list", Fine, "lane mail: no key stands still"},
		{"lane list billing --limit 1", Fine, "lane billing: more than 1 key stands still"},
		{"lane retry billing", Usage, "say which keys, or --all"},
		{"lane retry billing a --all", Usage, "not both"},
		{"lane retry nope a", Usage, "the config has no lane nope"},
		{"lane retry billing x", NotSo, "no event of lane billing stands still under x"},
		{"lane skip mail --all", NotSo, "no key of lane mail stands still"},
		{"lane park billing a", Fine, "1 event set aside. A running server follows within a second."},
		{"lane list billing", Fine, "lane billing: 2 keys stand still; 2 events set aside"},
		{"lane skip billing a", Fine, "1 event skipped."},
		{"lane list billing", Fine, "    wait  shop #5 → lane billing: its turn has not come"},
		{"lane retry billing --all", Fine, "2 events made due."},
		{"lane pause billing --reason why", Fine, "The lane billing is paused: its events are kept."},
		{"lane list", Fine, "  paused: why. To go on: hookfold lane resume billing"},
		{"lane resume billing", Fine, "The lane billing goes on."},
		{"lane pause nope", Usage, "the config has no lane nope"},
		{"dead list --target lane:billing", Fine, "dead  shop #4 → lane billing: answered 422"},
		{"dead list --target lane:nope", Usage, "lane:billing, lane:mail"},
	} {
		code, out, errOut := run(t, append(strings.Fields(c.args), "-c", config)...)
		if code != c.code || !strings.Contains(out+errOut, c.want) {
			t.Errorf("%s: exit %d, want %d\n%s%swant %s", c.args, code, c.code, out, errOut, c.want)
		}
	}
}
