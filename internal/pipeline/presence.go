package pipeline

import (
	"fmt"
	"strings"
	"sync"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/merge"
)

// presence counts, per source, type and mapping, the events that had all that
// the mapping reads, so that an event that lacks a field can be told to be the
// first of many. It counts from the start of the process.
type presence struct {
	mu     sync.Mutex
	counts map[mapped]int64
}

type mapped struct{ source, typ, mapping string }

// maxPresence bounds what presence counts apart: types come from outside.
const maxPresence = 10_000

func newPresence() *presence { return &presence{counts: map[mapped]int64{}} }

func (p *presence) count(changes []*merge.Change, e *event.Event) {
	if len(changes) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	last := ""
	for _, c := range changes {
		if c.Mapping == last { // several of one list
			continue
		}
		last = c.Mapping
		k := mapped{e.Delivery.Source, e.Type, c.Mapping}
		n, ok := p.counts[k]
		if !ok {
			if len(p.counts) >= maxPresence {
				return
			}
			k.typ = strings.Clone(k.typ)
		}
		p.counts[k] = n + 1
	}
}

// tell adds to a reason in how many events before the field was that is missing.
func (p *presence) tell(reason string, f *mapping.Fault, e *event.Event) string {
	if !f.Missing {
		return reason
	}
	p.mu.Lock()
	n := p.counts[mapped{e.Delivery.Source, e.Type, f.Mapping}]
	p.mu.Unlock()
	if n == 0 {
		return reason
	}
	before := " (missing now, present in " + thousands(n) + " events before)"
	if n == 1 {
		before = " (missing now, present in 1 event before)"
	}
	if i := strings.LastIndex(reason, ". Has the provider"); i >= 0 {
		return reason[:i] + before + reason[i:]
	}
	return reason + before + ". Has the sender changed what it sends?"
}

// thousands renders a number with commas: 4,118.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
