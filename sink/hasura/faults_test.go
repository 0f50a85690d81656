package hasura_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/hasura"
	"github.com/hookfold/hookfold/sink/hasura/hasuratest"
)

// What the database refuses: what a caller does about it, and what it is told.
// With the admin secret the catalog says which rows are at fault beforehand;
// without, Hasura's answer decides.
func TestRowsThatCannotLand(t *testing.T) {
	person := tableOf(t, "person", "id text", "email text", "name text", "age int", "small int", "boss text", "born timestamp", "code text")
	statements := []string{
		`create table person (id text primary key, email text unique, name varchar(5) not null, age int check (age >= 0), small int2, boss text references person,
			born timestamptz, code text, row_version text)`,
		`create function refuse() returns trigger language plpgsql as 'begin if new.code = ''bad'' then raise exception ''no bad codes''; end if; return new; end'`,
		`create trigger refuse before insert or update on person for each row execute function refuse()`,
	}
	whole := func(over set) set {
		v := set{"email": nil, "name": "n", "age": nil, "small": nil, "boss": nil, "born": nil, "code": nil}
		for k, x := range over {
			v[k] = x
		}
		return v
	}
	for _, admin := range []bool{true, false} {
		r := start(t, hasuratest.Options{NoAdminAPI: !admin}, hasura.Options{}, statements, person)
		write(t, r, person, say(t, person, "there", 1, whole(set{"email": "a@x"})))
		for name, c := range map[string]struct {
			over   set
			action sink.Action
			why    sink.Why
			on     string
			says   string
		}{
			"unique":      {set{"email": "a@x"}, sink.Wait, sink.UniqueValue, "person_email_key", "another row has the value"},
			"foreign key": {set{"boss": "nobody"}, sink.Wait, sink.NeedsParent, map[bool]string{true: "person", false: "person_boss_fkey"}[admin], "person_boss_fkey"},
			"check":       {set{"age": "-1"}, sink.Reject, "", "", "person_age_check"},
			"too long":    {set{"name": "longer than five"}, sink.Reject, "", "", "16 characters"},
			"too great":   {set{"age": "3000000000"}, sink.Reject, "", "", "age"},
			"small":       {set{"small": "40000"}, sink.Reject, "", "", "small"},
			"NULL":        {set{"name": nil}, sink.Reject, "", "", "name"},
			"trigger":     {set{"code": "bad"}, sink.Reject, "", "", "no bad codes"},
		} {
			if name == "too long" && !admin {
				c.says = "varying(5)"
			}
			e := failed(t, r, person, say(t, person, "new", 1, whole(c.over)), say(t, person, "beside", 1, whole(nil)))
			if e.Action != c.action || e.Why != c.why || e.On != c.on || !strings.Contains(e.Message, c.says) || !strings.Contains(e.Message, "person") {
				t.Errorf("admin %v, %s: action %d, why %q, on %q: %v", admin, name, e.Action, e.Why, e.On, e)
			}
			mustShow(t, r, person, "beside", "no row") // nothing of the batch
		}
	}
}

// A row that is there can be updated in part, although a new one would need
// more; where there is none, the change waits.
func TestPartialUpdateOfNotNull(t *testing.T) {
	table := tableOf(t, "invoice", "id text", "total numeric scope total", "paid text scope paid", "best int max", "tags text[] union")
	r := start(t, hasuratest.Options{}, hasura.Options{}, []string{
		`create table invoice (id text primary key, total numeric not null, paid text not null, best int, tags text[], tenant text not null default 't', stamp timestamptz not null default now())`}, table)
	part := say(t, table, "a", 2, set{"paid": "yes", "best": "9", "tags": `["x"]`})
	if e := failed(t, r, table, part, say(t, table, "b", 1, set{"total": "1", "paid": "no"})); e.Action != sink.Wait || e.Why != sink.NotNull || e.On != "invoice.total" {
		t.Errorf("got %v, action %d, on %q", e, e.Action, e.On)
	}
	mustShow(t, r, table, "b", "no row")
	write(t, r, table, say(t, table, "a", 1, set{"total": "10", "paid": "no"}))
	if got := write(t, r, table, part, say(t, table, "b", 1, set{"total": "1", "paid": "no"})); got.Written != 2 {
		t.Errorf("%+v", got)
	}
	mustShow(t, r, table, "a", `total=10 paid=yes best=9 tags=["x"]`)
	if got := write(t, r, table, part); got.Written != 0 || got.Unchanged != 1 {
		t.Errorf("again: %+v", got)
	}
	// A column that nobody maps is NOT NULL and has no default: rows of the
	// user's own are still updated.
	own := tableOf(t, "own", "id text", "a text")
	r = start(t, hasuratest.Options{}, hasura.Options{}, []string{`create table own (id text primary key, a text, tenant text not null)`, `insert into own values ('k', 'x', 't')`}, own)
	write(t, r, own, say(t, own, "k", 1, set{"a": "y"}))
	mustShow(t, r, own, "k", "a=y")
	if e := failed(t, r, own, say(t, own, "new", 1, set{"a": "y"})); e.Action != sink.Wait || e.Why != sink.NotNull {
		t.Errorf("%v", e)
	}
}

