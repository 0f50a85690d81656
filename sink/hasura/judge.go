package hasura

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/hookfold/hookfold/sink"
)

// answerError is an error in an answer, whose HTTP status is 200.
type answerError struct {
	Message    string `json:"message"`
	Extensions struct {
		Path     string `json:"path"`
		Code     string `json:"code"`
		Internal struct {
			Error struct {
				Status      string `json:"status_code"`
				Message     string `json:"message"`
				Description string `json:"description"`
			} `json:"error"`
		} `json:"internal"`
	} `json:"extensions"`
}

type sinkError = sink.Error

// fault is an error, judged.
type fault struct {
	*sinkError
	// again: the same mutation may succeed at once (deadlock).
	again bool
	// unexplained: it may as well be something that stays.
	unexplained bool
	// schema: the live schema is not what was known of it.
	schema bool
	// lacks: a column that is NOT NULL has no value in a new row.
	lacks bool
	// large: the request was larger than what is taken; size is its size.
	large bool
	size  int
}

func (f *fault) Unwrap() error { return f.sinkError }

func (c *client) failed(a sink.Action, code, format string, args ...any) *fault {
	if code != "" {
		code = "Hasura " + code
	}
	return &fault{sinkError: &sink.Error{Action: a, Code: code, Message: fmt.Sprintf(format, args...)}}
}

var (
	rootField  = regexp.MustCompile(`^\$\.selectionSet\.((?:insert_|update_)?(\w+?)(?:_one)?)(?:\.|$)`)
	constraint = regexp.MustCompile(`constraint "([^"]+)"`)
	inColumn   = regexp.MustCompile(`column "([^"]+)"`)
)

// judge goes by the code, which Hasura makes of the SQLSTATE.
func (c *client) judge(e answerError, pause time.Duration) *fault {
	table := "the table"
	if m := rootField.FindStringSubmatch(e.Extensions.Path); m != nil {
		table = m[2]
		for _, field := range m[1:] {
			if name, ok := c.names.Load(field); ok {
				table = name.(string)
				break
			}
		}
	}
	code := e.Extensions.Code
	if sqlstate := e.Extensions.Internal.Error.Status; sqlstate != "" {
		return c.judgeState(e, table)
	}
	name := ""
	if m := constraint.FindStringSubmatch(e.Message); m != nil {
		name = m[1]
	}
	switch code {
	case "constraint-violation":
		f := c.failed(sink.Wait, code, "table %s: %s", table, e.Message)
		f.On = name
		switch {
		case strings.HasPrefix(e.Message, "Uniqueness violation."):
			f.Why = sink.UniqueValue
			f.Message = fmt.Sprintf("table %s: unique %s: another row has the value", table, name)
		case strings.HasPrefix(e.Message, "Foreign key violation."):
			f.Why = sink.NeedsParent
			f.Message = fmt.Sprintf("table %s: foreign key %s: the row that it names is not there yet", table, name)
		case strings.HasPrefix(e.Message, "Exclusion violation."):
			f.Message = fmt.Sprintf("table %s: exclusion %s: another row is in the way", table, name)
		case strings.HasPrefix(e.Message, "Not-NULL violation."):
			column := "a column"
			if m := inColumn.FindStringSubmatch(e.Message); m != nil {
				column = m[1]
				f.On = table + "." + column
			}
			f.Why, f.lacks = sink.NotNull, true
			f.Message = fmt.Sprintf("table %s: there is no such row yet, and a new one needs a value for %s (NOT NULL)", table, column)
		default:
			f.Action = sink.Reject
		}
		return f
	case "permission-error":
		if name != "" {
			return c.failed(sink.Reject, code, "table %s: check %s refuses the row: %s", table, name, e.Message)
		}
		return c.failed(sink.Reject, code, "table %s: a check of the role's permissions refuses the row: %s", table, e.Message)
	case "data-exception", "bad-request", "parse-failed":
		return c.failed(sink.Reject, code, "table %s: a value does not fit: %s (at %s)", table, e.Message, e.Extensions.Path)
	case "constraint-error":
		f := c.failed(sink.Retry, code, "table %s: no unique constraint on the key: %s. Create one (hookfold migrate shows how); until then events wait", table, e.Message)
		f.schema = true
		return f
	case "concurrent-update":
		f := c.failed(sink.Retry, code, "other writers were in the way: %s", e.Message)
		f.again = true
		return f
	case "validation-failed", "not-exists":
		if strings.Contains(e.Message, "__type") {
			return c.failed(sink.Retry, code, "introspection is off for this role, so names cannot be looked up: %s. Allow it for the role of this target; until then events wait", e.Message)
		}
		f := c.failed(sink.Retry, code, "Hasura does not have what the config says: %s (at %s). Track the table, give the role its permissions, or bring the database in line (hookfold migrate shows how); until then events wait", e.Message, e.Extensions.Path)
		f.schema = true
		return f
	case "access-denied", "invalid-headers":
		return c.failed(sink.Retry, code, "Hasura refuses the credentials: %s. Is it the admin secret, or the role, of this endpoint?", e.Message)
	case "invalid-jwt", "jwt-invalid-claims", "jwt-missing-role-claims":
		if strings.Contains(e.Message, "JWTExpired") {
			return c.failed(sink.Retry, code, "the JWT has expired. Give a new one; until then events wait")
		}
		return c.failed(sink.Retry, code, "Hasura refuses the JWT: %s. Is it signed for this endpoint?", e.Message)
	case "unexpected":
		f := c.failed(sink.Retry, code, "table %s: %s, and Hasura keeps back why. Its log tells; with the admin secret so does the answer", table, e.Message)
		f.again, f.unexplained = true, true // a deadlock looks like this too
		return f
	}
	if strings.HasSuffix(code, "limit-exceeded") {
		f := c.failed(sink.Retry, code, "a limit of Hasura's: %s", e.Message)
		f.After = max(pause, 10*time.Second) // it counts by the minute
		return f
	}
	f := c.failed(sink.Retry, code, "Hasura cannot take the batch now: %s", e.Message)
	f.After = pause
	return f
}

