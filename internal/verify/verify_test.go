package verify_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/internal/verify"
	"github.com/hookfold/hookfold/internal/witness"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/journal/sqlite"
	"github.com/hookfold/hookfold/sink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yaml has a table of each kind.
const yaml = `
version: 1
listen: 127.0.0.1:0
journal: "sqlite:%s"
sources:
  shop: {preset: http, verify: none, id: event.id, type: event.type, time: event.at}
targets:
  db: {url: "%s"}
tables:
  plain:
    key: {k: text}
    columns:
      v: text
      note: {type: text, scope: note}
      top: {type: int, merge: max}
      low: {type: timestamp, merge: min}
      state: {type: text, merge: {ladder: [sent, read]}}
      tags: {type: "text[]", merge: union}
      origin: {type: text, merge: first}
      changed: {type: timestamp, merge: touch}
    events:
      - {from: shop, type: plain, key: {k: event.k}, set: {v: event.v, note: "event.?note", top: event.n, low: time, state: "event.?state", tags: "event.?tags", origin: event.v}}
  key_only: {key: {k: text}, columns: {}, events: [{from: shop, type: key, key: {k: event.k}}]}
  child:
    key: {k: text}
    columns: {parent: {type: text, references: key_only, missing: ensure}, later: {type: text, references: plain}}
    events: [{from: shop, type: child, key: {k: event.k}, set: {parent: event.parent, later: event.later}}]
  marked:
    key: {k: text}
    columns: {v: text}
    on_delete: mark
    events:
      - {from: shop, type: marked, key: {k: event.k}, set: {v: event.v}}
      - {from: shop, type: marked.gone, key: {k: event.k}, delete: true}
  removed:
    key: {k: text}
    columns: {v: text}
    on_delete: remove
    events:
      - {from: shop, type: removed, key: {k: event.k}, set: {v: event.v}}
      - {from: shop, type: removed.gone, key: {k: event.k}, delete: true}
  held:
    key: {k: text}
    columns: {v: text}
    events: [{from: shop, type: held, key: {k: event.k}, occupant: {id: event.o, since: time}, set: {v: event.v}}]
  line:
    key: {k: text, no: int}
    columns: {v: text}
    on_delete: remove
    events: [{from: shop, type: line, each: event.lines, replaces: {k: event.k}, key: {k: event.k, no: index}, set: {v: item}}]
  counted:
    key: {k: text}
    columns: {total: {type: numeric, merge: sum}, seen: {type: int, merge: count}}
    events: [{from: shop, type: counted, key: {k: event.k}, set: {total: event.n, seen: "true"}}]
  chain:
    key: {k: text}
    columns: {v: text}
    events: [{from: shop, type: chain, key: {k: event.k}, chain: {previous: "event.?old"}, set: {v: event.v}}]
  app:
    key: {k: text}
    columns: {v: {type: text, scope: v}}
    events: [{from: shop, type: app, key: {k: event.k}, set: {v: event.v}, if_missing: wait}]
`

type rig struct {
	*testing.T
	url  string
	text string // of the config
	cfg  *config.Config
	plan *mapping.Plan
	n    int
	// quote shows SQL where the engines differ.
	postgres bool
}

func engines() map[string]func(testing.TB) string {
	return map[string]func(testing.TB) string{"sqlite": testdb.SQLite, "postgres": testdb.Postgres}
}

