package cases

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/internal/witness"
	"github.com/hookfold/hookfold/sink"
)

// hotRow sends 95 of 100 events to one row, and looks at how long the others
// take.
func hotRow(t *testing.T, s *scenario, on engine) {
	w := begin(t, s, on)
	const hot, others = 19_000, 1_000
	var bodies []string
	for v := range hot {
		bodies = append(bodies, fmt.Sprintf(`{"id":1,"ver":%d}`, v+1))
	}
	for i := range others {
		bodies = append(bodies, fmt.Sprintf(`{"id":%d,"ver":1}`, i+2))
	}
	bodies = shuffled(t, bodies)
	seen := watch(t, w.url)
	answers := fire(t, w.in, bodies, 64)
	all2xx(t, answers, 5*time.Second)
	becomes(t, w.url, `select count(*) from counter`, fmt.Sprint(others+1), 30*time.Second)
	becomes(t, w.url, `select ver from counter where id = 1`, fmt.Sprint(hot), 30*time.Second)
	landed := seen()
	var took []time.Duration
	for _, a := range answers {
		var id int
		if _, err := fmt.Sscanf(a.body, `{"id":%d,`, &id); err != nil {
			t.Fatal(err)
		}
		if id != 1 {
			took = append(took, landed[id].Sub(a.at))
		}
	}
	slices.Sort(took)
	if p99 := took[len(took)*99/100]; p99 > time.Second {
		t.Errorf("99 of 100 other rows are there within %v of their answers, not within 1 s", p99)
	}
	if err := quiet(w.log.String()); err != nil {
		t.Error(err)
	}
}

// watch notes when rows of the table counter come to be seen, until the function
// that it returns is called.
func watch(t *testing.T, url string) func() map[int]time.Time {
	db, err := witness.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]time.Time{}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer db.Close()
		tick := time.NewTicker(25 * time.Millisecond)
		defer tick.Stop()
		for last := false; ; {
			rows, err := db.Query(`select id from counter`)
			if err != nil {
				t.Error(err)
				return
			}
			at := time.Now()
			for rows.Next() {
				var id int
				if err := rows.Scan(&id); err != nil {
					t.Error(err)
				}
				if _, ok := seen[id]; !ok {
					seen[id] = at
				}
			}
			rows.Close()
			if last {
				return
			}
			select {
			case <-tick.C:
			case <-end:
				last = true
			}
		}
	}()
	return func() map[int]time.Time {
		close(end)
		<-ended
		return seen
	}
}

// serializable has two servers write one hot row at SERIALIZABLE.
func serializable(t *testing.T, s *scenario, on engine) {
	shared := on
	database := on.database(t)
	shared.database = func(testing.TB) string { return database }
	shared.through = func(raw string) string { return raw + "&default_transaction_isolation=serializable" }
	worlds := []*world{begin(t, s, shared), begin(t, s, shared)}
	var bodies []string
	for v := range 2000 {
		bodies = append(bodies, fmt.Sprintf(`{"id":%d,"ver":%d}`, 1+v%3, v+1))
	}
	bodies = shuffled(t, bodies)
	all2xx(t, fire(t, func(i int) string { return worlds[i%2].in(i) }, bodies, 32), 10*time.Second)
	becomes(t, database, `select string_agg(id || '@' || ver, ' ' order by id) from counter`, "1@1999 2@2000 3@1998", 30*time.Second)
	for _, w := range worlds {
		if err := errors.Join(w.taken(), quiet(w.log.String())); err != nil {
			t.Error(err)
		}
	}
}

// backlog sends what has queued up at a provider, with its copies, beside live
// events.
func backlog(t *testing.T, s *scenario, on engine) {
	on, way := outage(t, on)
	w := begin(t, s, on)
	rnd := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 68))
	var queued []string
	for i := range 20_000 {
		for range 1 + rnd.IntN(3) {
			queued = append(queued, fmt.Sprintf(`{"id":%d,"ver":%d}`, i%2000, i/2000+1))
		}
	}
	var live sync.WaitGroup
	end := make(chan struct{})
	var lived []answered
	live.Go(func() {
		client := &http.Client{Timeout: 30 * time.Second}
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			lived = append(lived, post(client, w.in(0), fmt.Sprintf(`{"id":%d,"ver":1}`, 100_000+i)))
			select {
			case <-tick.C:
			case <-end:
				return
			}
		}
	})
	answers := fire(t, w.in, shuffled(t, queued), 64)
	close(end)
	live.Wait()
	all2xx(t, answers, 5*time.Second)
	all2xx(t, lived, 5*time.Second)
	becomes(t, w.url, `select count(*) from o where ver = 10 and id < 2000`, "2000", 30*time.Second)
	becomes(t, w.url, `select count(*) from o where id >= 100000`, fmt.Sprint(len(lived)), 10*time.Second)
	if way().most > 5 {
		t.Errorf("%d connections to the database at once", way().most)
	}
}

