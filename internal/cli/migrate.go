package cli

import (
	"github.com/spf13/cobra"
)

// migrateJSON is what migrate prints under --json.
type migrateJSON struct {
	OK      bool            `json:"ok"`
	Applied bool            `json:"applied"`
	Targets []statementJSON `json:"targets"`
}

type statementJSON struct {
	Target     string   `json:"target"`
	Statements []string `json:"statements"`
	// ByHand says how a person runs them, where --apply cannot.
	ByHand string `json:"by_hand,omitempty"`
}

func (a *app) migrate() *cobra.Command {
	var apply bool
	cmd := &cobra.Command{
		Use: "migrate", Short: "Print the DDL that the databases need; --apply runs it", Args: count(0, 0, "no arguments"),
		Long:    "Prints the statements that bring the live schemas in line with the config. They\nonly add: tables, columns, unique indexes. --apply runs them.",
		Example: "hookfold migrate --apply",
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := a.tables()
			if err != nil {
				return err
			}
			list, err := targets(cmd.Context(), plan)
			if err != nil {
				return err
			}
			defer closeTargets(list)
			out := migrateJSON{OK: true, Applied: apply, Targets: []statementJSON{}}
			for _, t := range list {
				statements, err := t.statements(cmd.Context())
				if err != nil {
					return t.failed(plan.Config, err)
				}
				if apply && len(statements) > 0 {
					if err := t.sink.Execute(cmd.Context(), statements); err != nil {
						return t.failed(plan.Config, err)
					}
				}
				out.OK = out.OK && (apply || len(statements) == 0)
				out.Targets = append(out.Targets, statementJSON{Target: t.config.Text, Statements: append([]string{}, statements...), ByHand: byHand(t.config)})
			}
			if a.json {
				err = a.printJSON(out)
			} else {
				a.printMigrate(out)
			}
			if err == nil && !out.OK {
				err = errSaid
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&apply, "apply", false, "run the statements")
	return cmd
}

func (a *app) printMigrate(out migrateJSON) {
	n, how := 0, "say --apply"
	for _, t := range out.Targets {
		for i, s := range t.Statements {
			if i == 0 && len(out.Targets) > 1 {
				a.printf("%s\n", a.style.dim("-- target "+t.Target))
			}
			a.printf("%s\n", shownStatement(s))
			n++
		}
		if len(t.Statements) > 0 && t.ByHand != "" {
			how = t.ByHand
		}
	}
	switch {
	case n == 0:
		a.printf("Nothing to do.\n")
	case out.Applied:
		a.printf("%s\n", a.style.good("-- applied "+plural(n, "statement")))
	default:
		a.printf("%s\n", a.style.dim("-- not applied: "+how))
	}
}
