package postgrest_test

import (
	"fmt"
	"testing"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink/postgrest"
)

// Batches of 500 rows of the table of a typical config, half of them new.
func BenchmarkApply(b *testing.B) {
	for _, mode := range modes {
		b.Run(string(mode), func(b *testing.B) {
			table := tableOf(b, "message_status", "message_id text", "status text ladder sent,failed,delivered,read", "sent_at timestamp min", "error int scope error")
			p := project(b)
			s := open(b, p, nil, postgrest.Options{Mode: mode})
			bring(b, s, table)
			n := 0
			for b.Loop() {
				var changes []*merge.Change
				for i := range 500 {
					changes = append(changes, say(b, table, fmt.Sprint("m", n*250+i), int64(n), map[string]any{"status": "delivered", "sent_at": "2026-05-06T09:00:00Z", "error": "1"}))
				}
				n++
				write(b, s, table, changes...)
			}
			b.ReportMetric(float64(n*500)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
