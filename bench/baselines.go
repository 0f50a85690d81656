package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/hookfold/hookfold/internal/ingest"
	"github.com/hookfold/hookfold/journal/sqlite"
	"github.com/hookfold/hookfold/source"
)

// serve runs one of the baselines as a server of its own, in this process. It
// prints its address, and ends with its standard input.
func serve(kind, dsn, dir string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var h http.Handler
	var err error
	stop := func() error { return nil }
	switch kind {
	case "null":
		h = http.HandlerFunc(null)
	case "naive":
		h, err = newNaive(ctx, dsn)
	case "river":
		h, stop, err = newRiver(ctx, dsn)
	case "intake":
		h, stop, err = newIntake(dir)
	default:
		err = fmt.Errorf("there is no baseline %s", kind)
	}
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	fmt.Println(l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = s.Close()
	}()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return stop()
}

// answer is what every server answers.
const answer = `{"received":true}`

// null is the least that any receiver does: it reads the body and answers.
func null(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, answer)
}

// naive is the handler that a good engineer writes by hand: verify, parse, one
// guarded upsert through a pool, 200 after the commit.
type naive struct{ pool *pgxpool.Pool }

func newNaive(ctx context.Context, dsn string) (*naive, error) {
	pool, err := newPool(ctx, dsn)
	return &naive{pool}, err
}

func newPool(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = 32
	return pgxpool.NewWithConfig(ctx, cfg)
}

func (n *naive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	said, err := receive(r)
	if err == nil {
		err = upsert(r.Context(), n.pool, said)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, answer)
}

// receive verifies a request and parses it.
func receive(r *http.Request) (row, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 5<<20))
	if err != nil {
		return row{}, err
	}
	if strings.HasSuffix(r.URL.Path, "whatsapp") {
		given, _ := strings.CutPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256=")
		if !verified(given, body) {
			return row{}, errors.New("the signature is wrong")
		}
		return parseWhatsApp(body)
	}
	t, v1, _ := strings.Cut(r.Header.Get("Calendly-Webhook-Signature"), ",")
	stamp, _ := strings.CutPrefix(t, "t=")
	given, _ := strings.CutPrefix(v1, "v1=")
	if !verified(given, append([]byte(stamp+"."), body...)) {
		return row{}, errors.New("the signature is wrong")
	}
	return parseCalendly(body)
}

func verified(given string, signed []byte) bool {
	sum, err := hex.DecodeString(given)
	m := hmac.New(sha256.New, []byte(secret))
	m.Write(signed)
	return err == nil && hmac.Equal(sum, m.Sum(nil))
}

func parse(table string, body []byte) (row, error) {
	if table == tables[0] {
		return parseWhatsApp(body)
	}
	return parseCalendly(body)
}

func parseWhatsApp(body []byte) (row, error) {
	var d struct {
		Entry []struct {
			Changes []struct {
				Value struct {
					Statuses []struct {
						ID, Status, Timestamp string
						RecipientID           string `json:"recipient_id"`
					}
				}
			}
		}
	}
	if err := json.Unmarshal(body, &d); err != nil {
		return row{}, err
	}
	if len(d.Entry) != 1 || len(d.Entry[0].Changes) != 1 || len(d.Entry[0].Changes[0].Value.Statuses) != 1 {
		return row{}, errors.New("it does not hold one status")
	}
	s := d.Entry[0].Changes[0].Value.Statuses[0]
	at, err := strconv.ParseInt(s.Timestamp, 10, 64)
	return row{table: tables[0], key: s.ID, state: s.Status, who: s.RecipientID, at: at}, err
}

func parseCalendly(body []byte) (row, error) {
	var d struct {
		Event   string
		Payload struct {
			Email     string
			UpdatedAt time.Time `json:"updated_at"`
			Tracking  struct {
				Term string `json:"utm_term"`
			}
		}
	}
	if err := json.Unmarshal(body, &d); err != nil {
		return row{}, err
	}
	state := "active"
	if d.Event == "invitee.canceled" {
		state = "canceled"
	}
	return row{table: tables[1], key: d.Payload.Tracking.Term, state: state, who: d.Payload.Email, at: d.Payload.UpdatedAt.Unix()}, nil
}

// schema makes the tables as the baselines have them.
const schema = `
create table message_status (message_id text primary key, status text, recipient text, status_at timestamptz);
create table booking (ref text primary key, status text, email text, updated_at timestamptz);`

