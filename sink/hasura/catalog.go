package hasura

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/sink"
)

//go:embed catalog.sql
var catalog string

// catalogTable is a table as the database's own catalog has it.
type catalogTable struct {
	sink.Live
	Schema string
}

// catalogAnswer is what catalog.sql gives.
type catalogAnswer struct {
	Schema, Kind string
	FillsRows    bool
	Triggers     []sink.Trigger
	Columns      []struct {
		sink.LiveColumn
		Internal string
	}
	Uniques                  []sink.Unique
	References, ReferencedBy []sink.Reference
}

// catalogQuery asks for a table by its name in the config.
func catalogQuery(name string) string {
	byOID := func(query string) string {
		return strings.ReplaceAll(strings.TrimRight(query, "; \n"), "$1", "(select oid from it)")
	}
	return strings.NewReplacer("{table}", compile.Literal(compile.PostgresName(name)), "{columns}", byOID(compile.PostgresColumns), "{triggers}", byOID(compile.PostgresTriggers), "{references}", byOID(compile.PostgresReferences)).Replace(catalog)
}

// call asks an admin API. known is false where there is none, or none for these
// credentials.
func (h *hasura) call(ctx context.Context, path string, request any) (answer json.RawMessage, known bool, err error) {
	to := h.admin(path)
	if to == "" || h.opts.AdminSecret == "" && h.opts.JWT != nil {
		return nil, false, nil
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, false, err
	}
	status, header, answer, err := h.post(ctx, to, "", body)
	if err != nil {
		return nil, false, h.unreachable(err)
	}
	var failed struct {
		Code, Error, Path string
		Internal          json.RawMessage
	}
	if status == http.StatusOK {
		return answer, true, nil
	}
	if json.Unmarshal(answer, &failed) != nil || failed.Code == "" {
		if status == http.StatusNotFound || status == http.StatusMethodNotAllowed {
			return nil, false, nil
		}
		return nil, false, h.judgeStatus(status, header, len(body))
	}
	if failed.Code == "access-denied" && strings.Contains(failed.Error, "admin") && !strings.Contains(failed.Error, "secret") {
		return nil, false, nil
	}
	if failed.Code == "already-tracked" {
		return answer, true, nil
	}
	e := answerError{Message: failed.Error}
	e.Extensions.Code, e.Extensions.Path = failed.Code, failed.Path
	_ = json.Unmarshal(failed.Internal, &e.Extensions.Internal) // some have another form, or none
	if m := e.Extensions.Internal.Error.Message; m != "" {
		return nil, true, operator("%s: %s", failed.Error, m)
	}
	return nil, true, h.judge(e, after(header))
}

// runSQL runs SQL through the admin API and gives the first value of the first
// row.
func (h *hasura) runSQL(ctx context.Context, sql string, readOnly bool) (value string, known bool, err error) {
	answer, known, err := h.call(ctx, "/v2/query", map[string]any{"type": "run_sql", "args": map[string]any{"source": h.opts.Source, "sql": sql, "read_only": readOnly}})
	if err != nil || !known {
		return "", known, err
	}
	var out struct {
		Result [][]string `json:"result"`
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		return "", true, operator("the answer of run_sql is not as expected: %v", err)
	}
	if len(out.Result) > 1 && len(out.Result[1]) > 0 {
		value = out.Result[1][0]
	}
	return value, true, nil
}

// lookIn reads a table from the database's catalog.
func (h *hasura) lookIn(ctx context.Context, name string) (*catalogTable, bool, error) {
	value, known, err := h.runSQL(ctx, catalogQuery(name), true)
	t := &catalogTable{}
	if err != nil || !known || value == "" {
		return t, known, err
	}
	var in catalogAnswer
	if err := json.Unmarshal([]byte(value), &in); err != nil {
		return nil, known, operator("the catalog of table %s is not as expected: %v", name, err)
	}
	t.Schema = in.Schema
	t.Live = sink.Live{Exists: true, ReadOnly: compile.PostgresReadOnly[in.Kind], FillsRows: in.FillsRows, Triggers: in.Triggers,
		Uniques: in.Uniques, References: in.References, ReferencedBy: in.ReferencedBy}
	for _, c := range in.Columns {
		c.Bits = compile.PostgresBits[c.Internal]
		if len(c.Labels) == 0 {
			c.Labels = nil
		}
		t.Columns = append(t.Columns, c.LiveColumn)
	}
	return t, true, nil
}