// F13: the defaults of max and first stay out; latest columns take theirs.
func TestF13Defaults(t *testing.T) {
	table := tableOf(t, "task", "id int", "title text", "status text scope status", "qty int max", "seen text first")
	r := start(t, hasuratest.Options{}, hasura.Options{}, []string{
		`create table task (no int generated always as identity, id int primary key, title text not null default 'untitled', status text default upper('new'),
			qty int default 0, seen text default 'never', twice int generated always as (id * 2) stored)`,
		`insert into task (id, seen) values (3, 'import')`}, table)
	write(t, r, table, say(t, table, "1", 1, set{"status": "open"}), say(t, table, "2", 1, set{"qty": "-5"}))
	mustShow(t, r, table, "1", "title=untitled status=open qty=NULL seen=NULL")
	mustShow(t, r, table, "2", "title=untitled status=NEW qty=-5 seen=NULL")
	write(t, r, table, say(t, table, "2", 2, set{"title": "milk", "qty": "-7"}))
	write(t, r, table, say(t, table, "2", 3, set{"status": "done"}))
	mustShow(t, r, table, "2", "title=milk status=done qty=-5 seen=NULL")
	// A value that was there before any version is the oldest.
	write(t, r, table, say(t, table, "3", 1, set{"seen": "ad"}))
	mustShow(t, r, table, "3", "title=untitled status=NEW qty=0 seen=import")
}

// A table of the user's own whose columns refuse NULL: records may lack what
// rows may not.
func TestOccupantsOfNotNullTable(t *testing.T) {
	table := booking(t)
	r := start(t, hasuratest.Options{}, hasura.Options{}, []string{`create table booking (ref text primary key, status text not null, invitee text not null, channel text not null, no_show bool, seats numeric)`}, table)
	whole := func(key, id string, since, version int64) *merge.Change {
		return occupant(say(t, table, key, version, set{"status": "active", "invitee": id, "channel": "web"}), id, since)
	}
	part := occupant(say(t, table, "k", 2, set{"no_show": "true"}), "A", 1)
	if e := failed(t, r, table, part); e.Action != sink.Wait || e.Why != sink.NotNull {
		t.Errorf("got %v, action %d", e, e.Action)
	}
	mustShow(t, r, table, "k", "no row")
	write(t, r, table, part, whole("k", "A", 1, 1))
	mustShow(t, r, table, "k", "status=active invitee=A no_show=true seats=NULL channel=web")
	write(t, r, table, whole("k", "B", 5, 1))
	write(t, r, table, occupant(say(t, table, "k", 9, set{"no_show": "true"}), "C", 2))
	mustShow(t, r, table, "k", "status=active invitee=B no_show=NULL seats=NULL channel=web")
	if got := write(t, r, table, whole("k", "B", 5, 1)); got.Written != 0 {
		t.Errorf("again: %+v", got)
	}
	// What belongs to the row itself, by an event that names no occupant.
	write(t, r, table, say(t, table, "k", 9, set{"channel": "app"}))
	mustShow(t, r, table, "k", "status=active invitee=B no_show=NULL seats=NULL channel=app")
	// Guests.
	guest := occupant(say(t, table, "none", 1, set{"status": "x", "invitee": "x", "channel": "x"}), "A", 1)
	guest.IfMissing = merge.Wait
	if got := write(t, r, table, guest); len(got.Absent) != 2 {
		t.Errorf("%+v", got)
	}
	guest = occupant(say(t, table, "k", 2, set{"status": "guest", "invitee": "B", "channel": "x"}), "B", 5)
	guest.IfMissing = merge.Wait
	write(t, r, table, guest)
	mustShow(t, r, table, "k", "status=guest invitee=B no_show=NULL seats=NULL channel=app")
}

