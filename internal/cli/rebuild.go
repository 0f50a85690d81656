package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/verify"
	"github.com/hookfold/hookfold/journal"
)

// rebuildJSON is what rebuild prints under --json.
type rebuildJSON struct {
	OK       bool         `json:"ok"`
	Whole    bool         `json:"journal_whole"`
	Inserted int64        `json:"inserted"`
	Replaced int64        `json:"replaced"`
	Joined   int64        `json:"joined"`
	Table    verifiedJSON `json:"table"`
	Entries  []entryJSON  `json:"entries"`
}

func (a *app) rebuild() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "rebuild TABLE", Short: "Write a table's rows anew from the journal, under the config as it is now",
		Long: "Makes each row what the journal says under the config as it is now: inserts those that\n" +
			"are missing and replaces the mapped columns of those that differ, row by row under its\n" +
			"lock. A server may run and events arrive meanwhile. Where the journal does not reach back\n" +
			"to its beginning, it is folded into the rows instead, and what could not be rebuilt whole\n" +
			"is listed. Columns that no mapping sets, and rows that no event is about, stay.",
		Example: "hookfold rebuild booking",
		Args:    count(1, 1, "the name of a table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := a.plan()
			if err != nil {
				return err
			}
			t := plan.Table(args[0])
			if t == nil {
				return noTable(cmd, plan, args[0])
			}
			return a.rebuildTable(cmd.Context(), plan, t, limit)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "show at most this `number` of rows that could not be rebuilt whole")
	return cmd
}

func (a *app) rebuildTable(ctx context.Context, plan *mapping.Plan, t *mapping.Table, limit int) (err error) {
	j, err := daemon.OpenJournal(plan.Config, operator)
	if err != nil {
		return err
	}
	defer j.Close()
	sinks, err := daemon.OpenSinks(ctx, plan)
	if err != nil {
		return err
	}
	defer func() {
		for _, s := range sinks {
			err = errors.Join(err, s.Close())
		}
	}()
	at := &target{config: plan.Config.TargetNamed(t.Target), sink: sinks[t.Target]}
	if err := at.sink.Ping(ctx); err != nil {
		return at.failed(plan.Config, err)
	}
	bar := a.steps()
	defer bar.done()
	c, err := verify.Begin(ctx, verify.Options{
		Journal: j, Plan: plan, Target: t.Target, Sink: at.sink, Tables: []*mapping.Table{t}, Findings: limit, IgnoreExtra: true, ToRebuild: true, Progress: bar.tell,
	})
	if err != nil {
		return at.failed(plan.Config, err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	did, err := c.Rebuild(ctx)
	if err != nil {
		return at.failed(plan.Config, err)
	}
	r, err := c.Compare(ctx)
	if err != nil {
		return at.failed(plan.Config, err)
	}
	bar.done()
	// From here on the table may be written again.
	if err := daemon.KeepRules(ctx, j, t); err != nil {
		return err
	}
	if _, err := j.Retry(ctx, journal.Filter{Consumer: t.Target, State: journal.Waiting, Table: t.Config.Text}); err != nil {
		return err
	}
	out := rebuildJSON{
		OK: r.Drift() == 0 && len(did.Events.Unsettled) == 0, Whole: r.Whole, Inserted: did.Inserted, Replaced: did.Replaced, Joined: did.Joined,
		Table: verifiedOf(&r.Tables[0], t.Target), Entries: []entryJSON{},
	}
	for _, e := range did.Events.Unsettled[:min(len(did.Events.Unsettled), 100)] {
		out.Entries = append(out.Entries, entryOf(e))
	}
	if a.json {
		err = a.printJSON(out)
	} else {
		a.printf("%s: %s inserted, %s replaced, %s joined\n", t.Config.Text, plural(int(out.Inserted), "row"), thousands(int(out.Replaced)), thousands(int(out.Joined)))
		a.printEntries(did.Events.Unsettled[:min(len(did.Events.Unsettled), limit)])
		a.printVerify(verifyJSON{OK: out.OK, Whole: out.Whole, Open: r.Open, Pending: r.Pending, Tables: []verifiedJSON{out.Table}})
	}
	if err == nil && !out.OK {
		err = errSaid
	}
	return err
}
