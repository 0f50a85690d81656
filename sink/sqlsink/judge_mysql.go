package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/hookfold/hookfold/sink"
)

// What MySQL and MariaDB say of constraints: the text names them, the error does
// not.
var (
	duplicateOf  = regexp.MustCompile(`for key '(?:[^']*\.)?([^'.]+)'$`)
	foreignKeyOf = regexp.MustCompile("CONSTRAINT `((?:[^`]|``)+)` FOREIGN KEY")
	columnOf     = regexp.MustCompile(`^(?:Column|Field) '([^']+)'`)
	checkOf      = regexp.MustCompile("(?:CONSTRAINT `([^`]+)` failed|[Cc]heck constraint '([^']+)')")
)

func match(re *regexp.Regexp, s string) string {
	for i, m := range re.FindStringSubmatch(s) {
		if i > 0 && m != "" {
			return strings.ReplaceAll(m, "``", "`")
		}
	}
	return ""
}

// judge goes by the number:
// https://dev.mysql.com/doc/mysql-errors/8.0/en/server-error-reference.html and
// https://mariadb.com/kb/en/mariadb-error-code-reference/
func (e *mysqlEngine) judge(err error, table string) *fault {
	var m *mysql.MySQLError
	if !errors.As(err, &m) {
		if errors.Is(err, mysql.ErrPktTooLarge) {
			return &fault{Error: &sink.Error{Action: sink.Reject, Err: err,
				Message: fmt.Sprintf("table %s: the row is greater than the server takes. Raise max_allowed_packet there", table)}}
		}
		return &fault{Error: &sink.Error{Action: sink.Retry, Message: e.unreachable(err), Err: err}}
	}
	f := &fault{Error: &sink.Error{Code: fmt.Sprintf("MySQL %d", m.Number), Err: err}}
	say := func(a sink.Action, format string, args ...any) *fault {
		f.Action, f.Message = a, fmt.Sprintf(format, args...)
		return f
	}
	switch m.Number {
	case 1213, 1205, 1020, 3572, 1614, 1637, 3058, 3101, 1180:
		f.again, f.locked = true, m.Number == 1205 || m.Number == 3572
		return say(sink.Retry, "other writers were in the way: %s", m.Message)
	case 1062, 1586, 1557, 1859, 1761, 1762:
		f.constraint = match(duplicateOf, m.Message)
		f.On, f.Why = f.constraint, sink.UniqueValue
		return say(sink.Wait, "table %s: unique %s: another row has the value: %s", table, f.constraint, m.Message)
	case 1452, 1451, 1216, 1217:
		f.constraint = match(foreignKeyOf, m.Message)
		f.On, f.Why = or(f.constraint, table+" foreign key"), sink.NeedsParent
		return say(sink.Wait, "table %s: foreign key %s: %s", table, f.constraint, m.Message)
	case 1048, 1364, 1263:
		f.schema = true // perhaps it allowed NULL when it was looked at
		f.On, f.Why = table+"."+match(columnOf, m.Message), sink.NotNull
		return say(sink.Wait, "table %s: column %s is NOT NULL and has no value yet", table, match(columnOf, m.Message))
	case 3819, 4025:
		return say(sink.Reject, "table %s: check %s refuses the row: %s", table, match(checkOf, m.Message), m.Message)
	case 1118, 1264, 1265, 1292, 1366, 1406, 1411, 1525, 1690, 3140, 3141, 3156, 1367, 1300, 4038, 3105, 1906:
		return say(sink.Reject, "table %s: a value does not fit: %s", table, m.Message)
	case 1644, 1643, 1645:
		return say(sink.Reject, "table %s: a trigger refuses the row: %s", table, m.Message)
	case 1049:
		return say(sink.Retry, noDatabase, m.Message)
	case 1146, 1054, 1136, 1109, 1051, 1305, 1412, 1615, 1176, 1072, 4099:
		f.schema = true
		return say(sink.Retry, "table %s: the database does not have what the config says: %s. Bring it in line (hookfold migrate shows how); until then events wait", table, m.Message)
	case 1142, 1143, 1370, 1227:
		return say(sink.Retry, "table %s: %s. Grant select, insert, update and delete to the user of the target's url; until then events wait", table, m.Message)
	case 1044, 1045, 1698, 1046, 1820, 1862, 3118, 4151:
		return say(sink.Retry, notLetIn, m.Message)
	case 1040, 1203, 1226:
		f.After = time.Second
		return say(sink.Retry, "the database cannot take the batch now: %s", m.Message)
	case 1153, 1301:
		return say(sink.Reject, "table %s: the row is greater than the server takes (%s). Raise max_allowed_packet there", table, m.Message)
	case 1665:
		return say(sink.Retry, "the database writes its binary log by statements, which READ COMMITTED does not allow. Set binlog_format = ROW or MIXED there: %s", m.Message)
	case 1792:
		f.alone = true
		return say(sink.Retry, "the database takes no writes now: %s", m.Message)
	}
	switch state := string(m.SQLState[:]); {
	case strings.HasPrefix(state, "22"):
		return say(sink.Reject, "table %s: a value does not fit: %s", table, m.Message)
	case strings.HasPrefix(state, "23"):
		return say(sink.Reject, "table %s: the row is refused: %s", table, m.Message)
	case strings.HasPrefix(state, "45"):
		return say(sink.Reject, "table %s: a trigger refuses the row: %s", table, m.Message)
	case strings.HasPrefix(state, "40"):
		f.again = true
		return say(sink.Retry, "other writers were in the way: %s", m.Message)
	case strings.HasPrefix(state, "42"):
		f.schema = true
		return say(sink.Retry, "table %s: the database does not take the statement: %s", table, m.Message)
	}
	return say(sink.Retry, "the database cannot take the batch now: %s", m.Message)
}

// unreachable describes an error that did not come from the server.
func (e *mysqlEngine) unreachable(err error) string {
	at := "the database at " + e.config.Addr
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return at + " did not answer in time"
	case errors.Is(err, context.Canceled):
		return "the work on the database was broken off"
	}
	return at + " cannot be reached: " + brief(err)
}
