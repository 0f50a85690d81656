package sqlite

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/hookfold/hookfold/event"
)

// progress is the set of positions that a consumer is done with: all up to and
// with done, and the ranges above it, which are sorted, apart from each other
// and from done. There are about as many ranges as batches in flight.
type progress struct {
	done  event.Position
	above []span
}

// span is the positions from first to last, both included.
type span struct{ first, last event.Position }

func (p *progress) clone() progress {
	return progress{p.done, slices.Clone(p.above)}
}

func (p *progress) has(at event.Position) bool {
	if at <= p.done {
		return true
	}
	i, found := slices.BinarySearchFunc(p.above, at, func(s span, at event.Position) int {
		return int(max(-1, min(1, s.first-at)))
	})
	return found || i > 0 && at <= p.above[i-1].last
}

// add puts the positions of s into the set.
func (p *progress) add(s span) {
	if s.last <= p.done || s.last < s.first {
		return
	}
	i, _ := slices.BinarySearchFunc(p.above, s.first, func(o span, at event.Position) int {
		if o.last+1 < at {
			return -1
		}
		return 1
	})
	j := i
	for j < len(p.above) && p.above[j].first <= s.last+1 {
		s.first, s.last = min(s.first, p.above[j].first), max(s.last, p.above[j].last)
		j++
	}
	p.above = slices.Replace(p.above, i, j, s)
	if p.above[0].first <= p.done+1 {
		p.done = p.above[0].last
		p.above = slices.Delete(p.above, 0, 1)
	}
}

// join puts the positions of another set into the set.
func (p *progress) join(o progress) {
	p.add(span{1, o.done})
	for _, s := range o.above {
		p.add(s)
	}
}

// count returns how many positions above done are in the set.
func (p *progress) count() (n int64) {
	for _, s := range p.above {
		n += int64(s.last-s.first) + 1
	}
	return n
}

// encodeAbove makes the stored form of the ranges: for each, as uvarints, how far it
// begins after the end of the one before and how far it goes on.
func (p *progress) encodeAbove() []byte {
	b, at := []byte{}, p.done
	for _, s := range p.above {
		b = binary.AppendUvarint(b, uint64(s.first-at))
		b = binary.AppendUvarint(b, uint64(s.last-s.first))
		at = s.last
	}
	return b
}

func decodeProgress(done event.Position, above []byte) (progress, error) {
	p, r, at := progress{done: done}, reader{b: above}, done
	for len(r.b) > 0 {
		gap, length := r.uvarint(), r.uvarint()
		s := span{first: at + event.Position(gap)}
		s.last = s.first + event.Position(length)
		if r.failed || s.first <= at+1 || s.last < s.first {
			return progress{}, errors.New("damaged progress of a consumer")
		}
		p.above = append(p.above, s)
		at = s.last
	}
	return p, nil
}

// spansOf joins sorted positions into ranges.
func spansOf(positions []event.Position) (spans []span) {
	for _, at := range positions {
		if n := len(spans); n > 0 && spans[n-1].last+1 == at {
			spans[n-1].last = at
			continue
		}
		spans = append(spans, span{at, at})
	}
	return spans
}
