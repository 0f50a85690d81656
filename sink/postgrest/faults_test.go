package postgrest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/postgrest"
	"github.com/hookfold/hookfold/sink/postgrest/postgresttest"
)

var modes = []postgrest.Mode{postgrest.RPC, postgrest.REST}

func inEachMode(t *testing.T, run func(t *testing.T, mode postgrest.Mode)) {
	for _, m := range modes {
		t.Run(string(m), func(t *testing.T) { run(t, m) })
	}
}

// ready is a double with a sink whose tables are made.
func ready(t *testing.T, mode postgrest.Mode, opts postgrest.Options, tables ...*sink.Table) (*postgresttest.Project, sink.Sink) {
	t.Helper()
	p := postgresttest.New(t, postgresttest.Options{})
	opts.Mode = mode
	s := open(t, p, tables, opts)
	bring(t, s, tables...)
	return p, s
}

// Four writers write in any order while requests are lost before and after they
// did their work: what is applied again until it succeeds is right.
func TestFaultsBetweenAndAfterSteps(t *testing.T) {
	inEachMode(t, func(t *testing.T, mode postgrest.Mode) {
		parent := tableOf(t, "account", "id text")
		table := tableOf(t, "item", "id text", "a text", "b numeric", "note text scope note", "origin text first", "top numeric max", "low int min", "step text ladder sent,delivered,read")
		p, s := ready(t, mode, postgrest.Options{}, parent, table)
		seed := uint64(time.Now().UnixNano())
		t.Log("seed", seed)
		var lock sync.Mutex
		rnd := rand.New(rand.NewPCG(seed, 0))
		p.Double.Inject(func(*http.Request) postgresttest.Fault {
			lock.Lock()
			defer lock.Unlock()
			faults := []postgresttest.Fault{postgresttest.Down, postgresttest.LostAfterCommit, postgresttest.PoolTimeout, postgresttest.DatabaseDown, nil, nil, nil, nil, nil, nil, nil, nil}
			return faults[rnd.IntN(len(faults))]
		})
		steps := []string{"sent", "delivered", "read"}
		var changes, parents []*merge.Change
		for i := range 80 {
			set := map[string]any{"step": steps[i%3], "top": fmt.Sprint(i * 7 % 31), "low": fmt.Sprint(i * 5 % 23), "origin": fmt.Sprint("o", i)}
			if i%2 == 0 {
				set["a"], set["b"] = fmt.Sprint("a", i), nil
			} else {
				set["note"] = fmt.Sprint("n", i)
			}
			key := fmt.Sprint("k", i%5)
			changes = append(changes, say(t, table, key, int64(i*13%41), set))
			parents = append(parents, say(t, parent, key, 1, nil))
		}
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(w)))
				order := rnd.Perm(len(changes))
				for part := range slices.Chunk(order[:60], 7) {
					var mine, of []*merge.Change
					for _, i := range part {
						mine, of = append(mine, changes[i]), append(of, parents[i])
					}
					b := &sink.Batch{Groups: []sink.Group{{Table: parent, Rows: merge.Fold(parent.Table, of)}, {Table: table, Rows: merge.Fold(table.Table, mine)}}}
					for try := 0; ; try++ {
						_, err := s.Apply(t.Context(), b)
						if err == nil {
							break
						}
						if sink.ActionOf(err) != sink.Retry || try > 1000 {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		wg.Wait()
		p.Double.Inject(nil)
		for start := range slices.Chunk(changes, 10) { // and each at least once
			write(t, s, table, start...)
		}
		same(t, s, table, changes)
	})
}

// same fails unless the table holds what merge makes of the changes.
func same(t *testing.T, s sink.Sink, table *sink.Table, changes []*merge.Change) {
	t.Helper()
	live, err := s.Read(t.Context(), table, nil)
	if err != nil {
		t.Fatal(err)
	}
	texts := func(rows []*merge.Row) []string {
		var out []string
		for _, r := range rows {
			line := fmt.Sprint(string(r.Key), r.Scopes)
			for _, c := range r.Cells {
				line += fmt.Sprint(" ", c.Value, c.Version)
			}
			out = append(out, line)
		}
		slices.Sort(out)
		return out
	}
	if d := cmp.Diff(texts(merge.Rows(table.Table, changes)), texts(live)); d != "" {
		t.Errorf("rows of %s are not those of merge (-want +got):\n%s", table.Name, d)
	}
}

// A batch of mode rpc is one transaction: an error in its second table takes the
// first one back.
func TestBatchIsOneTransaction(t *testing.T) {
	a, b := tableOf(t, "a", "id text", "v text"), tableOf(t, "b", "id text", "v text")
	p, s := ready(t, postgrest.RPC, postgrest.Options{}, a, b)
	p.Exec(t, "alter table b add check (v <> 'bad')")
	_, err := s.Apply(t.Context(), &sink.Batch{Groups: []sink.Group{
		{Table: a, Rows: merge.Fold(a.Table, []*merge.Change{say(t, a, "k", 1, map[string]any{"v": "x"})})},
		{Table: b, Rows: merge.Fold(b.Table, []*merge.Change{say(t, b, "k", 1, map[string]any{"v": "bad"})})},
	}})
	if e := sinkError(t, err); e.Action != sink.Reject || !strings.Contains(e.Message, "check") {
		t.Errorf("%+v", e)
	}
	mustShow(t, s, a, "k", "no row")
}

// Deadlocks are tried again out of sight.
func TestAgainOutOfSight(t *testing.T) {
	inEachMode(t, func(t *testing.T, mode postgrest.Mode) {
		table := tableOf(t, "item", "id text", "n int max")
		p, s := ready(t, mode, postgrest.Options{}, table)
		write(t, s, table, say(t, table, "k", 1, map[string]any{"n": "1"}))
		left := 3
		p.Double.Inject(func(r *http.Request) postgresttest.Fault {
			if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "inspect") || left == 0 {
				return nil
			}
			left--
			return postgresttest.Answer(500, "application/json", `{"code":"40P01","message":"deadlock detected"}`)
		})
		write(t, s, table, say(t, table, "k", 2, map[string]any{"n": "2"}))
		mustShow(t, s, table, "k", "n=2")
	})
}

