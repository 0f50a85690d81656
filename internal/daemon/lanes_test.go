package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/internal/witness"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/sink"
)

// laned gives a rig the lanes of a text, on a database.
func laned(t *testing.T, url, lanes string) *rig {
	r := newRig(t, url)
	text := fmt.Sprintf(yaml, strings.TrimPrefix(r.cfg.Journal.URL.Text, "sqlite:"), url)
	r.cfg = parse(t, text+"lanes:\n"+lanes)
	return r
}

// single reads one text from a database, by a connection of its own.
func single(t *testing.T, url, query string, args ...any) string {
	t.Helper()
	db, err := witness.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var out string
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// service is a service of the user's own.
type service struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	got    []message
	look   func(message) // at each message, before it is answered
}

type message struct {
	ID, Key  string
	Sequence int64
	Data     json.RawMessage
}

func newService(t *testing.T) *service {
	s := &service{status: 200}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		var m message
		if err := json.Unmarshal(body, &m); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		status, look := s.status, s.look
		s.mu.Unlock()
		if look != nil {
			look(m)
		}
		if status == 200 {
			s.mu.Lock()
			s.got = append(s.got, m)
			s.mu.Unlock()
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, m := range s.got {
		out = append(out, m.ID)
	}
	return out
}

// With after: settled the service finds the rows of what it is told.
func TestALaneAfterItsRows(t *testing.T) {
	url := testdb.Schema(t)
	x := newService(t)
	r := laned(t, url, `  l: {from: shop, type: payment, key: event.user, after: settled, post: "`+x.URL+`", secret: none}`)
	x.look = func(m message) {
		if n := single(t, url, "select cast(count(*) as text) from payment where id = $1", m.ID); n != "1" {
			t.Errorf("%s: %s rows", m.ID, n)
		}
	}
	r.start()
	r.migrate()
	for i := range 40 {
		r.mustPost(payment(i, 1))
		r.mustPost(payment(i, 1)) // the sender sends it twice
	}
	s := r.drain()
	if ids := x.ids(); len(ids) != 40 || s.Targets["lane:l"].Settled != 40 {
		t.Errorf("%d events: %v; %+v", len(ids), ids, s.Targets)
	}
	if status, body := r.admin("/readyz"); status != 200 || !strings.Contains(body, `"lanes":[{"name":"l","up":true,"paused":false,"pending":0,"stuck_keys":0,"dead_keys":0}]`) {
		t.Errorf("%d %s", status, body)
	}
	if _, body := r.admin("/metrics"); !strings.Contains(body, `hookfold_lane_events_total{lane="l",state="settled"} 40`) || !strings.Contains(body, `hookfold_lane_events_total{lane="l",state="repeated"} 40`) ||
		!strings.Contains(body, `hookfold_lane_tries_total{lane="l",result="done"} 40`) || !strings.Contains(body, `hookfold_lane_paused{lane="l"} 0`) {
		t.Error(body)
	}
}

// An event that waits in its target holds its key, and says so.
func TestALaneWaitsForWhatWaits(t *testing.T) {
	x := newService(t)
	r := laned(t, testdb.SQLite(t), `  l: {from: shop, key: event.id, after: settled, post: "`+x.URL+`", secret: none}`)
	r.start()
	r.migrate()
	r.mustPost(`{"id":"p1","type":"note","at":"2026-01-01T00:00:00Z","note":"hi"}`)
	r.mustPost(payment(2, 1))
	r.drain()
	entries, err := r.daemon.Journal().Entries(t.Context(), journal.Filter{Consumer: "lane:l"})
	if err != nil || len(entries) != 1 || entries[0].Key != "p1" || entries[0].Reason != "its rows are waiting in db, and with them its key here: hookfold waiting show 1" {
		t.Errorf("%+v, %v", entries, err)
	}
	if ids := x.ids(); len(ids) != 1 || ids[0] != "p2" {
		t.Error(ids)
	}
	if _, body := r.admin("/readyz"); !strings.Contains(body, `"stuck_keys":1`) {
		t.Error(body)
	}
}

// A person who has a lane no more gives it up.
func TestALaneThatIsGoneIsToldOf(t *testing.T) {
	url := testdb.SQLite(t)
	r := laned(t, url, `  l: {from: shop, key: event.id, post: "http://127.0.0.1:9/", secret: none}`)
	r.start()
	r.stop()
	cfg := r.cfg
	if err := Forget(t.Context(), cfg, "lane:l"); err == nil || err.Error() != "forget lane:l: the config has the lane l" {
		t.Error(err)
	}
	r.cfg = parse(t, fmt.Sprintf(yaml, strings.TrimPrefix(cfg.Journal.URL.Text, "sqlite:"), url))
	r.start()
	if !strings.Contains(r.log.String(), "the config does not have the lane l any more") || !strings.Contains(r.log.String(), "hookfold forget lane:l") {
		t.Error(r.log)
	}
	r.stop()
	if err := Forget(t.Context(), r.cfg, "lane:l"); err != nil {
		t.Error(err)
	}
}

// A statement's effect is there once, whatever is sent twice and however often
// the server is cut off, and in order of each key.
func TestAStatementPerEvent(t *testing.T) {
	for name, url := range databases(t) {
		t.Run(name, func(t *testing.T) {
			at := url(t)
			r := laned(t, at, `
  audit:
    from: shop
    type: payment
    key: event.user
    concurrency: 4
    sql:
      statement: "insert into audit (id, key, n) select :id, :key, coalesce(max(n), 0) + 1 from audit where key = :key"
      with: {id: event.id, key: event.user}
`)
			r.start()
			r.migrate()
			ctx := t.Context()
			db := r.daemon.Sink("db")
			plan, err := db.(sink.Once).PlanOnce(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Execute(ctx, append(plan, "create table audit (id text, key text, n integer)")); err != nil {
				t.Fatal(err)
			}
			const n = 120
			for i := range n {
				r.mustPost(payment(i, 1))
				r.mustPost(payment(i, 1))
				if i%30 == 29 { // cut off in the middle
					ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
					_ = r.daemon.Stop(ctx)
					cancel()
					r.start()
				}
			}
			s := r.drain()
			if got := single(t, at, "select cast(count(*) as text) || ' of ' || cast(count(distinct id) as text) from audit"); got != "120 of 120" {
				t.Errorf("%s; %+v", got, s)
			}
			// Along a key the numbers are those of the events: u3 has p3, p13, p23 …
			if got := single(t, at, "select cast(count(*) as text) from audit where cast(substr(id, 2) as integer) / 10 + 1 <> n"); got != "0" {
				t.Errorf("%s are out of order", got)
			}
			// What cannot come again is forgotten.
			if err := r.daemon.purge(ctx, time.Now().Add(60*24*time.Hour)); err != nil {
				t.Error(err)
			}
			if got := single(t, at, "select cast(count(*) as text) from hookfold_lanes"); got != "0" {
				t.Errorf("%s lines are remembered", got)
			}
		})
	}
}
