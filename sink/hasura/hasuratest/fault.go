package hasuratest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// failure is an error as Hasura words it.
type failure struct {
	path, code, message string
	internal            any
}

func (f *failure) Error() string { return f.code + ": " + f.message }

func failf(path, code, format string, args ...any) *failure {
	return &failure{path: path, code: code, message: fmt.Sprintf(format, args...)}
}

func (f *failure) json(internal bool) map[string]any {
	ext := map[string]any{"path": f.path, "code": f.code}
	if internal && f.internal != nil {
		ext["internal"] = f.internal
	}
	return map[string]any{"message": f.message, "extensions": ext}
}

// violations are the prefixes of integrity violations.
var violations = map[string]string{
	"23001": "Can not delete or update due to data being referred. ", "23502": "Not-NULL violation. ", "23503": "Foreign key violation. ",
	"23505": "Uniqueness violation. ", "23P01": "Exclusion violation. ",
}

// ofDatabase words an error of PostgreSQL. What a user may see goes by the class
// of its SQLSTATE; everything else is a "database query error" whose detail only
// an admin sees. concurrent says that class 40 has a code of its own, as newer
// versions have it.
func ofDatabase(err error, path string, concurrent bool) *failure {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return failf("$", "postgres-error", "connection error")
	}
	switch {
	case e.Code == "23514":
		return failf(path, "permission-error", "Check constraint violation. %s", e.Message)
	case strings.HasPrefix(e.Code, "23"):
		return failf(path, "constraint-violation", "%s%s", violations[e.Code], e.Message)
	case e.Code == "22025":
		return failf(path, "bad-request", "%s", e.Message)
	case strings.HasPrefix(e.Code, "22"):
		return failf(path, "data-exception", "%s", e.Message)
	case e.Code == "42P10":
		return failf(path, "constraint-error", "there is no unique or exclusion constraint on target column(s)")
	case e.Code == "42704":
		return failf(path, "constraint-error", "%s", e.Message)
	case strings.HasPrefix(e.Code, "40") && concurrent:
		if e.Code == "40001" {
			return failf(path, "concurrent-update", "serialization failure due to concurrent update")
		}
		return failf(path, "concurrent-update", "%s", e.Message)
	}
	f := failf(path, "unexpected", "database query error")
	f.internal = internalOf(err)
	return f
}

func internalOf(err error) any {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return nil
	}
	return map[string]any{"statement": "…", "prepared": false, "arguments": []any{}, "error": map[string]any{
		"exec_status": "FatalError", "status_code": e.Code, "message": e.Message, "description": null(e.Detail), "hint": null(e.Hint)}}
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}
