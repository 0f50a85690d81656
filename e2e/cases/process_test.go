package cases

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a running `hookfold serve`: the test binary itself.
type process struct {
	cmd *exec.Cmd
	// Receive is its base URL.
	Receive string `json:"receive"`
	log     logBuffer
	done    chan struct{}
	err     error
}

// serve starts the server in a folder with a config, and waits until it is
// ready.
func serve(t *testing.T, config string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], "serve", "--json", "-c", config), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = filepath.Dir(config), append(os.Environ(), asProgram+"=1"), &p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(out).ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, p)
		}
		ready <- err
		_, copied := io.Copy(&p.log, out)
		p.err = errors.Join(p.cmd.Wait(), copied)
		close(p.done)
	}()
	t.Cleanup(p.kill)
	select {
	case err = <-ready:
	case <-time.After(30 * time.Second):
		err = errors.New("not ready within 30 s")
	}
	if err != nil {
		p.kill()
		t.Fatalf("start hookfold serve: %v\n%s", err, p.log.String())
	}
	return p
}

// kill ends the process as a loss of power would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop asks the process to end, and returns how it did.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-time.After(30 * time.Second):
		p.kill()
		return errors.New("still running 30 s after SIGTERM")
	}
}

// program runs a command of the program to its end.
func program(t *testing.T, config string, args ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], append(args, "-c", config)...)
	cmd.Dir, cmd.Env = filepath.Dir(config), append(os.Environ(), asProgram+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("hookfold %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// answered is what became of one request.
type answered struct {
	body   string
	status int // 0 if there was no answer
	took   time.Duration
	at     time.Time
}

// fire posts bodies to URLs from so many connections at once, and returns the
// answers in the order of the bodies. to chooses the URL of a body.
func fire(t *testing.T, to func(i int) string, bodies []string, connections int) []answered {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	out := make([]answered, len(bodies))
	queue := make(chan int)
	var senders sync.WaitGroup
	for range connections {
		senders.Go(func() {
			for i := range queue {
				out[i] = post(client, to(i), bodies[i])
			}
		})
	}
	for i := range bodies {
		queue <- i
	}
	close(queue)
	senders.Wait()
	return out
}

func post(client *http.Client, url, body string) answered {
	began := time.Now()
	a := answered{body: body}
	resp, err := client.Post(url, "application/json", bytes.NewReader([]byte(body)))
	if err == nil {
		if _, err = io.Copy(io.Discard, resp.Body); err == nil {
			a.status = resp.StatusCode
		}
		resp.Body.Close()
	}
	a.at = time.Now()
	a.took = a.at.Sub(began)
	return a
}

// patience is how long a provider waits for an answer here, and a test for what
// must come. It is far more than either takes on an idle machine: no case is
// about how fast this one is.
const patience = 30 * time.Second

// all2xx makes sure that every answer is 200.
func all2xx(t *testing.T, answers []answered) {
	t.Helper()
	for _, a := range answers {
		if a.status != http.StatusOK {
			t.Fatalf("answered %d after %v: %s", a.status, a.took, a.body)
		}
	}
}

// becomes waits until a query gives a text.
func becomes(t *testing.T, url, query, want string) {
	t.Helper()
	deadline := time.After(2 * patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		have, err := ask(t, url, query)
		if err == nil && have == want {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s gives %s, not %s (%v)", query, have, want, err)
		}
	}
}
