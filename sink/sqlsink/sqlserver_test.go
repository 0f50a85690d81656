package sqlsink_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/tdstest"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// liveTDS answers what is asked of the catalog of SQL Server, for one table:
// columns are written "name type length precision scale collation codepage".
type liveTDS struct {
	columns []string
	key     []string
}

func (l liveTDS) answer(r tdstest.Request) (tdstest.Answer, bool) {
	var rows [][]any
	switch r.SQL {
	case compile.SQLServerTable:
		return tdstest.Answer{Columns: []string{"id", "type", "trigger"}, Rows: [][]any{{"7", "U", "0"}}}, true
	case compile.SQLServerColumns:
		for _, c := range l.columns {
			w := append(strings.Fields(c), "0", "0", "0", "", "0")
			rows = append(rows, []any{w[0], w[1], w[2], w[3], w[4], "1", "0", "0", "", "", strings.Trim(w[5], "0"), w[6]})
		}
		return tdstest.Answer{Columns: strings.Split("name type length precision scale nullable identity computed default constraint collation page", " "), Rows: rows}, true
	case compile.SQLServerUniques:
		for _, k := range l.key {
			rows = append(rows, []any{"pk", "0", k})
		}
		return tdstest.Answer{Columns: []string{"index", "ignores", "column"}, Rows: rows}, true
	case compile.SQLServerReferences:
		return tdstest.Answer{Columns: strings.Split("1 2 3 4 5 6 7 8 9 10", " ")}, true
	}
	return tdstest.Answer{}, false
}

var messageStatusTDS = liveTDS{key: []string{"message_id"}, columns: []string{
	"message_id varchar 100 0 0 Latin1_General_BIN2 1252", "status nvarchar 40 0 0 SQL_Latin1_General_CP1_CI_AS 1252", "sent_at datetime2 8 27 6",
	"error bigint 8 19 0", "error_version nvarchar 900 0 0 Latin1_General_BIN2 1252",
}}

func messageStatus(t testing.TB) *sink.Table {
	return tableOf(t, "message_status", "message_id text", "status text ladder sent,delivered,read", "sent_at timestamp min", "error int scope error")
}

// overTDS opens a sink on a server that answers the catalog, and all else as
// answer says.
func overTDS(t *testing.T, live liveTDS, query string, opts sqlsink.Options, answer func(tdstest.Request) tdstest.Answer) (sink.Sink, *tdstest.Server) {
	t.Helper()
	s := tdstest.New(t, nil, func(r tdstest.Request) tdstest.Answer {
		if a, ok := live.answer(r); ok {
			return a
		}
		return answer(r)
	})
	return open(t, s.URL("database=rows&"+query), nil, opts), s
}

func written(tdstest.Request) tdstest.Answer { return tdstest.Answer{Counts: []int{1, 0}} }

func statusChange(t testing.TB, table *sink.Table, key string) *merge.Change {
	return say(t, table, key, 5, map[string]any{"status": "read", "sent_at": "2026-05-06T09:00:00Z"})
}

// A batch is one statement with one nvarchar(max) parameter, in a transaction of
// READ COMMITTED in which an error does not end it, and waits are bounded.
func TestSQLServerWire(t *testing.T) {
	table := messageStatus(t)
	s, server := overTDS(t, messageStatusTDS, "encrypt=disable", sqlsink.Options{}, written)
	got := write(t, s, table, statusChange(t, table, "wamid.é"), say(t, table, "wamid.2", 7, map[string]any{"error": nil}))
	if got.Written != 1 || got.Unchanged != 1 {
		t.Errorf("%+v", got)
	}
	if trace := server.Trace(); trace != "login select select select select set begin declare commit" {
		t.Error(trace)
	}
	for _, r := range server.Requests() {
		switch {
		case r.Kind == tdstest.Begin && r.Isolation != 2:
			t.Errorf("the transaction is not READ COMMITTED: %+v", r)
		case strings.HasPrefix(r.SQL, "set ") && r.SQL != "set xact_abort off; set lock_timeout 1000;":
			t.Error(r.SQL)
		case r.Kind == tdstest.Login && (r.App != "hookfold" || r.SQL != "rows"):
			t.Errorf("%+v", r)
		}
	}
	calls := server.Statements("openjson")
	if len(calls) != 1 || calls[0].Declared != "@rows nvarchar(max)" || len(calls[0].Params) != 1 {
		t.Fatalf("%+v", calls)
	}
	version := string(say(t, table, "wamid.2", 7, map[string]any{"error": nil}).Version)
	want := `[{"n":0,"p1":"wamid.2","p2":null,"p3":null,"p4":null,"p5":"` + version + `"},{"n":1,"p1":"wamid.é","p2":"read","p3":"2026-05-06T09:00:00.000000Z","p4":null,"p5":null}]`
	if d := cmp.Diff(want, calls[0].Params[0].Value); d != "" {
		t.Error(d)
	}
	for _, part := range []string{
		"cast(v.p1 collate Latin1_General_BIN2 as varchar(8000))", // the column's type: its index can be used
		"cast(replace(v.p3, N'Z', N'') as datetime2(6))", "cast(v.p4 as bigint)", "v.p2 collate SQL_Latin1_General_CP1_CI_AS",
	} {
		if !strings.Contains(calls[0].SQL, part) {
			t.Errorf("no %s in\n%s", part, calls[0].SQL)
		}
	}
}

