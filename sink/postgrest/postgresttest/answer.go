package postgresttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hookfold/hookfold/internal/compile"
)

// request is a request that was understood.
type request struct {
	*http.Request
	schema string
	role   string
	claims []byte
	anon   bool
	prefer prefer
	query  []param
	body   []byte
}

// param is a parameter of the query string, in the order sent.
type param struct{ key, value string }

// prefer holds what the Prefer headers ask for.
type prefer struct {
	resolution, missing, returns, count, timezone string
}

// result is what is answered.
type result struct {
	status int
	body   string
	ranges string // Content-Range
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func (r *request) param(key string) (string, bool) {
	for _, p := range r.query {
		if p.key == key {
			return p.value, true
		}
	}
	return "", false
}

// answer is the API.
func (s *Server) answer(w http.ResponseWriter, hr *http.Request) {
	x := Exchange{Method: hr.Method, URI: hr.URL.RequestURI(), Prefer: strings.Join(hr.Header.Values("Prefer"), ", "),
		Profile: hr.Header.Get("Content-Profile") + hr.Header.Get("Accept-Profile")}
	res, fault := s.handle(hr, &x)
	out := httptest.NewRecorder()
	switch {
	case fault != nil:
		fault.write(out)
	default:
		if res.ranges != "" {
			out.Header().Set("Content-Range", res.ranges)
		}
		out.Header().Set("Content-Type", "application/json; charset=utf-8")
		out.WriteHeader(res.status)
		if hr.Method != http.MethodHead {
			out.WriteString(res.body)
		}
	}
	for k, v := range out.Header() {
		w.Header()[k] = v
	}
	x.Status, x.ContentRange = out.Code, out.Header().Get("Content-Range")
	s.record(x)
	w.WriteHeader(out.Code)
	w.Write(out.Body.Bytes())
}

func (s *Server) handle(hr *http.Request, x *Exchange) (*result, *apiError) {
	body := hr.Body
	if s.opts.MaxBody > 0 {
		body = io.NopCloser(io.LimitReader(hr.Body, s.opts.MaxBody+1))
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, failure(http.StatusBadRequest, "", "the body cannot be read")
	}
	x.Body = string(text)
	if s.opts.MaxBody > 0 && int64(len(text)) > s.opts.MaxBody {
		return nil, failure(http.StatusRequestEntityTooLarge, "", "request size limit exceeded")
	}
	path := hr.URL.Path
	if s.opts.APIKey != "" { // Supabase's gateway
		rest, ok := strings.CutPrefix(path, "/rest/v1")
		if !ok {
			return nil, failure(http.StatusNotFound, "", "no Route matched with those values")
		}
		if hr.Header.Get("apikey") != s.opts.APIKey {
			return nil, failure(http.StatusUnauthorized, "", "No API key found in request")
		}
		path = rest
	}
	r := &request{Request: hr, body: text}
	var fault *apiError
	if r.role, r.claims, r.anon, fault = s.roleOf(hr); fault != nil {
		return nil, fault
	}
	if fault := s.understand(r); fault != nil {
		return nil, fault
	}
	if path == "" || path == "/" {
		return s.describe(r)
	}
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	switch {
	case len(parts) == 2 && parts[0] == "rpc":
		return s.call(r, parts[1])
	case len(parts) == 1:
		return s.table(r, parts[0])
	}
	return nil, failure(http.StatusNotFound, "PGRST125", "Invalid path specified in request URL")
}

// understand reads the headers and the query string.
func (s *Server) understand(r *request) *apiError {
	profile := r.Header.Get("Content-Profile")
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		profile = r.Header.Get("Accept-Profile")
	}
	r.schema = s.opts.Schemas[0]
	if profile != "" {
		if !slices.Contains(s.opts.Schemas, profile) {
			return failure(http.StatusNotAcceptable, "PGRST106", "The schema must be one of the following: "+strings.Join(s.opts.Schemas, ", "))
		}
		r.schema = profile
	}
	strict := false
	var unknown []string
	for _, h := range r.Header.Values("Prefer") {
		for _, one := range strings.Split(h, ",") {
			one = strings.TrimSpace(one)
			k, v, _ := strings.Cut(one, "=")
			switch {
			case k == "resolution" && (v == "merge-duplicates" || v == "ignore-duplicates"):
				r.prefer.resolution = v
			case k == "missing" && (v == "default" || v == "null"):
				r.prefer.missing = v
			case k == "return" && (v == "minimal" || v == "headers-only" || v == "representation"):
				r.prefer.returns = v
			case k == "count" && (v == "exact" || v == "planned" || v == "estimated"):
				r.prefer.count = v
			case k == "timezone":
				r.prefer.timezone = v
			case k == "tx" && (v == "commit" || v == "rollback"): // the server's setting does not allow it
			case k == "handling":
				strict = v == "strict"
			default: // max-affected among them, which came with 12.2
				unknown = append(unknown, one)
			}
		}
	}
	if strict && unknown != nil {
		return failure(http.StatusBadRequest, "PGRST122", "Invalid preferences given with handling=strict").with("Invalid preferences: " + strings.Join(unknown, ", "))
	}
	for _, p := range strings.Split(r.URL.RawQuery, "&") {
		if p == "" {
			continue
		}
		k, v, _ := strings.Cut(p, "=")
		key, err1 := url.QueryUnescape(k)
		value, err2 := url.QueryUnescape(v)
		if err1 != nil || err2 != nil {
			return failure(http.StatusBadRequest, "PGRST100", "the query string cannot be read")
		}
		r.query = append(r.query, param{key, value})
	}
	return nil
}

