package cli

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfold/hookfold/internal/demo"
)

func (a *app) demo() *cobra.Command {
	o := demo.Options{}
	cmd := &cobra.Command{
		Use: "demo", Short: "See it work: three kinds of webhooks, shuffled, doubled, 64 at a time", Args: count(0, 0, "no arguments"),
		Long: "Runs a real server in a temporary folder, sends it webhooks of Calendly, WhatsApp\n" +
			"and a shop over HTTP, signed, shuffled, doubled and 64 at a time, and compares its\n" +
			"rows, and those of a check-then-write handler, with what the events say.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			bar := a.progress("sending", -1)
			o.Progress = func(done, total int) {
				if bar.bar != nil && done == 1 {
					bar.bar.ChangeMax(total)
				}
				bar.set(int64(done))
			}
			o.Report = func(r *demo.Report) error {
				bar.done()
				if a.json {
					return a.printJSON(r)
				}
				a.printDemo(r, o.Keep)
				return nil
			}
			report, err := demo.Run(cmd.Context(), o)
			bar.done()
			if err != nil {
				return err
			}
			if !report.OK {
				return notSo("not every row is right")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "go on serving afterwards, until Ctrl-C")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 1, "`number` that chooses events and their order")
	return cmd
}

func (a *app) printDemo(r *demo.Report, keep bool) {
	s := a.style
	a.printf("\n%s\n", s.bold("hookfold demo"))
	a.wrap("", "", fmt.Sprintf("%s in %s, shuffled, signed, and each sent twice, %d at a time: %s.",
		plural(r.Events, "event"), plural(r.Requests/2, "webhook"), r.Connections, plural(r.Requests, "request")))
	a.wrap("", "2", "naive: look whether the row is there, then insert or update it. It gets the same requests, on the same engine.")
	a.printf("\n")
	g := grid{head: []string{"", "rows>", "Hookfold", "naive"}}
	for _, t := range r.Tables {
		g.add(s.bold(t.Table), thousands(t.Rows), a.score(t.Hookfold), a.score(t.Naive))
	}
	g.add("answers", "", answers(r.Hookfold), answers(r.Naive))
	g.add("time", "", fmt.Sprintf("%.2f s, rows at %.2f s", r.Hookfold.AnsweredSeconds, r.Hookfold.SettledSeconds), fmt.Sprintf("%.2f s", r.Naive.AnsweredSeconds))
	g.print(a.Out, "  ", s)
	for _, text := range slices.Sorted(maps.Keys(r.Naive.Errors)) {
		a.printf("  %s\n", s.dim(fmt.Sprintf("%s × 500: %s", thousands(r.Naive.Errors[text]), text)))
	}
	a.printf("\n%s  %s\n", s.bold("Rows"), s.dim("= is the value of Hookfold's row"))
	for _, t := range r.Tables {
		a.printSample(t)
	}
	a.printf("\n%s\n", s.bold("What came late, and lost as it must"))
	for _, t := range r.Tables {
		a.printLate(t)
	}
	a.printf("\n%s  %s\n  %s\n", s.bold("Where it all is"), s.dim("it stays there: remove the folder when you have seen it"), r.Files.Folder)
	for _, f := range [][2]string{
		{r.Files.Config, "the config"}, {r.Files.Journal, "every request as it came"}, {r.Files.Rows, "the rows"}, {r.Files.Naive, "the rows of naive"},
	} {
		a.printf("    %-14s %s\n", filepath.Base(f[0]), s.dim("# "+f[1]))
	}
	a.printf("\n%s\n", s.bold("Try next"))
	for _, line := range [][2]string{
		{"the statements behind it", "sql booking -c " + r.Files.Config},
		{"the requests, in the order in which they came", "export -c " + r.Files.Config},
		{"a config of your own", "init calendly"},
	} {
		a.printf("  %s\n  %s %s\n", s.dim("# "+line[0]), a.Program, line[1])
	}
	a.printf("\n")
	if keep {
		a.printf("Serving on %s until Ctrl-C. Send it more, from another terminal:\n  %s send calendly invitee.canceled -c %s --to %s\n", r.Receive, a.Program, r.Files.Config, r.Receive)
	}
}

