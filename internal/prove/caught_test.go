package prove_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/check"
	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/internal/prove"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// found runs a proof that must fail, and returns its story.
func found(t *testing.T, o prove.Options, most int) string {
	t.Helper()
	r := run(t, o)
	if r.Counterexample == nil {
		t.Fatalf("nothing is found in %d orders", r.Orders)
	}
	story := prove.Story(r.Counterexample)
	if len(r.Counterexample.Deliveries) > most {
		t.Errorf("shrunk to %d deliveries:\n%s", len(r.Counterexample.Deliveries), story)
	}
	t.Logf("found in %d orders:\n%s", r.Orders, story)
	return story
}

const users = `
  user:
    name: app_user
    key: {id: text}
    columns: {email: text, plan: text}
    events:
      - {from: shop, type: "user.*", key: {id: event.user}, set: {email: event.email, plan: event.plan}}
  order:
    key: {id: text}
    columns: {user_id: {type: text, references: user, missing: ensure}}
    events:
      - {from: shop, type: "order.*", key: {id: event.order}, set: {user_id: event.user}}
`

var userEvents = shop(`
	{"type":"user.created","at":"2026-03-01T10:00:00Z","user":"u","email":"a@example.test","plan":"free"}
	{"type":"user.updated","at":"2026-03-01T10:00:02Z","user":"u","email":"b@example.test","plan":"pro"}
	{"type":"order.created","at":"2026-03-01T10:00:03Z","order":"o","user":"u"}
	{"type":"user.updated","at":"2026-03-01T10:00:04Z","user":"u","email":"c@example.test","plan":"max"}
	{"type":"user.created","at":"2026-03-01T10:00:05Z","user":"w","email":"w@example.test","plan":"max"}
	{"type":"plan.changed","at":"2026-03-01T10:00:06Z","user":"u","plan":"none"}
	{"type":"order.created","at":"2026-03-01T10:00:07Z","order":"p","user":"v"}`)

// A scope that is fed in part, which check refuses: a value that nobody has
// taken back is gone.
func TestPartialMappingIsCaught(t *testing.T) {
	plan := compiled(t, strings.Replace(users, "  order:\n", `      - {from: shop, type: plan.changed, key: {id: event.user}, set: {plan: event.plan}}
  order:
`, 1))
	if check.Run(plan).Problems.Err() == nil {
		t.Fatal("check does not refuse it any more")
	}
	story := found(t, prove.Options{Plan: plan, Deliveries: userEvents, Sink: open(t, engines["sqlite"](t), pipeline.Tables(plan, "db"), sqlsink.Options{})}, 2)
	if !strings.Contains(story, "user id=u: email is NULL, and must be c@example.test: a newer event sets") {
		t.Error("it is not told")
	}
}

// The guard that people write first: it never writes over a row whose version is
// still NULL, which a child has inserted for want of a parent.
func TestOwnStatementIsCaught(t *testing.T) {
	own := map[string]string{
		"sqlite": `insert into app_user (id, email, plan, row_version) values (?1, ?2, ?3, ?4)
			on conflict (id) do update set email = excluded.email, plan = excluded.plan, row_version = excluded.row_version where excluded.row_version > app_user.row_version`,
		"postgres": `insert into app_user (id, email, plan, row_version) select * from unnest($1::text[], $2::text[], $3::text[], $4::text[])
			on conflict (id) do update set email = excluded.email, plan = excluded.plan, row_version = excluded.row_version where excluded.row_version > app_user.row_version`,
	}
	plan := compiled(t, users)
	for engine, database := range engines {
		t.Run(engine, func(t *testing.T) {
			o := sqlsink.Options{Rewrite: func(table *sink.Table, s *compile.Statements) {
				if table.Table.Name == "user" {
					s.Upsert.SQL = strings.Replace(own[engine], "into app_user", "into "+table.Name+" as app_user", 1)
				}
			}}
			found(t, prove.Options{Plan: plan, Deliveries: userEvents, Sink: open(t, database(t), pipeline.Tables(plan, "db"), o)}, 2)
		})
	}
}

// Who reads, decides and then writes is right with one writer, and wrong with
// several.
func TestReadThenWriteIsCaught(t *testing.T) {
	plan := compiled(t, users)
	unguarded := func(table *sink.Table, s *compile.Statements) {
		s.Upsert.SQL = replace(version, `'b' > 'a'`)(s.Upsert.SQL)
	}
	for engine, database := range engines {
		t.Run(engine, func(t *testing.T) {
			at := &decides{open(t, database(t), pipeline.Tables(plan, "db"), sqlsink.Options{Rewrite: unguarded})}
			story := found(t, prove.Options{Plan: plan, Deliveries: userEvents, Sink: at, Orders: 2000}, 4)
			if !strings.Contains(story, "writers at once") {
				t.Error("it is not told that it takes several writers")
			}
		})
	}
}

// decides reads, and lets another one that has read too go on with it, so that
// the two meet.
type decides struct{ sink.Scratcher }

func (d *decides) Scratch(ctx context.Context, tables []*sink.Table) (sink.Scratch, error) {
	x, err := d.Scratcher.Scratch(ctx, tables)
	if err != nil {
		return nil, err
	}
	return &deciding{x, make(chan struct{})}, nil
}

type deciding struct {
	sink.Scratch
	meet chan struct{}
}

// meetingTime is how long one waits for another: with one writer there is none.
const meetingTime = 5 * time.Millisecond

