package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal"
)

func (a *app) dead() *cobra.Command {
	cmd := &cobra.Command{
		Use: "dead", Short: "Events that cannot land without a person: list, show, retry, drop",
		Example: "hookfold dead list",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, "say what to do: list, show, retry or drop")
			}
			return a.noSuchCommand(cmd, args)
		},
	}
	cmd.AddCommand(
		a.list(journal.Dead, "dead"), a.show(),
		a.change("retry", "Try dead events again, now", "made due", journal.Journal.Retry),
		a.change("drop", "Forget dead events: they need not land", "dropped", journal.Journal.Drop),
	)
	return cmd
}

func (a *app) waiting() *cobra.Command {
	cmd := &cobra.Command{
		Use: "waiting", Short: "Events that need something else first: list",
		Example: "hookfold waiting list",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, "say what to do: list")
			}
			return a.noSuchCommand(cmd, args)
		},
	}
	cmd.AddCommand(a.list(journal.Waiting, "waiting"))
	return cmd
}

// listJSON is what dead list and waiting list print under --json.
type listJSON struct {
	Entries []entryJSON `json:"entries"`
	// More says that there are more than the limit.
	More bool `json:"more"`
}

func (a *app) list(state journal.State, word string) *cobra.Command {
	var c choice
	cmd := &cobra.Command{
		Use: "list", Short: "List " + word + " events, oldest first", Args: count(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			j, err := a.openJournal(reader)
			if err != nil {
				return err
			}
			defer j.Close()
			limit := c.limit
			filters, _ := (&choice{source: c.source, table: c.table, target: c.target, limit: limit + 1}).filter(cmd, state, nil)
			entries, err := j.Entries(cmd.Context(), filters[0])
			if err != nil {
				return err
			}
			out := listJSON{Entries: []entryJSON{}, More: len(entries) > limit}
			for _, e := range entries[:min(limit, len(entries))] {
				out.Entries = append(out.Entries, entryOf(e))
			}
			if a.json {
				return a.printJSON(out)
			}
			a.printEntries(entries[:len(out.Entries)])
			if len(entries) == 0 {
				a.printf("No event is %s.\n", word)
			}
			if out.More {
				a.printf("There are more: say --limit.\n")
			}
			return nil
		},
	}
	c.flags(cmd)
	cmd.Flags().IntVar(&c.limit, "limit", 100, "list at most `n` events")
	return cmd
}

// printEntries prints a line for each entry, and one below it with its age.
func (a *app) printEntries(entries []journal.Entry) {
	for _, e := range entries {
		a.printf("%s\n", pipeline.Line(e, time.Now()))
		line := fmt.Sprintf("since %s, tried %s", e.Since.UTC().Format(time.DateTime), plural(e.Attempts, "time"))
		if !e.Next.IsZero() {
			line += ", next at " + e.Next.UTC().Format(time.DateTime)
		}
		a.printf("      %s\n", a.style.dim(line))
	}
}

// showJSON is what dead show prints under --json.
type showJSON struct {
	Entries  []entryJSON  `json:"entries"`
	Delivery deliveryJSON `json:"delivery"`
}

type deliveryJSON struct {
	Position int64               `json:"position"`
	Source   string              `json:"source"`
	Path     string              `json:"path,omitempty"`
	Query    string              `json:"query,omitempty"`
	Received time.Time           `json:"received"`
	Headers  map[string][]string `json:"headers"`
	// Body is the body as text. It may be no JSON.
	Body string `json:"body"`
}

func (a *app) show() *cobra.Command {
	return &cobra.Command{
		Use: "show EVENT", Short: "Show a dead or waiting event with its delivery", Args: count(1, 1, "the name of an event, like 1042"),
		Example: "hookfold dead show 1042",
		RunE: func(cmd *cobra.Command, args []string) error {
			filters, err := (&choice{}).filter(cmd, "", args)
			if err != nil {
				return err
			}
			j, err := a.openJournal(reader)
			if err != nil {
				return err
			}
			defer j.Close()
			entries, err := j.Entries(cmd.Context(), filters[0])
			if err != nil {
				return err
			}
			if len(entries) == 0 {
				return notSo("no event %s is dead or waiting", args[0])
			}
			d, err := j.Get(cmd.Context(), filters[0].Position)
			if err != nil {
				return err
			}
			out := showJSON{Delivery: deliveryJSON{
				Position: int64(d.Position), Source: d.Source, Path: d.Path, Query: d.Query,
				Received: d.Received.UTC(), Headers: d.Header, Body: string(d.Body),
			}}
			for _, e := range entries {
				out.Entries = append(out.Entries, entryOf(e))
			}
			if a.json {
				return a.printJSON(out)
			}
			a.printEntries(entries)
			a.printDelivery(out.Delivery)
			return nil
		},
	}
}

func (a *app) printDelivery(d deliveryJSON) {
	a.printf("\n%s\n", a.style.bold(fmt.Sprintf("delivery %s to %s%s, received %s",
		event.Ref{Position: event.Position(d.Position)}, d.Source, d.Path, d.Received.Format(time.RFC3339Nano))))
	for _, name := range slices.Sorted(maps.Keys(d.Headers)) {
		a.printf("%s %s\n", a.style.dim(name+":"), strings.Join(d.Headers[name], ", "))
	}
	a.printf("\n%s\n", strings.TrimRight(d.Body, "\n"))
}

// countJSON is what dead retry and dead drop print under --json.
type countJSON struct {
	OK     bool `json:"ok"`
	Events int  `json:"events"`
}

// change is dead retry or dead drop.
func (a *app) change(name, short, done string, do func(journal.Journal, context.Context, journal.Filter) (int, error)) *cobra.Command {
	var c choice
	cmd := &cobra.Command{
		Use: name + " [EVENT...]", Short: short,
		Example: fmt.Sprintf("hookfold dead %s 1042\nhookfold dead %s --table booking\nhookfold dead %s --all", name, name, name),
		RunE: func(cmd *cobra.Command, refs []string) error {
			if len(refs) == 0 && !c.all && c.source == "" && c.table == "" && c.target == "" {
				return usage(cmd, "say which events: their names, --source, --table, --target, or --all")
			}
			filters, err := c.filter(cmd, journal.Dead, refs)
			if err != nil {
				return err
			}
			j, err := a.openJournal(operator)
			if err != nil {
				return err
			}
			defer j.Close()
			out := countJSON{}
			for _, f := range filters {
				n, err := do(j, cmd.Context(), f)
				if err != nil {
					return err
				}
				out.Events += n
			}
			out.OK = out.Events > 0
			switch {
			case a.json:
				if err := a.printJSON(out); err != nil {
					return err
				}
			case out.OK:
				a.printf("%s %s.\n", plural(out.Events, "event"), done)
			}
			if !out.OK {
				return notSo("no dead event matches")
			}
			return nil
		},
	}
	c.flags(cmd)
	cmd.Flags().BoolVar(&c.all, "all", false, "all dead events")
	return cmd
}
