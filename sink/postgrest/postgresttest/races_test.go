package postgresttest_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/sink/postgrest/postgresttest"
)

// writeOne writes value v of version v to a key, by one pattern.
type writeOne func(t *testing.T, p *postgresttest.Project, key string, v int)

func insertIgnore(t *testing.T, p *postgresttest.Project, key string, v int) {
	expect(t, do(t, p, "POST", "/item", ignore, fmt.Sprintf(`{"id":%q,"qty":%d}`, key, v)), 201)
}

func patchGuarded(t *testing.T, p *postgresttest.Project, key string, v int) {
	expect(t, do(t, p, "PATCH", fmt.Sprintf("/item?id=eq.%s&or=(qty.is.null,qty.lt.%d)", key, v), exact, fmt.Sprintf(`{"qty":%d}`, v)), 204)
}

func expect(t *testing.T, got answer, status int) {
	if got.status != status {
		t.Errorf("%d %s, want %d", got.status, got.body, status)
	}
}

func upsertMerge(t *testing.T, p *postgresttest.Project, key string, v int) {
	got := do(t, p, "POST", "/item", merged, fmt.Sprintf(`{"id":%q,"qty":%d}`, key, v))
	if got.status != 200 && got.status != 201 {
		t.Errorf("%+v", got)
	}
}

func call(t *testing.T, p *postgresttest.Project, key string, v int) {
	expect(t, do(t, p, "POST", "/rpc/newest", "", fmt.Sprintf(`{"key":%q,"v":%d}`, key, v)), 200)
}

// Of two writers of one new key, the order in which the steps of the patterns
// fall decides: the newer value has to win.
func TestInterleavings(t *testing.T) {
	p := project(t)
	for _, f := range []struct {
		name string
		do   func(key string)
		want string
	}{
		{"merge-duplicates: the later request wins", func(k string) {
			upsertMerge(t, p, k, 2)
			upsertMerge(t, p, k, 1)
		}, "1"},
		{"PATCH, then POST: the older insert is in the way of the newer", func(k string) {
			patchGuarded(t, p, k, 2)
			patchGuarded(t, p, k, 1)
			insertIgnore(t, p, k, 1)
			insertIgnore(t, p, k, 2)
		}, "1"},
		{"POST, then PATCH: right in any order", func(k string) {
			insertIgnore(t, p, k, 1)
			insertIgnore(t, p, k, 2)
			patchGuarded(t, p, k, 2)
			patchGuarded(t, p, k, 1)
		}, "2"},
	} {
		f.do("k")
		if got := value(t, p, "select qty::text from item where id = 'k'"); got != f.want {
			t.Errorf("%s: %s, want %s", f.name, got, f.want)
		}
		testdb.Exec(t, p.Database, "delete from item")
	}
}

// The patterns that are right, with eight writers.
func TestRaces(t *testing.T) {
	p := project(t)
	p.Exec(t, `create function newest(key text, v int) returns void language sql as $$
    insert into item as i (id, qty) values (key, v) on conflict (id) do update set qty = excluded.qty where i.qty < excluded.qty $$`)
	const keys, versions = 12, 8
	for name, pattern := range map[string]writeOne{
		"POST, then PATCH": func(t *testing.T, p *postgresttest.Project, key string, v int) {
			insertIgnore(t, p, key, v)
			patchGuarded(t, p, key, v)
		},
		"rpc": call,
	} {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for _, i := range rand.Perm(keys * versions)[:keys*versions/2] {
					pattern(t, p, fmt.Sprint("k", i%keys), i/keys)
				}
			})
		}
		for k := range keys {
			wg.Go(func() { pattern(t, p, fmt.Sprint("k", k), versions) })
		}
		wg.Wait()
		if got := value(t, p, fmt.Sprintf("select count(*)::text from item where qty = %d", versions)); got != fmt.Sprint(keys) {
			t.Errorf("%s: %s of %d rows hold the newest value", name, got, keys)
		}
		testdb.Exec(t, p.Database, "delete from item")
	}
}
