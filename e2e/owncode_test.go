package e2e

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite"

	"github.com/hookfold/hookfold/internal/testdb"
)

const ownConfig = `
version: 1
journal: sqlite:hookfold.db
sources: {shop: {preset: http, verify: none, type: event.type, time: event.at, id: event.id}}
targets: {db: "%s"}
tables:
  message:
    key: {id: text}
    columns:
      note: text
      amount: numeric
      status: {type: text, merge: {ladder: [sent, delivered, read]}}
      sent_at: {type: timestamp, merge: min}
      score: {type: int, merge: max}
      origin: {type: text, merge: first}
      tags: {type: "text[]", merge: union}
    events: [{from: shop, type: m, key: {id: event.m}, set: {note: event.note, amount: event.amount, status: event.status, sent_at: time, score: event.score, origin: event.note, tags: event.tags}}]
`

// ownEvent is an event as somebody's own code sees it. An empty text is what it
// does not say.
type ownEvent struct {
	id, message, note, status, tag string
	at                             time.Time
	score                          int
}

// version is made as docs/own-code.md says.
func (e *ownEvent) version() string {
	sum := sha256.Sum256([]byte(e.id))
	return e.at.UTC().Format("2006-01-02T15:04:05.000000000Z") + "/0/" + hex.EncodeToString(sum[:8])
}

// columns are what the event says, by parameter; what is not there is NULL.
func (e *ownEvent) columns() map[string]string {
	out := map[string]string{"id": e.message, "sent_at": e.at.UTC().Format("2006-01-02T15:04:05.000000Z"), "score": fmt.Sprint(e.score)}
	if e.note != "" {
		out["note"], out["amount"], out["row_version"] = e.note, fmt.Sprintf("%d.5", e.score), e.version()
		out["origin"], out["origin__first"] = e.note, e.version()
	}
	if e.status != "" {
		out["status"] = e.status
	}
	if e.tag != "" {
		out["tags"] = e.tag
	}
	return out
}

// ownEvents are the events of a few messages, in the order in which they
// happened, some of them at one instant.
func ownEvents(rnd *rand.Rand) []*ownEvent {
	var out []*ownEvent
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	for m := range 25 {
		for n := range 1 + rnd.IntN(12) {
			e := &ownEvent{id: fmt.Sprintf("evt_%03d%02d", m, n), message: fmt.Sprintf("m%02d", m), at: time.Date(2026, 11, 29, 12, 0, n/2, 0, time.UTC), score: rnd.IntN(100)}
			e.note, e.status, e.tag = pick("", "a", "b", "c"), pick("", "sent", "delivered", "read"), pick("", "x", "y", "z")
			if e.note != "" {
				e.note += e.id
			}
			out = append(out, e)
		}
	}
	return out
}

// ownRows are the rows that the events make, by plain reasoning.
func ownRows(events []*ownEvent) []string {
	by := map[string][]*ownEvent{}
	for _, e := range events {
		by[e.message] = append(by[e.message], e)
	}
	var out []string
	for m, list := range by {
		slices.SortFunc(list, func(a, b *ownEvent) int { return strings.Compare(a.version(), b.version()) })
		note, amount, origin, status, score := "-", "-", "-", "-", 0
		tags := map[string]bool{}
		for _, e := range list {
			if e.note != "" {
				note, amount = e.note, fmt.Sprintf("%d.5", e.score)
				if origin == "-" {
					origin = e.note
				}
			}
			if r := []string{"-", "sent", "delivered", "read"}; slices.Index(r, e.status) > slices.Index(r, status) {
				status = e.status
			}
			score = max(score, e.score)
			if e.tag != "" {
				tags[e.tag] = true
			}
		}
		var set []string
		for t := range tags {
			set = append(set, t)
		}
		sort.Strings(set)
		out = append(out, fmt.Sprint(m, " ", note, " ", amount, " ", status, " ", list[0].at.UTC().Format("15:04:05"), " ", score, " ", origin, " ", set))
	}
	sort.Strings(out)
	return out
}

