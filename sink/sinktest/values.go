package sinktest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// exact are values that a careless path rounds, cuts, re-encodes or refuses.
var exact = map[string][]string{
	"text": {
		"", " ", "a'b\"c\\d", "NULL", "null", `\u0000`, `{"x":1}`, "{a,b}", "tab\tnewline\nreturn\r", "é😀\u2028", "%s $1 ? :x --", "1e5", "007",
		strings.Repeat("long ", 2000),
	},
	"text(9)":       {"nine char", "éééééé999"},
	"bool":          {"true", "false"},
	"int":           {"0", "-1", "9007199254740993", "9223372036854775807", "-9223372036854775808"},
	"numeric":       {"0", "0.1", "129.9", "-0.000000000000000001", "18446744073709551615", "12345678901234567890123456789.123456789012345678901234567891"},
	"numeric(10,2)": {"12345678.9", "-0.01"},
	"float":         {"0", "0.1", "-1.5e+300", "1e-300"},
	"timestamp":     {"2026-05-06T09:00:00.000000Z", "1969-12-31T23:59:59.999999Z", "0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"},
	"date":          {"2026-02-28", "0001-01-01", "9999-12-31"},
	"uuid":          {"0f7d2c1e-5b3a-4c9d-8e6f-2a1b3c4d5e6f"},
	"json":          {"null", "true", `"text"`, "[]", `{"a":9007199254740993,"b":[1.5,"é"],"c":{"d":null}}`, `{"a":"\\u0000"}`, "12345678901234567890.5"},
	"bytes":         {`\x`, `\x00ff`, `\x5c27`},
	"text[]":        {"[]", `["a"]`, `["",",","{}","\"","NULL","\\","é 😀","a\nb"]`},
}

func exactValues(t *testing.T, e Engine) {
	for _, keyed := range []bool{false, true} {
		for typeName, values := range exact {
			if keyed && (typeName == "json" || typeName == "text[]" || typeName == "float" || typeName == "bytes") {
				continue
			}
			t.Run(fmt.Sprintf("%s keyed %v", typeName, keyed), func(t *testing.T) { exactType(t, e, typeName, values, keyed) })
		}
	}
}

func exactType(t *testing.T, e Engine, typeName string, values []string, keyed bool) {
	typ, err := merge.ParseType(typeName)
	if err != nil {
		t.Fatal(err)
	}
	m := merge.Table{Name: "v", Key: []merge.KeyColumn{{Name: "k", Type: merge.Type{Kind: merge.Int}}}}
	if keyed {
		m.Key[0].Type = typ
	}
	m.Columns = []merge.Column{{Name: "v", Type: typ, Scope: merge.RowScope}}
	table := &sink.Table{Table: merge.NewTable(m), Name: "v"}
	s := e.open(t, table)
	var all []*merge.Change
	for i, v := range values {
		if len(v) > 2000 && keyed {
			continue
		}
		key := merge.NewKey(fmt.Sprint(i))
		if keyed {
			key = merge.NewKey(value(t, typ, v).Text())
		}
		c := change(t, table, key, int64(i), map[string]*string{"v": &v})
		if e.Refuses != nil && e.Refuses(typ, v) || keyed && e.RefusesKey != nil && e.RefusesKey(typ, v) {
			if _, err := apply(t.Context(), s, table, []*merge.Change{c}); sink.ActionOf(rowError(err)) != sink.Reject {
				t.Errorf("the value %s: %v, want it rejected", v, err)
			}
			continue
		}
		all = append(all, c)
	}
	for range 2 {
		got, err := apply(t.Context(), s, table, all)
		if err != nil {
			t.Fatal(err)
		}
		if got.Written != len(all) && got.Unchanged != len(all) {
			t.Errorf("%d written, %d unchanged of %d", got.Written, got.Unchanged, len(all))
		}
		mustHold(t, s, table, all, typeName)
	}
	var keys []merge.Key
	for _, c := range all {
		keys = append(keys, c.Key)
	}
	if keyed && typ.Kind == merge.Bool {
		return // both of them are there: no key is absent
	}
	live, err := s.Read(t.Context(), table, append(keys, absent(typ, keyed)))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range live {
		if i < len(all) && (r == nil || r.Key != all[i].Key) {
			t.Errorf("read by key %q: %+v", all[i].Key, r)
		}
		if i == len(all) && r != nil {
			t.Errorf("a row for a key that is not there: %+v", r)
		}
	}
}

// rowError is the error of the first row at fault, where an error tells it.
func rowError(err error) error {
	var batch *sink.BatchError
	if errors.As(err, &batch) {
		return batch.Rows[0].Err
	}
	return err
}

