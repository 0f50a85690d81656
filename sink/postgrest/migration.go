package postgrest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/sink"
)

// reload makes PostgREST read the schema again.
const reload = "notify pgrst, 'reload schema'"

// Migration returns the SQL that a person runs once so that a sink can write the
// tables: what is missing of the tables, in mode rpc the functions, and what the
// key's role needs to be granted. live gives the live schema of a table by its
// name, nil or one that does not exist for a table that is to be made.
func Migration(tables []*sink.Table, live func(name string) *sink.Live, opts Options) (string, error) {
	opts = opts.withDefaults()
	for _, t := range tables {
		if err := sink.Refused(t, Refuses(t, opts.Mode)); err != nil {
			return "", err
		}
	}
	statements, err := plan(tables, &known{live: func(name string) *sink.Live {
		if l := live(name); l != nil {
			return l
		}
		return &sink.Live{}
	}}, opts)
	if err != nil || statements == nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("-- Made by Hookfold. Run it in one go (Supabase: SQL editor); it adds, and changes or removes nothing.\nbegin;\n\n")
	for _, s := range statements {
		b.WriteString(s + ";\n\n")
	}
	b.WriteString("commit;\n")
	return b.String(), nil
}

// known is what is known of a database.
type known struct {
	live      func(name string) *sink.Live
	functions []string
}

// plan gives the statements that are to be run.
func plan(tables []*sink.Table, have *known, opts Options) ([]string, error) {
	var ddl, functions, grants []string
	once := func(list *[]string, s string) {
		if !slices.Contains(*list, s) {
			*list = append(*list, s)
		}
	}
	need := func(f function) bool {
		if slices.Contains(have.functions, f.name) {
			return false
		}
		once(&functions, f.definition)
		for _, s := range grantFunction(opts, f) {
			once(&functions, s)
		}
		return true
	}
	role := compile.Quote(opts.Role)
	if opts.Role == "public" {
		role = "public"
	}
	for _, t := range tables {
		schemas, err := compile.Look(compile.Postgres, t, func(name string) (*sink.Live, error) { return have.live(name), nil })
		if err != nil {
			return nil, err
		}
		changes := compile.Migrate(compile.Postgres, t, schemas)
		for _, s := range changes {
			once(&ddl, s)
		}
		names := []string{t.Name}
		if t.Occupied {
			names = append(names, compile.OccupantsTable(t.Name))
		}
		fresh := false
		for _, name := range names {
			if !have.live(name).Exists {
				fresh = true
				if opts.Role == "service_role" { // Supabase's passes row-level security; nobody else is to read a table that is new
					once(&ddl, "alter table "+compile.QuoteTable(name)+" enable row level security")
				}
			}
		}
		if opts.Mode == RPC {
			live, records := grown(t, schemas)
			f, _, err := writer(opts.Schema, t, live, records)
			if err != nil {
				return nil, fmt.Errorf("table %s: %w", t.Table.Name, err)
			}
			fresh = need(f) || fresh
		}
		if fresh {
			for _, name := range names {
				once(&grants, "grant select, insert, update on "+compile.QuoteTable(name)+" to "+role)
			}
		}
	}
	if opts.Mode == RPC {
		need(inspector(opts.Schema))
		need(applier(opts.Schema))
	}
	out := append(append(ddl, functions...), grants...)
	if len(out) == 0 {
		return nil, nil
	}
	if opts.Schema != "public" { // names without a schema are of the one that the API shows
		out = append([]string{"set search_path = " + searchPath(opts.Schema)}, out...)
	}
	return append(out, reload), nil
}

// grown are the live schemas of a table and its records after the migration.
func grown(t *sink.Table, have compile.Schemas) (live, records *sink.Live) {
	ideal, idealRecords := compile.Ideal(compile.Postgres, t)
	if t.Occupied && !have.Records.Exists && have.Table.Exists { // its types will be those of the table
		idealRecords = likeTable(idealRecords, have.Table)
	}
	return joined(have.Table, ideal), joined(have.Records, idealRecords)
}

