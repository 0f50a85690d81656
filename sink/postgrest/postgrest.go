// Package postgrest is the sink of tables behind PostgREST, which Supabase calls
// its REST API. It needs nothing but the API's URL and a key.
//
// PostgREST cannot guard an upsert: a filter in the URL of a POST is ignored, and
// its resolution=merge-duplicates lets the last one win. So there are two modes.
//
// # Mode rpc
//
// A batch is one call of a function of the database, and so one transaction. The
// function is generated: for each table one that holds the statements which
// package compile writes for PostgreSQL, with its rows as JSON, and one that
// calls those of a batch. Migration gives the SQL that makes them, for a person to
// run once. The name of a function ends in a hash of what it does, so that one
// which the config or the table has outgrown is not called by mistake: it is
// told that a new one is needed.
//
// # Mode rest
//
// For those who cannot make functions. New rows are inserted with
// resolution=ignore-duplicates; then each register of those that were there (the
// columns of a scope, or one column of another rule) moves by a PATCH whose
// filter guards it by what is stored. The other order, PATCH and then POST, loses
// events. A batch is not one transaction: parents go first, and each step may be
// repeated and in any order with others, so that a batch that fails on the way is
// made whole by applying it again. What such steps cannot make right is refused
// by Open.
//
// A table with guard: trigger is joined by the database. In mode rest its rows go
// as they are, many in one POST with resolution=merge-duplicates, and what guards
// by filters cannot do is not refused.
package postgrest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/sink"
)

// Mode says how batches are written.
type Mode string

// The modes.
const (
	RPC  Mode = "rpc"
	REST Mode = "rest"
)

// Options say how a sink uses its API.
type Options struct {
	// Key is the token of the role that writes: Supabase's service_role or secret
	// key. "" sends none.
	Key string
	// Schema is where the functions live, and tables whose names hold no schema;
	// default public. The API has to expose it.
	Schema string
	// Mode is RPC or REST; default RPC.
	Mode Mode
	// Headers are sent with every request, for example those of a proxy.
	Headers http.Header
	// Role is the role of the database to which Migration grants what it needs;
	// default the one that Key names, else service_role.
	Role string
	// Direct is the postgres://… URL of the database behind the API. Nothing needs
	// it but Execute, and Plan before the first migration.
	Direct string
	// MaxRequestBytes is the most bytes of one request; default 16 MiB.
	MaxRequestBytes int
	// MaxResponseBytes is the most bytes of one answer; default 64 MiB.
	MaxResponseBytes int64
	// Timeout bounds one request; default 60 s.
	Timeout time.Duration
	// Parallel is the most requests of one batch at a time in mode rest; default 4.
	Parallel int
	// Transport makes the requests; default one that verifies certificates and
	// takes proxies from the environment.
	Transport http.RoundTripper
}

func (o Options) withDefaults() Options {
	if o.Schema == "" {
		o.Schema = "public"
	}
	if o.Mode == "" {
		o.Mode = RPC
	}
	if o.Role == "" {
		o.Role = roleIn(o.Key)
	}
	if o.MaxRequestBytes <= 0 {
		o.MaxRequestBytes = 16 << 20
	}
	if o.MaxResponseBytes <= 0 {
		o.MaxResponseBytes = 64 << 20
	}
	if o.Timeout <= 0 {
		o.Timeout = 60 * time.Second
	}
	if o.Parallel <= 0 {
		o.Parallel = 4
	}
	return o
}

// roleIn reads the role that a token names, without judging the token.
func roleIn(key string) string {
	var claims struct {
		Role string `json:"role"`
	}
	if isToken(key) {
		body, err := base64.RawURLEncoding.DecodeString(strings.Split(key, ".")[1])
		if err == nil && json.Unmarshal(body, &claims) == nil && claims.Role != "" {
			return claims.Role
		}
	}
	return "service_role"
}

func isToken(key string) bool { return strings.Count(key, ".") == 2 }

