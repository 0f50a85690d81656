package lane

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
)

// flight is a try under way in simulated time.
type flight struct {
	ends time.Time
	item *Item
}

type flights []flight

func (f flights) Len() int           { return len(f) }
func (f flights) Less(i, j int) bool { return f[i].ends.Before(f[j].ends) }
func (f flights) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *flights) Push(x any)        { *f = append(*f, x.(flight)) }
func (f *flights) Pop() any {
	old := *f
	x := old[len(old)-1]
	*f = old[:len(old)-1]
	return x
}

type doubling struct{ first, most time.Duration }

func (d doubling) Pause(n int, random float64) time.Duration {
	c := d.first
	for ; n > 1 && c < d.most; n-- {
		c *= 2
	}
	return time.Duration(random * float64(min(c, d.most)))
}

// through simulates ten minutes of 64 keys that always have events, of which a try
// takes 50 ms, and counts what gets through. Of the ill keys each try fails after
// a time.
func through(t *testing.T, ill int, takes time.Duration) int {
	t.Helper()
	const keys, work = 64, 50 * time.Millisecond
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	end := now.Add(10 * time.Minute)
	s := New(Options{Concurrency: 16})
	random := rand.New(rand.NewPCG(1, 2))
	policy := Policy{Retry: -1, Pauses: doubling{time.Second, 10 * time.Minute}}
	position := event.Position(0)
	more := func(key int) {
		position++
		s.Add(now, &Item{Ref: event.Ref{Position: position}, Key: fmt.Sprint(key), Data: key})
	}
	for key := range keys {
		more(key)
	}
	done, busy := 0, flights{}
	for now.Before(end) {
		for it := s.Begin(now); it != nil; it = s.Begin(now) {
			lasts := work
			if it.Data.(int) < ill {
				lasts = takes
			}
			heap.Push(&busy, flight{now.Add(lasts), it})
		}
		wake := s.Wake(now)
		if len(busy) > 0 && (wake.IsZero() || busy[0].ends.Before(wake)) {
			f := heap.Pop(&busy).(flight)
			now = f.ends
			key := f.item.Data.(int)
			o, _ := policy.Judge(f.item, Answer{OK: key >= ill}, now, random.Float64())
			if s.End(f.item, o, now); o.Kind == Done {
				done++
				more(key)
			}
			continue
		}
		now = wake
	}
	return done
}

// A key that is stuck, whether it fails at once or holds its place until the
// timeout, costs the others next to nothing, and many of them leave room.
func TestStuckKeysLeaveRoom(t *testing.T) {
	well := through(t, 0, 0)
	for _, c := range []struct {
		name  string
		ill   int
		takes time.Duration
		least float64
	}{
		{"one fails", 1, 50 * time.Millisecond, 0.99},
		{"one hangs", 1, 15 * time.Second, 0.95},
		{"eight hang", 8, 15 * time.Second, 0.75}, // a quarter of the places is all they get
		{"half of them hang", 32, 15 * time.Second, 0.70},
	} {
		got := through(t, c.ill, c.takes)
		if share := float64(got) / float64(well); share < c.least {
			t.Errorf("%s: %d get through, of %d: %.1f %%, want %.0f %%", c.name, got, well, 100*share, 100*c.least)
		} else {
			t.Logf("%s: %.1f %%", c.name, 100*share)
		}
	}
}

func TestJudge(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := Policy{Retry: time.Hour, Pauses: doubling{time.Second, 10 * time.Minute}}
	fresh, old := &Item{}, &Item{Attempts: 5, Since: now.Add(-time.Hour)}
	for _, c := range []struct {
		name   string
		policy Policy
		item   *Item
		answer Answer
		want   Outcome
		until  time.Time
	}{
		{"done", p, fresh, Answer{OK: true}, Outcome{Kind: Done}, time.Time{}},
		{"failed", p, fresh, Answer{Reason: "500"}, Outcome{Kind: Again, At: now.Add(500 * time.Millisecond), Reason: "500"}, time.Time{}},
		{"failed often", p, &Item{Attempts: 5, Since: now}, Answer{Reason: "500"}, Outcome{Kind: Again, At: now.Add(16 * time.Second), Reason: "500"}, time.Time{}},
		{"after", p, fresh, Answer{After: time.Minute, Reason: "500"}, Outcome{Kind: Again, At: now.Add(time.Minute), Reason: "500"}, time.Time{}},
		{"after too long", p, fresh, Answer{After: 1000 * time.Hour, Reason: "500"}, Outcome{Kind: Again, At: now.Add(time.Hour), Reason: "500"}, time.Time{}},
		{"busy", p, fresh, Answer{Busy: true, After: time.Minute, Reason: "429"}, Outcome{Kind: Again, At: now.Add(time.Minute), Reason: "429"}, now.Add(time.Minute)},
		{"busy without a time", p, fresh, Answer{Busy: true, Reason: "503"}, Outcome{Kind: Again, At: now.Add(500 * time.Millisecond), Reason: "503"}, time.Time{}},
		{"down", p, old, Answer{Down: true, Reason: "refused"}, Outcome{Kind: Hold, At: now, Reason: "refused"}, time.Time{}},
		{"gone", p, old, Answer{Gone: true, Reason: "410"}, Outcome{Kind: Hold, At: now, Reason: "410"}, time.Time{}},
		{"too old", p, old, Answer{Reason: "500"}, Outcome{Kind: Die, Reason: "500 (6 tries). It holds its key until a person decides: hookfold lane"}, time.Time{}},
		{"too old, parks", Policy{Retry: time.Hour, Parks: true, Pauses: p.Pauses}, old, Answer{Reason: "500"}, Outcome{Kind: Park, Reason: "500 (6 tries). It was set aside; its key goes on"}, time.Time{}},
		{"for ever", Policy{Retry: -1, Pauses: p.Pauses}, old, Answer{Reason: "500"}, Outcome{Kind: Again, At: now.Add(16 * time.Second), Reason: "500"}, time.Time{}},
		{"once", Policy{Pauses: p.Pauses}, fresh, Answer{Reason: "500"}, Outcome{Kind: Die, Reason: "500 (1 try). It holds its key until a person decides: hookfold lane"}, time.Time{}},
	} {
		got, until := c.policy.Judge(c.item, c.answer, now, 0.5)
		if got != c.want || !until.Equal(c.until) {
			t.Errorf("%s: %+v %s, want %+v %s", c.name, got, until, c.want, c.until)
		}
	}
}