func TestSlow(t *testing.T) {
	table := tableOf(t, "item", "id text", "n int max")
	p, s := ready(t, postgrest.RPC, postgrest.Options{}, table)
	p.Double.Inject(func(*http.Request) postgresttest.Fault { return postgresttest.Slow })
	hasty := open(t, p, []*sink.Table{table}, postgrest.Options{Timeout: 50 * time.Millisecond})
	e := refused(t, hasty, table, say(t, table, "k", 1, map[string]any{"n": "1"}))
	if e.Action != sink.Retry || !strings.Contains(e.Message, "in time") {
		t.Errorf("%+v", e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Apply(ctx, batch(table, say(t, table, "k", 1, nil))); sinkError(t, err).Action != sink.Retry {
		t.Errorf("broken off: %v", err)
	}
}

// What the API, or something in front of it, answers, and what is done about it.
func TestJudged(t *testing.T) {
	table := tableOf(t, "item", "id text", "n int max")
	p, s := ready(t, postgrest.RPC, postgrest.Options{}, table)
	write(t, s, table, say(t, table, "k", 1, map[string]any{"n": "1"}))
	const js = "application/json"
	for _, f := range []struct {
		status int
		body   string
		action sink.Action
		says   string
		header []string
		after  time.Duration
	}{
		{status: 409, body: `{"code":"23505","message":"duplicate key value violates unique constraint \"item_code_key\"","details":"Key (code)=(c) already exists."}`, action: sink.Wait, says: "another row has the value"},
		{status: 409, body: `{"code":"23503","message":"insert or update on table \"item\" violates foreign key constraint \"fk\""}`, action: sink.Wait, says: "foreign key"},
		{status: 400, body: `{"code":"23502","message":"null value in column \"must\" of relation \"item\" violates not-null constraint"}`, action: sink.Wait, says: "must"},
		{status: 400, body: `{"code":"23514","message":"violates check constraint \"c\""}`, action: sink.Reject, says: "check"},
		{status: 400, body: `{"code":"22003","message":"out of range"}`, action: sink.Reject, says: "does not fit"},
		{status: 500, body: `{"code":"21000","message":"cannot affect row a second time"}`, action: sink.Reject, says: "two keys"},
		{status: 500, body: `{"code":"57014","message":"canceling statement due to statement timeout"}`, action: sink.Retry, says: "statement timeout"},
		{status: 503, body: `{"code":"53300","message":"too many connections"}`, action: sink.Retry},
		{status: 503, body: `{"code":"PGRST000","message":"Database connection error"}`, action: sink.Retry, says: "connection"},
		{status: 504, body: `{"code":"PGRST003","message":"Timed out acquiring connection from connection pool."}`, action: sink.Retry, says: "no connection", after: time.Second},
		{status: 401, body: `{"code":"PGRST301","message":"JWT expired"}`, action: sink.Retry, says: "JWT expired", after: 30 * time.Second},
		{status: 401, body: `{"code":"PGRST302","message":"Anonymous access is disabled"}`, action: sink.Retry, says: "key", after: 30 * time.Second},
		{status: 401, body: `{"message":"Invalid API key"}`, action: sink.Retry, says: "Invalid API key", after: 30 * time.Second},
		{status: 403, body: `{"code":"42501","message":"permission denied for table item"}`, action: sink.Retry, says: "Grant"},
		{status: 403, body: `{"code":"42501","message":"new row violates row-level security policy for table \"item\""}`, action: sink.Reject, says: "row-level security"},
		{status: 406, body: `{"code":"PGRST106","message":"The schema must be one of the following: api"}`, action: sink.Retry, says: "Expose"},
		{status: 404, body: `{"code":"PGRST202","message":"Could not find the function x"}`, action: sink.Retry, says: "migration"},
		{status: 404, body: `{}`, action: sink.Retry, says: "no such table"},
		{status: 400, body: `{"code":"PGRST204","message":"Could not find the 'n' column"}`, action: sink.Retry, says: "reload schema"},
		{status: 400, body: `{"code":"PGRST102","message":"All object keys must match"}`, action: sink.Reject},
		{status: 400, body: `{"code":"P0001","message":"no"}`, action: sink.Reject, says: "trigger"},
		{status: 409, body: `{"code":"PT409","message":"no"}`, action: sink.Reject, says: "refuses"},
		{status: 503, body: `{"code":"PT503","message":"later"}`, action: sink.Retry, says: "later"},
		{status: 413, body: `<html>too large</html>`, action: sink.Reject, says: "larger"},
		{status: 429, body: `{"message":"slow down"}`, action: sink.Retry, says: "too many requests", header: []string{"Retry-After", "7"}, after: 7 * time.Second},
		{status: 502, body: `<html>bad gateway</html>`, action: sink.Retry},
		{status: 403, body: `<html>blocked</html>`, action: sink.Retry, says: "key", after: 30 * time.Second},
		{status: 500, body: ``, action: sink.Retry},
		{status: 200, body: `nonsense`, action: sink.Retry, says: "migration"},
	} {
		t.Run(fmt.Sprint(f.status, " ", f.body[:min(len(f.body), 24)]), func(t *testing.T) {
			p.Double.Inject(func(r *http.Request) postgresttest.Fault {
				if strings.Contains(r.URL.Path, "inspect") {
					return nil
				}
				return postgresttest.Answer(f.status, js, f.body, f.header...)
			})
			e := refused(t, s, table, say(t, table, "k", 2, map[string]any{"n": "2"}))
			if e.Action != f.action || !strings.Contains(e.Message, f.says) || e.After != f.after {
				t.Errorf("action %d, after %s, %q; want action %d, after %s, %q", e.Action, e.After, e.Message, f.action, f.after, f.says)
			}
			if strings.Contains(e.Message, p.Key) {
				t.Error("the message holds the key")
			}
		})
	}
}

// The key goes to the host that was given and no other.
func TestNoRedirects(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request went elsewhere") }))
	defer elsewhere.Close()
	table := tableOf(t, "item", "id text", "n int max")
	p, s := ready(t, postgrest.RPC, postgrest.Options{}, table)
	for _, status := range []int{301, 302, 307, 308} {
		p.Double.Inject(func(*http.Request) postgresttest.Fault {
			return postgresttest.Answer(status, "text/html", "", "Location", elsewhere.URL)
		})
		e := refused(t, s, table, say(t, table, "k", 1, map[string]any{"n": "1"}))
		if e.Action != sink.Retry || !strings.Contains(e.Message, "elsewhere") {
			t.Errorf("%d: %+v", status, e)
		}
	}
}

func TestBounds(t *testing.T) {
	table := tableOf(t, "item", "id text", "v text")
	p, s := ready(t, postgrest.RPC, postgrest.Options{MaxRequestBytes: 2000, MaxResponseBytes: 20000}, table)
	e := refused(t, s, table, say(t, table, "k", 1, map[string]any{"v": strings.Repeat("x", 3000)}))
	if e.Action != sink.Reject || !strings.Contains(e.Message, "2000") {
		t.Errorf("a request that is too long: %+v", e)
	}
	p.Double.Inject(func(*http.Request) postgresttest.Fault {
		return postgresttest.Answer(200, "application/json", strings.Repeat(" ", 30000))
	})
	e = refused(t, s, table, say(t, table, "k", 1, map[string]any{"v": "x"}))
	if e.Action != sink.Retry || !strings.Contains(e.Message, "20000") {
		t.Errorf("an answer that is too long: %+v", e)
	}
}

func TestUnreachable(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	s, err := postgrest.Open(t.Context(), "postgrest+"+gone.URL, nil, postgrest.Options{Key: "s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for what, err := range map[string]error{
		"ping": s.Ping(t.Context()),
		"apply": func() error {
			_, err := s.Apply(t.Context(), batch(tableOf(t, "item", "id text"), say(t, tableOf(t, "item", "id text"), "secret value", 1, nil)))
			return err
		}(),
	} {
		e := sinkError(t, err)
		if e.Action != sink.Retry || !strings.Contains(e.Message, "cannot be reached") || strings.Contains(e.Message, "s3cret") || strings.Contains(e.Message, "secret value") {
			t.Errorf("%s: %+v", what, e)
		}
	}
}

// Another writer is faster, between the look at a row and the request that moves
// it: the guard in the request holds.
func TestGuardsHoldAgainstFasterWriters(t *testing.T) {
	table := tableOf(t, "item", "id text", "a text", "note text scope note", "origin text first", "top numeric max", "low int min", "step text ladder sent,delivered,read")
	p, s := ready(t, postgrest.REST, postgrest.Options{Parallel: 1}, table)
	faster := open(t, p, []*sink.Table{table}, postgrest.Options{Mode: postgrest.REST})
	first := map[string]any{"a": "first", "note": "first", "origin": "first", "top": "5", "low": "5", "step": "sent"}
	newest := map[string]any{"a": "newest", "note": "newest", "top": "9", "low": "1", "step": "read"}
	for name, late := range map[string]map[string]any{
		"a": {"a": "late"}, "note": {"note": "late"}, "top": {"top": "7"}, "low": {"low": "3"}, "step": {"step": "delivered"},
	} {
		changes := []*merge.Change{say(t, table, name, 1, first), say(t, table, name, 3, newest), say(t, table, name, 2, late)}
		write(t, s, table, changes[0])
		interfere(t, p, func() { write(t, faster, table, changes[1]) })
		r := write(t, s, table, changes[2])
		if r.Written != 0 || r.Unchanged != 1 {
			t.Errorf("%s: %+v, want it left alone", name, r)
		}
	}
	earlier := []*merge.Change{say(t, table, "origin", 5, map[string]any{"origin": "5"}), say(t, table, "origin", 1, map[string]any{"origin": "1"}), say(t, table, "origin", 3, map[string]any{"origin": "3"})}
	write(t, s, table, earlier[0])
	interfere(t, p, func() { write(t, faster, table, earlier[1]) })
	write(t, s, table, earlier[2])
	mustShow(t, s, table, "origin", "a=NULL note=NULL origin=1 top=NULL low=NULL step=NULL")
	for _, name := range []string{"a", "note", "top", "low", "step"} {
		mustShow(t, s, table, name, "a=newest note=newest origin=first top=9 low=1 step=read")
	}
}

// interfere does something before the next PATCH is answered.
func interfere(t *testing.T, p *postgresttest.Project, do func()) {
	var once sync.Once
	p.Double.Inject(func(r *http.Request) postgresttest.Fault {
		if r.Method != http.MethodPatch {
			return nil
		}
		once.Do(func() {
			p.Double.Inject(nil)
			do()
		})
		return nil
	})
}
