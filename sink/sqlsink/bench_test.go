package sqlsink_test

import (
	"fmt"
	"testing"

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
