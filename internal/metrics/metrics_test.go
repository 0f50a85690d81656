package metrics

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/pipeline"
)

func TestWhatIsCountedIsServed(t *testing.T) {
	m := New()
	m.Answered("shop", 200, 12, time.Millisecond)
	m.Answered("", 404, 0, time.Millisecond)
	m.Fault("db")
	m.Gauge("pending", "Deliveries not yet done.", map[string]string{"target": "db"}, func() float64 { return 7 })
	skips := map[pipeline.Skip]int64{}
	for i := range maxSkips + 50 {
		skips[pipeline.Skip{Source: "shop", Type: fmt.Sprint("t", i)}] = 1
	}
	skips[pipeline.Skip{Source: "shop", Type: "\xff" + strings.Repeat("x", 1<<20)}] = 1
	m.Batch("db", pipeline.Report{Stats: pipeline.Stats{Settled: 3, Died: 1, Written: 2, Ties: 4}, Skips: skips})
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body := w.Body.String()
	for _, want := range []string{
		`hookfold_requests_total{source="shop",status="200"} 1`, `hookfold_requests_total{source="",status="404"} 1`,
		`hookfold_received_bytes_total{source="shop"} 12`, `hookfold_events_total{state="settled",target="db"} 3`,
		`hookfold_events_total{state="dead",target="db"} 1`, `hookfold_rows_total{result="written",target="db"} 2`,
		`hookfold_oddities_total{kind="tie",target="db"} 4`, `hookfold_target_faults_total{target="db"} 1`,
		`hookfold_pending{target="db"} 7`, `hookfold_skipped_events_total{source="shop",target="db",type="other"} 51`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("not served: %s", want)
		}
	}
	if n := strings.Count(body, "hookfold_skipped_events_total{"); n > maxSkips+1 {
		t.Errorf("%d series of skipped events: types from outside are not bounded", n)
	}
}
