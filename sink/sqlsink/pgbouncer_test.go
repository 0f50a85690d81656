package sqlsink_test

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sinktest"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// TestPgBouncer runs the suite through a PgBouncer in transaction mode, which
// it starts by itself; TestPoolerNeedsNoNamedStatements watches the same on
// the wire, without one.
func TestPgBouncer(t *testing.T) {
	program := testdb.PgBouncer(t)
	addr := startPgBouncer(t, program)
	sinktest.Run(t, sinktest.Engine{Open: func(t testing.TB, tables []*sink.Table) sink.Sink {
		u, err := url.Parse(testdb.Postgres(t))
		if err != nil {
			t.Fatal(err)
		}
		u.Host = addr
		return open(t, u.String(), tables, sqlsink.Options{Connections: 8, Pooler: "transaction"})
	}})
}

func startPgBouncer(t *testing.T, program string) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	l.Close()
	server, err := url.Parse(testdb.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pgbouncer") // of which another user can read
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	conf := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
* = host=%s port=%s user=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 200
`, server.Hostname(), server.Port(), server.User.Username(), port)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{conf}
	if os.Getuid() == 0 { // it does not run as root
		args = []string{"-u", "nobody", conf}
	}
	cmd := exec.Command(program, args...)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	up, done := make(chan struct{}), make(chan struct{})
	var out strings.Builder
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			fmt.Fprintln(&out, lines.Text())
			if strings.Contains(lines.Text(), "process up") {
				close(up)
			}
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-done
		cmd.Wait()
		if t.Failed() {
			t.Log(out.String())
		}
	})
	select {
	case <-up:
	case <-done:
		t.Fatal("pgbouncer ended")
	case <-time.After(10 * time.Second):
		t.Fatal("pgbouncer did not start")
	}
	return addr
}
