package cases

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/journal/journaltest"
	"github.com/hookfold/hookfold/sink"
)

// killedAfterAnswer kills the server the instant an answer is read.
func killedAfterAnswer(t *testing.T, s *scenario, on engine) {
	kills := 10
	if n, err := strconv.Atoi(os.Getenv("HOOKFOLD_KILLS")); err == nil {
		kills = n
	}
	w, err := s.prepare(t, on)
	if err != nil {
		t.Fatal(err)
	}
	config := w.configs(1)[0]
	program(t, config, "migrate", "--apply")
	p := serve(t, config)
	var acknowledged []string
	note := func(answers []answered) (refused int) {
		for _, a := range answers {
			switch {
			case a.status == http.StatusOK:
				acknowledged = append(acknowledged, a.body)
			case a.status != 0:
				refused++
			}
		}
		return refused
	}
	next := 0
	bodies := func(n int) (out []string) {
		for range n {
			next++
			out = append(out, fmt.Sprintf(`{"id":%d,"s":"x"}`, next))
		}
		return out
	}
	to := func(int) string { return p.Receive + "/in/in" }
	for range kills {
		// 49 from eight connections, and the 50th alone, whose answer is the last.
		note(fire(t, to, bodies(49), 8))
		note(fire(t, to, bodies(1), 1))
		p.kill()
		p = serve(t, config)
	}
	// SIGTERM under load.
	ended := make(chan error, 1)
	var once atomic.Bool
	refused := note(fire(t, func(i int) string {
		if i > 500 && once.CompareAndSwap(false, true) {
			go func() { ended <- p.stop() }()
		}
		return p.Receive + "/in/in"
	}, bodies(1000), 8))
	if refused > 0 {
		t.Errorf("%d requests are answered otherwise than 200 while the server ends", refused)
	}
	if err := <-ended; err != nil {
		t.Errorf("stop: %v", err)
	}
	p = serve(t, config)
	ids := make([]string, len(acknowledged))
	for i, body := range acknowledged {
		ids[i] = strings.TrimSuffix(strings.TrimPrefix(body, `{"id":`), `,"s":"x"}`)
	}
	t.Logf("%d kills, %d answered", kills, len(ids))
	becomes(t, w.url, `select count(*) from o where s = 'x' and id in (`+strings.Join(ids, ",")+`)`, fmt.Sprint(len(ids)))
}

// secretRotation sends with an old secret before and after it is retired. Where
// the machine was too slow to do so before, it is retired later.
func secretRotation(t *testing.T, s *scenario, on engine) {
	for valid := 2 * time.Second; !rotate(t, s, on, valid); valid *= 2 {
		t.Logf("the old secret was retired too early: it was valid for %v", valid)
	}
}

func rotate(t *testing.T, s *scenario, on engine, valid time.Duration) bool {
	until := time.Now().Add(valid)
	rotated := *s
	rotated.config = strings.Replace(s.config, s.config[strings.Index(s.config, `until: "`)+8:strings.Index(s.config, `"}]}`)], until.UTC().Format(time.RFC3339Nano), 1) // the file's time is of its loading
	rotated.config = strings.Replace(rotated.config, "tables:", "  old: {preset: stripe, secrets: [whsec_old]}\n  new: {preset: stripe, secrets: [whsec_new]}\ntables:", 1)
	w := begin(t, &rotated, on)
	send := func(id int, as, answer string) error {
		return w.arrive(arrival{Source: "hook", Sign: "0s", SignAs: as, Body: fmt.Appendf(nil, `{"object":"event","id":%d}`, id), Answer: answer})
	}
	early := errors.Join(send(1, "old", "200"), send(2, "new", "200"), send(3, "old", "200"))
	if !time.Now().Before(until) {
		return false
	}
	if early != nil {
		t.Fatal(early)
	}
	select {
	case <-time.After(time.Until(until)):
	case <-t.Context().Done():
	}
	if err := send(4, "old", "401"); err != nil {
		t.Error(err)
	}
	// Two signatures in one header, of which one is right.
	h := http.Header{}
	body := []byte(`{"object":"event","id":5}`)
	if err := w.sign(arrival{Source: "hook", Sign: "0s", SignAs: "new"}, h, body); err != nil {
		t.Fatal(err)
	}
	both := strings.Replace(h.Get("Stripe-Signature"), ",v1=", ",v1="+strings.Repeat("ab", 32)+",v1=", 1)
	if err := w.arrive(arrival{Source: "hook", Body: body, Headers: map[string]string{"Stripe-Signature": both}, Answer: "200"}); err != nil {
		t.Error(err)
	}
	if err := w.taken(); err != nil {
		t.Fatal(err)
	}
	becomes(t, w.url, `select count(*) from ev where id in (1, 2, 3, 5)`, "4")
	becomes(t, w.url, `select count(*) from ev`, "4")
	return true
}

