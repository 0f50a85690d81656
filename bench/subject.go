package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// place is a folder and a database of one run.
type place struct {
	dir, dsn string
	admin    *pgx.Conn
	name     string
}

// newPlace makes an empty one.
func (b *bench) newPlace(ctx context.Context) (*place, error) {
	admin, err := pgx.Connect(ctx, b.postgres)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL (%s; HOOKFOLD_BENCH_POSTGRES names another): %w", b.postgres, err)
	}
	p := &place{admin: admin, name: fmt.Sprintf("hookfold_bench_%d_%d", os.Getpid(), time.Now().UnixNano())}
	if p.dir, err = os.MkdirTemp(b.dir, "run-"); err != nil {
		return nil, err
	}
	if _, err := admin.Exec(ctx, "create database "+p.name); err != nil {
		return nil, err
	}
	cfg := admin.Config().Copy()
	p.dsn = fmt.Sprintf("postgres://%s:%s@%s:%d/%s", cfg.User, cfg.Password, cfg.Host, cfg.Port, p.name)
	return p, nil
}

func (p *place) remove() error {
	ctx := context.Background()
	_, err := p.admin.Exec(ctx, "drop database if exists "+p.name+" with (force)")
	return errors.Join(err, p.admin.Close(ctx), os.RemoveAll(p.dir))
}

func (p *place) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, p.dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

