package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hookfold/hookfold/internal/explain"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
)

// shownValue is how many characters of a value, or of a word, are printed.
const shownValue = 48

// brief cuts the front off a long value: addresses and ids differ at the end.
func brief(v merge.Value) string { return tail(v.String()) }

func tail(s string) string {
	n := utf8.RuneCountInString(s)
	if n <= shownValue {
		return s
	}
	return "…" + string([]rune(s)[n-shownValue+1:])
}

// briefWords is brief for the words of a text.
func briefWords(text string) string {
	words := strings.Fields(text)
	for i := range words {
		words[i] = tail(words[i])
	}
	return strings.Join(words, " ")
}

// printStory prints the story of a row for a person.
func (a *app) printStory(s *explain.Story, limit int) {
	t := s.Table
	a.printf("%s\n", a.style.bold(fmt.Sprintf("%s %s", t.Config.Text, t.Show(s.Key))))
	a.printf("%s\n", a.style.dim(fmt.Sprintf("table %s, target %s", t.Name, t.Target)))
	if s.Asked != s.Key {
		a.printf("%s is an alias of it.\n", t.Show(s.Asked))
	}
	if len(s.Identities) > 1 {
		a.printf("Its chain is known by %s.\n", strings.Join(s.Identities, ", "))
	}
	if n := len(s.Chapters) - limit; n > 0 {
		a.printf("\n%s are left out: say --limit.\n", plural(n, "earlier event"))
	}
	for _, c := range s.Chapters[max(0, len(s.Chapters)-limit):] {
		a.printChapter(s, c)
	}
	if len(s.Columns) > 0 {
		a.printRow(s)
	}
	a.printf("\n")
	a.wrap("", a.verdictColour(s), verdict(s))
	if s.First > 1 {
		a.wrap("", "", fmt.Sprintf("The journal begins with #%d, received %s; what came before is not known any more.", s.First, s.Oldest.UTC().Format(time.DateTime)))
	}
}

func (a *app) printChapter(s *explain.Story, c explain.Chapter) {
	head := fmt.Sprintf("%s  %s  %s", c.Ref, c.Received.UTC().Format(time.DateTime), c.Source)
	for _, x := range []string{c.Type, c.ID} {
		if x != "" {
			head += " " + x
		}
	}
	a.printf("\n%s  %s\n", head, a.style.dim(c.Mapping))
	if c.State != journal.Settled {
		a.wrap("    ", "33", fmt.Sprintf("%s, so nothing of it is in the row: %s", c.State, c.Reason))
		return
	}
	step := c.Step
	if step.Key != s.Key && !step.Change.Replaces {
		a.printf("    it is about %s, which was not known to be this row yet\n", s.Table.Show(step.Key))
	}
	says := map[string]string{
		"delete": "deletes the row", "list": "says that its list is complete",
		"parent": "makes sure that the row is there, for another row that names it",
	}[does(c)]
	if w := step.Whole; w != nil {
		a.wrap("    ", fateColours[w.Fate], strings.TrimSpace(fateMarks[w.Fate]+" "+says))
		if w.Reason != "" {
			a.wrap("      ", "", fateText(*w))
		}
	} else if says != "" {
		a.wrap("    ", "", says)
	}
	for _, l := range step.Change.Links {
		a.printf("    links %s → %s\n", l.Old, l.New)
	}
	for i, f := range step.Columns {
		a.wrap("    ", fateColours[f.Fate], fmt.Sprintf("%s %s = %s", fateMarks[f.Fate], f.Column, brief(f.Value)))
		if last := i+1 == len(step.Columns) || step.Columns[i+1].Outcome != f.Outcome; last && f.Reason != "" {
			a.wrap("      ", "", fateText(f.Outcome))
		}
	}
	if slices.Contains(step.Gone, s.Key) {
		a.printf("    the row is gone\n")
	}
}

var (
	fateMarks   = map[merge.Fate]string{merge.Won: "✓", merge.Same: "=", merge.Lost: "✗", merge.Hidden: "✗"}
	fateColours = map[merge.Fate]string{merge.Won: "32", merge.Same: "2"}
)

// fateText tells a fate in words.
func fateText(o merge.Outcome) string {
	switch o.Fate {
	case merge.Won:
		return "won"
	case merge.Same:
		return "as it was"
	}
	text := fmt.Sprintf("%s: %s", o.Fate, briefWords(o.Reason))
	if o.Against != nil {
		text += fmt.Sprintf(" (%s)", o.Against.From)
	}
	return text
}

func (a *app) printRow(s *explain.Story) {
	g := &grid{head: []string{"COLUMN", "EVENTS MAKE", "DATABASE HAS", "", "FROM"}}
	if !s.Looked {
		g.head[2] = ""
	}
	for _, c := range s.Columns {
		makes, has, mark, from := brief(c.Folded), brief(c.Live), "", ""
		switch {
		case s.Folded == nil:
			makes = "no row"
		case !c.Set:
			makes = "nothing"
		}
		switch {
		case !s.Looked:
			has = ""
		case s.Live == nil:
			has = "no row"
		}
		if c.Differs || s.Looked && (s.Live == nil) != (s.Folded == nil) {
			mark = a.style.bad("≠")
		}
		if c.From != nil {
			from = c.From.String()
		}
		g.add(c.Name, makes, has, mark, from)
	}
	a.printf("\n")
	g.print(a.Out, "", a.style)
}

func (a *app) verdictColour(s *explain.Story) string {
	if s.Drift() {
		return "31"
	}
	return ""
}

// verdict sums a story up.
func verdict(s *explain.Story) string {
	settled := 0
	for _, c := range s.Chapters {
		if c.State == journal.Settled {
			settled++
		}
	}
	differ := 0
	for _, c := range s.Columns {
		if c.Differs {
			differ++
		}
	}
	events, makes := plural(settled, "event"), "make"
	if settled == 1 {
		makes = "makes"
	}
	switch {
	case len(s.Chapters) == 0 && s.Live == nil:
		return "No event in the journal is about this row, and there is none in the database."
	case !s.Looked && s.Folded == nil:
		return fmt.Sprintf("%s about this row make no row.", events)
	case !s.Looked:
		return fmt.Sprintf("%s make this row. The database was not asked for it.", events)
	case len(s.Chapters) == 0:
		return "No event in the journal is about this row: somebody else inserted it, or its events are no longer kept."
	case s.Folded == nil && s.Live == nil:
		return fmt.Sprintf("There is no row, as its %s say.", events)
	case s.Folded == nil:
		return fmt.Sprintf("The database has this row, though its %s say that there is none.", events)
	case s.Live == nil:
		return fmt.Sprintf("The database lacks this row, which its %s make. Somebody has deleted it, or it lags behind: hookfold verify %s --repair brings it back.", events, s.Table.Config.Text)
	case differ > 0:
		return fmt.Sprintf("The row differs in %s from what its %s %s: somebody else has changed it, or it lags behind. hookfold verify %s looks at the whole table.", plural(differ, "column"), events, makes, s.Table.Config.Text)
	}
	return fmt.Sprintf("The row is what its %s %s.", events, makes)
}
