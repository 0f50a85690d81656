package tdstest_test

import (
	"database/sql"
	"errors"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	mssql "github.com/microsoft/go-mssqldb"

	"github.com/hookfold/hookfold/internal/tdstest"
)

// The driver logs in, begins, calls with parameters, reads rows and is told of
// faults.
func TestTheDriverTalksToIt(t *testing.T) {
	s := tdstest.New(t, nil, func(r tdstest.Request) tdstest.Answer {
		switch {
		case r.Kind == tdstest.Call && r.SQL == "select name from t where id = @p1":
			return tdstest.Answer{Columns: []string{"name", "note"}, Rows: [][]any{{"é😀", nil}, {"b", ""}}}
		case r.SQL == "update t set a = 1":
			return tdstest.Answer{Counts: []int{2, 3}}
		case r.SQL == "insert into t values (1)":
			return tdstest.Answer{Err: &tdstest.Error{Number: 2627, State: 1, Class: 14, Message: "Violation of PRIMARY KEY constraint", Line: 3}}
		}
		return tdstest.Answer{}
	})
	db, err := sql.Open("sqlserver", s.URL("database=rows&app+name=test&encrypt=disable"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := tx.QueryContext(t.Context(), "select name from t where id = @p1", mssql.NVarCharMax("x"), int64(-7), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []sql.NullString
	for rows.Next() {
		var a, b sql.NullString
		if err := rows.Scan(&a, &b); err != nil {
			t.Fatal(err)
		}
		got = append(got, a, b)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]sql.NullString{{String: "é😀", Valid: true}, {}, {String: "b", Valid: true}, {Valid: true}}, got); d != "" {
		t.Error(d)
	}
	res, err := tx.ExecContext(t.Context(), "update t set a = 1")
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := res.RowsAffected(); n != 5 {
		t.Errorf("%d rows, want the 2 and 3 of both statements", n)
	}
	var fault mssql.Error
	if _, err := tx.ExecContext(t.Context(), "insert into t values (1)"); !errors.As(err, &fault) || fault.Number != 2627 || fault.LineNo != 3 {
		t.Errorf("%+v", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := s.Trace(); got != "login begin select update insert commit" {
		t.Error(got)
	}
	all := s.Requests()
	if l := all[0]; l.User != "hook" || l.SQL != "rows" || l.App != "test" {
		t.Errorf("login: %+v", l)
	}
	if all[1].Isolation != 2 {
		t.Errorf("begin: %+v", all[1])
	}
	want := []tdstest.Param{{Name: "@p1", Type: "nvarchar(max)", Value: "x"}, {Name: "@p2", Type: "bigint", Value: "-7"}, {Name: "@p3", Null: true}}
	if d := cmp.Diff(want, all[2].Params); d != "" || all[2].Declared != "@p1 nvarchar(max),@p2 bigint,@p3 nvarchar(1)" {
		t.Errorf("%s\n%s", all[2].Declared, d)
	}
}

// A refused login says why, and a dropped connection is an error.
func TestFaultsOfAConnection(t *testing.T) {
	for name, a := range map[string]tdstest.Answer{
		"refused": {Err: &tdstest.Error{Number: 18456, Class: 14, Message: "Login failed for user 'hook'."}},
		"dropped": {Drop: true},
	} {
		s := tdstest.New(t, nil, func(tdstest.Request) tdstest.Answer { return a })
		db, err := sql.Open("sqlserver", s.URL("encrypt=disable"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		err = db.PingContext(t.Context())
		var fault mssql.Error
		if err == nil || errors.As(err, &fault) != (name == "refused") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TLS is spoken to a client that asks for it, and a certificate that nobody has
// signed is refused by one that checks.
func TestTLS(t *testing.T) {
	cert, pool := tdstest.Certificate(t)
	s := tdstest.New(t, cert, func(tdstest.Request) tdstest.Answer { return tdstest.Answer{Counts: []int{1}} })
	for query, want := range map[string]bool{
		"encrypt=true": false,
		"encrypt=true&TrustServerCertificate=true":          true,
		"encrypt=true&certificate=" + url.QueryEscape(pool): true,
	} {
		db, err := sql.Open("sqlserver", s.URL(query))
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.ExecContext(t.Context(), "update t set a = 1")
		if (err == nil) != want {
			t.Errorf("%s: %v", query, err)
		}
		db.Close()
	}
}
