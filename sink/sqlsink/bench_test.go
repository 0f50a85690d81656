package sqlsink_test

import (
	"fmt"
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// BenchmarkApply writes batches of message states, new ones and again the same.
func BenchmarkApply(b *testing.B) {
	for _, d := range databases {
		for _, size := range []int{1, 100, 5000} {
			for _, again := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/rows=%d/again=%v", d.name, size, again), func(b *testing.B) {
					table := tableOf(b, "message_status", "message_id text", "status text ladder sent,failed,delivered,read", "sent_at timestamp min", "read_at timestamp min", "error int scope error")
					s, err := sqlsink.Open(b.Context(), d.url(b), []*sink.Table{table}, sqlsink.Options{})
					if err != nil {
						b.Fatal(err)
					}
					defer s.Close()
					bring(b, s, table)
					n := 0
					batch := func() *sink.Batch {
						changes := make([]*merge.Change, size)
						for i := range changes {
							n++
							changes[i] = say(b, table, fmt.Sprintf("wamid.HBgLMTU1NTU1NTU1NTUVAgARGBI%020d", n), int64(n),
								map[string]any{"status": "sent", "sent_at": "2026-01-01T00:00:00Z"})
						}
						return &sink.Batch{Groups: []sink.Group{group(table, changes...)}}
					}
					next := batch()
					if _, err := s.Apply(b.Context(), next); err != nil {
						b.Fatal(err)
					}
					for b.Loop() {
						if !again {
							b.StopTimer()
							next = batch()
							b.StartTimer()
						}
						if _, err := s.Apply(b.Context(), next); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "rows/s")
				})
			}
		}
	}
}

// BenchmarkHeld writes batches to tables that are not decided by one row, beside
// one that is: new rows, then other values of the same.
func BenchmarkHeld(b *testing.B) {
	const size = 5000
	columns := []string{"status text", "amount numeric", "note text scope note", "at timestamp touch"}
	for name, change := range map[string]func(*merge.Table){
		"plain":   func(*merge.Table) {},
		"mark":    func(m *merge.Table) { m.OnDelete = merge.DeleteMark },
		"remove":  func(m *merge.Table) { m.OnDelete = merge.DeleteRemove },
		"group":   func(m *merge.Table) { m.OnDelete, m.Group = merge.DeleteRemove, []int{0} },
		"chain":   func(m *merge.Table) { m.Occupied, m.Chained = true, true },
		"counter": func(m *merge.Table) { m.Columns[1].Rule, m.Columns[1].Scope = merge.Sum, "" },
	} {
		for _, d := range databases {
			b.Run(name+"/"+d.name, func(b *testing.B) {
				key := "id text"
				if name == "group" {
					key = "parent text, id text"
				}
				m := shape(b, "item", key, columns...)
				change(&m)
				table := &sink.Table{Name: "item", Table: merge.NewTable(m)}
				s, err := sqlsink.Open(b.Context(), d.url(b), []*sink.Table{table}, sqlsink.Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				bring(b, s, table)
				n := 0
				batch := func() *sink.Batch {
					changes := make([]*merge.Change, size)
					for i := range changes {
						k := fmt.Sprint("id", i)
						if name == "group" {
							k = fmt.Sprint("p", i/10, "|", i)
						}
						c := say(b, table, k, int64(n), map[string]any{"status": "paid", "amount": fmt.Sprint(n)})
						c.Identity = fmt.Sprint(n, ".", i)
						if table.Chained {
							c.Occupant = &merge.Occupant{ID: k}
							if i%2 == 1 {
								c.Links = []merge.Link{{Old: fmt.Sprint("id", i-1), New: k}}
							}
						}
						changes[i] = c
					}
					n++
					f := merge.FoldAll(table.Table, changes)
					return &sink.Batch{Groups: []sink.Group{{Table: table, Rows: f.Rows, Sets: f.Sets, Links: f.Links}}}
				}
				for b.Loop() {
					b.StopTimer()
					next := batch()
					b.StartTimer()
					if _, err := s.Apply(b.Context(), next); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// BenchmarkGuardTrigger writes batches of plain rows, new ones and again the
// same, that the guard trigger joins: beside BenchmarkApply, whose statement
// joins them.
func BenchmarkGuardTrigger(b *testing.B) {
	const size = 5000
	for _, again := range []bool{false, true} {
		b.Run(fmt.Sprintf("again=%v", again), func(b *testing.B) {
			table := tableOf(b, "message_status", "message_id text", "status text ladder sent,failed,delivered,read", "sent_at timestamp min", "read_at timestamp min", "error int scope error")
			table.Guard = sink.ByTrigger
			s := plainWriter(b, testdb.Schema(b), nil)
			bring(b, s, table)
			n := 0
			batch := func() *sink.Batch {
				changes := make([]*merge.Change, size)
				for i := range changes {
					n++
					changes[i] = say(b, table, fmt.Sprintf("wamid.HBgLMTU1NTU1NTU1NTUVAgARGBI%020d", n), int64(n), map[string]any{"status": "sent", "sent_at": "2026-01-01T00:00:00Z"})
				}
				return &sink.Batch{Groups: []sink.Group{group(table, changes...)}}
			}
			next := batch()
			if _, err := s.Apply(b.Context(), next); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if !again {
					b.StopTimer()
					next = batch()
					b.StartTimer()
				}
				if _, err := s.Apply(b.Context(), next); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