// judgeState goes by the SQLSTATE, which only an admin sees, and only of errors
// for which Hasura has no code of its own.
func (c *client) judgeState(e answerError, table string) *fault {
	in := e.Extensions.Internal.Error
	say := func(a sink.Action, format string, args ...any) *fault {
		f := c.failed(a, "", format, args...)
		f.Code = "PostgreSQL " + in.Status
		return f
	}
	detail := in.Message
	if in.Description != "" {
		detail += ": " + in.Description
	}
	switch in.Status {
	case "21000":
		return say(sink.Reject, "table %s: two keys of one batch are one key to the database (a collation, or a type that is not the config's): %s", table, in.Message)
	case "42501":
		return say(sink.Retry, "table %s: %s. Grant select, insert and update to Hasura's database user; until then events wait", table, in.Message)
	case "55P03":
		f := say(sink.Retry, "other writers were in the way: %s", in.Message)
		f.again = true
		return f
	case "42P01", "42703", "42804", "42883", "42704", "42P10", "0A000":
		f := say(sink.Retry, "table %s: the database does not have what Hasura's metadata says: %s. Reload the metadata; until then events wait", table, in.Message)
		f.schema = true
		return f
	}
	switch in.Status[:min(2, len(in.Status))] {
	case "40":
		f := say(sink.Retry, "other writers were in the way: %s", in.Message)
		f.again = true
		return f
	case "P0", "09", "27", "38", "39":
		return say(sink.Reject, "table %s: a trigger or function refuses the row: %s", table, in.Message)
	case "22":
		return say(sink.Reject, "table %s: a value does not fit: %s", table, detail)
	case "23", "44":
		return say(sink.Reject, "table %s: %s", table, detail)
	}
	return say(sink.Retry, "the database cannot take the batch now: %s", detail)
}

// judgeStatus judges an answer that is not Hasura's, or has no errors in it.
func (c *client) judgeStatus(status int, h http.Header, size int) *fault {
	code := fmt.Sprint("HTTP ", status)
	say := func(format string, args ...any) *fault {
		f := c.failed(sink.Retry, "", format, args...)
		f.Code, f.After = code, after(h)
		return f
	}
	at := c.endpoint.Redacted()
	switch {
	case status == http.StatusTooManyRequests:
		return say("Hasura, or a proxy before it, asks to slow down")
	case status == http.StatusRequestEntityTooLarge:
		f := say("a request of %d bytes is larger than what is taken. Raise the limit of the proxy before Hasura", size)
		f.large, f.size = true, size
		return f
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return say("%s refuses the credentials", at)
	case status >= 300 && status < 400:
		return say("%s is a redirect, which is not followed. Write the url that it leads to", at)
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		return say("%s is no GraphQL endpoint. Its path is …/v1/graphql", at)
	}
	return say("Hasura, or a proxy before it, cannot take the batch now")
}

// unreachable describes a request without an answer. Whether it was done is not
// known; to do it again is safe.
func (c *client) unreachable(err error) *fault {
	at := "the Hasura at " + c.endpoint.Host
	f := c.failed(sink.Retry, "", "%s cannot be reached: %s", at, strings.Join(strings.Fields(err.Error()), " "))
	switch {
	case errors.Is(err, errLarge):
		f.Message = "an answer of " + at + " is larger than MaxResponseBytes"
	case errors.Is(err, context.DeadlineExceeded):
		f.Message = at + " did not answer in time"
	case errors.Is(err, context.Canceled):
		f.Message = "the work on " + at + " was broken off"
	}
	f.Err = err
	return f
}