// What stands in the way is told apart from what is the events' own fault: the
// batch is kept and tried again.
func TestFaultsAreRetried(t *testing.T) {
	table := tableOf(t, "item", "id text", "a text")
	r := start(t, hasuratest.Options{AdminSecret: "s3cret"}, hasura.Options{Timeout: 300 * time.Millisecond}, nil, table)
	write(t, r, table, say(t, table, "warm", 1, set{"a": "x"}))
	answer := func(status int, header http.Header, body string) *hasuratest.Fault {
		return &hasuratest.Fault{Status: status, Header: header, Body: body}
	}
	code := func(code, message string) *hasuratest.Fault {
		return answer(200, nil, `{"errors":[{"message":"`+message+`","extensions":{"path":"$.selectionSet.insert_item.args.objects","code":"`+code+`"}}]}`)
	}
	for name, c := range map[string]struct {
		fault *hasuratest.Fault
		says  string
		after time.Duration
	}{
		"down":           {&hasuratest.Fault{Drop: true}, "cannot be reached", 0},
		"silent":         {&hasuratest.Fault{Hang: true}, "did not answer in time", 0},
		"lost":           {&hasuratest.Fault{DropAfter: true}, "cannot be reached", 0},
		"slow down":      {answer(429, http.Header{"Retry-After": {"7"}}, ""), "slow down", 7 * time.Second},
		"bad gateway":    {answer(502, nil, "<html>"), "cannot take the batch now", 0},
		"unavailable":    {answer(503, http.Header{"Retry-After": {"2"}}, ""), "cannot take the batch now", 2 * time.Second},
		"redirect":       {answer(302, http.Header{"Location": {"https://elsewhere.invalid/"}}, ""), "redirect", 0},
		"not found":      {answer(404, nil, `{"path":"$","error":"resource does not exist","code":"not-found"}`), "no GraphQL endpoint", 0},
		"no GraphQL":     {answer(200, nil, "welcome"), "not GraphQL", 0},
		"rate limit":     {code("rate-limit-exceeded", "rate limit of 10 exceeded"), "rate limit of 10", 10 * time.Second},
		"time limit":     {code("time-limit-exceeded", "request timed out"), "timed out", 10 * time.Second},
		"serialization":  {code("concurrent-update", "serialization failure due to concurrent update"), "in the way", 0},
		"unexplained":    {code("unexpected", "database query error"), "keeps back why", 0},
		"connections":    {code("postgres-max-connections-error", "max connections reached"), "max connections", 0},
		"database":       {code("postgres-error", "connection error"), "connection error", 0},
		"secret":         {code("access-denied", "invalid x-hasura-admin-secret"), "credentials", 0},
		"expired":        {code("invalid-jwt", "Could not verify JWT: JWTExpired"), "JWT has expired", 0},
		"schema":         {code("validation-failed", "field 'a' not found in type: 'item_insert_input'"), "does not have what the config says", 0},
		"no constraint":  {code("constraint-error", "there is no unique or exclusion constraint on target column(s)"), "no unique constraint", 0},
		"something else": {code("brand-new-code", "hm"), "hm", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r.server.Faults(func(q hasuratest.Request) *hasuratest.Fault {
				if q.Mutation {
					return c.fault
				}
				return nil
			})
			e := failed(t, r, table, say(t, table, name, 1, set{"a": "x"}))
			if e.Action != sink.Retry || !strings.Contains(e.Message, c.says) || e.After != c.after || strings.Contains(e.Error(), "s3cret") {
				t.Errorf("action %d after %s: %v", e.Action, e.After, e)
			}
			r.server.Faults(nil)
			want := 1
			if c.fault.DropAfter { // it was committed: again changes nothing
				want = 0
			}
			if got := write(t, r, table, say(t, table, name, 1, set{"a": "x"})); got.Written != want {
				t.Errorf("again: %+v", got)
			}
		})
	}
}

