package pipeline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// rests gives the rows when all is quiet.
func (r *rig) rests(want map[string]string) {
	r.Helper()
	if diff := cmp.Diff(want, r.sink.show()); diff != "" {
		r.Errorf("rows: %s\nthe log says:\n%s", diff, r.log)
	}
}

// A chain of three, in every order: each a delivery of its own, all in one, and
// two and one.
func TestF11ParentsInEveryOrder(t *testing.T) {
	bodies := []string{`{"id":"a","value":"x","wants":"u"}`, `{"user":"u","name":"Ann","boss":"v"}`, `{"user":"v","name":"Bo"}`}
	for _, o := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		for split := range 4 {
			t.Run(fmt.Sprint(o, split), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t)
					r.options.Patience = Backoff{First: time.Hour, Most: time.Hour}
					r.start()
					var batch []string
					for i, n := range o {
						batch = append(batch, bodies[n])
						if split>>i&1 == 1 || i == 2 {
							r.send("[" + strings.Join(batch, ",") + "]")
							batch = nil
							time.Sleep(300 * time.Millisecond)
						}
					}
					time.Sleep(time.Second)
					r.rests(map[string]string{"item a": "x/", "user u": "Ann", "user v": "Bo"})
					if n := len(r.entries("")); n != 0 {
						t.Errorf("%d entries left", n)
					}
					r.stop()
				})
			})
		}
	}
}

// Folded with a change that is ready, one that is not would be hidden, or would
// be written before its time.
func TestF11OnlyReadyChangesAreFolded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.send(`{"user":"u2","name":"Bo"}`, `[{"id":"k","at":1,"value":"a","top":9,"wants":"u1"},{"id":"k","at":2,"value":"b","top":5,"wants":"u2"}]`)
		time.Sleep(time.Second)
		r.rests(map[string]string{"item k": "b/5", "user u2": "Bo"})
		r.send(`{"user":"u1","name":"Ann"}`)
		time.Sleep(time.Second)
		r.rests(map[string]string{"item k": "b/9", "user u2": "Bo", "user u1": "Ann"})
		r.stop()
	})
}

// The parent's own change is at fault, so what would be ready through it is not.
func TestF11AParentThatDiesMakesNobodyReady(t *testing.T) {
	for _, named := range []bool{true, false} {
		t.Run(fmt.Sprint("the sink names its row: ", named), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.sink.fail = func(b *sink.Batch) error {
					ref, bad := rowNamed(b, "user", "bad")
					switch {
					case bad && named:
						return &sink.BatchError{Rows: []sink.RowError{{RowRef: ref, Err: &sink.Error{Action: sink.Reject, Message: "user: no"}}}}
					case bad:
						return &sink.Error{Action: sink.Reject, Message: "user: no"}
					}
					return nil
				}
				r.send(`[{"id":"a","value":"x","wants":"bad"},{"id":"b","value":"x","wants":"good"},{"user":"below","name":"z","boss":"bad"},{"user":"bad","name":"x"},{"user":"good","name":"y"}]`)
				r.start()
				time.Sleep(5 * time.Second)
				r.rests(map[string]string{"item b": "x/", "user good": "y"})
				if w, d := r.entries(journal.Waiting), r.entries(journal.Dead); len(w) != 2 || len(d) != 1 || w[0].On != "user id=bad" {
					t.Errorf("waiting %+v, dead %+v", w, d)
				}
				// A person mends it.
				r.sink.set(func() { r.sink.fail = nil })
				if n, err := r.journal.Retry(context.Background(), journal.Filter{State: journal.Dead}); n != 1 || err != nil {
					t.Fatal(n, err)
				}
				time.Sleep(2 * time.Second)
				if n := len(r.sink.show()); n != 5 {
					t.Errorf("%d rows: %v", n, r.sink.show())
				}
				r.stop()
			})
		})
	}
}

// The parent is written by somebody else.
func TestAParentThatAnotherWritesIsSeenWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.send(`{"id":"a","value":"x","wants":"u"}`, `{"id":"b","type":"wait","top":3}`)
		time.Sleep(2 * time.Hour) // by now it is tried only once in a while
		asked := r.sink.questions()
		time.Sleep(time.Minute)
		if n := r.sink.questions() - asked; n < 100 || n > 130 {
			t.Errorf("the sink was asked %d times in a minute", n)
		}
		user := &merge.Row{Key: merge.NewKey("u"), Written: true, Scopes: make([]merge.Version, 1), Cells: make([]merge.Cell, 1)}
		item := &merge.Row{Key: merge.NewKey("b"), Written: true, Scopes: make([]merge.Version, 1), Cells: make([]merge.Cell, 2)}
		r.sink.set(func() { r.sink.rows["user u"], r.sink.rows["item b"] = user, item })
		time.Sleep(time.Second)
		r.rests(map[string]string{"item a": "x/", "item b": "/3", "user u": ""})
		r.stop()
	})
}