func absent(typ merge.Type, keyed bool) merge.Key {
	if !keyed {
		return "4711"
	}
	for kind, v := range map[merge.TypeKind]string{
		merge.Text: "absent", merge.Int: "4711", merge.Numeric: "4711", merge.Timestamp: "2001-01-01T00:00:00.000000Z",
		merge.Date: "2001-01-01", merge.UUID: "00000000-0000-0000-0000-000000000000",
	} {
		if kind == typ.Kind {
			return merge.Key(v)
		}
	}
	panic("sinktest: no absent key of this type")
}

func compositeKeys(t *testing.T, e Engine) {
	text0 := merge.Type{Kind: merge.Text}
	table := &sink.Table{Name: "pairs", Table: merge.NewTable(merge.Table{
		Name:    "pairs",
		Key:     []merge.KeyColumn{{Name: "tenant", Type: text0}, {Name: "no", Type: merge.Type{Kind: merge.Int}}},
		Columns: []merge.Column{{Name: "v", Type: text0, Scope: merge.RowScope}},
	})}
	s := e.open(t, table)
	var all []*merge.Change
	for _, tenant := range []string{"a", "b", "", "a,b"} {
		for no := range 3 {
			all = append(all, change(t, table, merge.NewKey(tenant, fmt.Sprint(no)), 1, map[string]*string{"v": text(tenant + fmt.Sprint(no))}))
		}
	}
	if _, err := apply(t.Context(), s, table, all); err != nil {
		t.Fatal(err)
	}
	mustHold(t, s, table, all, "composite keys")
}

func keyNames(t *sink.Table) []string {
	var out []string
	for _, k := range t.Key {
		out = append(out, k.Name)
	}
	return out
}

func keyOnly(name string) *sink.Table {
	return &sink.Table{Name: name, Table: merge.NewTable(merge.Table{Name: name, Key: []merge.KeyColumn{{Name: "id", Type: merge.Type{Kind: merge.Text}}}})}
}

