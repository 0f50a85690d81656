package sqlsink

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"

	mssql "github.com/microsoft/go-mssqldb"

	"github.com/hookfold/hookfold/sink"
)

// lockHeld is the error that this package raises where sp_getapplock gets no lock.
const lockHeld = 51222

// The errors of SQL Server by what is to be done about them:
// https://learn.microsoft.com/en-us/sql/relational-databases/errors-events/database-engine-events-and-errors
var (
	sqlserverBusy    = numbers(1205, 1222, 3960, 3961, 41301, 41302, 41305, 41325, 41839, lockHeld, 0)
	sqlserverSchema  = numbers(207, 208, 213, 206, 257, 271, 273, 402, 4104, 8102, 544, 1934, 2812, 13536)
	sqlserverGrants  = numbers(229, 230, 262, 297, 300, 916, 1088, 15247)
	sqlserverLogin   = numbers(18452, 18456, 18470, 18486, 18487, 18488, 4060, 4064, 40532, 40615, 47073)
	sqlserverValues  = numbers(220, 232, 235, 241, 242, 245, 248, 295, 296, 517, 1946, 2628, 8114, 8115, 8152, 8169, 8170, 13609)
	sqlserverPause   = numbers(10928, 10929, 40197, 40501, 40613, 49918, 49919, 49920, 40544, 40549, 40550, 40551, 40552, 40553)
	sqlserverTrouble = numbers(64, 233, 596, 601, 617, 701, 802, 823, 824, 825, 832, 976, 978, 979, 983, 1101, 1105, 3906, 3908, 3930, 3998, 6005, 8645, 8651, 9001, 9002, 10053, 10054, 10060, 17142, 17806)
	// sqlserverSyntax is also what a server or database says that is too old.
	sqlserverSyntax = numbers(102, 156, 170, 319, 195, 10713)
)

func numbers(list ...int32) map[int32]bool {
	out := map[int32]bool{}
	for _, n := range list {
		out[n] = true
	}
	return out
}

// judge goes by the number of the error.
func (e *sqlserverEngine) judge(err error, table string) *fault {
	var s mssql.Error
	if !errors.As(err, &s) {
		return &fault{Error: &sink.Error{Action: sink.Retry, Message: e.unreachable(err), Err: err}}
	}
	if len(s.All) > 0 { // the first is the cause, others follow from it
		s = s.All[0]
	}
	f := &fault{Error: &sink.Error{Code: fmt.Sprintf("SQL Server %d", s.Number), Err: err}}
	say := func(a sink.Action, format string, args ...any) *fault {
		f.Action, f.Message = a, fmt.Sprintf(format, args...)
		return f
	}
	quoted := quotedIn(s.Message)
	switch s.Number {
	case 2627, 2601:
		f.constraint = constraintIn(s.Message)
		f.alone = true // perhaps the row has just come
		f.On, f.Why = f.constraint, sink.UniqueValue
		return say(sink.Wait, "table %s: unique %s: another row has the value: %s", table, f.constraint, s.Message)
	case 547:
		f.constraint = constraintIn(s.Message)
		if strings.Contains(strings.ToUpper(s.Message), "CHECK") {
			return say(sink.Reject, "table %s: check %s refuses the row: %s", table, f.constraint, s.Message)
		}
		f.On, f.Why = f.constraint, sink.NeedsParent
		return say(sink.Wait, "table %s: foreign key %s: %s", table, f.constraint, s.Message)
	case 515:
		column := ""
		if len(quoted) > 0 {
			column = quoted[0]
		}
		f.schema = true // perhaps it allowed NULL when it was looked at
		f.On, f.Why = table+"."+column, sink.NotNull
		return say(sink.Wait, "table %s: column %s is NOT NULL and has no value yet", table, column)
	case 8672:
		return say(sink.Reject, "table %s: two keys of one batch are one key to the database (a collation, or a type that is not the config's): %s", table, s.Message)
	case 3906, 978, 979:
		return say(sink.Retry, "the database takes no writes now: %s", s.Message)
	}
	switch {
	case sqlserverBusy[s.Number]:
		f.again, f.locked = true, s.Number == 1222 || s.Number == lockHeld
		return say(sink.Retry, "other writers were in the way: %s", s.Message)
	case sqlserverSchema[s.Number]:
		f.schema = true
		return say(sink.Retry, "table %s: the database does not have what the config says: %s Bring it in line (hookfold migrate shows how); until then events wait", table, s.Message)
	case sqlserverGrants[s.Number]:
		return say(sink.Retry, "table %s: %s Grant select, insert, update and delete to the user of the target's url; until then events wait", table, s.Message)
	case sqlserverLogin[s.Number]:
		return say(sink.Retry, "%s refuses the login of the target's url: %s", e.at, s.Message)
	case sqlserverValues[s.Number]:
		f.schema = true // perhaps the column was longer when it was looked at
		return say(sink.Reject, "table %s: a value does not fit: %s", table, s.Message)
	case sqlserverSyntax[s.Number]:
		f.schema = true
		return say(sink.Retry, "table %s: the database does not take the statement: %s Hookfold needs SQL Server 2016 or later, and a database of compatibility level 130 or higher", table, s.Message)
	case sqlserverPause[s.Number]:
		f.After = 10 * time.Second
		return say(sink.Retry, "the database cannot take the batch now: %s", s.Message)
	case sqlserverTrouble[s.Number] || s.Class >= 17 && s.Number < 50000:
		return say(sink.Retry, "the database cannot take the batch now: %s", s.Message)
	case s.Number >= 50000:
		return say(sink.Reject, "table %s: a trigger or procedure refuses the row: %s", table, s.Message)
	}
	return say(sink.Reject, "table %s: %s", table, s.Message)
}

var quotedName = regexp.MustCompile(`'([^']+)'|"([^"]+)"`)

// quotedIn finds the names that a message holds, which stand in quotes whatever
// its language is.
func quotedIn(message string) []string {
	var out []string
	for _, m := range quotedName.FindAllStringSubmatch(message, -1) {
		out = append(out, m[1]+m[2])
	}
	return out
}

// named is how messages name what is violated, SQL Server's and Babelfish's.
var named = regexp.MustCompile(`(?i)(?:constraint|index) ['"]([^'"]+)['"]`)

// constraintIn finds the constraint or index that a message names.
func constraintIn(message string) string {
	if m := named.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	if quoted := quotedIn(message); quoted != nil {
		return quoted[0]
	}
	return ""
}

// unreachable describes an error that did not come from the server.
func (e *sqlserverEngine) unreachable(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var timeout net.Error
	text := strings.Join(strings.Fields(err.Error()), " ")
	switch {
	case errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &invalid), strings.Contains(text, "x509: "), strings.Contains(text, "certificate"):
		return fmt.Sprintf("the certificate of the database at %s is not trusted: %s. Name the file of its authority in the target's url (certificate=/path/ca.pem), or the host that it is for (hostNameInCertificate=…); on a network of your own alone, TrustServerCertificate=true takes any", e.at, text)
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout():
		return "the database at " + e.at + " did not answer in time"
	case errors.Is(err, context.Canceled):
		return "the work on the database was broken off"
	case strings.Contains(text, "encryption") || strings.Contains(text, "TLS Handshake"):
		return fmt.Sprintf("the database at %s does not speak TLS as asked: %s. On a network of your own, encrypt=disable in the target's url goes without it", e.at, text)
	}
	return "the database at " + e.at + " cannot be reached: " + brief(err)
}
