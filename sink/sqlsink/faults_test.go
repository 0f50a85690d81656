package sqlsink_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// relay stands between a sink and a PostgreSQL server. It can be closed to new
// connections, swallow everything, and it notes the prepared statements that
// get a name.
type relay struct {
	t      testing.TB
	server string
	addr   string

	mu     sync.Mutex
	l      net.Listener
	mute   bool
	conns  []net.Conn
	names  []string
	parses int
}

// relayed returns a relay in front of a database and the database's URL by way
// of it. The relay is not open yet.
func relayed(t testing.TB, database string) (*relay, string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{t: t, server: u.Host}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	l.Close()
	q := u.Query()
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	u.Host = r.addr
	t.Cleanup(r.close)
	return r, u.String()
}

func (r *relay) open() {
	r.t.Helper()
	l, err := net.Listen("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	r.l = l
	r.mu.Unlock()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.mu.Lock()
			mute := r.mute
			r.conns = append(r.conns, c)
			r.mu.Unlock()
			if !mute {
				go r.serve(c)
			}
		}
	}()
}

// close breaks all connections and takes no more.
func (r *relay) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.l != nil {
		r.l.Close()
	}
	for _, c := range r.conns {
		c.Close()
	}
	r.conns = nil
}

func (r *relay) serve(c net.Conn) {
	s, err := net.Dial("tcp", r.server)
	if err != nil {
		c.Close()
		return
	}
	r.mu.Lock()
	r.conns = append(r.conns, s)
	r.mu.Unlock()
	go func() {
		io.Copy(c, s)
		c.Close()
	}()
	// The first message has no type; from then on each is a type, a length and
	// a body. The body of Parse ('P') begins with the statement's name.
	head := make([]byte, 5)
	for first := true; ; first = false {
		n := 5
		if first {
			n = 4
		}
		if _, err := io.ReadFull(c, head[:n]); err != nil {
			break
		}
		body := make([]byte, binary.BigEndian.Uint32(head[n-4:n])-4)
		if _, err := io.ReadFull(c, body); err != nil {
			break
		}
		if !first && head[0] == 'P' {
			name, _, _ := strings.Cut(string(body), "\x00")
			r.mu.Lock()
			r.parses++
			if name != "" {
				r.names = append(r.names, name)
			}
			r.mu.Unlock()
		}
		if _, err := s.Write(append(head[:n:n], body...)); err != nil {
			break
		}
	}
	s.Close()
}

func TestDatabaseThatIsDownAtFirst(t *testing.T) {
	database := testdb.Schema(t)
	table := tableOf(t, "item", "id text", "a text")
	bring(t, open(t, database, nil, sqlsink.Options{}), table)
	r, by := relayed(t, database)
	s := open(t, by, []*sink.Table{table}, sqlsink.Options{})
	change := say(t, table, "k", 1, map[string]any{"a": "x"})
	e := refused(t, s, table, change)
	if e.Action != sink.Retry || !strings.Contains(e.Message, r.addr) || !strings.Contains(e.Message, "cannot be reached") {
		t.Errorf("got %v, action %d", e, e.Action)
	}
	if err := s.Ping(t.Context()); sink.ActionOf(err) != sink.Retry || err == nil {
		t.Errorf("ping: %v", err)
	}
	r.open()
	write(t, s, table, change)
	mustShow(t, s, table, "k", "a=x")

	r.close() // connections that break, as at a restart of the server
	if e := refused(t, s, table, change); e.Action != sink.Retry {
		t.Errorf("got %v, action %d", e, e.Action)
	}
	r.open()
	persist(t, s, table, say(t, table, "k", 2, map[string]any{"a": "y"}))
	mustShow(t, s, table, "k", "a=y")
}

