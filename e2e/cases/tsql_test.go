package cases

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/sqlc-dev/teesql/parser"

	dialects "github.com/hookfold/hookfold/internal/compile"
)

// beyondTeesql is what the grammar does not take, though T-SQL does: COLLATE behind
// a column, and a hint behind the table of a MERGE.
var beyondTeesql = regexp.MustCompile(` collate [A-Za-z0-9_]+| with \(holdlock\)`)

// readTSQL compiles a scenario for SQL Server, and has a grammar of T-SQL read what
// it would run there, in every form, and the procedure where there is one.
func (s *scenario) readTSQL() error {
	plan, err := compile(fmt.Sprintf(head, cmp.Or(s.plan.Journal, "sqlite:journal.db"), `{url: "sqlserver://u@127.0.0.1?database=rows"}`) + s.config)
	if err != nil {
		return err
	}
	for _, t := range plan.Tables {
		for _, d := range []dialects.Dialect{dialects.SQLServer, dialects.SQLServerMerge, dialects.SQLServerLocks} {
			script, err := dialects.Script(d, &t.Table, dialects.Schemas{})
			if err != nil {
				return err
			}
			if err := parseTSQL(script); err != nil {
				return fmt.Errorf("%s: %w", d, err)
			}
		}
		if script, err := dialects.ProcedureScript(dialects.SQLServer, &t.Table, dialects.Schemas{}); err == nil {
			if err := parseTSQL(script); err != nil {
				return fmt.Errorf("procedure: %w", err)
			}
		}
	}
	return nil
}

func parseTSQL(script string) error {
	_, err := parser.Parse(context.Background(), strings.NewReader(beyondTeesql.ReplaceAllString(script, "")))
	if err != nil {
		return fmt.Errorf("%w in\n%s", err, script)
	}
	return nil
}
