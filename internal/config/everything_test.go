package config

import (
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/merge"
)

// everything reads testdata/everything.yaml, with the places checked and taken
// out of the comparison by the option it returns.
func everything(t *testing.T) (*Config, cmp.Option) {
	t.Helper()
	data, err := os.ReadFile("testdata/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, problems := Parse("everything.yaml", data, testOptions())
	if len(problems.List) > 0 {
		t.Fatal(problems)
	}
	if n := checkPlaces(t, string(data), reflect.ValueOf(c), ""); n < 150 {
		t.Errorf("only %d places looked at", n)
	}
	return c, cmp.Options{
		cmp.FilterPath(func(p cmp.Path) bool {
			f, ok := p.Last().(cmp.StructField)
			return ok && (f.Name() == "Pos" || f.Name() == "Path" || f.Name() == "Quoted")
		}, cmp.Ignore()),
		cmp.AllowUnexported(merge.Value{}),
	}
}

func TestDeletesAreRead(t *testing.T) {
	c, places := everything(t)
	shown := func(n string, kind merge.TypeKind, text string, flag bool) Shown {
		v, err := merge.ParseValue(typed(kind), text)
		if err != nil {
			t.Fatal(err)
		}
		return Shown{Literal: Literal{Column: name(n), Text: text}, Type: typed(kind), Value: v, Flag: flag}
	}
	null := Shown{Literal: Literal{Column: name("status"), Null: true}, Type: typed(merge.Text)}
	want := map[string]*OnDelete{
		"user": {Rule: merge.DeleteMark},
		"order": {Rule: merge.DeleteSet, Set: []Shown{
			shown("deleted", merge.Bool, "true", true), shown("note", merge.Text, "cancelled, gone", true), null,
			shown("removals", merge.Int, "1", true), shown("weight", merge.Numeric, "0.50", true),
			shown("seen_on", merge.Date, "2026-01-01", false), shown("tags", merge.TextArray, `["a"]`, false),
		}},
		"line": {Rule: merge.DeleteRemove}, "cart": {Rule: merge.DeleteRemove},
		"booking": {Rule: merge.DeleteSet, Set: []Shown{shown("cancelled", merge.Bool, "true", true)}},
		"meeting": nil,
		"beside":  {Rule: merge.DeleteSet, Set: []Shown{shown("row_version", merge.Int, "-1", true)}},
		"seat":    {Rule: merge.DeleteMark},
		"invoice": nil,
	}
	got := map[string]*OnDelete{}
	for _, table := range c.Tables {
		got[table.Text] = table.OnDelete
	}
	if d := cmp.Diff(want, got, places); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	user := c.TableNamed("user")
	if d := cmp.Diff([]Column{column("email", merge.Text, merge.Latest)}, user.Columns, places); d != "" {
		t.Errorf("deleted_at is still a column, or more than it is gone:\n%s", d)
	}
	var deletes []string
	for _, m := range user.Events {
		if m.Delete != nil {
			deletes = append(deletes, m.Delete.Text)
		}
	}
	if d := cmp.Diff([]string{"true", `event.state == "gone"`}, deletes); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestListsAndChainsAreRead(t *testing.T) {
	c, places := everything(t)
	line := c.TableNamed("line")
	m := line.Events[0]
	if d := cmp.Diff(set("order", "event.id", "tenant", "event.tenant"), m.Replaces, places); d != "" {
		t.Errorf("not in the key's order (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]int{0, 2}, line.Group()); d != "" || m.Each.Text != `type == "cart.deleted" ? [] : event.lines` {
		t.Errorf("%s %s", d, m.Each.Text)
	}
	type kind struct{ Chained, Occupied, Replaced bool }
	want := map[string]kind{"user": {}, "order": {}, "line": {Replaced: true}, "cart": {}, "beside": {}, "booking": {Chained: true, Occupied: true}, "meeting": {}, "seat": {Occupied: true}, "invoice": {}}
	got := map[string]kind{}
	for _, x := range c.Tables {
		got[x.Text] = kind{x.Chained(), x.Occupied(), x.Group() != nil}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	booking := c.TableNamed("booking").Events[0]
	if d := cmp.Diff(&Chain{Previous: exprPtr("event.old_uri"), Next: exprPtr("event.new_uri")}, booking.Chain, places); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(&Occupant{Since: exprPtr("event.since")}, booking.Occupant, places); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestWaitsAndCountersAreRead(t *testing.T) {
	c, places := everything(t)
	order := c.TableNamed("order")
	buyer := set("tenant", "event.tenant", "id", "event.buyer")
	columns := []Column{
		{Name: name("buyer"), Type: typed(merge.UUID), References: &Reference{Table: name("user"), Key: buyer, Missing: "wait", For: 24 * time.Hour}},
		{Name: name("former"), Type: typed(merge.Text), References: &Reference{Table: name("order"), Missing: "wait", For: time.Hour}},
		column("total", merge.Numeric, merge.Sum),
		column("payments", merge.Int, merge.Count),
	}
	if d := cmp.Diff(columns, order.Columns[3:], places); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	parents := []Reference{
		{Table: name("user"), Key: set("tenant", "event.tenant", "id", "event.seller"), Missing: "wait", For: 48 * time.Hour},
		{Table: name("user"), Key: set("tenant", "event.tenant", "id", "event.agent"), Missing: "ensure"},
	}
	if d := cmp.Diff(parents, order.Parents, places); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestFetchesAreRead(t *testing.T) {
	c, places := everything(t)
	want := []*Fetch{
		{
			Name: name("invoice"), URL: exprPtr("event.links.self"), Bearer: "t0ken",
			Headers: []Header{{"X-Api-Version", "7"}}, EventHeaders: set("X-Account", "event.?account"),
			Hosts:   []Name{name("api.example.com"), name("*.example.org:8443"), name("127.0.0.1:8080"), name("[::1]:80"), name("::1")},
			Private: []Name{name("api.example.com")}, Rate: 1.5, Concurrency: 2, Timeout: 5 * time.Second, MaxBody: 64 << 10,
			Version: []Expr{expr("fetched.seq"), expr("fetched.part")}, Until: exprPtr("fetched.seq >= event.seq"),
			NotFound: NotFoundValue, OrElse: exprPtr("event"), For: 2 * time.Hour,
		},
		{
			Name: name("plain"), Preset: name("calendly/invitee"), Basic: &Basic{"me", "s3cret"},
			Concurrency: 4, Timeout: 10 * time.Second, MaxBody: 1 << 20, NotFound: NotFoundRetry, For: 24 * time.Hour,
		},
	}
	if d := cmp.Diff(want, c.Fetches, places); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if m := c.TableNamed("invoice").Events[0]; m.Fetch.Text != "invoice" || m.Delete != nil {
		t.Errorf("%+v", m)
	}
	for host, want := range map[string][2]string{
		"a.b": {"a.b", ""}, "a.b:1": {"a.b", "1"}, "::1": {"::1", ""}, "[::1]": {"::1", ""}, "[::1]:80": {"::1", "80"}, "127.0.0.1:8": {"127.0.0.1", "8"},
	} {
		if h, p := SplitHost(host); h != want[0] || p != want[1] {
			t.Errorf("%s: %s %s", host, h, p)
		}
	}
}
