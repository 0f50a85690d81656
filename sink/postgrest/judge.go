package postgrest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hookfold/hookfold/sink"
)

type judged = sink.Error

// fault is an error of the API, judged.
type fault struct {
	*judged
	code    string // as the API gave it
	details string
	// again: the same request may succeed at once (deadlock).
	again bool
	// schema: the live schema is not what was known of it.
	schema bool
	// absent: what was called is not there.
	absent bool
}

func (f *fault) Unwrap() error { return f.judged }

// asError gives what a caller of the sink sees.
func asError(err error) error {
	var f *fault
	if errors.As(err, &f) {
		return f.judged
	}
	return err
}

func tooLarge(message string) *fault {
	return &fault{judged: &sink.Error{Action: sink.Reject, Message: message, Code: "413"}}
}

// unreachable describes an error that did not come from the API.
func (c *client) unreachable(ctx context.Context, err error) *fault {
	at := "the REST API at " + c.base.Host
	var timeout net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout():
		return &fault{judged: &sink.Error{Action: sink.Retry, Message: at + " did not answer in time", Err: err}}
	case errors.Is(err, context.Canceled):
		return &fault{judged: &sink.Error{Action: sink.Retry, Message: "the request to " + at + " was broken off", Err: err}}
	}
	var where *url.Error
	if errors.As(err, &where) { // its text holds the whole URL, and so values of rows
		err = where.Err
	}
	return &fault{judged: &sink.Error{Action: sink.Retry, Message: at + " cannot be reached: " + strings.Join(strings.Fields(err.Error()), " "), Err: err}}
}

// named finds what the messages of PostgreSQL quote, after a word.
var (
	constraintName = regexp.MustCompile(`constraint "([^"]+)"`)
	relationName   = regexp.MustCompile(`(?:relation|table) "([^"]+)"`)
	columnName     = regexp.MustCompile(`column "([^"]+)"`)
)

func named(form *regexp.Regexp, message string) string {
	if m := form.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	return ""
}