// Open opens the sink of an API for the tables that it is to write; nil is any.
// The URL is supabase+https://project.supabase.co, or postgrest+https://… (or
// http://) of a PostgREST. It does not connect. An error is a URL, an option or a
// table that cannot be right.
func Open(ctx context.Context, endpoint string, tables []*sink.Table, opts Options) (sink.Sink, error) {
	opts = opts.withDefaults()
	c, err := newClient(endpoint, opts)
	if err != nil {
		return nil, fmt.Errorf("open sink: %w", err)
	}
	if opts.Mode != RPC && opts.Mode != REST {
		return nil, fmt.Errorf("open sink: mode %q is not known; there are rpc and rest", string(opts.Mode))
	}
	if opts.Direct != "" {
		if _, err := pgx.ParseConfig(opts.Direct); err != nil {
			return nil, fmt.Errorf("open sink: the direct url: %w", err) // pgx leaves the password out
		}
	}
	for i, t := range tables {
		if err := sink.Refused(t, Refuses(t, opts.Mode)); err != nil {
			return nil, fmt.Errorf("open sink: %w", err)
		}
		for _, other := range tables[:i] {
			if column := compile.Shared(t, other); column != "" {
				return nil, fmt.Errorf("open sink: %s and %s are both table %s and both write %s, so each would take the other's version for its own. Make them one table with several events, or give them scopes of their own", other.Table.Name, t.Table.Name, t.Name, column)
			}
		}
	}
	return &rest{client: c, opts: opts, tables: map[tableKey]*tableState{}, given: tables}, nil
}

func newClient(endpoint string, opts Options) (*client, error) {
	scheme, _, _ := strings.Cut(endpoint, ":")
	product, transport, _ := strings.Cut(scheme, "+")
	u, err := url.Parse(strings.TrimPrefix(endpoint, product+"+"))
	switch {
	case product != "supabase" && product != "postgrest" || transport != "https" && transport != "http":
		return nil, fmt.Errorf("%q is not a scheme of this sink; there are supabase+https://project.supabase.co and postgrest+https://…", scheme)
	case err != nil || u.Host == "":
		return nil, errors.New("the url cannot be read; write " + product + "+https://host") // without its text: it may hold a password
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the url holds a user, a query or a fragment. Give the key as key, and nothing behind the path")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	if product == "supabase" && u.Path == "" {
		u.Path = "/rest/v1"
	}
	return &client{base: u, gateway: product == "supabase", opts: opts, web: httpClient(opts)}, nil
}

// rest is the sink.
type rest struct {
	*client
	opts  Options
	given []*sink.Table

	mu     sync.Mutex
	tables map[tableKey]*tableState
	last   []*sink.Table // of Plan
}

// Ping is sink.Sink's. A migration that has not run yet does not count.
func (s *rest) Ping(ctx context.Context) error {
	if s.opts.Mode == RPC {
		_, err := s.inspect(ctx, nil)
		var f *fault
		if errors.As(err, &f) && f.absent {
			return nil
		}
		return asError(err)
	}
	_, err := s.do(ctx, request{method: http.MethodGet, profile: s.opts.Schema})
	return asError(err)
}

// Close is sink.Sink's.
func (s *rest) Close() error {
	s.web.CloseIdleConnections()
	return nil
}

// address gives the schema and the name of a table.
func (s *rest) address(t *sink.Table) (schema, name string) {
	parts := compile.SplitTable(t.Name)
	if len(parts) > 1 {
		return parts[len(parts)-2], parts[len(parts)-1]
	}
	return s.opts.Schema, parts[0]
}

// operator is an error that a person mends: no event is at fault, so the batch is
// kept and tried again.
func operator(format string, args ...any) *sink.Error {
	err := fmt.Errorf(format, args...)
	return &sink.Error{Action: sink.Retry, Message: err.Error(), Err: errors.Unwrap(err)}
}
