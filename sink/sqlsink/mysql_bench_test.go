package sqlsink_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
)

// BenchmarkMySQLByHand is what people write themselves for the table of
// BenchmarkApply: an upsert of many VALUES with conditions of its own.
func BenchmarkMySQLByHand(b *testing.B) {
	for _, size := range []int{100, 5000} {
		b.Run(fmt.Sprintf("rows=%d", size), func(b *testing.B) {
			url := testdb.MySQL(b)
			testdb.ExecMySQL(b, url, `create table message_status (message_id varchar(255) collate utf8mb4_bin primary key, status varchar(20), sent_at datetime(6), read_at datetime(6),
				error bigint, row_version varchar(255), error_version varchar(255))`)
			db := testdb.ConnectMySQL(b, url)
			defer db.Close()
			n := 0
			for b.Loop() {
				b.StopTimer()
				rows := make([]string, size)
				for i := range rows {
					n++
					rows[i] = fmt.Sprintf("('wamid.HBgLMTU1NTU1NTU1NTUVAgARGBI%020d', 'sent', '2026-01-01 00:00:00', null, null, '%020d/%032d', null)", n, n, n)
				}
				text := "insert into message_status values " + strings.Join(rows, ",") + ` on duplicate key update
					error = if(values(error_version) >= coalesce(error_version, ''), values(error), error),
					error_version = if(values(error_version) >= coalesce(error_version, ''), values(error_version), error_version),
					status = if(field(values(status), 'sent', 'failed', 'delivered', 'read') > field(status, 'sent', 'failed', 'delivered', 'read'), values(status), status),
					sent_at = least(coalesce(sent_at, values(sent_at)), values(sent_at)), read_at = least(coalesce(read_at, values(read_at)), values(read_at))`
				b.StartTimer()
				if _, err := db.ExecContext(b.Context(), text); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