// What a column cannot hold as it is never reaches the server.
func TestSQLServerRefusesBeforeTheServerDoes(t *testing.T) {
	table := messageStatus(t)
	s, server := overTDS(t, messageStatusTDS, "encrypt=disable", sqlsink.Options{}, written)
	for key, want := range map[string]string{
		"Я": "not a character of code page 1252", "a ": "ends in a blank", strings.Repeat("é", 101): "101 bytes into varchar(100)",
	} {
		if e := refused(t, s, table, statusChange(t, table, key)); e.Action != sink.Reject || !strings.Contains(e.Message, want) {
			t.Errorf("%q: %+v", key, e)
		}
	}
	long := tableOf(t, "message_status", "message_id text", "status text", "sent_at timestamp min", "error int scope error")
	live := messageStatusTDS
	live.columns = append([]string{}, append(live.columns, "row_version nvarchar 900 0 0 Latin1_General_BIN2 1252")...)
	s, _ = overTDS(t, live, "encrypt=disable", sqlsink.Options{}, written)
	if e := refused(t, s, long, say(t, long, "k", 1, map[string]any{"status": strings.Repeat("😀", 11)})); e.Action != sink.Reject || !strings.Contains(e.Message, "22 UTF-16 units into nvarchar(20)") {
		t.Errorf("%+v", e)
	}
	if n := len(server.Statements("openjson")); n != 0 {
		t.Errorf("%d statements were sent", n)
	}
}

// Each error of the server says what is to be done.
func TestSQLServerErrors(t *testing.T) {
	for _, x := range []struct {
		number  int32
		message string
		action  sink.Action
		why     sink.Why
		says    string
	}{
		{2627, "Violation of PRIMARY KEY constraint 'PK_x'. Cannot insert duplicate key in object 'dbo.message_status'.", sink.Wait, sink.UniqueValue, "unique PK_x"},
		{2601, "Cannot insert duplicate key row in object 'dbo.message_status' with unique index 'ux'.", sink.Wait, sink.UniqueValue, "unique ux"},
		{547, `The INSERT statement conflicted with the FOREIGN KEY constraint "fk_user". The conflict occurred in database "d", table "dbo.user", column 'id'.`, sink.Wait, sink.NeedsParent, "fk_user"},
		{547, `The UPDATE statement conflicted with the CHECK constraint "ck". The conflict occurred in database "d".`, sink.Reject, "", "check ck"},
		{515, "Cannot insert the value NULL into column 'sent_at', table 'd.dbo.message_status'; column does not allow nulls. INSERT fails.", sink.Wait, sink.NotNull, "sent_at"},
		{8672, "The MERGE statement attempted to UPDATE or DELETE the same row more than once.", sink.Reject, "", "two keys"},
		{2628, "String or binary data would be truncated in table 'd.dbo.t', column 'status'.", sink.Reject, "", "does not fit"},
		{8152, "String or binary data would be truncated.", sink.Reject, "", "does not fit"},
		{8115, "Arithmetic overflow error converting nvarchar to data type numeric.", sink.Reject, "", "does not fit"},
		{208, "Invalid object name 'message_status'.", sink.Retry, "", "hookfold migrate"},
		{229, "The INSERT permission was denied on the object 'message_status'.", sink.Retry, "", "Grant select"},
		{319, "Incorrect syntax near the keyword 'with'.", sink.Retry, "", "compatibility level 130"},
		{9002, "The transaction log for database 'd' is full.", sink.Retry, "", "cannot take the batch now"},
		{40501, "The service is currently busy.", sink.Retry, "", "cannot take the batch now"},
		{50000, "not on Sundays", sink.Reject, "", "trigger or procedure"},
	} {
		table := messageStatus(t)
		s, _ := overTDS(t, messageStatusTDS, "encrypt=disable", sqlsink.Options{}, func(r tdstest.Request) tdstest.Answer {
			if strings.Contains(r.SQL, "openjson") {
				return tdstest.Answer{Err: &tdstest.Error{Number: x.number, Class: 16, Message: x.message}}
			}
			return tdstest.Answer{}
		})
		e := refused(t, s, table, statusChange(t, table, "k"))
		if e.Action != x.action || e.Why != x.why || !strings.Contains(e.Message, x.says) || e.Code != fmt.Sprint("SQL Server ", x.number) {
			t.Errorf("%d: %+v", x.number, e)
		}
		if x.number == 40501 && e.After == 0 {
			t.Error("a busy service is asked again at once")
		}
	}
}