func (a *app) score(x demo.Score) string {
	parts := []string{}
	for _, p := range []struct {
		n    int
		what string
	}{{x.Wrong - x.Doubled, " wrong"}, {x.Doubled, " twice"}, {x.Missing, " missing"}, {x.Extra, " too many"}} {
		if p.n > 0 {
			parts = append(parts, thousands(p.n)+p.what)
		}
	}
	right := thousands(x.Right) + " right"
	if len(parts) == 0 {
		return a.style.good(right)
	}
	return right + ", " + a.style.bad(strings.Join(parts, ", "))
}

func answers(x demo.Side) string {
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(x.Answers)) {
		parts = append(parts, fmt.Sprintf("%s × %d", thousands(x.Answers[status]), status))
	}
	return strings.Join(parts, ", ")
}

// printSample prints rows of both, one below the other. Of a wrong row only the
// wrong values are shown.
func (a *app) printSample(t demo.Table) {
	a.printf(" %s\n", a.style.bold(t.Table))
	g := grid{head: append([]string{""}, t.Columns...)}
	for _, x := range t.Sample {
		cells := []string{"Hookfold"}
		for _, k := range x.Key {
			cells = append(cells, short(k))
		}
		for _, v := range x.Hookfold {
			cells = append(cells, shown(v))
		}
		g.add(cells...)
		for _, n := range x.Naive {
			cells = []string{a.style.bad("naive")}
			if x.Wrong == "" {
				cells = []string{"naive"}
			}
			for _, k := range x.Key {
				cells = append(cells, short(k))
			}
			for i, v := range n {
				switch {
				case i < len(x.Hookfold) && shown(v) == shown(x.Hookfold[i]):
					cells = append(cells, a.style.dim("="))
				default:
					cells = append(cells, a.style.bad(shown(v)))
				}
			}
			g.add(cells...)
		}
		if len(x.Naive) == 0 {
			g.add(a.style.bad("naive"), a.style.bad("no row"))
		}
	}
	g.print(a.Out, " ", a.style)
}

func (a *app) printLate(t demo.Table) {
	a.printf("  %-16s %s\n", t.Table, fmt.Sprintf("%s of %s", thousands(t.Late.Lost), plural(t.Late.Changes, "change")))
	for _, x := range t.Late.Examples {
		a.wrap("    ", "2", fmt.Sprintf("%s says %s=%s of %s, but %s", x.Event, x.Column, short(x.Value), shortKey(x.Key), shortWords(x.Reason)))
	}
}

func shown(v *string) string {
	if v == nil {
		return "null"
	}
	return short(*v)
}

// short makes a value fit a column: times to the second, long texts by their
// end, which is what tells them apart.
func short(text string) string {
	if t, err := time.Parse("2006-01-02T15:04:05.000000Z", text); err == nil {
		return t.Format("Jan 2 15:04:05")
	}
	if r := []rune(text); len(r) > 24 {
		return "…" + string(r[len(r)-8:])
	}
	return text
}

func shortKey(key string) string {
	name, value, ok := strings.Cut(key, "=")
	if !ok {
		return key
	}
	return name + "=" + short(value)
}

// shortWords shortens the times and long words of a sentence.
func shortWords(text string) string {
	words := strings.Fields(text)
	for i, w := range words {
		at, rest, more := strings.Cut(w, "/")
		if t, err := time.Parse(time.RFC3339Nano, at); err == nil {
			words[i] = t.Format("Jan 2 15:04:05.999")
			if more {
				words[i] += "/" + rest
			}
		} else if end := strings.TrimRight(w, ","); len(end) > 30 {
			words[i] = short(end) + w[len(end):]
		}
	}
	return strings.Join(words, " ")
}