// slow makes every other batch take longer.
type slow struct {
	sink.Sink
	n atomic.Int64
}

func (s *slow) Apply(ctx context.Context, b *sink.Batch) (*sink.Result, error) {
	if s.n.Add(1)%2 == 1 {
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return s.Sink.Apply(ctx, b)
}

func slowWorker(t *testing.T, s *scenario, on engine) {
	w := begin(t, s, on, func(w *world) {
		w.options.Sink = func(_ string, opened sink.Sink) sink.Sink { return &slow{Sink: opened} }
	})
	for _, a := range s.arrivals {
		if err := w.arrive(a); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.judge(); err != nil {
		t.Error(err)
	}
}

// nothingStored makes the journal fail in its ways.
func nothingStored(t *testing.T, s *scenario, on engine) {
	faults := &journaltest.Faults{}
	w := begin(t, s, on, func(w *world) {
		w.options.Journal = func(j journal.Journal) journal.Journal { return journaltest.Faulty(j, faults) }
	})
	body := func(id int) []byte { return fmt.Appendf(nil, `{"id":%d}`, id) }
	var ids []string
	for n, fault := range []error{journal.ErrFull, journal.ErrBroken, errors.New("input/output error"), errors.New("read-only file system")} {
		first, second := 2*n+1, 2*n+2
		ids = append(ids, strconv.Itoa(second))
		faults.Add(journaltest.Fault{Op: journaltest.OpAppend, Err: fault})
		faults.Add(journaltest.Fault{Op: journaltest.OpHealthy, Err: fault})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.in(0), strings.NewReader(string(body(first))))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := w.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%v: answered %d, Retry-After %q", fault, resp.StatusCode, resp.Header.Get("Retry-After"))
		}
		if got := readiness(t, w); got != http.StatusServiceUnavailable {
			t.Errorf("%v: /readyz says %d", fault, got)
		}
		faults.Clear()
		if got := readiness(t, w); got != http.StatusOK {
			t.Errorf("after %v: /readyz says %d", fault, got)
		}
		if err := w.arrive(arrival{Source: "in", Body: body(second), Answer: "200"}); err != nil {
			t.Error(err)
		}
	}
	if err := w.taken(); err != nil {
		t.Fatal(err)
	}
	becomes(t, w.url, `select count(*) from o`, strconv.Itoa(len(ids)))
	becomes(t, w.url, `select count(*) from o where id in (`+strings.Join(ids, ",")+`)`, strconv.Itoa(len(ids)))
	for n := range ids { // the provider sends again what was refused
		if err := w.arrive(arrival{Source: "in", Body: body(2*n + 1), Answer: "200"}); err != nil {
			t.Error(err)
		}
	}
	becomes(t, w.url, `select count(*) from o`, strconv.Itoa(2*len(ids)))
}

func readiness(t *testing.T, w *world) int {
	t.Helper()
	resp, err := w.client.Get("http://" + w.daemon.AdminAddr() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
