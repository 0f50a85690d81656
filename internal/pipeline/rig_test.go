package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/journal/sqlite"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The tables of the tests: an item may name a user as its parent.
var (
	userTable = &sink.Table{Name: "user", Table: merge.NewTable(merge.Table{
		Name: "user", Key: []merge.KeyColumn{{Name: "id"}}, Columns: []merge.Column{{Name: "name", Rule: merge.Latest, Scope: merge.RowScope}},
	})}
	itemTable = &sink.Table{Name: "item", Table: merge.NewTable(merge.Table{
		Name: "item", Key: []merge.KeyColumn{{Name: "id"}},
		Columns: []merge.Column{
			{Name: "value", Rule: merge.Latest, Scope: merge.RowScope},
			{Name: "top", Type: merge.Type{Kind: merge.Int}, Rule: merge.Max},
		},
	})}
	tables = []*sink.Table{userTable, itemTable}
)

// events splits a body that is an event or a list of events.
func events(d *event.Delivery) (*mapping.Split, error) {
	body, err := event.ParseJSON(d.Body)
	if err != nil {
		return nil, err
	}
	list := []event.JSON{body}
	if body.Kind() == event.Array {
		list = nil
		for i := range body.Len() {
			list = append(list, body.At(i))
		}
	}
	s := &mapping.Split{}
	for i, b := range list {
		s.Events = append(s.Events, &event.Event{
			Delivery: d, Index: i, ID: b.Get("event").Text(), Type: b.Get("type").Text(), Body: b, FirstReceived: d.Received,
		})
	}
	return s, nil
}

// mapEvent maps {"id":"a","at":1,"value":"x","top":2,"user":"u"}, or
// {"user":"u","name":"n"}. An id of "fault" cannot be mapped, one of "panic"
// panics, and the type "other" is wanted by nobody. Instead of a "user", which is
// inserted, it may name one that it "wants", to wait "for" so many seconds; a
// user waits for its "boss".
func mapEvent(e *event.Event) mapping.Outcome {
	text := func(name string) (merge.Cell, bool) {
		s, ok := e.Body.Get(name).Scalar()
		if !ok {
			return merge.Cell{}, false
		}
		v, err := merge.ParseValue(merge.Type{}, s)
		if err != nil {
			panic(err)
		}
		return merge.Cell{Set: true, Value: v}, true
	}
	if e.Type == "other" {
		return mapping.Outcome{}
	}
	at, _ := strconv.ParseInt(e.Body.Get("at").Digits(), 10, 64)
	version := merge.NewVersion([]merge.Component{merge.IntOf(at)}, merge.Write, e.Body.Raw())
	out := mapping.Outcome{Wanted: true}
	id, user := e.Body.Get("id").Text(), e.Body.Get("user").Text()
	switch id {
	case "fault":
		out.Faults = append(out.Faults, mapping.Fault{Table: "item", Reason: "key id is null (event.id). Events without a key belong in a when:."})
		return out
	case "panic":
		panic("by the test")
	case "":
		c := &merge.Change{Table: userTable.Table, From: e.Ref(), Key: merge.NewKey(user), Version: version, Cells: make([]merge.Cell, 1)}
		c.Cells[0], _ = text("name")
		if boss := e.Body.Get("boss").Text(); boss != "" {
			c.Parents = []merge.Parent{{Table: userTable.Table, Key: merge.NewKey(boss), Wait: true}}
		}
		out.Changes = append(out.Changes, c)
		return out
	}
	c := &merge.Change{Table: itemTable.Table, From: e.Ref(), Key: merge.NewKey(id), Version: version, Cells: make([]merge.Cell, 2)}
	c.Cells[0], _ = text("value")
	c.Cells[1], _ = text("top")
	if user != "" {
		c.Parents = []merge.Parent{{Table: userTable.Table, Key: merge.NewKey(user)}}
	}
	if wants := e.Body.Get("wants").Text(); wants != "" {
		limit, _ := strconv.Atoi(e.Body.Get("for").Digits())
		c.Parents = append(c.Parents, merge.Parent{Table: userTable.Table, Key: merge.NewKey(wants), Wait: true, For: time.Duration(limit) * time.Second})
	}
	if e.Type == "wait" {
		c.IfMissing = merge.Wait
	}
	out.Changes = append(out.Changes, c)
	return out
}

