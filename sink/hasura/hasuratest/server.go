// Package hasuratest stands in for Hasura 2 in tests: a GraphQL endpoint over a
// real PostgreSQL that behaves as Hasura's documentation, source and fixtures
// say. Its schema is made of the live tables; a mutation is one transaction and
// each of its fields one statement; what Hasura would refuse it refuses, in
// Hasura's words and shapes. It knows nothing of Hookfold.
//
// It speaks of one database, called default, and of its tables as Hasura does
// without customisation; relationships, functions, subscriptions and computed
// fields are left out.
package hasuratest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options say what the server is to be like.
type Options struct {
	// AdminSecret is asked for by admins; "" makes everybody an admin.
	AdminSecret string
	// Tokens are the bearer tokens that are taken, each with its role. A token
	// whose role is "expired" is a JWT that has expired.
	Tokens map[string]string
	// Roles say what roles but admin may do, by role and by the root name of the
	// table.
	Roles map[string]map[string]Columns
	// Schemas are tracked besides the connection's default schema. Their tables
	// have the schema's name in front; those of the default schema, whatever it
	// is called, have none, as those of public in Hasura.
	Schemas []string
	// RootFields are the root fields of tables that were customised, by the tables'
	// names in GraphQL; "" leaves one as it is.
	RootFields map[string]RootFields
	// Untracked starts without tables: they are tracked by pg_track_table, or
	// Track. Otherwise every table is tracked, new ones after Reload.
	Untracked bool
	// MaxBody is the most bytes of a request; a proxy before Hasura answers 413
	// to more. 0 is no limit.
	MaxBody int64
	// OldArrays shows arrays as scalars (_text) and not as lists.
	OldArrays bool
	// OldConstraints leaves the columns of a constraint out of its description, as
	// older versions do.
	OldConstraints bool
	// NoIntrospection refuses __type and __schema.
	NoIntrospection bool
	// StringifyNumbers gives bigint, numeric and float8 as strings.
	StringifyNumbers bool
	// Concurrent gives transactions that others rolled back a code of their own.
	Concurrent bool
	// HideInternal keeps the detail of unexpected errors from admins too.
	HideInternal bool
	// NoAdminAPI leaves out run_sql and the metadata API.
	NoAdminAPI bool
}

// RootFields are custom names of root fields.
type RootFields struct{ Select, Insert, Update string }

// Request is what a Fault is decided by.
type Request struct {
	// N counts requests to the GraphQL endpoint, from 1.
	N        int
	Mutation bool
	Body     string
}

// Fault is what goes wrong with a request.
type Fault struct {
	// Status, if not 0, is answered instead, with Header and Body.
	Status int
	Header http.Header
	Body   string
	// Drop closes the connection before anything is done, DropAfter when all is
	// done and committed, Hang waits until the client has gone.
	Drop, DropAfter, Hang bool
	// Hold is called when all is done and before the answer.
	Hold func()
}

// Server is a running double.
type Server struct {
	// URL is the GraphQL endpoint.
	URL string

	opts Options
	pool *pgxpool.Pool

	mu      sync.Mutex
	n       int
	fault   func(Request) *Fault
	tables  map[string]*table // by schema.name
	dflt    string
	tracked map[string]bool
	views   map[string]*view
}

// New starts a server over a PostgreSQL database and stops it when the test
// ends.
func New(t testing.TB, database string, opts Options) *Server {
	t.Helper()
	config, err := pgxpool.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	config.MaxConns = 12
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "create function "+refuse+" returns boolean language plpgsql as 'begin raise exception using errcode = ''23514'', message = ''check constraint of an insert/update permission has failed''; end'")
		return err
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{opts: opts, pool: pool, tracked: map[string]bool{}}
	if err := s.reload(context.Background()); err != nil {
		t.Fatalf("this test needs a PostgreSQL server: %v", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/graphql", s.graphql)
	mux.HandleFunc("POST /v1alpha1/graphql", s.graphql)
	if !opts.NoAdminAPI {
		mux.HandleFunc("POST /v2/query", s.admin)
		mux.HandleFunc("POST /v1/metadata", s.admin)
	}
	web := httptest.NewServer(mux)
	s.URL = web.URL + "/v1/graphql"
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		pool.Close()
	})
	return s
}

