package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	lib "modernc.org/sqlite/lib"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

func openOn(t *testing.T, disk *faultyDisk, options Options) *Journal {
	t.Helper()
	options.vfs = disk.name
	j, err := Open(filepath.Join(t.TempDir(), "journal.db"), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func small(n int) *event.Delivery {
	return &event.Delivery{Source: "shop", Body: fmt.Appendf(nil, `{"n":%d}`, n), Received: time.Unix(int64(n), 0).UTC()}
}

func mustAppend(t *testing.T, j journal.Journal, n int) *event.Delivery {
	t.Helper()
	d := small(n)
	if err := j.Append(t.Context(), d); err != nil {
		t.Fatalf("append: %v", err)
	}
	return d
}

// exactly compares bytes as a whole, which is faster for large ones.
var exactly = cmp.Comparer(func(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) })

// checkLeft opens what a loss of power left and checks that it has the
// deliveries.
func checkLeft(t *testing.T, disk *faultyDisk, want map[event.Position]*event.Delivery) {
	t.Helper()
	dir := t.TempDir()
	disk.losePower(t, dir)
	checkFile(t, filepath.Join(dir, "journal.db"), want)
}

func checkFile(t *testing.T, path string, want map[event.Position]*event.Delivery) {
	t.Helper()
	j, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	got := make(map[event.Position]*event.Delivery)
	if err := j.Scan(t.Context(), 0, func(d *event.Delivery) error {
		got[d.Position] = d
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for p, d := range want {
		if diff := cmp.Diff(d, got[p], exactly); diff != "" {
			t.Errorf("acknowledged #%d (-want +got):\n%s", p, diff)
		}
	}
}

// Whatever was acknowledged before a loss of power is there after it, also in
// the middle of checkpoints.
func TestPowerLoss(t *testing.T) {
	disk := newFaultyDisk(t)
	j := openOn(t, disk, Options{})
	var mu sync.Mutex
	acked := make(map[event.Position]*event.Delivery)
	ctx, stop := context.WithCancel(t.Context())
	random := rand.New(rand.NewPCG(1, 2))
	var wg sync.WaitGroup
	for w := range 8 {
		r := rand.New(rand.NewPCG(3, uint64(w)))
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				d := small(w*1_000_000 + i)
				d.Body = make([]byte, r.IntN(20_000)) // makes the log wrap soon
				for k := range d.Body {
					d.Body[k] = byte(r.Uint32())
				}
				if err := j.Append(ctx, d); err == nil {
					mu.Lock()
					acked[d.Position] = d
					mu.Unlock()
				} else if ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	var dirs []string
	var wants []map[event.Position]*event.Delivery
	for range 6 {
		time.Sleep(time.Duration(20+random.IntN(60)) * time.Millisecond) // any moment will do
		mu.Lock()
		want := make(map[event.Position]*event.Delivery, len(acked))
		for p, d := range acked {
			want[p] = d
		}
		mu.Unlock()
		dir := t.TempDir()
		disk.losePower(t, dir)
		dirs, wants = append(dirs, dir), append(wants, want)
	}
	stop()
	wg.Wait()
	for i, dir := range dirs {
		checkFile(t, filepath.Join(dir, "journal.db"), wants[i])
	}
	if len(wants[len(wants)-1]) == 0 {
		t.Error("nothing was acknowledged")
	}
}

// A write that fails is never called a success, nor is the next one because
// the system forgot about it; the journal comes back by itself, and what it
// acknowledged then is on the disk.
func TestC67NoSuccessWithoutStorage(t *testing.T) {
	for _, test := range []struct {
		name string
		op   string
		file string // how the name of the file ends
		code int32
		want error
	}{
		{"sync of the log", "sync", "-wal", lib.SQLITE_IOERR_FSYNC, journal.ErrBroken},
		{"write of the log", "write", "-wal", lib.SQLITE_IOERR_WRITE, journal.ErrBroken},
		{"full disk", "write", "-wal", lib.SQLITE_FULL, journal.ErrFull},
		{"read-only disk", "write", "-wal", lib.SQLITE_READONLY, journal.ErrBroken},
	} {
		t.Run(test.name, func(t *testing.T) {
			disk := newFaultyDisk(t)
			j := openOn(t, disk, Options{})
			acked := make(map[event.Position]*event.Delivery)
			for i := range 3 {
				d := mustAppend(t, j, i)
				acked[d.Position] = d
			}
			disk.fail(func(op, path string) int32 {
				if op == test.op && strings.HasSuffix(path, test.file) {
					return test.code
				}
				return 0
			})
			for i := range 3 {
				d := small(10 + i)
				if err := j.Append(t.Context(), d); !errors.Is(err, test.want) {
					t.Errorf("append %d: %v, want %v", i, err, test.want)
				}
				if d.Position != 0 {
					t.Errorf("a delivery that was not stored has position %d", d.Position)
				}
				if err := j.Healthy(); !errors.Is(err, test.want) {
					t.Errorf("healthy: %v, want %v", err, test.want)
				}
			}
			if disk.struck() == 0 {
				t.Fatal("no fault was hit")
			}
			disk.fail(nil)
			waitHealthy(t, j)
			for i := range 3 {
				d := mustAppend(t, j, 20+i)
				if acked[d.Position] != nil {
					t.Errorf("position %d was given twice", d.Position)
				}
				acked[d.Position] = d
			}
			checkLeft(t, disk, acked)
			if err := j.Close(); err != nil {
				t.Error(err)
			}
			checkFile(t, j.path, acked)
		})
	}
}

// waitHealthy waits until the journal has found by itself that its disk works.
func waitHealthy(t *testing.T, j *Journal) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); j.Healthy() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the journal does not come back: %v", j.Healthy())
		}
	}
}

