package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/lane"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/journal/sqlite"
)

func (a *app) lane() *cobra.Command {
	cmd := &cobra.Command{
		Use: "lane", Short: "Lanes whose keys stand still: list, retry, park, skip, pause, resume", Example: "hookfold lane list",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, "say what to do: list, retry, park, skip, pause or resume")
			}
			return a.noSuchCommand(cmd, args)
		},
	}
	cmd.AddCommand(
		a.laneList(),
		a.laneChange("retry", "Try the first event of a key again, now", "made due", (*sqlite.Journal).Retry),
		a.laneChange("park", "Set the first event of a key aside as dead; the key goes on", "set aside", (*sqlite.Journal).Park),
		a.laneChange("skip", "Forget the first event of a key; the key goes on", "skipped", (*sqlite.Journal).Drop),
		a.lanePause(), a.laneResume(),
	)
	return cmd
}

// lanesJSON is what lane list prints under --json.
type lanesJSON struct {
	Lanes []laneJSON `json:"lanes"`
}

// laneJSON is a lane. Keys stand still, Parked events were set aside; More says
// that there are more keys than the limit.
type laneJSON struct {
	Lane   string        `json:"lane"`
	Paused string        `json:"paused,omitempty"`
	Keys   []laneKeyJSON `json:"keys"`
	More   bool          `json:"more"`
	Parked int           `json:"parked"`
}

// laneKeyJSON is a key that stands still, its first event, and how many events
// wait behind it.
type laneKeyJSON struct {
	Key    string    `json:"key"`
	Behind int       `json:"behind"`
	First  entryJSON `json:"first"`

	entry journal.Entry
}

func (a *app) laneList() *cobra.Command {
	limit := 100
	cmd := &cobra.Command{
		Use: "list [LANE]", Short: "List keys that stand still, with their first event", Args: count(0, 1, "at most one lane"),
		Example: "hookfold lane list billing",
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usage(cmd, "--limit is %d; it is at least 1", limit)
			}
			j, cfg, err := a.openJournal(reader)
			if err != nil {
				return err
			}
			defer j.Close()
			names := laneNames(cfg)
			if len(args) == 1 {
				if err := knownLane(cmd, cfg, args[0]); err != nil {
					return err
				}
				names = args
			}
			marks, err := j.Marks(cmd.Context())
			if err != nil {
				return err
			}
			out := lanesJSON{Lanes: []laneJSON{}}
			for _, name := range names {
				x, err := stillKeys(cmd.Context(), j, name, limit)
				if err != nil {
					return err
				}
				x.Paused = marks[mapping.LanePrefix+name+lane.PausedMark]
				out.Lanes = append(out.Lanes, x)
			}
			if a.json {
				return a.printJSON(out)
			}
			a.printLanes(out)
			return nil
		},
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "list at most `n` keys of each lane")
	return cmd
}

func laneNames(cfg *config.Config) (names []string) {
	for _, l := range cfg.Lanes {
		names = append(names, l.Text)
	}
	return names
}

func knownLane(cmd *cobra.Command, cfg *config.Config, name string) error {
	names := laneNames(cfg)
	if slices.Contains(names, name) {
		return nil
	}
	if len(names) == 0 {
		return usage(cmd, "the config has no lanes")
	}
	return usage(cmd, "the config has no lane %s. It has: %s", name, strings.Join(names, ", "))
}

// holds tells whether an entry of a lane holds its key, or waits in its line:
// one that was set aside does not, nor one whose key could not be told.
func holds(e journal.Entry) bool {
	return e.Key != "" && (e.State == journal.Waiting || e.On != "")
}

// stillKeys finds the first event of each key that has entries, and counts those
// behind it.
func stillKeys(ctx context.Context, j *sqlite.Journal, name string, limit int) (laneJSON, error) {
	out := laneJSON{Lane: name, Keys: []laneKeyJSON{}}
	at := map[string]int{}
	filter := journal.Filter{Consumer: mapping.LanePrefix + name, Limit: 1000}
	for {
		entries, err := j.Entries(ctx, filter)
		if err != nil {
			return out, err
		}
		for _, e := range entries {
			i, known := at[e.Key]
			switch {
			case !holds(e):
				out.Parked++
			case known && i >= 0:
				out.Keys[i].Behind++
			case known:
			case len(out.Keys) == limit:
				out.More, at[e.Key] = true, -1
			default:
				at[e.Key] = len(out.Keys)
				out.Keys = append(out.Keys, laneKeyJSON{Key: e.Key, First: entryOf(e), entry: e})
			}
		}
		if len(entries) < filter.Limit {
			return out, nil
		}
		filter.After = entries[len(entries)-1].Ref
	}
}