// A deadlock's victim is tried again out of sight, whatever Hasura calls it.
func TestDeadlocksAreOutOfSight(t *testing.T) {
	table := tableOf(t, "item", "id text", "a text")
	r := start(t, hasuratest.Options{}, hasura.Options{}, nil, table)
	for _, code := range []string{"concurrent-update", "unexpected"} {
		var n atomic.Int32
		r.server.Faults(func(q hasuratest.Request) *hasuratest.Fault {
			if q.Mutation && n.Add(1) < 4 {
				return &hasuratest.Fault{Status: 200, Body: `{"errors":[{"message":"database query error","extensions":{"path":"$","code":"` + code + `"}}]}`}
			}
			return nil
		})
		write(t, r, table, say(t, table, code, 1, set{"a": "x"}))
	}
}

// A batch is sent as several requests if it is too large for one, and requests
// become smaller if a proxy takes no more.
func TestRequestsFit(t *testing.T) {
	table := tableOf(t, "item", "id text", "a text", "n int max")
	var all []*merge.Change
	for i := range 300 {
		all = append(all, say(t, table, strings.Repeat("k", i%7)+string(rune('a'+i%26))+strings.Repeat("z", i), 1, set{"a": strings.Repeat("x", 100), "n": "1"}))
	}
	const proxy = 40_000
	r := start(t, hasuratest.Options{MaxBody: proxy}, hasura.Options{}, nil, table)
	var largest, mutations atomic.Int64
	r.server.Faults(func(q hasuratest.Request) *hasuratest.Fault {
		if q.Mutation {
			mutations.Add(1)
			largest.Store(max(largest.Load(), int64(len(q.Body))))
		}
		return nil
	})
	got := write(t, r, table, all...)
	if got.Written != len(merge.Fold(table.Table, all)) || mutations.Load() < 5 || largest.Load() > proxy {
		t.Errorf("%+v in %d mutations of at most %d bytes", got, mutations.Load(), largest.Load())
	}
	e := failed(t, r, table, say(t, table, "giant", 1, set{"a": strings.Repeat("x", proxy)}))
	if e.Action != sink.Reject || !strings.Contains(e.Message, "larger than") {
		t.Errorf("a row that is too large: action %d, %v", e.Action, e)
	}
	small := start(t, hasuratest.Options{}, hasura.Options{MaxRequestBytes: 20_000}, nil, table)
	largest.Store(0)
	small.server.Faults(func(q hasuratest.Request) *hasuratest.Fault {
		largest.Store(max(largest.Load(), int64(len(q.Body))))
		return nil
	})
	write(t, small, table, all...)
	if largest.Load() > 20_000 {
		t.Errorf("a request of %d bytes", largest.Load())
	}
}

// Only the endpoint is asked, and only over verified TLS.
func TestNobodyElseIsAsked(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer front.Close()
	open := func(url string) sink.Sink {
		s, err := hasura.Open(t.Context(), "hasura+"+url+"/v1/graphql", nil, hasura.Options{AdminSecret: "s3cret"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	if e := errorOf(t, open(front.URL).Ping(t.Context())); !strings.Contains(e.Message, "redirect") || elsewhere.Load() > 0 {
		t.Errorf("%v, and %d requests elsewhere", e, elsewhere.Load())
	}
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	defer tls.Close()
	if e := errorOf(t, open(tls.URL).Ping(t.Context())); !strings.Contains(e.Message, "certificate") {
		t.Errorf("an unknown certificate: %v", e)
	}
	large := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 70 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}))
	defer large.Close()
	if e := errorOf(t, open(large.URL).Ping(t.Context())); !strings.Contains(e.Message, "larger than") {
		t.Errorf("an endless answer: %v", e)
	}
}

