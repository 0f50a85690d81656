package pipeline

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// rowID names a row of the target.
type rowID struct {
	table int // place in Options.Tables
	key   merge.Key
}

// day is how long a change waits for a parent if it does not say.
const day = 24 * time.Hour

// ready splits changes into those whose parents are known, or made by another
// ready change among them, and the others. Which changes are ready does not
// depend on what they are folded with, because it is asked of each by itself.
func (l *landing) ready(ctx context.Context, units []unit) (ready, rest []unit, err error) {
	if err := l.ask(ctx, units); err != nil {
		return nil, nil, err
	}
	ready, rest = l.standing(units)
	return ready, rest, nil
}

// standing is ready by what is known so far. The ready ones come parents first.
func (l *landing) standing(units []unit) (ready, rest []unit) {
	made := map[rowID]bool{}
	rest = units
	for {
		var still []unit
		before := len(ready)
		for _, u := range rest {
			if slices.ContainsFunc(u.change.Parents, func(p merge.Parent) bool {
				id := rowID{l.r.rank[p.Table], p.Key}
				return l.r.waitsFor(u.change, p) && !made[id] && !l.r.known.has(id)
			}) {
				still = append(still, u)
				continue
			}
			ready = append(ready, u)
			l.r.makes(u.change, func(id rowID) { made[id] = true })
		}
		if rest = still; len(ready) == before || len(rest) == 0 {
			return ready, rest
		}
	}
}

// waitsFor tells whether a change is to wait for a parent. The row itself is no
// parent of its own.
func (r *Runner) waitsFor(c *merge.Change, p merge.Parent) bool {
	return p.Wait && (p.Table != c.Table || p.Key != c.Key)
}

// makes names the rows that are known once a change is written.
func (r *Runner) makes(c *merge.Change, f func(rowID)) {
	if !c.Replaces && c.IfMissing == merge.Insert {
		f(rowID{r.rank[c.Table], c.Key})
	}
	for _, p := range c.Parents {
		if !p.Wait {
			f(rowID{r.rank[p.Table], p.Key})
		}
	}
}

// waits tells whether any change waits for a parent.
func (r *Runner) anyWaits(units []unit) bool {
	return slices.ContainsFunc(units, func(u unit) bool {
		return slices.ContainsFunc(u.change.Parents, func(p merge.Parent) bool { return r.waitsFor(u.change, p) })
	})
}

// ask asks the sink which parents it knows that are not yet known here.
func (l *landing) ask(ctx context.Context, units []unit) error {
	keys := map[int][]merge.Key{}
	for _, u := range units {
		for _, p := range u.change.Parents {
			id := rowID{l.r.rank[p.Table], p.Key}
			if l.r.waitsFor(u.change, p) && !l.asked[id] && !l.r.known.has(id) {
				l.asked[id] = true
				l.r.known.watch(id.table)
				keys[id.table] = append(keys[id.table], p.Key)
			}
		}
	}
	for table, of := range keys {
		if err := l.r.learn(ctx, table, of); err != nil {
			return err
		}
	}
	return nil
}

// askAtOnce is how many keys a sink is asked for in one call.
const askAtOnce = 1000

