package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/sink"
)

// sqlJSON is what sql prints under --json.
type sqlJSON struct {
	Tables []tableSQL `json:"tables"`
	// Migrations are those of --dialect supabase, which has no Tables.
	Migrations []migrationSQL `json:"migrations,omitempty"`
}

type tableSQL struct {
	Table   string `json:"table"`
	Dialect string `json:"dialect"`
	// DDL makes the table anew.
	DDL []string `json:"ddl"`
	// Script is the DDL and the statements that write, with comments.
	Script string `json:"script"`
}

// sqlForm is what sql prints of a table.
type sqlForm struct {
	dialect   string
	guard     bool
	procedure bool
	connect   bool
}

func (a *app) sql() *cobra.Command {
	var f sqlForm
	cmd := &cobra.Command{
		Use: "sql [TABLE...]", Short: "Print the DDL and the statements that Hookfold writes with",
		Long: "Prints, for each table, the DDL it would be made with and the statements that\n" +
			"join changes into it, for people who keep code of their own. --procedure prints a\n" +
			"procedure that joins one row, --guard-trigger a trigger with which plain upserts\n" +
			"are right.",
		Example: "hookfold sql booking --dialect postgres\nhookfold sql booking --guard-trigger --connect | psql \"$DATABASE_URL\"",
		RunE: func(cmd *cobra.Command, names []string) error {
			switch {
			case f.dialect != "" && f.dialect != supabase && !slices.Contains(compile.Dialects, compile.Dialect(f.dialect)):
				return usage(cmd, "there is no dialect %s. The dialects are: %s", f.dialect, dialects())
			case f.dialect == supabase && (f.guard || f.procedure):
				return usage(cmd, "--dialect %s is a script of its own. For --guard-trigger and --procedure say --dialect postgres", supabase)
			case f.guard && f.procedure:
				return usage(cmd, "--guard-trigger and --procedure are two scripts: ask for one of them")
			case f.connect && f.dialect != "":
				return usage(cmd, "--connect takes the dialect of the table's target: leave --dialect out")
			}
			plan, err := a.tables()
			if err != nil {
				return err
			}
			tables, err := sqlTables(cmd, plan, names, f)
			if err != nil {
				return err
			}
			out := sqlJSON{Tables: []tableSQL{}}
			if f.dialect == supabase {
				if out.Migrations, err = migrations(plan, tables); err != nil {
					return err
				}
				tables = nil
			}
			for _, t := range tables {
				x, err := sqlOf(cmd.Context(), plan, t, f)
				if err != nil {
					return err
				}
				out.Tables = append(out.Tables, *x)
			}
			if a.json {
				return a.printJSON(out)
			}
			for _, m := range out.Migrations {
				a.printf("%s", m.Script)
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
	cmd.Flags().StringVar(&f.dialect, "dialect", "", "`name` of a dialect: "+dialects()+" (a migration with functions); default: that of the table's target")
	cmd.Flags().BoolVar(&f.guard, "guard-trigger", false, "the trigger that joins whatever is written (without TABLE: of tables with guard: trigger)")
	cmd.Flags().BoolVar(&f.procedure, "procedure", false, "a procedure that joins one row, its parameters named as columns")
	cmd.Flags().BoolVar(&f.connect, "connect", false, "look at the live table, and print what fits its columns")
	return cmd
}

// dialects lists what --dialect may name.
func dialects() string {
	var names []string
	for _, d := range compile.Dialects {
		names = append(names, string(d))
	}
	return strings.Join(append(names, supabase), ", ")
}

// sqlTables are the tables that are named, or all that a form is of.
func sqlTables(cmd *cobra.Command, plan *mapping.Plan, names []string, f sqlForm) ([]*mapping.Table, error) {
	var tables []*mapping.Table
	for _, n := range names {
		t := plan.Table(n)
		if t == nil {
			return nil, usage(cmd, "the config has no table %s. Its tables are: %s", n, strings.Join(tableNames(plan), ", "))
		}
		tables = append(tables, t)
	}
	if len(names) > 0 {
		return tables, nil
	}
	for _, t := range plan.Tables {
		if !f.guard || t.Guard == sink.ByTrigger {
			tables = append(tables, t)
		}
	}
	if len(tables) == 0 && f.guard {
		return nil, usage(cmd, "no table of the config says guard: trigger. Name a table: %s", strings.Join(tableNames(plan), ", "))
	}
	return tables, nil
}

func sqlOf(ctx context.Context, plan *mapping.Plan, t *mapping.Table, f sqlForm) (*tableSQL, error) {
	d := compile.Dialect(f.dialect)
	if d == "" {
		d = daemon.Dialect(plan.Config.TargetNamed(t.Target))
	}
	var have compile.Schemas
	if f.connect {
		var err error
		if have, err = liveSchemas(ctx, plan, t); err != nil {
			return nil, err
		}
	}
	script := compile.Script
	switch {
	case f.guard:
		script = compile.GuardScript
	case f.procedure:
		script = compile.ProcedureScript
	}
	text, err := script(d, &t.Table, have)
	if err != nil {
		return nil, err // names the table
	}
	none := &sink.Live{}
	return &tableSQL{
		Table: t.Config.Text, Dialect: string(d), Script: text,
		DDL: compile.Migrate(d, &t.Table, compile.Schemas{Table: none, Records: none, Versions: none}),
	}, nil
}

// liveSchemas looks at a table in its target.
func liveSchemas(ctx context.Context, plan *mapping.Plan, t *mapping.Table) (compile.Schemas, error) {
	list, err := targets(ctx, plan)
	if err != nil {
		return compile.Schemas{}, err
	}
	defer closeTargets(list)
	for _, target := range list {
		if target.config.Text == t.Target {
			have, err := target.schemas(ctx, &t.Table)
			if err != nil {
				return have, target.failed(plan.Config, err)
			}
			return have, nil
		}
	}
	return compile.Schemas{}, nil
}
