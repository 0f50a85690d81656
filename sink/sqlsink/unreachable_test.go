package sqlsink_test

import (
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// A target's URL that is wrong is told so that a person knows what to correct.
func TestWrongURL(t *testing.T) {
	table := tableOf(t, "item", "id text", "a text")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	for name, c := range map[string]struct {
		server string
		change func(*url.URL)
		once   string
		want   string
	}{
		"postgres, no database": {testdb.Schema(t), func(u *url.URL) { u.Path = "/hookfold_none" }, "hookfold_none", "the server has no such database: "},
		"postgres, no role":     {testdb.Schema(t), func(u *url.URL) { u.User = url.User("hookfold_nobody") }, "hookfold_nobody", "does not let the user of the target's url in"},
		"postgres, no server":   {testdb.Schema(t), func(u *url.URL) { u.Host = nobody }, "connection refused", "cannot be reached: failed to connect"},
		"mysql, no server":      {testdb.MySQL(t), func(u *url.URL) { u.Host = nobody }, "connection refused", "cannot be reached: dial tcp"},
		"mysql, no database":    {testdb.MySQL(t), func(u *url.URL) { u.Path = "/hookfold_none" }, "hookfold_none", "the server has no such database: "},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := url.Parse(c.server)
			if err != nil {
				t.Fatal(err)
			}
			c.change(u)
			s := open(t, u.String(), []*sink.Table{table}, sqlsink.Options{})
			e := refused(t, s, table, say(t, table, "k", 1, map[string]any{"a": "x"}))
			if e.Action != sink.Retry || !strings.Contains(e.Message, c.want) || strings.Count(e.Message, c.once) != 1 {
				t.Errorf("action %d: %s", e.Action, e.Message)
			}
		})
	}
}

// A file whose folder is missing cannot be made.
func TestNoFolder(t *testing.T) {
	s := open(t, "sqlite:"+t.TempDir()+"/none/rows.db", nil, sqlsink.Options{})
	err := s.Execute(t.Context(), []string{"create table item (id text)"})
	if want := "/none/rows.db cannot be opened: no such file or directory. Its folder has to be there and writable"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want … %s", err, want)
	}
}
