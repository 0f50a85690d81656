package verify_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/internal/verify"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/journal/sqlite"
	"github.com/hookfold/hookfold/sink"
)

// change gives the rig another config, and brings the tables in line with it.
func (r *rig) change(old, new string) {
	r.Helper()
	if !strings.Contains(r.text, old) {
		r.Fatalf("the config has no %q", old)
	}
	r.text = strings.ReplaceAll(r.text, old, new)
	r.load()
	r.with(func(s sink.Sink) {
		statements, err := s.Plan(r.Context(), pipeline.Tables(r.plan, "db"))
		if err == nil {
			err = s.Execute(r.Context(), statements)
		}
		if err != nil {
			r.Fatal(err)
		}
	})
}

func (r *rig) load() {
	r.Helper()
	cfg, problems := config.Parse("hookfold.yaml", []byte(r.text), config.Options{})
	if err := problems.Err(); err != nil {
		r.Fatal(err)
	}
	r.cfg = cfg
	if r.plan, problems = mapping.Compile(cfg); problems.Err() != nil {
		r.Fatal(problems.Err())
	}
}

// rebuild rebuilds tables, and compares afterwards.
func (r *rig) rebuild(tables ...string) (*verify.Rebuilt, *verify.Report) {
	r.Helper()
	j, err := daemon.OpenJournal(r.cfg, sqlite.Operator)
	if err != nil {
		r.Fatal(err)
	}
	defer j.Close()
	var did *verify.Rebuilt
	var out *verify.Report
	r.with(func(s sink.Sink) {
		o := r.options(j, s, tables...)
		o.ToRebuild = true
		c, err := verify.Begin(r.Context(), o)
		if err != nil {
			r.Fatal(err)
		}
		defer c.Close()
		if did, err = c.Rebuild(r.Context()); err != nil {
			r.Fatal(err)
		}
		if out, err = c.Compare(r.Context()); err != nil {
			r.Fatal(err)
		}
		if err := daemon.KeepRules(r.Context(), j, o.Tables...); err != nil {
			r.Fatal(err)
		}
		if _, err := j.Retry(r.Context(), journal.Filter{State: journal.Waiting}); err != nil {
			r.Fatal(err)
		}
	})
	return did, out
}

// Corrected expressions and changed rules: rows are what the journal says under
// the new config, whatever join would make of them.
func TestRebuildReplacesWhatJoinsKeep(t *testing.T) {
	eachEngine(t, func(r *rig) {
		r.story()
		r.sql("alter table plain add column mine text", "update plain set mine = 'kept'", "update counted set total = total + 1000 where k = 't2'", "insert into plain (k, v) values ('alien', 'x')")
		r.change("top: event.n, low: time", "top: event.n - 100, low: time") // a max cannot fall by joining
		r.change("total: event.n", "total: event.n * 2")                     // and an event has counted
		r.change("{k: event.k}, set: {v: event.v}}\n      - {from: shop, type: marked.gone", "{k: event.k}, set: {v: 'event.v + \"!\"'}}\n      - {from: shop, type: marked.gone")
		did, rep := r.rebuild()
		r.want(rep, "extra plain k=alien")
		if did.Replaced != 5+5+4+1 || did.Joined != 0 || did.Inserted != 0 || len(did.Events.Unsettled) != 0 {
			r.Errorf("%+v", did)
		}
		r.holds("select top from plain where k = 'p4'", "-71")
		r.holds("select count(*) from plain where mine = 'kept'", "5")
		r.holds("select v from marked where k = 'm0'", "v25!")
		// 2 + 7 + … + 27, and a half for each, twice; and what was there before.
		r.holds("select total from counted where k = 't2'", "1180")
		r.want(r.check(false), "extra plain k=alien")
	})
}

// An emptied table, and a table that was dropped, are filled again.
func TestRebuildFillsAnEmptyTable(t *testing.T) {
	eachEngine(t, func(r *rig) {
		r.story()
		for _, x := range r.plan.Tables {
			r.sql("delete from " + x.Name)
		}
		r.sql("drop table plain")
		r.change("key_only:", "key_only:")
		did, rep := r.rebuild()
		r.want(rep)
		if did.Replaced != 0 || did.Inserted < 40 {
			r.Errorf("%+v", did)
		}
		r.want(r.check(false))
	})
}

