package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/journal/sqlite"
)

// What a command does with a journal. A server may be running beside it.
const (
	reader   = sqlite.Reader
	operator = sqlite.Operator
)

// openJournal opens the config's journal. Nothing else of the config has to be
// right.
func (a *app) openJournal(access sqlite.Access) (*sqlite.Journal, *config.Config, error) {
	cfg, err := a.journalConfig()
	if err != nil {
		return nil, nil, err
	}
	j, err := daemon.OpenJournal(cfg, access)
	return j, cfg, err
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

// unknown refuses names that the config does not have. It is asked where nothing
// matches: the journal may know more names than the config does now.
func (c *choice) unknown(cmd *cobra.Command, cfg *config.Config) error {
	var sources, tables, targets []string
	for _, x := range cfg.Sources {
		sources = append(sources, x.Text)
	}
	for _, x := range cfg.Tables {
		tables = append(tables, x.Text)
	}
	for _, x := range cfg.Targets {
		targets = append(targets, x.Text)
	}
	for _, name := range laneNames(cfg) {
		targets = append(targets, mapping.LanePrefix+name)
	}
	for _, x := range []struct {
		what, name string
		names      []string
	}{{"source", c.source, sources}, {"table", c.table, tables}, {"target", c.target, targets}} {
		if x.name != "" && !slices.Contains(x.names, x.name) {
			return usage(cmd, "neither the config nor the journal knows a %s %s. The config has: %s", x.what, x.name, strings.Join(x.names, ", "))
		}
	}
	return nil
}

// filter makes a filter of the flags.
func (c *choice) filter(state journal.State) journal.Filter {
	return journal.Filter{Consumer: c.target, State: state, Source: c.source, Table: c.table, Limit: c.limit}
}

// of makes a filter of the flags and the name of an event.
func (c *choice) of(state journal.State, ref string) (f journal.Filter, err error) {
	f = c.filter(state)
	f.Position, f.Index, err = parseRef(ref)
	return f, err
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
