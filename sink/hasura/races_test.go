package hasura_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/hasura"
	"github.com/hookfold/hookfold/sink/hasura/hasuratest"
)

// between holds the answer of the first query that names a type, lets others
// work, and then has it go on.
func (r *rig) between(t *testing.T, typ string, first *sink.Batch, others func()) {
	t.Helper()
	reached, release := make(chan struct{}), make(chan struct{})
	var held atomic.Bool
	r.server.Faults(func(q hasuratest.Request) *hasuratest.Fault {
		if q.Mutation || !strings.Contains(q.Body, ":"+typ+"!") || held.Swap(true) {
			return nil
		}
		return &hasuratest.Fault{Hold: func() {
			close(reached)
			<-release
		}}
	})
	defer r.server.Faults(nil)
	done := make(chan error, 1)
	go func() {
		_, err := r.Apply(t.Context(), first)
		done <- err
	}()
	select {
	case <-reached:
	case err := <-done:
		close(release)
		t.Fatalf("nothing asked for %s: %v", typ, err)
	}
	others()
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// A writer that has read the records before another joined its own would show
// what is stale, at the same since, occupant and row version.
func TestF4StaleProjectionIsPutRight(t *testing.T) {
	table := booking(t)
	r := start(t, hasuratest.Options{}, hasura.Options{}, nil, table)
	a := func(version int64, values set) *merge.Change {
		return occupant(say(t, table, "k", version, values), "A", 1)
	}
	write(t, r, table, a(1, set{"status": "active", "invitee": "A"}))
	for range 2 {
		const typ = "booking_occupants_bool_exp"
		r.between(t, typ, batch(table, a(2, set{"seats": "2"})), func() {
			write(t, r, table, a(3, set{"no_show": "true", "seats": "5"}))
		})
		mustShow(t, r, table, "k", "status=active invitee=A no_show=true seats=5 channel=NULL")
		// The same with another occupant that takes the row.
		r.between(t, typ, batch(table, a(2, set{"seats": "3"})), func() {
			write(t, r, table, occupant(say(t, table, "k", 1, set{"status": "new", "invitee": "B"}), "B", 2))
		})
		mustShow(t, r, table, "k", "status=new invitee=B no_show=NULL seats=NULL channel=NULL")
		write(t, r, table, occupant(say(t, table, "k", 9, set{"status": "active", "invitee": "A"}), "A", 3))
		table = booking(t)
		r = start(t, hasuratest.Options{}, hasura.Options{}, nil, table)
		write(t, r, table, a(1, set{"status": "active", "invitee": "A"}))
	}
}

// A union is read, joined and written back: only where it still is what was read.
func TestSwapsAreGuarded(t *testing.T) {
	for _, arrays := range []bool{false, true} {
		table := tableOf(t, "item", "id text", "tags text[] union", "top text max", "low text min")
		r := start(t, hasuratest.Options{OldArrays: arrays}, hasura.Options{}, nil, table)
		write(t, r, table, say(t, table, "k", 1, set{"tags": `["a"]`, "top": "b", "low": "b"}))
		r.between(t, "item_bool_exp", batch(table, say(t, table, "k", 1, set{"tags": `["c,\"\nx"]`, "top": "é", "low": "a"})), func() {
			write(t, r, table, say(t, table, "k", 1, set{"tags": `["b"]`, "top": "z", "low": "B"}))
		})
		mustShow(t, r, table, "k", `tags=["a","b","c,\"\nx"] top=é low=B`)
		// The row itself comes while it is being looked for.
		r.between(t, "item_bool_exp", batch(table, say(t, table, "new", 1, set{"tags": `["x"]`, "top": "a", "low": "a"})), func() {
			write(t, r, table, say(t, table, "new", 1, set{"tags": `["y"]`, "top": "b", "low": "b"}))
		})
		mustShow(t, r, table, "new", `tags=["x","y"] top=b low=a`)
		if got := write(t, r, table, say(t, table, "new", 1, set{"tags": `["x"]`, "top": "a", "low": "b"})); got.Written != 0 || got.Unchanged != 1 {
			t.Errorf("again: %+v", got)
		}
	}
}

// F22: the order of texts is that of bytes, whatever the collation of their
// column.
func TestF22CollationsDoNotDecide(t *testing.T) {
	table := tableOf(t, "item", "id text", "top text max", "low text min", "step text ladder sent,read")
	r := start(t, hasuratest.Options{}, hasura.Options{}, []string{
		`create table item (id text primary key, top text collate "en-x-icu", low text collate "en-x-icu", step text collate "en-x-icu", row_version text collate "en-x-icu")`}, table)
	for key, order := range map[string][]string{"1": {"a", "B", "A"}, "2": {"B", "a", "A"}, "3": {"A", "B", "a"}} {
		for _, v := range order {
			write(t, r, table, say(t, table, key, 1, set{"top": v, "low": v}))
		}
		mustShow(t, r, table, key, "top=a low=A step=NULL")
	}
	write(t, r, table, say(t, table, "1", 1, set{"step": "sent"}))
	write(t, r, table, say(t, table, "1", 1, set{"step": "read"}))
	write(t, r, table, say(t, table, "1", 1, set{"step": "sent"}))
	mustShow(t, r, table, "1", "top=a low=A step=read")
}
