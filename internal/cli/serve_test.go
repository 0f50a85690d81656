package cli

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// mute is a database that takes connections and never says a word, until it is
// ended.
func mute(t *testing.T) (address string, end func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		var held []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				for _, c := range held {
					c.Close()
				}
				return
			}
			held = append(held, c)
		}
	})
	end = func() { l.Close(); all.Wait() }
	t.Cleanup(end)
	return l.Addr().String(), end
}

// A database that does not answer keeps no delivery out.
func TestServeTakesDeliveriesBeforeItLooksAtTheDatabase(t *testing.T) {
	f := folder(t.TempDir())
	address, end := mute(t)
	c := f.write(t, "hookfold.yaml", strings.Replace(contractConfig, "sqlite:DIR/rows.db", "postgres://nobody@"+address+"/none", 1))
	begun := time.Now()
	serveUntilReady(t, c, func() {
		if took := time.Since(begun); took > lookTimeout-time.Second/2 {
			t.Errorf("ready after %v: it waited for the database", took)
		}
		end() // else what is in hand would be waited for
	})
}

// A database that is down is one problem, with its place; the others are looked
// at all the same.
func TestCheckTellsOfEachDatabase(t *testing.T) {
	f := folder(t.TempDir())
	c := f.write(t, "hookfold.yaml", `version: 1
sources: {shop: {preset: http, verify: none, type: event.type, time: event.at}}
targets:
  down: postgres://nobody@127.0.0.1:1/none
  db: sqlite:DIR/rows.db
tables:
  one: {target: down, key: {id: text}, columns: {name: text}, events: [{from: shop, key: {id: event.id}, set: {name: event.name}}]}
  two: {target: down, key: {id: text}, columns: {name: text}, events: [{from: shop, key: {id: event.id}, set: {name: event.name}}]}
  three: {target: db, key: {id: text}, columns: {name: text}, events: [{from: shop, key: {id: event.id}, set: {name: event.name}}]}
`)
	code, out, errOut := run(t, "check", "--connect", "-c", c)
	if code != Usage || strings.Count(out, "hookfold.yaml:4:3: targets.down: ") != 1 || !strings.Contains(out, "table three (target db): ") || errOut != "" {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	code, out, errOut = run(t, "migrate", "-c", c)
	if code != Usage || !strings.Contains(errOut, "hookfold.yaml:4:3: targets.down: ") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}

// What follows from a source that is broken is not told beside it.
func TestWhatFollowsFromABrokenSourceIsSilent(t *testing.T) {
	f := folder(t.TempDir())
	if code, out, errOut := run(t, "init", "calendly", "whatsapp", "http", "-c", f.path("starter.yaml")); code != Fine {
		t.Fatal(out, errOut)
	}
	for name, c := range map[string]struct{ old, new string }{
		"a variable that is not set": {"", ""},
		"a preset misspelt":          {"preset: calendly", "preset: calendy"},
		"no secret":                  {`["${CALENDLY_SIGNING_KEY}"]`, "[]"},
		"a secret of another kind":   {`preset: calendly, secrets: ["${CALENDLY_SIGNING_KEY}"]`, `preset: standard-webhooks, secrets: ["whsec_!!"]`},
	} {
		text := readFile(t, f.path("starter.yaml"))
		if !strings.Contains(text, c.old) {
			t.Fatalf("%s: the starter has no %s", name, c.old)
		}
		file := f.write(t, "x.yaml", strings.Split(strings.Replace(text, c.old, c.new, 1), "# Run by hookfold check --test")[0])
		env := func(name string) (string, bool) { return "x", c.old != "" || name != "CALENDLY_SIGNING_KEY" }
		var out, errOut strings.Builder
		code := Run([]string{"check", "-c", file}, World{Out: &out, Err: &errOut, Getenv: env})
		if code != Usage || strings.Count(out.String(), "\n") != 2 || !strings.Contains(out.String(), "sources.calendly") {
			t.Errorf("%s: exit %d\n%s%s", name, code, out.String(), errOut.String())
		}
	}
}
