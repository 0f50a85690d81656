package hasura_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/merge/mergetest"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/hasura"
	"github.com/hookfold/hookfold/sink/hasura/hasuratest"
)

// Eight writers with a sink each, few rows, and a network and a Hasura that fail
// at every turn, before and after the commit: each writer tries its batch again
// until it is taken, and the rows are those of package merge.
func TestStorm(t *testing.T) {
	for _, shape := range []mergetest.Shape{{}, {Occupied: true}} {
		t.Run(shape.Name(), func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			table := &sink.Table{Name: shape.Name(), Table: mergetest.EveryRule(shape)}
			url := testdb.Schema(t)
			server := hasuratest.New(t, url, hasuratest.Options{})
			r := &rig{open(t, server, nil, hasura.Options{}), server, url}
			r.bring(t, table)
			var mu sync.Mutex
			rnd := rand.New(rand.NewPCG(seed, 0))
			server.Faults(func(q hasuratest.Request) *hasuratest.Fault {
				mu.Lock()
				defer mu.Unlock()
				switch rnd.IntN(40) {
				case 0:
					return &hasuratest.Fault{Drop: true}
				case 1, 2, 3:
					return &hasuratest.Fault{DropAfter: true}
				case 4:
					return &hasuratest.Fault{Status: 502}
				case 5:
					return &hasuratest.Fault{Status: 200, Body: `{"errors":[{"message":"x","extensions":{"path":"$","code":"concurrent-update"}}]}`}
				}
				return nil
			})
			var all []*merge.Change
			for h := range 12 {
				for _, c := range mergetest.Changes(rnd, table.Table, 10) {
					x := *c
					x.Key = merge.NewKey(fmt.Sprint(h, ".", c.Key))
					all = append(all, &x)
				}
			}
			var wg sync.WaitGroup
			errs := make([]error, 8)
			for w := range errs {
				mine := rand.New(rand.NewPCG(seed, uint64(w)+1))
				s := open(t, server, nil, hasura.Options{MaxRequestBytes: []int{0, 3000}[w%2]})
				wg.Go(func() { errs[w] = storm(t, s, table, all, mine, w, len(errs)) })
			}
			wg.Wait()
			server.Faults(nil)
			for w, err := range errs {
				if err != nil {
					t.Fatalf("writer %d: %v", w, err)
				}
			}
			live, err := r.Read(t.Context(), table, nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(texts(table.Table, merge.Rows(table.Table, all)), texts(table.Table, live)); d != "" {
				t.Errorf("rows are not those of merge (-want +got):\n%s", d)
			}
		})
	}
}

// storm writes a writer's share of the changes, and some of the others', in an
// order of its own.
func storm(t *testing.T, s sink.Sink, table *sink.Table, all []*merge.Change, rnd *rand.Rand, w, writers int) error {
	var mine []*merge.Change
	for i, c := range all {
		if i%writers == w || rnd.IntN(5) == 0 {
			mine = append(mine, c)
		}
	}
	rnd.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
	for chunk := range slices.Chunk(mine, 6) {
		var err error
		for range 200 {
			if _, err = s.Apply(t.Context(), batch(table, chunk...)); err == nil || sink.ActionOf(err) != sink.Retry {
				break
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// texts writes rows so that they can be compared: unset and NULL look alike in
// a database.
func texts(t *merge.Table, rows []*merge.Row) []string {
	var out []string
	for _, r := range rows {
		s := []string{t.Show(r.Key)}
		if r.Occupant != nil {
			s = append(s, fmt.Sprint(*r.Occupant))
		}
		for i, c := range r.Cells {
			if t.Columns[i].Rule != merge.Touch {
				s = append(s, fmt.Sprintf("%s=%s@%s", t.Columns[i].Name, c.Value, c.Version))
			}
		}
		out = append(out, strings.Join(append(s, fmt.Sprint(r.Scopes)), " "))
	}
	slices.Sort(out)
	return out
}