// ownStatement takes a statement and the names of its parameters, in order, out
// of what hookfold sql prints.
func ownStatement(t *testing.T, script, what string) (statement string, params []string) {
	t.Helper()
	_, part, ok := strings.Cut(script, "-- "+what+"\n")
	if !ok {
		t.Fatalf("the script has no %q:\n%s", what, script)
	}
	part, _, _ = strings.Cut(part, ";\n")
	var lines []string
	for _, l := range strings.Split(part, "\n") {
		if m := regexp.MustCompile(`^--   (?:[$?:@]\d*|v\.p\d+) ?(\w+): `).FindStringSubmatch(l); m != nil {
			params = append(params, m[1])
		} else if !strings.HasPrefix(l, "--") {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "\n"), params
}

// ownWriters sends all events twice, shuffled, from 16 goroutines, a few at a
// time; no batch names a message twice, and each is sorted.
func ownWriters(t *testing.T, events []*ownEvent, send func(ctx context.Context, batch []*ownEvent) error) {
	t.Helper()
	all := slices.Concat(events, events)
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	work := make(chan []*ownEvent)
	errs := make(chan error, 16)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for batch := range work {
				if err := send(t.Context(), batch); err != nil {
					errs <- err
					for range work { // let the others end
					}
					return
				}
			}
		})
	}
	for len(all) > 0 {
		seen := map[string]bool{}
		n := 0
		for n < min(len(all), 6) && !seen[all[n].message] {
			seen[all[n].message] = true
			n++
		}
		batch := slices.Clone(all[:n])
		slices.SortFunc(batch, func(a, b *ownEvent) int { return strings.Compare(a.message, b.message) })
		work <- batch
		all = all[n:]
	}
	close(work)
	wg.Wait()
	select {
	case err := <-errs:
		t.Fatal(err)
	default:
	}
}

// ownScript prints a table's SQL with the program.
func ownScript(t *testing.T, url string, args ...string) string {
	t.Helper()
	return scriptOf(t, ownConfig, url, args...)
}

func scriptOf(t *testing.T, config, url string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	file := writeFile(t, dir, "hookfold.yaml", fmt.Sprintf(config, url))
	out, err := command(dir, os.Environ(), append([]string{"sql", "message", "-c", file}, args...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

func mustBe(t *testing.T, events []*ownEvent, got []string) {
	t.Helper()
	sort.Strings(got)
	if want := ownRows(events); !slices.Equal(want, got) {
		t.Errorf("rows:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestOwnCodeOnPostgres writes with nothing but pgx and what is printed: by the
// statement, by the function, and by plain upserts with the guard trigger.
func TestOwnCodeOnPostgres(t *testing.T) {
	base := ownScript(t, "postgres://localhost/x")
	ddl, _, _ := strings.Cut(base, "-- Join rows into the table:")
	upsert, params := ownStatement(t, base, "Join rows into the table:")
	plain := "insert into message (" + strings.Join(params, ", ") + ") values ("
	var set []string
	for i, p := range params {
		plain += map[bool]string{true: ", "}[i > 0] + fmt.Sprintf("$%d", i+1)
		set = append(set, p+" = excluded."+p)
	}
	plain += ") on conflict (id) do update set " + strings.Join(set, ", ")
	types := map[string]string{"sent_at": "timestamptz", "score": "bigint", "amount": "numeric", "tags": "text[]"}
	value := func(e *ownEvent, p string) *string {
		s, ok := e.columns()[p]
		if !ok {
			return nil
		}
		if p == "tags" {
			s = "{" + s + "}"
		}
		return &s
	}
	forms := []struct {
		name, script string
		send         func(ctx context.Context, tx pgx.Tx, batch []*ownEvent) error
	}{
		{"statement", "", func(ctx context.Context, tx pgx.Tx, batch []*ownEvent) error {
			var args []any
			for _, p := range params {
				var list []*string
				for _, e := range batch {
					list = append(list, value(e, p))
				}
				args = append(args, list)
			}
			_, err := tx.Exec(ctx, upsert, args...)
			return err
		}},
		{"function", ownScript(t, "postgres://localhost/x", "--procedure"), func(ctx context.Context, tx pgx.Tx, batch []*ownEvent) error {
			for _, e := range batch {
				var named []string
				var args []any
				for _, p := range params {
					if v := value(e, p); v != nil {
						args = append(args, *v)
						as := types[p]
						if as == "" {
							as = "text"
						}
						named = append(named, fmt.Sprintf("%s => $%d::text::%s", p, len(args), as))
					}
				}
				if _, err := tx.Exec(ctx, "select hookfold_message("+strings.Join(named, ", ")+")", args...); err != nil {
					return err
				}
			}
			return nil
		}},
		{"guard trigger", ownScript(t, "postgres://localhost/x", "--guard-trigger"), func(ctx context.Context, tx pgx.Tx, batch []*ownEvent) error {
			for _, e := range batch {
				var args []any
				for _, p := range params {
					v := value(e, p)
					args = append(args, v)
				}
				if _, err := tx.Exec(ctx, cast(plain, params, types), args...); err != nil {
					return err
				}
			}
			return nil
		}},
	}
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			url := testdb.Schema(t)
			c := testdb.Connect(t, t.Context(), url)
			defer c.Close(t.Context())
			for _, script := range []string{ddl, f.script} {
				if _, err := c.PgConn().Exec(t.Context(), script).ReadAll(); err != nil {
					t.Fatalf("%v\n%s", err, script)
				}
			}
			config, err := pgxpool.ParseConfig(url)
			if err != nil {
				t.Fatal(err)
			}
			config.MaxConns = 16
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			events := ownEvents(rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1)))
			ownWriters(t, events, func(ctx context.Context, batch []*ownEvent) error {
				for {
					err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return f.send(ctx, tx, batch) })
					var e *pgconn.PgError
					if !errors.As(err, &e) || e.Code != "40P01" {
						return err
					}
				}
			})
			rows, err := c.Query(t.Context(), `select concat_ws(' ', id, coalesce(note, '-'), coalesce(amount::text, '-'), coalesce(status, '-'), to_char(sent_at at time zone 'UTC', 'HH24:MI:SS'), score,
				coalesce(origin, '-'), '[' || coalesce(array_to_string(tags, ' '), '') || ']') from message`)
			if err != nil {
				t.Fatal(err)
			}
			got, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			mustBe(t, events, got)
		})
	}
}

