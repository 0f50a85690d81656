package config

import "strings"

// nearest returns the name that somebody who wrote s most likely meant, or "".
func nearest(s string, names []string) string {
	best, at := "", max(1, len([]rune(s))/3)+1
	for _, n := range names {
		if d := distance(strings.ToLower(s), strings.ToLower(n), at); d < at {
			best, at = n, d
		}
	}
	return best
}

// distance counts the letters to insert, remove, replace or swap with their
// neighbour to make b of a. It stops counting at most.
func distance(a, b string, most int) int {
	x, y := []rune(a), []rune(b)
	if d := len(x) - len(y); d >= most || -d >= most {
		return most
	}
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}

// didYouMean returns " Did you mean x?", or the names if none is near.
func didYouMean(s string, names []string) string {
	if n := nearest(s, names); n != "" {
		return " Did you mean " + n + "?"
	}
	if len(names) == 0 {
		return ""
	}
	return " There is " + list(names) + "."
}

// list joins names for a person, at most twenty.
func list(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and others"
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