// memory is a sink that keeps rows and fails as it is told.
type memory struct {
	mu    sync.Mutex
	rows  map[string]*merge.Row
	tries int
	// fail, if it gives an error, fails a batch.
	fail func(b *sink.Batch) error
	// after is called when a batch is in, and its error is Apply's.
	after func() error
	live  map[string]*sink.Live
	ping  error
	// unique and notNull are constraints on the item's value; nameless faults do
	// not tell of which row they are.
	unique, notNull, nameless bool
	asked                     int // keys by Known
}

func newMemory() *memory {
	return &memory{rows: map[string]*merge.Row{}, live: map[string]*sink.Live{}}
}

func (m *memory) Apply(ctx context.Context, b *sink.Batch) (*sink.Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tries++
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if m.fail != nil {
		if err := m.fail(b); err != nil {
			return nil, err
		}
	}
	next, res := maps.Clone(m.rows), &sink.Result{}
	if b.Park && m.unique {
		for _, g := range b.Groups {
			for _, row := range g.Rows {
				k := g.Table.Name + " " + string(row.Key)
				if have := next[k]; have != nil && g.Table == itemTable && row.Scopes[0] > have.Scopes[0] {
					free := *have
					free.Cells = append([]merge.Cell{{Set: true}}, have.Cells[1:]...)
					next[k] = &free
				}
			}
		}
	}
	for _, g := range b.Groups {
		for _, row := range g.Rows {
			whole := row
			k := g.Table.Name + " " + string(row.Key)
			have := next[k]
			if have == nil && row.IfMissing == merge.Wait {
				res.Absent = append(res.Absent, sink.RowRef{Table: g.Table, Row: row})
				continue
			}
			if have != nil {
				row = merge.Join(g.Table.Table, have, row)
			}
			if err := m.constrain(g.Table, next, row); err != nil {
				if m.nameless {
					return nil, err
				}
				return nil, &sink.BatchError{Rows: []sink.RowError{{RowRef: sink.RowRef{Table: g.Table, Row: whole}, Err: err}}}
			}
			if have != nil && reflect.DeepEqual(have, row) {
				res.Unchanged++
				continue
			}
			next[k] = row
			res.Written++
		}
	}
	m.rows = next
	if m.after != nil {
		return res, m.after()
	}
	return res, nil
}

// constrain judges a row as a database does.
func (m *memory) constrain(t *sink.Table, rows map[string]*merge.Row, row *merge.Row) *sink.Error {
	if t != itemTable {
		return nil
	}
	value := row.Cells[0].Value
	if m.notNull && value.IsNull() {
		return &sink.Error{Action: sink.Wait, Message: "item.value is NOT NULL and has no value yet", On: "item.value", Why: sink.NotNull}
	}
	for k, other := range rows {
		if m.unique && !value.IsNull() && strings.HasPrefix(k, "item ") && other.Key != row.Key && other.Cells[0].Value == value {
			e := &sink.Error{Action: sink.Wait, Message: fmt.Sprintf("item: another row has the value %s", value.Text()), Why: sink.UniqueValue}
			if !m.nameless {
				e.On = "item id=" + string(other.Key)
			}
			return e
		}
	}
	return nil
}

// Known implements sink.Knower.
func (m *memory) Known(_ context.Context, t *sink.Table, keys []merge.Key) ([]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ping != nil {
		return nil, m.ping
	}
	out := make([]bool, len(keys))
	for i, k := range keys {
		m.asked++
		out[i] = m.rows[t.Name+" "+string(k)] != nil
	}
	return out, nil
}

