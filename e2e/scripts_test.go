package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/internal/witness"
)

// engines are the databases that every scenario runs on: by name, what makes an
// empty one and returns its URL.
var engines = map[string]func(testing.TB) string{
	"sqlite":   testdb.SQLite,
	"postgres": testdb.Schema,
}

// TestScripts runs the transcripts. In them, besides the commands of testscript:
//
//	hookfold ARGS           runs the program; the config's DATABASE_URL is an empty database
//	serve [ARGS]            starts hookfold serve and waits until it is ready
//	halt, crash             end it with SIGTERM and status 0, or with SIGKILL
//	request METHOD PATH [FILE] [HEADER...]   sends a request to it and prints the status and body
//	rows FILE               waits until the tables of hookfold.yaml are as in FILE
//	sql STATEMENT           runs a statement on the database
//	table QUERY FILE        waits until a query on rows.db gives what FILE says
//	eventually TEXT ARGS    runs hookfold ARGS until it prints TEXT
//	grow FILE SIZE          makes a JSON text of so many bytes
//	api hold, release       plays a provider's API, for which API_HOST stands in hookfold.yaml: requests hang until they are released
//	api answer FILE|STATUS  has it answer them all so from now on
//	api asked N             waits until it has got so many requests
//	log [TEXT]              prints what the server has logged, once TEXT is in it
func TestScripts(t *testing.T) {
	for name, database := range engines {
		t.Run(name, func(t *testing.T) {
			testscript.Run(t, testscript.Params{
				Dir: "testdata", UpdateScripts: *update,
				RequireUniqueNames: true, Deadline: time.Now().Add(2 * time.Minute),
				Setup: func(e *testscript.Env) error {
					tb := e.T().(testing.TB)
					e.Setenv("DATABASE_URL", database(tb))
					e.Setenv("ENGINE", name)
					e.Setenv("SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
					e.Values[serverKey] = new(running)
					e.Values[apiKey] = newScriptAPI(tb)
					e.Defer(func() {
						if s := e.Values[serverKey].(*running).server; s != nil {
							s.kill()
						}
					})
					return nil
				},
				Condition: func(c string) (bool, error) {
					if _, ok := engines[c]; ok {
						return c == name, nil
					}
					return false, fmt.Errorf("unknown condition %s", c)
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"serve": scriptServe, "halt": scriptHalt, "crash": scriptCrash,
					"request": scriptRequest, "rows": scriptRows, "sql": scriptSQL, "log": scriptLog, "grow": scriptGrow, "api": scriptAPI, "table": scriptTable, "eventually": scriptEventually,
				},
			})
		})
	}
}

type key string

const serverKey key = "server"

type running struct{ *server }

func serverOf(ts *testscript.TestScript) *running { return ts.Value(serverKey).(*running) }

func scriptServe(ts *testscript.TestScript, neg bool, args []string) {
	env := os.Environ()
	for _, name := range []string{"DATABASE_URL", "SECRET", "CALENDLY_SIGNING_KEY", "JOURNAL"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	s, err := serve(ts.MkAbs("."), env, args...)
	if neg {
		if err == nil {
			s.kill()
			ts.Fatalf("the server started")
		}
		fmt.Fprintln(ts.Stderr(), err)
		return
	}
	ts.Check(err)
	serverOf(ts).server = s
	ts.Setenv("SERVER", s.Receive)
	ts.Setenv("ADMIN", s.Admin)
}

func scriptHalt(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(serverOf(ts).stop())
}

func scriptCrash(ts *testscript.TestScript, _ bool, _ []string) { serverOf(ts).kill() }

func scriptLog(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) > 0 {
		have, err := become(args[0], func(context.Context) (string, error) {
			if text := serverOf(ts).log.String(); !strings.Contains(text, args[0]) {
				return text, nil
			}
			return args[0], nil
		})
		if err != nil {
			ts.Fatalf("%v\nhave:\n%s", err, have)
		}
	}
	fmt.Fprint(ts.Stdout(), serverOf(ts).log.String())
}

func scriptRequest(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: request METHOD PATH [FILE] [HEADER...]")
	}
	base := serverOf(ts).Receive
	if strings.HasPrefix(args[1], "/healthz") || strings.HasPrefix(args[1], "/readyz") || strings.HasPrefix(args[1], "/metrics") || args[1] == daemon.ImportPath {
		base = serverOf(ts).Admin
	}
	var body io.Reader
	if len(args) > 2 && args[2] != "-" {
		body = strings.NewReader(strings.TrimSuffix(ts.ReadFile(args[2]), "\n"))
	}
	req, err := http.NewRequest(args[0], base+args[1], body)
	ts.Check(err)
	for _, h := range args[min(3, len(args)):] {
		name, value, _ := strings.Cut(h, ":")
		req.Header.Add(name, strings.TrimSpace(value))
	}
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d %s\n", resp.StatusCode, bytes.TrimSpace(text))
}

