package mapping

import (
	"strings"
	"testing"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/source"
)

// FuzzMap maps any body: nothing panics, every change is whole, and the outcome
// is the same the second time.
func FuzzMap(f *testing.F) {
	p := compiled(f, bookings+strings.TrimPrefix(typesConfig, head+"\ntables:\n"))
	for _, preset := range source.Presets() {
		for _, s := range preset.Samples {
			if p.Source(preset.Name) != nil {
				f.Add(preset.Name, s.Body)
			}
		}
	}
	f.Add("shop", []byte(`{"id":1,"at":"2026-01-01T00:00:00Z","t":"a\u0000","n":1e5,"j":{"a":[1,null]},"a":["x"],"ts":"2026-01-01"}`))
	f.Fuzz(func(t *testing.T, src string, body []byte) {
		if p.Source(src) == nil {
			return
		}
		split, err := p.Source(src).Events(&event.Delivery{Position: 1, Source: src, Body: body})
		if err != nil {
			return
		}
		for _, e := range split.Events {
			out := p.Map(e, "db")
			if len(out.Changes)+len(out.Faults) > 0 && !out.Wanted {
				t.Errorf("changes or faults of an event that nothing wants: %v", lines(out))
			}
			for _, c := range out.Changes {
				if len(c.Key.Parts()) != len(c.Table.Key) || len(c.Cells) != len(c.Table.Columns) {
					t.Errorf("not whole: %+v", c)
				}
			}
			for _, x := range out.Faults {
				if x.Reason == "" || x.Table == "" || strings.Contains(x.Reason, "internal error") {
					t.Errorf("a fault without a reason: %+v", x)
				}
			}
			if a, b := strings.Join(lines(out), "\n"), strings.Join(lines(p.Map(e, "db")), "\n"); a != b {
				t.Errorf("two outcomes:\n%s\n%s", a, b)
			}
		}
	})
}
