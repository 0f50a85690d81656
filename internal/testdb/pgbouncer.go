package testdb

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// PgBouncerVar names the environment variable with the path of a PgBouncer, where
// it is not in the usual place.
const PgBouncerVar = "HOOKFOLD_TEST_PGBOUNCER"

// Bouncer is a running PgBouncer in transaction mode.
type Bouncer struct {
	t       testing.TB
	program string
	conf    string
	addr    string
	cmd     *exec.Cmd
	out     bytes.Buffer
}

// PgBouncer starts a PgBouncer before the PostgreSQL server of a URL, until the
// test ends. Where none is installed, a test fails in CI, and is skipped on a
// developer's machine.
func PgBouncer(t testing.TB, postgres string) *Bouncer {
	t.Helper()
	program := findPgBouncer(t)
	server := parse(t, postgres)
	addr := free(t)
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pgbouncer") // of which another user can read
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := &Bouncer{t: t, program: program, conf: filepath.Join(dir, "pgbouncer.ini"), addr: addr}
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
	if err := errors.Join(os.WriteFile(b.conf, []byte(text), 0o644), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	b.start()
	t.Cleanup(func() {
		b.stop()
		if t.Failed() {
			t.Log(b.out.String())
		}
	})
	return b
}

func findPgBouncer(t testing.TB) string {
	t.Helper()
	if program := os.Getenv(PgBouncerVar); program != "" {
		return program
	}
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if program, err := exec.LookPath(name); err == nil {
			return program
		}
	}
	const text = "this test needs PgBouncer: install it, or name it in " + PgBouncerVar
	if os.Getenv("CI") != "" {
		t.Fatal(text)
	}
	t.Skip(text)
	return ""
}

// free returns an address that nobody listens on.
func free(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Through returns the URL of a database as it is reached through the pooler. A
// pooler takes no search_path.
func (b *Bouncer) Through(postgres string) string {
	b.t.Helper()
	u := parse(b.t, postgres)
	return (&url.URL{Scheme: u.Scheme, User: u.User, Host: b.addr, Path: u.Path}).String()
}

// Restart ends it and starts it again, on the same address.
func (b *Bouncer) Restart() {
	b.t.Helper()
	b.stop()
	b.start()
}

func (b *Bouncer) start() {
	b.t.Helper()
	args := []string{b.conf}
	if os.Getuid() == 0 { // it does not run as root
		args = []string{"-u", "nobody", b.conf}
	}
	b.cmd = exec.Command(b.program, args...)
	b.cmd.Stderr = &b.out
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if c, err := net.Dial("tcp", b.addr); err == nil {
			c.Close()
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			b.t.Fatal("pgbouncer does not start")
		}
	}
}

func (b *Bouncer) stop() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
}