// persist applies again while it is to be tried again: a pool may hold more
// than one connection that is broken.
func persist(t testing.TB, s sink.Sink, table *sink.Table, change *merge.Change) {
	t.Helper()
	var err error
	for range 20 {
		if _, err = s.Apply(t.Context(), &sink.Batch{Groups: []sink.Group{group(table, change)}}); err == nil {
			return
		}
	}
	t.Fatal(err)
}

func TestDatabaseThatDoesNotAnswer(t *testing.T) {
	database := testdb.Schema(t)
	table := tableOf(t, "item", "id text", "a text")
	r, by := relayed(t, database)
	r.mute = true
	r.open()
	s := open(t, by, []*sink.Table{table}, sqlsink.Options{ConnectTimeout: 100 * time.Millisecond, BatchTimeout: 300 * time.Millisecond})
	start := time.Now()
	e := refused(t, s, table, say(t, table, "k", 1, map[string]any{"a": "x"}))
	if e.Action != sink.Retry || !strings.Contains(e.Message, "did not answer in time") {
		t.Errorf("got %v, action %d", e, e.Action)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("it took %s", d)
	}
}

// A statement that is held up by another's lock ends in time.
func TestBatchThatWaitsForALock(t *testing.T) {
	database := testdb.Schema(t)
	table := tableOf(t, "item", "id text", "a text")
	s := open(t, database, []*sink.Table{table}, sqlsink.Options{BatchTimeout: 500 * time.Millisecond})
	bring(t, s, table)
	write(t, s, table, say(t, table, "k", 1, map[string]any{"a": "x"}))
	other := testdb.Connect(t, t.Context(), database)
	defer other.Close(t.Context())
	for _, sql := range []string{"begin", "update item set a = a"} {
		if _, err := other.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if e := refused(t, s, table, say(t, table, "k", 2, map[string]any{"a": "y"})); e.Action != sink.Retry {
		t.Errorf("got %v, action %d", e, e.Action)
	}
	if _, err := other.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	persist(t, s, table, say(t, table, "k", 2, map[string]any{"a": "y"}))
	mustShow(t, s, table, "k", "a=y")
}

// Behind a pooler that gives a connection for one transaction, no prepared
// statement has a name; else they have, and are made once.
func TestPoolerNeedsNoNamedStatements(t *testing.T) {
	for _, pooler := range []string{"transaction", ""} {
		t.Run("pooler "+pooler, func(t *testing.T) {
			r, by := relayed(t, testdb.Postgres(t))
			r.open()
			plain, occupied := tableOf(t, "item", "id text", "a text", "n int max", "tags text[] union"), booking(t, "booking")
			beside := tableOf(t, "besides", "id text", "a text")
			beside.Versions = sink.Beside
			s := open(t, by, nil, sqlsink.Options{Pooler: pooler, Connections: 1})
			bring(t, s, plain, occupied, beside)
			for v := range int64(5) {
				write(t, s, plain, say(t, plain, "k", v, map[string]any{"a": "x", "n": "7", "tags": `["a"]`}))
				write(t, s, beside, say(t, beside, "k", v, map[string]any{"a": "x"}))
				write(t, s, occupied, occupant(t, say(t, occupied, "k", v, map[string]any{"status": "s", "invitee": "i", "channel": "c"}), "A", v))
			}
			mustShow(t, s, plain, "k", `a=x n=7 tags=["a"]`)
			mustShow(t, s, occupied, "k", "status=s invitee=i no_show=NULL peak=NULL channel=c")
			mustShow(t, s, beside, "k", "a=x")
			r.mu.Lock()
			defer r.mu.Unlock()
			if pooler != "" && len(r.names) > 0 {
				t.Errorf("prepared statements with names: %v", r.names)
			}
			if pooler == "" && (len(r.names) == 0 || len(r.names) != r.parses) {
				t.Errorf("%d of %d statements were prepared with a name", len(r.names), r.parses)
			}
		})
	}
}

func TestSchemaFaultsKeepTheBatch(t *testing.T) {
	onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
		table := tableOf(t, "item", "id text", "a text", "note text scope note")
		s := open()
		change := say(t, table, "k", 1, map[string]any{"a": "x", "note": "n"})
		steps := []struct{ sql, want string }{
			{"", "there is no table item"},
			{"create table item (id text not null, a text)", "no column note"},
			{"alter table item add column note text", "no column row_version"},
			{"alter table item add column row_version text", "no column note_version"},
			{"alter table item add column note_version text", "item"},
		}
		for _, x := range steps {
			if x.sql != "" {
				run(t, s, x.sql)
			}
			e := refused(t, s, table, change)
			if e.Action != sink.Retry || !strings.Contains(e.Message, x.want) || !strings.Contains(e.Message, "hookfold migrate") {
				t.Errorf("after %q: %v, action %d", x.sql, e, e.Action)
			}
		}
		if err := s.Execute(t.Context(), []string{"create unique index item_key on item (id)"}); err != nil {
			t.Fatal(err)
		}
		write(t, s, table, change)
		mustShow(t, s, table, "k", "a=x note=n")
	})
}