func newRig(t *testing.T, engine string) *rig {
	r := &rig{T: t, url: engines()[engine](t), postgres: engine == "postgres"}
	r.text = fmt.Sprintf(yaml, filepath.Join(t.TempDir(), "journal.db"), r.url)
	r.load()
	plan := r.plan
	r.with(func(s sink.Sink) {
		statements, err := s.Plan(t.Context(), pipeline.Tables(plan, "db"))
		if err == nil {
			err = s.Execute(t.Context(), statements)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	return r
}

func (r *rig) with(f func(sink.Sink)) {
	r.Helper()
	sinks, err := daemon.OpenSinks(r.Context(), r.plan)
	if err != nil {
		r.Fatal(err)
	}
	defer sinks["db"].Close()
	f(sinks["db"])
}

// daemon runs a daemon around f.
func (r *rig) daemon(f func(*daemon.Daemon)) {
	r.Helper()
	d, err := daemon.Open(r.Context(), r.cfg, daemon.Options{NoListen: true})
	if err != nil {
		r.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := d.Stop(ctx); err != nil {
			r.Error(err)
		}
	}()
	if err := d.Start(r.Context()); err != nil {
		r.Fatal(err)
	}
	f(d)
}

// event appends an event; its fields are JSON members.
func (r *rig) event(d *daemon.Daemon, typ string, second int, fields string) {
	r.Helper()
	r.n++
	body := fmt.Sprintf(`{"id":"e%d","type":%q,"at":"2026-01-01T00:00:%02dZ",%s}`, r.n, typ, second, fields)
	if err := d.Append(r.Context(), &event.Delivery{Source: "shop", Body: []byte(body)}); err != nil {
		r.Fatal(err)
	}
}

// story sends events of every table.
func (r *rig) story() {
	r.Helper()
	r.daemon(func(d *daemon.Daemon) {
		for i := range 30 {
			k := i % 5
			r.event(d, "plain", i, fmt.Sprintf(`"k":"p%d","v":"v%d","n":%d,"state":"sent","tags":["t%d"]`, k, i, i, i%3))
			r.event(d, "key", i, fmt.Sprintf(`"k":"k%d"`, k))
			r.event(d, "child", i, fmt.Sprintf(`"k":"c%d","parent":"s%d","later":"p%d"`, k, k, k))
			r.event(d, "marked", i, fmt.Sprintf(`"k":"m%d","v":"v%d"`, k, i))
			r.event(d, "removed", i, fmt.Sprintf(`"k":"r%d","v":"v%d"`, k, i))
			r.event(d, "held", i, fmt.Sprintf(`"k":"h%d","o":"o%d","v":"v%d"`, k, i%7, i))
			r.event(d, "line", i, fmt.Sprintf(`"k":"l%d","lines":["a%d","b"]`, k, i))
			r.event(d, "counted", i, fmt.Sprintf(`"k":"t%d","n":%d.50`, k, i))
		}
		r.event(d, "marked.gone", 40, `"k":"m1"`)
		r.event(d, "removed.gone", 40, `"k":"r1"`)
		r.event(d, "line", 40, `"k":"l1","lines":["only"]`)
		r.event(d, "chain", 1, `"k":"x1","v":"one"`)
		r.event(d, "chain", 2, `"k":"x2","v":"two","old":"x1"`)
		r.event(d, "chain", 2, `"k":"y1","v":"single"`)
		r.event(d, "app", 3, `"k":"a1","v":"waits"`)
		r.drain(d)
	})
}

func (r *rig) drain(d *daemon.Daemon) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
	defer cancel()
	if _, err := d.Drain(ctx, nil); err != nil {
		r.Fatal(err)
	}
}

// sql runs statements by hand.
func (r *rig) sql(statements ...string) {
	r.Helper()
	r.with(func(s sink.Sink) {
		if err := s.Execute(r.Context(), statements); err != nil {
			r.Fatal(err)
		}
	})
}

// holds compares the one value of a query.
func (r *rig) holds(query, want string) {
	r.Helper()
	db, err := witness.Open(r.url)
	if err != nil {
		r.Fatal(err)
	}
	defer db.Close()
	var got string
	if err := db.QueryRowContext(r.Context(), query).Scan(&got); err != nil || got != want {
		r.Errorf("%s: %s, want %s (%v)", query, got, want, err)
	}
}

func (r *rig) options(j journal.Journal, s sink.Sink, tables ...string) verify.Options {
	o := verify.Options{Journal: j, Plan: r.plan, Target: "db", Sink: s, Patience: 50 * time.Millisecond}
	for _, t := range r.plan.Tables {
		if len(tables) == 0 || slices.Contains(tables, t.Config.Text) {
			o.Tables = append(o.Tables, t)
		}
	}
	return o
}

// check compares, and with repair mends and compares again.
func (r *rig) check(repair bool, tables ...string) *verify.Report {
	r.Helper()
	j, err := daemon.OpenJournal(r.cfg, sqlite.Reader)
	if err != nil {
		r.Fatal(err)
	}
	defer j.Close()
	var out *verify.Report
	r.with(func(s sink.Sink) {
		c, err := verify.Begin(r.Context(), r.options(j, s, tables...))
		if err != nil {
			r.Fatal(err)
		}
		defer func() {
			if err := c.Close(); err != nil {
				r.Error(err)
			}
		}()
		if out, err = c.Compare(r.Context()); err != nil {
			r.Fatal(err)
		}
		if !repair {
			return
		}
		res, err := c.Repair(r.Context())
		if err != nil || len(res.Unsettled) > 0 {
			r.Fatalf("repair: %v, %v", res.Unsettled, err)
		}
		if out, err = c.Compare(r.Context()); err != nil {
			r.Fatal(err)
		}
	})
	return out
}

// lines shows findings: kind, table, key and the columns that differ.
func lines(rep *verify.Report) []string {
	var out []string
	for _, t := range rep.Tables {
		for _, f := range t.Findings {
			line := string(f.Kind) + " " + t.Name + " " + f.Key
			if f.Kind == verify.Different || f.Kind == verify.Unchecked {
				for _, c := range f.Columns {
					line += " " + c.Name
				}
			}
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out
}

func (r *rig) want(rep *verify.Report, want ...string) {
	r.Helper()
	slices.Sort(want)
	if d := cmp.Diff(want, lines(rep)); d != "" {
		r.Errorf("findings (-want +got):\n%s", d)
	}
}

func eachEngine(t *testing.T, f func(r *rig)) {
	for name := range engines() {
		t.Run(name, func(t *testing.T) { f(newRig(t, name)) })
	}
}

// What nobody has touched is as the journal says.
func TestNothingDiffers(t *testing.T) {
	eachEngine(t, func(r *rig) {
		r.story()
		rep := r.check(false)
		r.want(rep)
		if rep.Drift() != 0 || rep.Open != 1 || rep.Pending != 0 || !rep.Whole {
			r.Errorf("%+v", rep)
		}
		for _, x := range rep.Tables {
			if x.Rows != x.Equal || x.Rows == 0 && x.Name != "app" {
				r.Errorf("%+v", x)
			}
		}
	})
}

// Rows edited, deleted and inserted by hand are found and said rightly, and
// mended as far as the rules go.
func TestChangesByHand(t *testing.T) {
	eachEngine(t, func(r *rig) {
		r.story()
		r.sql(
			"update plain set v = 'edited', changed = null where k = 'p1'",
			"update plain set top = 99 where k = 'p2'",
			"update plain set top = 1, state = null where k = 'p3'",
			"update plain set v = 'older', row_version = '2026-01-01T00:00:00.000000000Z/0/0000000000000000' where k = 'p4'",
			"update plain set origin = 'other' where k = 'p0'",
			"delete from key_only where k in ('k1', 's2')",
			"insert into key_only (k) values ('mine')",
			"insert into plain (k, v) values ('mine', 'x')",
			"delete from child where k = 'c3'",
			"update marked set v = 'a-edited' where k = 'm0'",
			"update marked set deleted_at = null where k = 'm1'",
			"delete from marked where k = 'm2'",
			"insert into removed (k, v) values ('r1', 'back')",
			"delete from removed where k = 'r2'",
			"update removed set v = 'a-edited' where k = 'r3'",
			"delete from held where k = 'h1'",
			"update held set v = 'edited' where k = 'h2'",
			"delete from line where k = 'l2' and no = 1",
			"insert into line (k, no, v) values ('l1', 1, 'back')",
			"delete from counted where k = 't1'",
			"update counted set total = total + 1000 where k = 't2'",
			"update counted set total = total - 3 where k = 't3'",
			"delete from hookfold_ledger where table_name = 'counted' and key = '[\"t3\"]' and column_name = 'total' and identity = (select min(identity) from hookfold_ledger where key = '[\"t3\"]')",
			"delete from chain where k = 'x1'",
			"insert into chain (k, v) values ('x2', 'by hand')",
			"update chain set v = 'edited' where k = 'y1'",
			"insert into app (k, v) values ('theirs', 'v')",
		)
		found := []string{
			"different plain k=p0 origin", "different plain k=p1 v", "different plain k=p2 top", "different plain k=p3 top state", "different plain k=p4 v",
			"missing key_only k=k1", "missing key_only k=s2", "extra key_only k=mine", "extra plain k=mine", "missing child k=c3",
			"different marked k=m0 v", "different marked k=m1 deleted_at", "missing marked k=m2",
			"extra removed k=r1", "missing removed k=r2", "different removed k=r3 v",
			"missing held k=h1", "different held k=h2 v",
			"missing line k=l2, no=1", "extra line k=l1, no=1",
			"missing counted k=t1", "different counted k=t3 total",
			"missing chain k=x1", "extra chain k=x2", "different chain k=y1 v",
		}
		rep := r.check(false)
		r.want(rep, found...)
		if rep.Drift() != int64(len(found)) || rep.Tables[slices.IndexFunc(rep.Tables, func(x verify.Table) bool { return x.Name == "app" })].Foreign != 1 {
			r.Errorf("%d of drift, %+v", rep.Drift(), rep.Tables)
		}
		for _, x := range rep.Tables {
			for _, f := range x.Findings {
				if f.Right != verify.Journal || f.Why == "" {
					r.Errorf("%s %s: right is %s, because %q", x.Name, f.Key, f.Right, f.Why)
				}
			}
		}
		// What is beyond what events say stays, and rows that no event is about.
		left := []string{"different plain k=p2 top", "extra key_only k=mine", "extra plain k=mine", "extra chain k=x2"}
		r.want(r.check(true), left...)
		r.want(r.check(false), left...)
	})
}

// Totals that are right stay, though what they have counted is forgotten.
func TestTotalsWhoseLedgerIsLost(t *testing.T) {
	eachEngine(t, func(r *rig) {
		r.story()
		r.sql("delete from hookfold_ledger")
		rep := r.check(true)
		if x := rep.Tables[slices.IndexFunc(rep.Tables, func(x verify.Table) bool { return x.Name == "counted" })]; rep.Drift() != 0 || x.Unchecked == 0 {
			r.Errorf("%d of drift, %+v", rep.Drift(), x)
		}
		r.holds("select total from counted where k = 't2'", "90")
	})
}

// What an event that has not landed is about is not blamed on anybody.
func TestWhatHasNotLandedIsNoDrift(t *testing.T) {
	eachEngine(t, func(r *rig) {
		r.story()
		r.daemon(func(d *daemon.Daemon) {
			r.event(d, "child", 50, `"k":"c1","parent":"new","later":"never"`) // waits
			r.event(d, "plain", 50, `"k":"p1","v":"new"`)                      // dead: no n
			r.drain(d)
		})
		rep := r.check(false)
		r.want(rep)
		if rep.Open != 3 {
			r.Errorf("%d are open", rep.Open)
		}
		// What a person has dropped is not missed, and not mended.
		r.daemon(func(d *daemon.Daemon) {
			r.event(d, "child", 50, `"k":"never","parent":"new","later":"never"`)
			r.drain(d)
			if n, err := d.Journal().Drop(r.Context(), journal.Filter{Table: "child"}); n != 2 || err != nil {
				r.Fatal(n, err)
			}
		})
		if rep := r.check(true); rep.Drift() != 0 || rep.Open != 2 {
			r.Errorf("%q, %d open", lines(rep), rep.Open)
		}
		r.sql("update child set parent = 'x' where k = 'c1'")
		r.want(r.check(false), "unchecked child k=c1 parent")
	})
}

// Deliveries that are not yet written are no drift either.
func TestWhatIsNotYetWrittenIsNoDrift(t *testing.T) {
	eachEngine(t, func(r *rig) {
		r.story()
		j, err := daemon.OpenJournal(r.cfg, sqlite.Owner)
		if err != nil {
			r.Fatal(err)
		}
		for i, body := range []string{
			`{"id":"z1","type":"plain","at":"2026-01-02T00:00:00Z","k":"p1","v":"z","n":1}`,
			`{"id":"z2","type":"plain","at":"2026-01-02T00:00:00Z","k":"new","v":"z","n":1}`,
		} {
			if err := j.Append(r.Context(), &event.Delivery{Source: "shop", Body: []byte(body), Received: time.Now()}); err != nil {
				r.Fatal(i, err)
			}
		}
		if err := j.Close(); err != nil {
			r.Fatal(err)
		}
		rep := r.check(false)
		r.want(rep)
		if rep.Pending != 2 {
			r.Errorf("%d pending", rep.Pending)
		}
	})
}

// A row whose events the journal does not hold any more cannot be checked.
func TestAJournalThatIsCut(t *testing.T) {
	eachEngine(t, func(r *rig) {
		r.story()
		r.retain()
		r.daemon(func(d *daemon.Daemon) {
			r.event(d, "plain", 50, `"k":"p1","v":"new","n":50`)
			r.event(d, "plain", 0, `"k":"p2","v":"late","n":0`)
			r.drain(d)
		})
		r.sql("update plain set v = 'edited' where k = 'p1'", "insert into plain (k, v) values ('mine', 'x')")
		rep := r.check(false, "plain")
		if rep.Whole {
			r.Error("it counts as whole")
		}
		got := lines(rep)
		if !slices.Contains(got, "extra plain k=mine") || !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "different plain k=p1 v") }) {
			r.Errorf("%q", got)
		}
		if x := rep.Tables[0]; x.Unchecked != 4 || x.Drift() != 2 {
			r.Errorf("%q, %+v", got, x)
		}
	})
}

// While a server writes the same rows all the time, nothing is called drift.
func TestBesideARunningServer(t *testing.T) {
	eachEngine(t, func(r *rig) {
		r.story()
		r.sql("update plain set v = 'edited' where k = 'p4'")
		r.daemon(func(d *daemon.Daemon) {
			stop, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				for i := range liveEvents {
					select {
					case <-stop:
						return
					default:
					}
					body := fmt.Sprintf(`{"id":"l%d","type":"plain","at":"2026-02-01T00:%02d:%02dZ","k":"p%d","v":"v%d","n":%d}`, i, i/60%60, i%60, i%3, i, i)
					if err := d.Append(context.Background(), &event.Delivery{Source: "shop", Body: []byte(body)}); err != nil {
						r.Error(err)
						return
					}
					body = fmt.Sprintf(`{"id":"n%d","type":"removed","at":"2026-02-01T00:%02d:%02dZ","k":"new%d","v":"v"}`, i, i/60%60, i%60, i)
					if err := d.Append(context.Background(), &event.Delivery{Source: "shop", Body: []byte(body)}); err != nil {
						r.Error(err)
						return
					}
				}
			}()
			rep := r.check(false)
			close(stop)
			<-done
			for _, x := range rep.Tables {
				for _, f := range x.Findings {
					if f.Kind != verify.Unchecked && f.Key != "k=p4" {
						r.Errorf("%s %s: %s %+v", x.Name, f.Key, f.Why, f.Columns)
					}
				}
			}
			if rep.Drift() != 1 {
				r.Errorf("%d of drift: %q", rep.Drift(), lines(rep))
			}
			r.drain(d)
		})
	})
}
