package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLanesAreRead(t *testing.T) {
	c, places := everything(t)
	expr := func(text string) Expr { return Expr{Text: text} }
	when := expr("event.total > 0")
	want := []*Lane{
		{
			Name: name("billing"), From: name("shop"), Types: []Name{name("order.*"), name("line.saved")}, When: &when, Key: expr("event.customer"),
			ByVersion: true, Version: []Expr{expr("event.at"), expr("event.no")}, Hold: 500 * time.Millisecond, Settled: true, Concurrency: 4,
			Timeout: 2 * time.Second, Retry: -1, Parks: true, History: true,
			Post: &Post{
				URL: "http://127.0.0.1:9000/billing", Secrets: [][]byte{[]byte("012345678901234567890123"), []byte("412345678901234567890123")},
				Headers: []Header{{"X-Token", "Bearer abc"}},
			},
		},
		{
			Name: name("audit"), From: name("shop"), Key: expr("event.id"), Hold: 2 * time.Second, Concurrency: 16, Timeout: 15 * time.Second, Retry: 24 * time.Hour,
			SQL: &LaneSQL{
				Target:    name("db"),
				Statement: Statement{Parts: []string{"insert into audit (id, at, note) values (", ", ", "::timestamptz, 'at :id')"}, Places: []string{"id", "at"}},
				With:      []Assignment{{Column: name("id"), Expr: expr("event.id")}, {Column: name("at"), Expr: expr("time")}},
			},
		},
	}
	if d := cmp.Diff(want, c.Lanes, places); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestStatementsAreCut(t *testing.T) {
	for text, want := range map[string]string{
		"select 1":                                 "select 1",
		" select :a , :b_2 ; ":                     "select <a> , <b_2>",
		"select ':a', \":a\", `:a`":                "select ':a', \":a\", `:a`",
		"select 'it''s :a', :a":                    "select 'it''s :a', <a>",
		`select E'\':a', :a`:                       `select E'\':a', <a>`,
		`select e'\\', :a`:                         `select e'\\', <a>`,
		`select name'\', :a`:                       `select name'\', <a>`,
		"select x::text, :a::int":                  "select x::text, <a>::int",
		"select a[1:n], :é":                        "select a[1:n], <é>",
		"select $$ :a ; $$, $b$ :a $$ $b$, $1, :a": "select $$ :a ; $$, $b$ :a $$ $b$, $1, <a>",
		"-- :a\nselect /* :a ; */ :a -- :b":        "-- :a\nselect /* :a ; */ <a> -- :b",
		"set @x := 1":                              "set @x := 1",
		"select 1; select 2":                       "!" + errTwo.Error(),
		"select 'a":                                "!" + errOpenQuote.Error(),
		"select $x$ a":                             "!" + errOpenQuote.Error(),
		"select /* a":                              "!" + errOpenQuote.Error(),
		" ; ":                                      "!" + errNoStatement.Error(),
	} {
		s, err := cutStatement(text)
		got := strings.TrimSpace(s.Text(func(name string) string { return "<" + name + ">" }))
		if err != nil {
			got = "!" + err.Error()
		}
		if got != want {
			t.Errorf("%q\ngot  %s\nwant %s", text, got, want)
		}
	}
}
