package compile_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/sqlc-dev/teesql/parser"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/sink"
)

// What teesql 1.1.0 does not take, though T-SQL does: COLLATE behind anything but a
// call, and a hint behind the table of a MERGE. Both are left out before it reads.
var beyondTeesql = regexp.MustCompile(` collate [A-Za-z0-9_]+| with \(holdlock\)`)

// parsed reads a script with a grammar of T-SQL, and gives its statements as the
// grammar sees them.
func parsed(t *testing.T, script string) string {
	t.Helper()
	tree, err := parser.Parse(context.Background(), strings.NewReader(beyondTeesql.ReplaceAllString(script, "")))
	if err != nil {
		t.Fatalf("%v in\n%s", err, script)
	}
	out, err := parser.MarshalScript(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestGrammar reads every statement and script that is written for SQL Server: of
// every example, of every form, of procedures, and what asks for the catalog.
func TestGrammar(t *testing.T) {
	for _, d := range []compile.Dialect{compile.SQLServer, compile.SQLServerMerge, compile.SQLServerLocks} {
		for name, table := range examples(t) {
			t.Run(string(d)+" "+name, func(t *testing.T) {
				script, err := compile.Script(d, table, compile.Schemas{})
				if err != nil {
					t.Fatal(err)
				}
				out := parsed(t, script)
				live, records := compile.Ideal(d, table)
				s, err := compile.Compile(d, table, live, records)
				if err != nil {
					t.Fatal(err)
				}
				want := map[string]int{"UpdateStatement": 1, "InsertStatement": 1}
				switch {
				case s.Held != nil && d == compile.SQLServerMerge:
					want = map[string]int{"MergeStatement": 1, "UpdateStatement": 1}
				case s.Held != nil:
				case d == compile.SQLServerMerge:
					want = map[string]int{"MergeStatement": 1}
				default:
					want = map[string]int{"TryCatchStatement": 1, "ThrowStatement": 1, "WhileStatement": 1}
				}
				for kind, n := range want {
					if got := strings.Count(out, `"`+kind+`"`); got < n && len(table.Columns) > 0 {
						t.Errorf("the grammar sees %d of %s, want %d at least", got, kind, n)
					}
				}
				if strings.Contains(script, "openjson(") != strings.Contains(out, "OpenJsonTableReference") {
					t.Error("OPENJSON is not seen as what it is")
				}
				reading, err := compile.Read(d, table, live)
				if err != nil {
					t.Fatal(err)
				}
				for _, sql := range []string{reading.ByKey.SQL, reading.All, reading.First, reading.Next, reading.Versions, reading.VersionsByKey,
					d.SkipLocked(reading.ByKey.SQL), compile.Lookup(d, table, live, []string{table.Key[0].Name}).SQL, s.Known.SQL} {
					if sql != "" {
						parsed(t, sql)
					}
				}
				if len(table.Columns) > 0 {
					parsed(t, compile.Park(d, table, live, []string{table.Columns[0].Name}).SQL)
				}
				if h := s.Held; h != nil {
					for _, sql := range []string{h.Claim, h.Hold, h.Save, h.Oldest} {
						if sql != "" {
							parsed(t, sql)
						}
					}
				}
			})
		}
	}
	for name, table := range examples(t) {
		script, err := compile.ProcedureScript(compile.SQLServer, table, compile.Schemas{})
		if err != nil {
			continue // which its golden file shows
		}
		if out := parsed(t, script); !strings.Contains(out, "CreateOrAlterProcedureStatement") {
			t.Errorf("%s: no procedure is seen", name)
		}
	}
	for _, sql := range []string{compile.SQLServerTable, compile.SQLServerColumns, compile.SQLServerUniques, compile.SQLServerReferences, "declare @got int; " + compile.ApplockSQL("3", "1000"),
		"save transaction hookfold", "rollback transaction hookfold", "set xact_abort off; set lock_timeout 1000;", "select top (1) 1 from t as t with (updlock, rowlock, readpast)"} {
		parsed(t, sql)
	}
}

// No key is compared by the guard of a MERGE, and every MERGE ends.
func TestMergeForm(t *testing.T) {
	table := examples(t)["status"]
	live, _ := compile.Ideal(compile.SQLServerMerge, table)
	s, err := compile.Compile(compile.SQLServerMerge, table, live, nil)
	if err != nil {
		t.Fatal(err)
	}
	sql := s.Upsert.SQL
	on, matched, _ := strings.Cut(sql[strings.Index(sql, "\non "):], "\nwhen matched and (")
	if !strings.HasPrefix(sql, "merge into [message_status] with (holdlock) as t\nusing (select ") || !strings.HasSuffix(sql, ";") || strings.Contains(on, "error_version") || !strings.Contains(matched, "error_version") {
		t.Error(sql)
	}
}

// The parameter of a key has the kind of its column's type, or an index on it
// could not be used, and none is cut.
func TestKeysKeepTheirIndex(t *testing.T) {
	table := examples(t)["status"]
	for typ, want := range map[string]string{
		"varchar(50)":  "cast(v.p1 collate Latin1_General_CI_AS as varchar(8000))",
		"nvarchar(50)": "cast(v.p1 collate Latin1_General_CI_AS as nvarchar(4000))",
		"char(50)":     "cast(v.p1 collate Latin1_General_CI_AS as varchar(8000))",
	} {
		live, _ := compile.Ideal(compile.SQLServer, table)
		c := &live.Columns[0]
		c.Type, c.Base, c.Collate = typ, strings.TrimSuffix(typ, "(50)"), "Latin1_General_CI_AS"
		if !strings.HasPrefix(typ, "n") {
			c.CodePage, c.Units = 1252, sink.Bytes
		}
		s, err := compile.Compile(compile.SQLServer, table, live, nil)
		if err != nil || !strings.Contains(s.Upsert.SQL, "t.[message_id] = excluded.p1") || !strings.Contains(s.Upsert.SQL, want+" as p1") {
			t.Errorf("%s: %v\n%s", typ, err, s.Upsert.SQL)
		}
	}
}
