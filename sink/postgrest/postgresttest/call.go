package postgresttest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// call answers POST /rpc/name.
func (s *Server) call(r *request, name string) (*result, *apiError) {
	if r.Method != http.MethodPost {
		return nil, failure(http.StatusMethodNotAllowed, "PGRST101", "Invalid HTTP method for this function: "+r.Method)
	}
	text := trimmed(r.body)
	if len(text) == 0 {
		text = []byte("{}")
	}
	var args map[string]json.RawMessage
	if json.Unmarshal(text, &args) != nil {
		return nil, failure(http.StatusBadRequest, "PGRST102", "Empty or invalid json")
	}
	names := slices.Sorted(maps.Keys(args))
	overloads := s.known().functions[r.schema+"\x00"+name]
	if overloads == nil {
		e := failure(http.StatusNotFound, "PGRST202", fmt.Sprintf("Could not find the function %s.%s(%s) in the schema cache", r.schema, name, strings.Join(names, ", ")))
		return nil, e.with(fmt.Sprintf("Searched for the function %s.%s with parameters %s or with a single unnamed json/jsonb parameter, but no matches were found in the schema cache.", r.schema, name, strings.Join(names, ", ")))
	}
	i := slices.IndexFunc(overloads, func(f *functionInfo) bool { return f.takes(names) })
	f := &functionInfo{Schema: r.schema, Name: name, Volatile: true}
	if i >= 0 {
		f = overloads[i]
	}
	var pass, defs []string
	for _, a := range names {
		typ := "text" // the database then says that there is no such function
		if at := slices.Index(f.Args, a); at >= 0 {
			typ = f.Types[at]
		}
		pass = append(pass, fmt.Sprintf("%s := args.%[1]s", quote(a)))
		defs = append(defs, quote(a)+" "+typ)
	}
	args1 := "(select $1::text) as args"
	if len(defs) > 0 {
		args1 = "json_to_record($1::json) as args (" + strings.Join(defs, ", ") + ")"
	}
	fn := fmt.Sprintf("%s.%s(%s)", quote(f.Schema), quote(f.Name), strings.Join(pass, ", "))
	var sql string
	switch {
	case f.Composite:
		sql = "select coalesce(json_agg(q), '[]')::text from (select f.* from " + args1 + ", lateral " + fn + " as f) q"
		if !f.Set {
			sql = "select row_to_json(q)::text from (select f.* from " + args1 + ", lateral " + fn + " as f) q"
		}
	case f.Set:
		sql = "select coalesce(json_agg(q.f), '[]')::text from (select f from " + args1 + ", lateral " + fn + " as f) q"
	default:
		sql = "select coalesce(to_json(f)::text, 'null') from " + args1 + ", lateral (select " + fn + " as f) q"
	}
	access := pgx.ReadOnly
	if f.Volatile {
		access = pgx.ReadWrite
	}
	var body string
	fault := s.run(r, f.Isolation, access, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, sql, string(text)).Scan(&body)
	})
	if fault != nil {
		return nil, fault
	}
	return &result{status: http.StatusOK, body: body}, nil
}