// The parent is written by the other loop between the question and the verdict:
// nothing is missing any more, and nothing is too late.
func TestAParentThatComesWhileItsChildIsJudged(t *testing.T) {
	r := New(newRig(t).options)
	c := &merge.Change{Table: itemTable.Table, Key: merge.NewKey("a"), Parents: []merge.Parent{{Table: userTable.Table, Key: merge.NewKey("u"), Wait: true}}}
	r.known.watch(r.rank[userTable.Table])
	now := time.Now()
	if v := r.unready(unit{change: c}, now, now); v.state != journal.Waiting || !v.until.Equal(now.Add(24*time.Hour)) || len(v.needs) != 1 {
		t.Errorf("before: %+v", v)
	}
	r.known.add(rowID{r.rank[userTable.Table], "u"})
	if v := r.unready(unit{change: c}, now, now); v.state != journal.Waiting || !v.until.Equal(now) || len(v.needs) != 0 || v.reason == "" {
		t.Errorf("after: %+v", v)
	}
}

func TestAParentThatNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.options.Poll = 10 * time.Second
		r.start()
		r.send(`{"event":"e1","type":"t","id":"a","value":"x","wants":"u"}`, `{"id":"b","value":"x","wants":"u"}`, `{"id":"c","value":"x","wants":"w","for":90}`)
		time.Sleep(time.Minute)
		want := []string{
			"wait  shop #1 e1 t → item id=a: waits for user id=u, at most 24 h (since 1 min; 2 events wait for it)",
			"wait  shop #2 → item id=b: waits for user id=u, at most 24 h (since 1 min; 2 events wait for it)",
			"wait  shop #3 → item id=c: waits for user id=w, at most 1 min 30 s (since 1 min)",
		}
		if diff := cmp.Diff(want, Lines(r.entries(""), time.Now())); diff != "" {
			t.Error(diff)
		}
		if w := r.runner.Waits(); w.Events != 3 || time.Since(w.Oldest).Round(time.Second) != time.Minute {
			t.Errorf("%+v", w)
		}
		time.Sleep(42 * time.Second)
		if diff := cmp.Diff([]string{"dead  shop #3 → item id=c: waited 1 min 30 s for user id=w, which did not come. When it is there run: hookfold dead retry 3"}, r.lines(journal.Dead)); diff != "" {
			t.Error(diff)
		}
		time.Sleep(24 * time.Hour)
		if n := len(r.entries(journal.Dead)); n != 3 {
			t.Errorf("%d dead after a day", n)
		}
		if w := r.runner.Waits(); w.Events != 0 {
			t.Errorf("%+v", w)
		}
		if st := r.runner.Stats(); st.Waited != 3 || st.Died != 3 {
			t.Errorf("%+v", st)
		}
		// It comes after all: a person tries again.
		r.send(`{"user":"u","name":"Ann"}`)
		time.Sleep(time.Second)
		if _, err := r.journal.Retry(context.Background(), journal.Filter{State: journal.Dead}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		r.rests(map[string]string{"item a": "x/", "item b": "x/", "user u": "Ann"})
		if n := len(r.entries(journal.Dead)); n != 1 {
			t.Errorf("%d dead", n)
		}
		r.stop()
	})
}

// A change waits though another one of its event is dead.
func TestAChangeOfADeadEventLandsWhenItsParentComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.options.Map = func(e *event.Event) mapping.Outcome {
			out := mapEvent(e)
			if e.Body.Get("wants").Text() != "" {
				out.Faults = []mapping.Fault{{Table: "other", Reason: "cannot be"}}
			}
			return out
		}
		r.send(`{"id":"a","value":"x","wants":"u"}`)
		r.start()
		time.Sleep(time.Minute)
		r.stop()
		r.start() // and it is remembered
		time.Sleep(time.Minute)
		r.send(`{"user":"u","name":"Ann"}`)
		time.Sleep(time.Second)
		r.rests(map[string]string{"item a": "x/", "user u": "Ann"})
		if diff := cmp.Diff([]string{"dead  shop #1 → other: cannot be"}, r.lines(journal.Dead)); diff != "" {
			t.Error(diff)
		}
		if st := r.runner.Stats(); st.Died != 0 {
			t.Errorf("it died again: %+v", st)
		}
		r.stop()
	})
}

func TestDroppedEventsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.send(`{"id":"a","value":"x","wants":"u"}`, `{"id":"b","value":"x","wants":"v"}`)
		time.Sleep(time.Second)
		if n, err := r.journal.Drop(context.Background(), journal.Filter{Position: 1}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		time.Sleep(2 * time.Minute)
		if w := r.runner.Waits(); w.Events != 1 {
			t.Errorf("%+v", w)
		}
		r.send(`{"user":"u","name":"Ann"}`)
		time.Sleep(time.Second)
		r.rests(map[string]string{"user u": "Ann"})
		r.stop()
	})
}

// Whichever comes first, and whether the values are c1@1 m=9 or c2@2 m=5.
func TestF11NotNullIsRetriedWhenItsKeyIsWritten(t *testing.T) {
	bodies := []string{`{"id":"a","at":1,"top":9}`, `{"id":"a","at":2,"value":"x","top":5}`}
	for _, o := range [][]int{{0, 1}, {1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.options.Patience = Backoff{First: time.Hour, Most: time.Hour}
			r.sink.notNull = true
			r.start()
			for _, n := range o {
				r.send(bodies[n])
				time.Sleep(time.Second)
			}
			time.Sleep(time.Second)
			r.rests(map[string]string{"item a": "x/9"})
			r.stop()
		})
	}
}

// A value is free when its holder takes another, and nothing that comes later
// is lost or shut out.
func TestAUniqueValueIsTakenWhenItIsFree(t *testing.T) {
	for _, nameless := range []bool{false, true} {
		t.Run(fmt.Sprint("the sink does not name rows: ", nameless), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.options.Patience = Backoff{First: time.Hour, Most: time.Hour}
				r.sink.unique, r.sink.nameless = true, nameless
				r.start()
				r.send(`{"id":"a","at":1,"value":"x"}`, `{"id":"b","at":1,"value":"y"}`)
				time.Sleep(time.Second)
				r.send(`{"id":"b","at":2,"value":"x","top":1}`, `{"id":"b","at":3,"value":"z","top":2}`, `{"id":"c","at":1,"value":"y"}`)
				time.Sleep(time.Second)
				r.send(`{"id":"b","at":4,"value":"x","top":3}`)
				time.Sleep(time.Second)
				if n := len(r.entries(journal.Waiting)); n != 1 {
					t.Errorf("%d wait: %v", n, r.lines(journal.Waiting))
				}
				r.send(`{"id":"a","at":2,"value":"w"}`)
				time.Sleep(1200 * time.Millisecond)
				r.rests(map[string]string{"item a": "w/", "item b": "x/3", "item c": "y/"})
				if n := len(r.entries("")); n != 0 {
					t.Errorf("%d entries left: %v", n, r.lines(journal.Waiting))
				}
				r.stop()
			})
		})
	}
}

func TestF20ACircleOfUniqueValuesIsSeenAndSwapped(t *testing.T) {
	for _, c := range []struct {
		name     string
		nameless bool
		bodies   []string
		want     map[string]string
	}{
		{"two, one by one", false, []string{`{"id":"a","at":2,"value":"y"}`, `{"id":"b","at":2,"value":"x"}`}, map[string]string{"item a": "y/", "item b": "x/", "item c": "z/"}},
		{"two in one", false, []string{`[{"id":"a","at":2,"value":"y"},{"id":"b","at":2,"value":"x"}]`}, map[string]string{"item a": "y/", "item b": "x/", "item c": "z/"}},
		{"three", false, []string{`{"id":"a","at":2,"value":"y"}`, `{"id":"b","at":2,"value":"z"}`, `{"id":"c","at":2,"value":"x"}`}, map[string]string{"item a": "y/", "item b": "z/", "item c": "x/"}},
		{"by a sink that names no rows", true, []string{`{"id":"a","at":2,"value":"y"}`, `{"id":"b","at":2,"value":"x"}`}, map[string]string{"item a": "y/", "item b": "x/", "item c": "z/"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.options.Patience = Backoff{First: time.Hour, Most: time.Hour}
				r.sink.unique, r.sink.nameless = true, c.nameless
				r.start()
				r.send(`{"id":"a","at":1,"value":"x"}`, `{"id":"b","at":1,"value":"y"}`, `{"id":"c","at":1,"value":"z"}`)
				time.Sleep(time.Second)
				for _, b := range c.bodies {
					r.send(b)
					time.Sleep(300 * time.Millisecond)
				}
				time.Sleep(1200 * time.Millisecond)
				r.rests(c.want)
				r.stop()
			})
		})
	}
}

