package postgresttest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// selectRows answers GET and HEAD.
func (s *Server) selectRows(r *request, t *tableInfo) (*result, *apiError) {
	list, fault := r.shown(t)
	if fault != nil {
		return nil, fault
	}
	where, _, fault := r.where()
	if fault != nil {
		return nil, fault
	}
	table := quote(t.Schema) + "." + quote(t.Name) + " as r"
	sql := table + " where " + where
	if order, ok := r.param("order"); ok {
		var by []string
		for _, o := range items(order) {
			column, how, _ := strings.Cut(o, ".")
			if strings.HasPrefix(o, `"`) {
				p := newParser(o)
				column, how = p.quoted(), strings.TrimPrefix(p.text, ".")
			}
			if how != "" && how != "asc" && how != "desc" {
				return nil, failure(http.StatusBadRequest, "PGRST100", `"failed to parse order (`+order+`)"`)
			}
			by = append(by, "r."+quote(column)+" "+how)
		}
		sql += " order by " + strings.Join(by, ", ")
	}
	limit, offset := -1, 0
	if v, ok := r.param("limit"); ok {
		limit, _ = strconv.Atoi(v)
	}
	if v, ok := r.param("offset"); ok {
		offset, _ = strconv.Atoi(v)
	}
	if s.opts.MaxRows > 0 && (limit < 0 || limit > s.opts.MaxRows) {
		limit = s.opts.MaxRows
	}
	if limit >= 0 {
		sql += fmt.Sprintf(" limit %d", limit)
	}
	sql += fmt.Sprintf(" offset %d", offset)
	total := "0::bigint"
	if r.prefer.count == "exact" {
		total = "(select count(*) from " + table + " where " + where + ")"
	}
	var body string
	var n, all int
	fault = s.run(r, "", pgx.ReadOnly, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, fmt.Sprintf("select %s, (select count(*) from (select from %s) q), %s", jsonList(list, sql), sql, total)).Scan(&body, &n, &all)
	})
	if fault != nil {
		return nil, fault
	}
	res := &result{status: http.StatusOK, body: body, ranges: ranges(offset, n, "*")}
	if r.prefer.count == "exact" {
		res.ranges = ranges(offset, n, strconv.Itoa(all))
		if n < all {
			res.status = http.StatusPartialContent
		}
	}
	return res, nil
}

func ranges(offset, n int, total string) string {
	if n == 0 {
		return "*/" + total
	}
	return fmt.Sprintf("%d-%d/%s", offset, offset+n-1, total)
}

// payload reads the body of a write: the list of its columns.
func (r *request) payload(t *tableInfo) ([]string, *apiError) {
	text := trimmed(r.body)
	if !json.Valid(text) {
		return nil, failure(http.StatusBadRequest, "PGRST102", "Empty or invalid json")
	}
	var objects []map[string]json.RawMessage
	switch {
	case len(text) > 0 && text[0] == '{':
		objects = make([]map[string]json.RawMessage, 1)
		if json.Unmarshal(text, &objects[0]) != nil {
			return nil, failure(http.StatusBadRequest, "PGRST102", "Empty or invalid json")
		}
	default:
		if json.Unmarshal(text, &objects) != nil {
			return nil, failure(http.StatusBadRequest, "PGRST102", "Empty or invalid json")
		}
	}
	var columns []string
	if list, ok := r.param("columns"); ok {
		for p := newParser(list); p.text != ""; p.take(",") {
			columns = append(columns, p.value())
		}
	} else if len(objects) > 0 {
		for k := range objects[0] {
			columns = append(columns, k)
		}
		for _, o := range objects {
			if len(o) != len(columns) || slices.ContainsFunc(columns, func(c string) bool { _, ok := o[c]; return !ok }) {
				return nil, failure(http.StatusBadRequest, "PGRST102", "All object keys must match")
			}
		}
	}
	slices.Sort(columns)
	for _, c := range columns {
		if t.column(c) == nil {
			return nil, failure(http.StatusBadRequest, "PGRST204", fmt.Sprintf("Could not find the '%s' column of '%s' in the schema cache", c, t.Name))
		}
	}
	return columns, nil
}

// records is the payload as a relation b.
func (r *request) records(t *tableInfo, columns []string) string {
	var defs, defaults []string
	for _, name := range columns {
		c := t.column(name)
		defs = append(defs, quote(name)+" "+c.Type)
		if c.Default != "" {
			defaults = append(defaults, "'"+strings.ReplaceAll(name, "'", "''")+"', "+c.Default)
		}
	}
	list := "(select case when json_typeof($1::json) = 'array' then $1::json else json_build_array($1::json) end)"
	if r.prefer.missing == "default" && defaults != nil {
		list = "(select json_agg(jsonb_build_object(" + strings.Join(defaults, ", ") + ") || e::jsonb) from json_array_elements(" + list + ") as e)"
	}
	return "json_to_recordset(" + list + ") as b (" + strings.Join(defs, ", ") + ")"
}