// Faults that come and go at random, under load, with checkpoints between.
func TestRandomFaults(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	disk := newFaultyDisk(t)
	j := openOn(t, disk, Options{})
	c, err := j.Consumer(t.Context(), "rows")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	acked := make(map[event.Position]*event.Delivery)
	attempts := make(map[string]int)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 4 {
		r := rand.New(rand.NewPCG(seed, uint64(w)))
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				d := small(w*1_000_000 + i)
				d.Body = make([]byte, 1+r.IntN(50_000))
				for k := range d.Body {
					d.Body[k] = byte(r.Uint32())
				}
				err := j.Append(ctx, d)
				mu.Lock()
				if err == nil {
					if acked[d.Position] != nil {
						t.Errorf("position %d was given twice", d.Position)
					}
					acked[d.Position] = d
					attempts["ok"]++
				} else {
					attempts["failed"]++
				}
				mu.Unlock()
			}
		})
	}
	settled := make(map[event.Position]bool)
	wg.Go(func() {
		for ctx.Err() == nil {
			b, err := c.Next(ctx, journal.Limit{Deliveries: 20})
			if err != nil {
				continue
			}
			if err := c.Done(ctx, b, nil); err != nil {
				c.Release(b)
				continue
			}
			for _, d := range b.Deliveries {
				settled[d.Position] = true
			}
		}
	})
	r := rand.New(rand.NewPCG(seed, 99))
	codes := []int32{lib.SQLITE_IOERR_FSYNC, lib.SQLITE_IOERR_WRITE, lib.SQLITE_FULL, lib.SQLITE_IOERR_SHORT_READ}
	for range 12 {
		n, code := 1+r.IntN(40), codes[r.IntN(len(codes))]
		disk.fail(func(op, path string) int32 { // one call of the disk, some way off
			if strings.HasSuffix(path, "-shm") || (op == "sync") != (code == lib.SQLITE_IOERR_FSYNC) {
				return 0
			}
			if n--; n == 0 {
				return code
			}
			return 0
		})
		time.Sleep(100 * time.Millisecond) // the load goes on over the bad disk
		disk.fail(nil)
		waitHealthy(t, j)
	}
	time.Sleep(50 * time.Millisecond) // and over the good one
	stop()
	wg.Wait()
	t.Log(attempts, len(settled), "settled")
	if attempts["ok"] == 0 || attempts["failed"] == 0 {
		t.Errorf("attempts were %v, want some of each", attempts)
	}
	checkLeft(t, disk, acked)
	for p := range acked {
		if d, err := j.Get(t.Context(), p); err != nil || !cmp.Equal(d, acked[p], exactly) {
			t.Errorf("acknowledged #%d: %v", p, err)
		}
	}
}

