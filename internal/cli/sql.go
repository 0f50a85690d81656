package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/sink"
)

// sqlJSON is what sql prints under --json.
type sqlJSON struct {
	Tables []tableSQL `json:"tables"`
}

type tableSQL struct {
	Table   string `json:"table"`
	Dialect string `json:"dialect"`
	// DDL makes the table anew.
	DDL []string `json:"ddl"`
	// Script is the DDL and the statements that write, with comments.
	Script string `json:"script"`
}

func (a *app) sql() *cobra.Command {
	var as string
	cmd := &cobra.Command{
		Use: "sql [TABLE...]", Short: "Print the DDL and the statements that Hookfold writes with",
		Long: "Prints, for each table, the DDL it would be made with and the statements that\n" +
			"join changes into it, for people who keep code of their own.",
		Example: "hookfold sql booking --dialect postgres",
		RunE: func(cmd *cobra.Command, names []string) error {
			if as != "" && !slices.Contains(compile.Dialects, compile.Dialect(as)) {
				return usage(cmd, "there is no dialect %s. The dialects are: %v", as, compile.Dialects)
			}
			plan, err := a.plan()
			if err != nil {
				return err
			}
			tables := plan.Tables
			if len(names) > 0 {
				tables = nil
				for _, n := range names {
					t := plan.Table(n)
					if t == nil {
						return usage(cmd, "the config has no table %s", n)
					}
					tables = append(tables, t)
				}
			}
			out := sqlJSON{Tables: []tableSQL{}}
			for _, t := range tables {
				d := compile.Dialect(as)
				if as == "" {
					d = daemon.Dialect(plan.Config.TargetNamed(t.Target))
				}
				x, err := sqlOf(t, d)
				if err != nil {
					return err
				}
				out.Tables = append(out.Tables, *x)
			}
			if a.json {
				return a.printJSON(out)
			}
			for i, t := range out.Tables {
				if i > 0 {
					a.printf("\n")
				}
				a.printf("%s", t.Script)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&as, "dialect", "", "`name` of a dialect, postgres or sqlite (default: that of the table's target)")
	return cmd
}

func sqlOf(t *mapping.Table, d compile.Dialect) (*tableSQL, error) {
	script, err := compile.Script(d, &t.Table, compile.Schemas{})
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", t.Config.Text, err)
	}
	none := &sink.Live{}
	return &tableSQL{
		Table: t.Config.Text, Dialect: string(d), Script: script,
		DDL: compile.Migrate(d, &t.Table, compile.Schemas{Table: none, Records: none, Versions: none}),
	}, nil
}