// Read implements what a runner reads: which rows there are.
func (m *memory) Read(_ context.Context, t *sink.Table, keys []merge.Key) ([]*merge.Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*merge.Row, len(keys))
	for i, k := range keys {
		out[i] = m.rows[t.Name+" "+string(k)]
	}
	return out, nil
}

func (m *memory) Inspect(_ context.Context, t *sink.Table) (*sink.Live, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ping != nil {
		return nil, m.ping
	}
	if l := m.live[t.Name]; l != nil {
		return l, nil
	}
	return &sink.Live{Exists: true}, nil
}

func (m *memory) Ping(context.Context) error { m.mu.Lock(); defer m.mu.Unlock(); return m.ping }

func (m *memory) set(f func()) { m.mu.Lock(); defer m.mu.Unlock(); f() }

func (m *memory) questions() int { m.mu.Lock(); defer m.mu.Unlock(); return m.asked }

func (m *memory) attempts() int { m.mu.Lock(); defer m.mu.Unlock(); return m.tries }

// show gives the rows as "item a" → "x/2".
func (m *memory) show() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]string{}
	for k, r := range m.rows {
		s := ""
		for i, c := range r.Cells {
			if i > 0 {
				s += "/"
			}
			s += c.Value.Text()
		}
		out[k] = s
	}
	return out
}

func rowNamed(b *sink.Batch, table, id string) (sink.RowRef, bool) {
	for _, g := range b.Groups {
		for _, r := range g.Rows {
			if g.Table.Name == table && string(r.Key) == id {
				return sink.RowRef{Table: g.Table, Row: r}, true
			}
		}
	}
	return sink.RowRef{}, false
}

var errDown = &sink.Error{Action: sink.Retry, Message: "connection refused"}

type rig struct {
	*testing.T
	journal *sqlite.Journal
	sink    *memory
	runner  *Runner
	options Options
	log     *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}
func (s *syncBuffer) String() string { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

// newRig makes a runner over a journal in a file; start sets it going. At the
// end of the test everything is closed.
func newRig(t *testing.T) *rig {
	t.Helper()
	j, err := sqlite.Open(filepath.Join(t.TempDir(), "j.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, journal: j, sink: newMemory(), log: &syncBuffer{}}
	r.options = Options{
		Target: "db", Journal: j, Sink: r.sink, Map: mapEvent, Tables: tables,
		Sources: map[string]Source{"shop": {Events: events, NeedsFirstReceipt: true}},
		Log:     slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelInfo})),
	}
	t.Cleanup(func() {
		r.stop()
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) start() {
	r.Helper()
	r.runner = New(r.options)
	if err := r.runner.Start(context.Background()); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) stop() {
	r.Helper()
	if r.runner == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := r.runner.Stop(ctx); err != nil {
		r.Error(err)
	}
}

func (r *rig) send(bodies ...string) {
	r.Helper()
	for _, b := range bodies {
		if err := r.journal.Append(context.Background(), &event.Delivery{Source: "shop", Body: []byte(b), Received: time.Now().UTC()}); err != nil {
			r.Fatal(err)
		}
	}
}

// settle waits until nothing is pending.
func (r *rig) settle() {
	r.Helper()
	r.until(func() bool {
		n, _, err := r.runner.Lag(context.Background())
		if err != nil {
			r.Fatal(err)
		}
		return n == 0
	})
}

// until waits for a condition that the runner brings about.
func (r *rig) until(is func() bool) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			r.Fatalf("it does not come about; the log says:\n%s", r.log)
		}
	}
}

func (r *rig) entries(state journal.State) []journal.Entry {
	r.Helper()
	es, err := r.journal.Entries(context.Background(), journal.Filter{Consumer: "db", State: state})
	if err != nil {
		r.Fatal(err)
	}
	return es
}

// lines are the entries of a state as a person reads them.
func (r *rig) lines(state journal.State) []string {
	var out []string
	for _, e := range r.entries(state) {
		out = append(out, Line(e, e.Since))
	}
	return out
}

func numbered(n int, f string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(f, i)
	}
	return out
}

var errTest = errors.New("by the test")
