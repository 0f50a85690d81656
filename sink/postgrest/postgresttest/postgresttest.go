// Package postgresttest is a double of PostgREST for tests: an HTTP server over a
// real PostgreSQL that answers as PostgREST 12.0.3 was measured to, its faults
// among them. What was measured is in the tests of this package, fact by fact;
// they run against a real server too.
package postgresttest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options say what is exposed, and to whom.
type Options struct {
	// Schemas are exposed; the first is the default. None is public.
	Schemas []string
	// Anon is the role of a request without a token; "" refuses it.
	Anon string
	// Secret signs tokens (HS256).
	Secret string
	// MaxRows is the most rows of a read; 0 is no limit. Supabase has 1000.
	MaxRows int
	// MaxBody is the most bytes of a body that the gateway in front takes; what
	// is longer is answered 413. 0 is no limit.
	MaxBody int64
	// APIKey is what Supabase's gateway asks for in the header apikey; "" is no
	// such gateway. With one, the API is under /rest/v1.
	APIKey string
	// NoOpenAPI hides the description at the root.
	NoOpenAPI bool
}

// Server is a running double.
type Server struct {
	// URL is where the API answers.
	URL string

	opts Options
	pool *pgxpool.Pool

	mu       sync.Mutex
	schema   *cache
	changed  chan struct{}
	fault    func(*http.Request) Fault
	recorded []Exchange
}

// Exchange is a request that was answered.
type Exchange struct {
	Method, URI, Prefer, Profile, Body string
	Status                             int
	ContentRange                       string
}

// Fault answers a request in place of the API, which serve is.
type Fault func(w http.ResponseWriter, r *http.Request, serve http.Handler)

// Down breaks the connection before anything is done.
func Down(w http.ResponseWriter, _ *http.Request, _ http.Handler) { hangUp(w) }

// Slow does not answer before the client gives up.
func Slow(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
	io.Copy(io.Discard, r.Body) // only then the server sees that the client goes
	<-r.Context().Done()
}

// LostAfterCommit does what is asked and breaks the connection.
func LostAfterCommit(w http.ResponseWriter, r *http.Request, serve http.Handler) {
	serve.ServeHTTP(httptest.NewRecorder(), r)
	hangUp(w)
}

// PoolTimeout is what PostgREST answers when all its connections are in use.
func PoolTimeout(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	failure(http.StatusGatewayTimeout, "PGRST003", "Timed out acquiring connection from connection pool.").write(w)
}

// DatabaseDown is what PostgREST answers when it has no database.
func DatabaseDown(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	failure(http.StatusServiceUnavailable, "PGRST000", "Database connection error. Retrying the connection.").write(w)
}

// Answer gives a fixed answer.
func Answer(status int, contentType, body string, header ...string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		w.Write([]byte(body))
	}
}

func hangUp(w http.ResponseWriter) {
	if h, ok := w.(http.Hijacker); ok {
		if c, _, err := h.Hijack(); err == nil {
			c.Close()
		}
	}
}

// Start starts a double over the PostgreSQL database of a URL, until the test
// ends.
func Start(t testing.TB, url string, opts Options) *Server {
	t.Helper()
	if opts.Schemas == nil {
		opts.Schemas = []string{"public"}
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal("the URL of the database cannot be read") // it may hold a password
	}
	config.MaxConns = 10
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // tables change under it
	ctx, cancel := context.WithCancel(context.Background())
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{opts: opts, pool: pool, changed: make(chan struct{})}
	if err := s.reload(ctx); err != nil {
		t.Fatalf("this test needs a PostgreSQL server: %v", err)
	}
	listener, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listener.Exec(ctx, "listen pgrst"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer listener.Release()
		for {
			n, err := listener.Conn().WaitForNotification(ctx)
			if err != nil {
				return
			}
			if n.Payload == "" || n.Payload == "reload schema" {
				if err := s.reload(ctx); err != nil && ctx.Err() == nil {
					t.Errorf("reading the schema: %v", err)
				}
			}
		}
	})
	h := httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = h.URL
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
		cancel()
		wg.Wait()
		pool.Close()
	})
	return s
}

// Inject makes faults: f says which a request meets, nil for none.
func (s *Server) Inject(f func(*http.Request) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Exchanges returns the requests since it was last called.
func (s *Server) Exchanges() []Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.recorded
	s.recorded = nil
	return out
}

// Token makes a token for a role, of a life from now; 0 does not expire.
func (s *Server) Token(role string, life time.Duration) string {
	return Token(s.opts.Secret, role, life)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	f := s.fault
	s.mu.Unlock()
	api := http.HandlerFunc(s.answer)
	if f != nil {
		if fault := f(r); fault != nil {
			fault(w, r, api)
			return
		}
	}
	api(w, r)
}

func (s *Server) record(x Exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorded = append(s.recorded, x)
}
