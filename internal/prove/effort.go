package prove

import (
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/hookfold/hookfold/converge"
)

const (
	// allSplits is up to how many deliveries every order is cut into batches in
	// every way, allOrders up to how many orders they are all tried.
	allSplits = 4
	allOrders = 720
	// DefaultOrders is how many orders are tried by chance where there are too
	// many to try them all.
	DefaultOrders = 200
)

// arrival is one way for deliveries to arrive: per writer, batches of their
// numbers.
type arrival [][]cut

type cut struct {
	deliveries []int
	crash      bool
}

// writersOf are the numbers of writers, in turn.
var writersOf = [...]int{1, 2, 1, 8}

// effort yields the arrivals to be tried of n deliveries, at least orders of
// them: all orders in all batches where there are few, then all orders, or as
// many by chance, with deliveries that come twice, writers that crash between
// the database and the journal, and one, two or eight writers.
func effort(n, orders int, seed uint64) iter.Seq[arrival] {
	return func(yield func(arrival) bool) {
		if n == 0 {
			return
		}
		rnd := rand.New(rand.NewPCG(seed, uint64(n)))
		done := 0
		if n <= allSplits {
			for order := range converge.Orders(n, allOrders, seed) {
				for s := range converge.Splits(order) {
					if done++; !yield(alone(s)) {
						return
					}
				}
			}
		}
		next := func(order []int) bool {
			done++
			return yield(byChance(order, writersOf[done%len(writersOf)], rnd))
		}
		if all, ok := permutations(n); ok && all <= max(orders, allOrders) {
			for order := range converge.Orders(n, all, seed) {
				if !next(order) {
					return
				}
			}
		}
		for done < orders {
			if !next(rnd.Perm(n)) {
				return
			}
		}
	}
}

// size is how many arrivals effort yields.
func size(n, orders int) int {
	if n == 0 {
		return 0
	}
	done := 0
	all, ok := permutations(n)
	if n <= allSplits {
		done += all << (n - 1)
	}
	if ok && all <= max(orders, allOrders) {
		done += all
	}
	return max(done, orders)
}

// permutations is n factorial, as long as it is not beyond any use.
func permutations(n int) (int, bool) {
	f := 1
	for i := 2; i <= n; i++ {
		if f *= i; f > 1<<24 {
			return 0, false
		}
	}
	return f, true
}

// alone is a schedule by one writer.
func alone(s converge.Schedule) arrival {
	var batches []cut
	for _, b := range s {
		batches = append(batches, cut{deliveries: b})
	}
	return arrival{batches}
}

// byChance lets some deliveries come twice, deals the arrivals out to writers,
// cuts what each has into batches, and lets some crash.
func byChance(order []int, writers int, rnd *rand.Rand) arrival {
	order = slices.Clone(order)
	for range rnd.IntN(3) {
		order = slices.Insert(order, rnd.IntN(len(order)+1), order[rnd.IntN(len(order))])
	}
	of := make([][]int, writers)
	for _, d := range order {
		w := rnd.IntN(writers)
		of[w] = append(of[w], d)
	}
	var out arrival
	for _, list := range of {
		var batches []cut
		for len(list) > 0 {
			k := 1 + rnd.IntN(len(list))
			batches = append(batches, cut{deliveries: list[:k:k], crash: rnd.IntN(6) == 0})
			list = list[k:]
		}
		if batches != nil {
			out = append(out, batches)
		}
	}
	return out
}
