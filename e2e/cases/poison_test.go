package cases

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/journal"
)

// poison sends one bad element among good ones, for each of the ways in which a
// database refuses one.
func poison(t *testing.T, s *scenario, on engine) {
	big := make([]byte, 20_000)
	rand.Read(big)
	for _, c := range []struct {
		code, schema, bad string
		// reason is part of what is said of the event.
		reason string
	}{
		{"22003", `create table o (id int primary key, a text, q smallint)`, `"a":"x","q":99999`, "q"},
		{"22001", `create table o (id int primary key, a varchar(3), q int)`, `"a":"long","q":1`, "a: 4 characters"},
		{"22P02", `create type colour as enum ('g1', 'g3', 'g4'); create table o (id int primary key, a colour, q int)`, `"a":"mauve","q":1`, "mauve"},
		{"23502", `create table o (id int primary key, a text not null, q int)`, `"a":null,"q":1`, "a"},
		{"23503", `create table p (id int primary key); insert into p values (1); create table o (id int primary key, a text, q int references p)`, `"a":"x","q":2`, "p id=2"},
		{"23505", `create table o (id int primary key, a text unique, q int)`, `"a":"g1","q":1`, "o_a_key"},
		{"23514", `create table o (id int primary key, a text, q int check (q < 100))`, `"a":"x","q":100`, "o_q_check"},
		{"54000", `create table o (id int primary key, a text, q int); create index on o (a)`, `"a":"` + hex.EncodeToString(big) + `","q":1`, "54000"},
		{"57014", `create table o (id int primary key, a text, q int); create function f() returns trigger language plpgsql as $$ begin if new.q = 99 then raise exception 'canceling statement due to statement timeout' using errcode = '57014'; end if; return new; end $$;
			create trigger f before insert or update on o for each row execute function f()`, `"a":"x","q":99`, "57014"},
	} {
		t.Run(c.code, func(t *testing.T) {
			one := *s
			one.schema = map[string]string{"": strings.ReplaceAll(c.schema, "; create", ";\ncreate")}
			w := begin(t, &one, on)
			body := `[{"id":1,"a":"g1","q":1},{"id":2,` + c.bad + `},{"id":3,"a":"g3","q":1}]`
			for _, b := range []string{body, `[{"id":4,"a":"g4","q":1}]`} {
				if err := w.arrive(arrival{Source: "feed", Body: []byte(b)}); err != nil {
					t.Fatal(err)
				}
			}
			becomes(t, w.url, `select string_agg(id::text, ' ' order by id) from o`, "1 3 4")
			if err := w.taken(); err != nil {
				t.Fatal(err)
			}
			entries, err := w.daemon.Journal().Entries(t.Context(), journal.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) != 1 || !strings.Contains(told(entries[0]), c.reason) || entries[0].Ref.Index != 1 {
				t.Errorf("parked: %.1000s, not the second event with %q", fmt.Sprint(reasons(entries)), c.reason)
			}
		})
	}
	for code, gone := range map[string][2]string{
		"42703": {`alter table o drop column q`, `alter table o add column q int`},
		"42P01": {`alter table o rename to elsewhere`, `alter table elsewhere rename to o`},
	} {
		t.Run(code, func(t *testing.T) {
			w := begin(t, s, on)
			send := func(id int) {
				t.Helper()
				if err := w.arrive(arrival{Source: "feed", Body: fmt.Appendf(nil, `[{"id":%d,"a":"x","q":7}]`, id)}); err != nil {
					t.Fatal(err)
				}
			}
			send(1)
			becomes(t, w.url, `select count(*) from o`, "1")
			testdb.Exec(t, w.url, gone[0])
			send(2)
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for !strings.Contains(w.log.String(), "down  db") && !strings.Contains(w.log.String(), "wait") {
				select {
				case <-tick.C:
				case <-t.Context().Done():
					t.Fatal("nothing is said of it")
				}
			}
			testdb.Exec(t, w.url, gone[1])
			becomes(t, w.url, `select count(*) from o where id = 2 and q = 7`, "1")
		})
	}
}
