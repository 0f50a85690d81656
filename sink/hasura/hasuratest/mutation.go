package hasuratest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/vektah/gqlparser/v2/ast"
)

// root is one root field, translated.
type root struct {
	alias, path string
	sql         string // gives one JSON value; "" if constant is the answer
	constant    string
}

// mutate runs the root fields of a mutation in order in one transaction: one
// field is one statement, and any failure takes all of it back.
func (v *view) mutate(ctx context.Context, db *pgx.Conn, roots []root, concurrent bool) (map[string]json.RawMessage, *failure) {
	tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return nil, failf("$", "postgres-error", "connection error")
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	out, f := run(ctx, tx, roots, concurrent)
	if f != nil {
		return nil, f
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, ofDatabase(err, "$", concurrent)
	}
	return out, nil
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func run(ctx context.Context, db querier, roots []root, concurrent bool) (map[string]json.RawMessage, *failure) {
	out := map[string]json.RawMessage{}
	for _, r := range roots {
		if r.sql == "" {
			out[r.alias] = json.RawMessage(r.constant)
			continue
		}
		var answer *string
		if err := db.QueryRow(ctx, r.sql).Scan(&answer); err != nil {
			return nil, ofDatabase(err, r.path, concurrent)
		}
		out[r.alias] = json.RawMessage("null")
		if answer != nil {
			out[r.alias] = json.RawMessage(*answer)
		}
	}
	return out, nil
}

// mutation translates a root field of a mutation.
func (s *Server) mutation(v *view, f *ast.Field, vars map[string]any) (root, *failure) {
	r := root{alias: f.Alias, path: "$.selectionSet." + f.Name}
	args, _ := plain(f.ArgumentMap(vars)).(map[string]any)
	verb, name, _ := strings.Cut(v.named(f.Name), "_")
	single := strings.HasSuffix(name, "_one") && v.tables[name] == nil
	if single {
		name = strings.TrimSuffix(name, "_one")
	}
	byKey := strings.HasSuffix(name, "_by_pk") && v.tables[name] == nil
	if byKey {
		name = strings.TrimSuffix(name, "_by_pk")
	}
	a := v.tables[name]
	if a == nil {
		return r, failf(r.path, "validation-failed", "field '%s' not found in type: 'mutation_root'", f.Name)
	}
	var write string
	var fail *failure
	switch verb {
	case "insert":
		objects := args["objects"]
		at := r.path + ".args.objects"
		if single {
			objects, at = []any{args["object"]}, r.path+".args.object"
		}
		list, ok := objects.([]any)
		if !ok {
			list = []any{objects}
		}
		if len(list) == 0 {
			r.constant = `{"affected_rows":0,"returning":[]}`
			return r, nil
		}
		write, fail = v.insert(a, list, args["on_conflict"], at, r.path+".args.on_conflict")
		r.path = at
	case "update":
		where := args["where"]
		if byKey {
			keys, _ := args["pk_columns"].(map[string]any)
			exp := map[string]any{}
			for k, x := range keys {
				exp[k] = map[string]any{"_eq": x}
			}
			where = exp
		}
		write, fail = v.update(a, args["_set"], where, r.path+".args")
	}
	if fail != nil {
		return r, fail
	}
	row := s.row(v, a, "m", f.SelectionSet)
	answer := row
	if !single && !byKey {
		answer = s.response(v, a, f.SelectionSet)
		r.sql = fmt.Sprintf("with m as (%s) select %s::text", write, answer)
	} else {
		r.sql = fmt.Sprintf("with m as (%s) select (select %s from m)::text", write, row)
	}
	if a.check != "" {
		// A permission's check is made on the rows as they were written.
		r.sql = fmt.Sprintf("with m as (%s), checked as (select bool_and(case when %s then true else %s end) from m) select %s::text from checked",
			write, a.check, refuse, answer)
	}
	return r, nil
}

// refuse raises SQLSTATE 23514, as a failed permission check reads to a user.
const refuse = "pg_temp.permission_refused()"

func (v *view) insert(a *access, objects []any, conflict any, path, conflictPath string) (string, *failure) {
	var names, rows []string
	for _, c := range a.insert {
		names = append(names, ident(c.name))
	}
	for i, o := range objects {
		at := fmt.Sprintf("%s[%d]", path, i)
		object, ok := o.(map[string]any)
		if !ok {
			return "", failf(at, "validation-failed", "expected an object for type '%s_insert_input', but found %s", a.gql, kindOf(o))
		}
		for _, k := range slices.Sorted(maps.Keys(object)) {
			if !slices.ContainsFunc(a.insert, func(c *column) bool { return c.name == k }) {
				return "", failf(at+"."+k, "validation-failed", "field '%s' not found in type: '%s_insert_input'", k, a.gql)
			}
		}
		var row []string
		for _, c := range a.insert {
			value, ok := object[c.name]
			if !ok {
				row = append(row, "default")
				continue
			}
			s, f := v.literal(c, value, at+"."+c.name)
			if f != nil {
				return "", f
			}
			row = append(row, s)
		}
		rows = append(rows, "("+strings.Join(row, ", ")+")")
	}
	sql := fmt.Sprintf("insert into %s (%s) values %s", a.sql(), strings.Join(names, ", "), strings.Join(rows, ", "))
	if conflict != nil {
		on, f := v.conflict(a, conflict.(map[string]any), conflictPath)
		if f != nil {
			return "", f
		}
		sql += on
	}
	return sql + " returning *", nil
}

func (v *view) conflict(a *access, on map[string]any, path string) (string, *failure) {
	name, _ := on["constraint"].(string)
	if !slices.ContainsFunc(a.constraints, func(k constraint) bool { return k.name == name }) {
		return "", failf(path+".constraint", "validation-failed", "expected one of the values %s for type '%s_constraint', but found '%s'", names(a), a.gql, name)
	}
	sql := " on conflict on constraint " + ident(name) + " do "
	list, _ := on["update_columns"].([]any)
	if single, ok := on["update_columns"].(string); ok {
		list = []any{single}
	}
	if len(list) == 0 {
		return sql + "nothing", nil
	}
	var set []string
	for i, x := range list {
		name, _ := x.(string)
		if !slices.ContainsFunc(a.update, func(c *column) bool { return c.name == name }) {
			return "", failf(fmt.Sprintf("%s.update_columns[%d]", path, i), "validation-failed", "expected one of the values of type '%s_update_column', but found '%v'", a.gql, x)
		}
		set = append(set, ident(name)+" = excluded."+ident(name))
	}
	where, f := v.where(a, on["where"], path+".where")
	if f != nil {
		return "", f
	}
	return sql + "update set " + strings.Join(set, ", ") + " where " + where, nil
}

func names(a *access) string {
	var list []string
	for _, k := range a.constraints {
		list = append(list, "'"+k.name+"'")
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func (v *view) update(a *access, set, where any, path string) (string, *failure) {
	object, _ := set.(map[string]any)
	if len(object) == 0 {
		return "", failf(path, "validation-failed", "at least any one of _set, _inc is expected")
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(object)) {
		i := slices.IndexFunc(a.update, func(c *column) bool { return c.name == k })
		if i < 0 {
			return "", failf(path+"._set."+k, "validation-failed", "field '%s' not found in type: '%s_set_input'", k, a.gql)
		}
		s, f := v.literal(a.update[i], object[k], path+"._set."+k)
		if f != nil {
			return "", f
		}
		parts = append(parts, ident(k)+" = "+s)
	}
	cond, f := v.where(a, where, path+".where")
	if f != nil {
		return "", f
	}
	return fmt.Sprintf("update %s set %s where %s returning *", a.sql(), strings.Join(parts, ", "), cond), nil
}

// response is the JSON of a mutation's answer over the rows it wrote.
func (s *Server) response(v *view, a *access, set ast.SelectionSet) string {
	var parts []string
	for _, sel := range set {
		f, ok := sel.(*ast.Field)
		if !ok {
			continue
		}
		switch f.Name {
		case "affected_rows":
			parts = append(parts, quote(f.Alias), "(select count(*) from m)")
		case "returning":
			parts = append(parts, quote(f.Alias), "coalesce((select json_agg("+s.row(v, a, "m", f.SelectionSet)+") from m), '[]')")
		case "__typename":
			parts = append(parts, quote(f.Alias), quote(a.gql+"_mutation_response")+"::text")
		}
	}
	return "json_build_object(" + strings.Join(parts, ", ") + ")"
}

// row is the JSON of one row.
func (s *Server) row(v *view, a *access, from string, set ast.SelectionSet) string {
	var parts []string
	for _, sel := range set {
		f, ok := sel.(*ast.Field)
		if !ok {
			continue
		}
		c := a.column(f.Name)
		switch {
		case f.Name == "__typename":
			parts = append(parts, quote(f.Alias), quote(a.gql)+"::text")
		case c == nil:
			continue
		case s.opts.StringifyNumbers && slices.Contains([]string{"int8", "numeric", "float8"}, c.internal):
			parts = append(parts, quote(f.Alias), from+"."+ident(f.Name)+"::text")
		default:
			parts = append(parts, quote(f.Alias), from+"."+ident(f.Name))
		}
	}
	return "json_build_object(" + strings.Join(parts, ", ") + ")"
}
