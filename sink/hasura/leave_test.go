package hasura_test

import (
	"strings"
	"testing"

	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/hasura"
	"github.com/hookfold/hookfold/sink/hasura/hasuratest"
)

// Rows are not left to a guard trigger that is not there: the catalog tells, and
// where only GraphQL can be asked, the comment of a version column.
func TestGuardTriggerThatIsNotThere(t *testing.T) {
	for name, server := range map[string]hasuratest.Options{"catalog": {}, "introspection": {NoAdminAPI: true}} {
		t.Run(name, func(t *testing.T) {
			table := tableOf(t, "item", "id text", "n int max", "v text", "must text scope must")
			r := start(t, hasuratest.Options{}, hasura.Options{}, []string{"create table item (id text primary key, n int, v text, must text not null)"}, table)
			guarded := *table
			guarded.Guard = sink.ByTrigger
			seen := &rig{open(t, hasuratest.New(t, r.database, server), nil, hasura.Options{}), r.server, r.database}
			change := say(t, &guarded, "k", 2, set{"v": "two", "must": "x", "n": "7"})
			if e := failed(t, seen, &guarded, change); e.Action != sink.Retry || !strings.Contains(e.Message, "the guard trigger is not there") {
				t.Errorf("%+v", e)
			}
			r.bring(t, &guarded)
			seen = &rig{open(t, hasuratest.New(t, r.database, server), nil, hasura.Options{}), r.server, r.database}
			write(t, seen, &guarded, change)
			write(t, seen, &guarded, say(t, &guarded, "k", 1, set{"v": "one", "n": "9"})) // lacks what a new row needs
			mustShow(t, seen, &guarded, "k", "n=9 v=two must=x")
		})
	}
}
