package sqlsink_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sinktest"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// TestF1TwoSessions lets one session stop before its commit until the other is
// in its way, for every pair of changes of which one decides by what the other
// writes, in both orders.
func TestF1TwoSessions(t *testing.T) {
	engines := []struct{ name, at string }{{"postgres", testdb.Postgres(t)}, {"sqlite", testdb.SQLite(t)}}
	if len(withSQLServer()) > len(databases) {
		engines = append(engines, struct{ name, at string }{"sqlserver", testdb.SQLServer(t)})
	}
	for i, x := range []struct {
		name, key  string
		edit       func(*merge.Table)
		columns    []string
		before     string
		one, other string
		want       string
	}{
		{name: "delete and late write, no row", key: "id text", edit: removes, columns: []string{"v text"}, one: "k del @5", other: "k v=late @3", want: ""},
		{name: "delete and late write, a row", key: "id text", edit: removes, columns: []string{"v text"}, before: "k v=old @2", one: "k del @5", other: "k v=late @3", want: ""},
		{name: "mark and write", key: "id text", edit: marks, columns: []string{"v text"}, one: "k del @5", other: "k v=late @3", want: "k v=late deleted"},
		{name: "list and write", key: "g text, id text", edit: listed, columns: []string{"v text"}, one: "P list @6", other: "P|x v=late @5", want: ""},
		{name: "list and write, a row", key: "g text, id text", edit: listed, columns: []string{"v text"}, before: "P|x v=old @2", one: "P list @6", other: "P|x v=late @5", want: ""},
		{name: "stub and delete", key: "id text", edit: removes, columns: []string{"v text"}, one: "U del @5", other: "U stub @4", want: ""},
		{name: "link and write", key: "id text", edit: chained, columns: []string{"v text"}, one: "A>B v=b @2", other: "B v=x @3", want: "A v=x"},
		{name: "link and link", key: "id text", edit: chained, columns: []string{"v text"}, one: "A>B v=b @2", other: "B>C v=c @1", want: "A v=c"},
		{name: "two counts", key: "id text", columns: []string{"n int sum"}, one: "k n=5 @1 #a", other: "k n=7 @1 #b", want: "k n=12"},
		{name: "one event counted twice", key: "id text", columns: []string{"n int sum"}, one: "k n=5 @1 #a", other: "k n=5 @1 #a", want: "k n=5"},
		{name: "one event with another amount", key: "id text", columns: []string{"n int sum"}, one: "k n=5 @1 #a", other: "k n=7 @2 #a", want: "k n=7"},
	} {
		for _, d := range engines {
			for n, swapped := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/swapped=%v", x.name, d.name, swapped), func(t *testing.T) {
					made := tell(t, fmt.Sprintf("told_%d_%d", i, n), x.key, x.edit, x.columns...)
					first, second := open(t, d.at, nil, sqlsink.Options{}), open(t, d.at, nil, sqlsink.Options{})
					bring(t, first, made.table)
					if x.before != "" {
						made.write(first, made.parse(x.before)...)
					}
					one, other := x.one, x.other
					if swapped {
						one, other = other, one
					}
					done := make(chan error, 1)
					sqlsink.Cut(first, func() sinktest.Fault {
						// All but the commit is done. The other begins now.
						go func() {
							_, err := second.Apply(t.Context(), &sink.Batch{Groups: []sink.Group{made.group(made.parse(other)...)}})
							done <- err
						}()
						switch d.name {
						case "postgres":
							untilBlocked(t, d.at, done)
						case "sqlserver": // not every T-SQL engine tells who waits
							select {
							case err := <-done:
								done <- err
							case <-time.After(300 * time.Millisecond):
							}
						}
						return sinktest.NoFault
					})
					made.write(first, made.parse(one)...)
					if err := <-done; err != nil {
						t.Fatal(err)
					}
					if got := made.rows(second); got != x.want {
						t.Errorf("got %q, want %q", got, x.want)
					}
				})
			}
		}
	}
}