// A schema that changes under a running sink is looked at again.
func TestSchemaThatChanges(t *testing.T) {
	database := testdb.Schema(t)
	table := tableOf(t, "item", "id text", "a text", "n int", "mood text scope mood")
	testdb.Exec(t, database, "create type mood as enum ('ok')", "create table item (id text primary key, a varchar(3), n int4, mood mood, row_version text, mood_version text)")
	s := open(t, database, []*sink.Table{table}, sqlsink.Options{})
	long := say(t, table, "k", 2, map[string]any{"a": "longer", "n": "99999999999", "mood": "glad"})
	write(t, s, table, say(t, table, "k", 1, map[string]any{"a": "abc", "n": "1"}))
	if e := refused(t, s, table, long); e.Action != sink.Reject || !strings.Contains(e.Message, "6 characters into varchar(3)") {
		t.Errorf("got %v, action %d", e, e.Action)
	}
	testdb.Exec(t, database, "alter table item alter column a type text, alter column n type int8", "alter type mood add value 'glad'")
	write(t, s, table, long)
	mustShow(t, s, table, "k", "a=longer n=99999999999 mood=glad")
	testdb.Exec(t, database, "alter table item add column extra text not null default 'x'", "alter table item alter column extra drop default")
	write(t, s, table, say(t, table, "k", 3, map[string]any{"a": "b", "n": "1"}))
	mustShow(t, s, table, "k", "a=b n=1 mood=glad")
	if e := refused(t, s, table, say(t, table, "new", 3, map[string]any{"a": "b", "n": "1"})); e.Action != sink.Wait || e.On != "item.extra" {
		t.Errorf("got %v, action %d, on %q", e, e.Action, e.On)
	}
	testdb.Exec(t, database, "alter table item alter column extra drop not null")
	write(t, s, table, say(t, table, "new", 3, map[string]any{"a": "b", "n": "1"}))
}

