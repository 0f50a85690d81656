package hasura_test

import (
	"fmt"
	"testing"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink/hasura"
	"github.com/hookfold/hookfold/sink/hasura/hasuratest"
)

// Rows per second through the double, which parses GraphQL as Hasura does and
// runs the same statements on PostgreSQL: batches of 500 rows, of which half are
// new and half move.
func BenchmarkApply(b *testing.B) {
	for _, c := range []struct {
		name    string
		columns []string
		values  set
	}{
		{"one scope", []string{"a text", "b numeric", "c timestamp"}, set{"a": "some text", "b": "129.90", "c": "2026-01-02T03:04:05Z"}},
		{"ladder and times", []string{"status text ladder sent,delivered,read", "sent timestamp min", "read timestamp min"}, set{"status": "delivered", "sent": "2026-01-02T03:04:05Z", "read": "2026-01-02T03:04:05Z"}},
		{"union", []string{"tags text[] union"}, set{"tags": `["a","b"]`}},
	} {
		b.Run(c.name, func(b *testing.B) {
			table := tableOf(b, "item", "id text", c.columns...)
			r := start(b, hasuratest.Options{}, hasura.Options{}, nil, table)
			rows := 0
			for n := 0; b.Loop(); n++ {
				var changes []*merge.Change
				for i := range 500 {
					changes = append(changes, say(b, table, fmt.Sprint("k", n*250+i), int64(n), c.values))
				}
				write(b, r, table, changes...)
				rows += len(changes)
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
	b.Run("occupants", func(b *testing.B) {
		table := booking(b)
		r := start(b, hasuratest.Options{}, hasura.Options{}, nil, table)
		rows := 0
		for n := 0; b.Loop(); n++ {
			var changes []*merge.Change
			for i := range 500 {
				changes = append(changes, occupant(say(b, table, fmt.Sprint("k", n*250+i), int64(n), set{"status": "active", "invitee": "x"}), fmt.Sprint("o", n), int64(n)))
			}
			write(b, r, table, changes...)
			rows += len(changes)
		}
		b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
	})
}
