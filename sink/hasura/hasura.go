// Package hasura is the sink of tables behind Hasura 2: it needs nothing but the
// GraphQL endpoint, and for migrations the admin API.
//
// A batch is one mutation, which Hasura runs as one transaction: parents before
// children, each field one statement. A field inserts rows that are not there
// and moves one register (the columns of a scope, or one column of any other
// rule) of those that are. Its on_conflict.where sees the row that is there and
// values that were sent, but not the row that comes; so the guard names the
// rows: for each of them its key, and what the stored version must be for it to
// move. One field so takes many rows, whatever their versions.
//
// Where PostgreSQL does not order values as package merge does (text, whose
// order is the collation's, which GraphQL does not tell) and for unions, a
// guard with values cannot decide. There the sink reads what is stored, joins
// it, and writes only where the stored value is still what was read; rows that
// another writer got to first are read again.
//
// A table with guard: trigger is joined by the database: one field then takes any
// number of rows as they are.
//
// # What is kept, and what is not
//
// Rows are those of package merge whatever the order, duplication and
// concurrency of batches. A batch is applied in one transaction, but for these:
// a batch of more than MaxRequestBytes is sent as several mutations; rows with
// occupants are shown by a mutation of their own after the occupants' records
// were joined; and the columns above may need another round. A batch that fails
// on the way may then be in part, and is whole when it is applied again.
package hasura

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Options say how a sink uses its endpoint. At most one of AdminSecret and JWT
// is given.
type Options struct {
	// AdminSecret is sent as x-hasura-admin-secret. With it, and if the admin API
	// is on, Plan sees all of the database and Execute can run.
	AdminSecret string
	// JWT is sent as a bearer token. It is asked for before every request, so
	// that it can be renewed.
	JWT func(context.Context) (string, error)
	// Role is sent as x-hasura-role; "" leaves it to the secret or token.
	Role string
	// Headers are sent besides, for example those of a proxy.
	Headers http.Header
	// Names gives the root name in GraphQL of a table whose name was customised,
	// by the table's name in the database. Default: the table's name, with its
	// schema and _ in front unless that is public.
	Names map[string]string
	// Constraints gives the unique constraint of a table's key, by the table's
	// name in the database, where introspection does not tell it.
	Constraints map[string]string
	// Source is the name of the database in Hasura, for the admin API; default
	// "default".
	Source string
	// MaxRequestBytes is the most bytes of one request; default 1 MiB, which is
	// what many proxies take. A larger batch is sent as several.
	MaxRequestBytes int
	// MaxResponseBytes is the most bytes of one answer; default 64 MiB.
	MaxResponseBytes int64
	// Timeout bounds one request; default 60 s.
	Timeout time.Duration
	// Transport makes the requests; default one that verifies certificates and
	// takes proxies from the environment.
	Transport http.RoundTripper
}

func (o Options) withDefaults() Options {
	if o.Source == "" {
		o.Source = "default"
	}
	if o.MaxRequestBytes <= 0 {
		o.MaxRequestBytes = 1 << 20
	}
	if o.MaxResponseBytes <= 0 {
		o.MaxResponseBytes = 64 << 20
	}
	if o.Timeout <= 0 {
		o.Timeout = 60 * time.Second
	}
	return o
}

// Open opens the sink of a GraphQL endpoint, hasura+https://host/v1/graphql (or
// hasura+http://, for one on the same machine), for the tables that it is to
// write; nil is any. It does not connect. An error is a URL, an option or a table
// that cannot be right.
func Open(ctx context.Context, endpoint string, tables []*sink.Table, opts Options) (sink.Sink, error) {
	u, err := url.Parse(strings.TrimPrefix(endpoint, "hasura+"))
	switch {
	case err != nil || u.Host == "":
		return nil, fmt.Errorf("open hasura: the url of a Hasura is hasura+https://host/v1/graphql") // without its text: it may hold a password
	case !strings.HasPrefix(endpoint, "hasura+") || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("open hasura: %q is not a scheme of this sink; write hasura+https://%s%s", strings.TrimSuffix(endpoint[:strings.Index(endpoint, ":")+1], ":"), u.Host, u.Path)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("open hasura: the url holds a user, a query or a fragment. Give the secret as admin_secret or jwt, and nothing behind the path")
	case opts.AdminSecret != "" && opts.JWT != nil:
		return nil, fmt.Errorf("open hasura: both an admin secret and a JWT are given: which of them is meant?")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/graphql"
	}
	opts = opts.withDefaults()
	for i, t := range tables {
		if err := sink.Refused(t, Refuses(t)); err != nil {
			return nil, fmt.Errorf("open hasura: %w", err)
		}
		for _, other := range tables[:i] {
			if column := compile.Shared(t, other); column != "" {
				return nil, fmt.Errorf("open hasura: %s and %s are both table %s and both write %s, so each would take the other's version for its own. Make them one table with several events, or give them scopes of their own", other.Table.Name, t.Table.Name, t.Name, column)
			}
		}
	}
	return &hasura{client: newClient(u, opts), opts: opts, config: tables, tables: map[tableKey]*tableState{}, largest: opts.MaxRequestBytes}, nil
}

// tableKey tells tables apart: the same live table under another config is
// another.
type tableKey struct {
	rules *merge.Table
	name  string
}

type hasura struct {
	*client
	opts   Options
	config []*sink.Table

	mu      sync.Mutex
	tables  map[tableKey]*tableState
	largest int // of a request, as far as is known
}

// limit is the most bytes of a request that are taken, as far as is known.
func (h *hasura) limit() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.largest
}

// tooLarge remembers that a request was too large.
func (h *hasura) tooLarge(size int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.largest = min(h.largest, max(size/2, 4<<10))
}

// Ping is sink.Sink's: it asks for as little as there is, with the credentials
// of every other request.
func (h *hasura) Ping(ctx context.Context) error {
	_, err := h.graphql(ctx, "query{__typename}", nil)
	return public(err)
}

// Close is sink.Sink's.
func (h *hasura) Close() error {
	h.client.close()
	return nil
}

// rootName is the name of a table's root fields.
func (h *hasura) rootName(table string) string {
	if n := h.opts.Names[table]; n != "" {
		return n
	}
	parts := compile.SplitTable(table)
	if len(parts) > 1 && parts[0] == "public" {
		parts = parts[1:]
	}
	return strings.Join(parts, "_")
}

// called remembers which table root fields are of, for errors that name them.
func (h *hasura) called(f rootFields, table string) {
	for _, name := range []string{f.insert, f.update, f.query} {
		h.names.Store(name, table)
	}
}

// operator is an error that a person mends at Hasura or the database: no event
// is at fault, so the batch is kept and tried again.
func operator(format string, args ...any) *sink.Error {
	return &sink.Error{Action: sink.Retry, Message: fmt.Sprintf(format, args...)}
}

func keysOf[T any](rows []T, key func(T) merge.Key) []merge.Key {
	var out []merge.Key
	for _, r := range rows {
		out = append(out, key(r))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
