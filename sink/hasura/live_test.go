package hasura_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/hasura"
	"github.com/hookfold/hookfold/sink/sinktest"
)

// The suite against a real Hasura: HOOKFOLD_TEST_HASURA is the URL of its GraphQL
// endpoint (https://host/v1/graphql), with its admin secret, if it has one, as the
// URL's password (https://:secret@host/v1/graphql) or in
// HOOKFOLD_TEST_HASURA_SECRET. Every test makes a schema of its own in the first
// PostgreSQL database that Hasura knows, which it untracks and drops in the end.
func TestLive(t *testing.T) {
	endpoint := os.Getenv("HOOKFOLD_TEST_HASURA")
	if endpoint == "" {
		t.Skip("HOOKFOLD_TEST_HASURA is not set; the same suite runs against a double in TestHasura")
	}
	url, opts := found(t, endpoint, os.Getenv("HOOKFOLD_TEST_HASURA_SECRET"))
	live(t, url, opts, sinktest.Engine{})
	t.Run("Guarded", func(t *testing.T) { live(t, url, opts, guarded) })
}

// found reads an endpoint's URL, and finds the name of its database out.
func found(t *testing.T, endpoint, secret string) (string, hasura.Options) {
	t.Helper()
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal("HOOKFOLD_TEST_HASURA is not a URL") // without its text: it may hold the secret
	}
	if password, ok := u.User.Password(); ok {
		secret = password
	}
	u.User = nil
	admin := *u
	admin.Path = strings.TrimSuffix(u.Path, "/v1/graphql") + "/v1/metadata"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, admin.String(), strings.NewReader(`{"type":"export_metadata","args":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Hasura-Admin-Secret", secret)
	defer http.DefaultClient.CloseIdleConnections()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var metadata struct {
		Sources []struct{ Name, Kind string }
	}
	if err := json.NewDecoder(res.Body).Decode(&metadata); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("the metadata API of Hasura answers %s, %v: the suite needs it, and the admin secret, to make tables", res.Status, err)
	}
	for _, s := range metadata.Sources {
		if s.Kind == "postgres" {
			return u.String(), hasura.Options{AdminSecret: secret, Source: s.Name}
		}
	}
	t.Fatal("Hasura has no PostgreSQL database to make tables in")
	return "", hasura.Options{}
}

// guarded has the rows joined by the guard trigger.
var guarded = sinktest.Engine{Guard: sink.ByTrigger, Brief: true}

func live(t *testing.T, url string, opts hasura.Options, e sinktest.Engine) {
	sinktest.Run(t, sinktest.Engine{NotBeside: true, LocalOnly: true, Refuses: noJSONNull, Guard: e.Guard, Brief: e.Brief, Open: func(t testing.TB, tables []*sink.Table) sink.Sink {
		var b [8]byte
		rand.Read(b[:])
		in := &within{schema: "hookfold_test_" + hex.EncodeToString(b[:]), tables: map[*sink.Table]*sink.Table{}}
		s, err := hasura.Open(t.Context(), "hasura+"+url, in.all(tables), opts)
		if err != nil {
			t.Fatal(err)
		}
		in.Sink = s
		if err := s.Execute(t.Context(), []string{"create schema " + in.schema}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := in.drop(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return in
	}})
}

// within is a sink whose tables live in a schema of their own.
type within struct {
	sink.Sink
	schema string

	mu      sync.Mutex
	tables  map[*sink.Table]*sink.Table
	tracked []string // the calls that tracked tables
}

func (w *within) in(t *sink.Table) *sink.Table {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tables[t] == nil {
		x := *t
		x.Name = w.schema + "." + t.Name
		w.tables[t] = &x
	}
	return w.tables[t]
}

func (w *within) all(tables []*sink.Table) []*sink.Table {
	var out []*sink.Table
	for _, t := range tables {
		out = append(out, w.in(t))
	}
	return out
}

func (w *within) Apply(ctx context.Context, b *sink.Batch) (*sink.Result, error) {
	x := &sink.Batch{Groups: slices.Clone(b.Groups)}
	for i := range x.Groups {
		x.Groups[i].Table = w.in(x.Groups[i].Table)
	}
	return w.Sink.Apply(ctx, x)
}

func (w *within) Inspect(ctx context.Context, t *sink.Table) (*sink.Live, error) {
	return w.Sink.Inspect(ctx, w.in(t))
}

func (w *within) Page(ctx context.Context, t *sink.Table, after sink.Cursor, limit int) ([]*merge.Row, sink.Cursor, error) {
	return w.Sink.Page(ctx, w.in(t), after, limit)
}

func (w *within) Read(ctx context.Context, t *sink.Table, keys []merge.Key) ([]*merge.Row, error) {
	return w.Sink.Read(ctx, w.in(t), keys)
}

func (w *within) Known(ctx context.Context, t *sink.Table, keys []merge.Key) ([]bool, error) {
	return w.Sink.(sink.Knower).Known(ctx, w.in(t), keys)
}

func (w *within) Plan(ctx context.Context, tables []*sink.Table) ([]string, error) {
	return w.Sink.Plan(ctx, w.all(tables))
}

func (w *within) Execute(ctx context.Context, statements []string) error {
	for _, s := range statements {
		if strings.HasPrefix(s, "{") {
			w.tracked = append(w.tracked, s)
		}
	}
	return w.Sink.Execute(ctx, statements)
}

// drop untracks and drops everything.
func (w *within) drop(ctx context.Context) error {
	var statements []string
	for _, s := range w.tracked {
		var call struct {
			Type string         `json:"type"`
			Args map[string]any `json:"args"`
		}
		if err := json.Unmarshal([]byte(s), &call); err != nil {
			return err
		}
		call.Type, call.Args["cascade"] = "pg_untrack_table", true
		untrack, err := json.Marshal(call)
		if err != nil {
			return err
		}
		statements = append(statements, string(untrack))
	}
	return w.Sink.Execute(ctx, append(statements, "drop schema "+w.schema+" cascade"))
}
