package cases

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/journal/journaltest"
)

// sixteenCopies sends copies of one event at the same moment to two processes.
func sixteenCopies(t *testing.T, s *scenario, on engine) {
	w, err := s.prepare(t, on)
	if err != nil {
		t.Fatal(err)
	}
	configs := w.configs(2)
	program(t, configs[0], "migrate", "--apply")
	ps := []*process{serve(t, configs[0]), serve(t, configs[1])}
	var bodies []string
	for range 16 {
		bodies = append(bodies, string(s.arrivals[0].Body))
	}
	all2xx(t, fire(t, func(i int) string { return ps[i%2].Receive + "/in/bank" }, bodies, 16))
	becomes(t, w.url, `select cents from balance where acct = 'A'`, "500")
	for _, p := range ps {
		if err := errors.Join(p.stop(), quiet(p.log.String())); err != nil {
			t.Error(err)
		}
	}
	becomes(t, w.url, `select cents from balance where acct = 'A'`, "500")
	becomes(t, w.url, `select count(*) from event_log`, "1")
}

// killedBeforeEffect kills the server at each point between the receipt of an
// event and the end of its work.
func killedBeforeEffect(t *testing.T, s *scenario, on engine) {
	const total = `select n from credit where acct = 'A'`
	body := string(s.arrivals[0].Body)
	points := map[string]func(t *testing.T, w *world, config string){
		"after 2xx": func(t *testing.T, w *world, config string) {
			p := serve(t, config)
			all2xx(t, fire(t, func(int) string { return p.Receive + "/in/pay" }, []string{body}, 1))
			p.kill()
		},
		"after the commit, before the journal knows": func(t *testing.T, w *world, _ string) {
			faults := &journaltest.Faults{}
			faults.Add(journaltest.Fault{Op: journaltest.OpDone, Err: errors.New("input/output error")})
			w.options.Journal = func(j journal.Journal) journal.Journal { return journaltest.Faulty(j, faults) }
			if err := w.start(); err != nil {
				t.Fatal(err)
			}
			if err := w.arrive(arrival{Source: "pay", Body: []byte(body)}); err != nil {
				t.Fatal(err)
			}
			becomes(t, w.url, total, "10")
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // it dies without an end
			_ = w.daemon.Stop(ctx)
			w.daemon, w.options.Journal = nil, nil
		},
	}
	if on.name == "postgres" {
		points["after BEGIN"] = func(t *testing.T, w *world, config string) {
			dieWaiting(t, w, config, body, `insert into credit (acct, n) values ('A', 1)`)
		}
		points["after the effect, before COMMIT"] = func(t *testing.T, w *world, config string) {
			testdb.Exec(t, w.url, `create function hold() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(26); return null; end $$`,
				`create constraint trigger hold after insert or update on credit deferrable initially deferred for each row execute function hold()`)
			dieWaiting(t, w, config, body, `select pg_advisory_xact_lock(26)`)
		}
	}
	for name, die := range points {
		for _, again := range []bool{false, true} { // the provider sends it again, or not
			t.Run(fmt.Sprintf("%s/%t", name, again), func(t *testing.T) {
				w, err := s.prepare(t, on)
				if err != nil {
					t.Fatal(err)
				}
				config := writeFile(t, "hookfold.yaml", w.config)
				program(t, config, "migrate", "--apply")
				die(t, w, config)
				p := serve(t, config)
				if again {
					all2xx(t, fire(t, func(int) string { return p.Receive + "/in/pay" }, []string{body}, 1))
				}
				becomes(t, w.url, total, "10")
				if err := p.stop(); err != nil {
					t.Error(err)
				}
				becomes(t, w.url, total, "10")
			})
		}
	}
}

