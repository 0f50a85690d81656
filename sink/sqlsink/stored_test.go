package sqlsink_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/merge/mergetest"
	"github.com/hookfold/hookfold/sink"
)

// Rows that were there before Hookfold came, with and without versions, join
// with what comes as package merge says.
func TestStoredRowsJoinAsMergeSays(t *testing.T) {
	for name, place := range placements {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, open func(...*sink.Table) sink.Sink) {
				seed := uint64(time.Now().UnixNano())
				t.Logf("seed %d", seed)
				rnd := rand.New(rand.NewPCG(seed, 0))
				table := &sink.Table{Name: "item", Table: mergetest.EveryRule(mergetest.Shape{}), Versions: place}
				s := open(table)
				var keys []merge.Key
				var changes []*merge.Change
				for i := range 150 {
					key := merge.NewKey(fmt.Sprint("r", i))
					keys = append(keys, key)
					if err := s.Execute(t.Context(), []string{stored(rnd, table, string(key), strings.Contains(t.Name(), "postgres"))}); err != nil {
						t.Fatal(err)
					}
					for _, c := range mergetest.Changes(rnd, table.Table, rnd.IntN(4)) {
						c.Key = key
						changes = append(changes, c)
					}
				}
				before, err := s.Read(t.Context(), table, keys)
				if err != nil {
					t.Fatal(err)
				}
				coming := map[merge.Key]*merge.Row{}
				for _, r := range merge.Fold(table.Table, changes) {
					coming[r.Key] = r
				}
				write(t, s, table, changes...)
				for i, k := range keys {
					want := before[i]
					if r := coming[k]; r != nil {
						want = merge.Join(table.Table, want, r)
					}
					var out []string
					for c, x := range table.Columns {
						if x.Rule != merge.Touch {
							out = append(out, x.Name+"="+want.Cells[c].Value.String())
						}
					}
					mustShow(t, s, table, string(k), strings.Join(out, " "))
				}
				after, err := s.Read(t.Context(), table, keys)
				if err != nil {
					t.Fatal(err)
				}
				for i, k := range keys {
					want := before[i]
					if r := coming[k]; r != nil {
						want = merge.Join(table.Table, want, r)
					}
					if fmt.Sprint(want.Scopes) != fmt.Sprint(after[i].Scopes) {
						t.Errorf("%s: versions %v, want %v", k, after[i].Scopes, want.Scopes)
					}
				}
			})
		})
	}
}

// stored writes an insert of a row as somebody else would have made it: some
// columns have values, and none has a version.
func stored(rnd *rand.Rand, table *sink.Table, key string, postgres bool) string {
	names, values := []string{"k"}, []string{"'" + key + "'"}
	for _, c := range table.Columns {
		if rnd.IntN(2) == 0 || c.Rule == merge.Touch {
			continue
		}
		v := []string{"'a'", "'B'", "'ä'"}[rnd.IntN(3)]
		switch {
		case c.Type.Kind == merge.Numeric && !postgres:
			v = []string{"'10'", "'9.5'", "'-3'"}[rnd.IntN(3)]
		case c.Type.Kind == merge.Numeric:
			v = []string{"10", "9.50", "-3"}[rnd.IntN(3)]
		case c.Rule == merge.Ladder:
			v = []string{"'sent'", "'read'", "'zombie'"}[rnd.IntN(3)]
		case c.Rule == merge.Union && !postgres:
			v = `'["b","z"]'`
		case c.Rule == merge.Union:
			v = "'{b,z}'"
		}
		names, values = append(names, c.Name), append(values, v)
	}
	return fmt.Sprintf("insert into %s (%s) values (%s)", table.Name, strings.Join(names, ", "), strings.Join(values, ", "))
}
