package prove

import (
	"fmt"
	"slices"
	"testing"
)

func TestEffortHasItsSizeAndEveryDelivery(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 4, 5, 6, 7, 40} {
		for _, orders := range []int{1, 200} {
			count, most, crashes, again := 0, 0, 0, 0
			for a := range effort(n, orders, 7) {
				count++
				most = max(most, len(a))
				var all []int
				for _, batches := range a {
					for _, b := range batches {
						all = append(all, b.deliveries...)
						if b.crash {
							crashes++
						}
					}
				}
				slices.Sort(all)
				again += len(all) - n
				if got := slices.Compact(all); len(got) != n || n > 0 && got[n-1] != n-1 {
					t.Fatalf("of %d deliveries there arrive %v", n, got)
				}
			}
			if count != size(n, orders) {
				t.Errorf("%d deliveries arrive in %d ways, and size says %d", n, count, size(n, orders))
			}
			if n > 4 && orders > 1 && (most < 3 || crashes == 0 || again == 0) {
				t.Errorf("%d deliveries: at most %d writers, %d crashes, %d redeliveries", n, most, crashes, again)
			}
		}
	}
}

func TestEffortIsRepeatable(t *testing.T) {
	list := func() (out []string) {
		for a := range effort(7, 50, 3) {
			out = append(out, fmt.Sprint(a))
		}
		return out
	}
	if !slices.Equal(list(), list()) {
		t.Error("one seed gives two efforts")
	}
}

// Few deliveries are tried in every order, cut into batches in every way.
func TestEffortOfFewIsAll(t *testing.T) {
	seen := map[string]bool{}
	for a := range effort(3, 1, 1) {
		if len(a) == 1 {
			var s [][]int
			for _, b := range a[0] {
				s = append(s, b.deliveries)
			}
			seen[fmt.Sprint(s)] = true
		}
	}
	for _, want := range []string{"[[2] [0] [1]]", "[[1 0] [2]]", "[[2 1 0]]", "[[0] [1 2]]"} {
		if !seen[want] {
			t.Errorf("%s is not tried", want)
		}
	}
}
