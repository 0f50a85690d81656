package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/refold"
	"github.com/hookfold/hookfold/internal/verify"
)

// verifyJSON is what verify prints under --json.
type verifyJSON struct {
	OK     bool           `json:"ok"`
	Whole  bool           `json:"journal_whole"`
	Tables []verifiedJSON `json:"tables"`
	// Open counts events that have not landed, Pending deliveries that are not
	// yet written, over all targets.
	Open    int64 `json:"open"`
	Pending int64 `json:"pending"`
	// Repaired is there with --repair: the rows that drifted before.
	Repaired *repairedJSON `json:"repair,omitempty"`
}

type repairedJSON struct {
	Drifted  int64       `json:"drifted"`
	Repaired int64       `json:"repaired"`
	Entries  []entryJSON `json:"entries"`
}

type verifiedJSON struct {
	Table     string        `json:"table"`
	Target    string        `json:"target"`
	Rows      int64         `json:"rows"`
	Equal     int64         `json:"equal"`
	Missing   int64         `json:"missing"`
	Extra     int64         `json:"extra"`
	Different int64         `json:"different"`
	Unchecked int64         `json:"unchecked"`
	Foreign   int64         `json:"foreign"`
	Findings  []findingJSON `json:"findings"`
	More      bool          `json:"more"`
}

type findingJSON struct {
	Kind    verify.Kind  `json:"kind"`
	Key     string       `json:"key"`
	Right   verify.Side  `json:"right"`
	Why     string       `json:"why"`
	Columns []columnJSON `json:"columns"`
}

type columnJSON struct {
	Column          string      `json:"column"`
	Database        *string     `json:"database"`
	Journal         *string     `json:"journal"`
	DatabaseVersion string      `json:"database_version,omitempty"`
	JournalVersion  string      `json:"journal_version,omitempty"`
	Right           verify.Side `json:"right,omitempty"`
	Why             string      `json:"why,omitempty"`
}

func (a *app) verify() *cobra.Command {
	var o verify.Options
	var repair bool
	cmd := &cobra.Command{
		Use: "verify [TABLE...]", Short: "Compare the live rows with what the journal says; --repair mends them",
		Long: "Folds the whole retained journal into a scratch database and compares it with the live\n" +
			"rows: rows that are missing, extra or different, and which side is right. Rows that the\n" +
			"journal cannot tell about are counted apart. A server may run meanwhile. --repair folds\n" +
			"the missing changes in again, as the merge rules allow; what was changed by hand beyond\n" +
			"that stays and is listed.",
		Example: "hookfold verify\nhookfold verify booking --repair",
		Args:    count(0, -1, "names of tables"),
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := a.plan()
			if err != nil {
				return err
			}
			for _, name := range args {
				if plan.Table(name) == nil {
					return noTable(cmd, plan, name)
				}
			}
			return a.verifyAll(cmd.Context(), plan, args, o, repair)
		},
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "fold the missing changes into the live rows again")
	cmd.Flags().BoolVar(&o.IgnoreExtra, "ignore-extra", false, "rows that no event is about are somebody else's: no drift")
	cmd.Flags().IntVar(&o.Findings, "limit", 20, "show at most this `number` of rows of each table")
	return cmd
}

func noTable(cmd *cobra.Command, plan *mapping.Plan, name string) error {
	var names []string
	for _, t := range plan.Tables {
		names = append(names, t.Config.Text)
	}
	slices.Sort(names)
	return usage(cmd, "the config has no table %s. Its tables are: %s", name, strings.Join(names, ", "))
}

func (a *app) verifyAll(ctx context.Context, plan *mapping.Plan, names []string, o verify.Options, repair bool) error {
	j, err := daemon.OpenJournal(plan.Config, reader)
	if err != nil {
		return err
	}
	defer j.Close()
	list, err := targets(ctx, plan)
	if err != nil {
		return err
	}
	defer closeTargets(list)
	if repair {
		broken, err := daemon.BrokenRules(ctx, plan, j)
		if err != nil {
			return err
		}
		for t, why := range broken {
			if len(names) == 0 || slices.Contains(names, t.Config.Text) {
				return notSo("nothing was repaired. %s", why)
			}
		}
	}
	out := verifyJSON{OK: true, Whole: true, Tables: []verifiedJSON{}}
	o.Journal, o.Plan = j, plan
	for _, t := range list {
		o.Target, o.Sink, o.Tables = t.config.Text, t.sink, nil
		for _, x := range t.tables {
			if len(names) == 0 || slices.Contains(names, x.Config.Text) {
				o.Tables = append(o.Tables, x)
			}
		}
		if o.Tables == nil {
			continue
		}
		if err := t.sink.Ping(ctx); err != nil {
			return t.failed(plan.Config, err)
		}
		if err := a.verifyOne(ctx, o, repair, &out); err != nil {
			if ctx.Err() != nil {
				return notSo("stopped; nothing was compared to the end")
			}
			return t.failed(plan.Config, err)
		}
	}
	if a.json {
		err = a.printJSON(out)
	} else {
		a.printVerify(out)
	}
	if err == nil && !out.OK {
		err = errSaid
	}
	return err
}