// A table whose rules have changed is not written until it is rebuilt; then what
// has come meanwhile lands.
func TestF6ATableWhoseRuleHasChangedIsRebuiltFirst(t *testing.T) {
	eachEngine(t, func(r *rig) {
		r.story()
		r.change("top: {type: int, merge: max}", "top: {type: int, merge: min}")
		r.daemon(func(d *daemon.Daemon) {
			r.event(d, "plain", 50, `"k":"p1","v":"new","n":50`)
			r.event(d, "plain", 50, `"k":"p9","v":"new","n":50`)
			r.event(d, "marked", 50, `"k":"m0","v":"lands"`)
			r.drain(d)
			entries, err := d.Journal().Entries(r.Context(), journal.Filter{Table: "plain"})
			if err != nil || len(entries) != 2 {
				r.Fatalf("%v, %v", entries, err)
			}
			const want = "plain: the rule of column top was max and is min, and its rows were written by the former rule. To write them anew run: hookfold rebuild plain"
			if got := entries[0].Reason; !strings.Contains(got, want) {
				r.Errorf("%s\nwant %s", got, want)
			}
			r.holds("select v from marked where k = 'm0'", "lands")
			r.holds("select top from plain where k = 'p1'", "26")
			// While the server runs.
			_, rep := r.rebuild("plain")
			r.want(rep)
			r.drain(d)
			r.event(d, "plain", 51, `"k":"p1","v":"newer","n":0`)
			r.drain(d)
		})
		r.holds("select top from plain where k = 'p1'", "0")
		r.holds("select top from plain where k = 'p9'", "50")
		r.want(r.check(false))
	})
}

// Where the journal is cut, rows are joined and not replaced, and what could not
// be rebuilt whole is told.
func TestRebuildFromAJournalThatIsCut(t *testing.T) {
	eachEngine(t, func(r *rig) {
		r.story()
		r.retain()
		r.daemon(func(d *daemon.Daemon) {
			r.event(d, "plain", 50, `"k":"p1","v":"new","n":50`)
			r.drain(d)
		})
		r.change("top: event.n, low: time", "top: event.n - 100, low: time")
		r.sql("delete from plain where k = 'p1'")
		did, rep := r.rebuild("plain")
		if did.Replaced != 0 || did.Inserted != 1 || rep.Drift() != 0 {
			r.Errorf("%+v, %q", did, lines(rep))
		}
		r.holds("select top from plain where k = 'p1'", "-50")
		r.holds("select top from plain where k = 'p2'", "27")
	})
}

// Rows are rebuilt while events about them go on arriving: none is lost.
func TestRebuildBesideLiveEvents(t *testing.T) {
	eachEngine(t, func(r *rig) {
		r.story()
		r.change("top: event.n, low: time", "top: event.n - 100, low: time")
		r.change("total: event.n", "total: event.n * 2")
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
					for _, body := range []string{
						fmt.Sprintf(`{"id":"l%d","type":"plain","at":"2026-02-01T00:%02d:%02dZ","k":"p%d","v":"v%d","n":%d}`, i, i/60%60, i%60, i%5, i, i),
						fmt.Sprintf(`{"id":"n%d","type":"counted","at":"2026-02-01T00:%02d:%02dZ","k":"t%d","n":1}`, i, i/60%60, i%60, i%5),
					} {
						if err := d.Append(context.Background(), &event.Delivery{Source: "shop", Body: []byte(body)}); err != nil {
							r.Error(err)
							return
						}
					}
				}
			}()
			r.rebuild("plain", "counted")
			close(stop)
			<-done
			r.drain(d)
		})
		r.want(r.check(false))
	})
}

// liveEvents is how many events of a kind arrive beside what is tested, at most.
const liveEvents = 1000

// retain cuts the journal.
func (r *rig) retain() {
	r.Helper()
	j, err := daemon.OpenJournal(r.cfg, sqlite.Owner)
	if err != nil {
		r.Fatal(err)
	}
	if _, err := j.Retain(r.Context(), journal.Retention{Age: time.Nanosecond}, time.Now().Add(time.Hour)); err != nil {
		r.Fatal(err)
	}
	if err := j.Close(); err != nil {
		r.Fatal(err)
	}
}
