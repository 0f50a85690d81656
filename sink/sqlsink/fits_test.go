package sqlsink_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/sink"
)

// What a live type refuses is to be seen of each change by itself, before it is
// folded with others.
func TestF11LiveTypesAreJudgedPerChange(t *testing.T) {
	for _, c := range []struct{ name, typ, live, bad, good string }{
		{"length of a list's elements", "text[]", "varchar(3)[]", `["abcdef"]`, `["abc"]`},
		{"length of a list's characters", "text[]", "char(3)[]", `["abcdef"]`, `["abc"]`},
		{"labels of a list's elements", "text[]", "mood[]", `["zzz"]`, `["x"]`},
		{"float beyond real", "float", "real", `1e300`, `1e38`},
		{"float below real", "float", "real", `1e-300`, `1e-40`},
		{"digits behind the point that jsonb does not keep", "json", "jsonb", `[1.` + strings.Repeat("7", 16384) + `]`, `[1.` + strings.Repeat("7", 16383) + `]`},
		{"digits before the point that jsonb does not keep", "json", "jsonb", `[` + strings.Repeat("7", 131073) + `]`, `[` + strings.Repeat("7", 131072) + `]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := tableOf(t, "item", "id text", "a "+c.typ)
			s, url := existing(t, []string{"create type mood as enum ('x')", "create table item (id text primary key, a " + c.live + ")"}, table)
			live, err := s.Inspect(t.Context(), table)
			if err != nil {
				t.Fatal(err)
			}
			if err := compile.Fit(live, say(t, table, "k", 1, map[string]any{"a": c.bad})); err == nil {
				t.Error("it is said to fit")
			}
			good := say(t, table, "k", 1, map[string]any{"a": c.good})
			if err := compile.Fit(live, good); err != nil {
				t.Errorf("%v", err)
			}
			write(t, s, table, good)
			value, as := "$1", "text::"+c.live
			if c.typ == "text[]" {
				value, as = "array(select json_array_elements_text($1))", "text[]" // as it is assigned
			}
			refuses := func() error {
				ctx := context.Background()
				conn := testdb.Connect(t, ctx, url)
				defer conn.Close(ctx)
				_, err := conn.Exec(ctx, "update item set a = "+value+"::"+as, c.bad)
				return err
			}()
			if refuses == nil {
				t.Error("the database takes it")
			}
		})
	}
}

// Types that cut, round or refuse in ways that Hookfold cannot tell are refused,
// by check and by the sink itself.
func TestF11TypesThatCannotBeJudged(t *testing.T) {
	for _, live := range []string{"inet", "money", "xml", "point", "polygon", "time", "interval", "bit(3)", "varbit(2)", "name", `"char"`, "int4range", "name[]", "dom"} {
		t.Run(live, func(t *testing.T) {
			table := tableOf(t, "item", "id text", "a text")
			s, _ := existing(t, []string{"create domain dom as inet", "create table item (id text primary key, a " + live + ")"}, table)
			have, err := s.Inspect(t.Context(), table)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, p := range compile.Problems(compile.Postgres, table, compile.Schemas{Table: have}, compile.Usage{}) {
				found = found || p.Column == "a" && !p.Warning && strings.Contains(p.Text, "cannot judge")
			}
			if !found {
				t.Error("check does not tell")
			}
			_, err = s.Apply(t.Context(), &sink.Batch{Groups: []sink.Group{group(table, say(t, table, "k", 1, map[string]any{"a": "x"}))}})
			var e *sink.Error
			if !errors.As(err, &e) || e.Action != sink.Retry || !strings.Contains(e.Message, "cannot judge") {
				t.Errorf("%v", err)
			}
		})
	}
}

// Lists are sets of texts and compared as bytes, whatever their type's equality
// is.
func TestListsWithAnEqualityOfTheirOwn(t *testing.T) {
	for _, live := range []string{"citext[]", `text[] collate "any_case"`, `varchar(9)[] collate "any_case"`, "mood[]"} {
		for name, place := range placements {
			t.Run(live+" "+name, func(t *testing.T) {
				table := tableOf(t, "item", "id text", "u text[] union", "l text[]")
				table.Versions = place
				s, _ := existing(t, []string{"create extension citext",
					"create type mood as enum ('a', 'A')",
					"create collation any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
					"create table item (id text primary key, u " + live + ", l " + live + ")"}, table)
				for i, v := range []string{`["A"]`, `["a"]`} {
					write(t, s, table, say(t, table, "k", int64(i), map[string]any{"u": v, "l": v}))
				}
				mustShow(t, s, table, "k", `u=["A","a"] l=["a"]`)
				for i, v := range []string{`["a"]`, `["A"]`} {
					write(t, s, table, say(t, table, "m", int64(i), map[string]any{"u": v, "l": v}))
				}
				mustShow(t, s, table, "m", `u=["A","a"] l=["A"]`)
			})
		}
	}
}

// A type that cuts blanks keeps another text than the one that was written.
func TestBlanksThatACharColumnCuts(t *testing.T) {
	table := tableOf(t, "item", "id text", "a text", "list text[]")
	s, _ := existing(t, []string{"create table item (id text primary key, a char(9), list char(9)[])"}, table)
	write(t, s, table, say(t, table, "k", 1, map[string]any{"a": " a", "list": `[" a"]`}))
	mustShow(t, s, table, "k", `a= a list=[" a"]`)
	for _, set := range []map[string]any{{"a": "a "}, {"list": `["b","a "]`}} {
		if e := refused(t, s, table, say(t, table, "k", 2, set)); e.Action != sink.Reject || !strings.Contains(e.Message, "ends in a blank") {
			t.Errorf("%v: %v", set, e)
		}
	}
}