// dieWaiting kills the server while it waits for what a statement has locked,
// and then takes the statement back.
func dieWaiting(t *testing.T, w *world, config, body, statement string) {
	t.Helper()
	c := testdb.Connect(t, t.Context(), w.url)
	defer c.Close(context.WithoutCancel(t.Context()))
	tx, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
	p := serve(t, config)
	all2xx(t, fire(t, func(int) string { return p.Receive + "/in/pay" }, []string{body}, 1))
	becomes(t, w.url, fmt.Sprintf(`select count(*) > 0 from pg_stat_activity where %d = any(pg_blocking_pids(pid))`, c.PgConn().PID()), "true")
	p.kill()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// hotCount counts what hotRow only keeps the newest of.
func hotCount(t *testing.T, s *scenario, on engine) {
	w := begin(t, s, on)
	var bodies []string
	for v := range 6000 {
		id := 1
		if v >= 5700 {
			id = v
		}
		bodies = append(bodies, fmt.Sprintf(`{"id":%d,"ver":%d,"event":"e%d"}`, id, v+1, v))
	}
	bodies = shuffled(t, append(bodies, bodies[:500]...)) // some come twice
	all2xx(t, fire(t, w.in, bodies, 64))
	becomes(t, w.url, `select n from counter where id = 1`, "5700")
	becomes(t, w.url, `select count(*) from counter where id > 1 and n = 1`, "300")
	if err := errors.Join(w.taken(), quiet(w.log.String())); err != nil {
		t.Error(err)
	}
	becomes(t, w.url, `select n from counter where id = 1`, "5700")
}

// replayed replays history over the rows that it has made.
func replayed(t *testing.T, s *scenario, on engine) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 50))
	var history []*event.Delivery
	for i := range 200 {
		id, kind, fields := rnd.IntN(20), "changed", ""
		switch rnd.IntN(5) {
		case 0:
			kind = "deleted"
		case 1:
			fields = fmt.Sprintf(`,"s":"s%d"`, i)
		case 2:
			fields = fmt.Sprintf(`,"t":"t%d"`, i)
		default:
			fields = fmt.Sprintf(`,"s":"s%d","t":"t%d"`, i, i)
		}
		d := &event.Delivery{Source: "in", Body: fmt.Appendf(nil, `{"event":"e%d","type":"%s","id":%d,"ver":%d%s}`, i, kind, id, rnd.IntN(100), fields)}
		history = append(history, d)
		if rnd.IntN(10) == 0 {
			history = append(history, d)
		}
	}
	of := *s
	s = &of
	s.Same = map[string][]string{"o": {"id", "s", "t", "ver"}, "counter": {"k", "n"}}
	w := begin(t, s, on)
	feed := func(w *world, deliveries []*event.Delivery) {
		t.Helper()
		for _, d := range deliveries {
			again := *d
			if err := w.daemon.Append(t.Context(), &again); err != nil {
				t.Fatal(err)
			}
		}
	}
	rows := func(w *world) string {
		t.Helper()
		if err := w.taken(); err != nil {
			t.Fatal(err)
		}
		text, err := w.same(w.plan, w.url, t)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	feed(w, history)
	state := rows(w)
	if !strings.Contains(state, "counter") {
		t.Fatalf("no rows: %s", state)
	}
	check := func(w *world, after string) {
		t.Helper()
		if have := rows(w); have != state {
			t.Errorf("after %s:\n%s\nnot\n%s", after, have, state)
		}
	}
	feed(w, history[:len(history)/2])
	check(w, "the first half again, in order")
	mixed := append([]*event.Delivery(nil), history...)
	rnd.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	feed(w, mixed)
	check(w, "all, in random order")
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { feed(w, mixed) })
	}
	feed(w, history[len(history)/2:])
	both.Wait()
	check(w, "all, twice at the same moment")
	empty := begin(t, s, on)
	feed(empty, mixed)
	check(empty, "all, into empty tables")
}

// orphans has thousands of children wait for parents that do not come, and then
// come.
func orphans(t *testing.T, s *scenario, on engine) {
	w := begin(t, s, on)
	pay := func(int) string { return "http://" + w.daemon.Addr() + "/in/pay" }
	invoice := func(id, customer string) string {
		return fmt.Sprintf(`{"type":"invoice.created","created":2,"data":{"id":"%s","customer":"%s","total":1}}`, id, customer)
	}
	customer := func(id string) string {
		return fmt.Sprintf(`{"type":"customer.created","created":1,"data":{"id":"%s","name":"N"}}`, id)
	}
	var bodies []string
	parents := 2000
	if on.name == "sqlite" {
		parents = 400 // the same code waits: ten thousand once is enough
	}
	for i := range 5 * parents {
		bodies = append(bodies, invoice(fmt.Sprint("in_", i), fmt.Sprint("cus_", i%parents)))
	}
	all2xx(t, fire(t, pay, bodies, 32))
	if err := w.taken(); err != nil {
		t.Fatal(err)
	}
	waiting := func(want int, within time.Duration) {
		t.Helper()
		began := time.Now()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			entries, err := w.daemon.Journal().Entries(t.Context(), journal.Filter{State: journal.Waiting})
			if err != nil {
				t.Fatal(err)
			}
			on := map[string]int{}
			for _, e := range entries {
				on[e.On]++
			}
			if len(entries) == want && (want == 0 || on["customer id=cus_7"] == 5) {
				return
			}
			if time.Since(began) > within {
				t.Fatalf("%d wait, for cus_7 %d; not %d, and 5", len(entries), on["customer id=cus_7"], want)
			}
			<-tick.C
		}
	}
	waiting(5*parents, 0)
	// Others are not held up.
	all2xx(t, fire(t, pay, []string{customer("cus_a"), invoice("in_a", "cus_a")}, 1))
	becomes(t, w.url, `select count(*) from invoice where id = 'in_a'`, "1")
	if err := errors.Join(w.stop(), w.start()); err != nil {
		t.Fatal(err)
	}
	waiting(5*parents, 0)
	bodies = nil
	for i := range parents {
		bodies = append(bodies, customer(fmt.Sprint("cus_", i)))
	}
	all2xx(t, fire(t, pay, bodies, 32))
	came := time.Now()
	becomes(t, w.url, `select count(*) from invoice`, fmt.Sprint(5*parents+1))
	t.Logf("%v after their parents the children are there", time.Since(came))
	if err := w.taken(); err != nil {
		t.Fatal(err)
	}
	waiting(0, patience)
}