// busy is a database that takes 300 ms for every thousand rows, so that it is
// not by its speed that nobody waits.
type busy struct{ sink.Sink }

func (b busy) Apply(ctx context.Context, batch *sink.Batch) (*sink.Result, error) {
	rows := 0
	for _, g := range batch.Groups {
		rows += len(g.Rows)
	}
	select {
	case <-time.After(time.Duration(rows) * 300 * time.Microsecond):
	case <-ctx.Done():
	}
	return b.Sink.Apply(ctx, batch)
}

// flood sends 50,000 events of one tenant, and then one of another.
func flood(t *testing.T, s *scenario, on engine) {
	w := begin(t, s, on, func(w *world) {
		w.options.Sink = func(_ string, opened sink.Sink) sink.Sink { return busy{opened} }
	})
	client := &http.Client{Timeout: 30 * time.Second}
	var sent sync.WaitGroup
	for d := range 500 {
		var body bytes.Buffer
		for i := range 100 {
			fmt.Fprintf(&body, `,{"id":%d,"s":"%d"}`, d*100+i, d)
		}
		body.Bytes()[0] = '['
		body.WriteByte(']')
		sent.Go(func() {
			if a := post(client, "http://"+w.daemon.Addr()+"/in/a", body.String()); a.status != http.StatusOK {
				t.Errorf("answered %d", a.status)
			}
		})
	}
	sent.Wait()
	if a := post(client, "http://"+w.daemon.Addr()+"/in/b", `[{"id":1,"s":"b"}]`); a.status != http.StatusOK {
		t.Fatalf("answered %d", a.status)
	}
	becomes(t, w.url, `select count(*) from o where tenant = 'b'`, "1", 2*time.Second)
	becomes(t, w.url, `select count(*) from o where tenant = 'a'`, "50000", 60*time.Second)
}

// pooler runs behind a PgBouncer that is restarted.
func pooler(t *testing.T, s *scenario, on engine) {
	program := os.Getenv("HOOKFOLD_TEST_PGBOUNCER")
	if program == "" {
		t.Skip("HOOKFOLD_TEST_PGBOUNCER names no pgbouncer: nothing runs behind one")
	}
	var bouncer *pgbouncer
	on.through = func(raw string) string {
		bouncer = startPgBouncer(t, program, raw)
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		u.Host = bouncer.addr
		return u.String() + `", pooler: "transaction` // the rest of the target
	}
	on.database = testdb.Postgres // a pooler takes no search_path
	w := begin(t, s, on)
	var bodies []string
	for v := range 2000 {
		bodies = append(bodies, fmt.Sprintf(`{"id":%d,"s":"s","ver":%d}`, v%100, v+1))
	}
	bodies = shuffled(t, bodies)
	all2xx(t, fire(t, w.in, bodies[:1000], 16), 5*time.Second)
	bouncer.restart()
	all2xx(t, fire(t, w.in, bodies[1000:], 16), 5*time.Second)
	becomes(t, w.url, `select count(*) from o where ver > 1900`, "100", 30*time.Second)
	becomes(t, w.url, `select count(*) from o`, "100", time.Second)
	for _, said := range []string{"prepared statement", "dead", "42P05", "26000", "08P01"} {
		if strings.Contains(w.log.String(), said) {
			t.Errorf("the log speaks of %s", said)
		}
	}
}

// pgbouncer is a running PgBouncer.
type pgbouncer struct {
	t       *testing.T
	program string
	conf    string
	addr    string
	cmd     *exec.Cmd
}

func startPgBouncer(t *testing.T, program, database string) *pgbouncer {
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	l.Close()
	dir, err := os.MkdirTemp("", "pgbouncer") // of which another user can read
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := &pgbouncer{t: t, program: program, conf: filepath.Join(dir, "pgbouncer.ini"), addr: addr}
	text := fmt.Sprintf("[databases]\n* = host=%s port=%s user=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 100\n",
		u.Hostname(), u.Port(), u.User.Username(), port)
	if err := errors.Join(os.WriteFile(b.conf, []byte(text), 0o644), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *pgbouncer) start() {
	args := []string{b.conf}
	if os.Getuid() == 0 { // it does not run as root
		args = []string{"-u", "nobody", b.conf}
	}
	b.cmd = exec.Command(b.program, args...)
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if c, err := net.Dial("tcp", b.addr); err == nil {
			c.Close()
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			b.t.Fatal("pgbouncer does not start")
		}
	}
}

func (b *pgbouncer) stop() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
}

func (b *pgbouncer) restart() {
	b.stop()
	b.start()
}
