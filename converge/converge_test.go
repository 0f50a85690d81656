package converge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestOrdersAreAllPermutationsWhenFew(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 3: 6, 4: 24, 5: 120} {
		seen := map[string]bool{}
		for o := range Orders(n, 120, 1) {
			seen[fmt.Sprint(o)] = true
		}
		if len(seen) != want {
			t.Errorf("%d events: %d different orders, want %d", n, len(seen), want)
		}
	}
}

func TestOrdersAreLimitedAndRepeatable(t *testing.T) {
	a := slices.Collect(Orders(9, 50, 7))
	b := slices.Collect(Orders(9, 50, 7))
	if len(a) != 50 || !slices.EqualFunc(a, b, slices.Equal) {
		t.Errorf("%d orders, equal under one seed: %v", len(a), slices.EqualFunc(a, b, slices.Equal))
	}
}

func TestSplitsKeepTheOrder(t *testing.T) {
	order := []int{2, 0, 1, 0}
	n := 0
	for s := range Splits(order) {
		n++
		if !slices.Equal(s.Flat(), order) {
			t.Errorf("%v is not %v cut up", s, order)
		}
	}
	if n != 8 {
		t.Errorf("%d splits, want 8", n)
	}
}

func TestRandomHoldsEveryEvent(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		s := Random(rnd, 5)
		if got := distinct(s); !slices.Equal(got, []int{0, 1, 2, 3, 4}) {
			t.Fatalf("%v lacks an event", s)
		}
	}
}

func TestShrinkFindsTheSmallestFailure(t *testing.T) {
	// It fails when 3 arrives before 1, in whatever company.
	fails := func(s Schedule) bool {
		flat := s.Flat()
		three, one := slices.Index(flat, 3), slices.Index(flat, 1)
		return three >= 0 && one > three
	}
	got := Shrink(Schedule{{0, 3}, {2, 3}, {4}, {1, 1, 5}}, fails)
	if fmt.Sprint(got) != "[[3 1]]" {
		t.Errorf("shrunk to %v, want [[3 1]]", got)
	}
}

func TestShrinkTakesManyAwayAtOnce(t *testing.T) {
	var s Schedule
	for i := range 1000 {
		s = append(s, []int{i})
	}
	calls := 0
	got := Shrink(s, func(s Schedule) bool {
		calls++
		flat := s.Flat()
		return slices.Contains(flat, 17) && slices.Contains(flat, 900)
	})
	if fmt.Sprint(got) != "[[17 900]]" || calls > 200 {
		t.Errorf("shrunk to %v in %d calls", got, calls)
	}
}