// A sink that cannot swap: the circle is shown, and costs little.
func TestF20ACircleThatStaysIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.sink.unique = true
		r.sink.fail = func(b *sink.Batch) error { b.Park = false; return nil }
		r.options.Poll = 10 * time.Second
		r.start()
		r.send(`{"id":"a","at":1,"value":"x"}`, `{"id":"b","at":1,"value":"y"}`)
		time.Sleep(time.Second)
		r.send(`{"id":"a","at":2,"value":"y"}`, `{"id":"b","at":2,"value":"x"}`)
		time.Sleep(time.Hour)
		const want = "They wait in a circle, each for the next one's value: item id="
		for _, line := range r.lines(journal.Waiting) {
			if !strings.Contains(line, want) {
				t.Error(line)
			}
		}
		if n := len(r.entries(journal.Waiting)); n != 2 {
			t.Errorf("%d wait", n)
		}
		tries := r.sink.attempts()
		time.Sleep(time.Hour)
		if n := r.sink.attempts() - tries; n > 200 {
			t.Errorf("%d tries in an hour", n)
		}
		// A person sets a value free.
		r.sink.set(func() {
			free := *r.sink.rows["item a"]
			free.Cells = []merge.Cell{{Set: true}, {}}
			r.sink.rows["item a"] = &free
		})
		time.Sleep(6 * time.Minute)
		r.rests(map[string]string{"item a": "y/", "item b": "x/"})
		r.stop()
	})
}

// Rows of a table with occupants, or whose versions lie beside, are not tried
// together, and nobody is told that they are.
func TestWhatIsSaidOfACircle(t *testing.T) {
	plain := &sink.Table{Table: merge.NewTable(merge.Table{Name: "plain"})}
	held := &sink.Table{Table: merge.NewTable(merge.Table{Name: "held", Occupied: true})}
	r := New(Options{Tables: []*sink.Table{plain, held}})
	if got := r.together([]rowID{{table: 0}, {table: 0}}); !strings.HasPrefix(got, "They are tried together") {
		t.Error(got)
	}
	if got := r.together([]rowID{{table: 0}, {table: 1}}); !strings.HasPrefix(got, "The rows of held cannot take values from each other") {
		t.Error(got)
	}
}

// Many rows of a batch are at fault, and the sink names one of them at a time,
// or none.
func TestManyRowsAtFaultCostNoMoreThanATryEach(t *testing.T) {
	const n = 512
	for _, nameless := range []bool{false, true} {
		r := newRig(t)
		r.options.Patience = Backoff{First: time.Hour, Most: time.Hour}
		r.sink.notNull, r.sink.nameless = true, nameless
		r.send("[" + strings.Join(numbered(n, `{"id":"k%d","top":1}`), ",") + "]")
		r.start()
		r.settle()
		if got := len(r.entries(journal.Waiting)); got != n {
			t.Errorf("%d wait", got)
		}
		if tries := r.sink.tries; tries > n+n/8 {
			t.Errorf("%d tries for %d rows", tries, n)
		}
		r.stop()
	}
}

// A storm of events that wait must not hold up those that are ready.
func TestEventsThatWaitDoNotHoldUpOthers(t *testing.T) {
	r := newRig(t)
	r.sink.notNull = true
	r.start()
	r.send("[" + strings.Join(numbered(500, `{"id":"w%d","top":1}`), ",") + "]")
	r.settle()
	begun := time.Now()
	r.send(`{"id":"fresh","value":"x"}`)
	r.until(func() bool { return r.sink.show()["item fresh"] != "" })
	if d := time.Since(begun); d > time.Second {
		t.Errorf("it took %s", d)
	}
}