// A deadlock has undone the transaction: all of it runs again, and nobody is told.
func TestSQLServerDeadlockRunsAgain(t *testing.T) {
	table := messageStatus(t)
	var tries atomic.Int32
	s, server := overTDS(t, messageStatusTDS, "encrypt=disable", sqlsink.Options{}, func(r tdstest.Request) tdstest.Answer {
		if strings.Contains(r.SQL, "openjson") && tries.Add(1) < 3 {
			return tdstest.Answer{Doomed: true, Err: &tdstest.Error{Number: 1205, Class: 13, State: 51, Message: "Transaction was deadlocked on lock resources."}}
		}
		return written(r)
	})
	write(t, s, table, statusChange(t, table, "k"))
	if trace := server.Trace(); !strings.HasSuffix(trace, "set begin declare set begin declare set begin declare commit") {
		t.Error(trace)
	}
}

// A lock that another session holds costs its own row a wait, and others nothing.
func TestSQLServerLockIsWaitedForByItsRow(t *testing.T) {
	table := messageStatus(t)
	s, _ := overTDS(t, messageStatusTDS, "encrypt=disable", sqlsink.Options{}, func(r tdstest.Request) tdstest.Answer {
		held := len(r.Params) > 0 && strings.Contains(r.Params[0].Value, `"held"`)
		switch {
		case strings.Contains(r.SQL, "readpast"): // top (1), or the rows that are free
			return tdstest.Answer{Columns: []string{"n"}}
		case strings.HasPrefix(r.SQL, "select v.n"):
			return tdstest.Answer{Columns: []string{"n", "id"}, Rows: [][]any{{"0", "held"}}}
		case strings.Contains(r.SQL, "openjson") && held:
			return tdstest.Answer{Err: &tdstest.Error{Number: 1222, Class: 16, Message: "Lock request time out period exceeded."}}
		}
		return written(r)
	})
	if e := refused(t, s, table, statusChange(t, table, "held")); e.Action != sink.Wait || e.Why != sink.Locked {
		t.Errorf("%+v", e)
	}
}

// A connection that is cut is the way's fault, and the next batch gets a new one.
func TestSQLServerCutConnection(t *testing.T) {
	table := messageStatus(t)
	var cuts atomic.Int32
	s, server := overTDS(t, messageStatusTDS, "encrypt=disable", sqlsink.Options{}, func(r tdstest.Request) tdstest.Answer {
		if strings.Contains(r.SQL, "openjson") && cuts.Add(1) == 1 {
			return tdstest.Answer{Drop: true}
		}
		return written(r)
	})
	if e := refused(t, s, table, statusChange(t, table, "k")); e.Action != sink.Retry || !strings.Contains(e.Message, "cannot be reached") {
		t.Errorf("%+v", e)
	}
	write(t, s, table, statusChange(t, table, "k"))
	if n := strings.Count(server.Trace(), "login"); n != 2 {
		t.Errorf("%d logins", n)
	}
}

