package pipeline

import (
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/hookfold/hookfold/merge"
)

// ties remembers the changes of late, so that two of one row are found whose
// versions differ only behind their tuple while their values differ: the version
// is too coarse. What lies further back, or before a restart, is not found.
type ties struct {
	mu         sync.Mutex
	seed       maphash.Seed
	young, old map[uint64]*tied // by table, key, occupant and tuple
}

// maxTied bounds each of the two generations of ties.
const maxTied = 20_000

// tied is what is known of the changes of one row and tuple.
type tied struct {
	// values are hashes of the values of the latest columns, 0 where unset.
	values []uint64
	// versions are hashes of the versions that were seen, a few of them.
	versions []uint64
	name     string // of the event of the greatest version
	top      merge.Version
}

const maxTiedVersions = 8

func newTies() *ties { return &ties{seed: maphash.MakeSeed(), young: map[uint64]*tied{}} }

// tie is two events that a version cannot tell apart; taken is the one whose
// values stand.
type tie struct{ first, second, taken string }

// see takes down a change, and tells of a tie with an earlier one.
func (t *ties) see(c *merge.Change, name func() string) (tie, bool) {
	if c.Version == "" || c.Delete || c.Replaces || len(c.Table.Scopes()) == 0 {
		return tie{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var h maphash.Hash
	h.SetSeed(t.seed)
	parts := []string{c.Table.Name, string(c.Key), c.Version.Tuple()}
	if c.Occupant != nil {
		parts = append(parts, c.Occupant.ID)
	}
	for _, s := range parts {
		maphash.WriteComparable(&h, s)
	}
	key, version := h.Sum64(), maphash.String(t.seed, string(c.Version))
	x := t.get(key)
	if x == nil {
		t.put(key, &tied{values: t.values(c), versions: []uint64{version}, name: strings.Clone(name()), top: merge.Version(strings.Clone(string(c.Version)))})
		return tie{}, false
	}
	if slices.Contains(x.versions, version) {
		return tie{}, false
	}
	if len(x.versions) < maxTiedVersions {
		x.versions = append(x.versions, version)
	}
	values := t.values(c)
	differ := false
	for i := range values {
		differ = differ || values[i] != 0 && x.values[i] != 0 && values[i] != x.values[i]
	}
	found := tie{first: x.name, second: name(), taken: x.name}
	if c.Version > x.top {
		found.taken = found.second
		x.values, x.top, x.name = values, merge.Version(strings.Clone(string(c.Version))), strings.Clone(found.second)
	}
	return found, differ
}

func (t *ties) values(c *merge.Change) []uint64 {
	out := make([]uint64, len(c.Cells))
	for i, cell := range c.Cells {
		if cell.Set && c.Table.ScopeOf(i) >= 0 {
			out[i] = maphash.Comparable(t.seed, cell.Value) | 1
		}
	}
	return out
}

func (t *ties) get(key uint64) *tied {
	if x := t.young[key]; x != nil {
		return x
	}
	x := t.old[key]
	if x != nil {
		t.put(key, x)
	}
	return x
}

func (t *ties) put(key uint64, x *tied) {
	if len(t.young) >= maxTied {
		t.young, t.old = map[uint64]*tied{}, t.young
	}
	t.young[key] = x
}

// seeTies counts and tells of the ties of a batch.
func (r *Runner) seeTies(w *work) {
	for _, u := range w.units {
		c := u.change
		found, ok := r.ties.see(c, func() string { return w.name(u) })
		if !ok {
			continue
		}
		w.stats.Ties++
		r.log.Line(slog.LevelWarn, "tie", func() string {
			return fmt.Sprintf("tie   %s → %s %s: two different events have the version %s (%s, %s); %s was taken, the same in every order. Make version finer.",
				w.items[u.item].source, c.Table.Name, c.Table.Show(c.Key), c.Version.Show(), found.first, found.second, found.taken)
		})
	}
}
