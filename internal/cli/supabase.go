package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/postgrest"
)

// supabase is the dialect of sql that gives one migration for all tables, with
// the functions that mode: rpc calls.
const supabase = "supabase"

// migrationSQL is the migration of one target.
type migrationSQL struct {
	Target string `json:"target"`
	Script string `json:"script"`
}

// migrations makes a migration for the tables of each target, as for a database
// that has none of them.
func migrations(plan *mapping.Plan, tables []*mapping.Table) ([]migrationSQL, error) {
	var out []migrationSQL
	for _, name := range plan.Targets() {
		var of []*sink.Table
		for _, t := range tables {
			if t.Target == name {
				of = append(of, &t.Table)
			}
		}
		if of == nil {
			continue
		}
		opts := postgrest.Options{}
		if target := plan.Config.TargetNamed(name); target.Kind == config.Supabase {
			opts = daemon.MigrationOptions(target)
		}
		script, err := postgrest.Migration(of, func(string) *sink.Live { return nil }, opts)
		if err != nil {
			return nil, err
		}
		out = append(out, migrationSQL{Target: name, Script: script})
	}
	return out, nil
}

// byHand says how a person runs what migrate prints for a target that runs no
// SQL, "" if migrate --apply does.
func byHand(t *config.Target) string {
	switch {
	case t.Kind == config.Supabase && t.DirectURL == "":
		return "run it in Supabase's SQL editor or with psql, or give the target direct_url: and say --apply"
	case t.Kind == config.Hasura && t.AdminSecret == "" && (t.JWT != "" || t.JWTFile != ""):
		return "run it in Hasura's console (Data, SQL, with \"Track this\"), and let the role " + orRole(t.Role) + " select, insert and update the columns"
	}
	return ""
}

func orRole(role string) string {
	if role == "" {
		return "of the token"
	}
	return role
}

// shownStatement is a statement as migrate prints it: a call of Hasura's metadata
// API as a comment, so that the rest can be pasted where SQL is run, and a trigger
// of MySQL as its client takes it, between delimiters of its own.
func shownStatement(s string) string {
	switch {
	case strings.HasPrefix(s, "{"):
		return "-- then track the table in Hasura, by its console or by POST /v1/metadata: " + s
	case strings.Contains(s, "\nhookfold: begin\n"):
		return "delimiter //\n" + s + "//\ndelimiter ;"
	}
	return s + ";"
}

// unapplied tells what migrate would still do, where the live tables have no
// other problem.
func unapplied(statements []string) string {
	calls := len(statements) - len(slices.DeleteFunc(slices.Clone(statements), func(s string) bool { return strings.HasPrefix(s, "{") }))
	what := plural(len(statements)-calls, "statement")
	if calls > 0 {
		what += " and " + plural(calls, "call")
	}
	return fmt.Sprintf("the database is not as the config needs it yet: %s of the migration are to be run. hookfold migrate prints them", what)
}
