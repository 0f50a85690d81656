package cases

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// outage leads Hookfold to its database through a proxy.
func outage(t *testing.T, on engine) (engine, func() *proxy) {
	var way *proxy
	on.through = func(url string) string {
		way = newProxy(t, url)
		return way.url(url)
	}
	return on, func() *proxy { return way }
}

// versions are ten versions of each of so many ids, shuffled.
func versions(t *testing.T, ids int) []string {
	var bodies []string
	for id := range ids {
		for v := range 10 {
			bodies = append(bodies, fmt.Sprintf(`{"id":%d,"s":"s%d","ver":%d}`, id, v+1, v+1))
		}
	}
	return shuffled(t, bodies)
}

const newest = `select count(*) from o where ver = 10 and s = 's10'`

// databaseDown refuses connections while events come, and kills the server
// meanwhile.
func databaseDown(t *testing.T, s *scenario, on engine) {
	on, way := outage(t, on)
	w, err := s.prepare(t, on)
	if err != nil {
		t.Fatal(err)
	}
	config := w.configs(1)[0]
	program(t, config, "migrate", "--apply")
	bodies := versions(t, 300)
	way().close()
	p := serve(t, config)
	send := func(bodies []string) {
		all2xx(t, fire(t, func(int) string { return p.Receive + "/in/in" }, bodies, 32))
	}
	send(bodies[:1500])
	p.kill()
	p = serve(t, config)
	send(bodies[1500:])
	becomes(t, w.url, `select count(*) from o`, "0")
	way().open()
	becomes(t, w.url, newest, "300")
	becomes(t, w.url, `select count(*) from o`, "300")
	if way().most > 5 {
		t.Errorf("%d connections at once after the outage", way().most)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}

// blackHole swallows what is sent to the database.
func blackHole(t *testing.T, s *scenario, on engine) {
	on, way := outage(t, on)
	w := begin(t, s, on)
	bodies := versions(t, 300)
	way().hold()
	all2xx(t, fire(t, w.in, bodies, 32))
	becomes(t, w.url, newest, "0")
	way().release(false)
	becomes(t, w.url, newest, "300")
	if way().most > 5 {
		t.Errorf("%d connections at once after the outage", way().most)
	}
}

// readOnly refuses writes for a while.
func readOnly(t *testing.T, s *scenario, on engine) {
	on.database = testdb.Postgres // its own, whose settings nobody else has
	w, err := s.prepare(t, on)
	if err != nil {
		t.Fatal(err)
	}
	config := w.configs(1)[0]
	program(t, config, "migrate", "--apply")
	u, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	database := strings.TrimPrefix(u.Path, "/")
	testdb.Exec(t, w.url, "alter database "+database+" set default_transaction_read_only = on")
	// Hookfold asks for a transaction that writes, whatever the default is, so
	// the refusal of a server that takes no writes at all is played too.
	const writable = "set default_transaction_read_only = off"
	testdb.Exec(t, w.url, writable,
		`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'cannot execute INSERT in a read-only transaction' using errcode = '25006'; end $$`,
		`create trigger refuse before insert or update on o for each row execute function refuse()`)
	p := serve(t, config)
	bodies := versions(t, 300)
	all2xx(t, fire(t, func(int) string { return p.Receive + "/in/in" }, bodies, 32))
	becomes(t, w.url, newest, "0")
	testdb.Exec(t, w.url, writable, "drop trigger refuse on o", "alter database "+database+" reset default_transaction_read_only")
	becomes(t, w.url, newest, "300")
	becomes(t, w.url, `select count(*) from o`, "300")
	if strings.Contains(p.log.String(), "dead") {
		t.Errorf("events died of it:\n%.3000s", p.log.String())
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}

// workerDies kills the process while its transaction is under way, and then
// leaves another one waiting for a database that does not answer.
func workerDies(t *testing.T, s *scenario, on engine) {
	on, way := outage(t, on)
	w, err := s.prepare(t, on)
	if err != nil {
		t.Fatal(err)
	}
	config := w.configs(1)[0]
	program(t, config, "migrate", "--apply")
	c := testdb.Connect(t, t.Context(), w.url)
	defer c.Close(context.WithoutCancel(t.Context()))
	tx, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `insert into o (id, s) values (1, 'mine')`); err != nil {
		t.Fatal(err)
	}
	p := serve(t, config)
	all2xx(t, fire(t, func(int) string { return p.Receive + "/in/in" }, []string{`{"id":1,"s":"a"}`}, 1))
	becomes(t, w.url, `select count(*) > 0 from pg_locks where not granted and transactionid = (select transactionid from pg_locks where pid = `+
		fmt.Sprint(c.PgConn().PID())+` and locktype = 'transactionid')`, "true")
	p.kill() // it has claimed the event and begun to write it
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = serve(t, config)
	becomes(t, w.url, `select count(*) from o where id = 1 and s = 'a'`, "1")
	if err := p.stop(); err != nil {
		t.Error(err)
	}

	// The batch timeout is 60 s; five here.
	w.options.Sink = func(target string, opened sink.Sink) sink.Sink {
		s, err := sqlsink.Open(t.Context(), w.plan.Config.TargetNamed(target).URL.Text, pipeline.Tables(w.plan, target), sqlsink.Options{BatchTimeout: 5 * time.Second})
		if err = errors.Join(err, opened.Close()); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if err := w.start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	}()
	way().hold()
	if err := w.arrive(arrival{Source: "in", Body: []byte(`{"id":2,"s":"a"}`)}); err != nil {
		t.Fatal(err)
	}
	if err := w.arrive(arrival{Source: "in", Body: []byte(`{"id":2,"s":"b"}`)}); err != nil {
		t.Fatal(err)
	}
	becomes(t, w.url, `select count(*) from o where id = 2`, "0")
	way().release(true) // new connections get through; the old one never answers
	becomes(t, w.url, `select s from o where id = 2`, "b")
}

// targetThatHangs has the target of one tenant hang, and looks at another one.
func targetThatHangs(t *testing.T, s *scenario, on engine) {
	hung := newProxy(t, on.database(t))
	two := *s
	two.config = fmt.Sprintf(`  hung: {url: "%s"}
sources:
  b: {preset: http, verify: none}
  c: {preset: http, verify: none}
tables:
  o:
    target: db
    key: {id: int}
    columns: {s: text}
    events: [{from: b, key: {id: event.id}, version: [position], set: {s: event.s}}]
  x:
    target: hung
    key: {id: int}
    columns: {s: text}
    events: [{from: c, key: {id: event.id}, version: [position], set: {s: event.s}}]
`, hung.url(on.database(t)))
	w := begin(t, &two, on)
	hung.hold()
	for i := range 20 {
		for _, source := range []string{"c", "b"} {
			if err := w.arrive(arrival{Source: source, Body: fmt.Appendf(nil, `{"id":%d,"s":"x"}`, i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	becomes(t, w.url, `select count(*) from o`, "20")
	hung.release(false)
	if err := w.taken(); err != nil {
		t.Error(err)
	}
}
