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
	"github.com/hookfold/hookfold/journal/sqlite"
)

func (a *app) dead() *cobra.Command {
	return a.unsettled(journal.Dead, "Events that cannot land without a person: list, show, retry, drop")
}

func (a *app) waiting() *cobra.Command {
	return a.unsettled(journal.Waiting, "Events that need something else first: list, show, retry, drop")
}

// unsettled is the commands about the events in one of two states. Both states
// have the same ones.
func (a *app) unsettled(state journal.State, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use: string(state), Short: short, Example: fmt.Sprintf("hookfold %s list", state),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, "say what to do: list, show, retry or drop")
			}
			return a.noSuchCommand(cmd, args)
		},
	}
	cmd.AddCommand(
		a.list(state), a.show(state),
		a.change(state, "retry", "Try %s events again, now", "made due", (*sqlite.Journal).Retry),
		a.change(state, "drop", "Forget %s events: they need not land", "dropped", (*sqlite.Journal).Drop),
	)
	return cmd
}

// listJSON is what list prints under --json.
type listJSON struct {
	Entries []entryJSON `json:"entries"`
	// More says that there are more than the limit.
	More bool `json:"more"`
}

func (a *app) list(state journal.State) *cobra.Command {
	var c choice
	cmd := &cobra.Command{
		Use: "list", Short: fmt.Sprintf("List %s events, oldest first", state), Args: count(0, 0, "no arguments"),
		Example: fmt.Sprintf("hookfold %s list --limit 1000", state),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.limit < 1 {
				return usage(cmd, "--limit is %d; it is at least 1", c.limit)
			}
			j, cfg, err := a.openJournal(reader)
			if err != nil {
				return err
			}
			defer j.Close()
			filter := c.filter(state)
			filter.Limit++
			entries, err := j.Entries(cmd.Context(), filter)
			if err == nil && len(entries) == 0 {
				err = c.unknown(cmd, cfg)
			}
			if err != nil {
				return err
			}
			out := listJSON{Entries: []entryJSON{}, More: len(entries) > c.limit}
			for _, e := range entries[:min(c.limit, len(entries))] {
				out.Entries = append(out.Entries, entryOf(e))
			}
			if a.json {
				return a.printJSON(out)
			}
			a.printEntries(entries[:len(out.Entries)])
			if len(entries) == 0 {
				a.printf("No event is %s.\n", state)
				if state == journal.Waiting {
					a.printf("%s\n", a.style.dim("What a database that is down has yet to take is pending: the server's /readyz counts it."))
				}
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

// showJSON is what show prints under --json.
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

func (a *app) show(state journal.State) *cobra.Command {
	return &cobra.Command{
		Use: "show EVENT", Short: "Show an event with its delivery", Args: count(1, 1, "the name of an event, like 1042"),
		Example: fmt.Sprintf("hookfold %s show 1042", state),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := (&choice{}).of("", args[0])
			if err != nil {
				return usage(cmd, "%v", err)
			}
			j, _, err := a.openJournal(reader)
			if err != nil {
				return err
			}
			defer j.Close()
			entries, err := j.Entries(cmd.Context(), filter)
			if err != nil {
				return err
			}
			if len(entries) == 0 {
				return notSo("no event %s is dead or waiting", args[0])
			}
			d, err := j.Get(cmd.Context(), filter.Position)
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

// countJSON is what retry and drop print under --json.
type countJSON struct {
	OK     bool `json:"ok"`
	Events int  `json:"events"`
}

// change is retry or drop.
func (a *app) change(state journal.State, name, short, done string, do func(*sqlite.Journal, context.Context, journal.Filter) (int, error)) *cobra.Command {
	var c choice
	line := fmt.Sprintf("hookfold %s %s", state, name)
	cmd := &cobra.Command{
		Use: name + " [EVENT...]", Short: fmt.Sprintf(short, state),
		Example: fmt.Sprintf("%s 1042\n%s --table booking\n%s --all", line, line, line),
		RunE: func(cmd *cobra.Command, refs []string) error {
			if len(refs) == 0 && !c.all && c.source == "" && c.table == "" && c.target == "" {
				return usage(cmd, "say which events: their names, --source, --table, --target, or --all")
			}
			filters := []journal.Filter{c.filter(state)}
			if len(refs) > 0 {
				filters = nil
			}
			for _, ref := range refs {
				f, err := c.of(state, ref)
				if err != nil {
					return usage(cmd, "%v", err)
				}
				filters = append(filters, f)
			}
			j, cfg, err := a.openJournal(operator)
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
			if out.OK = out.Events > 0; !out.OK {
				if err := c.unknown(cmd, cfg); err != nil {
					return err
				}
			}
			switch {
			case a.json:
				if err := a.printJSON(out); err != nil {
					return err
				}
			case out.OK:
				a.printf("%s %s.\n", plural(out.Events, "event"), done)
			}
			if !out.OK {
				return notSo("no %s event matches%s", state, a.elsewhere(cmd.Context(), j, state, name, filters))
			}
			return nil
		},
	}
	c.flags(cmd)
	cmd.Flags().BoolVar(&c.all, "all", false, fmt.Sprintf("all %s events", state))
	return cmd
}

// elsewhere says which command would have found the events: those that wait are
// not dead, and the reverse.
func (a *app) elsewhere(ctx context.Context, j journal.Journal, state journal.State, name string, filters []journal.Filter) string {
	other := journal.Dead
	if state == journal.Dead {
		other = journal.Waiting
	}
	n := 0
	for _, f := range filters {
		f.State = other
		entries, err := j.Entries(ctx, f)
		if err != nil {
			return "" // the answer is no in either case
		}
		n += len(entries)
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %s would: %s %s %s", plural(n, string(other)+" event"), a.Program, other, name)
}
