package sqlsink_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// TestF18GuardTriggerMySQL tries what SEMANTICS says of the trigger on MySQL, on a
// table with an enum, collations that know no case, a default and a generated
// column, beside a trigger of the user's.
func TestF18GuardTriggerMySQL(t *testing.T) {
	url := testdb.MySQL(t)
	table := tableOf(t, "Order", "id text", "status text ladder new,paid,sent", "note text", "amount numeric(10,2)", "owner text scope owner", "email text max", "origin text first", "low int min", "changed timestamp touch")
	table.Guard, table.UnsafeUnique = sink.ByTrigger, []string{"email"}
	testdb.ExecMySQL(t, url,
		"create table `Order` (id varchar(50) collate utf8mb4_bin primary key, status enum('draft', 'new', 'paid', 'sent'), note varchar(30) not null default 'none', amount decimal(10,2), "+
			"owner varchar(20), email varchar(50) unique, origin varchar(20), low int, changed datetime(6), twice decimal(12,2) generated always as (amount * 2) stored, extra varchar(9) default 'x')",
		"create trigger lowered before insert on `Order` for each row set new.email = lower(new.email)",
		"create trigger lowered_too before update on `Order` for each row set new.email = lower(new.email)")
	s := open(t, url, nil, sqlsink.Options{})
	bring(t, s, table)
	if left, err := s.Plan(t.Context(), []*sink.Table{table}); err != nil || len(left) > 0 {
		t.Fatalf("after migrating, %v is left, %v", left, err)
	}
	db := testdb.ConnectMySQL(t, url)
	defer db.Close()
	columns := []string{"id", "status", "note", "amount", "owner", "email", "origin", "low", "row_version", "owner_version", "origin__first"}
	var sets []string
	for _, c := range columns[1:] {
		sets = append(sets, c+" = values("+c+")")
	}
	order := func(values string) string {
		return "insert into `Order` (" + strings.Join(columns, ", ") + ") values (" + values + ") on duplicate key update " + strings.Join(sets, ", ")
	}
	run := func(statements ...string) (string, error) {
		var row string
		for _, s := range statements {
			if _, err := db.ExecContext(context.Background(), s); err != nil {
				return "", err
			}
		}
		err := db.QueryRow("select concat_ws(' ', status, note, amount, owner, email, origin, low, row_version, owner_version, twice, extra) from `Order` where id = 'k'").Scan(&row)
		return row, err
	}
	if _, err := db.Exec("insert into `Order` (id, email) values ('holds', 'held@x')"); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ name, sql, want string }{
		{"a new row; an unset NOT NULL column has its default", order(`'k', null, null, null, 'ann', null, null, null, null, 'v1', null`), "none ann v1 x"},
		{"an event", order(`'k', 'paid', 'five', 5.5, null, 'B@x', 'web', 7, 'v5', null, 'v5'`), "paid five 5.50 ann b@x web 7 v5 v1 11.00 x"},
		{"an older one", order(`'k', 'new', 'three', 3, 'bob', 'c@x', 'app', null, 'v3', 'v3', 'v3'`), "paid five 5.50 bob c@x app 7 v5 v3 11.00 x"},
		{"the same again", order(`'k', 'paid', 'five', 5.5, null, 'B@x', 'web', 7, 'v5', null, 'v5'`), "paid five 5.50 bob c@x app 7 v5 v3 11.00 x"},
		{"versions are compared as bytes", order(`'k', null, 'V5', 5.5, null, null, null, null, 'V9', null, null`), "paid five 5.50 bob c@x app 7 v5 v3 11.00 x"},
		{"a person's UPDATE", "update `Order` set note = 'by hand', status = 'draft', email = 'a@x', extra = 'y' where id = 'k'", "draft by hand 5.50 bob a@x app 7 v5 v3 11.00 y"},
		{"an UPDATE that moves a version", "update `Order` set note = 'old', row_version = 'v2', status = 'new', low = 9 where id = 'k'", "new by hand 5.50 bob a@x app 7 v5 v3 11.00 y"},
		{"an UPDATE that repeats an event", "set @hookfold_guard = 'on'\nupdate `Order` set low = 8, row_version = 'v5', note = 'by hand' where id = 'k'\nset @hookfold_guard = null", "new by hand 5.50 bob a@x app 7 v5 v3 11.00 y"},
		{"named columns", "set @hookfold_set = 'note, amount, low'\n" + order(`'k', 'sent', 'six', 6, 'eve', 'z@x', 'no', 1, 'v6', 'v9', 'v0'`) + "\nset @hookfold_set = null", "new six 6.00 bob a@x app 1 v6 v3 12.00 y"},
		{"none named", "set @hookfold_set = ','\n" + order(`'k', 'sent', 'x', 1, 'x', 'zz', 'x', 0, 'v9', 'v9', 'v0'`) + "\nset @hookfold_set = null", "new six 6.00 bob a@x app 1 v6 v3 12.00 y"},
		{"off", "set @hookfold_guard = 'off'\n" + order(`'k', 'new', 'one', 1, null, null, null, null, 'v1', null, null`) + "\nset @hookfold_guard = null", "new one 1.00 v1 2.00 y"},
		{"an INSERT that is passed over leaves nothing behind", "insert ignore into `Order` (id, low) values ('k', 1)\nupdate `Order` set status = 'draft' where id = 'k'", "draft one 1.00 v1 2.00 y"},
	} {
		if got, err := run(strings.Split(strings.ReplaceAll(x.sql, "\n\t", " "), "\n")...); err != nil || got != x.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", x.name, got, err, x.want)
		}
	}
	for sql, want := range map[string]string{
		order(`'m', 'draft', 'two', 2, null, null, null, null, 'v2', null, null`):   "draft is not a step of the ladder",
		order(`'m', 'new', 'two', 2, null, 'held@x', null, null, 'v2', null, null`): "another row holds a unique value",
	} {
		if _, err := run("set @hookfold_guard = null", sql); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q\n%s", err, want, sql)
		}
	}
	live, err := s.Inspect(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	if said := fmt.Sprint(compile.Problems(compile.MySQL, table, compile.Schemas{Table: live}, compile.Usage{})); strings.Contains(said, "guard") {
		t.Error(said)
	}
	testdb.ExecMySQL(t, url, "create trigger late before update on `Order` for each row set new.note = trim(new.note)", "drop trigger `hookfold_guard_Order_insert`")
	if live, err = s.Inspect(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	said := fmt.Sprint(compile.Problems(compile.MySQL, table, compile.Schemas{Table: live}, compile.Usage{}))
	for _, want := range []string{"trigger late runs after the guard trigger", "the guard trigger is not there"} {
		if !strings.Contains(said, want) {
			t.Errorf("problems do not say %q: %s", want, said)
		}
	}
	bring(t, s, table)
	if live, err = s.Inspect(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	if said := fmt.Sprint(compile.Problems(compile.MySQL, table, compile.Schemas{Table: live}, compile.Usage{})); strings.Contains(said, "guard trigger") {
		t.Error(said)
	}
}

// A guard trigger is known again by its source, whatever the texts in it hold.
func TestMySQLGuardIsKnownAgain(t *testing.T) {
	table := tableOf(t, "Größe", "id text", `état text ladder new,it's,back\slash,smile😀`, "`q`?1 text", `we"ird text scope own`)
	table.Guard = sink.ByTrigger
	s, url := onMySQL(t, table)
	if left, err := s.Plan(t.Context(), []*sink.Table{table}); err != nil || len(left) > 0 {
		t.Fatalf("after migrating, %d statements are left, %v", len(left), err)
	}
	db := testdb.ConnectMySQL(t, url)
	defer db.Close()
	for _, x := range []struct{ step, want string }{{"it's", "it's"}, {`back\slash`, `back\slash`}, {"smile😀", "smile😀"}, {"new", "smile😀"}} {
		if _, err := db.Exec("insert into `Größe` (id, `état`, row_version) values ('k', ?, '0') on duplicate key update `état` = values(`état`), row_version = values(row_version)", x.step); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := db.QueryRow("select `état` from `Größe`").Scan(&got); err != nil || got != x.want {
			t.Errorf("%s: %s, %v, want %s", x.step, got, err, x.want)
		}
	}
	write(t, s, table, say(t, table, "k", 1, map[string]any{"`q`?1": `a\`, `we"ird`: "?"}))
	mustShow(t, s, table, "k", "état=smile😀 `q`?1=a\\ we\"ird=?")
	rows, after, err := s.Page(t.Context(), table, "", 1)
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if after != "" {
		if rows, _, err = s.Page(t.Context(), table, after, 1); err != nil || len(rows) > 0 {
			t.Errorf("%d more rows, %v", len(rows), err)
		}
	}
}