func (a *app) printLanes(out lanesJSON) {
	if len(out.Lanes) == 0 {
		a.printf("The config has no lanes.\n")
	}
	for _, l := range out.Lanes {
		line := "no key stands still"
		if n := len(l.Keys); n > 0 {
			if line = plural(n, "key") + " stand still"; n == 1 {
				line = "1 key stands still"
			}
			if l.More {
				line = "more than " + line
			}
		}
		if l.Parked > 0 {
			line += fmt.Sprintf("; %s set aside (hookfold dead list --target %s%s)", plural(l.Parked, "event"), mapping.LanePrefix, l.Lane)
		}
		a.printf("%s: %s\n", a.style.bold("lane "+l.Lane), line)
		if l.Paused != "" {
			a.printf("  paused: %s. To go on: hookfold lane resume %s\n", l.Paused, l.Lane)
		}
		for _, k := range l.Keys {
			a.printf("  %s\n    %s\n", a.style.bold(k.Key), pipeline.Line(k.entry, time.Now()))
			about := fmt.Sprintf("tried %s, %s behind it", plural(k.entry.Attempts, "time"), plural(k.Behind, "event"))
			switch {
			case k.entry.State == journal.Dead:
				about += fmt.Sprintf("; a person decides: hookfold lane retry|park|skip %s %s", l.Lane, k.Key)
			case !k.entry.Next.IsZero():
				about += ", next at " + k.entry.Next.UTC().Format(time.DateTime)
			}
			a.printf("    %s\n", a.style.dim(about))
		}
		if l.More {
			a.printf("  There are more: say --limit.\n")
		}
	}
}

// laneChange is retry, park or skip.
func (a *app) laneChange(name, short, done string, do func(*sqlite.Journal, context.Context, journal.Filter) (int, error)) *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use: name + " LANE [KEY...]", Short: short, Args: count(1, 1<<20, "the name of a lane, and keys"),
		Example: fmt.Sprintf("hookfold lane %s billing cus_1", name),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !all {
				return usage(cmd, "say which keys, or --all")
			}
			if len(args) > 1 && all {
				return usage(cmd, "say keys or --all, not both")
			}
			j, cfg, err := a.openJournal(operator)
			if err != nil {
				return err
			}
			defer j.Close()
			if err := knownLane(cmd, cfg, args[0]); err != nil {
				return err
			}
			firsts, err := firstsOf(cmd.Context(), j, args[0], args[1:])
			if err != nil {
				return err
			}
			out := countJSON{}
			for _, e := range firsts {
				n, err := do(j, cmd.Context(), journal.Filter{Consumer: e.Consumer, Position: e.Ref.Position, Index: &e.Ref.Index})
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
				a.printf("%s %s. A running server follows within a second.\n", plural(out.Events, "event"), done)
			}
			if !out.OK {
				if all {
					return notSo("no key of lane %s stands still", args[0])
				}
				return notSo("no event of lane %s stands still under %s", args[0], strings.Join(args[1:], ", "))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every key that stands still")
	return cmd
}

// firstsOf gives the first entry of each of the keys; of all for none.
func firstsOf(ctx context.Context, j *sqlite.Journal, name string, keys []string) ([]journal.Entry, error) {
	var out []journal.Entry
	if len(keys) == 0 {
		x, err := stillKeys(ctx, j, name, 1<<30)
		for _, k := range x.Keys {
			out = append(out, k.entry)
		}
		return out, err
	}
	for _, key := range keys {
		filter := journal.Filter{Consumer: mapping.LanePrefix + name, Key: key, Limit: 100}
		for {
			entries, err := j.Entries(ctx, filter)
			if err != nil {
				return nil, err
			}
			if i := slices.IndexFunc(entries, holds); i >= 0 {
				out = append(out, entries[i])
				break
			}
			if len(entries) < filter.Limit {
				break
			}
			filter.After = entries[len(entries)-1].Ref
		}
	}
	return out, nil
}

// laneOKJSON is what pause and resume print under --json.
type laneOKJSON struct {
	OK   bool   `json:"ok"`
	Lane string `json:"lane"`
}

func (a *app) lanePause() *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use: "pause LANE", Short: "Let a lane begin nothing until it is resumed", Args: count(1, 1, "the name of a lane"),
		Example: "hookfold lane pause billing --reason 'moving the service'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				reason = "by hand at " + time.Now().UTC().Format(time.DateTime)
			}
			return a.mark(cmd, args[0], reason, "The lane %s is paused: its events are kept.\n")
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for whoever looks")
	return cmd
}

func (a *app) laneResume() *cobra.Command {
	return &cobra.Command{
		Use: "resume LANE", Short: "Let a paused lane go on", Args: count(1, 1, "the name of a lane"),
		Example: "hookfold lane resume billing",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.mark(cmd, args[0], "", "The lane %s goes on.\n")
		},
	}
}

// mark sets or clears why a lane is paused.
func (a *app) mark(cmd *cobra.Command, name, reason, said string) error {
	j, cfg, err := a.openJournal(operator)
	if err != nil {
		return err
	}
	defer j.Close()
	if err := knownLane(cmd, cfg, name); err != nil {
		return err
	}
	if err := j.SetMark(cmd.Context(), mapping.LanePrefix+name+lane.PausedMark, reason); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(laneOKJSON{OK: true, Lane: name})
	}
	a.printf(said, name)
	return nil
}
