package postgresttest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// apiError is an error as the API answers it.
type apiError struct {
	status  int
	Code    string  `json:"code"`
	Details *string `json:"details"`
	Hint    *string `json:"hint"`
	Message string  `json:"message"`
	header  map[string]string
	empty   bool // the body is {}
}

func (e *apiError) Error() string { return e.Code + ": " + e.Message }

func failure(status int, code, message string) *apiError {
	return &apiError{status: status, Code: code, Message: message}
}

func (e *apiError) with(details string) *apiError {
	e.Details = &details
	return e
}

func (e *apiError) write(w http.ResponseWriter) {
	for k, v := range e.header {
		w.Header().Set(k, v)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(e.status)
	if e.empty {
		w.Write([]byte("{}"))
		return
	}
	body, _ := json.Marshal(e)
	w.Write(body)
}

// databaseFailure turns an error of PostgreSQL into the API's.
func databaseFailure(err error, anon bool) *apiError {
	var known *apiError
	if errors.As(err, &known) {
		return known
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return failure(http.StatusServiceUnavailable, "PGRST001", "Database client error. Retrying the connection.").with(err.Error())
	}
	e := failure(statusOf(pg.Code, anon), pg.Code, pg.Message)
	if pg.Detail != "" {
		e.Details = &pg.Detail
	}
	if pg.Hint != "" {
		e.Hint = &pg.Hint
	}
	switch {
	case pg.Code == "42501" && anon:
		e.header = map[string]string{"WWW-Authenticate": "Bearer"}
	case pg.Code == "42P01":
		e.empty = true
	}
	return e
}

// statusOf gives the status of an SQLSTATE:
// https://docs.postgrest.org/en/v12/references/errors.html#status-codes
func statusOf(code string, anon bool) int {
	switch code {
	case "23503", "23505":
		return http.StatusConflict
	case "25006":
		return http.StatusMethodNotAllowed
	case "21000":
		return http.StatusInternalServerError
	case "42883", "42P01":
		return http.StatusNotFound
	case "42P17":
		return http.StatusInternalServerError
	case "42501":
		if anon {
			return http.StatusUnauthorized
		}
		return http.StatusForbidden
	case "P0001":
		return http.StatusBadRequest
	}
	if status, ok := strings.CutPrefix(code, "PT"); ok {
		if n, err := strconv.Atoi(status); err == nil && n >= 100 && n <= 999 {
			return n
		}
		return http.StatusInternalServerError
	}
	switch code[:2] {
	case "08", "53":
		return http.StatusServiceUnavailable
	case "54":
		return http.StatusInternalServerError
	case "0L", "0P", "28":
		return http.StatusForbidden
	case "09", "25", "2D", "38", "39", "3B", "40", "55", "57", "58", "F0", "HV", "P0", "XX":
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}
