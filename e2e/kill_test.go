package e2e

import (
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/demo"
	"github.com/hookfold/hookfold/internal/testtarget"
)

// TestKill kills the server at random moments of a load. After each restart
// everything that was answered 200 is in the journal, and the rows are those of
// the journal. HOOKFOLD_KILLS says how often; HOOKFOLD_SEED repeats a run.
func TestKill(t *testing.T) {
	kills, seed := 3, uint64(time.Now().UnixNano())
	if n, err := strconv.Atoi(os.Getenv("HOOKFOLD_KILLS")); err == nil {
		kills = n
	}
	if n, err := strconv.ParseUint(os.Getenv("HOOKFOLD_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("HOOKFOLD_SEED=%d HOOKFOLD_KILLS=%d", seed, kills)
	for _, kind := range testtarget.Kinds {
		if long := os.Getenv("HOOKFOLD_KILLS") != ""; !kind.SQL && !long || kind.Name == "supabase-rest" { // which takes long to catch up
			continue
		}
		t.Run(kind.Name, func(t *testing.T) {
			w := newWorld(t, kind)
			r := rand.New(rand.NewPCG(seed, 3))
			pending := demo.Shuffle(demo.Story(seed), seed)
			acknowledged := map[string]int{}
			interrupted := 0
			for range kills {
				for len(pending) < 4000 { // more than it can take before it is killed
					pending = append(pending, demo.Shuffle(demo.Story(r.Uint64()), seed)...)
				}
				if pending = w.killDuring(t, r, pending, acknowledged); len(pending) > 0 {
					interrupted++
				}
			}
			s := start(t, w.dir, os.Environ())
			deliveries := w.journal(t)
			w.settle(t, s, deliveries)
			if err := s.stop(); err != nil {
				t.Errorf("stop after %d kills: %v\n%s", kills, err, s.log.String())
			}
			t.Logf("%d kills, %d of them amid the load; %d deliveries in the journal", kills, interrupted, len(deliveries))
		})
	}
}

// killDuring starts the server, checks what the last kill left, sends, and
// kills it at a random moment. It returns what is still to be sent.
func (w *world) killDuring(t *testing.T, r *rand.Rand, pending []demo.Request, acknowledged map[string]int) []demo.Request {
	t.Helper()
	s := start(t, w.dir, os.Environ())
	deliveries := w.journal(t)
	kept := map[string]int{}
	for _, d := range deliveries {
		kept[string(d.Body)]++
	}
	for body, n := range acknowledged {
		if kept[body] < n {
			t.Fatalf("%d of %d acknowledged deliveries are not in the journal: %s", n-kept[body], n, body)
		}
	}
	if r.IntN(4) == 0 { // else it is killed while it catches up
		w.settle(t, s, deliveries)
	}
	died := errors.New("the server was killed")
	timer := time.AfterFunc(time.Duration(20+r.IntN(400))*time.Millisecond, s.kill)
	defer timer.Stop()
	sent := map[string]int{}
	err := demo.Fire(t.Context(), s.Receive, pending, demo.SignerOf(w.plan), func(q demo.Request, status int, err error) error {
		if err != nil {
			return died
		}
		if status == 200 {
			acknowledged[string(q.Body)]++
			sent[string(q.Body)]++
		} else {
			t.Errorf("answer %d", status)
		}
		return nil
	})
	if err != nil && !errors.Is(err, died) {
		t.Fatal(err)
	}
	s.kill()
	var rest []demo.Request
	for _, q := range pending {
		if sent[string(q.Body)] > 0 {
			sent[string(q.Body)]--
			continue
		}
		rest = append(rest, q)
	}
	return rest
}
