package cases

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookfold/hookfold/converge"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/internal/witness"
)

// coded are the cases, or variants, that are Go functions.
var coded = map[string]func(t *testing.T, s *scenario, on engine){
	"C06":                      slowRead,
	"C06/two-processes":        slowRead,
	"C15/two-processes":        twoProcesses,
	"C20/hot-keys":             hotKeys,
	"C20/two-tables":           hotKeys,
	"C20/key-only":             hotKeys,
	"C20/somebody-holds-a-row": somebodyHoldsARow,
	"C22/array-in-every-order": arrayInEveryOrder,
	"C23/two-processes":        sixteenCopies,
	"C26":                      killedBeforeEffect,
	"C35/every-split":          everySplit,
	"C41":                      databaseDown,
	"C41/black-hole":           blackHole,
	"C41/read-only":            readOnly,
	"C42":                      hotRow,
	"C42/counted":              hotCount,
	"C42/serializable":         serializable,
	"C43/errors":               poison,
	"C45":                      pooler,
	"C48":                      killedAfterAnswer,
	"C50":                      replayed,
	"C51":                      secretRotation,
	"C52":                      slowWorker,
	"C58/ten-thousand":         orphans,
	"C67":                      nothingStored,
	"C68":                      backlog,
	"C69":                      flood,
	"C69/target-that-hangs":    targetThatHangs,
	"C72":                      workerDies,
	"C73":                      tooMany,
	"C73/while-running":        whileRunning,
}

// begin prepares and starts a scenario, and stops it when the test ends.
func begin(t *testing.T, s *scenario, on engine, options ...func(*world)) *world {
	t.Helper()
	w, err := s.prepare(t, on)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range options {
		o(w)
	}
	if err := w.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if t.Failed() {
			t.Logf("%.5000s", w.log.String())
		}
	})
	return w
}

// in is the URL of the source named in, for fire.
func (w *world) in(int) string { return "http://" + w.daemon.Addr() + "/in/in" }

// ask returns the only value of a query as text.
func ask(t testing.TB, url, query string) (text string, err error) {
	db, err := witness.Open(url)
	if err != nil {
		return "", err
	}
	defer db.Close()
	err = db.QueryRowContext(t.Context(), query).Scan(&text)
	return text, err
}

// shuffled returns the texts in a random order, whose seed is logged.
func shuffled(t *testing.T, texts []string) []string {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rand.New(rand.NewPCG(seed, 9)).Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
	return texts
}

// configs writes the config for n processes, each with a journal of its own.
func (w *world) configs(n int) []string {
	var out []string
	for range n {
		out = append(out, writeFile(w.t, "hookfold.yaml", strings.Replace(w.config, w.plan.Config.Journal.URL.Text, "sqlite:journal.db", 1)))
	}
	return out
}

func twoProcesses(t *testing.T, s *scenario, on engine) {
	w, err := s.prepare(t, on)
	if err != nil {
		t.Fatal(err)
	}
	configs := w.configs(2)
	program(t, configs[0], "migrate", "--apply")
	first, second := serve(t, configs[0]), serve(t, configs[1])
	var bodies []string
	for i := range 1000 {
		for _, a := range s.arrivals {
			bodies = append(bodies, strings.ReplaceAll(string(a.Body), `"u1"`, fmt.Sprintf(`"u%d"`, i)))
		}
	}
	to := []string{first.Receive + "/in/in", second.Receive + "/in/in"}
	all2xx(t, fire(t, func(i int) string { return to[i%2] }, bodies, 64))
	becomes(t, w.url, `select count(*) from app_user where email = 'new@example.test' and seen_at = '2026-03-01T10:00:00.200Z'`, "1000")
	becomes(t, w.url, `select count(*) from app_user`, "1000")
	for _, p := range []*process{first, second} {
		if err := errors.Join(p.stop(), quiet(p.log.String())); err != nil {
			t.Error(err)
		}
	}
}

