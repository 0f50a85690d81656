package hasuratest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// query translates a root field of a query.
func (s *Server) query(v *view, f *ast.Field, vars map[string]any) (root, *failure) {
	r := root{alias: f.Alias, path: "$.selectionSet." + f.Name}
	args, _ := plain(f.ArgumentMap(vars)).(map[string]any)
	switch f.Name {
	case "__typename":
		r.constant = `"query_root"`
		return r, nil
	case "__schema", "__type":
		if s.opts.NoIntrospection {
			return r, failf(r.path, "validation-failed", "field '%s' not found in type: 'query_root'", f.Name)
		}
		answer, err := json.Marshal(introspect(v.schema, f, args))
		if err != nil {
			return r, failf("$", "unexpected", "%v", err)
		}
		r.constant = string(answer)
		return r, nil
	case "no_queries_available":
		r.constant = "null"
		return r, nil
	}
	name := v.named(f.Name)
	byKey := strings.HasSuffix(name, "_by_pk") && v.tables[name] == nil
	if byKey {
		name = strings.TrimSuffix(name, "_by_pk")
	}
	a := v.tables[name]
	if a == nil {
		return r, failf(r.path, "validation-failed", "field '%s' not found in type: 'query_root'", f.Name)
	}
	row := s.row(v, a, a.sql(), f.SelectionSet)
	if byKey {
		exp := map[string]any{}
		for k, x := range args {
			exp[k] = map[string]any{"_eq": x}
		}
		where, fail := v.where(a, exp, r.path+".args")
		r.sql = fmt.Sprintf("select (select %s from %s where %s)::text", row, a.sql(), where)
		return r, fail
	}
	where, fail := v.where(a, args["where"], r.path+".args.where")
	if fail != nil {
		return r, fail
	}
	order, fail := orderBy(a, args["order_by"], r.path+".args.order_by")
	if fail != nil {
		return r, fail
	}
	sql := fmt.Sprintf("select %s as j from %s where %s%s", row, a.sql(), where, order)
	if n, ok := args["limit"].(json.Number); ok || a.limit > 0 {
		rows, err := strconv.Atoi(n.String())
		if err != nil || a.limit > 0 && rows > a.limit {
			rows = a.limit
		}
		sql += fmt.Sprint(" limit ", rows)
	}
	if n, ok := args["offset"].(json.Number); ok {
		sql += " offset " + n.String()
	}
	r.sql = fmt.Sprintf("select coalesce(json_agg(j), '[]')::text from (%s) as x", sql)
	return r, nil
}

func orderBy(a *access, by any, path string) (string, *failure) {
	if by == nil {
		return "", nil
	}
	list, ok := by.([]any)
	if !ok {
		list = []any{by}
	}
	var parts []string
	for _, x := range list {
		object, _ := x.(map[string]any)
		for name, how := range object {
			if !slices.ContainsFunc(a.read, func(c *column) bool { return c.name == name }) {
				return "", failf(path+"."+name, "validation-failed", "field '%s' not found in type: '%s_order_by'", name, a.gql)
			}
			s, _ := how.(string)
			direction, nulls, _ := strings.Cut(s, "_nulls_")
			if nulls == "" {
				nulls = map[string]string{"asc": "last", "desc": "first"}[direction]
			}
			parts = append(parts, ident(name)+" "+direction+" nulls "+nulls)
		}
	}
	if parts == nil {
		return "", nil
	}
	return " order by " + strings.Join(parts, ", "), nil
}
