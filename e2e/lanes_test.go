package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/witness"
	"github.com/hookfold/hookfold/source"
)

// laneKeys is how many keys the lanes of the kill test have.
const laneKeys = 64

const lanesConfig = `
version: 1
listen: 127.0.0.1:0
admin: 127.0.0.1:0
journal: sqlite:hookfold.db
sources: {shop: {preset: http, verify: bearer, secrets: [x], id: event.id, time: event.at}}
targets: {db: {url: "${DATABASE_URL}"}}
tables:
  thing: {key: {id: text}, columns: {key: text}, events: [{from: shop, key: {id: event.id}, set: {key: event.key}}]}
lanes:
  hook: {from: shop, key: event.key, after: settled, post: "${RECEIVER}", secret: "${LANE_SECRET}", timeout: 2s, concurrency: 32}
  audit:
    from: shop
    key: event.key
    sql:
      statement: insert into audit (id, key, no, n) select :id, :key, :no, coalesce(max(n), 0) + 1 from audit where key = :key
      with: {id: event.id, key: event.key, no: event.no}
`

// laneReceiver is a service that a lane is for: it verifies, does its work to
// the end whether or not anybody waits for the answer, and fails now and then. It
// checks that each key is served one at a time and in order.
type laneReceiver struct {
	*httptest.Server
	verify func(*source.Request, time.Time) error

	mu     sync.Mutex
	random *rand.Rand
	ill    string // a key that fails
	busy   map[string]string
	last   map[string]int64 // greatest sequence that is through, by key
	seen   map[string]bool
	faults []string
	calls  int
}

func newLaneReceiver(t *testing.T, secret string, seed uint64) *laneReceiver {
	preset, err := source.PresetNamed("standard-webhooks").New(source.Options{Name: "x", Secrets: []source.Secret{{Value: secret}}})
	if err != nil {
		t.Fatal(err)
	}
	x := &laneReceiver{
		verify: preset.Verify, random: rand.New(rand.NewPCG(seed, 9)), ill: "k0",
		busy: map[string]string{}, last: map[string]int64{}, seen: map[string]bool{},
	}
	x.Server = httptest.NewServer(http.HandlerFunc(x.handle))
	t.Cleanup(x.Close)
	return x
}

func (x *laneReceiver) fault(format string, args ...any) {
	x.faults = append(x.faults, fmt.Sprintf(format, args...))
}

func (x *laneReceiver) handle(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // cut off before it was sent
	}
	var m struct {
		Key      string
		Sequence int64
	}
	refused := x.verify(&source.Request{Header: r.Header, Body: body}, time.Now())
	id, err := r.Header.Get("Webhook-Id"), json.Unmarshal(body, &m)
	x.mu.Lock()
	x.calls++
	if refused != nil || err != nil {
		x.fault("%s: %v %v", id, refused, err)
	}
	if other := x.busy[m.Key]; other != "" {
		x.fault("key %s: %s begins while %s is at work", m.Key, id, other)
	}
	x.busy[m.Key] = id
	works, answers := time.Duration(0), http.StatusOK
	switch n := x.random.IntN(100); {
	case m.Key == x.ill:
		answers = http.StatusInternalServerError
	case n < 3:
		answers = http.StatusBadGateway
	case m.Key == "k1" || m.Key == "k2": // as slow as a restart of the server
		works = time.Duration(100+x.random.IntN(700)) * time.Millisecond
	case n < 10:
		works = time.Duration(x.random.IntN(100)) * time.Millisecond
	}
	x.mu.Unlock()
	timer := time.NewTimer(works)
	<-timer.C
	x.mu.Lock()
	if answers == http.StatusOK && !x.seen[id] {
		if x.seen[id] = true; m.Sequence <= x.last[m.Key] {
			x.fault("key %s: %s with sequence %d after %d", m.Key, id, m.Sequence, x.last[m.Key])
		}
		x.last[m.Key] = m.Sequence
	}
	x.busy[m.Key] = ""
	x.mu.Unlock()
	w.WriteHeader(answers)
}

func (x *laneReceiver) recover() { x.mu.Lock(); defer x.mu.Unlock(); x.ill = "" }

// lacks counts the events that are not through.
func (x *laneReceiver) lacks(ids map[string]bool) (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id := range ids {
		if !x.seen["hook/"+id] {
			n++
		}
	}
	return n
}