// Whatever waits for whatever, in any order and any batches, the rows in the end
// are those of all changes whose parents come, and nothing waits that could land.
func TestWaitsEndAlikeInAnyOrder(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rounds := 30
	if testing.Short() {
		rounds = 4
	}
	for round := range rounds {
		rnd := rand.New(rand.NewPCG(seed, uint64(round)))
		var bodies []string
		for range 1 + rnd.IntN(4) {
			user := string(rune('p' + rnd.IntN(4)))
			boss := ""
			if rnd.IntN(2) == 0 {
				boss = string(rune('p' + rnd.IntN(4)))
			}
			bodies = append(bodies, fmt.Sprintf(`{"user":%q,"at":%d,"name":"n%d","boss":%q}`, user, rnd.IntN(3), rnd.IntN(9), boss))
		}
		for item := range 3 {
			for v := range rnd.IntN(4) {
				b := fmt.Sprintf(`{"id":"i%d","at":%d,"top":%d`, item, v, rnd.IntN(9))
				if v > 0 || rnd.IntN(2) == 0 {
					// The values of the last versions are all different, those before may clash.
					value := fmt.Sprint("v", rnd.IntN(4))
					b += fmt.Sprintf(`,"value":%q`, value)
				}
				if rnd.IntN(2) == 0 {
					b += fmt.Sprintf(`,"wants":%q`, string(rune('p'+rnd.IntN(4))))
				} else if rnd.IntN(3) == 0 {
					b += fmt.Sprintf(`,"user":%q`, string(rune('p'+rnd.IntN(4))))
				}
				bodies = append(bodies, b+"}")
			}
			bodies = append(bodies, fmt.Sprintf(`{"id":"i%d","at":9,"value":"last%d"}`, item, item))
		}
		want := expected(t, bodies)
		for range 2 {
			rnd.Shuffle(len(bodies), func(i, j int) { bodies[i], bodies[j] = bodies[j], bodies[i] })
			var deliveries []string
			for rest := bodies; len(rest) > 0; {
				n := 1 + rnd.IntN(min(4, len(rest)))
				deliveries = append(deliveries, "["+strings.Join(rest[:n], ",")+"]")
				rest = rest[n:]
			}
			ok := t.Run(fmt.Sprint("round ", round), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t)
					r.sink.unique, r.sink.notNull, r.sink.nameless = true, true, rnd.IntN(2) == 0
					r.options.Changes = 1 + rnd.IntN(8)
					r.options.Patience = Backoff{First: time.Second, Most: 4 * time.Second}
					r.start()
					for _, d := range deliveries {
						r.send(d)
						time.Sleep(time.Duration(rnd.IntN(3)) * 100 * time.Millisecond)
					}
					time.Sleep(30 * time.Second)
					r.rests(want.rows)
					if got := len(r.entries(journal.Waiting)); got != want.waiting {
						t.Errorf("%d wait, want %d:\n%s", got, want.waiting, strings.Join(r.lines(journal.Waiting), "\n"))
					}
					if t.Failed() {
						t.Logf("deliveries:\n%s", strings.Join(deliveries, "\n"))
					}
					r.stop()
				})
			})
			if !ok {
				return
			}
		}
	}
}

type outcome struct {
	rows    map[string]string
	waiting int
}

// expected says what must come of events, by the closure over all of them.
func expected(t *testing.T, bodies []string) outcome {
	d := &event.Delivery{Source: "shop", Body: []byte("[" + strings.Join(bodies, ",") + "]")}
	split, err := events(d)
	if err != nil {
		t.Fatal(err)
	}
	var all []*merge.Change
	for _, e := range split.Events {
		all = append(all, mapEvent(e).Changes...)
	}
	there := map[string]bool{}
	name := func(t *merge.Table, k merge.Key) string { return t.Name + " " + string(k) }
	rows := map[string]*merge.Row{}
	add := func(t *merge.Table, r *merge.Row) {
		k := name(t, r.Key)
		there[k] = true
		if have := rows[k]; have != nil {
			r = merge.Join(t, have, r)
		}
		rows[k] = r
	}
	for again := true; again; {
		again = false
		all = slices.DeleteFunc(all, func(c *merge.Change) bool {
			for _, p := range c.Parents {
				if k := name(p.Table, p.Key); p.Wait && !there[k] && k != name(c.Table, c.Key) {
					return false
				}
			}
			for _, p := range c.Parents {
				if !p.Wait {
					add(p.Table, stub(p, c))
				}
			}
			add(c.Table, merge.Lift(c)[0])
			again = true
			return true
		})
	}
	out := outcome{rows: map[string]string{}, waiting: len(all)}
	for k, r := range rows {
		var cells []string
		for _, c := range r.Cells {
			cells = append(cells, c.Value.Text())
		}
		out.rows[k] = strings.Join(cells, "/")
	}
	return out
}
