package daemon

import (
	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
)

// mapper gives what events mean for a target.
//
// An event that no mapping wants is skipped. Where no table reads its source at
// all, nothing would ever tell that it is none, such as a null that a broken
// sender posts: so the first target finds it at fault.
func (d *Daemon) mapper(target string) func(*event.Event) mapping.Outcome {
	read := map[string]bool{}
	for _, t := range d.plan.Tables {
		for _, m := range t.Mappings {
			read[m.Source.Name] = true
		}
	}
	targets := d.plan.Targets()
	first := len(targets) == 0 || targets[0] == target
	return func(e *event.Event) mapping.Outcome {
		out := d.plan.Map(e, target)
		if first && !read[e.Delivery.Source] && empty(e.Body) {
			out.Wanted = true
			out.Faults = append(out.Faults, mapping.Fault{Reason: "it is neither an object nor a list with something in it, so that no table could take anything from it"})
		}
		return out
	}
}

// empty tells whether a body has no field and no element.
func empty(body event.JSON) bool {
	return body.Kind() != event.Object && body.Len() == 0
}