// Inspect is sink.Sink's. Through GraphQL alone it knows no lengths, precisions,
// defaults or collations.
func (h *hasura) Inspect(ctx context.Context, t *sink.Table) (*sink.Live, error) {
	shown, err := h.introspect(ctx, []string{h.rootName(t.Name)})
	if err != nil {
		return nil, public(err)
	}
	live := shown[0].live()
	have, known, err := h.lookIn(ctx, t.Name)
	switch {
	case err != nil:
		return nil, public(err)
	case !known || !have.Exists:
		return live, nil
	case !live.Exists:
		have.ReadOnly = "Hasura does not show it. Track it, and let the role select, insert and update it"
	case have.ReadOnly == "":
		have.ReadOnly = live.ReadOnly
	}
	return &have.Live, nil
}

// Plan is sink.Sink's. Besides SQL it gives calls of the metadata API that track
// tables, as JSON. Where only GraphQL can be asked, a table that is not shown
// counts as one that is not there.
func (h *hasura) Plan(ctx context.Context, tables []*sink.Table) ([]string, error) {
	var out []string
	for _, t := range tables {
		if err := sink.Refused(t, Refuses(t)); err != nil {
			return nil, operator("%v", err)
		}
		names := []string{t.Name}
		if t.Occupied {
			names = append(names, compile.OccupantsTable(t.Name))
		}
		have := [2]*sink.Live{{}, {}}
		var track []string
		for i, name := range names {
			shown, err := h.introspect(ctx, []string{h.rootName(name)})
			if err != nil {
				return nil, public(err)
			}
			have[i] = shown[0].live()
			in, known, err := h.lookIn(ctx, name)
			if err != nil {
				return nil, public(err)
			}
			if known {
				have[i] = &in.Live
			}
			if !shown[0].exists {
				track = append(track, h.track(name, in.Schema))
			}
		}
		for _, sql := range compile.Migrate(compile.Postgres, t, compile.Schemas{Table: have[0], Records: have[1], Versions: &sink.Live{}}) {
			if sql = named(sql, t); !slices.Contains(out, sql) {
				out = append(out, sql)
			}
		}
		out = append(out, track...)
	}
	return out, nil
}

// named makes a constraint of a unique index, since a mutation can name no
// other.
func named(sql string, t *sink.Table) string {
	var key []string
	for _, k := range t.Key {
		key = append(key, k.Name)
	}
	for _, x := range []struct {
		table string
		key   []string
	}{{t.Name, key}, {compile.OccupantsTable(t.Name), append(slices.Clone(key), compile.OccupantColumn)}} {
		if sql == compile.UniqueIndex(compile.Postgres, x.table, x.key) {
			var list []string
			for _, k := range x.key {
				list = append(list, compile.Quote(k))
			}
			return fmt.Sprintf("alter table %s add unique (%s)", compile.QuoteTable(x.table), strings.Join(list, ", "))
		}
	}
	return sql
}

// track is the call that tracks a table. The schema of a table that is yet to be
// made is public, or {schema} if its name says none: Execute looks it up then.
func (h *hasura) track(name, schema string) string {
	parts := compile.SplitTable(name)
	table := map[string]string{"schema": schema, "name": parts[len(parts)-1]}
	if len(parts) > 1 {
		table["schema"] = parts[0]
	} else if schema == "" {
		delete(table, "schema")
	}
	call, _ := json.Marshal(map[string]any{"type": "pg_track_table", "args": map[string]any{"source": h.opts.Source, "table": table}})
	return string(call)
}

// Execute is sink.Sink's, through the admin API.
func (h *hasura) Execute(ctx context.Context, statements []string) error {
	defer h.forget()
	for _, s := range statements {
		known, err := h.execute(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s, public(err))
		}
		if !known {
			return operator("this GraphQL endpoint runs no SQL: that needs the admin secret, and the admin API to be on. Run it yourself, in Hasura's console or with psql, and track the tables: %s", strings.Join(statements, ";\n"))
		}
	}
	return nil
}

func (h *hasura) execute(ctx context.Context, statement string) (known bool, err error) {
	if !strings.HasPrefix(statement, "{") {
		_, known, err = h.runSQL(ctx, statement, false)
		return known, err
	}
	var call struct {
		Type string         `json:"type"`
		Args map[string]any `json:"args"`
	}
	if err := json.Unmarshal([]byte(statement), &call); err != nil {
		return false, operator("this is neither SQL nor a call of the metadata API: %v", err)
	}
	if table, ok := call.Args["table"].(map[string]any); ok && table["schema"] == nil {
		name, _ := table["name"].(string)
		if t, known, err := h.lookIn(ctx, `"`+strings.ReplaceAll(name, `"`, `""`)+`"`); err == nil && known && t.Exists {
			table["schema"] = t.Schema
		}
	}
	_, known, err = h.call(ctx, "/v1/metadata", call)
	return known, err
}