// parents writes a table that only has a key, many times the same, in front of
// one whose rows name it.
func parents(t *testing.T, e Engine) {
	user := keyOnly("user") // a reserved word, on purpose
	payment := &sink.Table{Name: "payment", Table: merge.NewTable(merge.Table{
		Name: "payment", Key: []merge.KeyColumn{{Name: "id", Type: merge.Type{Kind: merge.Text}}},
		Columns: []merge.Column{{Name: "user_id", Type: merge.Type{Kind: merge.Text}, Scope: merge.RowScope}},
	})}
	s := e.open(t, user, payment)
	var users, payments []*merge.Change
	for i := range 40 {
		id := fmt.Sprint("u", i%7)
		u := change(t, user, merge.NewKey(id), 0, nil)
		u.Version = merge.NewVersion([]merge.Component{merge.IntOf(int64(i))}, merge.Write, fmt.Append(nil, i))
		users = append(users, u)
		payments = append(payments, change(t, payment, merge.NewKey(fmt.Sprint("p", i)), int64(i), map[string]*string{"user_id": &id}))
	}
	for _, cut := range []int{13, 40} {
		_, err := s.Apply(t.Context(), &sink.Batch{Groups: []sink.Group{
			{Table: user, Rows: merge.Fold(user.Table, users[:cut])},
			{Table: payment, Rows: merge.Fold(payment.Table, payments[:cut])},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	mustHold(t, s, user, users, "parents")
	mustHold(t, s, payment, payments, "children")
}

func ifMissing(t *testing.T, e Engine) {
	table := &sink.Table{Name: "patch", Table: merge.NewTable(merge.Table{
		Name: "patch", Key: []merge.KeyColumn{{Name: "id", Type: merge.Type{Kind: merge.Text}}},
		Columns: []merge.Column{{Name: "v", Type: merge.Type{Kind: merge.Text}, Scope: merge.RowScope}},
	})}
	s := e.open(t, table)
	late := func(key string, m merge.Missing) *merge.Change {
		c := change(t, table, merge.NewKey(key), 2, map[string]*string{"v": text("late")})
		c.IfMissing = m
		return c
	}
	waits, skips := late("w", merge.Wait), late("s", merge.Skip)
	got, err := apply(t.Context(), s, table, []*merge.Change{waits, skips})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Absent) != 1 || got.Absent[0].Row.Key != "w" {
		t.Errorf("absent: %+v, want the row that waits", got.Absent)
	}
	mustHold(t, s, table, nil, "nothing is inserted")
	first := change(t, table, merge.NewKey("w"), 1, map[string]*string{"v": text("first")})
	got, err = apply(t.Context(), s, table, []*merge.Change{waits, first})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Absent) != 0 {
		t.Errorf("absent although the same batch inserts it: %+v", got.Absent)
	}
	mustHold(t, s, table, []*merge.Change{waits, first}, "the row is there")
}

func touch(t *testing.T, e Engine) {
	rules := []merge.DeleteRule{merge.DeleteNone, merge.DeleteMark, merge.DeleteRemove}
	if e.LocalOnly {
		rules = rules[:1]
	}
	for i, rule := range rules {
		if table := touchedTable(rule); e.holds(table) {
			t.Run(fmt.Sprint("rule ", i), func(t *testing.T) { touched(t, e, table) })
		}
	}
}

func touchedTable(rule merge.DeleteRule) *sink.Table {
	return &sink.Table{Name: "touched", Table: merge.NewTable(merge.Table{
		Name: "touched", OnDelete: rule, Key: []merge.KeyColumn{{Name: "id", Type: merge.Type{Kind: merge.Text}}},
		Columns: []merge.Column{
			{Name: "v", Type: merge.Type{Kind: merge.Text}, Scope: merge.RowScope},
			{Name: "at", Type: merge.Type{Kind: merge.Timestamp}, Rule: merge.Touch},
		},
	})}
}

func touched(t *testing.T, e Engine, table *sink.Table) {
	s := e.open(t, table)
	at := func(version int64, v string) string {
		t.Helper()
		c := change(t, table, merge.NewKey("k"), version, map[string]*string{"v": &v})
		if _, err := apply(t.Context(), s, table, []*merge.Change{c}); err != nil {
			t.Fatal(err)
		}
		live, err := s.Read(t.Context(), table, []merge.Key{"k"})
		if err != nil {
			t.Fatal(err)
		}
		return live[0].Cells[table.Column("at")].Value.Text()
	}
	first := at(5, "x")
	if first == "" {
		t.Fatal("the first write left no time")
	}
	if got := at(6, "x"); got != first {
		t.Errorf("it moved from %s to %s though only the version changed", first, got)
	}
	if got := at(3, "older"); got != first {
		t.Errorf("it moved from %s to %s though an older change was written", first, got)
	}
	time.Sleep(5 * time.Millisecond) // the clock of some databases has milliseconds
	if got := at(7, "y"); got <= first {
		t.Errorf("it did not move when the value changed: %s, then %s", first, got)
	}
}

// largeBatch has more values than one statement of most databases can take as
// parameters.
func largeBatch(t *testing.T, e Engine) {
	table := &sink.Table{Table: e.kept(named("large", false)), Name: "large"}
	s := e.open(t, table)
	var all []*merge.Change
	for i := range 12000 {
		all = append(all, change(t, table, merge.NewKey(fmt.Sprintf("%05d", i)), 1, map[string]*string{"a": text("x"), "b": text("1"), "m": text("2")}))
	}
	got, err := apply(t.Context(), s, table, all)
	if err != nil {
		t.Fatal(err)
	}
	if got.Written != len(all) {
		t.Errorf("%d rows written, want %d", got.Written, len(all))
	}
}

// plan makes the tables, finds nothing left to do, and then only adds a column.
func plan(t *testing.T, e Engine) {
	for _, table := range e.variants() {
		s := e.open(t, table)
		left, err := s.Plan(t.Context(), []*sink.Table{table})
		if err != nil || len(left) != 0 {
			t.Errorf("%s: after migrating, %d statements are left, %v:\n%s", table.Name, len(left), err, strings.Join(left, "\n"))
		}
		live, err := s.Inspect(t.Context(), table)
		if err != nil || !live.Exists || live.Column("a") == nil || !live.HasUnique(keyNames(table)) {
			t.Errorf("%s: live schema %+v, %v", table.Name, live, err)
		}
		grown := *table
		grown.Table = merge.NewTable(merge.Table{Name: table.Table.Name, Key: table.Key, Occupied: table.Occupied, Chained: table.Chained,
			OnDelete: table.OnDelete, Group: table.Group, Columns: append(table.Columns[:len(table.Columns):len(table.Columns)], merge.Column{Name: "later", Scope: "later"})})
		more, err := s.Plan(t.Context(), []*sink.Table{&grown})
		if err != nil || len(more) == 0 {
			t.Fatalf("%s: no statement adds a column: %v", table.Name, err)
		}
		if err := s.Execute(t.Context(), more); err != nil {
			t.Errorf("%s: %v", table.Name, err)
		}
		if left, err = s.Plan(t.Context(), []*sink.Table{&grown}); err != nil || len(left) != 0 {
			t.Errorf("%s: still left %v, %v", table.Name, left, err)
		}
	}
	s := e.open(t)
	missing, err := s.Inspect(t.Context(), keyOnly("nowhere"))
	if err != nil || missing.Exists {
		t.Errorf("a table that is not there: %+v, %v", missing, err)
	}
	_, err = apply(t.Context(), s, keyOnly("nowhere"), []*merge.Change{change(t, keyOnly("nowhere"), "x", 0, nil)})
	var se *sink.Error
	if !errors.As(err, &se) || !strings.Contains(se.Message, "nowhere") {
		t.Errorf("writing into a table that is not there: %v, want a *sink.Error that names it", err)
	}
}