func (a *app) verifyOne(ctx context.Context, o verify.Options, repair bool, out *verifyJSON) (err error) {
	bar := a.steps()
	defer bar.done()
	o.Progress = bar.tell
	c, err := verify.Begin(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	r, err := c.Compare(ctx)
	if err != nil {
		return err
	}
	if repair && out.Repaired == nil {
		out.Repaired = &repairedJSON{Entries: []entryJSON{}}
	}
	if before := r.Drift(); repair && before > 0 {
		var did refold.Result
		if did, err = c.Repair(ctx); err != nil {
			return err
		}
		if r, err = c.Compare(ctx); err != nil {
			return err
		}
		out.Repaired.Drifted += before
		out.Repaired.Repaired += before - r.Drift()
		for _, e := range did.Unsettled[:min(len(did.Unsettled), 100)] {
			out.Repaired.Entries = append(out.Repaired.Entries, entryOf(e))
		}
	}
	out.OK = out.OK && r.Drift() == 0
	out.Whole = out.Whole && r.Whole
	out.Open += r.Open
	out.Pending += r.Pending
	for i := range r.Tables {
		out.Tables = append(out.Tables, verifiedOf(&r.Tables[i], o.Target))
	}
	return nil
}

func verifiedOf(t *verify.Table, target string) verifiedJSON {
	out := verifiedJSON{
		Table: t.Name, Target: target, Rows: t.Rows, Equal: t.Equal, Missing: t.Missing, Extra: t.Extra, Different: t.Different,
		Unchecked: t.Unchecked, Foreign: t.Foreign, Findings: []findingJSON{},
	}
	for _, f := range t.Findings {
		x := findingJSON{Kind: f.Kind, Key: f.Key, Right: f.Right, Why: f.Why, Columns: []columnJSON{}}
		for _, c := range f.Columns {
			x.Columns = append(x.Columns, columnJSON{
				Column: c.Name, Database: c.Database, Journal: c.Journal, DatabaseVersion: c.DatabaseVersion, JournalVersion: c.JournalVersion, Right: c.Right, Why: c.Why,
			})
		}
		out.Findings = append(out.Findings, x)
	}
	out.More = int64(len(t.Findings)) < t.Drift()+t.Unchecked
	return out
}

func (a *app) printVerify(out verifyJSON) {
	for _, t := range out.Tables {
		drift := t.Missing + t.Extra + t.Different
		word := a.style.good("ok   ")
		if drift > 0 {
			word = a.style.bad("drift")
		}
		a.printf("%s  %s  %s, %s as the journal says", word, t.Table, plural(int(t.Rows), "row"), thousands(int(t.Equal)))
		for _, x := range []struct {
			n    int64
			what string
		}{{t.Missing, "missing"}, {t.Extra, "extra"}, {t.Different, "different"}, {t.Unchecked, "cannot be checked"}, {t.Foreign, "not from events"}} {
			if x.n > 0 {
				a.printf(", %s %s", thousands(int(x.n)), x.what)
			}
		}
		a.printf("\n")
		for _, f := range t.Findings {
			a.wrap("  ", "", fmt.Sprintf("%s %s: %s", f.Kind, f.Key, f.Why))
			for _, c := range f.Columns {
				if f.Kind == verify.Missing || f.Kind == verify.Extra && c.Why == "" {
					continue
				}
				a.printf("      %s: database %s, journal %s\n", c.Column, sideText(c.Database, c.DatabaseVersion), sideText(c.Journal, c.JournalVersion))
			}
		}
		if t.More {
			a.printf("  and more: say --limit\n")
		}
	}
	if r := out.Repaired; r != nil && r.Drifted > 0 {
		a.printf("Repaired %s of %s.\n", thousands(int(r.Repaired)), plural(int(r.Drifted), "row"))
		if r.Repaired < r.Drifted {
			a.wrap("", "", "What is left was changed by hand in a way that no merge rule undoes, or is a row that no event is about. hookfold rebuild TABLE replaces mapped columns by what the journal says.")
		}
	}
	if out.Pending > 0 {
		a.wrap("", "33", fmt.Sprintf("%s not yet written: rows that they are about could not be checked. Is hookfold serve running?", deliveries(out.Pending)))
	}
	if out.Open > 0 {
		a.wrap("", "33", fmt.Sprintf("%s waiting or dead, and not part of what was compared: %s dead list, %[2]s waiting list", plural(int(out.Open), "event"), a.Program))
	}
	if !out.Whole {
		a.wrap("", "", "The journal does not reach back to its beginning (keep, max_size): what rows have from before cannot be checked.")
	}
}

func sideText(v *string, version string) string {
	text := "NULL"
	if v != nil {
		if text = *v; strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
			text = strconv.Quote(text)
		}
		if runes := []rune(text); len(runes) > 60 {
			text = string(runes[:60]) + "…"
		}
	}
	if version != "" {
		text += " (" + version + ")"
	}
	return text
}
