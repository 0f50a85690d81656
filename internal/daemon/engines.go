package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/hasura"
	"github.com/hookfold/hookfold/sink/postgrest"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// engine is what a kind of target is written by.
type engine struct {
	dialect compile.Dialect
	open    func(ctx context.Context, t *config.Target, tables []*sink.Table) (sink.Sink, error)
	// refuses tells what cannot be kept of a table.
	refuses func(t *config.Target, table *sink.Table) []sink.Refusal
}

var engines = map[config.Kind]engine{
	config.PostgreSQL: {compile.Postgres, openSQL, refusesSQL},
	config.SQLite:     {compile.SQLite, openSQL, refusesSQL},
	config.MySQL:      {compile.MySQL, openSQL, refusesSQL},
	config.SQLServer:  {compile.SQLServer, openSQL, refusesSQL},
	config.Hasura: {compile.Postgres, openHasura, func(_ *config.Target, table *sink.Table) []sink.Refusal {
		return hasura.Refuses(table)
	}},
	config.Supabase: {compile.Postgres, openPostgREST, func(t *config.Target, table *sink.Table) []sink.Refusal {
		return postgrest.Refuses(table, modeOf(t))
	}},
}

// Dialect is the dialect of the database behind a target.
func Dialect(t *config.Target) compile.Dialect {
	switch t.Upsert {
	case "merge":
		return compile.SQLServerMerge
	case "updlock":
		return compile.SQLServerLocks
	}
	return engines[t.Kind].dialect
}

func openSQL(ctx context.Context, t *config.Target, tables []*sink.Table) (sink.Sink, error) {
	return sqlsink.Open(ctx, t.URL.Text, tables, sqlsink.Options{Pooler: t.Pooler, Upsert: t.Upsert, Connections: t.Connections})
}

func refusesSQL(_ *config.Target, table *sink.Table) []sink.Refusal { return compile.Refuses(table) }

func openHasura(ctx context.Context, t *config.Target, tables []*sink.Table) (sink.Sink, error) {
	return hasura.Open(ctx, t.URL.Text, tables, hasura.Options{
		AdminSecret: t.AdminSecret, JWT: tokenOf(t), Role: t.Role, Headers: t.Headers, Source: t.Source,
		Names: calledBy(t.RootNames), Constraints: calledBy(t.Constraints),
		MaxRequestBytes: int(t.MaxRequest), Timeout: t.Timeout,
	})
}

func openPostgREST(ctx context.Context, t *config.Target, tables []*sink.Table) (sink.Sink, error) {
	return postgrest.Open(ctx, t.URL.Text, tables, MigrationOptions(t))
}

// MigrationOptions are the options of a Supabase target's sink, of which
// postgrest.Migration makes its SQL.
func MigrationOptions(t *config.Target) postgrest.Options {
	return postgrest.Options{
		Key: t.Key, Schema: t.Schema, Mode: modeOf(t), Role: t.Role, Direct: t.DirectURL, Headers: t.Headers,
		MaxRequestBytes: int(t.MaxRequest), Timeout: t.Timeout, Parallel: t.Connections,
	}
}

func modeOf(t *config.Target) postgrest.Mode {
	if t.Mode == "" {
		return postgrest.RPC
	}
	return postgrest.Mode(t.Mode)
}

func calledBy(list []config.Called) map[string]string {
	out := map[string]string{}
	for _, c := range list {
		out[c.Table.Text] = c.As
	}
	return out
}

// maxToken is the most bytes of a file with a token.
const maxToken = 64 << 10

// tokenOf gives a target's token: the one in the config, or what its file holds
// at the time; nil if it has none.
func tokenOf(t *config.Target) func(context.Context) (string, error) {
	if t.JWT == "" && t.JWTFile == "" {
		return nil
	}
	return func(context.Context) (string, error) {
		if t.JWT != "" {
			return t.JWT, nil
		}
		f, err := os.Open(t.JWTFile)
		if err != nil {
			return "", err
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, maxToken+1))
		token := strings.TrimSpace(string(text))
		switch {
		case err != nil:
			return "", err
		case token == "":
			return "", fmt.Errorf("%s is empty", t.JWTFile)
		case len(text) > maxToken || strings.ContainsAny(token, "\r\n"):
			return "", errors.New(t.JWTFile + " holds something else than one token")
		}
		return token, nil
	}
}