// run runs fn in the transaction of a request.
func (s *Server) run(r *request, isolation string, access pgx.TxAccessMode, fn func(ctx context.Context, tx pgx.Tx) error) *apiError {
	level := pgx.ReadCommitted
	if isolation != "" {
		level = pgx.TxIsoLevel(isolation)
	}
	for {
		err := pgx.BeginTxFunc(r.Context(), s.pool, pgx.TxOptions{IsoLevel: level, AccessMode: access}, func(tx pgx.Tx) error {
			zone := "select"
			if r.prefer.timezone != "" {
				zone = "select set_config('timezone', (select name from pg_timezone_names where name = " + compile.Literal(r.prefer.timezone) + "), true),"
			}
			sql := fmt.Sprintf("%s set_config('search_path', %s, true), set_config('role', %s, true), set_config('request.jwt.claims', %s, true)",
				zone, compile.Literal(quote(r.schema)+", public"), compile.Literal(r.role), compile.Literal(string(r.claims)))
			if _, err := tx.Exec(r.Context(), sql); err != nil {
				return err
			}
			return fn(r.Context(), tx)
		})
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "40001" && r.Context().Err() == nil {
			continue // until the client goes away, as was measured
		}
		if err != nil {
			return databaseFailure(err, r.anon)
		}
		return nil
	}
}

// table answers on one table or view.
func (s *Server) table(r *request, name string) (*result, *apiError) {
	t := s.known().tables[r.schema+"\x00"+name]
	if t == nil {
		return nil, &apiError{status: http.StatusNotFound, Code: "42P01", empty: true}
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return s.selectRows(r, t)
	case http.MethodPost, http.MethodPut:
		return s.insertRows(r, t)
	case http.MethodPatch:
		return s.updateRows(r, t)
	case http.MethodDelete:
		return s.deleteRows(r, t)
	}
	return nil, failure(http.StatusMethodNotAllowed, "PGRST117", "Unsupported HTTP method: "+r.Method)
}

var reserved = []string{"select", "columns", "on_conflict", "order", "limit", "offset"}

// where reads the filters: all of them, and those that are logic trees apart.
func (r *request) where() (all, trees string, fault *apiError) {
	var conditions, logic []string
	for _, p := range r.query {
		if slices.Contains(reserved, p.key) {
			continue
		}
		not, join := "", strings.TrimPrefix(p.key, "not.")
		if join != p.key {
			not = "not "
		}
		if join == "or" || join == "and" {
			q := newParser(p.value)
			sql, fault := q.tree(join)
			if fault == nil && q.text != "" {
				fault = badFilter("logic tree (" + p.value + ")")
			}
			if fault != nil {
				return "", "", fault
			}
			conditions = append(conditions, not+sql)
			logic = append(logic, not+sql)
			continue
		}
		column := p.key
		if strings.HasPrefix(column, `"`) {
			column = newParser(column).quoted()
		}
		sql, fault := newParser(p.value).condition(column, false)
		if fault != nil {
			return "", "", fault
		}
		conditions = append(conditions, sql)
	}
	return joined(conditions), joined(logic), nil
}

func joined(conditions []string) string {
	if conditions == nil {
		return "true"
	}
	return strings.Join(conditions, " and ")
}

// shown is the list of columns that select= asks for.
func (r *request) shown(t *tableInfo) (string, *apiError) {
	list, ok := r.param("select")
	var out []string
	if !ok || list == "*" || list == "" {
		for _, c := range t.Columns {
			out = append(out, "r."+quote(c.Name))
		}
		return strings.Join(out, ", "), nil
	}
	for _, item := range items(list) {
		column, alias := item, ""
		if before, after, ok := strings.Cut(item, ":"); ok && !strings.HasPrefix(after, ":") && !strings.HasPrefix(item, `"`) {
			alias, column = before, after
		}
		cast := ""
		if strings.HasPrefix(column, `"`) {
			p := newParser(column)
			column, cast = p.quoted(), p.text
		} else if i := strings.Index(column, "::"); i >= 0 {
			column, cast = column[:i], column[i:]
		}
		sql := "r." + quote(column)
		if cast != "" {
			sql = "cast(" + sql + " as " + strings.TrimPrefix(cast, "::") + ")"
		}
		if alias == "" {
			alias = column
		}
		out = append(out, sql+" as "+quote(alias))
	}
	return strings.Join(out, ", "), nil
}

// items splits a list at the commas that stand outside of quotes.
func items(list string) []string {
	var out []string
	start, within := 0, false
	for i := 0; i < len(list); i++ {
		switch {
		case within && list[i] == '\\':
			i++
		case list[i] == '"':
			within = !within
		case list[i] == ',' && !within:
			out = append(out, list[start:i])
			start = i + 1
		}
	}
	return append(out, list[start:])
}

func jsonList(list, from string) string {
	return "(select coalesce(json_agg(q), '[]')::text from (select " + list + " from " + from + ") q)"
}

func trimmed(b []byte) []byte { return bytes.TrimSpace(b) }
