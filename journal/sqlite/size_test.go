package sqlite

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// bulky is a delivery that does not compress.
func bulky(r *rand.Rand, size int) *event.Delivery {
	d := small(1)
	d.Body = make([]byte, size)
	for i := range d.Body {
		d.Body[i] = byte(r.Uint32())
	}
	return d
}

// settleAll is done with everything there is.
func settleAll(t *testing.T, c journal.Consumer, unsettled ...journal.Entry) {
	t.Helper()
	for {
		n, _, err := c.Lag(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
		b, err := c.Next(t.Context(), journal.Limit{})
		if err != nil {
			t.Fatal(err)
		}
		var mine []journal.Entry
		for _, e := range unsettled {
			if p := e.Ref.Position; p >= b.Deliveries[0].Position && p <= b.Deliveries[len(b.Deliveries)-1].Position {
				mine = append(mine, e)
			}
		}
		if err := c.Done(t.Context(), b, mine); err != nil {
			t.Fatal(err)
		}
	}
}

// At its greatest size the journal makes room by itself, and is full only when
// nothing is settled.
func TestMaxBytes(t *testing.T) {
	const limit = 4 << 20
	r := rand.New(rand.NewPCG(1, 2))
	j := openAt(t, filepath.Join(t.TempDir(), "journal.db"), Options{MaxBytes: limit})
	c, err := j.Consumer(t.Context(), "rows")
	if err != nil {
		t.Fatal(err)
	}
	var first event.Position
	for range 2000 {
		d := bulky(r, 50_000)
		if err = j.Append(t.Context(), d); err != nil {
			break
		}
		if first == 0 {
			first = d.Position
		}
	}
	if !errors.Is(err, journal.ErrFull) || !errors.Is(j.Healthy(), journal.ErrFull) {
		t.Fatalf("append: %v; healthy: %v; want %v", err, j.Healthy(), journal.ErrFull)
	}
	// 70 dead deliveries are more than one step of retention looks at.
	var dead []journal.Entry
	for i := range 70 {
		dead = append(dead, journal.Entry{Ref: event.Ref{Position: first + event.Position(i)}, State: journal.Dead})
	}
	settleAll(t, c, dead...)
	for i := range 100 {
		if err := j.Append(t.Context(), bulky(r, 50_000)); err != nil {
			t.Fatalf("append %d after all is settled: %v", i, err)
		}
		settleAll(t, c)
	}
	if err := j.Healthy(); err != nil {
		t.Error(err)
	}
	if _, err := j.Get(t.Context(), first); err != nil {
		t.Errorf("a dead delivery was removed: %v", err)
	}
	st, err := j.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if st.Bytes > limit+limit/10 || st.Dead != 70 {
		t.Errorf("%+v: want at most %d bytes and 70 dead", st, limit)
	}
}

// What Retain frees goes back to the disk, but for some that the next
// deliveries will take.
func TestSpaceComesBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, Options{})
	c, err := j.Consumer(t.Context(), "rows")
	if err != nil {
		t.Fatal(err)
	}
	var last *event.Delivery
	for range 300 {
		last = bulky(r, 100_000)
		if err := j.Append(t.Context(), last); err != nil {
			t.Fatal(err)
		}
	}
	settleAll(t, c)
	removed, err := j.Retain(t.Context(), journal.Retention{Age: time.Hour}, last.Received.Add(2*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if removed.Deliveries != 300 || removed.Bytes < 25<<20 {
		t.Errorf("%+v was removed, want 300 deliveries and 30 MB", removed)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 6<<20 {
		t.Errorf("the file has %d bytes after all was removed", info.Size())
	}
}

// A consumer of a long backlog holds no more of it than its limits ask for.
func TestBacklogIsNotInMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	j := openAt(t, filepath.Join(t.TempDir(), "journal.db"), Options{CacheBytes: 1 << 20})
	for range 200 {
		if err := j.Append(t.Context(), bulky(r, 100_000)); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := j.Consumer(t.Context(), "rows")
	if err != nil {
		t.Fatal(err)
	}
	c := opened.(*consumer)
	for n := 0; n < 200; {
		b, err := c.Next(t.Context(), journal.Limit{Deliveries: 5, Bytes: 300_000})
		if err != nil {
			t.Fatal(err)
		}
		n += len(b.Deliveries)
		held := 0
		for _, it := range c.ready {
			held += it.bytes
		}
		if held > 300_000+maxBlock {
			t.Fatalf("%d bytes are held beside the batch", held)
		}
		if err := c.Done(t.Context(), b, nil); err != nil {
			t.Fatal(err)
		}
	}
	if j.cache.bytes > 1<<20 {
		t.Errorf("the cache holds %d bytes", j.cache.bytes)
	}
}

func TestRemoveConsumer(t *testing.T) {
	j := openAt(t, filepath.Join(t.TempDir(), "journal.db"), Options{})
	d := mustAppend(t, j, 1)
	var consumers []journal.Consumer
	for _, name := range []string{"gone", "rows"} {
		c, err := j.Consumer(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		consumers = append(consumers, c)
	}
	settleAll(t, consumers[1])
	if err := j.RemoveConsumer(t.Context(), "gone"); err == nil {
		t.Error("a consumer that is open was removed")
	}
	if err := consumers[0].Close(); err != nil {
		t.Fatal(err)
	}
	retain := func() int64 {
		t.Helper()
		removed, err := j.Retain(context.Background(), journal.Retention{Age: 1}, d.Received.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return removed.Deliveries
	}
	if n := retain(); n != 0 {
		t.Errorf("%d deliveries were removed that a consumer has yet to settle", n)
	}
	if err := j.RemoveConsumer(t.Context(), "gone"); err != nil {
		t.Error(err)
	}
	if names, err := j.Consumers(t.Context()); err != nil || len(names) != 1 || names[0] != "rows" {
		t.Errorf("consumers are %v, %v", names, err)
	}
	if n := retain(); n != 1 {
		t.Errorf("%d deliveries were removed after the consumer was, want 1", n)
	}
}

// Receipts go by age, except those of deliveries that still have entries.
func TestReceiptsByAge(t *testing.T) {
	j := openAt(t, filepath.Join(t.TempDir(), "journal.db"), Options{})
	at := time.Unix(1000, 0).UTC()
	receipt := func(id string, p event.Position, received time.Time) journal.Receipt {
		return journal.Receipt{Source: "s", ID: id, Received: received, Ref: event.Ref{Position: p}}
	}
	ids := []journal.Receipt{receipt("old", 1, at), receipt("held", 2, at), receipt("new", 3, at.Add(time.Hour))}
	mustAppend(t, j, 1)
	dead := mustAppend(t, j, 2)
	c, err := j.Consumer(t.Context(), "rows")
	if err != nil {
		t.Fatal(err)
	}
	settleAll(t, c, journal.Entry{Ref: event.Ref{Position: dead.Position}, State: journal.Dead})
	if _, err := j.FirstReceipts(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Retain(t.Context(), journal.Retention{Age: time.Minute}, at.Add(30*time.Minute)); err != nil {
		t.Fatal(err)
	}
	var later []journal.Receipt
	for _, r := range ids {
		later = append(later, receipt(r.ID, 9, at.Add(2*time.Hour)))
	}
	got, err := j.FirstReceipts(t.Context(), later)
	if err != nil {
		t.Fatal(err)
	}
	if !got[0].Received.Equal(at.Add(2*time.Hour)) || got[1] != ids[1] || got[2] != ids[2] {
		t.Errorf("receipts are %v, want the first one new", got)
	}
}

// Asking how long the log is does not write it out.
func TestLogSize(t *testing.T) {
	j := openAt(t, filepath.Join(t.TempDir(), "journal.db"), Options{})
	mustAppend(t, j, 1)
	ask := func(name string) int {
		t.Helper()
		var busy, frames, written int
		if err := j.file.read.QueryRowContext(t.Context(), query(name)).Scan(&busy, &frames, &written); err != nil {
			t.Fatal(err)
		}
		return frames - written
	}
	first := ask("log-size")
	if again := ask("log-size"); first <= 0 || again < first {
		t.Errorf("the log is %d pages ahead, then %d", first, again)
	}
	if after := ask("checkpoint"); after != 0 {
		t.Errorf("the log is %d pages ahead after it was written out", after)
	}
}
