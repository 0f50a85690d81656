package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/enrich/enrichtest"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/internal/witness"
)

const fetchConfig = `version: 1
listen: 127.0.0.1:0
admin: 127.0.0.1:0
journal: sqlite:hookfold.db
sources:
  shop: {preset: http, verify: none, id: event.id}
targets: {db: "%s"}
fetches:
  c: {url: '"%s/c/" + event.c', hosts: ["%s"], concurrency: 3}
tables:
  c:
    key: {id: text}
    columns: {ver: int}
    events: [{from: shop, fetch: c, key: {id: event.c}, version: [fetched.ver], set: {ver: fetched.ver}}]
`

// TestFetchSurvivesKills kills the server while it reads what its events need,
// from an API that is slow and fails. No event that was answered 200 is lost: each
// row is in the end at least as new as the last of its events that was.
// HOOKFOLD_KILLS says how often it is killed.
func TestFetchSurvivesKills(t *testing.T) {
	kills, seed := 3, uint64(time.Now().UnixNano())
	if n, err := strconv.Atoi(os.Getenv("HOOKFOLD_KILLS")); err == nil {
		kills = n
	}
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 6))
	var mu sync.Mutex
	ver := map[string]int{} // of the objects at the provider
	api := enrichtest.New(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(5 * time.Millisecond): // it is slow
		case <-r.Context().Done():
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if rnd.IntN(10) == 0 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		fmt.Fprintf(w, `{"ver":%d}`, ver[strings.TrimPrefix(r.URL.Path, "/c/")])
	})
	dir, database := t.TempDir(), testdb.SQLite(t)
	writeFile(t, dir, "hookfold.yaml", fmt.Sprintf(fetchConfig, database, api.URL, api.Host))
	run := func(args ...string) string {
		t.Helper()
		out, err := command(dir, os.Environ(), args...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return out
	}
	run("migrate", "--apply")

	acknowledged := map[string]int{} // the greatest version of an event that was answered 200
	sent, asked := 0, 0
	for kill := range kills + 1 {
		s := start(t, dir, os.Environ())
		last := kill == kills
		if !last {
			time.AfterFunc(time.Duration(30+rnd.IntN(400))*time.Millisecond, s.kill)
		}
		var senders sync.WaitGroup
		for range 8 {
			senders.Go(func() {
				for range 200 {
					mu.Lock()
					c := fmt.Sprint("c", rnd.IntN(20))
					ver[c]++
					v := ver[c]
					sent++
					n := sent
					mu.Unlock()
					resp, err := http.Post(s.Receive+"/in/shop", "application/json", strings.NewReader(fmt.Sprintf(`{"id":%d,"c":%q}`, n, c)))
					if err != nil {
						return // it was killed
					}
					resp.Body.Close()
					if resp.StatusCode == http.StatusOK {
						mu.Lock()
						acknowledged[c] = max(acknowledged[c], v)
						mu.Unlock()
					}
				}
			})
		}
		senders.Wait()
		if !last {
			<-s.done
			continue
		}
		db, err := witness.Open(database)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		_, err = become("", func(ctx context.Context) (string, error) {
			rows := map[string]int{}
			text, err := query(ctx, db, "select id, ver from c")
			for line := range strings.Lines(text) {
				id, v, _ := strings.Cut(strings.TrimSpace(line), "|")
				rows[id], _ = strconv.Atoi(v)
			}
			for c, v := range acknowledged {
				if rows[c] < v {
					return fmt.Sprintf("%s is at %d, and an event of %d was answered 200", c, rows[c], v), err
				}
			}
			return "", err
		})
		if err != nil {
			t.Errorf("%v\n%.3000s", err, s.log.String())
		}
		for _, state := range []string{"waiting", "dead"} {
			_, err := become("0", func(context.Context) (string, error) {
				var list struct{ Entries []any }
				err := json.Unmarshal([]byte(run(state, "list", "--json")), &list)
				return fmt.Sprint(len(list.Entries)), err
			})
			if err != nil {
				t.Errorf("events are %s: %v", state, err)
			}
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	}
	asked = len(api.Requests())
	t.Logf("%d events, %d requests, at most %d at a time", sent, asked, api.Most())
	if asked > sent/2 {
		t.Errorf("%d requests for %d events", asked, sent)
	}
}
