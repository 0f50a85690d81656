package prove

import (
	"fmt"
	"strings"
	"time"
)

// How much of a counterexample that could not be made smaller is told.
const (
	shownDifferences = 8
	shownSteps       = 40
)

// Story tells a person what a counterexample is.
func Story(x *Counterexample) string {
	var b strings.Builder
	for i, d := range x.Differences {
		if i == shownDifferences {
			fmt.Fprintf(&b, "and %d more differences\n", len(x.Differences)-i)
			break
		}
		fmt.Fprintln(&b, d)
	}
	last := len(x.Steps) - 1
	single, cut := last > 0 && x.Steps[last].Batch == 1, last > 0 && x.Steps[last].Batch > 1 && x.Steps[last].Batch <= last
	switch {
	case x.Writers > 1:
		fmt.Fprintf(&b, "when these arrive at %d writers at once:\n", x.Writers)
	case x.Crash:
		b.WriteString("when these arrive in this order, and the writer of each batch crashes between the database and the journal:\n")
	case single:
		b.WriteString("when these arrive in one batch:\n")
	case last == 0:
		b.WriteString("when this arrives:\n")
	default:
		b.WriteString("when these arrive in this order:\n")
	}
	for i, s := range x.Steps {
		if i == shownSteps {
			fmt.Fprintf(&b, "  and %d more\n", len(x.Steps)-i)
			break
		}
		batch := ""
		if cut && x.Writers == 1 {
			batch = fmt.Sprintf("batch %d  ", s.Batch)
		}
		again := ""
		if s.Again {
			again = ", again"
		}
		fmt.Fprintf(&b, "  %s%s #%d%s\n", batch, s.Source, s.Delivery, again)
		for _, e := range s.Events {
			name := strings.TrimSpace(e.ID + " " + e.Type)
			if name == "" {
				name = "event"
			}
			if !e.Time.IsZero() {
				name += " at " + e.Time.UTC().Format(time.RFC3339Nano)
			}
			fmt.Fprintf(&b, "      %s\n", name)
			for _, c := range e.Changes {
				fmt.Fprintf(&b, "          %s\n", c)
			}
		}
	}
	if !x.Shrunk {
		b.WriteString("It did not happen again when it was tried once more, so it depends on chance: which writer came first.\n")
	}
	return b.String()
}
