package hasuratest_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/sink/hasura/hasuratest"
)

// Strings are taken for every type and left to PostgreSQL, digit for digit.
func TestValues(t *testing.T) {
	d := start(t, hasuratest.Options{}, `create table v (id int primary key, big bigint, n numeric, f float8, b boolean, at timestamptz, day date,
		u uuid, j jsonb, x bytea, tags text[], c varchar(3), small smallint)`)
	d.says(`mutation($o:[v_insert_input!]!){insert_v(objects:$o){returning{id big n f b at day u j x tags c small}}}`,
		`{"o":[{"id":1,"big":"9007199254740993","n":"0.10","f":"0.1","b":true,"at":"2026-05-06T09:00:00.000001Z","day":"2026-02-28",
			"u":"0F7D2C1E-5b3a-4c9d-8e6f-2a1b3c4d5e6f","j":{"b":[9007199254740993,"é"],"a":null},"x":"\\x00ff","tags":"{\"a,b\",NULL}","c":"abc","small":"5"}]}`,
		`{"data":{"insert_v":{"returning":[{"id":1,"big":9007199254740993,"n":0.10,"f":0.1,"b":true,"at":"2026-05-06T09:00:00.000001+00:00","day":"2026-02-28",
			"u":"0f7d2c1e-5b3a-4c9d-8e6f-2a1b3c4d5e6f","j":{"b":[9007199254740993,"é"],"a":null},"x":"\\x00ff","tags":["a,b",null],"c":"abc","small":5}]}}}`)
	d.says(`mutation($o:[v_insert_input!]!){insert_v(objects:$o){returning{n j tags}}}`,
		`{"o":[{"id":2,"n":12345678901234567890.125,"j":"text","tags":["x","line\nbreak"]},{"id":3,"j":null},{"id":4,"j":1.500}]}`,
		// A list's line breaks are lost, and so are a JSON number's last zeros.
		`{"data":{"insert_v":{"returning":[{"n":12345678901234567890.125,"j":"text","tags":["x","linenbreak"]},{"n":null,"j":null,"tags":null},{"n":null,"j":1.5,"tags":null}]}}}`)
	d.says(`{v(where:{j:{_is_null:true}},order_by:{id:desc}){id}}`, "", `{"data":{"v":[{"id":3}]}}`)
	d.fails(`mutation{insert_v(objects:{id:9,c:"abcd"}){affected_rows}}`, "", "data-exception", "$.selectionSet.insert_v.args.objects", "value too long for type character varying(3)")
	d.says(`{v(where:{tags:{_eq:"{\"a,b\",NULL}"}}){id}}`, "", `{"data":{"v":[{"id":1}]}}`)
}

func TestQueriesAndUpdates(t *testing.T) {
	d := start(t, hasuratest.Options{}, shop...)
	d.says(twoAuthors, "", `{"data":{"insert_author":{"affected_rows":2}}}`)
	d.says(`{author(order_by:{id:desc},limit:1,where:{name:{_gt:"A"}}){n:name id} author_by_pk(id:1){name} x:author_by_pk(id:7){name}}`, "",
		`{"data":{"author":[{"n":"Bob","id":2}],"author_by_pk":{"name":"Ann"},"x":null}}`)
	d.says(`mutation{update_author(where:{_and:[{id:{_gte:1}},{email:{_is_null:true}}]},_set:{email:"e"}){affected_rows}}`, "",
		`{"errors":[{"extensions":{"code":"constraint-violation","path":"$.selectionSet.update_author"},"message":"Uniqueness violation. duplicate key value violates unique constraint \"author_email_key\""}]}`)
	d.says(`mutation{update_author(where:{id:{_eq:1}},_set:{email:"e"}){affected_rows returning{email}} none:update_author(where:{id:{_eq:7}},_set:{email:"f"}){affected_rows}}`, "",
		`{"data":{"update_author":{"affected_rows":1,"returning":[{"email":"e"}]},"none":{"affected_rows":0}}}`)
	d.says(`mutation{update_author_by_pk(pk_columns:{id:2},_set:{name:"B"}){name}}`, "", `{"data":{"update_author_by_pk":{"name":"B"}}}`)
}

