package postgresttest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookfold/hookfold/internal/testdb"
)

// markName begins the names of functions by which an API's database is told.
const markName = "hookfold_mark_"

// located are the database and the schema behind an API, by its URL: they are
// looked for once.
var located sync.Map

// settle finds out what was not said of a live project.
func (p *Project) settle(t testing.TB) {
	t.Helper()
	if known, ok := located.Load(p.API); ok {
		p.Database, p.Schema = known.([2]string)[0], known.([2]string)[1]
		return
	}
	if p.Schema == "" {
		p.Schema = p.exposed(t)
	}
	candidates := []string{p.Database}
	if p.Database == "" {
		candidates = testdb.Databases(t)
	}
	p.locate(t, candidates)
	located.Store(p.API, [2]string{p.Database, p.Schema})
}

// alone keeps the tests of other processes from a live database while there are
// any of this one: they make the same tables.
var alone lock

// lock is an advisory lock of a database, shared by the tests of a process.
type lock struct {
	mu    sync.Mutex
	users int
	conn  *pgx.Conn
}

// hold takes the lock until the test ends.
func (l *lock) hold(t testing.TB, database string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users == 0 {
		ctx := context.Background()
		l.conn = testdb.Connect(t, ctx, database)
		if _, err := l.conn.Exec(ctx, "select pg_advisory_lock(hashtext('hookfold live tests'))"); err != nil {
			t.Fatal(err)
		}
	}
	l.users++
	t.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.users--; l.users == 0 {
			l.conn.Close(context.Background())
		}
	})
}

// exposed asks the API for the first schema that it exposes: it names them where
// one that it does not is asked for.
func (p *Project) exposed(t testing.TB) string {
	t.Helper()
	res := p.ask(t, http.MethodGet, "/", "Accept-Profile", "hookfold_test_none")
	defer res.Body.Close()
	var answer struct{ Message, Hint string }
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		t.Fatalf("%s: the API's answer is not JSON: %v", LiveVar, err)
	}
	for _, text := range []string{answer.Message, answer.Hint} { // newer versions say it in the hint
		if _, list, ok := strings.Cut(text, ": "); ok {
			schema, _, _ := strings.Cut(list, ",")
			return strings.TrimSpace(schema)
		}
	}
	return "public"
}

// ask makes a request without a body.
func (p *Project) ask(t testing.TB, method, path, header, value string) *http.Response {
	t.Helper()
	r, err := http.NewRequest(method, p.API+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(header, value)
	if p.Key != "" {
		r.Header.Set("Authorization", "Bearer "+p.Key)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	res, err := client.Do(r)
	if err != nil {
		t.Fatalf("%s: %v", LiveVar, err)
	}
	return res
}

// locate finds out which of some databases is behind the API: it makes a function
// in each, and looks which of them the API comes to know.
func (p *Project) locate(t testing.TB, candidates []string) {
	t.Helper()
	marks := map[string]string{}
	for _, raw := range candidates {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatalf("%s is not a URL", LiveDatabaseVar)
		}
		q := u.Query()
		q.Set("search_path", p.Schema)
		u.RawQuery = q.Encode()
		mark := markName + unique()
		if testdb.Try(u.String(), "create function "+mark+"() returns int language sql as 'select 1'", "notify pgrst, 'reload schema'") == nil {
			marks[mark] = u.String()
		}
	}
	defer func() {
		for mark, database := range marks {
			if err := testdb.Try(database, "drop function if exists "+mark+"()", "notify pgrst, 'reload schema'"); err != nil {
				t.Errorf("a function of the test is left in a database: %v", err)
			}
		}
	}()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		for mark, database := range marks {
			if p.knows(t, mark) {
				p.Database = database
				return
			}
		}
	}
	t.Fatalf("of %d databases none is behind the API in schema %s: does it listen on the channel pgrst? Name the database in %s and the schema in %s", len(candidates), p.Schema, LiveDatabaseVar, LiveSchemaVar)
}

func (p *Project) knows(t testing.TB, function string) bool {
	res := p.ask(t, http.MethodPost, "/rpc/"+function, "Content-Profile", p.Schema)
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}