func TestOpenRefuses(t *testing.T) {
	for url, want := range map[string]string{
		"oracle://x/y": "oracle", "mysql://u:s3cret@h": "no database", "mysql://u:s3cret@h/d?timeout=1s": "timeout", "mysql://u:s3cret@h/d?tls=on": "tls=on",
		"mysql://u:s3cret@h:notaport/x": "port", "sqlite:": "name a file", "sqlite::memory:": "name a file",
		"postgres://u:s3cret@127.0.0.1:notaport/x": "port",
	} {
		_, err := sqlsink.Open(t.Context(), url, nil, sqlsink.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := sqlsink.Open(t.Context(), "postgres://u@127.0.0.1/x", nil, sqlsink.Options{Pooler: "session"}); err == nil {
		t.Error("an unknown pooler was taken")
	}
}

func TestOpenRefusesTablesThatShareAVersion(t *testing.T) {
	named := func(name string, columns ...string) *sink.Table {
		m := shape(t, name, "id text", columns...)
		return &sink.Table{Name: "public.item", Table: merge.NewTable(m)}
	}
	a, b, apart := named("a", "x text"), named("b", "y text"), named("c", "z text scope z")
	for _, x := range []struct {
		tables []*sink.Table
		want   string
	}{{[]*sink.Table{a, b}, "a and b are both table public.item and both write row_version"}, {[]*sink.Table{a, apart, a}, ""}} {
		s, err := sqlsink.Open(t.Context(), testdb.SQLite(t), x.tables, sqlsink.Options{})
		if err == nil {
			s.Close()
		}
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("got %v, want %q", err, x.want)
		}
	}
}

func TestUnreachableTellsNoSecret(t *testing.T) {
	s := open(t, "postgres://u:s3cret@127.0.0.1:1/x", nil, sqlsink.Options{ConnectTimeout: time.Second})
	if err := s.Ping(t.Context()); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}

// Two writers of one SQLite file, one of which holds it.
func TestSQLiteThatIsHeld(t *testing.T) {
	file := "sqlite:" + filepath.Join(t.TempDir(), "a file with % and ?.db")
	table := tableOf(t, "item", "id text", "a text")
	s := open(t, file, nil, sqlsink.Options{BatchTimeout: 200 * time.Millisecond})
	bring(t, s, table)
	holder := open(t, file, nil, sqlsink.Options{})
	if err := holder.Execute(t.Context(), []string{"begin immediate"}); err != nil {
		t.Fatal(err)
	}
	if e := refused(t, s, table, say(t, table, "k", 1, map[string]any{"a": "x"})); e.Action != sink.Retry || !strings.Contains(e.Message, "holds") && !strings.Contains(e.Message, "in time") {
		t.Errorf("got %v, action %d", e, e.Action)
	}
	if err := holder.Execute(t.Context(), []string{"rollback"}); err != nil {
		t.Fatal(err)
	}
	write(t, s, table, say(t, table, "k", 1, map[string]any{"a": "x"}))
	mustShow(t, s, table, "k", "a=x")
}

// Looking at a SQLite database makes no file; the first write does.
func TestSQLiteThatIsNotThereYet(t *testing.T) {
	url := testdb.SQLite(t)
	path := strings.TrimPrefix(url, "sqlite:")
	table := tableOf(t, "item", "id text", "a text")
	s := open(t, url, nil, sqlsink.Options{})
	live, err := s.Inspect(t.Context(), table)
	if err != nil || live.Exists {
		t.Errorf("%+v, %v", live, err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("looking made the file: %v", err)
	}
	bring(t, s, table)
	write(t, s, table, say(t, table, "k", 1, map[string]any{"a": "x"}))
	mustShow(t, s, table, "k", "a=x")

	nowhere := open(t, "sqlite:"+filepath.Join(filepath.Dir(path), "no", "such", "folder.db"), nil, sqlsink.Options{})
	if err := nowhere.Ping(t.Context()); err == nil {
		t.Error("a folder that is not there was reached")
	}
}

// The defaults that a database has for transactions do not count.
func TestDefaultsOfTransactions(t *testing.T) {
	url := testdb.Postgres(t)
	table := tableOf(t, "item", "id text", "n int max")
	bring(t, open(t, url, nil, sqlsink.Options{}), table)
	name := url[strings.LastIndex(url, "/")+1:]
	testdb.Exec(t, url, "alter database "+name+" set default_transaction_isolation = 'serializable'", "alter database "+name+" set default_transaction_read_only = on")
	var changes []*merge.Change
	for i := range 40 {
		changes = append(changes, say(t, table, fmt.Sprint("k", i%4), int64(i), map[string]any{"n": fmt.Sprint(i)}))
	}
	writers(t, url, table, changes)
	expect(t, url, table, changes)
}