// hotKeys has eight servers on one database write 20 keys in batches of eight.
func hotKeys(t *testing.T, s *scenario, on engine) {
	shared := on
	url := on.database(t)
	shared.database = func(testing.TB) string { return url }
	var worlds []*world
	for range 8 {
		worlds = append(worlds, begin(t, s, shared))
	}
	const perWorld = 250
	var all sync.WaitGroup
	for n, w := range worlds {
		var bodies []string
		rnd := rand.New(rand.NewPCG(uint64(n), 20))
		for i := range perWorld {
			var elements []string
			for _, id := range rnd.Perm(20)[:8] {
				elements = append(elements, fmt.Sprintf(`{"id":%d,"n":%d,"ver":%d}`, id+1, n, 1+rnd.IntN(perWorld*2)))
			}
			if i == perWorld-1 { // the newest of every key, once more
				for id := range 20 {
					elements = append(elements, fmt.Sprintf(`{"id":%d,"n":9,"ver":1000}`, id+1))
				}
			}
			bodies = append(bodies, "["+strings.Join(elements, ",")+"]")
		}
		all.Go(func() {
			all2xx(t, fire(t, func(int) string { return "http://" + w.daemon.Addr() + "/in/bulk" }, bodies, 4))
		})
	}
	all.Wait()
	for _, w := range worlds {
		if err := w.taken(); err != nil {
			t.Fatal(err)
		}
		if err := quiet(w.log.String()); err != nil {
			t.Error(err)
		}
	}
	becomes(t, url, `select count(*) from k`, "20")
	if s.variant != "key-only" {
		becomes(t, url, `select count(*) from k where ver = 1000 and n = 9`, "20")
	}
	if s.variant == "two-tables" {
		becomes(t, url, `select count(*) from a where ver = 1000`, "20")
	}
}

func somebodyHoldsARow(t *testing.T, s *scenario, on engine) {
	w := begin(t, s, on)
	for _, a := range s.arrivals[:1] {
		if err := w.arrive(a); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.taken(); err != nil {
		t.Fatal(err)
	}
	c := testdb.Connect(t, t.Context(), w.url)
	defer c.Close(t.Context())
	tx, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `update k set n = 7 where id = 2`); err != nil {
		t.Fatal(err)
	}
	if err := w.arrive(s.arrivals[1]); err != nil {
		t.Fatal(err)
	}
	// Hookfold stands before the row until the person is done.
	becomes(t, w.url, `select count(*) > 0 from pg_locks where not granted and transactionid = (select transactionid from pg_locks where pid = `+
		fmt.Sprint(c.PgConn().PID())+` and locktype = 'transactionid')`, "true")
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.judge(), quiet(w.log.String())); err != nil {
		t.Error(err)
	}
}

func arrayInEveryOrder(t *testing.T, s *scenario, on engine) {
	elements := []string{`{"id":1,"s":"b","ver":2}`, `{"id":1,"s":"a","ver":1}`, `{"id":2,"s":"x","ver":1}`, `{"id":1,"s":"b","ver":2}`}
	for order := range converge.Orders(len(elements), 24, 0) {
		parts := make([]string, len(order))
		for i, e := range order {
			parts[i] = elements[e]
		}
		one := *s
		one.arrivals = []arrival{{Source: "list", Body: []byte("[" + strings.Join(parts, ",") + "]")}}
		if _, err := one.runOrder(t, on, []int{0}, rand.New(rand.NewPCG(1, 1))); err != nil {
			t.Fatalf("%v: %v", order, err)
		}
	}
}

func everySplit(t *testing.T, s *scenario, on engine) {
	var elements []string
	for _, a := range s.arrivals {
		list := strings.TrimSuffix(strings.TrimPrefix(string(a.Body), "["), "]")
		elements = append(elements, strings.Split(strings.ReplaceAll(list, "},{", "}\n{"), "\n")...)
	}
	if len(elements) != 3 {
		t.Fatalf("%d elements", len(elements))
	}
	for order := range converge.Orders(3, 6, 0) {
		for split := range converge.Splits(order) {
			one := *s
			one.arrivals = nil
			var given []int
			for n, request := range split {
				var parts []string
				for _, e := range request {
					parts = append(parts, elements[e])
				}
				one.arrivals = append(one.arrivals, arrival{Source: "crm", Body: []byte("[" + strings.Join(parts, ",") + "]")})
				given = append(given, n)
			}
			if _, err := one.runOrder(t, on, given, rand.New(rand.NewPCG(1, uint64(len(given))))); err != nil {
				t.Fatalf("%v: %v", split, err)
			}
		}
	}
}