// judge says what to do about an answer that is an error. It goes by the code in
// the body first: https://docs.postgrest.org/en/v12/references/errors.html
func (c *client) judge(res *http.Response, body []byte) *fault {
	var e struct{ Code, Message, Details, Hint string }
	f := &fault{judged: &sink.Error{After: retryAfter(res)}}
	if json.Unmarshal(body, &e) != nil {
		e.Message = ""
	}
	f.code, f.details = e.Code, e.Details
	f.Code = strings.TrimSpace(fmt.Sprintf("HTTP %d %s", res.StatusCode, e.Code))
	detail := e.Message
	if e.Details != "" {
		detail += ": " + e.Details
	}
	say := func(a sink.Action, format string, args ...any) *fault {
		f.Action, f.Message = a, fmt.Sprintf(format, args...)
		return f
	}
	const grant = "Grant select, insert and update to the role of the key (the migration does)"
	table := named(relationName, e.Message)
	switch e.Code {
	case "40P01", "40001", "55P03":
		f.again = true
		return say(sink.Retry, "other writers were in the way: %s", e.Message)
	case "23503":
		f.On, f.Why = named(constraintName, e.Message), sink.NeedsParent
		return say(sink.Wait, "%s", detail)
	case "23505":
		f.On, f.Why = named(constraintName, e.Message), sink.UniqueValue
		return say(sink.Wait, "another row has the value: %s", detail)
	case "23P01":
		f.On = named(constraintName, e.Message)
		return say(sink.Wait, "another row is in the way: %s", detail)
	case "23502":
		f.schema, f.Why = true, sink.NotNull
		f.On = strings.TrimPrefix(table+"."+named(columnName, e.Message), ".")
		return say(sink.Wait, "%s", e.Message)
	case "21000":
		return say(sink.Reject, "two keys of one batch are one key to the database (a collation, or a type that is not the config's): %s", e.Message)
	case "42883", "PGRST202":
		f.absent, f.schema = true, true
		return say(sink.Retry, "%s. Run the migration (hookfold migrate prints it) in the SQL editor; until then events wait", e.Message)
	case "42P10":
		f.schema = true
		return say(sink.Retry, "no unique index on the key. Create one (hookfold migrate shows how); until then events wait")
	case "42P01", "42703", "42704", "42804", "0A000", "42P18", "PGRST204", "PGRST205", "PGRST200":
		f.schema = true
		return say(sink.Retry, "the database does not have what the config says: %s. Bring it in line (hookfold migrate shows how), and let the API see it: notify pgrst, 'reload schema'; until then events wait", e.Message)
	case "42501":
		if strings.Contains(e.Message, "row-level security") {
			return say(sink.Reject, "row-level security refuses the row: %s", e.Message)
		}
		return say(sink.Retry, "%s. %s, or use the service_role key; until then events wait", e.Message, grant)
	case "PGRST106":
		return say(sink.Retry, "%s. Expose the schema (Supabase: Settings, API, Exposed schemas), or say which with schema; until then events wait", e.Message)
	case "PGRST301", "PGRST302", "PGRST303":
		f.After = max(f.After, 30*time.Second)
		return say(sink.Retry, "the REST API refuses the key: %s. Replace the target's key; until then events wait", e.Message)
	case "PGRST300":
		return say(sink.Retry, "the REST API has no secret to judge keys by: %s", e.Message)
	case "PGRST003":
		f.After = max(f.After, time.Second)
		return say(sink.Retry, "the REST API has no connection to the database left: %s", e.Message)
	case "PGRST102", "PGRST100", "PGRST122":
		return say(sink.Reject, "the REST API does not take the request: %s", detail)
	case "25006":
		return say(sink.Retry, "the database takes no writes now: %s", e.Message)
	}
	class := e.Code
	if len(class) > 2 {
		class = class[:2]
	}
	if strings.HasPrefix(e.Code, "PGRST") {
		class = "PGRST"
	}
	switch class {
	case "08", "53", "57", "55", "58", "XX", "28", "3D", "3F", "25", "F0", "PGRST":
		return say(sink.Retry, "the database cannot take the batch now: %s", detail)
	case "40":
		f.again = true
		return say(sink.Retry, "other writers were in the way: %s", e.Message)
	case "22":
		return say(sink.Reject, "a value does not fit: %s", detail)
	case "23":
		return say(sink.Reject, "%s", detail)
	case "42":
		return say(sink.Retry, "the database does not take the statement: %s", e.Message)
	case "P0":
		return say(sink.Reject, "a trigger or function refuses the row: %s", detail)
	case "PT": // a function or trigger chose the status
		if res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests {
			return say(sink.Retry, "a trigger or function cannot take the row now: %s", detail)
		}
		return say(sink.Reject, "a trigger or function refuses the row: %s", detail)
	}
	return c.judgeStatus(f, res, e.Message, e.Code != "")
}

// judgeStatus judges answers whose code tells nothing, as those of what stands in
// front of the API.
func (c *client) judgeStatus(f *fault, res *http.Response, message string, coded bool) *fault {
	say := func(a sink.Action, format string, args ...any) *fault {
		f.Action, f.Message = a, fmt.Sprintf(format, args...)
		return f
	}
	if message != "" {
		message = ": " + message
	}
	at := "the REST API at " + c.base.Host
	switch s := res.StatusCode; {
	case s < 400:
		return say(sink.Retry, "%s sends elsewhere, where the key must not go. Give the target the url behind the redirect", at)
	case s == http.StatusRequestEntityTooLarge:
		return say(sink.Reject, "the batch is larger than %s takes%s", at, message)
	case s == http.StatusUnauthorized || s == http.StatusForbidden && !coded:
		f.After = max(f.After, 30*time.Second)
		return say(sink.Retry, "%s refuses the key%s. Replace the target's key; until then events wait", at, message)
	case s == http.StatusNotFound && !coded:
		f.schema, f.absent = true, true
		return say(sink.Retry, "%s has no such table or path%s. Bring it in line (hookfold migrate shows how); until then events wait", at, message)
	case s == http.StatusTooManyRequests:
		f.After = max(f.After, time.Second)
		return say(sink.Retry, "%s has had too many requests%s", at, message)
	case s >= 500 || !coded:
		return say(sink.Retry, "%s cannot take the batch now%s", at, message)
	}
	return say(sink.Reject, "the database refuses the row%s", message)
}

func retryAfter(res *http.Response) time.Duration {
	n, err := strconv.Atoi(res.Header.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return min(time.Duration(n)*time.Second, 10*time.Minute)
}
