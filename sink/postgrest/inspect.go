package postgrest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// tableKey tells tables apart: the same live table under another config is
// another.
type tableKey struct {
	rules *merge.Table
	name  string
}

// tableState is what is known of a live table.
type tableState struct {
	live       *sink.Live
	statements *compile.Statements // in mode rpc
	function   string
}

// state returns what is known of a table.
func (s *rest) state(ctx context.Context, t *sink.Table) (*tableState, error) {
	s.mu.Lock()
	st := s.tables[tableKey{t.Table, t.Name}]
	s.mu.Unlock()
	if st != nil {
		return st, nil
	}
	if err := sink.Refused(t, Refuses(t, s.opts.Mode)); err != nil {
		return nil, operator("%w", err)
	}
	have, err := s.inspected(ctx, []*sink.Table{t})
	if err != nil {
		return nil, err
	}
	st = &tableState{live: have.live(t.Name)}
	const line = "Bring the database in line (hookfold migrate shows how); until then events wait"
	switch {
	case !st.live.Exists:
		return nil, operator("there is no table %s that the REST API shows. %s", t.Name, line)
	case st.live.ReadOnly != "":
		return nil, operator("table %s cannot be written: %s", t.Name, st.live.ReadOnly)
	}
	if s.opts.Mode == RPC {
		var f function
		if f, st.statements, err = writer(s.opts.Schema, t, st.live, have.live(compile.OccupantsTable(t.Name))); err != nil {
			return nil, operator("%w. %s", err, line)
		}
		st.function = f.name
		if !slices.Contains(have.functions, f.name) {
			prefix := "hookfold_rows_" + stem(t) + "_"
			for _, old := range have.functions {
				if strings.HasPrefix(old, prefix) && len(old) == len(f.name) {
					return nil, operator("table %s: the function %s is of another config, another version of Hookfold, or of the table as it was. The one that is needed is %s: run the migration (hookfold migrate prints it) in the SQL editor; until then events wait", t.Name, old, f.name)
				}
			}
			return nil, operator("table %s: the database has no function %s. Run the migration (hookfold migrate prints it) in the SQL editor; until then events wait", t.Name, f.name)
		}
	} else if err := s.suits(t, st.live); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.tables[tableKey{t.Table, t.Name}] = st
	s.mu.Unlock()
	return st, nil
}

// suits tells whether guards of mode rest compare a live table's columns as
// package merge does.
func (s *rest) suits(t *sink.Table, live *sink.Live) error {
	for _, p := range compile.Problems(compile.Postgres, t, compile.Schemas{Table: live}, compile.Usage{}) {
		if !p.Warning {
			return operator("table %s: %s", t.Name, p.Text)
		}
	}
	for _, k := range t.Key {
		if l := live.Column(k.Name); k.Type.Kind == merge.Text && l.Base != "text" && l.Base != "character varying" && len(l.Labels) == 0 {
			return operator("table %s: key column %s is %s, for which different keys may be one, and in mode rest a row is found again by its key. Alter it to text, or use mode: rpc", t.Name, k.Name, l.Type)
		}
	}
	if s.guarded(t) {
		return nil
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		l := live.Column(c.Name)
		if (c.Rule == merge.Max || c.Rule == merge.Min) && (strings.HasPrefix(l.Base, "text") || strings.HasPrefix(l.Base, "character") || len(l.Labels) > 0) {
			return operator("table %s: column %s is %s, and %s of %s would go by the order of that. Alter the column, or use mode: rpc", t.Name, c.Name, l.Type, c.Rule, c.Type)
		}
	}
	return nil
}

func (s *rest) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tables)
}

// Inspect is sink.Sink's. In mode rest, and before the first migration, it tells
// what the API's description does: no other unique index than the primary key,
// no collation.
func (s *rest) Inspect(ctx context.Context, t *sink.Table) (*sink.Live, error) {
	have, err := s.look(ctx, []*sink.Table{t})
	if err != nil {
		return nil, asError(err)
	}
	return have.live(t.Name), nil
}

// look tells what is known of tables from the best source there is.
func (s *rest) look(ctx context.Context, tables []*sink.Table) (*known, error) {
	have, err := s.inspected(ctx, tables)
	var f *fault
	if err == nil || !errors.As(err, &f) || !f.absent {
		return have, err
	}
	if s.opts.Direct == "" {
		return s.described(ctx, tables)
	}
	var text string
	err = s.directly(ctx, func(c *pgx.Conn) error {
		if _, err := c.Exec(ctx, "set search_path = "+searchPath(s.opts.Schema)); err != nil {
			return err
		}
		return c.QueryRow(ctx, inspection(s.opts.Schema, "$1::text[]"), tableNames(tables)).Scan(&text)
	})
	if err != nil {
		return nil, &sink.Error{Action: sink.Retry, Message: "look at the tables: " + err.Error(), Err: err}
	}
	return readInspection([]byte(text))
}

// inspected asks for what is known of tables as the mode can.
func (s *rest) inspected(ctx context.Context, tables []*sink.Table) (*known, error) {
	if s.opts.Mode == REST {
		return s.described(ctx, tables)
	}
	return s.inspect(ctx, tables)
}

