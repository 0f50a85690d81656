package compile_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/compile"
)

// Two collations that are both said cannot be compared: SQL Server 468. So where a
// column has one of its own, no comparison has it on one side and another one on
// the other.
func TestCollationsDoNotMeet(t *testing.T) {
	const own = "SQL_Latin1_General_CP1_CI_AS"
	compared := regexp.MustCompile(`\+ N'\.'\) collate Latin1_General_BIN2 (=|<>) (.*)`)
	for name, table := range examples(t) {
		live, records := compile.Ideal(compile.SQLServer, table)
		for i := range live.Columns {
			if live.Columns[i].Base == "nvarchar" {
				live.Columns[i].Collate = own
			}
		}
		s, err := compile.Compile(compile.SQLServer, table, live, records)
		if err != nil {
			t.Fatal(err)
		}
		statements := []string{s.Upsert.SQL, s.Stub.SQL, s.Update.SQL, s.Lock.SQL, s.Known.SQL}
		if h := s.Held; h != nil {
			statements = append(statements, h.Rows.SQL, h.Insert.SQL, h.Update.SQL, h.Delete.SQL, h.Rekey.SQL)
		}
		if script, err := compile.ProcedureScript(compile.SQLServer, table, compile.Schemas{Table: live}); err == nil {
			statements = append(statements, script)
		}
		for _, sql := range statements {
			for _, m := range compared.FindAllStringSubmatch(sql, -1) {
				other := m[2] // up to where this comparison ends
				for _, end := range []string{" and ", " or ", ")\n"} {
					other, _, _ = strings.Cut(other, end)
				}
				if strings.Contains(other, own) && !strings.Contains(other, "+ N'.') collate Latin1_General_BIN2") {
					t.Errorf("%s: %s", name, m[0])
				}
			}
		}
	}
}