// insertRows answers POST, and PUT of one row.
func (s *Server) insertRows(r *request, t *tableInfo) (*result, *apiError) {
	columns, fault := r.payload(t)
	if fault != nil {
		return nil, fault
	}
	list, fault := r.shown(t)
	if fault != nil {
		return nil, fault
	}
	put := r.Method == http.MethodPut
	if put {
		r.prefer.resolution = "merge-duplicates"
	}
	if len(columns) == 0 {
		return &result{status: http.StatusCreated, ranges: "*/" + r.counted(0), body: r.shownBody("[]")}, nil
	}
	var names, values, sets []string
	for _, c := range columns {
		names = append(names, quote(c))
		values = append(values, "b."+quote(c))
		sets = append(sets, quote(c)+" = excluded."+quote(c))
	}
	sql := fmt.Sprintf("insert into %s.%s as r (%s) select %s from %s", quote(t.Schema), quote(t.Name), strings.Join(names, ", "), strings.Join(values, ", "), r.records(t, columns))
	target := t.Key
	if on, ok := r.param("on_conflict"); ok {
		target = nil
		for p := newParser(on); p.text != ""; p.take(",") {
			target = append(target, p.value())
		}
	}
	if r.prefer.resolution != "" && len(target) > 0 {
		var on []string
		for _, c := range target {
			on = append(on, quote(c))
		}
		sql += " on conflict (" + strings.Join(on, ", ") + ") do "
		if r.prefer.resolution == "ignore-duplicates" {
			sql += "nothing"
		} else {
			sql += "update set " + strings.Join(sets, ", ") // a filter in the URL does not count here
		}
	}
	all := "1"
	if r.prefer.returns == "representation" {
		all = "r.*"
	}
	full := "'[]'"
	if r.prefer.returns == "representation" {
		full = jsonList(list, "src as r")
	}
	var body string
	var n, fresh int
	fault = s.run(r, "", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, fmt.Sprintf("with src as (%s returning %s, r.xmax = 0 as pgrst_inserted) select %s, (select count(*) from src), (select count(*) from src where pgrst_inserted)",
			sql, all, full), string(r.body)).Scan(&body, &n, &fresh)
	})
	if fault != nil {
		return nil, fault
	}
	res := &result{status: http.StatusCreated, ranges: "*/" + r.counted(n), body: r.shownBody(body)}
	if r.prefer.resolution == "merge-duplicates" && fresh == 0 && !put {
		res.status = http.StatusOK
	}
	return res, nil
}

func (r *request) counted(n int) string {
	if r.prefer.count == "exact" {
		return strconv.Itoa(n)
	}
	return "*"
}

func (r *request) shownBody(body string) string {
	if r.prefer.returns == "representation" {
		return body
	}
	return ""
}

// updateRows answers PATCH.
func (s *Server) updateRows(r *request, t *tableInfo) (*result, *apiError) {
	columns, fault := r.payload(t)
	if fault != nil {
		return nil, fault
	}
	if len(columns) == 0 {
		return r.changed(0, "[]"), nil
	}
	var sets []string
	for _, c := range columns {
		sets = append(sets, quote(c)+" = b."+quote(c))
	}
	return s.change(r, t, fmt.Sprintf("update %s.%s as r set %s from %s", quote(t.Schema), quote(t.Name), strings.Join(sets, ", "), r.records(t, columns)), string(r.body))
}

// deleteRows answers DELETE.
func (s *Server) deleteRows(r *request, t *tableInfo) (*result, *apiError) {
	return s.change(r, t, fmt.Sprintf("delete from %s.%s as r", quote(t.Schema), quote(t.Name)))
}

func (s *Server) change(r *request, t *tableInfo, sql string, args ...any) (*result, *apiError) {
	list, fault := r.shown(t)
	if fault != nil {
		return nil, fault
	}
	where, trees, fault := r.where()
	if fault != nil {
		return nil, fault
	}
	returning, from, full := "1", "src", "'[]'"
	if r.prefer.returns == "representation" {
		// PostgREST before 14.4 applies or= and and= once more, to the rows as
		// they are after the write: https://github.com/PostgREST/postgrest/issues/3707
		returning, from = "r.*", "src as r where "+trees
		full = jsonList(list, from)
	}
	var body string
	var n int
	fault = s.run(r, "", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, fmt.Sprintf("with src as (%s where %s returning %s) select %s, (select count(*) from %s)", sql, where, returning, full, from), args...).Scan(&body, &n)
	})
	if fault != nil {
		return nil, fault
	}
	return r.changed(n, body), nil
}

func (r *request) changed(n int, body string) *result {
	if r.Method == http.MethodDelete {
		return &result{status: r.quiet(), body: r.shownBody(body), ranges: "*/" + r.counted(n)}
	}
	return &result{status: r.quiet(), body: r.shownBody(body), ranges: ranges(0, n, r.counted(n))}
}

func (r *request) quiet() int {
	if r.prefer.returns == "representation" {
		return http.StatusOK
	}
	return http.StatusNoContent
}