// columns are those of the tables: key, state, who, at.
var columns = map[string][4]string{
	tables[0]: {"message_id", "status", "recipient", "status_at"},
	tables[1]: {"ref", "status", "email", "updated_at"},
}

// upserts write one row if it is newer than the one there is.
var upserts = upsertsOf("values ($1::text, $2::text, $3::text, to_timestamp($4::bigint))")

func upsertsOf(from string) map[string]string {
	out := map[string]string{}
	for t, c := range columns {
		out[t] = fmt.Sprintf(`insert into %[1]s as t (%[2]s, %[3]s, %[4]s, %[5]s) %[6]s
			on conflict (%[2]s) do update set %[3]s = excluded.%[3]s, %[4]s = excluded.%[4]s, %[5]s = excluded.%[5]s
			where t.%[5]s is null or t.%[5]s < excluded.%[5]s`, t, c[0], c[1], c[2], c[3], from)
	}
	return out
}

func upsert(ctx context.Context, pool *pgxpool.Pool, r row) error {
	_, err := pool.Exec(ctx, upserts[r.table], r.key, r.state, r.who, r.at)
	return err
}

// job is an event on its way through River.
type job struct {
	Table, Key, State, Who string
	At                     int64
}

func (job) Kind() string { return "upsert" }

type worker struct {
	river.WorkerDefaults[job]
	pool *pgxpool.Pool
}

func (w *worker) Work(ctx context.Context, j *river.Job[job]) error {
	return upsert(ctx, w.pool, row{table: j.Args.Table, key: j.Args.Key, state: j.Args.State, who: j.Args.Who, at: j.Args.At})
}

// newRiver is a handler that makes a job of each event, and the workers that
// upsert: https://riverqueue.com.
func newRiver(ctx context.Context, dsn string) (http.Handler, func() error, error) {
	pool, err := newPool(ctx, dsn)
	if err != nil {
		return nil, nil, err
	}
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		return nil, nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{pool: pool})
	client, err := river.NewClient(driver, &river.Config{Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}}})
	if err == nil {
		err = client.Start(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said, err := receive(r)
		if err == nil {
			_, err = client.Insert(r.Context(), job{said.table, said.key, said.state, said.who, said.at}, nil)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, answer)
	})
	return h, func() error { return client.Stop(context.Background()) }, nil
}

// newIntake is our receive path alone: verify, journal, fsync, 200.
func newIntake(dir string) (http.Handler, func() error, error) {
	j, err := sqlite.Open(dir+"/journal.db", sqlite.Options{})
	if err != nil {
		return nil, nil, err
	}
	sources := map[string]ingest.Source{}
	for _, name := range []string{"whatsapp", "calendly"} {
		s, err := source.PresetNamed(name).New(source.Options{Secrets: []source.Secret{{Value: secret}}, Tolerance: -1})
		if err != nil {
			return nil, nil, err
		}
		sources[name] = ingest.Source{Source: s}
	}
	return ingest.New(ingest.Options{Sources: sources, Journal: j}), j.Close, nil
}

// ceiling folds deliveries that are in memory, 5,000 at a time, into one upsert
// each: what a program can do at most that writes rows in this way.
func ceiling(ctx context.Context, dsn string, w *workload) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	many := upsertsOf("select k, s, w, to_timestamp(a) from unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) as v (k, s, w, a)")
	for from := 0; from < len(w.deliveries); from += 5000 {
		newest := map[string]map[string]row{tables[0]: {}, tables[1]: {}}
		for _, d := range w.deliveries[from:min(from+5000, len(w.deliveries))] {
			r, err := parse(d.said.table, d.body)
			if err != nil {
				return err
			}
			if have, ok := newest[r.table][r.key]; !ok || r.at > have.at {
				newest[r.table][r.key] = r
			}
		}
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		for t, rows := range newest {
			var keys, states, whos []string
			var ats []int64
			for _, r := range rows {
				keys, states, whos, ats = append(keys, r.key), append(states, r.state), append(whos, r.who), append(ats, r.at)
			}
			if _, err := tx.Exec(ctx, many[t], keys, states, whos, ats); err != nil {
				return err
			}
		}
		if err := tx.Commit(ctx); err != nil {
			return err
		}
	}
	return nil
}