func (d *deciding) Apply(ctx context.Context, b *sink.Batch) (*sink.Result, error) {
	newer := &sink.Batch{Park: b.Park}
	for _, g := range b.Groups {
		var keys []merge.Key
		for _, r := range g.Rows {
			keys = append(keys, r.Key)
		}
		have, err := d.Read(ctx, g.Table, keys)
		if err != nil {
			return nil, err
		}
		own := sink.Group{Table: g.Table}
		for i, r := range g.Rows {
			if have[i] == nil || r.Scopes[0] > have[i].Scopes[0] {
				own.Rows = append(own.Rows, r)
			}
		}
		newer.Groups = append(newer.Groups, own)
	}
	select {
	case d.meet <- struct{}{}:
	case <-d.meet:
	case <-time.After(meetingTime):
	}
	return d.Scratch.Apply(ctx, newer)
}

// A value that a unique index keeps apart has the row that comes first: check
// says so, and so it is no fault. What waits for it is not compared with merge.
func TestContestedValuesAreNoFault(t *testing.T) {
	plan := compiled(t, users)
	history := shop(`
		{"type":"user.created","at":"2026-03-01T10:00:00Z","user":"u","email":"same@example.test","plan":"free"}
		{"type":"user.created","at":"2026-03-01T10:00:02Z","user":"w","email":"same@example.test","plan":"pro"}
		{"type":"user.updated","at":"2026-03-01T10:00:03Z","user":"w","email":"same@example.test","plan":"max"}
		{"type":"user.created","at":"2026-03-01T10:00:02Z","user":"x","email":"other@example.test","plan":"pro"}`)
	for engine, database := range engines {
		t.Run(engine, func(t *testing.T) {
			s := open(t, database(t), pipeline.Tables(plan, "db"), sqlsink.Options{}).(sink.Sink)
			if err := s.Execute(t.Context(), []string{"create table app_user (id text primary key, email text unique, plan text)"}); err != nil {
				t.Fatal(err)
			}
			r := run(t, prove.Options{Plan: plan, Deliveries: history, Orders: orders(), Sink: s.(sink.Scratcher)})
			if r.Counterexample != nil {
				t.Fatal(prove.Story(r.Counterexample))
			}
			if len(r.Depends) != 1 || r.Depends[0].Orders == 0 || !strings.Contains(r.Depends[0].Because, "contested values of email") || len(r.Left) == 0 {
				t.Errorf("depends %+v, left %+v", r.Depends, r.Left)
			}
		})
	}
}

// What waits for a parent that nobody brings waits in every order, and what
// cannot be mapped is dead in every order: that is no fault either.
func TestWaitingAndDeadAreTheSameInEveryOrder(t *testing.T) {
	plan := compiled(t, strings.Replace(users, "missing: ensure", "missing: wait", 1))
	history := append(shop(`
		{"type":"order.created","at":"2026-03-01T10:00:03Z","order":"o","user":"u"}
		{"type":"user.created","at":"2026-03-01T10:00:00Z","user":"u","email":"a@example.test","plan":"free"}
		{"type":"order.created","at":"2026-03-01T10:00:04Z","order":"p","user":"nobody"}
		{"type":"user.created","at":"2026-03-01T10:00:01Z","user":"w","plan":"free"}`), delivery("shop", "not JSON"))
	for engine, database := range engines {
		t.Run(engine, func(t *testing.T) {
			r := run(t, prove.Options{Plan: plan, Deliveries: history, Orders: orders(), Sink: open(t, database(t), pipeline.Tables(plan, "db"), sqlsink.Options{})})
			if r.Counterexample != nil {
				t.Fatal(prove.Story(r.Counterexample))
			}
			var left []string
			for _, e := range r.Left {
				left = append(left, e.Ref.String()+" "+string(e.State))
			}
			if got := strings.Join(left, ", "); got != "#3 waiting, #4 dead, #5 dead" {
				t.Errorf("left are %s", got)
			}
			if r.Rows["user"] != 1 || r.Rows["order"] != 1 {
				t.Errorf("there are rows %v", r.Rows)
			}
		})
	}
}

// What waits for a column that only another event brings waits in no order in
// the end, and where none brings it in every order.
func TestNotNullIsTheSameInEveryOrder(t *testing.T) {
	plan := compiled(t, `
  user:
    name: app_user
    key: {id: text}
    columns: {email: {type: text, scope: email}, plan: {type: text, scope: plan}, top: {type: int, merge: max}}
    events:
      - {from: shop, type: mail, key: {id: event.user}, set: {email: event.email, top: event.n}}
      - {from: shop, type: plan, key: {id: event.user}, set: {plan: event.plan, top: event.n}}
`)
	history := shop(`
		{"type":"mail","at":"2026-03-01T10:00:00Z","user":"u","email":"u@example.test","n":9}
		{"type":"plan","at":"2026-03-01T10:00:01Z","user":"u","plan":"free","n":5}
		{"type":"mail","at":"2026-03-01T10:00:02Z","user":"w","email":"w@example.test","n":1}`)
	for engine, database := range engines {
		t.Run(engine, func(t *testing.T) {
			s := open(t, database(t), pipeline.Tables(plan, "db"), sqlsink.Options{}).(sink.Sink)
			if err := s.Execute(t.Context(), []string{"create table app_user (id text primary key, email text, plan text not null, top bigint)"}); err != nil {
				t.Fatal(err)
			}
			r := run(t, prove.Options{Plan: plan, Deliveries: history, Orders: 30, Sink: s.(sink.Scratcher)})
			if r.Counterexample != nil {
				t.Fatal(prove.Story(r.Counterexample))
			}
			if len(r.Left) != 1 || r.Left[0].Ref.Position != 3 || r.Rows["user"] != 1 || len(r.Depends) > 0 {
				t.Errorf("left %+v, rows %v, depends %v", r.Left, r.Rows, r.Depends)
			}
		})
	}
}
