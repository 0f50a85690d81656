package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/journal/sqlite"
)

// folder is a working folder of a test.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), name) }

// write writes a file in which DIR stands for the folder.
func (f folder) write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(f.path(name), []byte(strings.ReplaceAll(text, "DIR", string(f))), 0o600); err != nil {
		t.Fatal(err)
	}
	return f.path(name)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// unsettledFolder has a config, hookfold.yaml, whose journal holds two dead
// events (2, 5) and one that waits (3).
func unsettledFolder(t *testing.T) folder {
	t.Helper()
	f := folder(t.TempDir())
	c := f.write(t, "hookfold.yaml", contractConfig)
	if code, out, errOut := run(t, "migrate", "--apply", "-c", c); code != Fine {
		t.Fatal(out, errOut)
	}
	if code, out, errOut := run(t, "replay", "-c", c, f.write(t, "lines.ndjson", contractLines)); code != NotSo {
		t.Fatal(out, errOut)
	}
	return f
}

// An operator who looks into the journal needs neither the secrets nor the
// database that serve has in its environment.
func TestTheJournalNeedsNoSecrets(t *testing.T) {
	f := unsettledFolder(t)
	bare := f.write(t, "bare.yaml", strings.NewReplacer(`secrets: [secret]`, `secrets: ["${NOT_SET}", "${file:/not/there}"]`, "sqlite:DIR/rows.db", "${NOT_SET_EITHER}").Replace(contractConfig))
	for name, args := range map[string][]string{
		"dead list": {"dead", "list"}, "waiting list": {"waiting", "list"}, "dead show": {"dead", "show", "2"}, "export": {"export"},
		"dead retry": {"dead", "retry", "2"}, "waiting drop": {"waiting", "drop", "3"},
	} {
		if code, out, errOut := run(t, append(args, "-c", bare)...); code != Fine || out == "" {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errOut)
		}
	}
	for name, text := range map[string]string{
		"the journal's variable is not set": strings.Replace(contractConfig, "sqlite:DIR/hookfold.db", "sqlite:${NOT_SET}", 1),
		"the journal's key is misspelt":     strings.Replace(contractConfig, "journal:", "jornal:", 1),
		"not YAML":                          contractConfig + "\n  ][",
	} {
		if code, out, errOut := run(t, "dead", "list", "-c", f.write(t, "wrong.yaml", text)); code != Usage || out != "" || !strings.Contains(errOut, "wrong.yaml:") {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errOut)
		}
	}
}

func TestNamesThatNobodyKnows(t *testing.T) {
	f := unsettledFolder(t)
	for _, c := range []struct{ args, want string }{
		{"dead list --source nope", "knows a source nope. The config has: shop\n"},
		{"dead list --table nope", "knows a table nope. The config has: thing, seat\n"},
		{"waiting list --target nope", "knows a target nope. The config has: db\n"},
		{"dead retry --table nope", "knows a table nope. The config has: thing, seat\n"},
		{"waiting drop --source nope", "knows a source nope. The config has: shop\n"},
		{"export --source nope", "knows a source nope. The config has: shop\n"},
		{"dead list --limit 0", "--limit is 0; it is at least 1"},
		{"demo --seed x", `--seed is "x"; it has to be a whole number`},
		{"export --from x", `--from is "x"; it has to be a whole number`},
		{"send shop x --to notaurl", "--to is notaurl; it is the base URL of a server"},
		{"send shap x", "the config has no source shap. Its sources are: shop\n"},
		{"forget db", "the config has it"},
		{"forget nope", "the journal does not know it"},
	} {
		code, _, errOut := run(t, append(strings.Fields(c.args), "-c", f.path("hookfold.yaml"))...)
		if code != Usage || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: exit %d, %s", c.args, code, errOut)
		}
	}
	// What the config has no longer, and the journal still has, is found.
	other := f.write(t, "other.yaml", strings.NewReplacer("shop:", "shop2:", "from: shop", "from: shop2", "source: shop", "source: shop2").Replace(contractConfig))
	if code, out, errOut := run(t, "dead", "list", "--source", "shop", "-c", other); code != Fine || !strings.Contains(out, "dead") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}

func TestWaitingEventsCanBeRetriedAndDropped(t *testing.T) {
	f := unsettledFolder(t)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"dead drop 3", NotSo, "no dead event matches; 1 waiting event would: hookfold waiting drop\n"},
		{"waiting drop --all --table nope", Usage, "nope"},
		{"waiting retry 2", NotSo, "no waiting event matches; 1 dead event would: hookfold dead retry\n"},
		{"waiting show 3", Fine, "thing.found"},
		{"waiting retry 3", Fine, "1 event made due.\n"},
		{"waiting drop --all", Fine, "1 event dropped.\n"},
		{"waiting list", Fine, "No event is waiting.\n"},
		{"waiting drop --all", NotSo, "no waiting event matches; 2 dead events would"},
		{"dead drop --all", Fine, "2 events dropped.\n"},
		{"dead drop --all", NotSo, "no dead event matches\n"},
	} {
		code, out, errOut := run(t, append(strings.Fields(c.args), "-c", f.path("hookfold.yaml"))...)
		if code != c.code || !strings.Contains(out+errOut, c.want) {
			t.Errorf("%s: exit %d\n%s%s", c.args, code, out, errOut)
		}
	}
}

