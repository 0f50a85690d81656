package sqlsink_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// inEveryOrder writes changes one by one in every order, each into a row of its
// own, and wants the same of all.
func inEveryOrder(t *testing.T, s sink.Sink, table *sink.Table, want string, changes ...func(key string) *merge.Change) {
	t.Helper()
	for i, order := range permutations(len(changes)) {
		key := fmt.Sprintf("k%d", i)
		for _, at := range order {
			write(t, s, table, changes[at](key))
		}
		if got := shown(t, s, table, key); got != want {
			t.Errorf("order %v:\n got %s\nwant %s", order, got, want)
		}
	}
}

func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for _, p := range permutations(n - 1) {
		for at := range n {
			out = append(out, slices.Insert(slices.Clone(p), at, n-1))
		}
	}
	return out
}

func TestF6NewColumnIsFilledByReplay(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		before := tableOf(t, "item", "id text", "a text")
		after := tableOf(t, "item", "id text", "a text", "b text")
		s := open(before)
		// The version is made of what the mapping can read, so it is the same
		// after the config has gained a column.
		was := say(t, before, "k", 1, map[string]any{"a": "x"})
		write(t, s, before, was)
		bring(t, s, after)
		now := say(t, after, "k", 1, map[string]any{"a": "x, corrected", "b": "y"})
		now.Version = was.Version
		write(t, s, after, now)
		mustShow(t, s, after, "k", "a=x, corrected b=y")
	})
}

func TestF7SkippedWritesCompareVersions(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		table := tableOf(t, "item", "id text", "a text")
		s := open(table)
		a := func(version int64, value string) func(string) *merge.Change {
			return func(key string) *merge.Change { return say(t, table, key, version, map[string]any{"a": value}) }
		}
		inEveryOrder(t, s, table, "a=A", a(1, "A"), a(3, "A"), a(2, "B"))
	})
}

func TestF8EachVersionedThingHasItsVersion(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		table := tableOf(t, "item", "id text", "f text first", "g text first", "n text scope n", "m text scope m")
		s := open(table)
		at := func(version int64, set map[string]any) func(string) *merge.Change {
			return func(key string) *merge.Change { return say(t, table, key, version, set) }
		}
		inEveryOrder(t, s, table, "f=X g=5 n=one m=two",
			at(1, map[string]any{"f": "X", "n": "old"}), at(2, map[string]any{"f": "Y", "g": "5", "m": "two"}), at(3, map[string]any{"n": "one"}))
	})
}

func TestF13DefaultsStayOutOfTheJoin(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		table := tableOf(t, "item", "id text", "note text", "qty int max", "low int min")
		s := open()
		run(t, s, `create table item (id text primary key, note text default 'none', qty int default 0, low int default 0)`)
		bring(t, s, table)
		at := func(version int64, set map[string]any) func(string) *merge.Change {
			return func(key string) *merge.Change { return say(t, table, key, version, set) }
		}
		inEveryOrder(t, s, table, "note=none qty=-5 low=7", at(1, map[string]any{}), at(2, map[string]any{"qty": "-5"}), at(3, map[string]any{"low": "7"}))
	})
}

func TestF21ValueOutsideTheLadderIsBelowAll(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		table := tableOf(t, "item", "id text", "step text ladder sent,read")
		s := open(table)
		run(t, s, `insert into item (id, step) values ('a', 'zombie'), ('b', 'read')`)
		for _, key := range []string{"a", "b"} {
			write(t, s, table, say(t, table, key, 1, map[string]any{"step": "sent"}))
		}
		mustShow(t, s, table, "a", "step=sent")
		mustShow(t, s, table, "b", "step=read")
	})
}

func TestF22BytesAreCompared(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		table := tableOf(t, "item", "id text", "top text max", "low text min", "tags text[] union", "big numeric max", "small numeric min", "id64 int max")
		s := open(table)
		at := func(set map[string]any) func(string) *merge.Change {
			return func(key string) *merge.Change { return say(t, table, key, 1, set) }
		}
		inEveryOrder(t, s, table, `top=a low=B tags=["B","a","ä"] big=10.5 small=-100000000000000000000.5 id64=9007199254740993`,
			at(map[string]any{"top": "a", "low": "a", "tags": `["a"]`, "big": "9", "small": "-9", "id64": "9007199254740992"}),
			at(map[string]any{"top": "B", "low": "B", "tags": `["B","ä"]`, "big": "10.5", "small": "-100000000000000000000.5", "id64": "9007199254740993"}),
			at(map[string]any{"top": "A", "low": "b", "tags": `["a"]`, "big": "10.45", "small": "3", "id64": "-1"}))
	})
}

