package config

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/merge"
)

func name(s string) Name { return Name{Text: s} }

func expr(s string) Expr { return Expr{Text: s} }

func exprPtr(s string) *Expr { return &Expr{Text: s} }

func set(pairs ...string) []Assignment {
	var out []Assignment
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, Assignment{Column: name(pairs[i]), Expr: expr(pairs[i+1])})
	}
	return out
}

func typed(kind merge.TypeKind) merge.Type { return merge.Type{Kind: kind} }

func column(n string, kind merge.TypeKind, rule merge.Rule) Column {
	return Column{Name: name(n), Type: typed(kind), Rule: rule}
}

// wantExample is testdata/example.yaml, without places.
func wantExample(t *testing.T) *Config {
	t.Helper()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	source := func(n, preset string) *Source {
		return &Source{Name: name(n), Preset: name(preset), Format: "json", MaxAhead: 24 * time.Hour, MaxBody: 5 << 20, BadText: "replace"}
	}
	calendly, whatsapp, shop := source("calendly", "calendly"), source("whatsapp", "whatsapp"), source("shop", "http")
	calendly.Secrets = []Secret{{Value: "c"}}
	whatsapp.Secrets, whatsapp.VerifyToken = []Secret{{Value: "m"}}, "t"
	shop.Secrets = []Secret{{Value: "s"}, {Value: "from a file", Until: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}}
	shop.Verify = &Verify{Kind: "hmac", Hash: "sha256", Header: "X-Signature", Encoding: "hex", Prefix: "sha256="}
	shop.Split, shop.Type, shop.Time, shop.ID = exprPtr("body.events"), exprPtr("event.type"), exprPtr("event.at"), []Expr{expr("event.id")}
	shop.Zone = berlin

	table := func(n string, key ...Column) *Table {
		return &Table{Name: name(n), Physical: name(n), Target: name("db"), Key: key}
	}
	text := func(n string) Column { return column(n, merge.Text, merge.Latest) }
	scoped := func(n string, kind merge.TypeKind, scope string) Column {
		c := column(n, kind, merge.Latest)
		c.Scope = name(scope)
		return c
	}
	referring := func(n string, kind merge.TypeKind, to string) Column {
		c := column(n, kind, merge.Latest)
		c.References = &Reference{Table: name(to), Missing: "ensure"}
		return c
	}

	booking := table("booking", text("ref"))
	booking.Physical = name("public.booking")
	booking.Columns = []Column{text("status"), text("invitee"), column("start_at", merge.Timestamp, merge.Latest), scoped("no_show", merge.Bool, "no_show"), column("changed_at", merge.Timestamp, merge.Touch)}
	byRef := func(m *Mapping) *Mapping {
		m.From, m.When = name("calendly"), exprPtr("present(event.payload.tracking.utm_term)")
		m.Key = set("ref", "event.payload.tracking.utm_term")
		m.Occupant = &Occupant{ID: expr("event.payload.uri"), Since: exprPtr("event.payload.created_at")}
		return m
	}
	booking.Events = []*Mapping{
		byRef(&Mapping{
			Types:   []Name{name("invitee.created"), name("invitee.canceled")},
			Version: []Expr{expr("event.payload.updated_at"), expr(`type == "invitee.canceled" ? 1 : 0`)},
			Set:     set("status", `type == "invitee.canceled" ? "canceled" : "active"`, "invitee", "event.payload.uri", "start_at", "event.payload.scheduled_event.start_time"),
		}),
		byRef(&Mapping{
			Types: []Name{name("invitee_no_show.*")},
			Set:   set("no_show", `type == "invitee_no_show.created"`),
		}),
	}

	message := table("message_status", text("message_id"))
	ladder := column("status", merge.Text, merge.Ladder)
	ladder.Rungs = []string{"sent", "failed", "delivered", "read", "played"}
	message.Columns = []Column{ladder, column("sent_at", merge.Timestamp, merge.Min), column("delivered_at", merge.Timestamp, merge.Min), column("read_at", merge.Timestamp, merge.Min), scoped("error", merge.Int, "error")}
	message.Events = []*Mapping{{
		From: name("whatsapp"), Types: []Name{name("status.*")}, Key: set("message_id", "event.id"),
		Set: set("status", "event.status", "sent_at", `type == "status.sent" ? time : unset`, "delivered_at", `type == "status.delivered" ? time : unset`,
			"read_at", `type == "status.read" ? time : unset`, "error", "event.?errors[0].?code"),
	}}

	user := table("user", column("id", merge.UUID, merge.Latest))
	user.Events = []*Mapping{{From: name("shop"), When: exprPtr("present(event.user)"), Key: set("id", "event.user")}}

	payment := table("payment", text("id"))
	payment.Columns = []Column{referring("user_id", merge.UUID, "user"), column("amount", merge.Numeric, merge.Latest), column("paid_at", merge.Timestamp, merge.Latest)}
	payment.Events = []*Mapping{{
		From: name("shop"), Types: []Name{name("payment")}, Key: set("id", "event.id"),
		Set: set("user_id", "event.user", "paid_at", "time"), Rest: exprPtr("event"),
	}}

	line := table("payment_line", referring("payment", merge.Text, "payment"), column("no", merge.Int, merge.Latest))
	price := text("price")
	price.Type = merge.Type{Kind: merge.Numeric, Precision: 10, Scale: 2}
	line.Columns = []Column{text("sku"), price}
	line.Events = []*Mapping{{
		From: name("shop"), Types: []Name{name("payment")}, Clock: name("shop"), IfMissing: merge.Wait,
		Key: set("payment", "event.id", "no", "1"), Set: set("sku", "null", "price", "event.cents / 100"),
	}}

	return &Config{
		File: "example.yaml", Listen: "127.0.0.1:8080", Admin: "127.0.0.1:8081",
		Journal: Journal{URL: name("sqlite:hookfold.db"), Keep: 30 * 24 * time.Hour, MaxSize: 20e9, Index: true},
		Sources: []*Source{calendly, whatsapp, shop},
		Targets: []*Target{{Name: name("db"), URL: name("postgres://hookfold:pw@db.example/app"), Kind: PostgreSQL, Pooler: "transaction", Connections: 4}},
		Tables:  []*Table{booking, message, user, payment, line},
		Tests: []*Test{
			{
				Name:   name("a late cancel of the old invitee does not touch the new booking"),
				Send:   []Delivery{{Sample: "calendly/reschedule.new.invitee.created", Source: "calendly"}, {Sample: "calendly/reschedule.old.invitee.canceled", Source: "calendly"}},
				Expect: []Expected{{Table: name("booking"), Rows: [][]Literal{{{Column: name("ref"), Text: "lead_48213"}, {Column: name("status"), Text: "active"}}}}},
			},
			{
				Name: name("a payment makes its user"),
				Send: []Delivery{{
					Source: "shop", Header: map[string]string{"X-Topic": "payment"},
					Body: []byte(`{"events":[{"id":12345678901234567890,"type":"payment","at":"2026-01-01","user":null,"amount":1.10}]}`),
				}},
				Expect: []Expected{
					{Table: name("user")},
					{Table: name("payment"), Rows: [][]Literal{{{Column: name("id"), Text: "12345678901234567890"}, {Column: name("amount"), Text: "1.1"}, {Column: name("user_id"), Null: true}}}},
				},
			},
		},
	}
}