// judge compares the rows with what deliveries make.
func (p *place) judge(ctx context.Context, want map[string]row) error {
	conn, err := pgx.Connect(ctx, p.dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	found := 0
	for _, t := range tables {
		c := columns[t]
		rows, err := conn.Query(ctx, fmt.Sprintf("select %s, %s, %s, extract(epoch from %s)::bigint from %s where %[1]s not like 'full%%'", c[0], c[1], c[2], c[3], t))
		if err != nil {
			return err
		}
		for rows.Next() {
			r := row{table: t}
			if err := rows.Scan(&r.key, &r.state, &r.who, &r.at); err != nil {
				return err
			}
			found++
			if w := want[t+" "+r.key]; w != r {
				return fmt.Errorf("a row is wrong: %+v, want %+v", r, w)
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	if found != len(want) {
		return fmt.Errorf("there are %d rows, want %d", found, len(want))
	}
	return nil
}

// subject is a running server.
type subject struct {
	cmd  *exec.Cmd
	in   io.Closer
	addr string
	// settled tells whether everything that was accepted is in the rows.
	settled func(ctx context.Context) (bool, error)
	admin   string
	log     *os.File
}

// start starts a server of a kind in a process of its own, on an empty place
// unless rows are there.
func (b *bench) start(ctx context.Context, kind string, p *place) (*subject, error) {
	if kind == "ours" || kind == "ours again" || kind == "ours, no index" {
		return b.startOurs(ctx, p, kind != "ours, no index")
	}
	if kind != "null" && kind != "intake" {
		if err := p.exec(ctx, schema); err != nil {
			return nil, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &subject{cmd: exec.Command(self, "serve", kind, p.dsn, p.dir), settled: func(context.Context) (bool, error) { return true, nil }}
	if kind == "river" {
		conn, err := pgx.Connect(ctx, p.dsn)
		if err != nil {
			return nil, err
		}
		s.settled = func(ctx context.Context) (bool, error) {
			var left bool
			err := conn.QueryRow(ctx, "select exists (select from river_job where state not in ('completed', 'cancelled', 'discarded'))").Scan(&left)
			return !left, err
		}
	}
	out, err := s.begin(p.dir)
	if err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if s.addr = strings.TrimSpace(line); err != nil {
		return nil, fmt.Errorf("start %s: %w: %s", kind, err, s.said())
	}
	return s, nil
}

func (s *subject) begin(dir string) (io.Reader, error) {
	var err error
	if s.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		return nil, err
	}
	s.cmd.Stderr = s.log
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return out, s.cmd.Start()
}

func (s *subject) said() string {
	text, _ := os.ReadFile(s.log.Name())
	return string(text)
}

const ours = `
version: 1
listen: 127.0.0.1:0
admin: 127.0.0.1:0
journal: {url: "sqlite:%s", index: %v}
sources:
  whatsapp: {preset: whatsapp, secrets: [%[3]s]}
  calendly: {preset: calendly, secrets: [%[3]s], tolerance: off}
targets:
  db: {url: %[4]q}
tables:
  message_status:
    key: {message_id: text}
    columns: {status: text, recipient: text, status_at: timestamp}
    events:
      - {from: whatsapp, type: "status.*", key: {message_id: event.id}, set: {status: event.status, recipient: event.recipient_id, status_at: time}}
  booking:
    key: {ref: text}
    columns: {status: text, email: text, updated_at: timestamp}
    events:
      - from: calendly
        type: [invitee.created, invitee.canceled]
        key: {ref: event.payload.tracking.utm_term}
        version: [event.payload.updated_at]
        set:
          status: 'type == "invitee.canceled" ? "canceled" : "active"'
          email: event.payload.email
          updated_at: event.payload.updated_at
`

// configure writes our config and makes our tables in a database.
func (b *bench) configure(p *place, index bool, database string) error {
	text := fmt.Sprintf(ours, filepath.Join(p.dir, "journal.db"), index, secret, database)
	if err := os.WriteFile(filepath.Join(p.dir, "hookfold.yaml"), []byte(text), 0o600); err != nil {
		return err
	}
	return b.hookfold(p, "migrate", "--apply")
}

func (b *bench) hookfold(p *place, args ...string) error {
	cmd := exec.Command(b.binary, args...)
	cmd.Dir = p.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("hookfold %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (b *bench) startOurs(ctx context.Context, p *place, index bool) (*subject, error) {
	if _, err := os.Stat(filepath.Join(p.dir, "hookfold.yaml")); err != nil {
		if err := b.configure(p, index, p.dsn); err != nil {
			return nil, err
		}
	}
	s := &subject{cmd: exec.Command(b.binary, "serve", "--json", "--log", "warn")}
	s.cmd.Dir = p.dir
	out, err := s.begin(p.dir)
	if err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var ready struct{ Receive, Admin string }
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		return nil, fmt.Errorf("start hookfold serve: %w: %s", err, s.said())
	}
	s.addr, s.admin = strings.TrimPrefix(ready.Receive, "http://"), ready.Admin
	s.settled = func(ctx context.Context) (bool, error) {
		n, err := s.metric(ctx, "hookfold_pending_deliveries")
		return n == 0, err
	}
	return s, nil
}

// metric reads a metric of our server, the sum over its labels.
func (s *subject) metric(ctx context.Context, name string) (sum float64, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer a.Body.Close()
	found := false
	for lines := bufio.NewScanner(a.Body); lines.Scan(); {
		head, value, _ := strings.Cut(lines.Text(), " ")
		if head == name || strings.HasPrefix(head, name+"{") {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, err
			}
			sum, found = sum+n, true
		}
	}
	if !found {
		return 0, fmt.Errorf("there is no metric %s", name)
	}
	return sum, nil
}

// settle waits until everything is in the rows.
func (s *subject) settle(ctx context.Context) error {
	for {
		ok, err := s.settled(ctx)
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not settled: %w: %s", ctx.Err(), s.said())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// usage is what a process took.
type usage struct {
	peak int64 // bytes of memory
	cpu  time.Duration
}

// stop ends the server.
func (s *subject) stop() (usage, error) {
	var u usage
	peak, err := peakMemory(s.cmd.Process.Pid)
	if err != nil {
		return u, err
	}
	if s.admin != "" {
		err = s.cmd.Process.Signal(syscall.SIGTERM)
	} else {
		err = s.in.Close()
	}
	err = errors.Join(err, s.cmd.Wait(), s.log.Close())
	state := s.cmd.ProcessState
	u = usage{peak: peak, cpu: state.UserTime() + state.SystemTime()}
	if err != nil {
		err = fmt.Errorf("%w: %s", err, s.said())
	}
	return u, err
}

// peakMemory is the most memory a process has held, in bytes. What the system
// tells of a process that has ended counts what its parent held when it began.
func peakMemory(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kilobytes int64
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return kilobytes << 10, nil
}
