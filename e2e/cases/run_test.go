package cases

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/hookfold/hookfold/converge"
)

// ordersVar names the variable that says how many orders of a case are tried.
const ordersVar = "HOOKFOLD_ORDERS"

// mostOrders is how many orders of one case are tried at most; where there are
// more, they are random ones, others in every run.
func mostOrders() int {
	if n, err := strconv.Atoi(os.Getenv(ordersVar)); err == nil {
		return n
	}
	return 24 // every order of four arrivals
}

// orders yields the orders in which a scenario's arrivals come, as indices.
func (s *scenario) orders(on engine, rnd *rand.Rand) (iter.Seq[[]int], error) {
	n, most := len(s.arrivals), mostOrders()
	if on.api != nil {
		most = max(1, most/fewer)
	}
	given := converge.Orders(1, 1, 0)
	switch s.Orders {
	case "", "all":
	case "given":
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		given = func(yield func([]int) bool) { yield(order) }
	default:
		own, err := strconv.Atoi(s.Orders)
		if err != nil {
			return nil, fmt.Errorf("case.yaml: orders: %w", err)
		}
		most = min(most, own)
	}
	if s.Orders != "given" {
		given = converge.Orders(n, most, rnd.Uint64())
	}
	return func(yield func([]int) bool) {
		for order := range given {
			for doubled := range s.doubled(order, rnd) {
				if !yield(doubled) {
					return
				}
			}
		}
	}, nil
}

// doubled yields an order, and what it is with arrivals that come twice.
func (s *scenario) doubled(order []int, rnd *rand.Rand) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		if !yield(order) || s.Doubled == "none" {
			return
		}
		again := []int{rnd.IntN(len(order))}
		if s.Doubled == "each" {
			again = rnd.Perm(len(order))
		}
		for _, i := range again {
			at := i + 1 + rnd.IntN(len(order)-i)
			if !yield(slices.Insert(slices.Clone(order), at, order[i])) {
				return
			}
		}
	}
}

// run tries a scenario on an engine, in every order it asks for, and returns
// the first failure.
func (s *scenario) run(t *testing.T, on engine, seed uint64) error {
	rnd := rand.New(rand.NewPCG(seed, 1))
	if on.api != nil {
		throughAPI <- struct{}{}
		defer func() { <-throughAPI }()
		of := *s
		of.Parallel = min(s.Parallel, fewCopies)
		s = &of
	}
	if s.Parallel > 0 {
		if err := s.runParallel(t, on, rnd); err != nil {
			return fmt.Errorf("%d at the same moment: %w", s.Parallel, err)
		}
	}
	orders, err := s.orders(on, rnd)
	if err != nil {
		return err
	}
	first := ""
	for order := range orders {
		rows, err := s.runOrder(t, on, order, rnd)
		if err != nil {
			return fmt.Errorf("order %v: %w", order, err)
		}
		if first == "" {
			first = rows
		}
		if rows != first {
			return fmt.Errorf("order %v makes other rows than the one before it: %s, not %s", order, rows, first)
		}
	}
	return nil
}

// runOrder makes the arrivals happen one after another. Between them it waits,
// by chance, until what came before was taken, so that they are cut into
// batches in many ways.
// It returns the rows that must be the same in every order.
func (s *scenario) runOrder(of testing.TB, on engine, order []int, rnd *rand.Rand) (same string, err error) {
	t := &scoped{TB: of}
	defer t.end()
	w, err := s.prepare(t, on)
	if err != nil {
		return "", err
	}
	if err := w.start(); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	for _, i := range order {
		a := s.arrivals[i]
		if !a.request() || s.Restart || rnd.IntN(2) == 0 {
			if err := w.taken(); err != nil {
				return "", err
			}
		}
		if s.Restart {
			if err := errors.Join(w.stop(), w.start()); err != nil {
				return "", err
			}
		}
		if err := w.arrive(a); err != nil {
			return "", fmt.Errorf("arrival %d: %w", i, err)
		}
	}
	if err := w.judge(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, w.log.String())
	}
	return w.same(w.plan, w.url, t)
}

// runParallel sends all arrivals of many copies of the case, those of one copy
// at the same moment.
func (s *scenario) runParallel(of testing.TB, on engine, rnd *rand.Rand) (err error) {
	t := &scoped{TB: of}
	defer t.end()
	many, err := s.varied(s.Parallel)
	if err != nil {
		return err
	}
	w, err := many.prepare(t, on)
	if err != nil {
		return err
	}
	if err := w.start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	n := len(s.arrivals)
	copies := make(chan int)
	var mu sync.Mutex
	var faults []error
	var senders sync.WaitGroup
	for range max(1, 64/n) {
		senders.Go(func() {
			for i := range copies {
				var together sync.WaitGroup
				for _, a := range many.arrivals[i*n : (i+1)*n] {
					together.Go(func() {
						if err := w.arrive(a); err != nil {
							mu.Lock()
							faults = append(faults, err)
							mu.Unlock()
						}
					})
				}
				together.Wait()
			}
		})
	}
	for _, i := range rnd.Perm(s.Parallel) {
		copies <- i
	}
	close(copies)
	senders.Wait()
	if len(faults) > 0 {
		return faults[0]
	}
	if err := w.judge(); err != nil {
		return fmt.Errorf("%w\n%s", err, w.log.String())
	}
	return quiet(w.log.String())
}