func TestF23ScopesMoveAlone(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		table := tableOf(t, "item", "id text", "a text", "flag bool scope flag", "n int max")
		s := open(table)
		at := func(version int64, set map[string]any) func(string) *merge.Change {
			return func(key string) *merge.Change { return say(t, table, key, version, set) }
		}
		inEveryOrder(t, s, table, "a=full flag=true n=7", at(1, map[string]any{"a": "full"}), at(9, map[string]any{"flag": "true"}), at(8, map[string]any{"n": "7"}))
	})
}

func booking(t testing.TB, name string) *sink.Table {
	m := shape(t, name, "ref text", "status text", "invitee text", "no_show bool scope no_show", "peak int max", "channel text scope key", "changed_at timestamp touch")
	m.Occupied = true
	return &sink.Table{Name: name, Table: merge.NewTable(m)}
}

func occupant(t testing.TB, c *merge.Change, id string, since int64) *merge.Change {
	c.Occupant = &merge.Occupant{ID: id}
	if since > 0 {
		at, err := merge.TimeOf(time.Unix(since, 0))
		if err != nil {
			t.Fatal(err)
		}
		c.Occupant.Since = at
	}
	return c
}

// The reschedule of a booking whose cancel is stamped later than the new
// booking, and an occupant whose since comes only with a later event.
func TestF4OccupantTakesTheRowWhole(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		for _, place := range []sink.Placement{sink.InRow, sink.Beside} {
			table := booking(t, []string{"booking", "booking_beside"}[place])
			table.Versions = place
			s := open(table)
			at := func(id string, since, version int64, set map[string]any) func(string) *merge.Change {
				return func(key string) *merge.Change { return occupant(t, say(t, table, key, version, set), id, since) }
			}
			inEveryOrder(t, s, table, "status=active invitee=B no_show=NULL peak=3 channel=web",
				at("A", 1, 1, map[string]any{"status": "active", "invitee": "A", "peak": "9", "channel": "web"}),
				at("A", 1, 10, map[string]any{"status": "canceled", "invitee": "A"}),
				at("B", 0, 8, map[string]any{"peak": "3"}),
				at("B", 2, 9, map[string]any{"status": "active", "invitee": "B"}))
		}
	})
}

// writers writes changes by eight sinks at once: each writes all of them in an
// order and grouping of its own.
func writers(t *testing.T, url string, table *sink.Table, changes []*merge.Change) {
	t.Helper()
	var wg sync.WaitGroup
	for w := range 8 {
		s := open(t, url, []*sink.Table{table}, sqlsink.Options{Connections: 1})
		rnd := rand.New(rand.NewPCG(4, uint64(w)))
		mine := slices.Clone(changes)
		rnd.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
		wg.Go(func() {
			for len(mine) > 0 {
				n := min(len(mine), 1+rnd.IntN(9))
				b := &sink.Batch{Groups: []sink.Group{group(table, mine[:n]...)}}
				if _, err := s.Apply(t.Context(), b); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				mine = mine[n:]
			}
		})
	}
	wg.Wait()
}