func TestCredentials(t *testing.T) {
	d := start(t, hasuratest.Options{AdminSecret: "top", Tokens: map[string]string{"good": "writer", "old": "expired"},
		Roles: map[string]map[string]hasuratest.Columns{"writer": {"author": {Select: []string{"id", "name"}, Insert: []string{"id", "name"}, Update: []string{"name"}, Check: "name <> 'evil'"}},
			"reader": {"author": {Select: []string{"id"}}}}}, shop...)
	ask := func(code, message string) {
		t.Helper()
		d.fails(`{author{id}}`, "", code, "$", message)
	}
	ask("invalid-headers", "Missing 'Authorization' or 'Cookie' header in JWT authentication mode")
	d.header.Set("X-Hasura-Admin-Secret", "wrong")
	ask("access-denied", `invalid "x-hasura-admin-secret"/"x-hasura-access-key"`)
	d.header.Set("X-Hasura-Admin-Secret", "top")
	d.says(`{author{id name email}}`, "", `{"data":{"author":[]}}`)
	d.header = http.Header{"Authorization": {"Bearer old"}}
	ask("invalid-jwt", "Could not verify JWT: JWTExpired")
	d.header.Set("Authorization", "Bearer forged")
	ask("invalid-jwt", "Could not verify JWT: JWSError JWSInvalidSignature")
	d.header.Set("Authorization", "Bearer good")
	d.says(`{author{id}}`, "", `{"data":{"author":[]}}`)
	// What the role may not see is not there, and its check holds.
	d.fails(`{author{email}}`, "", "validation-failed", "$.selectionSet.email", "field 'email' not found in type: 'author'")
	d.fails(`{article{id}}`, "", "validation-failed", "$.selectionSet.article", "field 'article' not found in type: 'query_root'")
	d.fails(`mutation{insert_author(objects:{id:1,name:"evil"}){affected_rows}}`, "", "permission-error", "$.selectionSet.insert_author.args.objects",
		"Check constraint violation. check constraint of an insert/update permission has failed")
	d.says(`mutation{insert_author(objects:{id:1,name:"good"}){affected_rows}}`, "", `{"data":{"insert_author":{"affected_rows":1}}}`)
	d.header.Set("X-Hasura-Role", "admin")
	ask("access-denied", "Your requested role is not in allowed roles")
	if status, got := d.raw("/v2/query", `{"type":"run_sql","args":{"sql":"select 1"}}`); status == 200 || !strings.Contains(got, "access-denied") {
		t.Errorf("run_sql without the secret: %d %s", status, got)
	}
	d.header = http.Header{"X-Hasura-Admin-Secret": {"top"}, "X-Hasura-Role": {"reader"}}
	d.says(`{author{id}}`, "", `{"data":{"author":[{"id":1}]}}`)
	d.fails(`mutation{insert_author(objects:{id:2}){affected_rows}}`, "", "validation-failed", "$", "no mutations exist")
}

func TestAdminAPI(t *testing.T) {
	d := start(t, hasuratest.Options{Untracked: true})
	schema := d.database[strings.LastIndex(d.database, "=")+1:]
	if _, got := d.raw("/v2/query", `{"type":"run_sql","args":{"source":"default","sql":"create table made (id text primary key, n int)"}}`); got != `{"result":null,"result_type":"CommandOk"}` {
		t.Error(got)
	}
	d.fails(`{made{id}}`, "", "validation-failed", "$.selectionSet.made", "field 'made' not found in type: 'query_root'")
	track := `{"type":"pg_track_table","args":{"source":"default","table":{"schema":"` + schema + `","name":"made"}}}`
	if status, got := d.raw("/v1/metadata", track); status != 200 || got != `{"message":"success"}` {
		t.Error(status, got)
	}
	d.says(`{made{id}}`, "", `{"data":{"made":[]}}`)
	if _, got := d.raw("/v1/metadata", `{"type":"export_metadata","args":{}}`); !strings.Contains(got, `"name":"default","tables":[{"table":{"name":"made","schema":"`+schema+`"}}]`) {
		t.Error(got)
	}
	if status, got := d.raw("/v1/metadata", track); status != 400 || !strings.Contains(got, "already-tracked") {
		t.Error(status, got)
	}
	if _, got := d.raw("/v2/query", `{"type":"run_sql","args":{"sql":"select 1 as a, null as b","read_only":true}}`); got != `{"result":[["a","b"],["1","NULL"]],"result_type":"TuplesOk"}` {
		t.Error(got)
	}
	if status, got := d.raw("/v2/query", `{"type":"run_sql","args":{"sql":"insert into made values ('x')","read_only":true}}`); status != 400 || !strings.Contains(got, `"status_code":"25006"`) {
		t.Error(status, got)
	}
	// New columns show by themselves: run_sql reads the tables again.
	d.raw("/v2/query", `{"type":"run_sql","args":{"sql":"alter table made add later text"}}`)
	d.says(`{made{later}}`, "", `{"data":{"made":[]}}`)
	off := start(t, hasuratest.Options{NoAdminAPI: true})
	if status, _ := off.raw("/v2/query", `{}`); status != 404 {
		t.Errorf("HTTP %d", status)
	}
}

