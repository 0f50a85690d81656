package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary builds the real program once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "hookfold-e2e-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	path := filepath.Join(dir, "hookfold")
	out, err := exec.Command("go", "build", "-o", path, "../cmd/hookfold").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return path, nil
})

// builtIn is the folder to be removed at the end.
var builtIn string

// server is a running `hookfold serve` in a process of its own.
type server struct {
	cmd *exec.Cmd
	// Receive and Admin are its base URLs.
	Receive string `json:"receive"`
	Admin   string `json:"admin"`
	log     logBuffer
	done    chan struct{}
	err     error
}

// logBuffer collects what a process writes.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// serve starts the server and waits until it says that it is ready.
func serve(dir string, env []string, args ...string) (*server, error) {
	path, err := binary()
	if err != nil {
		return nil, err
	}
	s := &server{cmd: exec.Command(path, append([]string{"serve", "--json"}, args...)...), done: make(chan struct{})}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = dir, env, &s.log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(out).ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, s)
		}
		ready <- err
		_, copied := io.Copy(&s.log, out)
		s.err = errors.Join(s.cmd.Wait(), copied)
		close(s.done)
	}()
	select {
	case err = <-ready:
	case <-time.After(30 * time.Second):
		err = errors.New("not ready within 30 s")
	}
	if err != nil {
		s.kill()
		return nil, fmt.Errorf("start hookfold serve: %w\n%s", err, s.log.String())
	}
	return s, nil
}

// kill ends the process as a loss of power would.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// stop asks the process to end and returns how it did.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-s.done:
		return s.err
	case <-time.After(30 * time.Second):
		s.kill()
		return errors.New("still running 30 s after SIGTERM")
	}
}

// start is serve for a test.
func start(t *testing.T, dir string, env []string, args ...string) *server {
	t.Helper()
	s, err := serve(dir, env, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	return s
}

// command runs the program to its end and returns what it printed.
func command(dir string, env []string, args ...string) (string, error) {
	path, err := binary()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	return string(out), err
}