// cast gives the parameters of a plain statement the types of their columns.
func cast(statement string, params []string, types map[string]string) string {
	for i, p := range params {
		if as := types[p]; as != "" {
			statement = regexp.MustCompile(fmt.Sprintf(`\$%d\b`, i+1)).ReplaceAllString(statement, fmt.Sprintf("$$%d::text::%s", i+1, as))
		}
	}
	return statement
}

// TestOwnCodeOnSQLite writes with nothing but database/sql and the statement
// that is printed.
func TestOwnCodeOnSQLite(t *testing.T) {
	script := ownScript(t, "sqlite:rows.db")
	ddl, _, _ := strings.Cut(script, "-- Join rows into the table:")
	upsert, params := ownStatement(t, script, "Join rows into the table:")
	db, err := sql.Open("sqlite", strings.TrimPrefix(testdb.SQLite(t), "sqlite:")+"?_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(ddl); err != nil {
		t.Fatal(err)
	}
	events := ownEvents(rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2)))
	ownWriters(t, events, func(ctx context.Context, batch []*ownEvent) error {
		for _, e := range batch {
			var args []any
			for _, p := range params {
				s, ok := e.columns()[p]
				switch {
				case !ok:
					args = append(args, nil)
				case p == "tags":
					b, _ := json.Marshal([]string{s})
					args = append(args, string(b))
				default:
					args = append(args, s)
				}
			}
			if _, err := db.ExecContext(ctx, upsert, args...); err != nil {
				return err
			}
		}
		return nil
	})
	rows, err := db.Query(`select id || ' ' || coalesce(note, '-') || ' ' || coalesce(amount, '-') || ' ' || coalesce(status, '-') || ' ' || substr(sent_at, 12, 8) || ' ' || score || ' ' || coalesce(origin, '-') || ' ' ||
		'[' || coalesce((select group_concat(value, ' ') from json_each(tags)), '') || ']' from message`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		got = append(got, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	mustBe(t, events, got)
}

// TestOwnCodeOnMySQL writes with nothing but database/sql and what is printed: by
// the statement, and by plain upserts with the guard trigger.
func TestOwnCodeOnMySQL(t *testing.T) {
	const noLists = "      tags: {type: \"text[]\", merge: union}\n"
	config := strings.Replace(strings.Replace(ownConfig, noLists, "", 1), ", tags: event.tags", "", 1)
	base := scriptOf(t, config, "mysql://localhost/x")
	ddl, _, _ := strings.Cut(base, "-- Join rows into the table:")
	upsert, params := ownStatement(t, base, "Join rows into the table:")
	_, guard, _ := strings.Cut(scriptOf(t, config, "mysql://localhost/x", "--guard-trigger"), "\ndelimiter //\n")
	guard, _, _ = strings.Cut(guard, "delimiter ;\n")
	var marks, set []string
	for _, p := range params {
		marks, set = append(marks, "?"), append(set, p+" = values("+p+")")
	}
	plain := "insert into message (" + strings.Join(params, ", ") + ") values (" + strings.Join(marks, ", ") + ") on duplicate key update " + strings.Join(set, ", ")
	value := func(e *ownEvent, p string) any {
		s, ok := e.columns()[p]
		if !ok {
			return nil
		}
		if p == "sent_at" {
			return e.at.UTC().Format("2006-01-02 15:04:05.000000")
		}
		return s
	}
	forms := map[string]func(ctx context.Context, db *sql.Conn, batch []*ownEvent) error{
		"statement": func(ctx context.Context, db *sql.Conn, batch []*ownEvent) error {
			var list [][]any
			for _, e := range batch {
				var row []any
				for _, p := range params {
					row = append(row, value(e, p))
				}
				list = append(list, row)
			}
			text, err := json.Marshal(list)
			if err == nil {
				_, err = db.ExecContext(ctx, upsert, string(text))
			}
			return err
		},
		"guard trigger": func(ctx context.Context, db *sql.Conn, batch []*ownEvent) error {
			for _, e := range batch {
				var args []any
				for _, p := range params {
					args = append(args, value(e, p))
				}
				if _, err := db.ExecContext(ctx, plain, args...); err != nil {
					return err
				}
			}
			return nil
		},
	}
	for name, send := range forms {
		t.Run(name, func(t *testing.T) {
			url := testdb.MySQL(t)
			statements := strings.Split(strings.TrimSpace(uncommented(ddl)), ";\n")
			if name == "guard trigger" {
				statements = append(statements, strings.Split(guard, "//\n")...)
			}
			testdb.ExecMySQL(t, url, slices.DeleteFunc(statements, func(s string) bool { return s == "" })...)
			db := testdb.ConnectMySQL(t, url)
			defer db.Close()
			db.SetMaxOpenConns(16)
			events := ownEvents(rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 3)))
			for _, e := range events {
				e.tag = ""
			}
			ownWriters(t, events, func(ctx context.Context, batch []*ownEvent) error {
				c, err := db.Conn(ctx)
				if err != nil {
					return err
				}
				defer c.Close()
				if _, err := c.ExecContext(ctx, "set time_zone = '+00:00', transaction_isolation = 'READ-COMMITTED'"); err != nil {
					if _, err = c.ExecContext(ctx, "set time_zone = '+00:00', tx_isolation = 'READ-COMMITTED'"); err != nil {
						return err
					}
				}
				for {
					err := send(ctx, c, batch)
					var e *mysql.MySQLError
					if !errors.As(err, &e) || e.Number != 1213 {
						return err
					}
				}
			})
			rows, err := db.Query("select concat_ws(' ', id, coalesce(note, '-'), coalesce(trim(trailing '.' from trim(trailing '0' from amount)), '-'), coalesce(status, '-'), time_format(sent_at, '%H:%i:%s'), score, coalesce(origin, '-'), '[]') from message")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			var got []string
			for rows.Next() {
				var s string
				if err := rows.Scan(&s); err != nil {
					t.Fatal(err)
				}
				got = append(got, s)
			}
			if err := rows.Err(); err != nil {
				t.Fatal(err)
			}
			mustBe(t, events, got)
		})
	}
}

// uncommented is a script without its comments.
func uncommented(script string) string {
	var out []string
	for _, l := range strings.Split(script, "\n") {
		if !strings.HasPrefix(l, "--") {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}