func TestSQLServerLoginAndTLS(t *testing.T) {
	config, file := tdstest.Certificate(t)
	refusing := tdstest.New(t, nil, func(tdstest.Request) tdstest.Answer {
		return tdstest.Answer{Err: &tdstest.Error{Number: 18456, Class: 14, Message: "Login failed for user 'hook'."}}
	})
	plain := tdstest.New(t, nil, written)
	secure := tdstest.New(t, config, written)
	for _, x := range []struct{ url, want string }{
		{refusing.URL("encrypt=disable"), "refuses the login of the target's url: Login failed for user 'hook'."},
		{plain.URL(""), "encrypt=disable"},           // TLS is on unless the URL says otherwise
		{secure.URL(""), "certificate=/path/ca.pem"}, // and certificates are checked
		{secure.URL("certificate=" + url.QueryEscape(file)), ""},
		{secure.URL("TrustServerCertificate=true"), ""},
		{plain.URL("encrypt=disable"), ""},
	} {
		s := open(t, x.url, nil, sqlsink.Options{})
		err := s.Ping(t.Context())
		if x.want == "" {
			if err != nil {
				t.Errorf("%s: %v", x.url, err)
			}
			continue
		}
		if err == nil || asError(t, err).Action != sink.Retry || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "secret-of-the-test") {
			t.Errorf("want %q, got %v", x.want, err)
		}
	}
}

// The other forms are sent when they are asked for, and others refused.
func TestSQLServerForms(t *testing.T) {
	table := messageStatus(t)
	for form, want := range map[string]string{"merge": "merge into [message_status] with (holdlock) as t", "updlock": "with (updlock, holdlock)", "insert": "insert into [message_status]"} {
		s, server := overTDS(t, messageStatusTDS, "encrypt=disable", sqlsink.Options{Upsert: form}, written)
		write(t, s, table, statusChange(t, table, "k"))
		if got := server.Statements(want); len(got) != 1 {
			t.Errorf("%s: %+v", form, server.Statements("openjson"))
		}
	}
	if _, err := sqlsink.Open(t.Context(), "sqlserver://u:geheim@127.0.0.1/?encrypt=disable", nil, sqlsink.Options{Upsert: "replace"}); err == nil || !strings.Contains(err.Error(), "insert, merge and updlock") {
		t.Error(err)
	}
	for _, bad := range []string{"sqlserver://u:ge/heim@h", "sqlserver://u:geheim@h?encrypt=perhaps", "sqlserver://u:geheim@h?fedauth=Nonsense"} {
		if _, err := sqlsink.Open(t.Context(), bad, nil, sqlsink.Options{}); err == nil || strings.Contains(err.Error(), "heim") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Nothing but a unique index keeps two inserts of one key apart, so without one
// nothing is written.
func TestSQLServerNeedsAUniqueKey(t *testing.T) {
	table := messageStatus(t)
	live := messageStatusTDS
	live.key = nil
	s, server := overTDS(t, live, "encrypt=disable", sqlsink.Options{}, written)
	if e := refused(t, s, table, statusChange(t, table, "k")); e.Action != sink.Retry || !strings.Contains(e.Message, "create unique index [message_status_hookfold_key] on [message_status] ([message_id])") {
		t.Errorf("%+v", e)
	}
	if n := len(server.Statements("openjson")); n != 0 {
		t.Errorf("%d statements were sent", n)
	}
}

// What T-SQL cannot decide is read under locks, joined here, and stored.
func TestSQLServerHolds(t *testing.T) {
	table := tableOf(t, "message_status", "message_id text", "status text max")
	s, server := overTDS(t, messageStatusTDS, "encrypt=disable", sqlsink.Options{}, func(r tdstest.Request) tdstest.Answer {
		if strings.HasPrefix(r.SQL, "select v.n") {
			return tdstest.Answer{Columns: []string{"n", "message_id", "status"}, Rows: [][]any{{"0", "k", "b"}}}
		}
		return written(r)
	})
	write(t, s, table, say(t, table, "k", 1, map[string]any{"status": "c"}))
	if trace := server.Trace(); !strings.HasSuffix(trace, "set begin declare select update commit") {
		t.Error(trace)
	}
	locks := server.Statements("sp_getapplock")
	if len(locks) != 1 || locks[0].Kind != tdstest.Batch || !strings.Contains(locks[0].SQL, "@LockOwner = N'Transaction', @LockTimeout = 1000") {
		t.Errorf("%+v", locks)
	}
	if got := write(t, s, table, say(t, table, "k", 1, map[string]any{"status": "a"})); got.Unchanged != 1 {
		t.Errorf("%+v", got)
	}
}
