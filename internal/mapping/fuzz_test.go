package mapping

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/source"
)

// FuzzMap maps any body: nothing panics, every change is whole, and the outcome
// is the same the second time.
func FuzzMap(f *testing.F) {
	features, _, _ := strings.Cut(everyFeature, "  booking:\n") // bookings has its own
	p := compiled(f, strings.Replace(features, "tables:\n", "tables:\n"+strings.TrimPrefix(bookings, head+"\ntables:\n"), 1)+strings.TrimPrefix(typesConfig, head+"\ntables:\n"))
	chained := compiled(f, everyFeature)
	for _, preset := range source.Presets() {
		for _, s := range preset.Samples {
			if p.Source(preset.Name) != nil {
				f.Add(preset.Name, s.Body)
			}
		}
	}
	f.Add("shop", []byte(`{"id":1,"at":"2026-01-01T00:00:00Z","t":"a\u0000","n":1e5,"j":{"a":[1,null]},"a":["x"],"ts":"2026-01-01"}`))
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := range 40 {
		src, text := body(rnd, i)
		f.Add(src, []byte(text))
	}
	f.Fuzz(func(t *testing.T, src string, body []byte) {
		for _, p := range []*Plan{p, chained} {
			if p.Source(src) != nil {
				mapAny(t, p, src, body)
			}
		}
	})
}

func mapAny(t *testing.T, p *Plan, src string, body []byte) {
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
			whole := c.Replaces && len(c.Key.Parts()) == len(c.Table.Group) || !c.Replaces && len(c.Key.Parts()) == len(c.Table.Key)
			whole = whole && len(c.Cells) == len(c.Table.Columns) && (c.Version != "" || c.Table.OnDelete == merge.DeleteNone)
			whole = whole && (!c.Table.Chained || c.Occupant != nil && c.Occupant.ID == string(c.Key))
			if !whole {
				t.Errorf("not whole: %+v", c)
			}
		}
		for _, x := range out.Faults {
			if x.Reason == "" || x.Table == "" && e.Type != "" || strings.Contains(x.Reason, "internal error") {
				t.Errorf("a fault without a reason: %+v", x)
			}
		}
		if a, b := strings.Join(lines(out), "\n"), strings.Join(lines(p.Map(e, "db")), "\n"); a != b {
			t.Errorf("two outcomes:\n%s\n%s", a, b)
		}
	}
}
