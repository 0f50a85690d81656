package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
)

// report collects what was measured.
type report struct {
	short bool
	runs  int
	lines []line
	notes []string
}

// line is one line of the table.
type line struct {
	what, figure, must string
	ok                 bool
}

// bound tells on which side of a limit a ratio has to be.
type bound int

const (
	atLeast bound = iota
	atMost
)

func (b bound) holds(x, limit float64) bool {
	if b == atLeast {
		return x >= limit
	}
	return x <= limit
}

func (b bound) String() string { return []string{"≥", "≤"}[b] }

func each(runs []run, f func(run) float64) []float64 {
	out := make([]float64, len(runs))
	for i, r := range runs {
		out[i] = f(r)
	}
	return out
}

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// ratios are those of runs that were made one after the other.
func ratios(a, b []run, f func(run) float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = f(a[i]) / f(b[i])
	}
	return out
}

// ratio judges ours against a baseline: the median of the ratios, run by run.
func (r *report) ratio(what string, got map[string][]run, against string, f func(run) float64, b bound, limit float64) {
	x := ratios(got["ours"], got[against], f)
	m := median(x)
	r.lines = append(r.lines, line{
		what:   what + ", against " + against,
		figure: fmt.Sprintf("%.2f × (%.2f–%.2f); %s against %s", m, slices.Min(x), slices.Max(x), number(median(each(got["ours"], f))), number(median(each(got[against], f)))),
		must:   fmt.Sprintf("%s %g ×", b, limit), ok: b.holds(m, limit),
	})
}

// noise shows how far two runs of the same are apart.
func (r *report) noise(what string, got map[string][]run, a, b string, f func(run) float64) {
	x := ratios(got[a], got[b], f)
	r.lines = append(r.lines, line{what: what + ", the same twice", figure: fmt.Sprintf("%.2f × (%.2f–%.2f)", median(x), slices.Min(x), slices.Max(x)), must: "noise", ok: true})
}

// figure judges a figure of ours that has a limit.
func (r *report) figure(what string, runs []run, f func(run) float64, most float64) {
	x := slices.Max(each(runs, f))
	r.lines = append(r.lines, line{what: what, figure: number(x), must: "≤ " + number(most), ok: x <= most})
}

// medians notes the medians of all subjects.
func (r *report) medians(got map[string][]run, f func(run) float64) {
	var out []string
	for kind, runs := range got {
		out = append(out, fmt.Sprintf("%s %s/s", kind, number(median(each(runs, f)))))
	}
	slices.Sort(out)
	r.notes = append(r.notes, "128 connections: "+strings.Join(out, ", ")+".")
}

func number(x float64) string {
	if x < 100 {
		return fmt.Sprintf("%.1f", x)
	}
	s := fmt.Sprintf("%.0f", x)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func (r *report) ok() bool {
	return !slices.ContainsFunc(r.lines, func(l line) bool { return !l.ok })
}

// print prints the table as Markdown.
func (r *report) print(w io.Writer) {
	form := "all of it"
	if r.short {
		form = "short form"
	}
	fmt.Fprintf(w, "%s, %d runs of each in turn, medians (least–greatest); %d processors, %s\n\n", form, r.runs, runtime.NumCPU(), runtime.Version())
	fmt.Fprintf(w, "| what | measured | must be | |\n| --- | --- | --- | --- |\n")
	for _, l := range r.lines {
		mark := "✓"
		if !l.ok {
			mark = "**short**"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", l.what, l.figure, l.must, mark)
	}
	for _, n := range r.notes {
		fmt.Fprintf(w, "\n%s\n", n)
	}
}

// The table stands between these in a page.
const (
	beginMark = "<!-- figures: written by make bench -->"
	endMark   = "<!-- end of figures -->"
)

// writeTo puts the table into a page.
func (r *report) writeTo(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), beginMark)
	_, after, end := strings.Cut(rest, endMark)
	if !ok || !end {
		return fmt.Errorf("%s lacks the marks %q and %q", file, beginMark, endMark)
	}
	var table strings.Builder
	r.print(&table)
	return os.WriteFile(file, []byte(before+beginMark+"\n\n"+table.String()+"\n"+endMark+after), 0o644)
}