// Faults has f decide over every request to the GraphQL endpoint; nil stops it.
func (s *Server) Faults(f func(Request) *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Reload looks at the tables again, as Hasura does when its metadata is
// reloaded.
func (s *Server) Reload(t testing.TB) {
	t.Helper()
	if err := s.reload(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// Track tracks tables of the default schema.
func (s *Server) Track(t testing.TB, names ...string) {
	t.Helper()
	s.mu.Lock()
	for _, n := range names {
		s.tracked[s.dflt+"."+n] = true
	}
	s.mu.Unlock()
	s.Reload(t)
}

// TrackAll tracks every table of the default schema.
func (s *Server) TrackAll(t testing.TB) {
	t.Helper()
	s.Reload(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.tables {
		if strings.HasPrefix(name, s.dflt+".") {
			s.tracked[name] = true
		}
	}
	s.views = map[string]*view{}
}

func (s *Server) reload(ctx context.Context) error {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	s.mu.Lock()
	schemas := slices.Clone(s.opts.Schemas)
	s.mu.Unlock()
	tables, dflt, err := load(ctx, c.Conn(), schemas)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tables, s.dflt, s.views = tables, dflt, map[string]*view{}
	return nil
}

func (s *Server) view(role string) (*view, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.views[role]; v != nil {
		return v, nil
	}
	var list []*table
	for name, t := range s.tables {
		if (!s.opts.Untracked || s.tracked[name]) && graphQLName.MatchString(t.gql) {
			list = append(list, t)
		}
	}
	v, err := build(list, role, s.opts)
	if err == nil {
		s.views[role] = v
	}
	return v, err
}

// role tells who asks, or why nobody may.
func (s *Server) role(r *http.Request) (string, *failure) {
	asked := r.Header.Get("X-Hasura-Role")
	secret := r.Header.Get("X-Hasura-Admin-Secret")
	switch {
	case s.opts.AdminSecret == "" || secret == s.opts.AdminSecret:
		if asked == "" {
			asked = "admin"
		}
		return asked, nil
	case secret != "":
		return "", failf("$", "access-denied", `invalid "x-hasura-admin-secret"/"x-hasura-access-key"`)
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch role, known := s.opts.Tokens[token]; {
	case !ok && s.opts.Tokens == nil:
		return "", failf("$", "access-denied", "x-hasura-admin-secret/x-hasura-access-key required, but not found")
	case !ok:
		return "", failf("$", "invalid-headers", "Missing 'Authorization' or 'Cookie' header in JWT authentication mode")
	case !known:
		return "", failf("$", "invalid-jwt", "Could not verify JWT: JWSError JWSInvalidSignature")
	case role == "expired":
		return "", failf("$", "invalid-jwt", "Could not verify JWT: JWTExpired")
	case asked != "" && asked != role:
		return "", failf("$", "access-denied", "Your requested role is not in allowed roles")
	default:
		return role, nil
	}
}

func (s *Server) body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	var in io.Reader = r.Body
	if s.opts.MaxBody > 0 {
		in = http.MaxBytesReader(w, r.Body, s.opts.MaxBody)
	}
	body, err := io.ReadAll(in)
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		http.Error(w, "<html><head><title>413 Request Entity Too Large</title></head></html>", http.StatusRequestEntityTooLarge)
		return nil, false
	}
	return body, err == nil
}

func decode(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(v)
}

func answer(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	w.Write(b.Bytes())
}

func (s *Server) decide(body []byte) *Fault {
	s.mu.Lock()
	s.n++
	f, q := s.fault, Request{N: s.n, Body: string(body)}
	s.mu.Unlock()
	if f == nil {
		return &Fault{}
	}
	var in struct{ Query string }
	q.Mutation = decode(body, &in) == nil && strings.HasPrefix(strings.TrimSpace(in.Query), "mutation")
	if x := f(q); x != nil {
		return x
	}
	return &Fault{}
}

func (s *Server) graphql(w http.ResponseWriter, r *http.Request) {
	body, ok := s.body(w, r)
	if !ok {
		return
	}
	fault := s.decide(body)
	switch {
	case fault.Drop:
		panic(http.ErrAbortHandler)
	case fault.Hang:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case fault.Status != 0:
		for k, v := range fault.Header {
			w.Header()[k] = v
		}
		w.WriteHeader(fault.Status)
		io.WriteString(w, fault.Body)
		return
	}
	// What was begun is ended, whether or not anybody still waits for it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), time.Minute)
	defer cancel()
	data, f := s.execute(ctx, r, body)
	if fault.Hold != nil {
		fault.Hold()
	}
	if fault.DropAfter {
		panic(http.ErrAbortHandler)
	}
	if f != nil {
		status := http.StatusOK
		if strings.HasPrefix(r.URL.Path, "/v1alpha1/") {
			status = http.StatusBadRequest
		}
		answer(w, status, map[string]any{"errors": []any{f.json(!s.opts.HideInternal)}})
		return
	}
	answer(w, http.StatusOK, map[string]any{"data": data})
}
