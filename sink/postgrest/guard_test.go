package postgrest_test

import (
	"strings"
	"testing"

	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/postgrest"
	"github.com/hookfold/hookfold/sink/postgrest/postgresttest"
)

// In mode rest rows are not left to a guard trigger that is not there: the API's
// description tells the comment of a version column. It may do what filters
// cannot.
func TestGuardTriggerThatIsNotThere(t *testing.T) {
	p := postgresttest.New(t, postgresttest.Options{})
	p.Exec(t, "create table item (id text primary key, n int, v text, tags text[], must text not null)")
	p.Grant(t, "item")
	table := tableOf(t, "item", "id text", "n int max", "v text", "tags text[] union", "must text scope must")
	if list := postgrest.Refuses(table, postgrest.REST); len(list) != 1 {
		t.Errorf("without the trigger: %+v", list)
	}
	plain := *table
	table.Guard = sink.ByTrigger
	if list := postgrest.Refuses(table, postgrest.REST); len(list) != 0 {
		t.Errorf("with the trigger: %+v", list)
	}
	rpc := open(t, p, []*sink.Table{&plain}, postgrest.Options{})
	bring(t, rpc, &plain)
	s := open(t, p, []*sink.Table{table}, postgrest.Options{Mode: postgrest.REST})
	change := say(t, table, "k", 2, map[string]any{"v": "two", "must": "x", "n": "7", "tags": `["b"]`})
	if e := refused(t, s, table, change); e.Action != sink.Retry || !strings.Contains(e.Message, "the guard trigger is not there") {
		t.Errorf("%+v", e)
	}
	bring(t, s, table)
	write(t, s, table, change)
	write(t, s, table, say(t, table, "k", 1, map[string]any{"v": "one", "n": "9", "tags": `["a"]`})) // lacks what a new row needs
	mustShow(t, s, table, "k", `n=9 v=two tags=["a","b"] must=x`)
}