// learn asks the sink which keys of a table it knows, and keeps what it does. It
// waits for a target that is down, and fails only when the runner stops. Of a
// table that the target cannot be asked about nothing is known.
func (r *Runner) learn(ctx context.Context, table int, keys []merge.Key) error {
	for some := range slices.Chunk(keys, askAtOnce) {
		err := r.persist(ctx, "look up rows of "+r.o.Tables[table].Name, func(ctx context.Context) error {
			is, err := r.knows(ctx, r.o.Tables[table], some)
			if err != nil {
				if r.obstinate(ctx) {
					return nil
				}
				return err
			}
			r.learnt(table, some, is)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) learnt(table int, keys []merge.Key, is []bool) {
	for i, known := range is {
		if known {
			r.known.add(rowID{table, keys[i]})
		}
	}
}

// obstinate tells that a call goes on failing though the target answers.
func (r *Runner) obstinate(ctx context.Context) bool {
	if r.health.read().Tries+1 < r.o.Stubborn && !r.stubborn() || r.o.Sink.Ping(ctx) != nil {
		return false
	}
	r.stubbornUntil.Store(r.o.Now().Add(stubbornFor).UnixNano())
	return true
}

// reader is a sink that can be asked for rows: every sink.Sink.
type reader interface {
	Read(ctx context.Context, t *sink.Table, keys []merge.Key) ([]*merge.Row, error)
}

// knows asks the sink for rows or the memory of their deletes.
func (r *Runner) knows(ctx context.Context, t *sink.Table, keys []merge.Key) ([]bool, error) {
	if k, ok := r.o.Sink.(sink.Knower); ok {
		known, err := k.Known(ctx, t, keys)
		if err == nil && len(known) != len(keys) {
			err = fmt.Errorf("the sink told of %d rows where it was asked for %d", len(known), len(keys))
		}
		return known, err
	}
	return r.there(ctx, t, keys)
}

// there asks the sink for rows that live.
func (r *Runner) there(ctx context.Context, t *sink.Table, keys []merge.Key) ([]bool, error) {
	out := make([]bool, len(keys))
	k, ok := r.o.Sink.(reader)
	if !ok {
		return out, nil
	}
	rows, err := k.Read(ctx, t, keys)
	if err != nil {
		return nil, err
	}
	for i := range min(len(rows), len(keys)) {
		out[i] = rows[i] != nil
	}
	return out, nil
}

// unready says what becomes of a change whose parents are not known: it waits,
// and is dead when the longest wait for one of them is over.
func (r *Runner) unready(u unit, since, now time.Time) verdict {
	c := u.change
	v := verdict{state: journal.Waiting, table: c.Table.Name, key: c.Table.Show(c.Key)}
	for _, p := range c.Parents {
		id := rowID{r.rank[p.Table], p.Key}
		if !r.waitsFor(c, p) || r.known.has(id) {
			continue
		}
		limit := p.For
		if limit <= 0 {
			limit = day
		}
		v.needs = append(v.needs, need{about: r.about(c), row: id, ask: askKnown})
		if until := since.Add(limit); v.until.IsZero() || until.Before(v.until) {
			v.until, v.on = until, p.Table.Name+" "+p.Table.Show(p.Key)
			v.reason = fmt.Sprintf("%s %s: waits for %s, at most %s", v.table, v.key, v.on, short(limit))
			if !until.After(now) {
				v.reason = fmt.Sprintf("%s %s: waited %s for %s, which did not come. When it is there run: hookfold dead retry %d", v.table, v.key, short(limit), v.on, c.From.Position)
			}
		}
	}
	switch {
	case v.until.IsZero(): // what it needs was written meanwhile: it is due at once
		v.until = now
		v.reason = fmt.Sprintf("%s %s: what it waited for has just come", v.table, v.key)
	case !v.until.After(now):
		v.state, v.needs = journal.Dead, nil
	}
	return v
}

// about is the row that a change is about.
func (r *Runner) about(c *merge.Change) rowID { return rowID{r.rank[c.Table], c.Key} }

// knowns remembers rows that the sink knows. What is known stays known, so there
// is nothing to forget but for want of room.
type knowns struct {
	mu         sync.Mutex
	young, old map[rowID]struct{}
	watched    map[int]bool // tables that are somebody's parent to be waited for
}

// maxKnown bounds each of the two generations of knowns.
const maxKnown = 50_000

func newKnowns() *knowns {
	return &knowns{young: map[rowID]struct{}{}, watched: map[int]bool{}}
}

func (k *knowns) watch(table int) { k.mu.Lock(); defer k.mu.Unlock(); k.watched[table] = true }

// any tells whether there are rows to be remembered.
func (k *knowns) any() bool { k.mu.Lock(); defer k.mu.Unlock(); return len(k.watched) > 0 }

func (k *knowns) has(id rowID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.young[id]; ok {
		return true
	}
	_, ok := k.old[id]
	if ok {
		k.put(id)
	}
	return ok
}

func (k *knowns) add(id rowID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.watched[id.table] {
		k.put(id)
	}
}

func (k *knowns) put(id rowID) {
	if len(k.young) >= maxKnown {
		k.young, k.old = map[rowID]struct{}{}, k.young
	}
	k.young[id] = struct{}{}
}