// scriptRows waits until the rows are as the file says.
func scriptRows(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: rows FILE")
	}
	getenv := func(name string) (string, bool) { v := ts.Getenv(name); return v, v != "" }
	tables, err := openTables(ts.MkAbs("hookfold.yaml"), ts.Getenv("DATABASE_URL"), getenv)
	ts.Check(err)
	defer tables.db.Close()
	want := ts.ReadFile(args[0])
	have, err := become(want, tables.text)
	if err == nil {
		return
	}
	if *update {
		fmt.Fprint(ts.Stdout(), have)
	}
	ts.Fatalf("%v\nhave:\n%s\nwant:\n%s", err, have, want)
}

func scriptSQL(ts *testscript.TestScript, _ bool, args []string) {
	db, err := witness.Open(ts.Getenv("DATABASE_URL"))
	ts.Check(err)
	defer db.Close()
	_, err = db.Exec(strings.Join(args, " "))
	ts.Check(err)
}

func scriptTable(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: table QUERY FILE")
	}
	db, err := witness.Open("sqlite:" + ts.MkAbs("rows.db"))
	ts.Check(err)
	defer db.Close()
	want := ts.ReadFile(args[1])
	have, err := become(want, func(ctx context.Context) (string, error) { return query(ctx, db, args[0]) })
	if err != nil {
		ts.Fatalf("%v\nhave:\n%s", err, have)
	}
}

func scriptEventually(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: eventually TEXT ARGS")
	}
	have, err := become(args[0], func(context.Context) (string, error) {
		err := ts.Exec("hookfold", args[1:]...)
		out := ts.ReadFile("stdout")
		if strings.Contains(out, args[0]) {
			return args[0], nil
		}
		return out, err
	})
	if err != nil {
		ts.Fatalf("%v\nhave:\n%s", err, have)
	}
}

// query prints the rows of a query with a bar between columns.
func query(ctx context.Context, db *witness.DB, sql string) (string, error) {
	rows, err := db.QueryContext(ctx, sql)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	out := ""
	for rows.Next() {
		cells := make([]string, len(columns))
		into := make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return "", err
		}
		out += strings.Join(cells, "|") + "\n"
	}
	return out, rows.Err()
}

func scriptGrow(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: grow FILE SIZE")
	}
	size, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(`"`+strings.Repeat("x", size-2)+`"`), 0o644))
}

// tables are the tables of a config, as plain SQL finds them.
type tables struct {
	plan *mapping.Plan
	db   *witness.DB
}

func openTables(file, url string, getenv func(string) (string, bool)) (*tables, error) {
	cfg, problems := config.Load(file, config.Options{Env: getenv})
	if err := problems.Err(); err != nil {
		return nil, err
	}
	plan, problems := mapping.Compile(cfg)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	db, err := witness.Open(url)
	if err != nil {
		return nil, err
	}
	return &tables{plan, db}, nil
}

// text prints all tables.
func (x *tables) text(ctx context.Context) (string, error) {
	var out []string
	for _, t := range x.plan.Tables {
		rows, err := x.db.Read(ctx, &t.Table)
		if err != nil {
			return "", err
		}
		out = append(out, witness.Text(&t.Table, rows))
	}
	return strings.Join(out, "\n"), nil
}

// become waits until a text is as it should be.
func become(want string, read func(context.Context) (string, error)) (have string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		now, readErr := read(ctx)
		if ctx.Err() == nil {
			have, err = now, readErr
		}
		if have == want {
			return have, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return have, errors.Join(err, errors.New("it is not as it should be"))
		}
	}
}

func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
