package compile_test

import (
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// What live types of SQL Server can hold, and what is said of those that cannot.
func TestSQLServerTypes(t *testing.T) {
	text := func(base string, length, page int) sink.LiveColumn {
		c := sink.LiveColumn{Type: base, Base: base, Length: length, CodePage: page, Units: sink.UTF16, Collate: "Latin1_General_BIN2"}
		if page != 0 {
			c.Units = sink.Bytes
		}
		return c
	}
	plain := func(base string) sink.LiveColumn { return sink.LiveColumn{Type: base, Base: base} }
	for _, x := range []struct {
		typ  string
		rule merge.Rule
		live sink.LiveColumn
		want string // "" is fine, "!" in front is an error, else a warning
	}{
		{"text", merge.Latest, text("nvarchar", 0, 0), ""},
		{"text", merge.Latest, text("varchar", 50, 1252), "characters of code page 1252 only"},
		{"text", merge.Latest, text("varchar", 50, 65001), ""},
		{"json", merge.Latest, text("nvarchar", 0, 0), ""},
		{"text[]", merge.Union, text("nvarchar", 0, 0), ""},
		{"int", merge.Max, text("nvarchar", 0, 0), "!text has another order"},
		{"bytes", merge.Latest, text("nvarchar", 0, 0), "!bytes need varbinary"},
		{"bytes", merge.Latest, plain("varbinary"), ""},
		{"bytes", merge.Latest, plain("binary"), "!Hookfold cannot judge what binary takes"},
		{"text", merge.Latest, plain("xml"), "!Hookfold cannot judge what xml takes"},
		{"text", merge.Latest, plain("int"), "!say type: int"},
		{"int", merge.Latest, sink.LiveColumn{Type: "int", Base: "int", Bits: 32}, "numbers beyond its 32 bits are dead"},
		{"int", merge.Latest, sink.LiveColumn{Type: "bigint", Base: "bigint", Bits: 64}, ""},
		{"numeric", merge.Latest, sink.LiveColumn{Type: "decimal(38,18)", Base: "decimal", Precision: 38, Scale: 18}, "numbers with more digits are dead"},
		{"float", merge.Latest, sink.LiveColumn{Type: "decimal(9,2)", Base: "decimal", Precision: 9, Scale: 2}, "!a float may have any number of digits"},
		{"float", merge.Latest, plain("float"), ""},
		{"timestamp", merge.Latest, sink.LiveColumn{Type: "datetimeoffset(7)", Base: "datetimeoffset", Scale: 7}, ""},
		{"timestamp", merge.Latest, sink.LiveColumn{Type: "datetime2(6)", Base: "datetime2", Scale: 6}, "it keeps no zone"},
		{"timestamp", merge.Latest, sink.LiveColumn{Type: "datetime2(0)", Base: "datetime2"}, "it rounds times"},
		{"timestamp", merge.Latest, plain("datetime"), "1/300 s"},
		{"bool", merge.Latest, plain("bit"), ""},
		{"uuid", merge.Latest, plain("uniqueidentifier"), ""},
		{"date", merge.Latest, plain("date"), ""},
	} {
		table := &sink.Table{Name: "t", Table: merge.NewTable(merge.Table{Name: "t", Key: []merge.KeyColumn{{Name: "id", Type: typ(t, "int")}},
			Columns: []merge.Column{{Name: "a", Type: typ(t, x.typ), Rule: x.rule, Scope: merge.RowScope}}})}
		live, _ := compile.Ideal(compile.SQLServer, table)
		x.live.Name = "a"
		for i := range live.Columns {
			if live.Columns[i].Name == "a" {
				live.Columns[i] = x.live
			}
		}
		var got []string
		for _, p := range compile.Problems(compile.SQLServer, table, compile.Schemas{Table: live, Records: &sink.Live{}, Versions: &sink.Live{}}, compile.Usage{Inserts: true}) {
			mark := "!"
			if p.Warning {
				mark = ""
			}
			got = append(got, mark+p.Text)
		}
		want, isError := strings.CutPrefix(x.want, "!")
		switch {
		case want == "" && got != nil,
			want != "" && (len(got) != 1 || !strings.Contains(got[0], want) || strings.HasPrefix(got[0], "!") != isError):
			t.Errorf("%s %s on %s: %q, want %q", x.typ, x.rule, x.live.Type, got, x.want)
		}
	}
}

// A key whose collation ignores case is warned of, and compared as it is.
func TestSQLServerKeys(t *testing.T) {
	table := examples(t)["status"]
	live, _ := compile.Ideal(compile.SQLServer, table)
	live.Columns[0].Collate = "SQL_Latin1_General_CP1_CI_AS"
	problems := compile.Problems(compile.SQLServer, table, compile.Schemas{Table: live, Records: &sink.Live{}, Versions: &sink.Live{}}, compile.Usage{Inserts: true})
	if len(problems) != 1 || !problems[0].Warning || !strings.Contains(problems[0].Text, "different keys are one (aB and ab)") {
		t.Errorf("%+v", problems)
	}
	s, err := compile.Compile(compile.SQLServer, table, live, nil)
	if err != nil || !strings.Contains(s.Upsert.SQL, "(t.[message_id] + N'.') collate Latin1_General_BIN2 = (excluded.p1 + N'.') collate Latin1_General_BIN2") {
		t.Errorf("%v\n%s", err, s.Upsert.SQL)
	}
	for name, want := range map[string]bool{"Latin1_General_BIN2": true, "Latin1_General_100_BIN2_UTF8": true, "Cyrillic_General_BIN": true, "Latin1_General_CS_AS": false, "SQL_Latin1_General_CP1_CI_AS": false} {
		if got := compile.BinaryCollation(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Whole numbers of tinyint run from 0 to 255.
func TestSQLServerFits(t *testing.T) {
	table := merge.NewTable(merge.Table{Key: []merge.KeyColumn{{Name: "id", Type: typ(t, "int")}}, Columns: []merge.Column{{Name: "a", Type: typ(t, "int"), Scope: merge.RowScope}}})
	live := &sink.Live{Exists: true, Columns: []sink.LiveColumn{{Name: "a", Type: "tinyint", Base: "tinyint", Bits: 8, Unsigned: true}}}
	for text, want := range map[string]bool{"0": true, "255": true, "256": false, "-1": false} {
		v, err := merge.ParseValue(typ(t, "int"), text)
		if err != nil {
			t.Fatal(err)
		}
		row := &merge.Row{Key: merge.NewKey("1"), Cells: []merge.Cell{{Set: true, Value: v}}}
		if err := compile.FitRow(live, table, row); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
