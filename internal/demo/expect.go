package demo

import (
	"fmt"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/merge"
)

// Reading is what deliveries mean.
type Reading struct {
	Events int
	// Changes are those of each table, in the order of the deliveries, with
	// those that make missing parents.
	Changes map[*merge.Table][]*merge.Change
	// Types names the type of each event.
	Types map[event.Ref]string
}

// Read tells what deliveries mean, in their order.
func Read(plan *mapping.Plan, deliveries []*event.Delivery) (*Reading, error) {
	out := &Reading{Changes: map[*merge.Table][]*merge.Change{}, Types: map[event.Ref]string{}}
	for _, d := range deliveries {
		split, err := plan.Source(d.Source).Events(d)
		if err != nil {
			return nil, fmt.Errorf("split a delivery of %s: %w", d.Source, err)
		}
		for _, e := range split.Events {
			out.Events++
			out.Types[e.Ref()] = e.Type
			for _, target := range plan.Targets() {
				outcome := plan.Map(e, target)
				if len(outcome.Faults) > 0 {
					return nil, fmt.Errorf("map a delivery of %s: %s", d.Source, outcome.Faults[0].Reason)
				}
				for _, c := range outcome.Changes {
					out.add(c)
				}
			}
		}
	}
	return out, nil
}

func (r *Reading) add(c *merge.Change) {
	for _, p := range c.Parents {
		r.Changes[p.Table] = append(r.Changes[p.Table], &merge.Change{
			Table: p.Table, Key: p.Key, From: c.From, Version: c.Version, Cells: make([]merge.Cell, len(p.Table.Columns)),
		})
	}
	r.Changes[c.Table] = append(r.Changes[c.Table], c)
}
