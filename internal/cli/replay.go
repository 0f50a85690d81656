package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/journal"
)

// replayJSON is what replay prints under --json.
type replayJSON struct {
	OK         bool    `json:"ok"`
	Deliveries int64   `json:"deliveries"`
	Events     int64   `json:"events"`
	Settled    int64   `json:"settled"`
	Skipped    int64   `json:"skipped"`
	Waiting    int64   `json:"waiting"`
	Dead       int64   `json:"dead"`
	Written    int64   `json:"rows_written"`
	Unchanged  int64   `json:"rows_unchanged"`
	Seconds    float64 `json:"seconds"`
	// ThroughServer says that a server which runs on the journal took the file.
	ThroughServer bool        `json:"through_server"`
	Entries       []entryJSON `json:"entries"`
}

func (a *app) replay() *cobra.Command {
	level := "error"
	cmd := &cobra.Command{
		Use: "replay FILE.ndjson", Short: "Feed recorded deliveries through the same path, and wait until all have landed",
		Long: "Appends each line's delivery to the journal and waits until its events are settled,\n" +
			"waiting or dead. It may be repeated: what is older than a row cannot change it. Where a\n" +
			"server runs on the journal, it takes the lines in on its admin address and goes on\n" +
			"receiving meanwhile. - is the standard input.",
		Args: count(1, 1, "a file"), Example: "hookfold replay deliveries.ndjson",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			log, err := a.logger(level)
			if err != nil {
				return usage(cmd, "%v", err)
			}
			plan, err := a.plan()
			if err != nil {
				return err
			}
			in := a.In
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			d, err := daemon.Open(cmd.Context(), plan.Config, daemon.Options{Log: log, NoListen: true})
			if errors.Is(err, journal.ErrInUse) {
				return a.replayThrough(cmd.Context(), plan, in)
			}
			if err != nil {
				return err
			}
			defer func() {
				stop, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), stopTimeout)
				defer cancel()
				err = errors.Join(err, d.Stop(stop))
			}()
			if err := d.Start(cmd.Context()); err != nil {
				return err
			}
			return a.replayInto(cmd.Context(), d, in)
		},
	}
	cmd.Flags().StringVar(&level, "log", level, "log from this `level` on: debug, info, warn or error")
	return cmd
}

func (a *app) replayInto(ctx context.Context, d *daemon.Daemon, in io.Reader) error {
	begun := time.Now()
	bar := a.progress("replay", -1)
	defer bar.done()
	before, err := d.Journal().Stats(ctx)
	if err != nil {
		return err
	}
	n, line, readErr := feed(ctx, d.Plan(), in, bar, d.AppendAll)
	summary, err := d.Drain(ctx, a.tellDown())
	if ctx.Err() != nil {
		bar.done()
		return notSo("stopped at line %d, with %s in the journal. What has not landed yet lands at the next serve or replay; the file may be replayed again from its beginning", line, deliveries(n))
	}
	if err != nil {
		return fmt.Errorf("%w. What is in the journal lands at the next serve or replay", err)
	}
	out := replayJSON{Deliveries: n, Seconds: time.Since(begun).Seconds(), Entries: []entryJSON{}}
	for _, s := range summary.Targets {
		out.Events += s.Events
		out.Settled += s.Settled
		out.Skipped += s.Skipped
		out.Written += s.Written
		out.Unchanged += s.Unchanged
	}
	entries, err := d.Journal().Entries(ctx, journal.Filter{})
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e journal.Entry) bool { return e.Ref.Position <= before.Last })
	bar.done()
	return a.replayed(out, entries, readErr)
}

// replayed tells what became of a file.
func (a *app) replayed(out replayJSON, entries []journal.Entry, readErr error) (err error) {
	for i, e := range entries {
		if e.State == journal.Dead {
			out.Dead++
		} else {
			out.Waiting++
		}
		if i < 100 {
			out.Entries = append(out.Entries, entryOf(e))
		}
	}
	out.OK = len(entries) == 0 && readErr == nil
	if a.json {
		err = a.printJSON(out)
	} else {
		a.printReplay(out, entries)
	}
	switch {
	case err != nil || readErr != nil:
		return errors.Join(err, readErr)
	case !out.OK:
		return errSaid
	}
	return nil
}

// tellDown tells once of each target that cannot be reached.
func (a *app) tellDown() func(daemon.Progress) {
	told := map[string]bool{}
	return func(p daemon.Progress) {
		for name, reason := range p.Down {
			if reason != "" && !told[name] { // without one it has not been tried yet
				told[name] = true
				fmt.Fprintf(a.Err, "target %s cannot be written: %s\nWaiting for it; Ctrl-C ends, and nothing is lost.\n", name, reason)
			}
		}
	}
}

func (a *app) printReplay(out replayJSON, entries []journal.Entry) {
	a.printf("%s with %s in %.1f s: %s settled", deliveries(out.Deliveries), plural(int(out.Events), "event"), out.Seconds, thousands(int(out.Settled)))
	for _, x := range []struct {
		n    int64
		what string
	}{{out.Skipped, "wanted by no mapping"}, {out.Waiting, "waiting"}, {out.Dead, "dead"}} {
		if x.n > 0 {
			a.printf(", %s %s", thousands(int(x.n)), x.what)
		}
	}
	if out.ThroughServer {
		a.printf(", by the server that runs on the journal\n")
	} else {
		a.printf("; %s written, %s already as new\n", plural(int(out.Written), "row"), thousands(int(out.Unchanged)))
	}
	a.printEntries(entries[:min(20, len(entries))])
	if len(entries) > 20 {
		a.printf("and %s more: %s dead list, %[2]s waiting list\n", thousands(len(entries)-20), a.Program)
	}
}

func deliveries(n int64) string {
	if n == 1 {
		return "1 delivery"
	}
	return thousands(int(n)) + " deliveries"
}