// untilBlocked waits until a session of the database waits for a lock, or the
// other writer is through.
func untilBlocked(t *testing.T, url string, done chan error) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c := testdb.Connect(t, ctx, url)
	defer c.Close(ctx)
	for {
		var n int
		err := c.QueryRow(ctx, "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'").Scan(&n)
		if err != nil {
			t.Error(err)
			return
		}
		select {
		case err := <-done:
			done <- err
			return
		default:
		}
		if n > 0 {
			return
		}
	}
}

// TestF5EightWritersOnOneChain links and writes one long chain from all sides at
// once.
func TestF5EightWritersOnOneChain(t *testing.T) {
	onThose(t, withSQLServer(), func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		made := tell(t, "told", "id text", chained, "v text", "n int sum scope key")
		s := open(made.table)
		var story []string
		for i := range 24 {
			story = append(story, fmt.Sprintf("c%02d>c%02d v=%d n=1 @%d #e%d", i, i+1, i+1, 100-i, i))
		}
		changes := made.parse(strings.Join(story, ";"))
		write8(t, s, made, changes)
		if got, want := made.rows(s), "c00 v=24 n=24"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestF14CountersAreExact counts from eight sides at once, with redelivered
// events and a total that was there before.
func TestF14CountersAreExact(t *testing.T) {
	onThose(t, withSQLServer(), func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		made := tell(t, "told", "id text", nil, "n numeric sum", "c int count")
		s := open(made.table)
		if err := s.Execute(t.Context(), []string{"insert into told (id, n) values ('k', 100.5)"}); err != nil {
			t.Fatal(err)
		}
		var story []string
		for i := range 60 {
			story = append(story, fmt.Sprintf("k n=0.1,c=1 @1 #e%d", i%40))
		}
		write8(t, s, made, made.parse(strings.Join(story, ";")))
		if got, want := made.rows(s), "k n=104.5 c=40"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// write8 lets eight writers write changes, two at a time, each of them twice.
func write8(t *testing.T, s sink.Sink, made told, changes []*merge.Change) {
	t.Helper()
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := w; i < 2*len(changes); i += 8 {
				a, b := changes[i%len(changes)], changes[(i*7+3)%len(changes)]
				if _, err := s.Apply(t.Context(), &sink.Batch{Groups: []sink.Group{made.group(a, b)}}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestF19Purge forgets deletes, and refuses what is older than the last of them
// and whose row is not there.
func TestF19Purge(t *testing.T) {
	for _, d := range withSQLServer() {
		t.Run(d.name, func(t *testing.T) {
			made := tell(t, "told", "id text", removes, "v text")
			url := d.url(t)
			s := open(t, url, nil, sqlsink.Options{})
			bring(t, s, made.table)
			made.write(s, made.parse("k v=a @1; k del @5; l v=l @2; l del @3; m v=m @1; n del @9; n v=n @10")...)
			known, err := s.(sink.Knower).Known(t.Context(), made.table, []merge.Key{"k", "l", "m", "n", "nobody"})
			if err != nil || fmt.Sprint(known) != "[true true true true false]" {
				t.Errorf("known: %v, %v", known, err)
			}
			purge := func(before time.Time) int {
				t.Helper()
				n, err := s.(sink.Purger).Purge(t.Context(), made.table, before)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			if n := purge(time.Now().Add(-time.Hour)); n != 0 {
				t.Errorf("%d deletes forgotten that are new", n)
			}
			if n := purge(time.Now().Add(time.Hour)); n != 3 {
				t.Errorf("%d deletes forgotten, want those of k, l and n", n)
			}
			e := refused(t, s, made.table, made.parse("k v=late @4")...)
			if e.Action != sink.Reject || !strings.Contains(e.Message, "older than the purge horizon") {
				t.Errorf("a write from before the delete: %v", e)
			}
			made.write(s, made.parse("k del @5; m v=new @3; x v=x @11; n v=n2 @8")...)
			if got, want := made.rows(s), "m v=new; n v=n; x v=x"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			any := open(t, url, nil, sqlsink.Options{AnyAge: true})
			made.write(any, made.parse("k v=late @4")...)
			if got, want := made.rows(s), "k v=late; m v=new; n v=n; x v=x"; got != want {
				t.Errorf("of any age: got %s, want %s", got, want)
			}
		})
	}
}
