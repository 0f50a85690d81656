package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/check"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/ndjson"
	"github.com/hookfold/hookfold/internal/prove"
	"github.com/hookfold/hookfold/merge"
)

// proveFlags are those of one command line.
type proveFlags struct {
	fromJournal      bool
	since            time.Duration
	table            string
	key              []string
	target, sink     string
	orders, parallel int
	seed             uint64
	unsound          bool
	own              []string
	output           string
}

func (a *app) prove() *cobra.Command {
	f := &proveFlags{}
	cmd := &cobra.Command{
		Use: "prove [FILE.ndjson]", Short: "Try recorded deliveries in many orders, on copies of the tables",
		Long: "Lets recorded deliveries arrive in many orders, doubled, in batches of all sizes, at\n" +
			"one, two and eight writers, with crashes between the database and the journal, on\n" +
			"empty copies of your tables in your database. The rows must be the same each time, and\n" +
			"those that the merge rules give. If not, it ends 1, and shows and saves the fewest\n" +
			"deliveries that make the difference. Nothing is written to your tables. - is the\n" +
			"standard input.",
		Example: "hookfold prove deliveries.ndjson\nhookfold prove --from-journal --since 24h\nhookfold prove --from-journal --table booking --key ref=lead_7",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.fromJournal && len(args) > 0:
				return usage(cmd, "--from-journal takes no file")
			case !f.fromJournal:
				return count(1, 1, "a file, or --from-journal")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.runProve(cmd, f, args) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.fromJournal, "from-journal", false, "take the deliveries from the journal")
	flags.DurationVar(&f.since, "since", 0, "only deliveries that were received in the last `time`, as in 24h")
	flags.StringVar(&f.table, "table", "", "only deliveries about this `table`, or about the row of --key in it")
	flags.StringArrayVar(&f.key, "key", nil, "only deliveries about the row with this `key`, as in id=7, and about rows that it needs; once for each column of the key")
	flags.StringVar(&f.target, "target", "", "only this `target`")
	flags.StringVar(&f.sink, "sink", "", "try it in the database of this `URL`, not in the target's")
	flags.IntVar(&f.orders, "orders", prove.DefaultOrders, "try at least this `number` of orders; all, where there are few")
	flags.Uint64Var(&f.seed, "seed", 1, "`number` that chooses the orders")
	flags.IntVar(&f.parallel, "parallel", 2, "`number` of copies to try orders in at once")
	flags.BoolVar(&f.unsound, "unsound", false, "go on though check says that rows depend on arrival, to see how")
	flags.StringArrayVar(&f.own, "sql", nil, "`TABLE=FILE` with an upsert of your own in place of the one that hookfold sql prints; with --sink")
	flags.StringVarP(&f.output, "output", "o", "", "save the counterexample to this `file` (default counterexample.ndjson, or the next that is free)")
	return cmd
}

// Proofs are made of deliveries in memory.
const (
	maxProven      = 200_000
	maxProvenBytes = 256 << 20
)

func (a *app) runProve(cmd *cobra.Command, f *proveFlags, args []string) error {
	if f.orders < 1 || f.parallel < 1 || f.parallel > 64 {
		return usage(cmd, "--orders has to be 1 or more, and --parallel 1 to 64")
	}
	plan, err := a.provable(f.unsound)
	if err != nil {
		return err
	}
	list, err := a.provenTargets(cmd, plan, f)
	if err != nil {
		return err
	}
	own, err := ownStatements(cmd, plan, f.own)
	if err != nil {
		return err
	}
	deliveries, err := a.recorded(cmd, plan, f, args)
	if err != nil {
		return err
	}
	if deliveries, err = chosen(cmd, plan, f, deliveries); err != nil {
		return err
	}
	out := proveJSON{OK: true, Targets: []provenJSON{}}
	for _, target := range list {
		r, place, err := a.proveTarget(cmd.Context(), plan, target, f, own, deliveries)
		if err != nil {
			if cmd.Context().Err() != nil {
				return notSo("stopped after %s, without a difference so far", plural(r.Orders, "order"))
			}
			return err
		}
		x, err := a.proven(r, f.output)
		if err != nil {
			return err
		}
		if !a.json {
			a.printProven(r, x, place)
		}
		out.OK = out.OK && x.OK
		out.Targets = append(out.Targets, *x)
	}
	if a.json {
		if err := a.printJSON(out); err != nil {
			return err
		}
	}
	if !out.OK {
		return errSaid
	}
	return nil
}

// provable loads a config that has to compile, and to be sound unless it is to be
// seen what happens if it is not.
func (a *app) provable(unsound bool) (*mapping.Plan, error) {
	if !unsound {
		return a.plan()
	}
	cfg, problems := a.load()
	if problems.Err() != nil {
		return nil, a.unusable(problems)
	}
	plan, problems := mapping.Compile(cfg)
	if problems.Err() != nil {
		return nil, a.unusable(problems)
	}
	for _, p := range check.Run(plan).Problems.List {
		if p.Severity == config.Error {
			fmt.Fprintf(a.Err, "%s\n", problems.Line(p))
		}
	}
	return plan, nil
}