// TestLanesAndKills kills the server at random moments, while events of 64 keys,
// doubled, go to a service that is slow, fails, and has one key that never works.
// No key is ever served twice at a time or out of order, nothing that was
// answered 200 is lost, and a statement's effect is there once. HOOKFOLD_KILLS
// says how often; HOOKFOLD_SEED repeats a run.
func TestLanesAndKills(t *testing.T) {
	kills, seed := 2, uint64(time.Now().UnixNano())
	if n, err := strconv.Atoi(os.Getenv("HOOKFOLD_KILLS")); err == nil {
		kills = n
	}
	if n, err := strconv.ParseUint(os.Getenv("HOOKFOLD_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("HOOKFOLD_SEED=%d HOOKFOLD_KILLS=%d", seed, kills)
	for name, database := range engines {
		t.Run(name, func(t *testing.T) {
			w := &laneWorld{T: t, dir: t.TempDir(), url: database(t), random: rand.New(rand.NewPCG(seed, 4)), taken: map[string]bool{}}
			secret := "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32))
			w.x = newLaneReceiver(t, secret, seed)
			w.env = append(os.Environ(), "DATABASE_URL="+w.url, "RECEIVER="+w.x.URL, "LANE_SECRET="+secret)
			writeFile(t, w.dir, "hookfold.yaml", lanesConfig)
			w.run("migrate", "--apply")
			db, err := witness.Open(w.url)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.ExecContext(t.Context(), "create table audit (id text, key text, no integer, n integer)"); err != nil {
				t.Fatal(err)
			}
			for range kills {
				w.killDuring()
			}
			s := start(t, w.dir, w.env)
			w.send(s, 200, nil)
			w.until("one key stands still, and it alone", func() bool {
				out := w.run("lane", "list", "hook")
				return strings.Contains(out, "lane hook: 1 key stands still\n  k0\n") && strings.Contains(out, "answered 500")
			})
			w.x.recover()
			w.run("lane", "retry", "hook", "k0")
			w.until("all is through", func() bool { return w.x.lacks(w.taken) == 0 })
			var total, once, late int
			w.until("every statement was run", func() bool {
				// In one view: what was not answered before a kill may still come.
				err := db.QueryRowContext(t.Context(), "select count(*), count(distinct id) from audit").Scan(&total, &once)
				if err != nil {
					t.Fatal(err)
				}
				return once >= len(w.taken)
			})
			err = db.QueryRowContext(t.Context(), "select count(*) from audit a join audit b on a.key = b.key and a.n < b.n and a.no > b.no").Scan(&late)
			if total != once || late != 0 || err != nil {
				t.Errorf("%d effects of %d events, %d out of order, %v", total, once, late, err)
			}
			if err := s.stop(); err != nil {
				t.Errorf("%v\n%s", err, s.log.String())
			}
			w.x.mu.Lock()
			defer w.x.mu.Unlock()
			for _, f := range w.x.faults {
				t.Error(f)
			}
			t.Logf("%d events of %d keys in %d requests, %d kills", len(w.x.seen), laneKeys, w.x.calls, kills)
		})
	}
}

// laneWorld is a config with lanes, and what was sent to it.
type laneWorld struct {
	*testing.T
	dir, url string
	env      []string
	random   *rand.Rand
	x        *laneReceiver
	sent     int

	mu    sync.Mutex
	taken map[string]bool // ids that were answered 200
}

func (w *laneWorld) run(args ...string) string {
	w.Helper()
	out, err := command(w.dir, w.env, args...)
	if err != nil {
		w.Fatalf("hookfold %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (w *laneWorld) until(what string, f func() bool) {
	w.Helper()
	late := time.After(60 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-late:
			w.Fatalf("it never came to be that %s; %d of %d events lack\n%s", what, w.x.lacks(w.taken), len(w.taken), w.run("lane", "list"))
		}
	}
}

// killDuring starts the server, sends, and kills it at a random moment.
func (w *laneWorld) killDuring() {
	w.Helper()
	s := start(w.T, w.dir, w.env)
	// Some kills come while the lane waits for what the last one cut off, most
	// while it is at work.
	timer := time.AfterFunc(time.Duration(500+w.random.IntN(3000))*time.Millisecond, s.kill)
	defer timer.Stop()
	w.send(s, 1600, s.done)
	s.kill()
}

// send sends n events from 8 senders, each of which has keys of its own, and every
// third event twice; until the server is gone.
func (w *laneWorld) send(s *server, n int, gone <-chan struct{}) {
	var all sync.WaitGroup
	const senders = 8
	for c := range senders {
		random := rand.New(rand.NewPCG(w.random.Uint64(), uint64(c)))
		first := w.sent + c
		all.Go(func() {
			for i := 0; i < n/senders; i++ {
				no := first + i*senders
				id := fmt.Sprintf("e%d", no)
				body := fmt.Sprintf(`{"id":%q,"at":"2026-01-01T00:00:00Z","key":"k%d","no":%d}`, id, laneKey(c, senders, random), no)
				for range 1 + (no%3)/2 {
					if err := w.post(s, id, body); err != nil {
						if gone == nil {
							w.Error(err)
						}
						w.mu.Lock()
						w.sent = max(w.sent, no+senders*senders)
						w.mu.Unlock()
						return
					}
				}
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.sent = max(w.sent, first+n+senders)
		})
	}
	all.Wait()
}

// laneKey chooses one of a sender's keys; the slow ones seldom.
func laneKey(sender, senders int, random *rand.Rand) int {
	each := laneKeys / senders
	key := sender*each + random.IntN(each)
	if (key == 1 || key == 2) && random.IntN(12) > 0 {
		key = sender*each + 3 + random.IntN(each-3)
	}
	return key
}

func (w *laneWorld) post(s *server, id, body string) error {
	req, err := http.NewRequest(http.MethodPost, s.Receive+"/in/shop", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer x")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %d", resp.StatusCode)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken[id] = true
	return nil
}