// A fault while a checkpoint moves the log into the file loses nothing.
func TestCheckpointFault(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		t.Run(op, func(t *testing.T) {
			disk := newFaultyDisk(t)
			j := openOn(t, disk, Options{})
			acked := make(map[event.Position]*event.Delivery)
			r := rand.New(rand.NewPCG(1, 2))
			failed, refused := 0, 0
			disk.fail(func(o, path string) int32 {
				if o == op && strings.HasSuffix(path, ".db") && failed < 1 {
					failed++
					return map[string]int32{"write": lib.SQLITE_IOERR_WRITE, "sync": lib.SQLITE_IOERR_FSYNC}[op]
				}
				return 0
			})
			for i := range 150 {
				d := small(i)
				d.Body = make([]byte, 100_000)
				for k := range d.Body {
					d.Body[k] = byte(r.Uint32())
				}
				if err := j.Append(t.Context(), d); err == nil {
					acked[d.Position] = d
				} else {
					refused++
					waitHealthy(t, j)
				}
			}
			if disk.struck() == 0 {
				t.Fatal("no fault was hit")
			}
			if refused > 1 {
				t.Errorf("%d appends failed after one fault", refused)
			}
			checkLeft(t, disk, acked)
		})
	}
}

// When the log finds no room in the file, it does not grow by tries: the
// journal is full until there is room, and then goes on by itself.
func TestFullDiskAtCheckpoint(t *testing.T) {
	disk := newFaultyDisk(t)
	j := openOn(t, disk, Options{})
	disk.fail(func(op, path string) int32 {
		if op == "write" && strings.HasSuffix(path, ".db") {
			return lib.SQLITE_FULL
		}
		return 0
	})
	acked := make(map[event.Position]*event.Delivery)
	r := rand.New(rand.NewPCG(1, 2))
	full := 0
	for n := 0; full < 50 && n < 1000; n++ {
		d := bulky(r, 50_000)
		switch err := j.Append(t.Context(), d); {
		case err == nil:
			acked[d.Position] = d
		case errors.Is(err, journal.ErrFull):
			full++
		default:
			t.Fatal(err)
		}
	}
	if full < 50 || !errors.Is(j.Healthy(), journal.ErrFull) {
		t.Fatalf("%d appends failed; healthy: %v", full, j.Healthy())
	}
	info, err := os.Stat(j.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 6<<20 {
		t.Errorf("the log has grown to %d bytes", info.Size())
	}
	disk.fail(nil)
	waitHealthy(t, j)
	d := mustAppend(t, j, 1)
	acked[d.Position] = d
	checkLeft(t, disk, acked)
}

// If what was acknowledged is not in the file after an error, the journal
// does not go on as if nothing had happened.
func TestLossIsNotPassedOver(t *testing.T) {
	disk := newFaultyDisk(t)
	j := openOn(t, disk, Options{})
	for i := range 3 {
		mustAppend(t, j, i)
	}
	disk.fail(func(op, path string) int32 {
		if op == "sync" {
			return lib.SQLITE_IOERR_FSYNC
		}
		return 0
	})
	if err := j.Append(t.Context(), small(9)); !errors.Is(err, journal.ErrBroken) {
		t.Fatalf("append: %v, want %v", err, journal.ErrBroken)
	}
	script(t, j.path, "DELETE FROM block WHERE first = (SELECT max(first) FROM block)")
	disk.fail(nil)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err := j.Append(t.Context(), small(10))
		if !errors.Is(err, journal.ErrBroken) {
			t.Fatalf("append: %v, want %v", err, journal.ErrBroken)
		}
		if strings.Contains(err.Error(), "up to #3 were accepted, but the file ends at #2") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the error does not tell of the loss: %v", err)
		}
	}
	if err := j.Healthy(); !errors.Is(err, journal.ErrBroken) {
		t.Errorf("healthy: %v, want %v", err, journal.ErrBroken)
	}
}