func (s *rest) inspect(ctx context.Context, tables []*sink.Table) (*known, error) {
	names, err := json.Marshal(tableNames(tables))
	if err != nil {
		return nil, err
	}
	body, err := s.call(ctx, inspector(s.opts.Schema).name, "hookfold_tables", names)
	if err != nil {
		return nil, err
	}
	return readInspection(body)
}

// call calls a function with one argument.
func (s *rest) call(ctx context.Context, name, arg string, value []byte) ([]byte, error) {
	body := slices.Concat([]byte(`{"`+arg+`":`), value, []byte("}"))
	res, err := s.do(ctx, request{method: http.MethodPost, path: "rpc/" + name, profile: s.opts.Schema, body: body})
	if err != nil {
		return nil, err
	}
	return res.body, nil
}

func tableNames(tables []*sink.Table) []string {
	out := []string{}
	for _, t := range tables {
		out = append(out, compile.PostgresName(t.Name))
		if t.Occupied {
			out = append(out, compile.PostgresName(compile.OccupantsTable(t.Name)))
		}
	}
	return out
}

// readInspection reads what inspection answers.
func readInspection(text []byte) (*known, error) {
	var answer struct {
		Functions []string
		Tables    map[string]struct {
			Kind    string
			Fills   bool
			Columns []struct {
				Name, Type, Base, Internal string
				Length, Precision, Scale   int
				Labels                     []string
				NotNull                    bool   `json:"not_null"`
				Default                    string `json:"dflt"`
				Generated                  bool
				Collation                  string
			}
			Uniques []struct {
				Name    string
				Columns []string
			}
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, operator("the REST API describes tables in a way that is not known: %w", err)
	}
	tables := map[string]*sink.Live{}
	for name, t := range answer.Tables {
		l := &sink.Live{Exists: true, ReadOnly: compile.PostgresReadOnly[t.Kind], FillsRows: t.Fills}
		for _, c := range t.Columns {
			x := sink.LiveColumn{Name: c.Name, Type: c.Type, Base: c.Base, Length: c.Length, Precision: c.Precision, Scale: c.Scale, Bits: compile.PostgresBits[c.Internal],
				NotNull: c.NotNull, Default: c.Default, Generated: c.Generated, Collation: c.Collation}
			if len(c.Labels) > 0 {
				x.Labels = c.Labels
			}
			l.Columns = append(l.Columns, x)
		}
		for _, u := range t.Uniques {
			l.Uniques = append(l.Uniques, sink.Unique{Name: u.Name, Columns: u.Columns})
		}
		tables[name] = l
	}
	return &known{functions: answer.Functions, live: func(name string) *sink.Live {
		if l := tables[compile.PostgresName(name)]; l != nil {
			return l
		}
		return &sink.Live{}
	}}, nil
}

// described reads the description at the API's root (OpenAPI 2.0), as far as it
// tells of tables: https://docs.postgrest.org/en/v12/references/api/openapi.html
func (s *rest) described(ctx context.Context, tables []*sink.Table) (*known, error) {
	type description struct {
		Definitions map[string]struct {
			Required   []string
			Properties map[string]struct {
				Format, Description string
				MaxLength           int
				Enum                []string
				Default             json.RawMessage
			}
		}
	}
	bySchema := map[string]*description{}
	live := map[string]*sink.Live{}
	for _, t := range tables {
		schema, name := s.address(t)
		d := bySchema[schema]
		if d == nil {
			res, err := s.do(ctx, request{method: http.MethodGet, profile: schema})
			var f *fault
			if errors.As(err, &f) && f.code == "PGRST126" || err == nil && json.Unmarshal(res.body, &d) != nil {
				return nil, operator("the REST API does not describe its tables (openapi-mode is disabled). Use mode: rpc, whose migration tells them, or let the API describe them")
			}
			if err != nil {
				return nil, err
			}
			bySchema[schema] = d
		}
		for as, name := range map[string]string{t.Name: name, compile.OccupantsTable(t.Name): name + "_occupants"} {
			def, ok := d.Definitions[name]
			if !ok {
				continue
			}
			l := &sink.Live{Exists: true}
			var key []string
			for column, p := range def.Properties {
				c := sink.LiveColumn{Name: column, Type: p.Format, Base: p.Format, Length: p.MaxLength, Labels: p.Enum,
					NotNull: slices.Contains(def.Required, column), Comment: p.Description, Bits: map[string]int{"smallint": 16, "integer": 32, "bigint": 64}[p.Format]}
				if len(p.Default) > 0 {
					c.Default = strings.Trim(string(p.Default), `"`)
					if c.Default == "" {
						c.Default = "''"
					}
				}
				if p.MaxLength > 0 {
					c.Type = fmt.Sprintf("%s(%d)", p.Format, p.MaxLength)
				}
				if strings.Contains(p.Description, "<pk/>") {
					key = append(key, column)
				}
				l.Columns = append(l.Columns, c)
			}
			slices.SortFunc(l.Columns, func(a, b sink.LiveColumn) int { return strings.Compare(a.Name, b.Name) })
			if key != nil {
				slices.Sort(key)
				l.Uniques = []sink.Unique{{Name: "primary key", Columns: key}}
			}
			live[as] = l
		}
	}
	return &known{live: func(name string) *sink.Live {
		if l := live[name]; l != nil {
			return l
		}
		return &sink.Live{}
	}}, nil
}
