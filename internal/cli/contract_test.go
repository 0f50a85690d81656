package cli

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// What commands print under --json is compared with the blocks of docs/cli.md:
// a member that is not written there, or of another type, is a break of the
// contract, and so is one that is written and never printed.

// dynamic are objects whose member names are data.
var dynamic = []string{"hookfold.answers", "check_then_write.answers", "check_then_write.errors", "delivery.headers"}

// shape lists the paths of a JSON value with their types.
func shape(v any, path string, into map[string]bool) {
	switch x := v.(type) {
	case map[string]any:
		for k, member := range x {
			if slices.Contains(dynamic, path) {
				k = "*"
			}
			shape(member, strings.TrimPrefix(path+"."+k, "."), into)
		}
	case []any:
		for _, e := range x {
			shape(e, path+"[]", into)
		}
	case nil:
		// NULL has no type of its own.
	default:
		into[fmt.Sprintf("%s: %T", path, v)] = true
	}
}

func shapeOf(t *testing.T, text string) map[string]bool {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, text)
	}
	out := map[string]bool{}
	shape(v, "", out)
	return out
}

// documented returns the first JSON block below each command's heading.
func documented(t *testing.T) map[string]map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```\n(\\{.*?)```")
	out := map[string]map[string]bool{}
	for _, part := range strings.Split(string(text), "\n## hookfold ")[1:] {
		head, body, _ := strings.Cut(part, "\n")
		if m := block.FindStringSubmatch(body); m != nil {
			for _, name := range strings.Split(head, ", hookfold ") {
				name = regexp.MustCompile(` [\[A-Z].*`).ReplaceAllString(name, "")
				out[name] = shapeOf(t, m[1])
			}
		}
	}
	return out
}

const contractConfig = `
version: 1
listen: 127.0.0.1:0
admin: 127.0.0.1:0
journal: sqlite:DIR/hookfold.db
sources:
  shop: {preset: http, verify: bearer, secrets: [secret], id: event.id, type: event.type, time: event.at}
targets:
  db: {url: "sqlite:DIR/rows.db"}
tables:
  thing:
    key: {id: int}
    columns: {name: text, first: {type: int, merge: first}}
    events:
      - {from: shop, type: thing.made, key: {id: event.thing}, version: [position], set: {name: event.name, first: 1}}
      - {from: shop, type: thing.found, if_missing: wait, key: {id: event.thing}, version: [position], set: {name: event.name, first: 2}}
  seat:
    key: {id: text}
    on_delete: {set: {gone: true}}
    columns: {holder: text}
    events:
      - {from: shop, type: seat, key: {id: event.seat}, chain: {previous: 'event.?previous'}, version: [0 - position], set: {holder: event.holder}}
      - {from: shop, type: seat.gone, key: {id: event.seat}, version: [0 - position], delete: true}
tests:
  - name: passes
    send: [{source: shop, body: {type: thing.made, thing: 1, name: a}}, {source: shop, body: {type: other}}]
    expect: {thing: [{id: 1, name: a}]}
  - name: fails
    send: [{source: shop, body: {type: thing.made, thing: 1, name: a}}]
    expect: {thing: [{id: 1, name: b}]}
`

// contractLane is a lane for it whose first event fails.
const contractLane = `lanes:
  lost: {from: shop, type: thing.lost, key: type, retry: 0s, sql: {statement: "insert into lost values (:id)", with: {id: event.id}}}
tests:
`

const contractLines = `{"source":"shop","body":{"id":"1","type":"thing.made","thing":1,"name":"a"}}
{"source":"shop","body":{"id":"2","type":"thing.made","thing":2},"headers":{"X-Shop":"7"},"path":"/x","query":"a=1"}
{"source":"shop","body":{"id":"3","type":"thing.found","thing":3,"name":"c"}}
{"source":"shop","body":{"id":"4","type":"thing.lost"}}
{"source":"shop","body":{"id":"5","type":"thing.made","thing":null,"name":"e"}}
{"source":"shop","body":{"id":"6","type":"seat","seat":"B","previous":"A","holder":"bob"}}
{"source":"shop","body":{"id":"7","type":"seat","seat":"B","previous":"A","holder":"al"}}
{"source":"shop","body":{"id":"8","type":"seat.gone","seat":"B"}}
`