func TestExample(t *testing.T) {
	data, err := os.ReadFile("testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, problems := Parse("example.yaml", data, testOptions())
	if len(problems.List) > 0 {
		t.Fatal(problems)
	}
	places := cmp.FilterPath(func(p cmp.Path) bool {
		f, ok := p.Last().(cmp.StructField)
		return ok && (f.Name() == "Pos" || f.Name() == "Path" || f.Name() == "Quoted")
	}, cmp.Ignore())
	zones := cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() })
	if d := cmp.Diff(wantExample(t), got, places, zones); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	n := checkPlaces(t, string(data), reflect.ValueOf(got), "")
	if n < 100 {
		t.Errorf("only %d places looked at", n)
	}
}

// checkPlaces checks that what every name and expression says stands where it
// says so, and returns how many there were.
func checkPlaces(t *testing.T, file string, v reflect.Value, path string) int {
	n := 0
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*time.Location]() {
			n += checkPlaces(t, file, v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += checkPlaces(t, file, v.Index(i), path)
		}
	case reflect.Struct:
		switch x := v.Interface().(type) {
		case Name:
			return checkPlace(t, file, x.Pos, x.Path, x.Text, false)
		case Expr:
			return checkPlace(t, file, x.Pos, x.Path, x.Text, x.Quoted)
		case time.Time:
			return 0
		}
		for i := range v.NumField() {
			n += checkPlaces(t, file, v.Field(i), path)
		}
	}
	return n
}

func checkPlace(t *testing.T, file string, pos Pos, path, text string, quoted bool) int {
	t.Helper()
	if text == "" || path == "" {
		return 0
	}
	lines := strings.Split(file, "\n")
	if pos.Line < 1 || pos.Line > len(lines) || pos.Column < 1 || pos.Column > len(lines[pos.Line-1]) {
		t.Errorf("%s %q: no place %v", path, text, pos)
		return 1
	}
	at := lines[pos.Line-1][pos.Column-1:]
	if quoted && at[0] != '"' && at[0] != '\'' {
		t.Errorf("%s %q is not quoted at %v: %s", path, text, pos, at)
	}
	if at = strings.TrimLeft(at, `"'`); !strings.HasPrefix(at, text) && !strings.HasPrefix(at, "${") {
		t.Errorf("%s is %q, but at %v stands %s", path, text, pos, at)
	}
	return 1
}
