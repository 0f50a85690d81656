package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/journal/sqlite"
)

// What a command does with a journal. A server may be running beside it.
const (
	reader   = sqlite.Reader
	operator = sqlite.Operator
)

// openJournal opens the config's journal.
func (a *app) openJournal(access sqlite.Access) (journal.Journal, error) {
	plan, err := a.plan()
	if err != nil {
		return nil, err
	}
	return daemon.OpenJournal(plan.Config, access)
}

// entryJSON is one event that is dead or waiting.
type entryJSON struct {
	Ref      string        `json:"ref"`
	State    journal.State `json:"state"`
	Target   string        `json:"target"`
	Source   string        `json:"source"`
	ID       string        `json:"id,omitempty"`
	Type     string        `json:"type,omitempty"`
	Table    string        `json:"table,omitempty"`
	Key      string        `json:"key,omitempty"`
	Reason   string        `json:"reason"`
	On       string        `json:"on,omitempty"`
	Since    time.Time     `json:"since"`
	Attempts int           `json:"attempts"`
	Next     *time.Time    `json:"next,omitempty"`
}

func entryOf(e journal.Entry) entryJSON {
	out := entryJSON{
		Ref: e.Ref.String(), State: e.State, Target: e.Consumer, Source: e.Source, ID: e.ID, Type: e.Type,
		Table: e.Table, Key: e.Key, Reason: e.Reason, On: e.On, Since: e.Since.UTC(), Attempts: e.Attempts,
	}
	if !e.Next.IsZero() {
		next := e.Next.UTC()
		out.Next = &next
	}
	return out
}

// choice is how a command line chooses entries.
type choice struct {
	source, table, target string
	all                   bool
	limit                 int
}

func (c *choice) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.source, "source", "", "only events of this `source`")
	cmd.Flags().StringVar(&c.table, "table", "", "only events of this `table`")
	cmd.Flags().StringVar(&c.target, "target", "", "only events for this `target`")
}

// filter makes a filter of the flags and, if there is one, a reference.
func (c *choice) filter(cmd *cobra.Command, state journal.State, refs []string) ([]journal.Filter, error) {
	base := journal.Filter{Consumer: c.target, State: state, Source: c.source, Table: c.table, Limit: c.limit}
	if len(refs) == 0 {
		return []journal.Filter{base}, nil
	}
	var out []journal.Filter
	for _, text := range refs {
		f := base
		var err error
		if f.Position, f.Index, err = parseRef(text); err != nil {
			return nil, usage(cmd, "%v", err)
		}
		out = append(out, f)
	}
	return out, nil
}

// parseRef reads #1042, the events of one delivery, or #1042.3, one of them.
func parseRef(text string) (event.Position, *int, error) {
	whole, part, one := strings.Cut(strings.TrimPrefix(text, "#"), ".")
	p, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || p < 1 {
		return 0, nil, fmt.Errorf("%s is no event: its name is like 1042, or 1042.3", text)
	}
	if !one {
		return event.Position(p), nil, nil
	}
	index, err := strconv.Atoi(part)
	if err != nil || index < 0 {
		return 0, nil, fmt.Errorf("%s is no event: its name is like 1042, or 1042.3", text)
	}
	return event.Position(p), &index, nil
}
