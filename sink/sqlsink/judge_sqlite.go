package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	sqlite "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/hookfold/hookfold/sink"
)

// judge goes by the result code: https://sqlite.org/rescode.html
func (e *sqliteEngine) judge(err error, table string) *fault {
	var s *sqlite.Error
	f := &fault{Error: &sink.Error{Err: err}}
	say := func(a sink.Action, format string, args ...any) *fault {
		f.Action, f.Message = a, fmt.Sprintf(format, args...)
		return f
	}
	if !errors.As(err, &s) {
		if errors.Is(err, context.DeadlineExceeded) {
			return say(sink.Retry, "the database %s did not answer in time", e.path)
		}
		var file *fs.PathError
		if errors.As(err, &file) {
			return say(sink.Retry, "the database %s cannot be opened: %v. Its folder has to be there and writable", e.path, file.Err)
		}
		return say(sink.Retry, "the database %s: %v", e.path, err)
	}
	f.Code = fmt.Sprintf("SQLite %d", s.Code())
	text := plainText(s.Error())
	switch s.Code() {
	case lib.SQLITE_CONSTRAINT_UNIQUE, lib.SQLITE_CONSTRAINT_PRIMARYKEY, lib.SQLITE_CONSTRAINT_ROWID:
		f.On, f.Why = after(text, "constraint failed: "), sink.UniqueValue
		for _, name := range strings.Split(f.On, ", ") { // table.column, …
			f.columns = append(f.columns, name[strings.LastIndex(name, ".")+1:])
		}
		return say(sink.Wait, "table %s: another row has the value: %s", table, text)
	case lib.SQLITE_CONSTRAINT_FOREIGNKEY:
		f.On, f.Why = table+" foreign key", sink.NeedsParent
		return say(sink.Wait, "table %s: a foreign key names a row that is not there: %s", table, text)
	case lib.SQLITE_CONSTRAINT_NOTNULL:
		f.schema = true // perhaps it allowed NULL when it was looked at
		f.On, f.Why = after(text, "constraint failed: "), sink.NotNull
		return say(sink.Wait, "table %s: %s is NOT NULL and has no value yet", table, f.On)
	}
	switch s.Code() & 0xff {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return say(sink.Retry, "another writer holds the database %s", e.path)
	case lib.SQLITE_CONSTRAINT, lib.SQLITE_MISMATCH, lib.SQLITE_TOOBIG:
		return say(sink.Reject, "table %s refuses the row: %s", table, text)
	case lib.SQLITE_ERROR, lib.SQLITE_SCHEMA:
		if strings.Contains(text, "no such") || strings.Contains(text, "has no column") || strings.Contains(text, "ON CONFLICT clause") || s.Code() == lib.SQLITE_SCHEMA {
			f.schema = true
			return say(sink.Retry, "table %s: the database does not have what the config says: %s. Bring it in line (hookfold migrate shows how); until then events wait", table, text)
		}
		return say(sink.Reject, "table %s: %s", table, text)
	}
	return say(sink.Retry, "the database %s cannot take the batch now: %s", e.path, text)
}

// plainText leaves out the code that the driver puts behind its message.
func plainText(s string) string {
	if i := strings.LastIndex(s, " ("); i > 0 {
		return s[:i]
	}
	return s
}

func after(s, mark string) string {
	if i := strings.LastIndex(s, mark); i >= 0 {
		return s[i+len(mark):]
	}
	return s
}
