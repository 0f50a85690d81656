package hasuratest

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// admin answers run_sql, pg_track_table, pg_untrack_table, export_metadata and
// reload_metadata. Unlike GraphQL's, its errors have an HTTP status.
func (s *Server) admin(w http.ResponseWriter, r *http.Request) {
	fail := func(status int, f *failure) {
		answer(w, status, map[string]any{"path": f.path, "error": f.message, "code": f.code, "internal": f.internal})
	}
	body, ok := s.body(w, r)
	if !ok {
		return
	}
	role, f := s.role(r)
	if f != nil {
		fail(http.StatusUnauthorized, f)
		return
	}
	if role != "admin" {
		fail(http.StatusForbidden, failf("$", "access-denied", "restricted access : admin only"))
		return
	}
	var in struct {
		Type string
		Args struct {
			Source   string
			SQL      string
			ReadOnly bool `json:"read_only"`
			Table    struct{ Schema, Name string }
		}
	}
	if err := decode(body, &in); err != nil {
		fail(http.StatusBadRequest, failf("$", "invalid-json", "%v", err))
		return
	}
	if in.Args.Source != "" && in.Args.Source != "default" {
		fail(http.StatusBadRequest, failf("$.args", "not-exists", "source with name %q does not exist", in.Args.Source))
		return
	}
	switch query := r.URL.Path == "/v2/query"; {
	case query && in.Type == "run_sql":
		result, err := s.runSQL(r, in.Args.SQL, in.Args.ReadOnly)
		if err != nil {
			f := failf("$.args", "postgres-error", "query execution failed")
			f.internal = internalOf(err)
			fail(http.StatusBadRequest, f)
			return
		}
		answer(w, http.StatusOK, result)
	case !query && in.Type == "pg_untrack_table":
		s.mu.Lock()
		delete(s.tracked, in.Args.Table.Schema+"."+in.Args.Table.Name)
		s.views = map[string]*view{}
		s.mu.Unlock()
		answer(w, http.StatusOK, map[string]any{"message": "success"})
	case !query && in.Type == "pg_track_table":
		t := in.Args.Table
		if t.Schema == "" {
			t.Schema = "public"
		}
		name := t.Schema + "." + t.Name
		if !slices.Contains(s.opts.Schemas, t.Schema) {
			s.mu.Lock()
			s.opts.Schemas = append(s.opts.Schemas, t.Schema)
			s.mu.Unlock()
			if err := s.reload(r.Context()); err != nil {
				fail(http.StatusInternalServerError, failf("$", "unexpected", "%v", err))
				return
			}
		}
		s.mu.Lock()
		exists, tracked := s.tables[name] != nil, s.tracked[name]
		if exists {
			s.tracked[name] = true
			s.views = map[string]*view{}
		}
		s.mu.Unlock()
		switch {
		case !exists:
			fail(http.StatusBadRequest, failf("$.args", "not-exists", "no such table/view exists in source: %q", t.Name))
		case tracked:
			fail(http.StatusBadRequest, failf("$.args", "already-tracked", "view/table already tracked: %q", t.Name))
		default:
			answer(w, http.StatusOK, map[string]any{"message": "success"})
		}
	case !query && in.Type == "export_metadata":
		answer(w, http.StatusOK, s.metadata())
	case !query && in.Type == "reload_metadata":
		if err := s.reload(r.Context()); err != nil {
			fail(http.StatusInternalServerError, failf("$", "unexpected", "%v", err))
			return
		}
		answer(w, http.StatusOK, map[string]any{"message": "success", "is_consistent": true})
	default:
		fail(http.StatusBadRequest, failf("$.type", "parse-failed", "unknown type %q", in.Type))
	}
}

// metadata is what is tracked.
func (s *Server) metadata() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	tables := []any{}
	for _, name := range slices.Sorted(maps.Keys(s.tracked)) {
		schema, table, _ := strings.Cut(name, ".")
		tables = append(tables, map[string]any{"table": map[string]any{"schema": schema, "name": table}})
	}
	return map[string]any{"version": 3, "sources": []any{map[string]any{"name": "default", "kind": "postgres", "tables": tables}}}
}

// runSQL runs statements and reads the tables again, as Hasura does for
// statements that may change them.
func (s *Server) runSQL(r *http.Request, sql string, readOnly bool) (any, error) {
	c, err := s.pool.Acquire(r.Context())
	if err != nil {
		return nil, err
	}
	defer c.Release()
	access := "read write"
	if readOnly {
		access = "read only"
	}
	results, err := c.Conn().PgConn().Exec(r.Context(), "begin "+access+"; "+strings.TrimRight(sql, "; \n")+"; commit").ReadAll()
	if err != nil {
		c.Conn().Exec(r.Context(), "rollback")
		return nil, err
	}
	if !readOnly {
		if err := s.reload(r.Context()); err != nil {
			return nil, err
		}
	}
	for _, x := range results {
		if len(x.FieldDescriptions) == 0 {
			continue
		}
		var head []string
		for _, f := range x.FieldDescriptions {
			head = append(head, f.Name)
		}
		rows := [][]string{head}
		for _, values := range x.Rows {
			row := make([]string, len(values))
			for i, v := range values {
				row[i] = string(v)
				if v == nil {
					row[i] = "NULL"
				}
			}
			rows = append(rows, row)
		}
		return map[string]any{"result_type": "TuplesOk", "result": rows}, nil
	}
	return map[string]any{"result_type": "CommandOk", "result": nil}, nil
}