// expect compares all rows with package merge.
func expect(t *testing.T, url string, table *sink.Table, changes []*merge.Change) {
	t.Helper()
	s := open(t, url, nil, sqlsink.Options{})
	live, err := s.Read(t.Context(), table, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := merge.Rows(table.Table, changes)
	if len(live) != len(want) {
		t.Errorf("%d rows, want %d", len(live), len(want))
	}
	for _, r := range want {
		var out []string
		for i, c := range table.Columns {
			if c.Rule != merge.Touch {
				out = append(out, c.Name+"="+r.Cells[i].Value.String())
			}
		}
		mustShow(t, s, table, strings.Join(r.Key.Parts(), "|"), strings.Join(out, " "))
	}
}

func TestF4EightSessions(t *testing.T) {
	for _, d := range databases {
		for _, place := range []sink.Placement{sink.InRow, sink.Beside} {
			t.Run(fmt.Sprint(d.name, place), func(t *testing.T) {
				url := d.url(t)
				table := booking(t, "booking")
				table.Versions = place
				bring(t, open(t, url, nil, sqlsink.Options{}), table)
				rnd := rand.New(rand.NewPCG(1, 2))
				var changes []*merge.Change
				for k := range 12 {
					for range 8 {
						id := rnd.IntN(3)
						set := map[string]any{}
						if rnd.IntN(3) > 0 {
							set["status"], set["invitee"] = fmt.Sprint("s", rnd.IntN(3)), fmt.Sprint("i", id)
						}
						if rnd.IntN(2) > 0 {
							set["peak"] = fmt.Sprint(rnd.IntN(9))
						}
						if rnd.IntN(4) == 0 {
							set["no_show"] = "true"
						}
						if rnd.IntN(4) == 0 {
							set["channel"] = fmt.Sprint("c", rnd.IntN(3))
						}
						c := say(t, table, fmt.Sprint("k", k), int64(rnd.IntN(9)), set)
						changes = append(changes, occupant(t, c, string(rune('A'+id)), int64(rnd.IntN(2)*(id+1))))
					}
				}
				writers(t, url, table, changes)
				expect(t, url, table, changes)
			})
		}
	}
}

// Many sessions insert the same parents and children at once: no unique
// violation, one row per key.
func TestEightSessionsInsertTheSameKeys(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.url(t)
			user, payment := tableOf(t, "app_user", "id text", "name text"), tableOf(t, "payment", "id text", "user_id text", "amount numeric")
			s := open(t, url, nil, sqlsink.Options{})
			run(t, s, `create table app_user (id text primary key)`,
				`create table payment (id text primary key, user_id text not null references app_user (id))`)
			bring(t, s, user, payment)
			var wg sync.WaitGroup
			for w := range 8 {
				s := open(t, url, nil, sqlsink.Options{Connections: 1})
				rnd := rand.New(rand.NewPCG(uint64(w), 1))
				wg.Go(func() {
					for range 20 {
						var parents, children []*merge.Change
						for range 5 {
							k := fmt.Sprint(rnd.IntN(15))
							parents = append(parents, say(t, user, "u"+k, 1, nil))
							children = append(children, say(t, payment, "p"+k, 1, map[string]any{"user_id": "u" + k, "amount": "1.5"}))
						}
						if _, err := s.Apply(t.Context(), &sink.Batch{Groups: []sink.Group{group(user, parents...), group(payment, children...)}}); err != nil {
							t.Errorf("writer %d: %v", w, err)
							return
						}
					}
				})
			}
			wg.Wait()
			for _, table := range []*sink.Table{user, payment} {
				if rows, err := s.Read(t.Context(), table, nil); err != nil || len(rows) != 15 {
					t.Errorf("%s: %d rows, %v", table.Name, len(rows), err)
				}
			}
		})
	}
}

// A batch that loses a deadlock is tried again, and its caller never hears of
// it. The other session has a long deadlock_timeout, so that the batch loses.
func TestDeadlocksAreTriedAgain(t *testing.T) {
	ctx := t.Context()
	url := testdb.Schema(t)
	a, b := tableOf(t, "a", "id text", "n int"), tableOf(t, "b", "id text", "n int")
	s := open(t, url, nil, sqlsink.Options{Connections: 1})
	bring(t, s, a, b)
	batch := func(n int64) *sink.Batch {
		set := map[string]any{"n": fmt.Sprint(n)}
		return &sink.Batch{Groups: []sink.Group{group(a, say(t, a, "k", n, set)), group(b, say(t, b, "k", n, set))}}
	}
	if _, err := s.Apply(ctx, batch(1)); err != nil {
		t.Fatal(err)
	}
	other := testdb.Connect(t, ctx, url)
	defer other.Close(ctx)
	for _, sql := range []string{"set deadlock_timeout = '10min'", "begin", "update b set n = n"} {
		if _, err := other.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Apply(ctx, batch(2))
		done <- err
	}()
	watch := testdb.Connect(t, ctx, url)
	defer watch.Close(ctx)
	for waiting := false; !waiting; {
		if err := watch.QueryRow(ctx, "select $1::int = any (select unnest(pg_blocking_pids(pid)) from pg_stat_activity)", int(other.PgConn().PID())).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{"update a set n = n", "commit"} { // the first closes the circle
		if _, err := other.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	mustShow(t, s, a, "k", "n=2")
	mustShow(t, s, b, "k", "n=2")
}