func (a *app) provenTargets(cmd *cobra.Command, plan *mapping.Plan, f *proveFlags) ([]string, error) {
	list := plan.Targets()
	if f.target != "" {
		if plan.Config.TargetNamed(f.target) == nil {
			return nil, usage(cmd, "the config has no target %s", f.target)
		}
		list = []string{f.target}
	}
	if f.table != "" {
		t := plan.Table(f.table)
		if t == nil {
			return nil, usage(cmd, "the config has no table %s", f.table)
		}
		list = []string{t.Target}
	}
	if f.key != nil && f.table == "" {
		return nil, usage(cmd, "--key needs --table")
	}
	if f.sink != "" && len(list) > 1 {
		return nil, usage(cmd, "--sink is one database, and the config has the targets %s: say --target", strings.Join(list, ", "))
	}
	return list, nil
}

// ownStatements reads the files of --sql.
func ownStatements(cmd *cobra.Command, plan *mapping.Plan, list []string) (map[string]string, error) {
	var out map[string]string
	for _, x := range list {
		table, file, ok := strings.Cut(x, "=")
		if !ok || plan.Table(table) == nil {
			return nil, usage(cmd, "--sql is %q; it has to be a table of the config, = and a file", x)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = map[string]string{}
		}
		out[table] = strings.TrimRight(strings.TrimSpace(string(text)), ";")
	}
	return out, nil
}

// recorded reads the deliveries of the file or the journal.
func (a *app) recorded(cmd *cobra.Command, plan *mapping.Plan, f *proveFlags, args []string) ([]*event.Delivery, error) {
	var out []*event.Delivery
	bytes := 0
	from := time.Time{}
	if f.since > 0 {
		from = time.Now().Add(-f.since)
	}
	take := func(d *event.Delivery) error {
		if d.Received.Before(from) || plan.Source(d.Source) == nil && f.fromJournal {
			return nil
		}
		out = append(out, d)
		if bytes += len(d.Body); len(out) > maxProven || bytes > maxProvenBytes {
			return fmt.Errorf("there are more than %s or %d MB of them: choose fewer by --since, or by --table and --key", deliveries(maxProven), maxProvenBytes>>20)
		}
		return nil
	}
	if f.fromJournal {
		j, _, err := a.openJournal(reader)
		if err != nil {
			return nil, err
		}
		defer j.Close()
		if err := j.Scan(cmd.Context(), 0, take); err != nil {
			return nil, err
		}
		return out, nil
	}
	in := a.In
	if args[0] != "-" {
		file, err := os.Open(args[0])
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	lines := ndjson.NewReader(in, 0)
	for {
		d, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		case plan.Source(d.Source) == nil:
			return nil, fmt.Errorf("line %d: the config has no source %s", lines.Line(), d.Source)
		}
		d.Position = event.Position(lines.Line())
		if err := take(d); err != nil {
			return nil, err
		}
	}
}

// chosen are the deliveries about what --table and --key name.
func chosen(cmd *cobra.Command, plan *mapping.Plan, f *proveFlags, list []*event.Delivery) ([]*event.Delivery, error) {
	if f.table != "" {
		t := plan.Table(f.table)
		var key merge.Key
		if f.key != nil {
			var err error
			if key, err = keyOf(t, f.key); err != nil {
				return nil, usage(cmd, "--key: %v", err)
			}
		}
		about := prove.About(plan, t.Target, list, func(c *merge.Change) bool {
			return c.Table == t.Table.Table && (f.key == nil || c.Key == key || c.Replaces && t.GroupOf(key) == c.Key)
		})
		var some []*event.Delivery
		for i, d := range list {
			if about[i] {
				some = append(some, d)
			}
		}
		list = some
	}
	if len(list) == 0 {
		return nil, usage(cmd, "there is no such delivery")
	}
	return list, nil
}

func (a *app) proveTarget(ctx context.Context, plan *mapping.Plan, target string, f *proveFlags, own map[string]string, list []*event.Delivery) (r *prove.Report, place string, err error) {
	trial, err := daemon.OpenTrial(ctx, plan, target, f.sink, own)
	if err != nil {
		return &prove.Report{}, "", err
	}
	defer func() { err = errors.Join(err, trial.Close()) }()
	if _, err := trial.Sweep(ctx); err != nil {
		return &prove.Report{}, "", fmt.Errorf("target %s: %w", target, err)
	}
	bar := a.counting("prove", "orders", -1)
	defer bar.done()
	r, err = prove.Run(ctx, prove.Options{
		Plan: plan, Target: target, Sink: trial, Deliveries: list, Orders: f.orders, Seed: f.seed, Parallel: f.parallel,
		Progress: func(done, of int) { bar.total(int64(of)); bar.set(int64(done)) },
	})
	return r, trial.Place, err
}
