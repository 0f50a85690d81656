// Package converge hunts for orders that matter: it makes the orders,
// duplications and groupings in which events can arrive, and shrinks a failing
// one to the smallest that still fails. It is pure and knows nothing of events
// but their number.
package converge

import (
	"iter"
	"math/rand/v2"
	"slices"
)

// Schedule is one way for events to arrive: batches of indices into a list of
// events, in the order of arrival. An index may stand in it more than once.
type Schedule [][]int

// Flat returns the arrivals of the schedule without their grouping.
func (s Schedule) Flat() []int { return slices.Concat(s...) }

// Orders yields orders of n events: every permutation if there are at most
// limit of them, else limit random ones by the seed.
func Orders(n, limit int, seed uint64) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		if total, ok := factorial(n, limit); ok && total <= limit {
			permute(order, n, yield)
			return
		}
		rnd := rand.New(rand.NewPCG(seed, 0))
		for range limit {
			rnd.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
			if !yield(slices.Clone(order)) {
				return
			}
		}
	}
}

func factorial(n, limit int) (int, bool) {
	f := 1
	for i := 2; i <= n; i++ {
		if f *= i; f > limit {
			return 0, false
		}
	}
	return f, true
}

// permute is Heap's algorithm.
func permute(order []int, n int, yield func([]int) bool) bool {
	if n <= 1 {
		return yield(slices.Clone(order))
	}
	for i := range n {
		if !permute(order, n-1, yield) {
			return false
		}
		if j := i * (1 - n%2); i < n-1 {
			order[j], order[n-1] = order[n-1], order[j]
		}
	}
	return true
}

// Double yields the order itself, and then the order with each of its events
// once more at the end.
func Double(order []int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		if !yield(order) {
			return
		}
		for _, i := range order {
			if !yield(append(slices.Clone(order), i)) {
				return
			}
		}
	}
}

// Splits yields every way to cut an order into consecutive batches, 2^(n-1) of
// them.
func Splits(order []int) iter.Seq[Schedule] {
	return func(yield func(Schedule) bool) {
		if len(order) == 0 {
			return
		}
		for mask := range 1 << (len(order) - 1) {
			s := Schedule{{order[0]}}
			for i, x := range order[1:] {
				if mask>>i&1 == 1 {
					s = append(s, []int{x})
				} else {
					s[len(s)-1] = append(s[len(s)-1], x)
				}
			}
			if !yield(s) {
				return
			}
		}
	}
}

// Random makes one schedule by chance: a random order with some events doubled,
// cut at random places.
func Random(rnd *rand.Rand, n int) Schedule {
	order := rnd.Perm(n)
	for range rnd.IntN(n + 1) {
		order = slices.Insert(order, rnd.IntN(len(order)+1), rnd.IntN(n))
	}
	var s Schedule
	for len(order) > 0 {
		k := 1 + rnd.IntN(len(order))
		s, order = append(s, order[:k:k]), order[k:]
	}
	return s
}

// Shrink returns a smaller schedule that still fails: it takes away events, many
// at a time as long as that goes, then arrivals, then cuts, as long as fails says
// so of what is left. It calls fails a number of times that grows with the
// square of what remains, and with the logarithm of what does not.
func Shrink(s Schedule, fails func(Schedule) bool) Schedule {
	for size := len(distinct(s)) / 2; size > 1; size /= 2 {
		for from := 0; ; {
			events := distinct(s)
			if from >= len(events) {
				break
			}
			some := events[from:min(from+size, len(events))]
			if t := without(s, func(_, _, x int) bool { return slices.Contains(some, x) }); len(t) > 0 && fails(t) {
				s = t
				continue
			}
			from += size
		}
	}
	for {
		next, ok := shrinkOnce(s, fails)
		if !ok {
			return s
		}
		s = next
	}
}

func shrinkOnce(s Schedule, fails func(Schedule) bool) (Schedule, bool) {
	for _, event := range distinct(s) {
		if t := without(s, func(_, _, x int) bool { return x == event }); len(t) > 0 && fails(t) {
			return t, true
		}
	}
	for b := range s {
		for i := range s[b] {
			if t := without(s, func(bb, ii, _ int) bool { return bb == b && ii == i }); len(t) > 0 && fails(t) {
				return t, true
			}
		}
	}
	for b := 1; b < len(s); b++ {
		t := slices.Clone(s[:b])
		t[b-1] = slices.Concat(s[b-1], s[b])
		if t = append(t, s[b+1:]...); fails(t) {
			return t, true
		}
	}
	return s, false
}

func distinct(s Schedule) []int {
	all := s.Flat()
	slices.Sort(all)
	return slices.Compact(all)
}

func without(s Schedule, drop func(batch, i, event int) bool) Schedule {
	var out Schedule
	for b, batch := range s {
		var keep []int
		for i, x := range batch {
			if !drop(b, i, x) {
				keep = append(keep, x)
			}
		}
		if len(keep) > 0 {
			out = append(out, keep)
		}
	}
	return out
}
