package journaltest

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
)

// childEnv tells a test binary to append to the journal of a folder until it is
// killed.
const childEnv = "HOOKFOLD_JOURNALTEST_CHILD"

// Main runs the tests of a store, or, in a process that a test of the suite
// started, the part that the test kills.
func Main(m *testing.M, open Opener) {
	if spec := os.Getenv(childEnv); spec != "" {
		if err := child(open, spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// child appends from several goroutines, and prints the position and the
// number of each delivery once it is promised.
func child(open Opener, spec string) error {
	from, dir, _ := strings.Cut(spec, ":")
	n, err := strconv.Atoi(from)
	if err != nil {
		return err
	}
	j, err := open(dir)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				mu.Lock()
				i := n
				n++
				mu.Unlock()
				d := delivery(i)
				if i%5 == 0 {
					d.Body = nil
				}
				if err := j.Append(context.Background(), d); err != nil {
					fmt.Fprintln(os.Stderr, "append:", err)
					os.Exit(1)
				}
				mu.Lock()
				fmt.Printf("%d %d\n", d.Position, i)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return nil
}

func testKill(t *testing.T, s *suite) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	want := make(map[event.Position]int)
	s.close()
	for round := range 8 {
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d:%s", childEnv, round*1_000_000, s.dir))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		acks, kill := 0, 1+random.IntN(300)
		for lines.Scan() {
			var p event.Position
			var i int
			if _, err := fmt.Sscan(lines.Text(), &p, &i); err != nil {
				break // cut off by the kill
			}
			if before, ok := want[p]; ok {
				t.Errorf("position %d was given to deliveries %d and %d", p, before, i)
			}
			want[p] = i
			if acks++; acks == kill {
				// Somewhere in the commit that is under way.
				time.Sleep(time.Duration(random.IntN(1500)) * time.Microsecond)
				if err := cmd.Process.Kill(); err != nil {
					t.Error(err)
				}
			}
		}
		if err := cmd.Wait(); acks < kill {
			t.Fatalf("the process that appends ended by itself after %d: %v", acks, err)
		}
	}
	s.reopen()
	got := make(map[event.Position]*event.Delivery)
	for _, d := range s.scan(0) {
		got[d.Position] = d
	}
	for p, i := range want {
		d := delivery(i)
		if i%5 == 0 {
			d.Body = nil
		}
		d.Position = p
		if diff := cmp.Diff(d, got[p]); diff != "" {
			t.Errorf("acknowledged #%d (-want +got):\n%s", p, diff)
		}
	}
}