// A role that is shown only a few rows at once is still told of all.
func TestRolesThatSeeFewRows(t *testing.T) {
	slot := booking(t)
	own := []string{"ref", "channel", "key_version", "status", "invitee", "row_version", "no_show", "no_show_version", "seats", "occupant_since", "occupant_id"}
	records := []string{"ref", "occupant_id", "status", "invitee", "row_version", "no_show", "no_show_version", "seats", "occupant_since"}
	url := testdb.Schema(t)
	admin := hasuratest.New(t, url, hasuratest.Options{})
	(&rig{open(t, admin, nil, hasura.Options{}), admin, url}).bring(t, slot)
	server := hasuratest.New(t, url, hasuratest.Options{AdminSecret: "top", Roles: map[string]map[string]hasuratest.Columns{"writer": {
		"booking":           {Select: own, Insert: own, Update: own, Limit: 2},
		"booking_occupants": {Select: records, Insert: records, Update: records, Limit: 2},
	}}})
	s := open(t, server, nil, hasura.Options{AdminSecret: "top", Role: "writer"})
	var all []*merge.Change
	for i := range 5 {
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			all = append(all, occupant(say(t, slot, key, 1, set{"status": "active", "invitee": string(rune('A' + i))}), string(rune('A'+i)), int64(i)))
		}
	}
	write(t, s, slot, all...)
	guests := []*merge.Change{}
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		c := say(t, slot, key, 1, set{"channel": "web"})
		c.IfMissing = merge.Wait
		guests = append(guests, c)
	}
	if got := write(t, s, slot, guests...); len(got.Absent) != 1 || got.Written != 5 {
		t.Errorf("%+v", got)
	}
	rows, err := s.Read(t.Context(), slot, nil)
	if err != nil || len(rows) != 5 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		mustShow(t, s, slot, key, "status=active invitee=E no_show=NULL seats=NULL channel=web")
	}
}

func TestCredentials(t *testing.T) {
	table := tableOf(t, "item", "id text", "a text")
	cols := []string{"id", "a", "row_version"}
	url := testdb.Schema(t)
	testdb.Exec(t, url, `create table item (id text primary key, a text, row_version text, secret text)`)
	double := hasuratest.New(t, url, hasuratest.Options{AdminSecret: "top", Tokens: map[string]string{"good": "writer", "old": "expired", "blind": "reader"},
		Roles: map[string]map[string]hasuratest.Columns{
			"writer": {"item": {Select: cols, Insert: cols, Update: cols[1:], Check: "a <> 'evil'"}},
			"reader": {"item": {Select: cols}},
		}})
	token := "good"
	s := open(t, double, []*sink.Table{table}, hasura.Options{JWT: func(context.Context) (string, error) {
		if token == "" {
			return "", errors.New("no token today")
		}
		return token, nil
	}})
	write(t, s, table, say(t, table, "1", 1, set{"a": "x"}))
	write(t, s, table, say(t, table, "1", 2, set{"a": "y"}))
	mustShow(t, s, table, "1", "a=y")
	if e := failed(t, s, table, say(t, table, "2", 1, set{"a": "evil"})); e.Action != sink.Reject || !strings.Contains(e.Message, "permissions") {
		t.Errorf("a permission's check: %v", e)
	}
	for tok, want := range map[string]string{"old": "JWT has expired", "forged": "refuses the JWT", "": "no token today"} {
		token = tok
		if e := failed(t, s, table, say(t, table, "2", 1, set{"a": "x"})); e.Action != sink.Retry || !strings.Contains(e.Message, want) {
			t.Errorf("token %q: %v", tok, e)
		}
	}
	token = "blind"
	if e := failed(t, open(t, double, nil, hasura.Options{JWT: func(context.Context) (string, error) { return "blind", nil }}), table, say(t, table, "2", 1, set{"a": "x"})); e.Action != sink.Retry || !strings.Contains(e.Message, "may not insert") {
		t.Errorf("a role that may not write: %v", e)
	}
	// The secret with a role: rows as the role, migrations as the admin.
	role := open(t, double, []*sink.Table{table}, hasura.Options{AdminSecret: "top", Role: "writer"})
	write(t, role, table, say(t, table, "3", 1, set{"a": "x"}))
	if e := failed(t, role, table, say(t, table, "3", 2, set{"a": "evil"})); e.Action != sink.Reject {
		t.Errorf("%v", e)
	}
	live, err := role.Inspect(t.Context(), table)
	if err != nil || live.Column("secret") == nil || !live.HasUnique([]string{"id"}) {
		t.Errorf("%+v, %v", live, err)
	}
	if err := open(t, double, nil, hasura.Options{AdminSecret: "wrong"}).Ping(t.Context()); !strings.Contains(err.Error(), "credentials") || strings.Contains(err.Error(), "wrong") {
		t.Error(err)
	}
}