const provenConfig = `
version: 1
journal: sqlite:DIR/hookfold.db
sources:
  shop: {preset: http, verify: bearer, secrets: [secret], id: event.id, type: event.type, time: event.at}
targets:
  db: {url: "sqlite:DIR/proven.db"}
tables:
  thing:
    key: {id: int}
    columns: {name: text, colour: text}
    events:
      - {from: shop, type: made, key: {id: event.thing}, set: {name: event.name, colour: event.colour}}
      - {from: shop, type: named, key: {id: event.thing}, set: {name: event.name}}
  place:
    key: {id: int}
    columns: {at: int}
    events:
      - {from: shop, type: moved, version: [position], key: {id: event.thing}, set: {at: position}}
`

const provenLines = `{"source":"shop","body":{"id":"1","type":"made","at":"2026-03-01T10:00:00Z","thing":1,"name":"a","colour":"red"}}
{"source":"shop","body":{"id":"3","type":"moved","at":"2026-03-01T10:00:03Z","thing":1}}
{"source":"shop","body":{"id":"4","type":"moved","at":"2026-03-01T10:00:04Z","thing":null}}
{"source":"shop","body":{"id":"2","type":"named","at":"2026-03-01T10:00:02Z","thing":1,"name":"b"}}
`

func TestJSONContract(t *testing.T) {
	docs := documented(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config, lines := write("hookfold.yaml", strings.Replace(contractConfig, "tests:\n", contractLane, 1)), write("lines.ndjson", contractLines)
	wrong := write("wrong.yaml", strings.Replace(contractConfig, "key: {id: int}", "kee: {id: int}", 1))
	printed := map[string]map[string]bool{}
	check := func(name string, code int, args ...string) {
		t.Helper()
		got, out, errOut := run(t, append(args, "--json")...)
		if got != code {
			t.Errorf("hookfold %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, code, out, errOut)
		}
		if printed[name] == nil {
			printed[name] = map[string]bool{}
		}
		maps.Copy(printed[name], shapeOf(t, out))
	}
	check("version", Fine, "version")
	check("init", Fine, "init", "-c", filepath.Join(dir, "new.yaml"), "calendly")
	check("check", Usage, "check", "-c", wrong)
	check("check", NotSo, "check", "-c", config, "--test", "--connect")
	t.Chdir(dir)
	edit(t, filepath.Join(dir, "proven.db"), "create table thing (id integer primary key, name text)", "create trigger x after insert on thing begin select 1; end")
	proven, provenLines := write("proven.yaml", provenConfig), write("proven.ndjson", provenLines)
	check("prove", NotSo, "prove", "-c", proven, "--unsound", provenLines)
	check("prove", Fine, "prove", "-c", proven, "--unsound", "--table", "place", provenLines)
	check("sql", Fine, "sql", "-c", config, "--dialect", "postgres")
	check("migrate", NotSo, "migrate", "-c", config)
	check("migrate", Fine, "migrate", "-c", config, "--apply")
	check("replay", NotSo, "replay", "-c", config, lines)
	check("lane pause", Fine, "lane", "pause", "-c", config, "lost")
	check("lane list", Fine, "lane", "list", "-c", config)
	check("lane resume", Fine, "lane", "resume", "-c", config, "lost")
	check("lane retry|park|skip", Fine, "lane", "retry", "-c", config, "lost", "thing.lost")
	check("lane retry|park|skip", Fine, "lane", "park", "-c", config, "lost", "--all")
	check("lane retry|park|skip", NotSo, "lane", "skip", "-c", config, "lost", "thing.lost")
	check("explain", Fine, "explain", "-c", config, "seat", "B")
	check("explain", Fine, "explain", "-c", config, "thing", "3")
	edit(t, filepath.Join(dir, "rows.db"), "update thing set name = 'by hand'", "insert into thing (id, name) values (9, 'mine')")
	check("verify", NotSo, "verify", "-c", config)
	check("verify", Fine, "verify", "-c", config, "--repair")
	check("dead list", Fine, "dead", "list", "-c", config)
	check("waiting list", Fine, "waiting", "list", "-c", config)
	check("dead show", Fine, "dead", "show", "-c", config, "2")
	check("dead show", Fine, "dead", "show", "-c", config, "3")
	check("dead retry|drop", Fine, "dead", "retry", "-c", config, "2")
	check("dead retry|drop", Fine, "dead", "drop", "-c", config, "--all")
	check("dead retry|drop", NotSo, "dead", "drop", "-c", config, "--all")
	check("waiting retry|drop", Fine, "waiting", "retry", "-c", config, "--all")
	check("waiting show", Fine, "waiting", "show", "-c", config, "3")
	edit(t, filepath.Join(dir, "rows.db"), "update thing set name = 'by hand'")
	check("rebuild", Fine, "rebuild", "-c", config, "thing")
	other := write("other.yaml", strings.Replace(contractConfig, "db: {url", "store: {url", 1))
	check("forget", Fine, "forget", "-c", other, "db")
	check("send", NotSo, "send", "-c", config, "--to", "http://127.0.0.1:1", "shop", lines, filepath.Join(dir, "none.json"))
	t.Setenv("TMPDIR", dir)
	check("demo", Fine, "demo")
	printed["serve"] = shapeOf(t, serveUntilReady(t, config))
	for _, verb := range []string{"list", "show", "retry|drop"} { // one document, whatever the state
		maps.Copy(printed["waiting "+verb], printed["dead "+verb])
		maps.Copy(printed["dead "+verb], printed["waiting "+verb])
	}

	for _, name := range slices.Sorted(maps.Keys(docs)) {
		for _, path := range slices.Sorted(maps.Keys(docs[name])) {
			if !printed[name][path] && !slices.Contains(seldom, path) && !strings.HasPrefix(path, "repair.entries") &&
				!(name == "rebuild" && (strings.HasPrefix(path, "entries") || strings.HasPrefix(path, "table.findings"))) {
				t.Errorf("hookfold %s: documented and not printed: %s", name, path)
			}
		}
		for _, path := range slices.Sorted(maps.Keys(printed[name])) {
			if !docs[name][path] {
				t.Errorf("hookfold %s: printed and not documented: %s", name, path)
			}
		}
	}
	for name := range printed {
		if docs[name] == nil {
			t.Errorf("hookfold %s is not documented", name)
		}
	}
}

// seldom are members that the scenario does not make.
var seldom = []string{
	"sent[].status: float64", "revision: string", "tables[].sample[].check_then_write[][]: string",
	"verdicts[].do: string", "verdicts[].on: string", "targets[].by_hand: string",
}

// edit changes a SQLite database by hand.
func edit(t *testing.T, file string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// serveUntilReady runs serve and returns its first line. What then is done comes
// before it is asked to stop.
func serveUntilReady(t *testing.T, config string, then ...func()) string {
	t.Helper()
	stop := make(chan struct{})
	out := &firstLine{line: make(chan string, 1)}
	var log bytes.Buffer
	done := make(chan int, 1)
	go func() {
		done <- Run([]string{"serve", "--json", "-c", config}, World{In: strings.NewReader(""), Out: out, Err: &log, Getenv: none, Stop: stop})
	}()
	var line string
	select {
	case line = <-out.line:
	case code := <-done:
		t.Fatalf("serve ended with %d\n%s", code, log.String())
	case <-time.After(20 * time.Second):
		t.Fatal("serve is not ready after 20 s")
	}
	for _, f := range then {
		f()
	}
	close(stop)
	if code := <-done; code != Fine {
		t.Errorf("serve ended with %d\n%s", code, log.String())
	}
	return line
}

type firstLine struct {
	buf  bytes.Buffer
	line chan string
}

func (f *firstLine) Write(p []byte) (int, error) {
	n, err := f.buf.Write(p)
	if text, _, ok := strings.Cut(f.buf.String(), "\n"); ok {
		select {
		case f.line <- text:
		default:
		}
	}
	return n, err
}