func joined(have, ideal *sink.Live) *sink.Live {
	if ideal == nil || !have.Exists {
		return ideal
	}
	out := *have
	out.Columns = slices.Clone(have.Columns)
	for _, c := range ideal.Columns {
		if out.Column(c.Name) == nil {
			out.Columns = append(out.Columns, c)
		}
	}
	return &out
}

func likeTable(records, table *sink.Live) *sink.Live {
	out := *records
	out.Columns = slices.Clone(records.Columns)
	for i, c := range out.Columns {
		if l := table.Column(c.Name); l != nil {
			l := *l
			l.NotNull, l.Default, l.Generated = c.NotNull, "", false
			if l.Base != "" {
				l.Type = l.Base
			}
			out.Columns[i] = l
		}
	}
	return &out
}

// grantFunction lets the role, and on Supabase nobody else, call a function.
func grantFunction(opts Options, f function) []string {
	name := compile.Quote(opts.Schema) + "." + compile.Quote(f.name) + "(" + f.args + ")"
	if opts.Role == "public" {
		return []string{"grant execute on function " + name + " to public"}
	}
	return []string{
		"revoke all on function " + name + " from public",
		// Supabase grants every new function to these.
		"do $hookfold$ declare r text; begin for r in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop execute format('revoke all on function " +
			strings.ReplaceAll(name, "'", "''") + " from %I', r); end loop; end $hookfold$",
		"grant execute on function " + name + " to " + compile.Quote(opts.Role),
	}
}

// Plan is sink.Sink's. Where the
// database cannot tell its tables yet, the API's description of them has to do:
// once the migration has run, another may be found to be needed.
func (s *rest) Plan(ctx context.Context, tables []*sink.Table) ([]string, error) {
	for _, t := range tables {
		if err := sink.Refused(t, Refuses(t, s.opts.Mode)); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	s.last = tables
	s.mu.Unlock()
	have, err := s.look(ctx, tables)
	if err != nil {
		return nil, asError(err)
	}
	return plan(tables, have, s.opts)
}

// Execute is sink.Sink's. The REST API runs no DDL, so it needs Options.Direct.
func (s *rest) Execute(ctx context.Context, statements []string) error {
	if len(statements) == 0 {
		return nil
	}
	if s.opts.Direct == "" {
		return operator("the REST API cannot change tables or make functions. Run the statements in Supabase's SQL editor or with psql (hookfold migrate prints them), or give the target direct_url: postgres://… of the database")
	}
	defer s.forget()
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	err := s.directly(ctx, func(c *pgx.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			for _, sql := range statements {
				if _, err := tx.Exec(ctx, sql); err != nil {
					return fmt.Errorf("%s: %w", sql, err)
				}
			}
			return nil
		})
	})
	if err != nil {
		return &sink.Error{Action: sink.Retry, Message: "run the migration: " + err.Error(), Err: err}
	}
	return s.settle(ctx)
}

func (s *rest) directly(ctx context.Context, fn func(*pgx.Conn) error) error {
	config, err := pgx.ParseConfig(s.opts.Direct)
	if err != nil {
		return err // pgx leaves the password out
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // it may be behind a pooler
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	return fn(c)
}

// settle waits until the API has seen the migration.
func (s *rest) settle(ctx context.Context) error {
	s.mu.Lock()
	tables := s.last
	s.mu.Unlock()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		err := s.seen(ctx, tables)
		if err == nil {
			return nil
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return operator("the migration has run, but the REST API does not see it: %w. Make it read the schema: notify pgrst, 'reload schema'", err)
		}
	}
}

func (s *rest) seen(ctx context.Context, tables []*sink.Table) error {
	if s.opts.Mode == RPC {
		_, err := s.call(ctx, applier(s.opts.Schema).name, "hookfold_batch", []byte("[]"))
		if err != nil {
			return err
		}
		_, err = s.inspect(ctx, nil)
		return err
	}
	have, err := s.described(ctx, tables)
	if err != nil {
		return err
	}
	left, err := plan(tables, have, s.opts)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%d statements are left", len(left))
	}
	return err
}