func TestOptionsAndFaults(t *testing.T) {
	d := start(t, hasuratest.Options{OldArrays: true, StringifyNumbers: true, MaxBody: 300}, `create table v (id bigint primary key, tags text[])`)
	d.says(`mutation{insert_v(objects:{id:9007199254740993,tags:"{a}"}){returning{id tags}}}`, "", `{"data":{"insert_v":{"returning":[{"id":"9007199254740993","tags":["a"]}]}}}`)
	d.says(`{__type(name:"v"){fields{name type{kind name ofType{kind name}}}}}`, "",
		`{"data":{"__type":{"fields":[{"name":"id","type":{"kind":"NON_NULL","name":null,"ofType":{"kind":"SCALAR","name":"bigint"}}},{"name":"tags","type":{"kind":"SCALAR","name":"_text","ofType":null}}]}}}`)
	if status, got := d.post("/v1/graphql", "{v{id}}"+strings.Repeat(" ", 400), ""); status != 413 || !strings.Contains(got, "html") {
		t.Errorf("a request too large: %d %s", status, got)
	}
	d.Faults(func(r hasuratest.Request) *hasuratest.Fault {
		switch {
		case strings.Contains(r.Body, "slow"):
			return &hasuratest.Fault{Status: 429, Header: http.Header{"Retry-After": {"3"}}, Body: "slow down"}
		case r.Mutation:
			return &hasuratest.Fault{DropAfter: true}
		}
		return nil
	})
	if status, got := d.post("/v1/graphql", "{slow:v{id}}", ""); status != 429 || got != "slow down" {
		t.Errorf("%d %s", status, got)
	}
	r, _ := http.NewRequest("POST", d.URL, strings.NewReader(`{"query":"mutation{insert_v(objects:{id:5}){affected_rows}}"}`))
	if w, err := http.DefaultClient.Do(r); err == nil {
		w.Body.Close()
		t.Error("an answer came although the connection was to be lost")
	}
	d.says(`{v(where:{id:{_eq:5}}){id}}`, "", `{"data":{"v":[{"id":"5"}]}}`) // it was committed
}

// Two mutations that lock rows in opposite orders: one is a victim, in the words
// of the version.
func TestDeadlock(t *testing.T) {
	for _, concurrent := range []bool{false, true} {
		d := start(t, hasuratest.Options{Concurrent: concurrent}, shop...)
		d.says(twoAuthors, "", `{"data":{"insert_author":{"affected_rows":2}}}`)
		// Each holds its first row until the other has its own.
		testdb.Exec(t, d.database, `create sequence turn`, `create function rendezvous() returns trigger language plpgsql as '
			begin
				if new.name like ''first%'' then
					perform nextval(''turn'');
					while (select last_value from turn) < 2 loop perform pg_sleep(0.005); end loop;
				end if;
				return new;
			end'`, `create trigger rendezvous before update on author for each row execute function rendezvous()`)
		var wg sync.WaitGroup
		var answers [2]string
		for i, ids := range [][2]string{{"1", "2"}, {"2", "1"}} {
			wg.Go(func() {
				_, answers[i] = d.post("/v1/graphql", `mutation{a:update_author(where:{id:{_eq:`+ids[0]+`}},_set:{name:"first"}){affected_rows} b:update_author(where:{id:{_eq:`+ids[1]+`}},_set:{name:"second"}){affected_rows}}`, "")
			})
		}
		wg.Wait()
		all := answers[0] + answers[1]
		want := `"code":"unexpected"`
		if concurrent {
			want = `"code":"concurrent-update"`
		}
		if strings.Count(all, `"errors"`) != 1 || !strings.Contains(all, want) || !concurrent && !strings.Contains(all, `"status_code":"40P01"`) || concurrent && !strings.Contains(all, "deadlock detected") {
			t.Errorf("concurrent %v: %s", concurrent, all)
		}
	}
}