// A target that was taken out of the config holds the journal's deliveries back
// until it is forgotten.
func TestForget(t *testing.T) {
	f := folder(t.TempDir())
	c := f.write(t, "hookfold.yaml", contractConfig)
	cfg, problems := config.Load(c, config.Options{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	j, err := daemon.OpenJournal(cfg, sqlite.Owner)
	if err != nil {
		t.Fatal(err)
	}
	_, err = j.Consumer(t.Context(), "gone")
	err = errors.Join(err, j.Append(t.Context(), &event.Delivery{Source: "shop", Received: time.Now(), Header: http.Header{}, Body: []byte("{}")}), j.Close())
	if err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := run(t, "forget", "gone", "-c", c); code != Fine || out != "The journal has forgotten gone.\n" {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	if j, err = daemon.OpenJournal(cfg, sqlite.Reader); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if names, err := j.Consumers(t.Context()); err != nil || len(names) > 0 {
		t.Errorf("%v %v", names, err)
	}
}

// What verify: none believes needs no signature.
func TestSendUnsigned(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		got = append(got, fmt.Sprint(r.URL.Path, " ", string(body), " ", r.Header.Get("Authorization"), err))
	}))
	defer server.Close()
	f := folder(t.TempDir())
	open := f.write(t, "open.yaml", strings.Replace(contractConfig, "verify: bearer, secrets: [secret]", "verify: none", 1))
	hasura := f.write(t, "hasura.yaml", "version: 1\nsources: {shop: {preset: hasura, verify: none}}\n")
	body := f.write(t, "body.json", `{"a":1}`)
	for _, c := range []string{open, hasura} {
		if code, out, errOut := run(t, "send", "shop", body, "--to", server.URL, "-c", c); code != Fine {
			t.Errorf("exit %d\n%s%s", code, out, errOut)
		}
	}
	if len(got) != 2 || got[0] != `/in/shop {"a":1} <nil>` || got[1] != got[0] {
		t.Errorf("%q", got)
	}
	// A source that cannot sign for want of a secret is another thing.
	spent := f.write(t, "spent.yaml", strings.Replace(contractConfig, "secrets: [secret]", "secrets: [{value: secret, until: 2020-01-01}]", 1))
	if code, out, _ := run(t, "send", "shop", body, "--to", server.URL, "-c", spent); code != NotSo || !strings.Contains(out, "every secret has run out") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestSendTellsTheSamples(t *testing.T) {
	f := folder(t.TempDir())
	c := f.write(t, "hookfold.yaml", "version: 1\nsources: {calendly: {preset: calendly, secrets: [x]}, shop: {preset: http, verify: none}}\n")
	for _, x := range []struct{ source, want string }{
		{"calendly", "no such sample of calendly. Its samples are: "}, {"calendly", ", invitee.created, "}, {"shop", "preset http has no samples"},
	} {
		if code, out, _ := run(t, "send", x.source, "nosuch", "--to", "http://127.0.0.1:1", "-c", c); code != NotSo || !strings.Contains(out, x.want) {
			t.Errorf("exit %d\n%s", code, out)
		}
	}
}

// endless gives lines without end, and closes begun once the first has been read.
type endless struct {
	begun chan struct{}
	once  sync.Once
}

func (e *endless) Read(p []byte) (int, error) {
	e.once.Do(func() { close(e.begun) })
	return copy(p, `{"source":"shop","body":{"type":"other"}}`+"\n"), nil
}

func TestReplayThatIsStoppedSaysWhere(t *testing.T) {
	f := folder(t.TempDir())
	c := f.write(t, "hookfold.yaml", contractConfig)
	in := &endless{begun: make(chan struct{})}
	stop := make(chan struct{})
	var out, errOut bytes.Buffer
	done := make(chan int)
	go func() {
		done <- Run([]string{"replay", "-", "-c", c}, World{In: in, Out: &out, Err: &errOut, Getenv: none, Stop: stop})
	}()
	<-in.begun
	close(stop)
	if code := <-done; code != NotSo || !strings.Contains(errOut.String(), "stopped at line ") || strings.Contains(errOut.String(), "context canceled") {
		t.Errorf("exit %d\n%s%s", code, out.String(), errOut.String())
	}
}

// What is printed to be tried works as it is printed.
func TestCommandLinesBeginAsTheUserBegan(t *testing.T) {
	f := folder(t.TempDir())
	var out, errOut bytes.Buffer
	w := World{In: strings.NewReader(""), Out: &out, Err: &errOut, Getenv: none, Program: "./hookfold"}
	if code := Run([]string{"init", "calendly", "-c", f.path("new.yaml")}, w); code != Fine || !strings.Contains(out.String(), "  ./hookfold check -c ") {
		t.Errorf("exit %d\n%s", code, out.String())
	}
	if code := Run([]string{"dead"}, w); code != Usage || !strings.Contains(errOut.String(), "Try: ./hookfold dead list\n") {
		t.Errorf("exit %d\n%s", code, errOut.String())
	}
}
