package postgrest

import (
	"net/url"
	"strings"
	"testing"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Whatever an API answers is read or refused, and does not end the program.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{
		`[{"written":1,"guests":[1],"partial":[2]}]`, `{"functions":["hookfold_x"],"tables":{"\"t\"":{"kind":"r","columns":[{"name":"a","type":"text","internal":"int8"}],"uniques":[{"name":"u","columns":["a"]}]}}}`,
		`{"k":"a","v":1.5,"row_version":null}`, `null`, `[null]`, `"x`, ``,
	} {
		f.Add([]byte(s))
	}
	table := &sink.Table{Name: "t", Table: merge.NewTable(merge.Table{Name: "t", Key: []merge.KeyColumn{{Name: "k"}}, Columns: []merge.Column{{Name: "v", Scope: merge.RowScope}}})}
	f.Fuzz(func(t *testing.T, b []byte) {
		readAnswers(string(b), 1)
		if have, err := readInspection(b); err == nil {
			have.live("t")
		}
		textOf(b)
		missingParent.FindStringSubmatch(string(b))
		(placed{listGuests: {{Key: "a"}}}).same(listGuests, len(b)-2)
		item, _ := textOf(b)
		valueOf(table.Columns[0].Type, item, true)
	})
}

// Whatever a value holds, the other side reads it as it was.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"a+b c", `"),\.`, "é😀%2B&=", "", "(a,b:c/d*)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, err := url.QueryUnescape(escape(s)); err != nil || got != s {
			t.Errorf("%q is read as %q, %v", s, got, err)
		}
		if e := escape(s); strings.ContainsAny(e, "+&=# ") {
			t.Errorf("%q holds what a query is split at", e)
		}
		q := quoted(s)
		if got := strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(q[1 : len(q)-1]); got != s {
			t.Errorf("%q in quotes is %q, read as %q", s, q, got)
		}
	})
}
