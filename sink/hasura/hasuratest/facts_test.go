package hasuratest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/sink/hasura/hasuratest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop is what most tests work on.
var shop = []string{
	`create table author (id int primary key, name text not null, email text, constraint author_email_key unique (email))`,
	`create table article (id int primary key, title text, content text, likes int default 7, author_id int references author,
		published_on timestamptz, price numeric(10,2) check (price > 0), doc jsonb, tags text[], version text)`,
	`create unique index article_title_partial on article (title) where published_on is null`,
	`create unique index article_content_index on article (content)`,
}

// double is a server under test, and the headers to ask it with.
type double struct {
	*hasuratest.Server
	t        *testing.T
	database string
	header   http.Header
}

func start(t *testing.T, opts hasuratest.Options, statements ...string) *double {
	t.Helper()
	url := testdb.Schema(t)
	testdb.Exec(t, url, statements...)
	return &double{hasuratest.New(t, url, opts), t, url, http.Header{}}
}

// post asks, and gives the status and the answer in a fixed form.
func (d *double) post(path, query string, variables string) (int, string) {
	d.t.Helper()
	body := `{"query":` + quoted(query)
	if variables != "" {
		body += `,"variables":` + variables
	}
	return d.raw(path, body+"}")
}

func (d *double) raw(path, body string) (int, string) {
	d.t.Helper()
	r, err := http.NewRequest("POST", strings.TrimSuffix(d.URL, "/v1/graphql")+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header = d.header.Clone()
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer w.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	b, err := io.ReadAll(w.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return w.StatusCode, canonical(string(b))
}

// canonical sorts the members of JSON and keeps its numbers.
func canonical(s string) string {
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return strings.TrimSpace(s)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return strings.TrimSpace(b.String())
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// says asks the GraphQL endpoint and compares its answer.
func (d *double) says(query, variables, want string) {
	d.t.Helper()
	status, got := d.post("/v1/graphql", query, variables)
	if status != http.StatusOK {
		d.t.Errorf("%s: HTTP %d", query, status)
	}
	if diff := cmp.Diff(canonical(want), got); diff != "" {
		d.t.Errorf("%s: (-want +got)\n%s", query, diff)
	}
}

// fails compares code, path and message of an error.
func (d *double) fails(query, variables, code, path, message string) {
	d.t.Helper()
	d.says(query, variables, `{"errors":[{"extensions":{"code":`+quoted(code)+`,"path":`+quoted(path)+`},"message":`+quoted(message)+`}]}`)
}

const twoAuthors = `mutation{insert_author(objects:[{id:1,name:"Ann"},{id:2,name:"Bob"}]){affected_rows}}`

func TestUpsert(t *testing.T) {
	d := start(t, hasuratest.Options{}, shop...)
	d.says(twoAuthors, "", `{"data":{"insert_author":{"affected_rows":2}}}`)
	// Only the columns of update_columns are updated.
	d.says(`mutation{insert_author(objects:[{id:1,name:"Anna",email:"x"},{id:3,name:"Cy"}], on_conflict:{constraint:author_pkey,update_columns:[name]}){affected_rows returning{id name email}}}`, "",
		`{"data":{"insert_author":{"affected_rows":2,"returning":[{"id":1,"name":"Anna","email":null},{"id":3,"name":"Cy","email":null}]}}}`)
	// All columns that an insert needs must be there, although the row is.
	d.fails(`mutation{insert_author(objects:[{id:1,email:"y"}], on_conflict:{constraint:author_pkey,update_columns:[email]}){affected_rows}}`, "",
		"constraint-violation", "$.selectionSet.insert_author.args.objects", `Not-NULL violation. null value in column "name" of relation "author" violates not-null constraint`)
}

func TestEmptyUpdateColumnsDoNothing(t *testing.T) {
	d := start(t, hasuratest.Options{}, shop...)
	d.says(twoAuthors, "", `{"data":{"insert_author":{"affected_rows":2}}}`)
	for _, on := range []string{"{constraint:author_pkey,update_columns:[]}", "{constraint:author_pkey}"} {
		d.says(`mutation{insert_author(objects:[{id:1,name:"no"},{id:2,name:"no"}], on_conflict:`+on+`){affected_rows returning{id}}}`, "",
			`{"data":{"insert_author":{"affected_rows":0,"returning":[]}}}`)
		d.says(`mutation{insert_author_one(object:{id:1,name:"no"}, on_conflict:`+on+`){id}}`, "", `{"data":{"insert_author_one":null}}`)
	}
	// A row that is new beside one that is there.
	d.says(`mutation{insert_author(objects:[{id:1,name:"no"},{id:9,name:"new"}], on_conflict:{constraint:author_pkey,update_columns:[]}){affected_rows returning{id}}}`, "",
		`{"data":{"insert_author":{"affected_rows":1,"returning":[{"id":9}]}}}`)
	// It is the named constraint only that is not to be violated.
	d.says(`mutation{update_author(where:{id:{_eq:2}},_set:{email:"b"}){affected_rows}}`, "", `{"data":{"update_author":{"affected_rows":1}}}`)
	d.fails(`mutation{insert_author(objects:[{id:8,name:"x",email:"b"}], on_conflict:{constraint:author_pkey,update_columns:[]}){affected_rows}}`, "",
		"constraint-violation", "$.selectionSet.insert_author.args.objects", `Uniqueness violation. duplicate key value violates unique constraint "author_email_key"`)
}

// The where of on_conflict is about the row that is there.
func TestConflictWhere(t *testing.T) {
	d := start(t, hasuratest.Options{}, shop...)
	d.says(`mutation{insert_article(objects:[{id:1,title:"a",likes:5,version:"2"},{id:2,title:"b",likes:9,version:null}]){affected_rows}}`, "", `{"data":{"insert_article":{"affected_rows":2}}}`)
	write := func(where string, want string) {
		d.t.Helper()
		d.says(`mutation($w:article_bool_exp!){insert_article(objects:[{id:1,title:"new 1",likes:100,version:"9"},{id:2,title:"new 2",likes:100,version:"9"}],
			on_conflict:{constraint:article_pkey,update_columns:[title],where:$w}){affected_rows returning{id}}}`, `{"w":`+where+`}`, want)
	}
	write(`{"likes":{"_lt":5}}`, `{"data":{"insert_article":{"affected_rows":0,"returning":[]}}}`)
	write(`{"likes":{"_lte":5}}`, `{"data":{"insert_article":{"affected_rows":1,"returning":[{"id":1}]}}}`)
	// A comparison with NULL is not true; it takes an _or.
	write(`{"version":{"_lt":"3"}}`, `{"data":{"insert_article":{"affected_rows":1,"returning":[{"id":1}]}}}`)
	write(`{"_or":[{"version":{"_is_null":true}},{"version":{"_lt":"3"}}]}`, `{"data":{"insert_article":{"affected_rows":2,"returning":[{"id":1},{"id":2}]}}}`)
	// Its arms may tell rows apart by their keys.
	write(`{"_or":[{"_and":[{"id":{"_eq":1}},{"version":{"_lt":"2"}}]},{"id":{"_eq":2},"version":{"_is_null":true}}]}`, `{"data":{"insert_article":{"affected_rows":1,"returning":[{"id":2}]}}}`)
	write(`{"_not":{"id":{"_in":[1,3]}}}`, `{"data":{"insert_article":{"affected_rows":1,"returning":[{"id":2}]}}}`)
	write(`{"id":{"_nin":[2]},"title":{"_neq":"zzz"}}`, `{"data":{"insert_article":{"affected_rows":1,"returning":[{"id":1}]}}}`)
	write(`{"_or":[]}`, `{"data":{"insert_article":{"affected_rows":0,"returning":[]}}}`)
	write(`{}`, `{"data":{"insert_article":{"affected_rows":2,"returning":[{"id":1},{"id":2}]}}}`)
	write(`{"id":{"_in":[]}}`, `{"data":{"insert_article":{"affected_rows":0,"returning":[]}}}`)
}

// What is left out of an object gets the column's default, NULL does not.
func TestDefaults(t *testing.T) {
	d := start(t, hasuratest.Options{}, shop...)
	d.says(`mutation{insert_article(objects:[{id:1},{id:2,likes:null},{id:3,likes:1}]){returning{id likes}}}`, "",
		`{"data":{"insert_article":{"returning":[{"id":1,"likes":7},{"id":2,"likes":null},{"id":3,"likes":1}]}}}`)
}

// The fields of a mutation run in order, in one transaction; one field is one
// statement.
func TestOneTransaction(t *testing.T) {
	d := start(t, hasuratest.Options{}, shop...)
	d.fails(`mutation{
		a:insert_author(objects:{id:1,name:"Ann"}){affected_rows}
		b:insert_article(objects:{id:1,author_id:99}){affected_rows}}`, "",
		"constraint-violation", "$.selectionSet.insert_article.args.objects", `Foreign key violation. insert or update on table "article" violates foreign key constraint "article_author_id_fkey"`)
	d.says(`{author{id}}`, "", `{"data":{"author":[]}}`)
	// Parents before children; aliases may touch one row in turn.
	d.says(`mutation{
		a:insert_author(objects:{id:1,name:"Ann"}){affected_rows}
		b:insert_article(objects:{id:1,author_id:1,likes:1}){affected_rows}
		c:insert_article(objects:{id:1,likes:2},on_conflict:{constraint:article_pkey,update_columns:[likes],where:{likes:{_lt:2}}}){affected_rows returning{likes}}
		d:insert_article(objects:{id:1,likes:1},on_conflict:{constraint:article_pkey,update_columns:[likes],where:{likes:{_lt:1}}}){affected_rows}}`, "",
		`{"data":{"a":{"affected_rows":1},"b":{"affected_rows":1},"c":{"affected_rows":1,"returning":[{"likes":2}]},"d":{"affected_rows":0}}}`)
	// A key twice in one field: SQLSTATE 21000, for which there is no code.
	status, got := d.post("/v1/graphql", `mutation{insert_author(objects:[{id:5,name:"x"},{id:5,name:"y"}],on_conflict:{constraint:author_pkey,update_columns:[name]}){affected_rows}}`, "")
	if status != 200 || !strings.Contains(got, `"code":"unexpected"`) || !strings.Contains(got, `"message":"database query error"`) || !strings.Contains(got, `"status_code":"21000"`) {
		t.Errorf("a key twice: %d %s", status, got)
	}
	// Twice with DO NOTHING is legal: the first has it.
	d.says(`mutation{insert_author(objects:[{id:5,name:"x"},{id:5,name:"y"}],on_conflict:{constraint:author_pkey,update_columns:[]}){affected_rows returning{name}}}`, "",
		`{"data":{"insert_author":{"affected_rows":1,"returning":[{"name":"x"}]}}}`)
}

// Constraints are those of the database that have a name; indexes, partial ones
// among them, are none.
func TestConstraintNames(t *testing.T) {
	d := start(t, hasuratest.Options{}, shop...)
	d.says(`{c:__type(name:"article_constraint"){enumValues{name description}} a:__type(name:"author_constraint"){kind enumValues{name}}}`, "",
		`{"data":{"c":{"enumValues":[{"name":"article_pkey","description":"unique or primary key constraint on columns \"id\""}]},"a":{"kind":"ENUM","enumValues":[{"name":"author_pkey"},{"name":"author_email_key"}]}}}`)
	d.fails(`mutation($c:article_constraint!){insert_article(objects:{id:1},on_conflict:{constraint:$c}){affected_rows}}`, `{"c":"article_title_partial"}`,
		"validation-failed", "$.selectionSet.insert_article.args.on_conflict.constraint", `expected one of the values ['article_pkey'] for type 'article_constraint', but found 'article_title_partial'`)
}

func TestErrorShapes(t *testing.T) {
	d := start(t, hasuratest.Options{}, shop...)
	d.says(twoAuthors, "", `{"data":{"insert_author":{"affected_rows":2}}}`)
	const article = `mutation($o:[article_insert_input!]!){insert_article(objects:$o){affected_rows}}`
	const at = "$.selectionSet.insert_article.args.objects"
	for _, c := range []struct{ name, objects, code, path, message string }{
		{"check", `[{"id":1,"price":-1}]`, "permission-error", at, `Check constraint violation. new row for relation "article" violates check constraint "article_price_check"`},
		{"foreign key", `[{"id":1,"author_id":9}]`, "constraint-violation", at, `Foreign key violation. insert or update on table "article" violates foreign key constraint "article_author_id_fkey"`},
		{"not null", `[{"title":"x"}]`, "constraint-violation", at, `Not-NULL violation. null value in column "id" of relation "article" violates not-null constraint`},
		{"numeric overflow", `[{"id":1,"price":"99999999999"}]`, "data-exception", at, "numeric field overflow"},
		{"bad timestamp", `[{"id":1,"published_on":"soon"}]`, "data-exception", at, `invalid input syntax for type timestamp with time zone: "soon"`},
		{"integer out of bounds", `[{"id":1},{"id":2147483648}]`, "parse-failed", at + "[1].id", "The value 2147483648 lies outside the bounds or is not an integer. Maybe it is a float, or is there integer overflow?"},
		{"number into text", `[{"id":1,"title":5}]`, "parse-failed", at + "[0].title", "parsing Text failed, expected String, but encountered Number"},
		{"number into timestamp", `[{"id":1,"published_on":5}]`, "parse-failed", at + "[0].published_on", "A string is expected for type: timestamptz"},
		{"unknown column", `[{"id":1,"nope":5}]`, "validation-failed", at + "[0].nope", "field 'nope' not found in type: 'article_insert_input'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &double{d.Server, t, d.database, d.header}
			d.fails(article, `{"o":`+c.objects+`}`, c.code, c.path, c.message)
		})
	}
	d.fails(`mutation{insert_nothing(objects:{id:1}){affected_rows}}`, "", "validation-failed", "$.selectionSet.insert_nothing", "field 'insert_nothing' not found in type: 'mutation_root'")
	d.fails(`{author{nope}}`, "", "validation-failed", "$.selectionSet.nope", "field 'nope' not found in type: 'author'")
	d.fails(`query($w:nope_bool_exp!){author(where:$w){id}}`, `{"w":{}}`, "validation-failed", "$.variables.w", "no such type exists in the schema: 'nope_bool_exp'")
	d.fails(`mutation{`, "", "validation-failed", "$.query", "not a valid graphql query")
	d.fails(`query($w:author_bool_exp!){author(where:$w){id}}`, `{"w":{"email":{"_eq":null}}}`, "validation-failed", "$.selectionSet.author.args.where.email._eq", "unexpected null value for type 'String'")
	// The old endpoint answers 400.
	if status, got := d.post("/v1alpha1/graphql", `{nope{id}}`, ""); status != 400 || !strings.Contains(got, `"code":"validation-failed"`) {
		t.Errorf("v1alpha1: %d %s", status, got)
	}
	if status, got := d.post("/v1alpha1/graphql", `{author{id}}`, ""); status != 200 {
		t.Errorf("v1alpha1: %d %s", status, got)
	}
}

func TestInternalDetail(t *testing.T) {
	raise := `create function refuse() returns trigger language plpgsql as 'begin raise exception ''not on sundays''; end'`
	trigger := `create trigger refuse before insert on author for each row execute function refuse()`
	for _, hide := range []bool{false, true} {
		d := start(t, hasuratest.Options{HideInternal: hide}, append(shop, raise, trigger)...)
		_, got := d.post("/v1/graphql", twoAuthors, "")
		if !strings.Contains(got, `"message":"database query error"`) || strings.Contains(got, "sundays") == hide {
			t.Errorf("hidden %v: %s", hide, got)
		}
	}
}
